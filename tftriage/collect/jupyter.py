"""Jupyter's kernels and the Python that serves them, read from files: no kernel is started here."""

import os
import re
import sys
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import interpreters, places
from .environment import context_environment, path_folders
from .registry import Absent, collector

# jupyter_client (kernelspec manager, format_kernel_cmd) replaces exactly these first words by the server's
# interpreter.
BARE = re.compile(r"^python(\d(\.\d+)?)?$")
SERVERS = re.compile(
    r"(^|[\\/-])(jupyter(-lab|-notebook|-server|-hub|-labhub|hub-singleuser)?|notebook|jupyterlab)(\.exe|-script\.py)?$"
)
MAX_KERNELS = 200


def data_folders(
    environment: Mapping[str, str], home: str, prefixes: List[str], windows: bool
) -> List[Tuple[str, str]]:
    """(folder, scope) in which Jupyter looks for ``kernels``, in its order (``jupyter --paths``)."""
    found = [(part, "user") for part in environment.get("JUPYTER_PATH", "").split(os.pathsep) if part]
    own = environment.get("JUPYTER_DATA_DIR")
    if own:
        user = own
    elif windows:
        user = os.path.join(environment.get("APPDATA") or os.path.join(home, "AppData", "Roaming"), "jupyter")
    elif sys.platform == "darwin":
        user = os.path.join(home, "Library", "Jupyter")
    else:
        user = os.path.join(environment.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share"), "jupyter")
    found.append((user, "user"))
    found += [(os.path.join(prefix, "share", "jupyter"), "env") for prefix in prefixes]
    if windows:
        found.append((os.path.join(environment.get("PROGRAMDATA") or "C:\\ProgramData", "jupyter"), "system"))
    else:
        found += [("/usr/local/share/jupyter", "system"), ("/usr/share/jupyter", "system")]
    found.append((os.path.join(home, ".ipython"), "user"))
    seen, kept = set(), []
    for folder, scope in found:
        key = os.path.normcase(os.path.normpath(folder))
        if key not in seen:
            seen.add(key)
            kept.append((folder, scope))
    return kept


def kernels_in(
    folders: List[Tuple[str, str]], server_python: Optional[str], environment: Mapping[str, str]
) -> List[Dict[str, Any]]:
    """The value of ``jupyter.kernels``. Of two kernels of one name Jupyter takes the first; both are listed."""
    found: List[Dict[str, Any]] = []
    for base, scope in folders:
        for folder in places.children(os.path.join(base, "kernels")):
            if len(found) < MAX_KERNELS and os.path.exists(os.path.join(folder, "kernel.json")):
                found.append(describe(folder, scope, server_python, environment))
    return found


def describe(folder: str, scope: str, server_python: Optional[str], environment: Mapping[str, str]) -> Dict[str, Any]:
    """One kernelspec. Sample: ``{"argv": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]}``."""
    spec, error = interpreters.kernel_json(folder)
    words, variables = spec.get("argv"), spec.get("env")
    argv = [str(word) for word in words] if isinstance(words, list) else []
    bare = bool(argv) and bool(BARE.match(argv[0]))
    interpreter = (server_python if bare else resolve(argv[0], environment)) if argv else None
    exists = bool(interpreter) and os.path.isfile(str(interpreter))
    if error is None and not argv:
        error = "no argv"
    return {
        "name": os.path.basename(folder).lower(),
        "display_name": str(spec.get("display_name", "")),
        "folder": folder,
        "scope": scope,
        "argv": argv,
        "env": {str(key): str(value) for key, value in variables.items()} if isinstance(variables, dict) else {},
        "language": str(spec.get("language", "")),
        "interpreter": interpreter,
        "exists": exists,
        "bare": bare,
        "ipykernel": interpreters.version_of_package(str(interpreter), "ipykernel") if exists else None,
        "error": error,
    }


def resolve(word: str, environment: Mapping[str, str]) -> str:
    """The file that a kernelspec's first word starts: a path as it is, another bare word by PATH."""
    if os.path.dirname(word):
        return word
    endings = [""] + (environment.get("PATHEXT") or ".EXE;.BAT;.CMD").split(";") if os.name == "nt" else [""]
    for folder in path_folders(environment):
        for ending in endings:
            path = os.path.join(folder, word + ending)
            if os.path.isfile(path):
                return path
    return word


def running_servers() -> List[Dict[str, Any]]:
    """Processes that look like a Jupyter server, with interpreter and working folder; [] without psutil."""
    try:
        import psutil
    except ImportError:
        return []
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            if is_server(words):
                found.append({"pid": process.pid, "python": executable_of(process, words), "cwd": _folder(process)})
        except Exception:  # gone, another user's, or an error of the system: not ours to see
            continue
    return found


def is_server(words: List[str]) -> bool:
    """Whether a command line starts a Jupyter server. A kernel (``-m ipykernel_launcher``) is none.

    Samples: ``["C:\\\\...\\\\python.exe", "C:\\\\...\\\\Scripts\\\\jupyter-lab-script.py"]``, ``["python",
    "-m", "notebook"]``.
    """
    if len(words) >= 3 and words[1] == "-m":
        return words[2] in ("jupyter", "notebook", "jupyterlab", "jupyter_server", "jupyterhub.singleuser")
    return any(SERVERS.search(word) for word in words[:2]) and "kernelspec" not in words


def executable_of(process: Any, words: List[str]) -> Optional[str]:
    # The command line keeps the path inside a virtual environment; exe() resolves links to the base
    # interpreter.
    if os.path.isabs(words[0]) and re.match(r"^python[\d.]*w?(\.exe)?$", os.path.basename(words[0]), re.I):
        return str(words[0])
    try:
        return beside(words[0]) or str(process.exe()) or None
    except Exception:  # no right, or psutil under Wine
        return None


def _folder(process: Any) -> Optional[str]:
    try:
        return str(process.cwd())
    except Exception:  # no right
        return None


def beside(launcher: str) -> Optional[str]:
    """The interpreter of the environment in which a launcher such as ``Scripts\\jupyter.exe`` lies."""
    folder = os.path.dirname(launcher)
    first = ""
    try:
        with open(launcher, "rb") as handle:
            first = handle.readline(1024).decode("utf-8", "replace")
    except OSError:
        pass
    named = first[2:].strip() if first.startswith("#!") else ""
    candidates = [
        named,
        os.path.join(os.path.dirname(folder), "python.exe"),
        os.path.join(folder, "python.exe"),
        os.path.join(folder, "python"),
        os.path.join(folder, "python3"),
    ]
    return next((path for path in candidates if path and os.path.isfile(path)), None)


def find_server(
    args: Dict[str, Any], environment: Mapping[str, str]
) -> Tuple[Optional[str], str, List[Dict[str, Any]]]:
    """(the server's interpreter, how it was found, running servers): running, ``jupyter`` on PATH, the target."""
    running = running_servers()
    for server in running:
        if server["python"]:
            return str(server["python"]), "running", running
    for word in ("jupyter-lab", "jupyter-notebook", "jupyter"):
        launcher = resolve(word, environment)
        python = beside(launcher) if launcher != word else None
        if python and interpreters.version_of_package(python, "jupyter-client"):
            return python, "path", running
    target = args.get("python")
    if target and interpreters.version_of_package(str(target), "jupyter-client"):
        return str(target), "target", running
    return None, "", running


def _prefixes(*pythons: Optional[str]) -> List[str]:
    return places.unique(interpreters.prefix_of(str(python)) for python in pythons if python)


@collector("jupyter.kernels", 20)
def kernels(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Every kernelspec that the server would list. Only ``kernel.json`` files are read."""
    environment, windows = context_environment(args), os.name == "nt"
    server = find_server(args, environment)[0]
    folders = data_folders(environment, os.path.expanduser("~"), _prefixes(server, args.get("python")), windows)
    return kernels_in(folders, server, environment), "kernel.json files"


@collector("jupyter.server", 20)
def server(args: Dict[str, Any]) -> Tuple[Any, str]:
    """The Python that serves notebooks. ``found_by``: running, path or target (the interpreter asked about)."""
    environment, windows = context_environment(args), os.name == "nt"
    python, found_by, running = find_server(args, environment)
    if python is None:
        raise Absent("no Jupyter server is running, none is on PATH, and the target has no jupyter_client")
    folders = data_folders(environment, os.path.expanduser("~"), _prefixes(python), windows)
    return {
        "python": python,
        "jupyter_client": interpreters.version_of_package(python, "jupyter-client"),
        "running": running,
        "search_path": [os.path.join(folder, "kernels") for folder, _ in folders],
        "found_by": found_by,
    }, found_by
