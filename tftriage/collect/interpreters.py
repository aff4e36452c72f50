"""What the folders around a Python interpreter tell about it. Nothing is started."""

import json
import os
import re
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

from . import pe, places

TENSORFLOW = (
    "tensorflow-gpu",
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-intel",
    "tensorflow-directml",
    "tensorflow-rocm",
    "tf-nightly",
    "tf-nightly-gpu",
    "intel-tensorflow",
)
RELEASE_LEVEL_FINAL = 15


def prefix_of(python: str) -> str:
    """The environment's folder: above ``Scripts`` or ``bin``, or the interpreter's own folder."""
    folder = os.path.dirname(python)
    return os.path.dirname(folder) if os.path.basename(folder).lower() in ("scripts", "bin") else folder


def python_in(prefix: str, windows: bool = os.name == "nt") -> Optional[str]:
    """The interpreter of an environment's folder; None when there is none."""
    places_of_it = (
        ["python.exe", os.path.join("Scripts", "python.exe"), os.path.join("bin", "python.exe")]
        if windows
        else [os.path.join("bin", "python"), os.path.join("bin", "python3")]
    )
    for name in places_of_it:
        if os.path.isfile(os.path.join(prefix, name)):
            return os.path.join(prefix, name)
    return None


def settings_of(prefix: str) -> Dict[str, str]:
    """The entries of ``pyvenv.cfg``, keys in lower case; {} when this is no virtual environment."""
    found = {}
    for line in places.text_of(os.path.join(prefix, "pyvenv.cfg")).splitlines():
        key, equals, value = line.partition("=")
        if equals:
            found[key.strip().lower()] = value.strip()
    return found


def application_folder(python: str) -> str:
    """The folder of the process that really runs, which the Windows loader searches first.

    ``Scripts\\python.exe`` of a venv (Python 3.7.2 and newer) only starts the base interpreter, so that
    folder is not searched; an older virtualenv copied the interpreter with its ``python37.dll``, and then it
    is.
    """
    folder = os.path.dirname(python)
    if any(re.match(r"^python\d{2,3}\.dll$", name, re.I) for name in places.names_in(folder)):
        return folder
    home = settings_of(prefix_of(python)).get("home")
    return home if home and os.path.isdir(home) else folder


def version_of(python: str) -> Optional[str]:
    """The interpreter's version, as exactly as its folders tell: "3.7.16", "3.7" or None."""
    prefix = prefix_of(python)
    settings = settings_of(prefix)
    written = settings.get("version_info") or settings.get("version")
    match = re.match(r"\d+\.\d+(\.\d+)?", written or "")
    if match:
        return match.group(0)
    exact = _version_from_conda(prefix) or _version_from_dll(os.path.dirname(python))
    if exact:
        return exact
    real = os.path.realpath(python)
    short = _version_from_name(os.path.basename(real)) or _version_from_library(prefix_of(real))
    if short:
        header = _version_from_header(prefix_of(real), short)
        return header if header else short
    return None


def _version_from_conda(prefix: str) -> Optional[str]:
    """conda-meta/python-3.7.16-h6244533_0.json -> "3.7.16"."""
    for name in places.names_in(os.path.join(prefix, "conda-meta")):
        match = re.match(r"^python-(\d+\.\d+\.\d+)-[^-]*\.json$", name)
        if match:
            return match.group(1)
    return None


def _version_from_dll(folder: str) -> Optional[str]:
    """The file version of ``python37.dll``: 3.7.9150.1013 is 3.7.9 (third part: micro * 1000 + level * 10)."""
    for name in places.names_in(folder):
        match = re.match(r"^python(\d)(\d+)\.dll$", name, re.I)
        if match:
            version = pe.read(os.path.join(folder, name))["file_version"]
            parts = [int(part) for part in version.split(".")] if version else []
            if parts[:2] == [int(match.group(1)), int(match.group(2))] and parts[2] >= 100:
                return "{}.{}.{}".format(parts[0], parts[1], parts[2] // 1000)
            return "{}.{}".format(match.group(1), match.group(2))
    return None


def _version_from_name(name: str) -> Optional[str]:
    match = re.match(r"^python(\d\.\d+)", name)
    return match.group(1) if match else None


def _version_from_library(prefix: str) -> Optional[str]:
    found = sorted(
        name[6:] for name in places.names_in(os.path.join(prefix, "lib")) if re.match(r"^python\d\.\d+$", name)
    )
    return found[0] if len(found) == 1 else None


def _version_from_header(prefix: str, short: str) -> Optional[str]:
    """``#define PY_VERSION "3.7.16"`` of ``include/python3.7m/patchlevel.h``."""
    for suffix in ("", "m"):
        text = places.text_of(os.path.join(prefix, "include", "python" + short + suffix, "patchlevel.h"))
        match = re.search(r'#define PY_VERSION\s+"(\d+\.\d+\.\d+)', text)
        if match:
            return match.group(1)
    return None


def site_packages(python: str, environment: Optional[Mapping[str, str]] = None) -> List[str]:
    """The folders into which packages of this interpreter are installed, the user's own site included."""
    prefix = prefix_of(python)
    found = [os.path.join(prefix, "Lib", "site-packages")]
    for name in places.names_in(os.path.join(prefix, "lib")):
        if re.match(r"^python\d", name):
            found += [os.path.join(prefix, "lib", name, part) for part in ("site-packages", "dist-packages")]
    settings = settings_of(prefix)
    if not settings or settings.get("include-system-site-packages", "").lower() == "true":
        found += _user_site(version_of(python), environment if environment is not None else os.environ)
    return places.unique(found)


def _user_site(version: Optional[str], environment: Mapping[str, str]) -> Iterator[str]:
    if version is None:
        return
    major, minor = version.split(".")[:2]
    if environment.get("APPDATA"):
        yield os.path.join(environment["APPDATA"], "Python", "Python{}{}".format(major, minor), "site-packages")
    yield os.path.join(os.path.expanduser("~"), ".local", "lib", "python{}.{}".format(major, minor), "site-packages")


def normalised(name: str) -> str:
    """A package name as package indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions(folders: List[str]) -> List[Tuple[str, str, str]]:
    """(normalised name, version, folder) of every ``*.dist-info`` and ``*.egg-info``, by their names alone."""
    found = []
    for folder in folders:
        for entry in places.names_in(folder):
            match = re.match(r"^(.+?)-(\d[^-]*)(?:-py[\d.]+)?\.(?:dist|egg)-info$", entry)
            if match:
                found.append((normalised(match.group(1)), match.group(2), folder))
    return sorted(found)


def version_of_package(python: str, package: str) -> Optional[str]:
    """The version of an installed package; None when it is not there."""
    for name, version, _ in distributions(site_packages(python)):
        if name == package:
            return version
    return None


def tensorflow_of(python: str) -> Optional[str]:
    """ "tensorflow-gpu 2.1.0"; several are joined by ", "; None when there is none."""
    found = [(name, version) for name, version, _ in distributions(site_packages(python)) if name in TENSORFLOW]
    if any(name == "tensorflow" for name, _ in found):
        found = [pair for pair in found if pair[0] != "tensorflow-intel"]  # on Windows the one is made of the other
    return ", ".join("{} {}".format(*pair) for pair in found) or None


def native_modules(folders: List[str], package: str = "tensorflow") -> List[str]:
    """TensorFlow's main native libraries in the given site-packages: where its import tables begin."""
    found = []
    for folder in folders:
        for top in (package, package + "_core"):
            for below in ("python", ""):
                base = os.path.join(folder, top, below)
                found += [
                    os.path.join(base, name)
                    for name in places.names_in(base)
                    if re.match(
                        r"^(_pywrap_tensorflow_internal\.(pyd|so)|libtensorflow_framework\.so\.\d"
                        r"|_pywrap_tensorflow_common\.dll|libtensorflow_cc\.so\.\d)$",
                        name,
                    )
                ]
    return found


def conda_history(prefix: str) -> bool:
    """Whether a folder is a conda environment."""
    return os.path.isdir(os.path.join(prefix, "conda-meta"))


def is_store(python: str) -> bool:
    """Whether an interpreter comes from the Microsoft Store: its processes do not search PATH for DLLs."""
    return "WindowsApps" in python or "PythonSoftwareFoundation" in python


def kernel_json(folder: str) -> Tuple[Dict[str, object], Optional[str]]:
    """The content of ``kernel.json`` in a folder and what is wrong with it (None: nothing)."""
    path = os.path.join(folder, "kernel.json")
    try:
        with open(path, encoding="utf-8") as handle:
            found = json.load(handle)
    except OSError as problem:
        return {}, "{}: {}".format(type(problem).__name__, problem.strerror)
    except ValueError as problem:  # not JSON, or not UTF-8
        return {}, "{}: {}".format(type(problem).__name__, problem)
    return (found, None) if isinstance(found, dict) else ({}, "not a JSON object")
