"""Run BY THE TARGET'S INTERPRETER, which reads this file from standard input: ``python -B - TASK MARKER ARGUMENT...``

From standard input the working folder comes first on the module path, as for a person's ``python -c``, and no folder
of ours is ever on it. Every line of result is MARKER and JSON in ASCII, written to a private copy of standard output:
whatever site hooks print cannot be mistaken for one. File descriptor 1 then leads to 2, so that the order of
TensorFlow's C++ lines and Python's own prints is kept.

Until the import under test is over, nothing but built-in modules is imported: a ``random.py`` in the working folder
has to hit TensorFlow as it hits the person. Hence no typing, no json, quoted annotations. Python 3.5 can read it.
"""

import sys

EARLY = frozenset(sys.modules)  # what the start of Python loads; a file of that name in the working folder harms nobody
# The working folder, "" or (on Windows) spelled out, comes first unless -I or PYTHONSAFEPATH forbid it.
HERE_FIRST = not sys.flags.isolated and not getattr(sys.flags, "safe_path", False)
if HERE_FIRST:
    del sys.path[0]

import os  # noqa: E402
import time  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple  # noqa: F401

    Value = Dict[str, Any]
    Emit = Callable[[Value], None]

WINDOWS = os.name == "nt"
NATIVE = (".pyd", ".dll", ".so")
TENSORFLOWS = (
    "tensorflow tensorflow-gpu tensorflow-cpu tensorflow-intel tensorflow-rocm tensorflow-macos tensorflow-directml"
    " tensorflow-mkl tensorflow-eigen tensorflow-cpu-aws intel-tensorflow tf-nightly tf-nightly-gpu tf-nightly-cpu"
    " tf-nightly-intel"
)
NEEDED = "numpy protobuf h5py keras tensorflow-estimator"  # without which TensorFlow cannot be imported
# Modules that TensorFlow's import reaches, besides the standard library.
REACHED = (
    "tensorflow tensorflow_core tensorflow_estimator tensorboard keras numpy scipy h5py google six wrapt absl gast"
    " astor termcolor grpc opt_einsum ml_dtypes flatbuffers packaging requests typing_extensions"
)
UNREACHED = "test this antigravity idlelib turtle turtledemo lib2to3 tkinter __main__ venv ensurepip"
SHOWN = 500  # names listed of one kind; more say nothing new


class Nothing(Exception):
    """The thing looked for is not there; the message says what."""


# result lines


def text_of(value: "Any") -> str:
    """JSON in ASCII. The json module may be the very thing that a file in the working folder replaces."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return repr(value) if value == value and abs(value) != float("inf") else "null"
    if isinstance(value, dict):
        return "{" + ",".join(text_of(str(key)) + ":" + text_of(item) for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "[" + ",".join(text_of(item) for item in value) + "]"
    return '"' + "".join(_character(one) for one in str(value)) + '"'


def _character(one: str) -> str:
    if " " <= one <= "~" and one not in '"\\':
        return one
    number = ord(one)
    if number < 0x10000:
        return "\\u%04x" % number
    number -= 0x10000
    return "\\u%04x\\u%04x" % (0xD800 + (number >> 10), 0xDC00 + (number & 0x3FF))


def opened(marker: str) -> "Emit":
    """Take standard output for results and lead everything else that is printed to standard error."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    private = os.dup(1)
    os.dup2(2, 1)

    def emit(value: "Value") -> None:
        data = ("\n" + marker + text_of(value) + "\n").encode("ascii")  # a hook may have left an unfinished line
        while data:
            data = data[os.write(private, data) :]

    return emit


def described(error: BaseException) -> str:
    try:
        return "%s: %s" % (type(error).__name__, error)
    except Exception:  # an exception whose __str__ fails
        return type(error).__name__


# importing


def attempt(name: str) -> "Value":
    """Import ``name`` as the person's program would, and say how it went."""
    value = dict.fromkeys(("version", "file", "error_type", "error"))  # type: Value
    value.update(module=name, ok=False, traceback="")
    if HERE_FIRST:
        sys.path.insert(0, "")
    began = time.perf_counter()
    try:
        __import__(name)
        module = sys.modules[name]
        value.update(ok=True)
    except BaseException as error:  # also SystemExit: a module that ends the program is a failure to import
        value.update(error_type=type(error).__name__, error=described(error).partition(": ")[2])
        module, failure = None, error
    value["seconds"] = round(time.perf_counter() - began, 3)
    if module is None:
        if HERE_FIRST and sys.path and sys.path[0] == "":
            del sys.path[0]
        try:
            import traceback

            below = failure.__traceback__ and failure.__traceback__.tb_next  # without our own frame
            value["traceback"] = "".join(traceback.format_exception(type(failure), failure, below))
        except Exception:  # traceback or what it needs is replaced by a file in the working folder
            value["traceback"] = described(failure)
        return value
    for key, attribute in (("version", "__version__"), ("file", "__file__")):
        try:
            found = getattr(module, attribute, None)
            value[key] = None if found is None else str(found)
        except Exception:
            pass
    return value


def gpus(emit: "Emit") -> "Value":
    """Ask TensorFlow for GPUs in the three ways people use; each answer is sent at once, since any may be the last."""
    imported = attempt("tensorflow")
    if not imported["ok"]:
        return {"not_imported": imported}
    tf = sys.modules["tensorflow"]  # type: Any
    value = dict.fromkeys(("built_with_cuda", "is_gpu_available", "error"))  # type: Value
    value.update(ok=False, physical=[])
    steps = (
        ("built_with_cuda", lambda: bool(tf.test.is_built_with_cuda())),
        ("physical", lambda: physical(tf)),
        ("is_gpu_available", lambda: bool(tf.test.is_gpu_available())),
    )  # type: Tuple[Tuple[str, Callable[[], Any]], ...]
    for key, look in steps:
        try:
            value[key] = look()
        except BaseException as error:
            value["error"] = value["error"] or described(error)
        emit({"partial": value})
    value["ok"] = value["error"] is None
    return value


def physical(tf: "Any") -> "List[str]":
    """Names of the GPUs that TensorFlow lists: ``/physical_device:GPU:0``; since 2.1, 1.14 and before in three ways."""
    config = getattr(tf, "config", None)
    lister = getattr(config, "list_physical_devices", None)
    lister = lister or getattr(getattr(config, "experimental", None), "list_physical_devices", None)
    if lister is not None:
        return [str(device.name) for device in lister("GPU")]
    device_lib = __import__("tensorflow.python.client.device_lib", fromlist=["list_local_devices"])
    count = sum(1 for device in device_lib.list_local_devices() if device.device_type == "GPU")
    return ["/physical_device:GPU:%d" % index for index in range(count)]


def operation(emit: "Emit") -> "Value":
    """Multiply two small matrices on the first GPU. Whole numbers below 2**24: the sum is exact, also in TF32."""
    imported = attempt("tensorflow")
    if not imported["ok"]:
        return {"not_imported": imported}
    tf = sys.modules["tensorflow"]  # type: Any
    size = 64
    left = [[float((i + j) % 5) for j in range(size)] for i in range(size)]
    right = [[float((3 * i + j) % 7) for j in range(size)] for i in range(size)]
    value = dict.fromkeys(("device", "result", "correct", "error"))  # type: Value
    value.update(ok=False, expected=sum(sum(row[k] for row in left) * sum(right[k]) for k in range(size)))
    emit({"partial": value})
    began = time.perf_counter()
    try:
        if not physical(tf):
            return {"no_gpu": True}
        if getattr(tf, "executing_eagerly", lambda: False)():
            with tf.device("/device:GPU:0"):
                product = tf.matmul(tf.constant(left), tf.constant(right))
                value.update(result=float(tf.reduce_sum(product).numpy()), device=str(product.device))
        else:
            value.update(result=float(_in_session(tf, left, right)), device="/device:GPU:0")
        value.update(ok=True, correct=abs(value["result"] - value["expected"]) <= 0.001 * value["expected"])
    except BaseException as error:
        value["error"] = described(error)
    value["seconds"] = round(time.perf_counter() - began, 3)
    return value


def _in_session(tf: "Any", left: "List[List[float]]", right: "List[List[float]]") -> "Any":
    v1 = getattr(getattr(tf, "compat", None), "v1", None) or tf
    with tf.Graph().as_default(), tf.device("/device:GPU:0" if hasattr(tf, "compat") else "/gpu:0"):
        total = tf.reduce_sum(tf.matmul(tf.constant(left), tf.constant(right)))
        config = v1.ConfigProto(allow_soft_placement=False)  # the device is then certain: on the GPU or not at all
        config.gpu_options.allow_growth = True
        with v1.Session(config=config) as session:
            return session.run(total)


def libraries(emit: "Emit", names: "List[str]") -> "Value":
    """Open each library by name as TensorFlow does; ``code`` is Windows' error number (126), 0 when it opens."""
    import ctypes

    folders = [] if WINDOWS else runpath()
    for name in names:
        emit({"opening": name})
        one = {"name": name, "code": None, "path": None, "error": None}  # type: Value
        one.update(_open_windows(ctypes, name) if WINDOWS else _open_posix(ctypes, name, folders))
        emit({"opened": one})
    return {}


def _open_windows(ctypes: "Any", name: str) -> "Value":
    kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel32.LoadLibraryExW.restype = ctypes.c_void_p
    kernel32.LoadLibraryExW.argtypes = [ctypes.c_wchar_p, ctypes.c_void_p, ctypes.c_uint32]
    handle = kernel32.LoadLibraryExW(name, None, 8)  # LOAD_WITH_ALTERED_SEARCH_PATH, the flag that TensorFlow passes
    if not handle:
        code = ctypes.get_last_error()
        return {"code": code, "error": ctypes.FormatError(code)}
    room = ctypes.create_unicode_buffer(32768)
    kernel32.GetModuleFileNameW(ctypes.c_void_p(handle), room, 32768)
    return {"code": 0, "path": room.value or None}


def _open_posix(ctypes: "Any", name: str, folders: "List[str]") -> "Value":
    error = None
    for candidate in [name] + [os.path.join(folder, name) for folder in folders if "/" not in name]:
        if candidate != name and not os.path.exists(candidate):
            continue
        before = _mapped()
        try:
            ctypes.CDLL(candidate)
        except OSError as failure:
            error = error if error is not None and candidate == name else str(failure)
            continue
        new = [path for path in _mapped() if path not in before]
        alike = [path for path in new or _mapped() if os.path.basename(path).startswith(name.partition(".so")[0])]
        return {"code": 0, "path": candidate if candidate != name else (alike + [None])[0]}
    return {"error": error}


def _mapped() -> "List[str]":
    """Files mapped into this process, from lines like ``7f1c-7f1d r-xp 00000000 08:01 42  /usr/lib/libcuda.so.1``."""
    try:
        with open("/proc/self/maps", "rb") as file:
            lines = [os.fsdecode(line).split(None, 5) for line in file]
        return [parts[5].rstrip("\n") for parts in lines if len(parts) > 5 and parts[5].startswith("/")]
    except OSError:
        return []


def runpath() -> "List[str]":
    """RUNPATH of libtensorflow_framework, which opens the GPU libraries: folders of pip's nvidia-* packages."""
    import glob
    import mmap

    found = []  # type: List[str]
    for folder in sys.path:
        for path in glob.glob(os.path.join(glob.escape(folder), "tensorflow*", "libtensorflow_framework.so*")):
            try:
                with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    at = data.find(b"$ORIGIN/")
                    raw = os.fsdecode(data[at : data.find(b"\0", at)]) if at >= 0 else ""
            except (OSError, ValueError):
                continue
            entries = [entry.replace("$ORIGIN", os.path.dirname(path)) for entry in raw.split(":")]
            found += [os.path.normpath(entry) for entry in entries if os.path.isdir(entry)]
    return list(dict.fromkeys(found))


# looking, importing nothing of the target


def prefix() -> str:
    """The environment's folder; without site (-S) Python does not look for pyvenv.cfg itself."""
    beside = os.path.dirname(os.path.abspath(sys.executable or ""))
    for folder in (beside, os.path.dirname(beside)):
        if os.path.isfile(os.path.join(folder, "pyvenv.cfg")):
            return folder
    return sys.prefix


def base_prefix() -> str:
    return str(getattr(sys, "base_prefix", sys.prefix))


def sees_base() -> bool:
    """Whether a virtual environment also takes its base's packages (``include-system-site-packages = true``)."""
    try:
        with open(os.path.join(prefix(), "pyvenv.cfg"), encoding="utf-8", errors="replace") as file:
            settings = [line.lower().replace(" ", "").strip() for line in file]
    except OSError:
        return False
    return "include-system-site-packages=true" in settings


def site_folders() -> "Tuple[List[str], Optional[str]]":
    import site

    try:
        folders = site.getsitepackages([prefix()] + ([base_prefix()] if sees_base() else []))
    except AttributeError:  # the site module of old virtualenv has no such function
        folders = [folder for folder in sys.path if os.path.basename(folder) in ("site-packages", "dist-packages")]
    try:
        user = site.getusersitepackages()  # type: Optional[str]
    except AttributeError:
        user = None
    usual = [folder for folder in folders if os.path.basename(folder) in ("site-packages", "dist-packages")]
    return [folder for folder in usual or folders if os.path.isdir(folder)], user


def distributions() -> "List[Value]":
    """Every ``*.dist-info`` and ``*.egg-info`` on the module path, in its order."""
    import re

    found, seen = [], set()
    for folder in sys.path + (site_folders()[0] if "site" not in EARLY else []):
        real = os.path.normcase(os.path.realpath(folder))
        if real in seen:
            continue
        seen.add(real)
        try:
            entries = sorted(os.listdir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.startswith("~") or not entry.endswith((".dist-info", ".egg-info", "EGG-INFO")):
                continue
            info = os.path.join(folder, entry)
            name, version = _name_version(info, entry)
            record = os.path.join(info, "RECORD")
            found.append({
                "key": re.sub(r"[-_.]+", "-", name).lower(), "name": name, "version": version, "folder": folder,
                "info": info,
                "record": record if os.path.isfile(record) else None,
                "installer": _installer(info),
            })  # fmt: skip
    return found


def _name_version(info: str, entry: str) -> "Tuple[str, str]":
    name, _, version = entry.rpartition(".")[0].partition("-")
    for path in (os.path.join(info, "METADATA"), os.path.join(info, "PKG-INFO"), info):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                for line in file:
                    key, _, rest = line.partition(":")
                    if key == "Name":
                        name = rest.strip()
                    elif key == "Version":
                        version = rest.strip()
                    elif not line.strip():
                        break
            break
        except OSError:
            continue
    return name, version.partition("-py")[0]


def _installer(info: str) -> "Optional[str]":
    try:
        with open(os.path.join(info, "INSTALLER"), encoding="utf-8", errors="replace") as file:
            return file.read(64).strip() or None
    except OSError:
        return None


def packages() -> "Value":
    result = {}  # type: Value
    for one in distributions():
        if one["key"] not in result:
            result[one["key"]] = {key: one[key] for key in ("name", "version", "folder", "record", "installer")}
            if one["key"] in TENSORFLOWS.split():
                result[one["key"]]["requires"] = requires(one["info"])
    return result


def requires(info: str) -> "List[str]":
    """What a distribution says that it needs, as its METADATA has it: ``protobuf (>=3.9.2)``, ``numpy<2.2``."""
    for path in (os.path.join(info, "METADATA"), os.path.join(info, "PKG-INFO")):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = file.read(1 << 20).partition("\n\n")[0].splitlines()
        except OSError:
            continue
        return [line.partition(":")[2].strip() for line in lines if line.startswith("Requires-Dist:")][:SHOWN]
    return []


def interpreter() -> "Value":
    import locale
    import struct

    flags = "-I -S" if "site" not in EARLY else "-I" if sys.flags.isolated else "plain"
    folder = prefix()
    base = base_prefix()
    conda = os.path.isdir(os.path.join(folder, "conda-meta"))
    venv = os.path.isfile(os.path.join(folder, "pyvenv.cfg")) or hasattr(sys, "real_prefix")
    active = os.environ.get("CONDA_PREFIX" if conda else "VIRTUAL_ENV", "")
    sites, user = site_folders()
    import site

    known = packages()
    return {
        "executable": sys.executable,
        "version": list(sys.version_info[:3]),
        "bits": struct.calcsize("P") * 8,
        "prefix": folder,
        "base_prefix": base,
        "venv": venv,
        "conda": conda,
        "store": any("windowsapps" in path.lower() for path in (sys.executable or "", base)),
        "activated": same(active, folder) if conda or venv else None,
        "implementation": {"cpython": "CPython", "pypy": "PyPy"}.get(sys.implementation.name, sys.implementation.name),
        "platform": sys.platform,
        "site_packages": sites,
        "user_site": user,
        "no_user_site": not getattr(site, "ENABLE_USER_SITE", False),
        "path": ([""] if HERE_FIRST else []) + sys.path,
        "fs_encoding": sys.getfilesystemencoding(),
        "preferred_encoding": locale.getpreferredencoding(False),
        "dll_directories": [],
        "ipykernel": known.get("ipykernel", {}).get("version"),
        "pip": known.get("pip", {}).get("version"),
        "start": flags,
    }


def same(one: str, other: str) -> bool:
    return bool(one) and os.path.normcase(os.path.realpath(one)) == os.path.normcase(os.path.realpath(other))


def hooks() -> "List[str]":
    """Folders that site hooks (conda's, a .pth line's) give to os.add_dll_directory. Needs a start with -S."""
    added = []  # type: List[str]
    original = getattr(os, "add_dll_directory", None)
    if original is None or "site" in EARLY:
        return added

    def watched(path: "Any") -> "Any":
        added.append(os.fspath(path))
        return original(path)

    vars(os)["add_dll_directory"] = watched
    import site

    site.main()
    return added


def located(module: str) -> "Tuple[Optional[str], List[str]]":
    """The file that importing a module would load, and the folders of a package; nothing is executed."""
    import importlib.util

    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None, []
    if spec is None:
        return None, []
    return spec.origin if spec.has_location else None, list(spec.submodule_search_locations or [])


def package(module: str) -> "Value":
    """TensorFlow as it lies on the disk, and the file of ``module``: nothing of it is executed."""
    found = [one for one in distributions() if one["key"] in TENSORFLOWS.split()]
    sys.path[:0] = [""] if HERE_FIRST else site_folders()[0] if "site" not in EARLY else []
    file, spaces = located("tensorflow")
    asked = file if module == "tensorflow" else located(module.partition(".")[0])[0]
    if HERE_FIRST:
        del sys.path[0]
    folders = [os.path.join(one["folder"], "tensorflow") for one in found] + spaces
    folder = ([path for path in folders if os.path.isfile(os.path.join(path, "__init__.py"))] + [None])[0]
    parts = [folder, os.path.join(os.path.dirname(folder), "tensorflow_core")] if folder else []
    native = [one for part in parts for one in natives(part)]
    return {
        "distributions": [{key: one[key] for key in ("name", "version", "folder")} for one in found],
        "version": version_of(parts) or (found[0]["version"] if found and folder else None),
        "folder": folder,
        "module_file": os.path.abspath(asked) if asked else None,
        "native": native,
        "main_native": main_of(native),
        "build_info": build_info(parts),
        "shadow": shadow(),
        "leftovers": leftovers(found, spaces, file),
    }


def leftovers(found: "List[Value]", spaces: "List[str]", file: "Optional[str]") -> bool:
    """Whether an uninstallation left something: ``~ensorflow``, a folder no distribution owns, one without a folder."""
    for folder in sys.path:
        try:
            if any(entry.startswith("~") and "ensorflow" in entry for entry in os.listdir(folder)):
                return True
        except OSError:
            continue
    owned = [os.path.join(one["folder"], "tensorflow") for one in found]
    if (spaces and file is None) or any(not os.path.isdir(path) for path in owned):
        return True
    inside = [path for path in spaces if os.path.basename(os.path.dirname(path)) in ("site-packages", "dist-packages")]
    return any(not any(same(path, other) for other in owned) for path in inside)


def natives(folder: str) -> "List[Value]":
    found = []
    for place, inner, files in os.walk(folder):
        inner[:] = [name for name in inner if name not in ("include", "__pycache__")]
        for name in sorted(files):
            if name.lower().endswith(NATIVE) or ".so." in name:
                path = os.path.join(place, name)
                try:
                    found.append({"path": path, "size": os.path.getsize(path), "machine": machine(path)})
                except OSError:
                    found.append({"path": path, "size": None, "machine": None})
    return found


def machine(path: str) -> "Optional[str]":
    """Processor of a PE file (the number behind ``PE\\0\\0``) or an ELF file (offset 18)."""
    with open(path, "rb") as file:
        start = file.read(4096)
    if start[:2] == b"MZ" and len(start) >= 64:
        at = int.from_bytes(start[60:64], "little")
        number = int.from_bytes(start[at + 4 : at + 6], "little") if start[at : at + 4] == b"PE\0\0" else 0
        return {0x8664: "x64", 0x14C: "x86", 0xAA64: "arm64"}.get(number)
    if start[:4] == b"\x7fELF":
        number = int.from_bytes(start[18:20], "little" if start[5:6] == b"\x01" else "big")
        return {62: "x64", 3: "x86", 183: "arm64"}.get(number)
    return None


def main_of(native: "List[Value]") -> "Optional[str]":
    """The library that the import loads first: _pywrap_tensorflow_internal.pyd (1.1 on) or its successors."""
    for stem in ("_pywrap_tensorflow_internal", "_pywrap_tensorflow_common", "_pywrap_tensorflow"):
        for one in native:
            folder, name = os.path.split(one["path"])
            if name.split(".")[0] in (stem, "lib" + stem) and os.path.basename(folder) == "python":
                return str(one["path"])
    return None


def version_of(folders: "List[str]") -> "Optional[str]":
    """The files' own version, from ``#define TF_MAJOR_VERSION 2``: of two installed packages the last one wins."""
    import re

    for folder in folders:
        for name in ("release_version.h", "version.h"):
            path = os.path.join(folder, "include", "tensorflow", "core", "public", name)
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    text = file.read()
            except OSError:
                continue
            found = dict(re.findall(r"#define TF_(MAJOR|MINOR|PATCH)_VERSION (\d+)", text))
            suffix = re.search(r'#define TF_VERSION_SUFFIX "([^"]*)"', text)
            found.setdefault("PATCH", dict(re.findall(r"#define TF_(PATCH)_VERSION (\S+)", text)).get("PATCH", ""))
            if len(found) == 3 and all(found.values()):
                return "%(MAJOR)s.%(MINOR)s.%(PATCH)s" % found + (suffix.group(1) if suffix else "")
    return None


def build_info(folders: "List[str]") -> "Optional[Value]":
    """The assignments of tensorflow/python/platform/build_info.py, read and not run."""
    import ast

    for folder in folders:
        path = os.path.join(folder, "python", "platform", "build_info.py")
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError):
            continue
        result = {}  # type: Value
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                source = node.value  # collections.OrderedDict([('cuda_version', '12.5.1'), ...]) since 2.3
                if isinstance(source, ast.Call) and source.args:
                    source = source.args[0]
                try:
                    value = ast.literal_eval(source)
                except (ValueError, SyntaxError):
                    continue
                if node.targets[0].id == "build_info":
                    result.update(value)
                else:
                    result[node.targets[0].id] = value
        # Up to 2.2 the names are cuda_version_number and cudnn_version_number.
        for name in ("cuda_version", "cudnn_version"):
            if name + "_number" in result:
                result[name] = result.pop(name + "_number")
        return result
    return None


def standard_names() -> "Set[str]":
    """The top-level names of the standard library; in an embeddable Python it is a zip file."""
    names = getattr(sys, "stdlib_module_names", None)  # from 3.10 on
    if names is not None:
        return set(names)
    library = os.path.dirname(os.__file__)
    if os.path.isdir(library):
        entries = os.listdir(library)
    else:
        import zipfile

        with zipfile.ZipFile(library) as archive:
            entries = archive.namelist()
    return {module_of(entry) for entry in entries} - {"site-packages", "__pycache__"}


def module_of(entry: str) -> str:
    """The module that an entry of the library's folder or zip holds."""
    return entry.split("/")[0].split(".")[0]


def shadow() -> "List[str]":
    """Files and folders in the working folder that are imported in place of what TensorFlow means."""
    here = os.getcwd()
    if not HERE_FIRST or any(same(here, folder) for folder in sys.path):
        return []
    harmful = (standard_names() | set(REACHED.split())) - set(UNREACHED.split()) - set(sys.builtin_module_names) - EARLY
    found = []
    for entry in sorted(os.listdir(here)):
        path = os.path.join(here, entry)
        stem, _, ending = entry.partition(".")
        is_module = ending.rpartition(".")[2] in ("py", "pyc", "pyd", "so") if ending else False
        if stem in harmful and (is_module or os.path.isfile(os.path.join(path, "__init__.py"))):
            found.append(path)
    return found


def record(budget: float) -> "Value":
    """Compare TensorFlow's files with its RECORD: existence and size of all, contents of what ``budget`` s allow."""
    known = distributions()
    found = [one for one in known if one["key"] in TENSORFLOWS.split()]
    if not found:
        raise Nothing("no-tensorflow")
    with_record = [one for one in found if one["record"]]
    if not with_record:
        raise Nothing("no-record")
    parts = [os.path.join(with_record[0]["folder"], name) for name in ("tensorflow", "tensorflow_core")]
    version = version_of(parts)
    chosen = ([one for one in with_record if one["version"] == version] or with_record)[0]
    value = compared(chosen, budget)
    value["others"] = []
    others = [one for name in NEEDED.split() for one in known if one["key"] == name and one["record"]]
    for one in others:
        state = compared(one, 0)
        value["others"].append({"distribution": state["distribution"], "missing": state["missing"] + state["empty"]})
    return value


def compared(one: "Value", budget: float) -> "Value":
    import base64
    import csv
    import hashlib

    until = time.perf_counter() + budget
    lists = {"missing": [], "empty": [], "altered": []}  # type: Dict[str, List[str]]
    checked, to_hash = 0, []
    with open(one["record"], encoding="utf-8", errors="surrogateescape", newline="") as file:
        rows = [row[:3] for row in csv.reader(file) if len(row) >= 3]
    for name, digest, size in settled(rows, one["folder"]):
        if name.startswith("..") or name.endswith(".pyc") or os.path.isabs(name) or ".dist-info/" in name:
            continue  # scripts, caches and the installer's own notes are not what TensorFlow imports
        path = long_path(os.path.join(one["folder"], *name.split("/")))
        checked += 1
        try:
            actual = os.stat(path).st_size
        except OSError:
            lists["missing"].append(name)
            continue
        if actual == 0 and size not in ("", "0"):
            lists["empty"].append(name)
        elif size and actual != int(size):
            lists["altered"].append(name)
        elif digest.startswith("sha256="):
            native = name.lower().endswith(NATIVE) or ".so." in name
            if name.endswith(".py") or (native and actual < 32 * 1024 * 1024):
                to_hash.append((not native, name, path, digest[7:]))
    for _, name, path, digest in sorted(to_hash):
        if time.perf_counter() > until:
            break
        try:
            with open(path, "rb") as binary:
                real = base64.urlsafe_b64encode(hashlib.sha256(binary.read()).digest())
        except OSError:
            real = b""  # there, but it cannot be read: the same to the loader
        if real.rstrip(b"=").decode("ascii") != digest.rstrip("="):
            lists["altered"].append(name)
    gone = [name for name in lists["missing"] + lists["empty"] if name.lower().endswith(NATIVE) or ".so." in name]
    value = {key: names[:SHOWN] for key, names in lists.items()}  # type: Value
    value.update(distribution="%(name)s %(version)s" % one, checked=checked, native_missing=gone[:SHOWN])
    return value


def settled(rows: "List[List[str]]", folder: str) -> "List[List[str]]":
    """The rows of RECORD by the names that the files really have.

    The RECORD inside tensorflow_gpu-2.3.1-cp38-cp38-win_amd64.whl lists ``tensorflow_gpu/x,sha256=...,size`` for
    files that are packed as ``tensorflow/x``; pip installs those and adds ``tensorflow/x,,``.
    """
    known = {row[0]: row for row in rows}
    for name, digest, size in rows:
        top = name.split("/")[0]
        twin = name.replace(top, "tensorflow")  # everywhere: tensorflow_gpu/python/_pywrap_tensorflow_gpu_internal.pyd
        renamed = top.startswith("tensorflow_") and twin in known
        if renamed and not os.path.exists(os.path.join(folder, top)):
            del known[name]
            if not known[twin][2]:
                known[twin] = [twin, digest, size]
    return list(known.values())


def long_path(path: str) -> str:
    """A form in which Windows takes more than 260 characters: TensorFlow's headers lie deep."""
    return "\\\\?\\" + os.path.abspath(path) if WINDOWS and len(path) > 240 else path


# start


def run_task(task: str, arguments: "List[str]", emit: "Emit") -> "Any":
    if task in ("import", "gpus", "operation"):
        import faulthandler

        # The stack of a hang; and an end to this process even when whoever started it has been killed.
        faulthandler.dump_traceback_later(max(0.2, float(arguments[-1]) - time.time()), exit=True, file=2)
        return attempt(arguments[0]) if task == "import" else gpus(emit) if task == "gpus" else operation(emit)
    if task == "libraries":
        return libraries(emit, arguments)
    if task == "record":
        return record(float(arguments[0]))
    if task == "package":
        return package(arguments[1])
    return {"interpreter": interpreter, "packages": packages, "hooks": hooks}[task]()


def main() -> None:
    emit = opened(sys.argv[2])
    emit({"begin": list(sys.version_info[:3])})
    if WINDOWS:
        import ctypes

        windows = ctypes  # type: Any
        windows.windll.kernel32.SetErrorMode(0x8003)  # a message box would wait for a click for ever
    try:
        emit({"value": run_task(sys.argv[1], sys.argv[3:], emit)})
    except Nothing as nothing:
        emit({"absent": str(nothing)})
    except Exception as error:
        emit({"error": described(error)})
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    os._exit(0)  # what TensorFlow does at exit (threads, drivers) is not what is asked


if __name__ == "__main__":
    main()
