"""Start the target's interpreter on inside.py, and tell how that went: answers, crashes, hangs, or no Python at all."""

import json
import os
import pkgutil
import re
import signal
import sys
import threading
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from . import child
from .environment import context_environment
from .registry import Absent, Failed

LOG = 512 * 1024  # characters of a log that are kept: the first half and the last half
# Flags and seconds. Plain first: a broken site hook is evidence; a cold disk with a virus scanner needs its time.
STARTS = (("", 30.0), ("-I", 10.0), ("-I -S", 10.0))
PYTHON = re.compile(r"(python|pypy)[\d.]*[wtd]*(_d)?(\.exe)?$", re.I)  # file names of interpreters
# What Windows' exit codes mean that stand for a crash (ntstatus.h).
CRASHES = {
    0x80000003: "STATUS_BREAKPOINT",
    0xC0000005: "STATUS_ACCESS_VIOLATION",
    0xC0000006: "STATUS_IN_PAGE_ERROR",
    0xC000001D: "STATUS_ILLEGAL_INSTRUCTION",
    0xC000007B: "STATUS_INVALID_IMAGE_FORMAT",
    0xC00000FD: "STATUS_STACK_OVERFLOW",
    0xC0000135: "STATUS_DLL_NOT_FOUND",
    0xC0000139: "STATUS_ENTRYPOINT_NOT_FOUND",
    0xC0000142: "STATUS_DLL_INIT_FAILED",
    0xC0000374: "STATUS_HEAP_CORRUPTION",
    0xC0000409: "STATUS_STACK_BUFFER_OVERRUN",
}

Context = NamedTuple(
    "Context",
    [("python", str), ("env", Dict[str, str]), ("cwd", Optional[str]), ("key", str), ("changed", Tuple[str, ...])],
)
# begun: the version of the Python that answered, None when none did. lines: its result lines.
Answer = NamedTuple(
    "Answer",
    [("begun", Optional[List[int]]), ("lines", List[Dict[str, Any]]), ("result", child.Result), ("log", str)],
)
# How the interpreter starts: flags with which it answered, its description, and the plain start when that failed.
Start = NamedTuple("Start", [("flags", List[str]), ("value", Dict[str, Any]), ("plain", Optional[Answer])])

_lock = threading.Lock()
_starting = {}  # type: Dict[str, threading.Lock]
_starts = {}  # type: Dict[str, Any]  # context -> Start, or the Failed that it raised


def context(args: Dict[str, Any], python: Optional[str] = None) -> Context:
    """The interpreter, environment and folder that a request names; the collector's own where it says nothing."""
    python = python or args.get("python") or sys.executable
    changes = args.get("env") or {}
    parts = [python, args.get("cwd"), sorted(changes.items()), bool(args.get("fresh")), args.get("with_path") or []]
    return Context(python, context_environment(args), args.get("cwd"), json.dumps(parts), tuple(changes))


def changed(env: Mapping[str, str], changes: Mapping[str, Optional[str]]) -> Dict[str, str]:
    """``env`` with ``changes``; None takes a variable away. On Windows names are the same in upper and lower case."""
    result = dict(env)
    for name, value in changes.items():
        for known in [known for known in result if same_name(known, name)]:
            del result[known]
        if value is not None:
            result[name] = value
    return result


def same_name(one: str, other: str) -> bool:
    return one.upper() == other.upper() if child.WINDOWS else one == other


def launch(
    where: Context,
    task: str,
    arguments: List[str],
    limit: float,
    flags: Optional[List[str]] = None,
    source: str = "inside.py",
) -> Answer:
    """Have ``where.python`` run a task of ``source``; raises Failed when it cannot even be started."""
    marker = "tftriage-" + os.urandom(12).hex() + ":"
    # From standard input: no folder of ours on its module path, and no path of ours that it would have to spell.
    argv = [where.python] + list(flags or []) + ["-B", "-X", "faulthandler", "-", task, marker] + arguments
    text = pkgutil.get_data(__package__ or "", source) or b""
    answer = _answer(where, argv, limit, text, marker)
    if answer.begun is None and not answer.result.timed_out and not answer.log and answer.result.exit != 0:
        answer = _answer(where, argv, limit, text, marker)  # not a word: some starts fail for no reason but load
    return answer


def _answer(where: Context, argv: List[str], limit: float, text: bytes, marker: str) -> Answer:
    try:
        result = child.run(argv, limit, where.env, where.cwd, text, stack=True)
    except OSError as error:
        raise Failed(_unstartable(where, error))
    lines, chatter = marked(result.out, marker)
    log = shortened((child.decode(chatter) + child.decode(result.err)).replace("\r\n", "\n"))
    begun = next((line["begin"] for line in lines if "begin" in line), None)
    return Answer(begun, lines, result, log)


def marked(out: bytes, marker: str) -> Tuple[List[Dict[str, Any]], bytes]:
    """The result lines in ``out``, and the rest. A line that a death cut short is no result."""
    lines, chatter = [], []
    for line in out.split(b"\n"):
        if line.startswith(marker.encode("ascii")):
            try:
                value = json.loads(line[len(marker) :].decode("ascii"))
            except ValueError:
                continue
            if isinstance(value, dict):
                lines.append(value)
        elif line.strip():
            chatter.append(line + b"\n")
    return lines, b"".join(chatter)


def _unstartable(where: Context, error: OSError) -> str:
    if where.cwd and not os.path.isdir(where.cwd):
        return "gone: the working folder %s" % where.cwd
    if os.path.isdir(where.python):
        return "not-python: %s is a folder" % where.python
    if isinstance(error, FileNotFoundError):
        # Also a script whose #! line, or a program whose loader, is no longer there.
        return ("gone: what %s leads to" if os.path.lexists(where.python) else "gone: %s") % where.python
    if isinstance(error, PermissionError):
        return "not-executable: %s (%s)" % (where.python, error.strerror)
    return "not-python: %s (%s)" % (where.python, error)


def shortened(text: str) -> str:
    if len(text) <= LOG:
        return text
    return "%s\n[... %d characters left out ...]\n%s" % (text[: LOG // 2], len(text) - LOG, text[-LOG // 2 :])


def start(where: Context, until: float) -> Start:
    """Find out once how the interpreter starts: plain, with -I, or with -I -S. Raises Failed when it does in no way."""
    with _lock:
        lock = _starting.setdefault(where.key, threading.Lock())
    with lock:
        if where.key not in _starts:
            try:
                _starts[where.key] = _started(where, until)
            except Failed as failure:
                _starts[where.key] = failure
        known = _starts[where.key]
    if isinstance(known, Failed):
        raise Failed(str(known))
    return known  # type: ignore[no-any-return]


def _started(where: Context, until: float) -> Start:
    if not PYTHON.match(re.split(r"[\\/]", where.python)[-1]):
        _check_speech(where)
    plain, failure = None, None  # type: Optional[Answer], Optional[Failed]
    for text, limit in STARTS:
        flags = text.split()
        left = (until - time.monotonic()) * (1.0 if "-S" in flags else 0.5)  # the next start wants its time, too
        answer = launch(where, "interpreter", [], max(1.0, min(limit, left)), flags)
        if answer.begun is None:
            plain = plain or answer
            continue
        try:
            return Start(flags, value_of(answer), plain)
        except Failed as failed:  # it starts, but its library does not work: a json.py or re.py on PYTHONPATH
            failure = failed
    if failure is not None or plain is None:
        raise failure or Failed("no answer")
    version = _old_version(where)
    if version:
        raise Failed("too-old: Python %s" % version)
    if plain.result.timed_out:
        raise Failed("not-python: %s does not answer" % where.python)
    raise Failed(_not_python(where, plain.result.exit, plain.log))


def _check_speech(where: Context) -> None:
    """Raise Failed unless ``where.python`` speaks Python. A shell (cmd.exe) would execute inside.py line by line."""
    try:
        speech = "import sys; print('%d' % (6 * 7) + sys.copyright)"
        result = child.run([where.python, "-c", speech], 10.0, where.env, where.cwd)
    except OSError as error:
        raise Failed(_unstartable(where, error))
    if b"42Copyright" not in result.out:
        raise Failed(_not_python(where, result.exit, child.decode(result.out + result.err)))


def _not_python(where: Context, code: Optional[int], log: str) -> str:
    said = next((line.strip() for line in log.splitlines() if line.strip()), "nothing")
    return "not-python: %s ended with %s and said: %s" % (where.python, code, said[:200])


def _old_version(where: Context) -> Optional[str]:
    """The version of a Python that cannot read inside.py (2.7 says SyntaxError)."""
    try:
        result = child.run([where.python, "-c", "import sys; print(sys.version)"], 5.0, where.env, where.cwd)
    except OSError:
        return None
    match = re.match(r"([23]\.\d+\.\d+\S*) \(", child.decode(result.out))
    return match.group(1) if match else None


def value_of(answer: Answer) -> Any:
    """The task's value; raises Absent and Failed for what the task reported, or for its death."""
    for line in answer.lines:
        if "value" in line:
            return line["value"]
        if "absent" in line:
            raise Absent(line["absent"])
        if "error" in line:
            raise Failed(line["error"])
    raise Failed(died(answer) or "no answer")


def died(answer: Answer) -> Optional[str]:
    """How the child ended without a result: ``timeout``, ``killed: SIGBUS``, ``exit: 3``; None when it gave one."""
    if any("value" in line for line in answer.lines):
        return None
    ended = ending(answer)
    if ended["timed_out"]:
        return "timeout"
    return "killed: %s" % ended["signal"] if ended["signal"] else "exit: %s" % ended["exit"]


def ending(answer: Answer) -> Dict[str, Any]:
    """``exit``, ``signal`` and ``timed_out`` of a child. On Windows a crash's status code stands for the signal."""
    code = answer.result.exit
    finished = any("value" in line for line in answer.lines)
    # At its limit the child prints its stack and ends itself, with status 1.
    gave_up = not finished and code == 1 and re.search(r"^Timeout \(\d", answer.log, re.M)
    if answer.result.timed_out or gave_up:
        return {"exit": None, "signal": None, "timed_out": True}
    name = None  # type: Optional[str]
    if code is not None and code < 0 and not child.WINDOWS:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = "signal %d" % -code
    elif child.WINDOWS and code is not None:
        code &= 0xFFFFFFFF
        name = CRASHES.get(code, "0x%08X" % code if code >= 0x80000000 else None)
        if code == 3 and not finished:
            name = "SIGABRT"  # how Microsoft's abort() ends a process
    return {"exit": code, "signal": name, "timed_out": False}


def stack_of(log: str) -> str:
    """What faulthandler wrote at a hang or a crash; "" when it wrote nothing."""
    found = list(re.finditer(r"^(Timeout \(\d|Fatal Python error: |Windows fatal exception: )", log, re.M))
    return log[found[-1].start() :] if found else ""
