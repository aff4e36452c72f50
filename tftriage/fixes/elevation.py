"""One plan, carried out with administrator rights, where Windows asks the person for exactly that (UAC).

The plan is written down, and its SHA-256 is handed over on the command line, which nobody can change any more. The
elevated process reads the file once, compares, and carries out the very bytes it has compared; the file is compared
once more afterwards. It writes into the same journal, so undo and recovery know the entry like any other.

A plan that changes the user's own variables is never elevated: with another account's password it would change that
account's.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import msgspec

from tftriage.fixes import disk, effects
from tftriage.fixes.effects import Applied
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import Plan, SetUserVariable, UnsetUserVariable
from tftriage.probes.base import Evidence

_CANCELLED = 1223  # ERROR_CANCELLED: the person said no
ALTERED, REFUSED = 3, 4


def needed(plan: Plan) -> bool:
    """Whether this plan needs rights that this process has not and that Windows can ask for."""
    if sys.platform != "win32" or "admin" not in plan.needs or not plan.steps or not allowed(plan):
        return False
    import ctypes

    return not ctypes.windll.shell32.IsUserAnAdmin()


def allowed(plan: Plan) -> bool:
    """Whether an administrator's process may carry it out: nothing in it is the user's alone."""
    return not any(isinstance(step, SetUserVariable | UnsetUserVariable) for step in plan.steps)


def carry_out(plan: Plan, journal: Journal) -> Applied:
    """Ask Windows for the rights, and wait for the end. What the elevated process says is what is returned."""
    data = msgspec.json.encode(plan)
    digest = hashlib.sha256(data).hexdigest()
    folder = journal.path / "elevated"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file, answer = folder / f"{digest}.json", folder / f"{digest}.answer"
    answer.unlink(missing_ok=True)
    disk.write(str(file), data, 0o600)
    try:
        status = _run_elevated((str(file), digest, str(journal.path), str(answer)))
        if status == _CANCELLED:
            return _failed("fix.error.not-allowed")
        if status == ALTERED or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            return _failed("fix.error.plan-altered")
        return msgspec.json.decode(answer.read_bytes(), type=Applied)
    except (OSError, msgspec.DecodeError) as error:
        return Applied(None, (), False, effects.explain(error))
    finally:
        for made in (file, answer):
            made.unlink(missing_ok=True)


def _failed(key: str) -> Applied:
    return Applied(None, (), False, Evidence(key, {}, "bad"))


def command(arguments: tuple[str, ...]) -> list[str]:
    """The command line of the elevated process: isolated from the user's variables, and this very code."""
    root = str(Path(__file__).resolve().parents[2])
    code = f"import sys; sys.path.insert(0, {root!a}); from tftriage.fixes import elevation; sys.exit(elevation.main())"
    return [sys.executable, "-I", "-c", code, *arguments]


def _run_elevated(arguments: tuple[str, ...]) -> int:
    """``ShellExecuteExW`` with ``runas``; the exit status, or ERROR_CANCELLED. ``OSError`` when it cannot start."""
    if sys.platform != "win32":
        raise OSError("only Windows asks for rights")
    import ctypes
    from ctypes import wintypes

    class Info(ctypes.Structure):
        _fields_ = (
            ("size", wintypes.DWORD), ("mask", wintypes.ULONG), ("window", wintypes.HWND), ("verb", wintypes.LPCWSTR),
            ("file", wintypes.LPCWSTR), ("parameters", wintypes.LPCWSTR), ("directory", wintypes.LPCWSTR),
            ("show", ctypes.c_int), ("instance", wintypes.HINSTANCE), ("list", ctypes.c_void_p),
            ("klass", wintypes.LPCWSTR), ("key", wintypes.HKEY), ("hotkey", wintypes.DWORD),
            ("icon", wintypes.HANDLE), ("process", wintypes.HANDLE),
        )  # fmt: skip

    executable, *rest = command(arguments)
    keep_process, no_console_window = 0x40, 0
    info = Info(mask=keep_process, verb="runas", file=executable, show=no_console_window)
    info.size = ctypes.sizeof(info)
    info.parameters = subprocess.list2cmdline(rest)
    shell32, kernel32 = ctypes.WinDLL("shell32", use_last_error=True), ctypes.WinDLL("kernel32", use_last_error=True)
    shell32.ShellExecuteExW.argtypes = [ctypes.POINTER(Info)]
    kernel32.WaitForSingleObject.argtypes = [wintypes.HANDLE, wintypes.DWORD]
    kernel32.GetExitCodeProcess.argtypes = [wintypes.HANDLE, ctypes.POINTER(wintypes.DWORD)]
    kernel32.CloseHandle.argtypes = [wintypes.HANDLE]
    if not shell32.ShellExecuteExW(ctypes.byref(info)):
        error = ctypes.get_last_error()
        if error == _CANCELLED:
            return _CANCELLED
        raise ctypes.WinError(error)
    status = wintypes.DWORD()
    kernel32.WaitForSingleObject(info.process, 0xFFFFFFFF)
    kernel32.GetExitCodeProcess(info.process, ctypes.byref(status))
    kernel32.CloseHandle(info.process)
    return int(status.value)


def main(arguments: list[str] | None = None) -> int:
    """The elevated side: PLAN SHA256 STATE ANSWER."""
    file, digest, state, answer = sys.argv[1:] if arguments is None else arguments
    data = Path(file).read_bytes()
    if hashlib.sha256(data).hexdigest() != digest:
        return ALTERED
    plan = msgspec.json.decode(data, type=Plan)
    if not allowed(plan):
        return REFUSED
    applied = effects.apply(plan, Journal(state))
    disk.write(answer, msgspec.json.encode(applied), 0o600)
    return 0 if applied.ok else 1
