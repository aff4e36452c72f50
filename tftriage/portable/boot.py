# How the packed collector starts: its modules are taken out of this text, and nothing is written to the disk.
# This part also has to be readable for Python 2, to say what is wrong with it.
import base64
import io
import sys
import zipfile

try:
    from typing import Any  # noqa: F401
except ImportError:  # Python 2
    pass

ROOT = "tftriage-collector/"


class Packed(object):
    """Finds and loads modules in a zip archive that is held in memory."""

    def __init__(self, payload):
        # type: (str) -> None
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(payload))) as archive:
            self.files = dict((name, archive.read(name)) for name in archive.namelist())

    def find_spec(self, name, path=None, target=None):
        # type: (str, object, object) -> object
        from importlib.util import spec_from_file_location

        base = name.replace(".", "/")
        for file, package in ((base + "/__init__.py", True), (base + ".py", False)):
            if file in self.files:
                inside = [ROOT + base] if package else None
                found = self  # type: Any
                return spec_from_file_location(name, ROOT + file, loader=found, submodule_search_locations=inside)
        return None

    def create_module(self, spec):
        # type: (object) -> None
        return None

    def exec_module(self, module):
        # type: (Any) -> None
        file = module.__spec__.origin
        exec(compile(self.get_data(file), file, "exec"), module.__dict__)

    def get_data(self, path):
        # type: (str) -> bytes
        """The bytes of a file in the archive (pkgutil.get_data asks for them)."""
        name = path.replace("\\", "/")
        return self.files[name[name.index(ROOT) + len(ROOT) :]]


def start(payload, boot, task):
    # type: (str, str, str) -> None
    """``task``: "case" writes a case; "serve" answers requests on standard input, as the installed collector does."""
    if sys.version_info < (3, 6):
        sys.exit("This needs Python 3.6 or newer; this is Python " + sys.version.split()[0])
    finder = Packed(payload)  # type: Any
    sys.meta_path.insert(0, finder)
    if task == "serve":
        from tftriage.collect.runner import main

        main()
    else:
        from tftriage.portable.standalone import main as write_case

        sys.exit(write_case(sys.argv[1:], first_line(payload, boot)))


def first_line(payload, boot):
    # type: (str, str) -> bytes
    """What makes an interpreter that executes the first line of its standard input answer requests."""
    source = boot + "\nstart(%r, %r, 'serve')\n" % (payload, "")
    return ("exec(%r)\n" % source).encode("ascii")
