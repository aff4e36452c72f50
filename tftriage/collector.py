"""The collector as one file, for machines without tftriage: ``tftriage collector -o collect.pyz``.

The file is a Python program in plain text that holds the modules as a packed text: so it runs by double-click, as
``python collect.pyz``, and through a pipe (``ssh HOST python3 - < collect.pyz``), and writes nothing to the disk but
the case. PE and ELF files are read by the collector's own readers; NVML's bindings come from the installed package.
"""

from __future__ import annotations

import base64
import io
import pkgutil
import zipfile
from functools import lru_cache
from importlib import metadata
from itertools import takewhile
from pathlib import Path

import msgspec

import tftriage
from tftriage import __version__, cases
from tftriage.knowledge import Knowledge, load
from tftriage.requests import facts_wanted

HERE = Path(tftriage.__file__).resolve().parent
VENDORED = {"nvidia-ml-py": ("pynvml.py",)}  # distribution -> the files of it that the collector imports
HEADER = '''#!/usr/bin/env python3
# tftriage {version}: a collector for a machine without tftriage. Python 3.6 or newer, nothing else has to be installed.
#
#     python collect.pyz                         writes tftriage-case.json; send that file to whoever helps you
#     ssh HOST python3 - < collect.pyz > case    the same on another machine
#
# It looks at Python, TensorFlow, CUDA and the graphics driver, tries `import tensorflow` once with a time limit, and
# takes names, addresses and passwords out of what it writes. It installs, changes and sends nothing.
# PAYLOAD holds its modules (a zip archive as text) with the licences of what is not ours. Below is all that unpacks it.

'''


def plan(kb: Knowledge, key: bytes) -> bytes:
    """What the packed collector has to know: which facts, which libraries each build opens, the key of the tokens."""
    rows = [b for b in kb.tables.builds if b.cuda]
    return msgspec.json.encode(
        {
            "schema": cases.SCHEMA, "tool": __version__, "knowledge": kb.digest, "key": key.hex(),
            "facts": list(dict.fromkeys(facts_wanted())),
            "builds": [{"version": b.version, "system": b.system, "libraries": b.libraries} for b in rows],
        }
    )  # fmt: skip


def archive(kb: Knowledge, key: bytes) -> bytes:
    """The zip archive of the modules, the same bytes for the same input."""
    files = {"tftriage/portable/plan.json": plan(kb, key), "tftriage/__init__.py": (HERE / "__init__.py").read_bytes()}
    for package in ("collect", "portable"):
        for path in sorted((HERE / package).glob("*.py")):
            files[f"tftriage/{package}/{path.name}"] = path.read_bytes()
    for name, modules in VENDORED.items():
        distribution = metadata.distribution(name)
        for module in modules:
            files[module] = Path(str(distribution.locate_file(module))).read_bytes()
        files[f"licenses/{name}.txt"] = licence(distribution, modules)
    files["licenses/tftriage.txt"] = b"tftriage: Apache License 2.0, https://www.apache.org/licenses/LICENSE-2.0\n"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in sorted(files.items()):
            packed.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED, 9)
    return stream.getvalue()


def licence(distribution: metadata.Distribution, modules: tuple[str, ...]) -> bytes:
    """The licence text of a package: its own file, else the comment that its module begins with."""
    for file in distribution.files or ():
        if file.name.upper().startswith(("LICENSE", "LICENCE", "COPYING")):
            return Path(str(file.locate())).read_bytes()
    lines = Path(str(distribution.locate_file(modules[0]))).read_text(encoding="utf-8").splitlines()
    return "".join(line + "\n" for line in takewhile(lambda line: line.startswith("#"), lines)).encode()


@lru_cache(maxsize=2)
def program(key: bytes) -> str:
    """The whole collector as one Python program in ASCII."""
    boot = (pkgutil.get_data("tftriage.portable", "boot.py") or b"").decode("ascii")
    payload = base64.encodebytes(archive(load(), key)).decode("ascii")
    text = HEADER.format(version=__version__) + boot + f'\n\nPAYLOAD = """\n{payload}"""\nBOOT = {boot!r}\n'
    return text + 'if __name__ == "__main__":\n    start(PAYLOAD.replace("\\n", ""), BOOT, "case")\n'


def first_line(key: bytes) -> bytes:
    """What turns an interpreter that executes the first line of its standard input into a collector."""
    boot = (pkgutil.get_data("tftriage.portable", "boot.py") or b"").decode("ascii")
    payload = base64.b64encode(archive(load(), key)).decode("ascii")
    source = boot + "\nstart(%r, '', 'serve')\n" % payload  # noqa: UP031
    return f"exec({source!r})\n".encode("ascii")
