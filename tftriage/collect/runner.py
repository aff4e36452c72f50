"""Answer requests: one JSON object a line in, one line per fact out, in the order in which they finish.

Every collector runs in a thread of its own, under a deadline, and its failure, hang or absence is a fact like any
other. A thread that hangs cannot be stopped, so it is left behind: the process ends without asking it. What the
collectors' threads print, and what programs print to a standard output they inherit, goes to standard error.
"""

import importlib
import json
import os
import queue
import re
import signal
import sys
import threading
import time
from typing import IO, Any, Callable, Dict, List, Optional, Tuple  # noqa: F401  (List: in comments)

from . import child, registry

# Which module observes which fact, so that one that cannot be imported still answers for its facts.
MODULES = (
    ("settings", "system.settings system.vcruntime"),
    ("system", "system.os system.locale system.user system.cpu system.memory"),
    ("environment", "env."),
    ("pythons", "pythons."),
    ("cuda", "cuda."),
    ("gpu", "gpu."),
    ("dlls", "dlls."),
    ("modules", "process."),
    ("jupyter", "jupyter.kernels jupyter.server"),
    ("running", "jupyter.running"),
    ("security", "security."),
    ("usage", "usage.sample"),
    ("workload", "usage.workload"),
    ("names", "names."),
    ("target", "target. tf. jupyter.import"),
)
# These import TensorFlow, which takes gigabytes of memory and the GPU: one after another, in the order of the requests.
ALONE = ("tf.import", "tf.gpus", "tf.operation", "tf.libraries", "jupyter.import", "names.ascii_import",
         "usage.workload")  # fmt: skip
AT_ONCE = 8  # other collectors at a time; they mostly wait
LONGEST_LINE = 1024 * 1024  # characters of a request
Answer = Tuple[str, Any, str, str]  # status, value, source, note


def load(fact: Optional[str] = None, failed: Optional[Dict[str, str]] = None) -> Dict[str, str]:
    """Import the modules that observe ``fact`` (all of them without one), which register themselves.

    Returns the reason for each module that fails, by its name. They are imported when they are asked for: the first
    fact need not wait for the modules of all others.
    """
    failed = {} if failed is None else failed
    for name, facts in MODULES:
        if fact is None or any(_covers(one, fact) for one in facts.split()):
            try:
                importlib.import_module("." + name, __package__)
            except Exception as error:
                failed[name] = _described(error)
    return failed


def main() -> None:
    """Serve standard input until it ends or says ``{"quit": true}``, then end the process with status 0."""
    out = _private_output()
    if child.WINDOWS:
        # Inherited by the programs we start: a message box ("entry point not found") would wait for a click for ever.
        child.windows.windll.kernel32.SetErrorMode(0x8003)
    for number in ("SIGTERM", "SIGINT", "SIGHUP"):
        if hasattr(signal, number):
            signal.signal(getattr(signal, number), _stopped)
    ended = threading.Event()
    _start(_watch_reader, out, ended)
    source = sys.stdin.buffer
    serve(lambda: source.readline(LONGEST_LINE), out, {}, ended)
    child.end_children()
    os._exit(0)


def serve(read: Callable[[], bytes], out: IO[bytes], failed: Dict[str, str], ended: threading.Event) -> None:
    """Answer the lines that ``read`` gives (b"" at the end) on ``out``; returns when every fact has been written."""
    emit = _emitter(out)
    pending = []  # type: List[threading.Thread]
    room = threading.BoundedSemaphore(AT_ONCE)
    alone = queue.Queue()  # type: queue.Queue[Optional[Tuple[str, Dict[str, Any]]]]

    def one_by_one() -> None:
        for name, args in iter(alone.get, None):
            emit(name, *observe(name, args, failed))

    def beside(name: str, args: Dict[str, Any]) -> None:
        with room:
            emit(name, *observe(name, args, failed))

    pending.append(_start(one_by_one))
    while True:
        line = read()
        if not line:
            break
        request, complaint = parsed(line, read)
        if complaint:
            emit("protocol", ("error", None, "standard input", complaint), 0.0)
        if request is None:
            continue
        if request.get("quit"):
            break
        name, args = request["collect"], request.get("args") or {}
        if name in ALONE:
            alone.put((name, args))
        else:
            pending.append(_start(beside, name, args))
    ended.set()
    alone.put(None)
    for thread in pending:
        thread.join()


def parsed(line: bytes, read: Callable[[], bytes]) -> Tuple[Optional[Dict[str, Any]], str]:
    """The request in ``line``, and what is wrong with it; (None, "") for an empty line."""
    if len(line) >= LONGEST_LINE and not line.endswith(b"\n"):
        while line and not line.endswith(b"\n"):
            line = read()
        return None, "a request longer than %d characters" % LONGEST_LINE
    if not line.strip():
        return None, ""
    try:
        request = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return None, "not JSON: %s" % error
    if not isinstance(request, dict):
        return None, "not a JSON object"
    if request.get("quit"):
        return request, ""
    if not isinstance(request.get("collect"), str):
        return None, 'no "collect" with the name of a fact'
    if not isinstance(request.get("args", {}), (dict, type(None))):
        return None, '"args" is not an object'
    return request, ""


def observe(name: str, args: Dict[str, Any], failed: Dict[str, str]) -> Tuple[Answer, float]:
    """Run the collector of ``name`` under its deadline (``args["limit"]`` in seconds, or its own)."""
    if name not in registry.COLLECTORS:
        load(name, failed)
    collector = registry.COLLECTORS.get(name)
    if collector is None:
        for module, facts in MODULES:
            if module in failed and any(_covers(one, name) for one in facts.split()):
                return ("error", None, "", "collector module %s failed: %s" % (module, failed[module])), 0.0
        return ("error", None, "", "no such collector"), 0.0
    limit = args.get("limit", collector.limit)
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 < limit <= 86400:
        return ("error", None, "", "limit is not a number of seconds: %r" % (limit,)), 0.0
    box = []  # type: List[Answer]
    done = threading.Event()
    function = collector.function

    def work() -> None:
        child.allow(threading.get_ident())
        answer = ("error", None, "", "the collector ended without an answer")  # type: Answer
        try:
            value, source = function(dict(args, limit=float(limit)))
            answer = ("ok", value, source, "")
        except registry.Absent as error:
            answer = ("absent", None, "", str(error))
        except registry.Skipped as error:
            answer = ("skipped", None, "", str(error))
        except registry.Failed as error:
            answer = ("error", None, "", str(error))
        except BaseException as error:  # also SystemExit: no library ends us
            answer = ("error", None, "", _described(error))
        finally:
            box.append(answer)
            done.set()

    began = time.monotonic()
    thread = _start(work)
    in_time = done.wait(limit)
    if not in_time:
        child.end_children(thread.ident or 0)
        # The very programs that were ended may have been all that it waited for; its answer would still be late.
        return ("timeout", None, "", "no answer within %g s" % limit), time.monotonic() - began
    return box[0], time.monotonic() - began


def _covers(fact: str, name: str) -> bool:
    return name.startswith(fact) if fact.endswith(".") else name == fact


def line_of(name: str, answer: Answer, seconds: float) -> bytes:
    """One fact as a line of ASCII JSON; a value that JSON cannot hold makes the fact an error."""
    status, value, source, note = answer
    fact = dict(fact=name, status=status, value=value, source=source, seconds=round(seconds, 3), note=note)
    try:
        text = json.dumps(fact, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        fact.update(status="error", value=None, note="a value that JSON cannot hold: %s" % error)
        text = json.dumps(fact)
    if re.search(r"\\ud[89a-f]", text):
        text = json.dumps(_whole(fact))
    return text.encode("ascii") + b"\n"


def _whole(value: Any) -> Any:
    """``value`` with lone surrogates spelled out: undecodable bytes in file names, which strict readers refuse."""
    if isinstance(value, str):
        joined = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")  # pairs become one
        return joined.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole(item) for item in value]
    return value


def _emitter(out: IO[bytes]) -> Callable[[str, Answer, float], None]:
    lock = threading.Lock()

    def emit(name: str, answer: Answer, seconds: float) -> None:
        data = line_of(name, answer, seconds)
        with lock:
            try:
                out.write(data)
                out.flush()
            except (OSError, ValueError):
                _abandon()  # nobody reads any more

    return emit


def _private_output() -> IO[bytes]:
    """Standard output for facts alone; descriptor 1, which every library and program inherits, leads to 2."""
    sys.stdout.flush()
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out


def _watch_reader(out: IO[bytes], ended: threading.Event) -> None:
    """End the programs and this process when the reader of our facts is gone, however it died."""
    if child.WINDOWS:
        kernel32 = child.windows.WinDLL("kernel32")
        kernel32.OpenProcess.restype = child.windows.c_void_p
        parent = kernel32.OpenProcess(0x00100000, False, os.getppid())  # SYNCHRONIZE
        if parent:
            kernel32.WaitForSingleObject(child.windows.c_void_p(parent), 0xFFFFFFFF)
            ended.wait()  # a launcher may end while the pipe goes on; a closed pipe as well says that it is over
            _abandon()
        return
    import select

    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(out.fileno(), 0)  # nothing but what is always reported: a pipe without a reader
        if poll.poll():
            _abandon()


def _abandon() -> None:
    child.end_children()
    os._exit(1)


def _stopped(number: int, _frame: Any) -> None:
    child.end_children()
    os._exit(128 + number)


def _start(function: Callable[..., None], *args: Any) -> threading.Thread:
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread


def _described(error: BaseException) -> str:
    return "%s: %s" % (type(error).__name__, error)
