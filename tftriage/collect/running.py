"""Jupyter's servers and kernels that run now, and the environment that they really have."""

import os
import re
import sys
from typing import Any, Dict, List, Optional, Tuple

from . import jupyter, places
from .environment import relevant
from .registry import Absent, Skipped, collector

MAX_PROCESSES = 50  # of ours; more say nothing new
TENSORFLOW = re.compile(r"_pywrap_tensorflow|libtensorflow|tensorflow_framework", re.I)


def kind_of(words: List[str]) -> Optional[str]:
    """``kernel`` or ``server``, None for any other command line.

    Sample of a kernel: ``["C:\\\\...\\\\python.exe", "-m", "ipykernel_launcher", "-f", "...\\\\kernel-8d3f.json"]``.
    """
    if connection_file(words) and any(re.search(r"ipykernel|xpython|IPython", word) for word in words[:4]):
        return "kernel"
    return "server" if jupyter.is_server(words) else None


def connection_file(words: List[str]) -> Optional[str]:
    """The file by which a server reaches the kernel: behind ``-f``, or ``--f=``."""
    for at, word in enumerate(words):
        if word == "-f" and at + 1 < len(words):
            return words[at + 1]
        match = re.match(r"--(?:f|IPKernelApp\.connection_file)=(.*)$", word)
        if match:
            return match.group(1)
    return None


def describe(process: Any, kind: str, words: List[str]) -> Dict[str, Any]:
    """One process. ``env`` is what it was started with, null where it may not be read: another user's process."""
    found: Dict[str, Any] = {
        "kind": kind,
        "pid": int(process.pid),
        "parent": _tried(process.ppid),
        "python": jupyter.executable_of(process, words),
        "cwd": _tried(process.cwd),
        "connection": os.path.basename(connection_file(words) or "") or None,
        "env": _tried(lambda: relevant(process.environ())),
        "libraries": None,
    }
    if kind == "kernel":
        found["libraries"] = loaded(process)
    return found


def loaded(process: Any) -> Optional[List[str]]:
    """The copies of TensorFlow, CUDA and cuDNN that a process has loaded: which one won. None: not to be read."""
    maps = _tried(process.memory_maps)
    if maps is None:
        return None
    paths = {str(one.path) for one in maps}
    return sorted(path for path in paths if _matters(re.split(r"[\\/]", path)[-1]))


def _matters(name: str) -> bool:
    return bool(places.is_library(name) or TENSORFLOW.search(name))


def _tried(ask: Any) -> Any:
    try:
        return ask()
    except Exception:  # gone, another user's, or not to be had on this system
        return None


@collector("jupyter.running", 20)
def running(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Sample: ``{"kind": "kernel", "pid": 4120, "python": "...", "env": {"PATH": "..."}, "libraries": [...]}``.

    The environment is that of the process's start: what ``os.environ`` was changed to since then is not in it.
    """
    try:
        import psutil
    except ImportError as problem:
        raise Skipped("no-psutil: {}".format(problem))
    found: List[Dict[str, Any]] = []
    for process in psutil.process_iter():
        words = _tried(process.cmdline) or []
        kind = kind_of([str(word) for word in words])
        if kind and len(found) < MAX_PROCESSES:
            found.append(describe(process, kind, [str(word) for word in words]))
    if not found:
        raise Absent("no Jupyter server and no kernel runs")
    return found, "processes" if sys.platform != "win32" else "processes of this user"
