"""Every Python on this machine, found in folders and the registry. No interpreter is started."""

import os
import re
import sys
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from . import interpreters, jupyter, places, winreg_reader
from .environment import context_environment, path_folders
from .registry import collector

EXECUTABLE = re.compile(r"^python(\d(\.\d+)?)?(\.exe)?$", re.I)
VENV_FOLDERS = (
    ".virtualenvs",
    "virtualenvs",
    "venvs",
    "envs",
    "Envs",
    "venv",
    ".venvs",
    ".local/share/virtualenvs",
    ".cache/pypoetry/virtualenvs",
    "AppData/Local/pypoetry/Cache/virtualenvs",
    "PycharmProjects",
    "projects",
    "Documents",
    "Desktop",
)
MAX_FOUND = 200
Candidate = Tuple[str, str]  # (path of the interpreter, how it was found)


def from_folders(prefixes: List[str], found_by: str) -> Iterator[Candidate]:
    """The interpreters of environment folders."""
    for prefix in prefixes:
        python = interpreters.python_in(prefix)
        if python:
            yield python, found_by


def from_path(environment: Mapping[str, str]) -> Iterator[Candidate]:
    """The interpreters on PATH, without the Store's placeholder (an empty ``python.exe`` in WindowsApps)."""
    for folder in path_folders(environment):
        for name in sorted(places.names_in(folder)):
            path = os.path.join(folder, name)
            if EXECUTABLE.match(name) and not _placeholder(path) and os.access(path, os.X_OK) and not _script(path):
                yield path, "path"


def _script(path: str) -> bool:
    """Whether this is no interpreter but a script that chooses one (pyenv's shims)."""
    try:
        with open(path, "rb") as handle:
            return handle.read(2) == b"#!"
    except OSError:
        return False


def _placeholder(path: str) -> bool:
    try:
        return os.path.getsize(path) == 0 and not os.path.isdir(os.path.join(os.path.dirname(path), "Lib"))
    except OSError:  # the placeholder is a reparse point that cannot even be asked
        return True


def virtual_environments(environment: Mapping[str, str], home: str, cwd: str) -> Iterator[str]:
    """Folders with a ``pyvenv.cfg`` near the working folder, the home folder and where tools put them."""
    near = [cwd, os.path.dirname(cwd), os.path.dirname(os.path.dirname(cwd)), home]
    named = [
        environment.get("WORKON_HOME", ""),
        *(os.path.join(home, *part.split("/")) for part in VENV_FOLDERS),
    ]
    folders = [environment.get("VIRTUAL_ENV", "")]
    for base in places.unique(near + named):
        folders.append(base)
        for child in places.children(base):
            folders.append(child)
            if base not in near[1:]:  # one level deeper, but not in all of home
                folders += [os.path.join(child, name) for name in ("venv", ".venv", "env")]
    for folder in places.unique(folders):
        if os.path.isfile(os.path.join(folder, "pyvenv.cfg")):
            yield folder


def from_registry(
    keys: winreg_reader.Keys = winreg_reader.keys, values: winreg_reader.Values = winreg_reader.values
) -> Iterator[Candidate]:
    """PEP 514: ``Software\\Python\\<company>\\<tag>\\InstallPath`` of the user and of the machine."""
    for hive, top in (
        ("HKCU", r"Software\Python"),
        ("HKLM", r"Software\Python"),
        ("HKLM", r"Software\WOW6432Node\Python"),
    ):
        for company in keys(hive, top):
            for tag in keys(hive, top + "\\" + company) if company != "PyLauncher" else []:
                stored = values(hive, "\\".join((top, company, tag, "InstallPath")))
                folder = str(stored.get("", ("", ""))[1])
                python = str(stored.get("ExecutablePath", ("", ""))[1]) or os.path.join(folder, "python.exe")
                if os.path.isfile(python):
                    yield python, "registry"


def pyenv_prefixes(environment: Mapping[str, str], home: str) -> List[str]:
    """The versions of pyenv and pyenv-win."""
    roots = [
        environment.get("PYENV_ROOT", ""),
        environment.get("PYENV", ""),
        os.path.join(home, ".pyenv"),
        os.path.join(home, ".pyenv", "pyenv-win"),
    ]
    return [prefix for root in roots if root for prefix in places.children(os.path.join(root, "versions"))]


def store_pythons(environment: Mapping[str, str]) -> Iterator[Candidate]:
    """Microsoft Store Pythons, by the user's folders for their programs."""
    base = os.path.join(environment.get("LOCALAPPDATA", ""), "Microsoft", "WindowsApps")
    for folder in places.children(base, "PythonSoftwareFoundation*") if environment.get("LOCALAPPDATA") else []:
        yield os.path.join(folder, "python.exe"), "store"


def known_folders(environment: Mapping[str, str]) -> List[str]:
    """Where the python.org installer and Linux distributions put interpreters."""
    if os.name != "nt":
        return ["/usr", "/usr/local"]
    found: List[str] = []
    for base in (
        os.path.join(environment.get("LOCALAPPDATA", ""), "Programs", "Python"),
        environment.get("PROGRAMFILES", ""),
        environment.get("PROGRAMFILES(X86)", ""),
        *places.drives(),
    ):
        found += places.children(base, "python3*") if base else []
    return found


def kind_of(python: str, found_by: List[str]) -> str:
    """venv, conda, store, pyenv, python.org, system, or given (only named in the request)."""
    prefix = interpreters.prefix_of(python)
    if interpreters.settings_of(prefix):
        return "venv"
    if interpreters.conda_history(prefix):
        return "conda"
    if interpreters.is_store(python):
        return "store"
    if "pyenv" in found_by or re.search(r"[\\/]\.pyenv[\\/]", python):
        return "pyenv"
    if "registry" in found_by or re.search(r"Programs[\\/]Python[\\/]|[\\/]Python3\d+[\\/]", python):
        return "python.org"
    if re.match(r"^/(usr|bin)/", python) or "path" in found_by:
        return "system"
    return "given"


def name_of(python: str, kind: str) -> str:
    """What people call it: the environment's folder; ``base`` for conda itself."""
    prefix = interpreters.prefix_of(python)
    if kind == "conda" and os.path.isdir(os.path.join(prefix, "condabin")):
        return "base"
    name = os.path.basename(prefix)
    if kind == "venv" and name in ("venv", ".venv", "env"):
        return os.path.join(os.path.basename(os.path.dirname(prefix)), name)
    return os.path.basename(python) if kind == "system" else name


def gather(candidates: Iterator[Candidate]) -> List[Dict[str, Any]]:
    """The value of ``pythons.list``: one entry an environment, with all the ways in which it was found."""
    ways: Dict[str, List[str]] = {}
    spelled: Dict[str, str] = {}
    for python, found_by in candidates:
        key = _identity(python)
        if key not in spelled:
            if len(spelled) >= MAX_FOUND:
                break
            spelled[key] = python
        if found_by not in ways.setdefault(key, []):
            ways[key].append(found_by)
    found = []
    for key, python in spelled.items():
        kind = kind_of(python, ways[key])
        found.append(
            {
                "path": python,
                "version": interpreters.version_of(python),
                "prefix": interpreters.prefix_of(python),
                "kind": kind,
                "name": name_of(python, kind),
                "tensorflow": interpreters.tensorflow_of(python),
                "found_by": ways[key],
            }
        )
    return found


def _identity(python: str) -> str:
    """``bin/python`` and ``bin/python3`` of one folder are one; the link of a venv to its base is not the base."""
    folder = os.path.realpath(os.path.dirname(python))
    return os.path.normcase(os.path.join(folder, os.path.basename(os.path.realpath(python))))


def all_candidates(args: Dict[str, Any], environment: Mapping[str, str], home: str, cwd: str) -> Iterator[Candidate]:
    """Every way of finding an interpreter, the most telling first. A way that fails hides no other."""

    def given() -> Iterator[Candidate]:
        if args.get("python"):
            yield str(args["python"]), "given"

    def kernels() -> Iterator[Candidate]:
        server = jupyter.find_server(args, environment)[0]
        own = [interpreters.prefix_of(str(python)) for python in (server, args.get("python")) if python]
        folders = jupyter.data_folders(environment, home, own, os.name == "nt")
        for kernel in jupyter.kernels_in(folders, server, environment):
            if kernel["exists"] and EXECUTABLE.match(os.path.basename(kernel["interpreter"])):
                yield kernel["interpreter"], "kernelspec"

    ways: List[Callable[[], Iterator[Candidate]]] = [
        given,
        kernels,
        lambda: from_path(environment),
        lambda: from_folders(places.conda_environments(environment, home), "conda"),
        lambda: from_folders(list(virtual_environments(environment, home, cwd)), "venv"),
        from_registry,
        lambda: store_pythons(environment),
        lambda: from_folders(pyenv_prefixes(environment, home), "pyenv"),
        lambda: from_folders(known_folders(environment), "folder"),
    ]
    for way in ways:
        try:
            yield from way()
        except (OSError, ValueError):
            continue


@collector("pythons.list", 30)
def pythons(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Sample: ``{"path": "...\\\\envs\\\\tf21\\\\python.exe", "version": "3.7.16", "kind": "conda", ...}``."""
    environment = context_environment(args)
    cwd = str(args.get("cwd") or _working_folder() or os.path.expanduser("~"))
    found = gather(all_candidates(args, environment, os.path.expanduser("~"), cwd))
    return found, "folders, registry" if sys.platform == "win32" else "folders"


def _working_folder() -> Optional[str]:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return None
