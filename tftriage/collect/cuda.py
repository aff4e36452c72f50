"""CUDA toolkits and cuDNN copies that lie in the usual places, whether or not anything finds them."""

import os
import re
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

from . import elf, pe, places
from .environment import context_environment, path_folders
from .registry import Absent, collector


def version_of_folder(folder: str, libraries: List[str]) -> Optional[str]:
    """The toolkit's version: from ``version.json``, ``version.txt``, the folder's name, the runtime's name.

    Samples: version.txt ``CUDA Version 10.1.243``; version.json ``{"cuda": {"name": "CUDA SDK", "version":
    "11.8.20220929"}}``.
    """
    written = places.json_of(os.path.join(folder, "version.json"))
    if isinstance(written, dict) and isinstance(written.get("cuda"), dict) and written["cuda"].get("version"):
        return _short(str(written["cuda"]["version"]))
    match = re.search(r"CUDA Version (\d+\.\d+)", places.text_of(os.path.join(folder, "version.txt")))
    match = match or re.match(r"^(?:v|cuda[-_]?v?)(\d+\.\d+)$", os.path.basename(folder), re.I)
    return match.group(1) if match else version_of_runtime(libraries)


def _short(version: str) -> str:
    return ".".join(version.split(".")[:2])


def version_of_runtime(libraries: List[str]) -> Optional[str]:
    """cudart64_101.dll -> "10.1", libcudart.so.11.0 -> "11.0". cudart64_110.dll is all of 11.x: "11.x"."""
    for name in sorted(libraries, reverse=True):
        match = re.match(r"^cudart64_(\d+)\.dll$", name, re.I)
        if match:
            digits = match.group(1)
            if digits == "110":
                return "11.x"
            return digits if digits in ("12", "13") else "{}.{}".format(digits[:-1], digits[-1])
        match = re.match(r"^libcudart\.so\.(\d+(?:\.\d+)?)", name)
        if match:
            return "11.x" if match.group(1) == "11.0" else match.group(1)
    return None


def cudnn_of(folder: str, library_folder: str, libraries: List[str]) -> Optional[str]:
    """cuDNN's version in a toolkit: from the library itself, else from its header file."""
    for name in sorted(libraries):
        if re.match(r"^cudnn64_\d+\.dll$", name, re.I):
            found = pe.read(os.path.join(library_folder, name))["cudnn_version"]
        elif re.match(r"^libcudnn\.so\.\d", name):
            found = elf.version_in_name(os.path.realpath(os.path.join(library_folder, name)))
        else:
            continue
        if found:
            return str(found)
    if not any("cudnn" in name.lower() for name in libraries):
        return None  # a header without its library is no cuDNN
    for header in ("cudnn_version.h", "cudnn.h"):
        text = places.text_of(os.path.join(folder, "include", header))
        parts = [re.search(r"#define CUDNN_{}\s+(\d+)".format(part), text) for part in ("MAJOR", "MINOR", "PATCHLEVEL")]
        if all(parts):
            return ".".join(part.group(1) for part in parts if part)
    return None


def toolkit(folder: str, searched: Set[str]) -> Optional[Dict[str, Any]]:
    """One entry of ``cuda.toolkits``; None when a folder holds no CUDA library. ``searched``: normalised folders."""
    for library_folder in places.library_folders(folder):
        libraries = sorted(name for name in places.names_in(library_folder) if places.CUDA_LIBRARY.match(name))
        if libraries:
            return {
                "version": version_of_folder(folder, libraries),
                "folder": folder,
                "bin": library_folder,
                "cudnn": cudnn_of(folder, library_folder, libraries),
                "libraries": libraries,
                "on_path": os.path.normcase(os.path.normpath(library_folder)) in searched,
            }
    return None


def search_path(environment: Mapping[str, str]) -> List[str]:
    """The folders of PATH on Windows, of LD_LIBRARY_PATH elsewhere."""
    if os.name == "nt":
        return path_folders(environment)
    return [part for part in environment.get("LD_LIBRARY_PATH", "").split(os.pathsep) if part]


def conda_prefixes(args: Dict[str, Any], environment: Mapping[str, str]) -> List[str]:
    """The conda environments in which a ``cudatoolkit`` package may lie, the target's first."""
    python = str(args.get("python") or "")
    own = [os.path.dirname(python), os.path.dirname(os.path.dirname(python))] if python else []
    return [*places.unique(own), *places.conda_environments(environment, os.path.expanduser("~"))]


@collector("cuda.toolkits", 30)
def toolkits(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Every folder with CUDA libraries. ``bin`` is the folder that holds them (``lib64`` on Linux).

    Sample: ``{"version": "10.1", "folder": "C:\\\\...\\\\CUDA\\\\v10.1", "bin": "...\\\\bin", "cudnn":
    "7.6.5", "libraries": ["cublas64_10.dll", ...], "on_path": false}``.
    """
    environment = context_environment(args)
    search = search_path(environment)
    searched = {os.path.normcase(os.path.normpath(folder)) for folder in search}
    named = {**places.stored_variables(), **environment}
    folders = places.toolkit_folders(named, extra=[str(folder) for folder in args.get("search") or []])
    folders += conda_prefixes(args, environment)
    folders += [os.path.dirname(folder) for folder in search] + search + places.version_siblings(search)
    if os.name != "nt":
        folders += ["/usr/lib/x86_64-linux-gnu"]
    found: List[Dict[str, Any]] = []
    seen: Set[str] = set()
    for folder in places.unique(folders):
        entry = toolkit(folder, searched)
        if entry and os.path.normcase(entry["bin"]) not in seen:
            seen.add(os.path.normcase(entry["bin"]))
            found.append(entry)
    if not found:
        raise Absent("no CUDA library in the usual folders")
    return found, "folders"
