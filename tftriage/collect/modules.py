"""Which files running Pythons have really loaded: the copy that won, said by the system itself.

Only the process's list of mapped files is read; nothing is started, stopped or injected. Other users' processes
are left out. Sources: ``/proc/PID/maps`` (proc(5)); ``EnumProcessModulesEx`` (Microsoft, Process Status API).
"""

import ctypes
import os
import re
import sys
from typing import Any, Dict, Iterator, List, Optional, Tuple

from . import places
from .registry import Skipped, collector

PYTHON = re.compile(r"^(python[\d.]*w?|pythonw[\d.]*)(\.exe)?$", re.I)
NATIVE = re.compile(r"^(_?pywrap_tensorflow|libtensorflow|_tensorflow)", re.I)
OF_PYTHON = re.compile(r"^(python\d+\.dll|libpython)", re.I)  # every Python has these: no sign of TensorFlow
QUERY, READ, ALL = 0x0400, 0x0010, 3  # rights of OpenProcess; LIST_MODULES_ALL
MAX_MODULES = 4096
KERNEL = ("ipykernel_launcher", "ipykernel")


def of_interest(path: str) -> bool:
    """Whether a loaded file is one that the loader model speaks of."""
    name = re.split(r"[\\/]", path)[-1]
    return bool(places.is_library(name) or NATIVE.match(name)) and not OF_PYTHON.match(name)


def mapped(text: str) -> List[str]:
    """The files in the text of ``/proc/PID/maps``, each once, in the order of their addresses.

    Sample line: ``7f0a1c000000-7f0a1c021000 r-xp 00000000 08:01 131 /usr/lib/libcudnn.so.7.6.5``
    """
    found = []
    for line in text.splitlines():
        parts = line.split(None, 5)
        if len(parts) == 6 and parts[5].startswith("/"):
            path = parts[5]
            found.append(path[: -len(" (deleted)")] if path.endswith(" (deleted)") else path)
    return list(dict.fromkeys(found))


def linux_processes(proc: str = "/proc") -> Iterator[Tuple[int, str, List[str], List[str]]]:
    """(pid, program, command line, mapped files) of every Python that may be looked at."""
    for pid in sorted(int(name) for name in places.names_in(proc) if name.isdigit()):
        folder = os.path.join(proc, str(pid))
        try:
            program = os.readlink(os.path.join(folder, "exe"))
            if not PYTHON.match(os.path.basename(program)):
                continue
            with open(os.path.join(folder, "cmdline"), "rb") as handle:
                words = handle.read(65536).decode("utf-8", "replace").split("\0")
            with open(os.path.join(folder, "maps"), encoding="utf-8", errors="backslashreplace") as handle:
                yield pid, program, words, mapped(handle.read(16 << 20))
        except OSError:  # gone, or another user's
            continue


def windows_processes() -> Iterator[Tuple[int, str, List[str], List[str]]]:
    """The same on Windows. The command line needs psutil; it is empty without."""
    windows = ctypes  # type: Any  # the type checker looks at Linux
    kernel = windows.WinDLL("kernel32", use_last_error=True)
    kernel.OpenProcess.restype = ctypes.c_void_p
    kernel.OpenProcess.argtypes = [ctypes.c_uint32, ctypes.c_int, ctypes.c_uint32]
    kernel.CloseHandle.argtypes = [ctypes.c_void_p]
    kernel.K32EnumProcessModulesEx.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32,
                                               ctypes.POINTER(ctypes.c_uint32), ctypes.c_uint32]  # fmt: skip
    kernel.K32GetModuleFileNameExW.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_uint32]
    pids, size = (ctypes.c_uint32 * 4096)(), ctypes.c_uint32()
    kernel.K32EnumProcesses(pids, ctypes.sizeof(pids), ctypes.byref(size))
    for pid in sorted(pids[: size.value // 4]):
        handle = kernel.OpenProcess(QUERY | READ, 0, pid)
        if not handle:  # the system's, another user's, gone
            continue
        try:
            files = _modules(kernel, handle)
        finally:
            kernel.CloseHandle(handle)
        if files and PYTHON.match(files[0].split("\\")[-1]):
            yield pid, files[0], command_line(pid), files


def _modules(kernel: Any, handle: int) -> List[str]:
    """The files that a process has loaded, its program first."""
    modules, size = (ctypes.c_void_p * MAX_MODULES)(), ctypes.c_uint32()
    room = ctypes.sizeof(modules)
    if not kernel.K32EnumProcessModulesEx(handle, modules, room, ctypes.byref(size), ALL):
        return []
    found = []
    for module in modules[: min(size.value, room) // ctypes.sizeof(ctypes.c_void_p)]:
        text = ctypes.create_unicode_buffer(32768)
        if kernel.K32GetModuleFileNameExW(handle, module, text, len(text)):
            found.append(text.value)
    return found


def command_line(pid: int) -> List[str]:
    """The words with which a process was started; [] where that cannot be seen."""
    try:
        import psutil

        return [str(word) for word in psutil.Process(pid).cmdline()]
    except Exception:  # not installed, gone, no right, or an error of the system
        return []


def described(pid: int, program: str, words: List[str], files: List[str]) -> Optional[Dict[str, Any]]:
    """One process of the fact; None when it has loaded nothing of interest."""
    modules = [path for path in files if of_interest(path)]
    if not modules:
        return None
    started = next((word for word in words[:1] if os.path.isabs(word)), None)  # inside a virtual environment
    return {
        "pid": pid,
        "python": started or program,
        "program": program,
        "kernel": any(os.path.basename(word) in KERNEL or word in KERNEL for word in words),
        "modules": modules,
    }


@collector("process.modules", 20)
def modules(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Every running Python that has libraries of TensorFlow, CUDA or Visual C++ loaded; ``pid`` restricts it to one."""
    if sys.platform.startswith("linux"):
        processes, source = linux_processes(), "/proc/PID/maps"
    elif sys.platform == "win32":
        processes, source = windows_processes(), "EnumProcessModulesEx"
    else:
        raise Skipped("only on Windows and Linux")
    wanted = args.get("pid")
    found = [described(*one) for one in processes if one[0] != os.getpid() and wanted in (None, one[0])]
    return {"processes": [one for one in found if one]}, source
