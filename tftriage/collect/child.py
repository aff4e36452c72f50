"""Start another program so that nothing it does can harm the collector: it may hang, flood, crash, or leave children.

``run`` ends the whole process tree at the limit and keeps a bounded part of the output. ``decode`` turns a
tool's bytes into text. ``fresh_environment`` is what a console opened now would get.
"""

import ctypes
import locale
import os
import re
import signal
import subprocess
import sys
import threading
import time
from typing import IO, Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

KEPT = 8 * 1024 * 1024  # bytes of one stream that are kept: the first half and the last half
WINDOWS = os.name == "nt"
windows = ctypes  # type: Any  # the same module; type checkers know its Windows half on Windows only

# exit: as subprocess says it (negative: a POSIX signal), None when it could not be learned.
# timed_out: ended by us, at the limit or because the fact's deadline passed. seconds: wall time.
Result = NamedTuple(
    "Result",
    [("exit", Optional[int]), ("out", bytes), ("err", bytes), ("timed_out", bool), ("seconds", float)],
)
Registered = Tuple[str, str, bool]  # name, value, whether it is REG_EXPAND_SZ
_End = Callable[[], None]

_lock = threading.RLock()  # a signal handler may come in between
_running = {}  # type: Dict[int, Tuple[int, _End]]  # process -> (thread that started it, how to end it)
_forbidden = {}  # type: Dict[int, bool]  # threads whose fact is over: they may start nothing more
_closing = False


class Ended(Exception):
    """The fact's deadline has passed, or the collector stops: no more programs are started for it."""


def run(
    argv: Sequence[str],
    limit: float,
    env: Optional[Mapping[str, str]] = None,
    cwd: Optional[str] = None,
    stdin: bytes = b"",
    stack: bool = False,
) -> Result:
    """Run ``argv`` for at most ``limit`` seconds and return what it said.

    Whatever the program started is ended with it. Raises OSError when it cannot be started. ``stack`` asks a
    program that hangs for its stack before it is killed: SIGABRT, which a Python under ``-X faulthandler`` answers
    with one (POSIX only; Windows has no such signal).
    """
    me = threading.get_ident()
    with _lock:
        if _closing or me in _forbidden:
            raise Ended("no more programs are started for this fact")
    began = time.monotonic()
    options = {"creationflags": 0x08000000} if WINDOWS else {"start_new_session": True}  # type: Dict[str, Any]
    process = subprocess.Popen(  # CREATE_NO_WINDOW: a console window would flash over the person's terminal
        list(argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=None if env is None else dict(env),
        cwd=cwd,
        bufsize=0,
        **options,
    )
    job = _job(process) if WINDOWS else None
    stopped = threading.Event()

    def end() -> None:
        stopped.set()
        _end_tree(process, job)

    with _lock:
        _running[process.pid] = (me, end)
        late = _closing or me in _forbidden
    out, err = _Kept(), _Kept()
    threads = [_start(_feed, process.stdin, stdin), _start(out.read, process.stdout), _start(err.read, process.stderr)]
    try:
        if late:
            end()
        try:
            process.wait(max(0.0, limit))
        except subprocess.TimeoutExpired:
            if stack and not WINDOWS:
                _ask_stack(process)
            end()
            _wait(process, 5.0)
        # A grandchild may hold the pipes open for ever: what the program itself wrote is read at once.
        _join(threads[1:], 1.0)
        _end_tree(process, job)
        _join(threads[1:], 1.0)
    finally:
        with _lock:
            _running.pop(process.pid, None)
        if job is not None:
            _kernel32().CloseHandle(job)
    return Result(process.returncode, out.bytes(), err.bytes(), stopped.is_set(), time.monotonic() - began)


def end_children(thread: Optional[int] = None) -> None:
    """End the programs that ``thread`` runs, and let it start no more; with None those of all threads, for good."""
    global _closing
    with _lock:
        if thread is None:
            _closing = True
        else:
            _forbidden[thread] = True
        ends = [end for owner, end in _running.values() if thread is None or owner == thread]
    for end in ends:
        end()


def allow(thread: int) -> None:
    """Let ``thread`` start programs: a new thread may bear the number of one whose fact is over."""
    with _lock:
        _forbidden.pop(thread, None)


class _Kept:
    """The first and the last bytes of a stream; results come last, causes come first."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._lost = 0
        self._lock = threading.Lock()

    def read(self, stream: IO[bytes]) -> None:
        try:
            while True:
                piece = stream.read(65536)
                if not piece:
                    break
                with self._lock:
                    self._add(piece)
        except (OSError, ValueError):
            pass
        finally:
            stream.close()

    def _add(self, piece: bytes) -> None:
        room = KEPT // 2 - len(self._head)
        self._head += piece[: max(0, room)]
        self._tail += piece[max(0, room) :]
        over = len(self._tail) - KEPT // 2
        if over > 65536:  # trimmed now and then, not at every piece
            self._lost += over
            del self._tail[:over]

    def bytes(self) -> bytes:
        with self._lock:
            over = max(0, len(self._tail) - KEPT // 2)
            lost = self._lost + over
            gap = ("\n[... %d bytes left out ...]\n" % lost).encode("ascii") if lost else b""
            return bytes(self._head) + gap + bytes(self._tail[over:])


def _start(function: Callable[..., None], *args: Any) -> threading.Thread:
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread


def _feed(stream: IO[bytes], data: bytes) -> None:
    try:
        view = memoryview(data)
        while view:
            view = view[stream.write(view) :]
    except OSError:
        pass  # it did not want all of its input
    finally:
        try:
            stream.close()
        except OSError:
            pass


def _join(threads: Iterable[threading.Thread], seconds: float) -> None:
    until = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))


def _wait(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        pass  # in uninterruptible sleep (a dead network folder, a driver): it cannot be ended


def _ask_stack(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.send_signal(signal.SIGABRT)
    except OSError:
        return
    _wait(process, 1.5)


def _end_tree(process: "subprocess.Popen[bytes]", job: Optional[int]) -> None:
    if WINDOWS:
        if job is None or not _kernel32().TerminateJobObject(job, 1):
            _end_by_tools(process)
        return
    # A Jupyter kernel starts a session of its own, which the group does not reach.
    for pid in _descendants(process.pid) if process.returncode is None else []:
        _kill(os.kill, pid)
    _kill(os.killpg, process.pid)


def _kill(how: Callable[[int, int], None], pid: int) -> None:
    try:
        how(pid, 9)
    except OSError:
        pass  # gone by itself


def _descendants(pid: int) -> List[int]:
    """Processes below ``pid``, from /proc/*/stat (``4242 (python3) S 4240 ...``); [] where there is no /proc."""
    children = {}  # type: Dict[int, List[int]]
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    found = []  # type: List[int]
    todo = [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _end_by_tools(process: "subprocess.Popen[bytes]") -> None:
    try:
        import psutil

        below = psutil.Process(process.pid).children(recursive=True)
        for one in below:
            one.kill()
    except Exception:  # not installed, or the process is gone
        try:
            subprocess.call(
                ["taskkill", "/F", "/T", "/PID", str(process.pid)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=10,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            pass
    try:
        process.kill()
    except OSError:
        pass


def _kernel32() -> Any:
    return windows.WinDLL("kernel32", use_last_error=True)


class _Limits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION; only LimitFlags is set."""

    _fields_ = [
        ("times", ctypes.c_int64 * 2),
        ("flags", ctypes.c_uint32),
        ("working_set", ctypes.c_size_t * 2),
        ("active", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority", ctypes.c_uint32 * 2),
        ("io", ctypes.c_uint64 * 6),
        ("memory", ctypes.c_size_t * 4),
    ]


def _job(process: Any) -> Any:
    """A job object holding ``process`` and all that it starts; it ends them even if the collector itself is killed."""
    kernel32 = _kernel32()
    kernel32.CreateJobObjectW.restype = ctypes.c_void_p
    handle = kernel32.CreateJobObjectW(None, None)
    if not handle:
        return None
    job = ctypes.c_void_p(handle)
    limits = _Limits(flags=0x2000)  # JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
    is_set = kernel32.SetInformationJobObject(job, 9, ctypes.byref(limits), ctypes.sizeof(limits))
    if is_set and kernel32.AssignProcessToJobObject(job, ctypes.c_void_p(int(process._handle))):
        return job
    kernel32.CloseHandle(job)
    return None


def decode(data: bytes) -> str:
    """The text of a program's output; bytes that fit no code page are kept as ``\\xNN``.

    A byte order mark or the zero bytes of UTF-16 decide first (wmic, some reg exports), then UTF-8, then, line by
    line, UTF-8 and the code pages: one log holds TensorFlow's UTF-8 and Python's code page at once.
    """
    if data[:3] == b"\xef\xbb\xbf":
        data = data[3:]
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data[:2] == mark:
            return data[2:].decode(encoding, "replace")
    start = data[:4096]
    for odd, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        halves = start[odd::2], start[1 - odd :: 2]
        if len(start) >= 4 and halves[0].count(0) * 10 > len(halves[0]) * 4 and halves[1].count(0) == 0:
            return data.decode(encoding, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pages = code_pages()
        return "".join(_line(line, pages) for line in data.splitlines(True))


def code_pages() -> List[str]:
    """The encodings that programs on this machine write: console, ANSI and OEM page, or the locale's."""
    if not WINDOWS:
        return [locale.getpreferredencoding(False)]
    kernel32 = windows.windll.kernel32
    numbers = [kernel32.GetConsoleOutputCP(), kernel32.GetACP(), kernel32.GetOEMCP()]
    return ["cp%d" % number for number in numbers if number]


def _line(line: bytes, pages: Iterable[str]) -> str:
    for encoding in ["utf-8"] + list(pages):
        try:
            return line.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    return line.decode("utf-8", "backslashreplace")


# Set for a process when it starts, and found in no lasting registry key.
VOLATILE = (
    "SYSTEMROOT SYSTEMDRIVE USERPROFILE APPDATA LOCALAPPDATA HOMEDRIVE HOMEPATH USERNAME USERDOMAIN"
    " USERDOMAIN_ROAMINGPROFILE LOGONSERVER SESSIONNAME COMPUTERNAME PROGRAMDATA ALLUSERSPROFILE PUBLIC PROGRAMFILES"
    " PROGRAMFILES(X86) PROGRAMW6432 COMMONPROGRAMFILES COMMONPROGRAMFILES(X86) COMMONPROGRAMW6432 TEMP TMP"
)


def fresh_environment() -> Dict[str, str]:
    """The environment that a console opened now would get; elsewhere than on Windows a copy of this process's own.

    A running program, and all that it starts, keeps the environment from its own start: what was written to the
    registry since then is only seen by programs that Explorer starts anew. Source: HKLM Session Manager\\Environment
    and HKCU\\Environment.
    """
    if not WINDOWS:
        return dict(os.environ)
    machine = "SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Environment"
    user = _registered("HKEY_CURRENT_USER", "Environment")
    return rebuilt(_registered("HKEY_LOCAL_MACHINE", machine), user, os.environ)


def rebuilt(machine: List[Registered], user: List[Registered], present: Mapping[str, str]) -> Dict[str, str]:
    """Merge registry values as Windows does at logon; names are upper case in the result.

    ``user`` replaces ``machine``, except that the user's Path is put behind the machine's. Only REG_EXPAND_SZ is
    expanded: ``%SystemDrive%\\CUDA`` in a Path of type REG_SZ stays as it is, and is then a folder that does not exist.
    """
    result = {
        name.upper(): value
        for name, value in present.items()
        if name.upper() in VOLATILE.split() or name.upper().startswith("WINE")
    }
    for values in (machine, user):
        appended = False
        for name, value, expand in sorted(values, key=lambda one: one[2]):  # plain ones first: others refer to them
            name = name.upper()
            value = _expanded(value, result) if expand else value
            if name == "PATH" and values is user and result.get("PATH") and not appended:
                value, appended = result["PATH"].rstrip(";") + ";" + value, True
            result[name] = value
    return result


def _expanded(value: str, names: Mapping[str, str]) -> str:
    return re.sub("%([^%]+)%", lambda match: names.get(match.group(1).upper(), match.group(0)), value)


def _registered(root: str, path: str) -> List[Registered]:
    if sys.platform != "win32":
        return []
    import winreg

    found = []  # type: List[Registered]
    try:
        with winreg.OpenKey(getattr(winreg, root), path) as key:
            for index in range(winreg.QueryInfoKey(key)[1]):
                name, value, kind = winreg.EnumValue(key, index)
                if isinstance(value, str) and kind in (winreg.REG_SZ, winreg.REG_EXPAND_SZ):
                    found.append((name, value, kind == winreg.REG_EXPAND_SZ))
    except OSError:
        pass  # a user without a single variable has no such key
    return found
