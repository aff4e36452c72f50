"""Where CUDA, cuDNN, conda and Python are usually put. Only folders are listed; nothing is judged."""

import ctypes
import fnmatch
import ntpath
import os
import re
import sys
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional

from . import winreg_reader
from .environment import MACHINE_KEY, USER_KEY, expand

# The libraries by which TensorFlow stands or falls: driver, CUDA, cuDNN, Visual C++ runtime.
WINDOWS_LIBRARY = re.compile(
    r"^(nvcuda|nvml|(cudart|cublas|cublaslt|cufft|cufftw|curand|cusolver|cusolvermg|cusparse|nvrtc|nvjitlink|cupti|cudnn)"
    r"[a-z_]*(32|64)[0-9a-z_.]*|zlibwapi|tensorrt.*|nvinfer.*|msvcp\d+.*|vcruntime\d+.*|concrt\d+.*|vcomp\d+.*|msvcr\d+.*"
    r"|ucrtbase|python3\d*)\.dll$",
    re.I,
)
LINUX_LIBRARY = re.compile(
    r"^lib(cuda|nvidia-ml|nvidia-ptxjitcompiler|cudart|cublas|cublasLt|cufft|curand|cusolver|cusolverMg|cusparse|cupti|nvrtc"
    r"|nvJitLink|nvinfer|nccl|cudnn[a-z_]*)\.so(\.[0-9.]+)?$"
)
CUDA_LIBRARY = re.compile(
    r"^(lib)?(cudart|cublas|cublaslt|cufft|curand|cusolver|cusparse|cudnn)[a-z_]*(64_[0-9_]+\.dll|\.so(\.[0-9.]+)?)$",
    re.I,
)
CONDA_NAMES = (
    "anaconda",
    "anaconda3",
    "anaconda2",
    "miniconda",
    "miniconda3",
    "miniforge3",
    "mambaforge",
    "conda",
)
MAX_ENTRIES = 50000  # names of one folder that are read
MAX_FOLDERS = 400  # of one kind


def is_library(name: str) -> bool:
    """Whether a file name is one of the libraries that matter, on either system."""
    return bool(WINDOWS_LIBRARY.match(name) or LINUX_LIBRARY.match(name))


def names_in(folder: str) -> List[str]:
    """The names in a folder; none when it is not there, is no folder or may not be read."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found.append(entry.name)
                if len(found) >= MAX_ENTRIES:
                    break
    except (OSError, ValueError):  # ValueError: a zero character in a PATH entry
        pass
    return found


def children(folder: str, *patterns: str) -> List[str]:
    """The folders in ``folder`` whose name matches a pattern (``*`` and ``?``, any case), by name."""
    wanted = [pattern.lower() for pattern in patterns or ("*",)]
    found = [
        os.path.join(folder, name)
        for name in names_in(folder)
        if any(fnmatch.fnmatchcase(name.lower(), pattern) for pattern in wanted)
    ]
    return sorted(path for path in found if os.path.isdir(path))


def unique(paths: Iterable[str]) -> List[str]:
    """Existing folders, each once, in order; two spellings of one folder count as one."""
    seen, found = set(), []
    for path in paths:
        key = os.path.normcase(os.path.normpath(path)) if path else ""
        if key and key not in seen and os.path.isdir(path):
            seen.add(key)
            found.append(os.path.normpath(path))
    return found


def drives() -> List[str]:
    """The roots of the fixed drives (``C:\\``, or ``/``). Network and optical drives can block for minutes."""
    if sys.platform != "win32":
        return ["/"]
    kernel = getattr(ctypes, "WinDLL")("kernel32")
    kernel.GetDriveTypeW.argtypes = [ctypes.c_wchar_p]
    mask, fixed = kernel.GetLogicalDrives(), 3
    letters = [chr(65 + number) + ":\\" for number in range(26) if mask >> number & 1]
    # Z: is the whole file system of the host under Wine; a fixed disk there as well, and harmless.
    return [letter for letter in letters if kernel.GetDriveTypeW(letter) == fixed]


def stored_variables(values: winreg_reader.Values = winreg_reader.values) -> Dict[str, str]:
    """Machine and user variables of the registry, expanded: what is set, but perhaps not in this process."""
    found: Dict[str, str] = {}
    for hive, key in (("HKLM", MACHINE_KEY), ("HKCU", USER_KEY)):
        for name, (_, value) in values(hive, key).items():
            if name.upper() != "PATH":
                found[name] = expand(str(value), os.environ)
    return found


def toolkit_folders(
    environment: Mapping[str, str],
    roots: Optional[List[str]] = None,
    extra: Iterable[str] = (),
    windows: bool = os.name == "nt",
) -> List[str]:
    """Folders that may hold a CUDA toolkit or an unpacked cuDNN: those above ``bin`` (Windows) or ``lib64``."""
    found = [
        value
        for name, value in sorted(environment.items())
        if re.match(r"^(CUDA|CUDNN)_?(PATH|HOME|ROOT|DIR)", name, re.I) and "," not in value
    ]
    for folder in extra:
        found += [folder, *children(folder, "v*", "cuda*")]
    for root in drives() if roots is None else roots:
        found += list(_windows_toolkits(root) if windows else _linux_toolkits(root))
    return unique(found)[:MAX_FOLDERS]


def _windows_toolkits(root: str) -> Iterator[str]:
    for base in (root, os.path.join(root, "Program Files"), os.path.join(root, "Program Files (x86)")):
        yield from children(os.path.join(base, "NVIDIA GPU Computing Toolkit", "CUDA"), "v*", "cuda*")
        yield from children(os.path.join(base, "NVIDIA", "CUDNN"), "v*")
    for folder in children(root, "cuda*", "cudnn*") + children(os.path.join(root, "tools"), "cuda*", "cudnn*"):
        yield folder
        yield from children(folder, "v*", "cuda*", "[0-9]*")


def _linux_toolkits(root: str) -> Iterator[str]:
    for base in ("usr/local", "opt", "opt/cuda", "opt/nvidia"):
        yield from children(os.path.join(root, base), "cuda*", "v*")


def version_siblings(search: Iterable[str]) -> List[str]:
    """Other versions beside toolkits on PATH: ``D:\\CUDA\\v10.1`` when ``D:\\CUDA\\v10.0\\bin`` is on it."""
    found: List[str] = []
    for folder in search:
        for toolkit in (folder, os.path.dirname(folder)):
            if re.match(r"^(v|cuda-?v?)\d", os.path.basename(toolkit), re.I):
                found += children(os.path.dirname(toolkit), "v[0-9]*", "cuda*")
    return unique(found)


def library_folders(toolkit: str) -> List[str]:
    """The folders of a toolkit in which its libraries can lie; since CUDA 13 that is ``bin\\x64``."""
    below = (
        "bin",
        os.path.join("bin", "x64"),
        "lib64",
        "lib",
        os.path.join("targets", "x86_64-linux", "lib"),
        os.path.join("cuda", "bin"),
        os.path.join("Library", "bin"),
        "",
    )
    return unique(os.path.join(toolkit, part) for part in below)


def conda_roots(environment: Mapping[str, str], home: str, roots: Optional[List[str]] = None) -> List[str]:
    """Folders with a conda installation: named by the environment, on PATH, or in the usual places."""
    found: List[str] = []
    for name in ("CONDA_EXE", "CONDA_PYTHON_EXE", "_CONDA_EXE", "CONDA_ROOT", "_CONDA_ROOT"):
        value = environment.get(name, "")
        found += [value, os.path.dirname(value), os.path.dirname(os.path.dirname(value))]
    prefix = environment.get("CONDA_PREFIX", "")
    found += [prefix, os.path.dirname(os.path.dirname(prefix))]
    for entry in environment.get("PATH", "").split(os.pathsep):
        found += [entry, os.path.dirname(entry), os.path.dirname(os.path.dirname(entry))]
    bases = [
        home,
        environment.get("LOCALAPPDATA", ""),
        os.path.join(environment.get("LOCALAPPDATA", ""), "Continuum"),
        environment.get("PROGRAMDATA", ""),
    ]
    for root in drives() if roots is None else roots:
        bases += [
            root,
            *(os.path.join(root, part) for part in ("ProgramData", "Program Files", "opt", "tools", "software")),
        ]
    for base in bases:
        if base:
            found += [os.path.join(base, name) for name in names_in(base) if name.lower() in CONDA_NAMES]
    return [folder for folder in unique(found) if os.path.isdir(os.path.join(folder, "conda-meta"))]


def conda_environments(environment: Mapping[str, str], home: str, roots: Optional[List[str]] = None) -> List[str]:
    """Prefixes of conda environments: in ``environments.txt``, in ``envs`` beside each conda, in ``.condarc``."""
    found: List[str] = []
    for line in text_of(os.path.join(home, ".conda", "environments.txt")).splitlines():
        found.append(line.strip())
    folders = [os.path.join(home, ".conda", "envs")]
    for root in conda_roots(environment, home, roots):
        found.append(root)
        folders += [os.path.join(root, "envs"), *_listed_in(os.path.join(root, ".condarc"))]
    folders += _listed_in(os.path.join(home, ".condarc"))
    folders += [part for part in environment.get("CONDA_ENVS_PATH", "").split(os.pathsep) if part]
    for folder in unique(folders):
        found += children(folder)
    return [prefix for prefix in unique(found)[:MAX_FOLDERS] if os.path.isdir(os.path.join(prefix, "conda-meta"))]


def _listed_in(condarc: str) -> List[str]:
    """The folders under ``envs_dirs:`` of a .condarc (YAML; only its plain list form is read)."""
    match = re.search(r"^envs_(?:dirs|path):\s*\n((?:\s*-\s*.*\n?)+)", text_of(condarc), re.M)
    lines = match.group(1).splitlines() if match else []
    return [os.path.expanduser(line.strip().lstrip("-").strip().strip("'\"")) for line in lines]


def conda_package_folders(environment: Mapping[str, str], home: str, roots: Optional[List[str]] = None) -> List[str]:
    """Library folders of CUDA packages in conda's caches: unpacked, but perhaps in no environment."""
    caches = [os.path.join(root, "pkgs") for root in conda_roots(environment, home, roots)]
    caches += [os.path.join(home, ".conda", "pkgs"), environment.get("CONDA_PKGS_DIRS", "")]
    found: List[str] = []
    for cache in unique(caches):
        for package in children(
            cache, "cudatoolkit*", "cudnn*", "cuda-*", "libcu*", "vc-*", "vs20*", "vc14*", "zlib-*"
        ):
            found += [os.path.join(package, "Library", "bin"), os.path.join(package, "lib")]
    return unique(found)[:MAX_FOLDERS]


def text_of(path: str, limit: int = 1 << 20) -> str:
    """The text of a small file, or "" when it cannot be read. UTF-8; what is not is kept as escapes."""
    try:
        with open(path, encoding="utf-8", errors="backslashreplace") as handle:
            return handle.read(limit).lstrip("\ufeff")
    except (OSError, ValueError):
        return ""


def windows_folders(environment: Mapping[str, str]) -> Dict[str, str]:
    """``system32`` and ``windows``. Only asked on Windows."""
    windows = environment.get("SYSTEMROOT") or environment.get("WINDIR") or "C:\\Windows"
    return {"system32": ntpath.join(windows, "System32"), "windows": windows}


def known_dlls(values: winreg_reader.Values = winreg_reader.values) -> List[str]:
    """The DLLs that Windows always takes from System32, lower case."""
    stored = values("HKLM", r"SYSTEM\CurrentControlSet\Control\Session Manager\KnownDLLs")
    return sorted(
        {str(value).lower() for name, (_, value) in stored.items() if not name.lower().startswith("dlldirectory")}
    )


def json_of(path: str) -> Any:
    """The JSON value of a file; None when it is not there or is not JSON."""
    import json

    try:
        return json.loads(text_of(path))
    except ValueError:
        return None
