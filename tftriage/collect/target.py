"""What the target interpreter is, what it holds, and what happens when it imports TensorFlow: always in a child."""

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
from .registry import Absent, Failed, Skipped, collector

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
_imported = {}  # type: Dict[str, Dict[str, Any]]  # context -> value of tf.import
_listed = {}  # type: Dict[str, Dict[str, Any]]  # context -> value of tf.gpus


def context(args: Dict[str, Any], python: Optional[str] = None) -> Context:
    """The interpreter, environment and folder that a request names; the collector's own where it says nothing."""
    python = python or args.get("python") or sys.executable
    env = child.fresh_environment() if args.get("fresh") else dict(os.environ)
    changes = args.get("env") or {}
    env = changed(env, changes)
    if args.get("with_path"):
        name = next((name for name in env if name.upper() == "PATH"), "PATH") if child.WINDOWS else "PATH"
        env[name] = os.pathsep.join(list(args["with_path"]) + ([env[name]] if env.get(name) else []))
    parts = [python, args.get("cwd"), sorted(changes.items()), bool(args.get("fresh")), args.get("with_path") or []]
    return Context(python, env, args.get("cwd"), json.dumps(parts), tuple(changes))


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
    log = _shortened((child.decode(chatter) + child.decode(result.err)).replace("\r\n", "\n"))
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


def _shortened(text: str) -> str:
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
            return Start(flags, _value(answer), plain)
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


def _value(answer: Answer) -> Any:
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


def attempt(args: Dict[str, Any]) -> Dict[str, Any]:
    """Import a module in a child and return the value of ``tf.import``; any failure of the import is a value, too."""
    until = _until(args)
    where = context(args)
    module = args.get("module") or "tensorflow"
    value = {
        "module": module, "ok": False, "seconds": 0.0, "version": None, "file": None, "error_type": None, "error": None,
        "traceback": "", "context": _context(args),
    }  # type: Dict[str, Any]  # fmt: skip
    begun = start(where, until)
    if begun.plain is None:
        answer = launch(_told(where), "import", [module, _dump(until)], _left(until))
        value.update(next((line["value"] for line in answer.lines if "value" in line), {}))
    else:  # the person's start does not get as far as the import: that is the failure
        answer = begun.plain
        value.update(error_type="StartFailed", error="Python starts only with %s" % " ".join(begun.flags))
    value.update(ending(answer), log=answer.log, stack=stack_of(answer.log))
    value["error"] = value["error"] if value["ok"] or value["error"] is not None else died(answer)
    value["seconds"] = value["seconds"] or round(answer.result.seconds, 3)
    if value["timed_out"] and not value["stack"]:
        value["stack"] = _last_imports(where, until)
    if module == "tensorflow":
        _imported[where.key] = value
    return value


def _last_imports(where: Context, until: float) -> str:
    """Where no stack can be had (Windows, before our file is read): what Python -v says last."""
    left = until - time.monotonic()
    if left < 2:
        return ""
    try:
        result = child.run([where.python, "-v", "-B", "-c", "pass"], min(8.0, left), where.env, where.cwd)
    except OSError:
        return ""
    return "\n".join(child.decode(result.err).splitlines()[-20:])


def _until(args: Dict[str, Any]) -> float:
    """When the child has to be over: before the fact's deadline, so that a hang comes back with its stack."""
    limit = float(args.get("limit") or 60.0)
    return time.monotonic() + limit - min(3.0, limit * 0.15)


def _left(until: float) -> float:
    return max(0.5, until - time.monotonic())


def _dump(until: float) -> str:
    """When the child gives up by itself, as time.time(): its own start may have taken long."""
    left = _left(until)
    return repr(round(time.time() + left - min(2.0, left * 0.15), 3))


def _context(args: Dict[str, Any]) -> Dict[str, Any]:
    changes = dict(args.get("env") or {})
    if args.get("with_path"):
        changes.setdefault("PATH", os.pathsep.join(list(args["with_path"]) + ["${PATH}"]))
    return {"kind": "fresh" if args.get("fresh") else "here", "kernel": None, "env_changes": changes}


def _told(where: Context, gpu: bool = False) -> Context:
    """An environment in which TensorFlow says what it does, and leaves the GPU's memory to the program that uses it."""
    wanted = {"TF_CPP_MIN_LOG_LEVEL": "0"}
    if gpu:
        # Since 2.11 the names of libraries that cannot be opened are only in the verbose log.
        wanted.update(TF_CPP_VMODULE="dso_loader=1", TF_FORCE_GPU_ALLOW_GROWTH="true")
    kept = {name: text for name, text in wanted.items() if name not in where.changed}
    return where._replace(env=changed(where.env, kept))


@collector("target.interpreter", 90.0)
def interpreter(args: Dict[str, Any]) -> Tuple[Dict[str, Any], str]:
    """The interpreter itself: version, bits, environment, module path, and which start answered."""
    until = _until(args)
    where = context(args)
    begun = start(where, until)
    value = dict(begun.value, start=" ".join(begun.flags) or "plain")
    if value["platform"] == "win32" and value["version"] >= [3, 8] and not begun.flags:
        try:
            value["dll_directories"] = _value(launch(where, "hooks", [], min(20.0, _left(until)), ["-S"]))
        except (Absent, Failed):
            pass  # the plain start was fine; what its hooks add stays unknown
    return value, where.python


def _look(args: Dict[str, Any], task: str) -> Tuple[Dict[str, Any], str]:
    until = _until(args)
    where = context(args)
    begun = start(where, until)
    budget = repr(max(1.0, _left(until) * 0.4))
    answer = launch(where, task, [budget], _left(until), begun.flags)
    return _value(answer), where.python


@collector("target.packages", 90.0)
def packages(args: Dict[str, Any]) -> Tuple[Dict[str, Any], str]:
    """Installed distributions by normalised name."""
    value, python = _look(args, "packages")
    return value, "*.dist-info and *.egg-info on the module path of " + python


@collector("tf.package", 90.0)
def package(args: Dict[str, Any]) -> Tuple[Dict[str, Any], str]:
    """The TensorFlow that lies on the disk. Without any, the list of distributions is empty."""
    value, python = _look(args, "package")
    return value, "files on the module path of " + python


@collector("tf.record", 120.0)
def record(args: Dict[str, Any]) -> Tuple[Dict[str, Any], str]:
    """TensorFlow's files against its RECORD."""
    value, _ = _look(args, "record")
    return value, "RECORD of " + value["distribution"]


@collector("tf.import", 180.0)
def tf_import(args: Dict[str, Any]) -> Tuple[Dict[str, Any], str]:
    """``import tensorflow``, or the module that the request names."""
    value = attempt(args)
    return value, "import %s in %s" % (value["module"], context(args).python)


def _gpu_task(args: Dict[str, Any], task: str, value: Dict[str, Any]) -> Dict[str, Any]:
    until = _until(args)
    where = context(args)
    _refuse(_imported.get(where.key))
    if start(where, until).plain is not None:
        raise Skipped("import-failed")
    answer = launch(_told(where, gpu=True), task, ["tensorflow", _dump(until)], _left(until))
    for line in answer.lines:
        for part in ("partial", "value"):
            value.update(line.get(part, {}))
    _refuse(value.get("not_imported"))
    if value.get("no_gpu"):
        raise Skipped("no-gpu-listed")
    value.update(ending(answer), log=answer.log)
    value["error"] = value["error"] or died(answer)
    value["ok"] = value["ok"] and died(answer) is None
    return value


def _refuse(imported: Optional[Dict[str, Any]]) -> None:
    if imported is not None and not imported["ok"]:
        if re.search(r"No module named '?tensorflow'?$", str(imported.get("error"))):
            raise Absent("no-tensorflow")
        raise Skipped("import-failed")


@collector("tf.gpus", 180.0)
def gpus(args: Dict[str, Any]) -> Tuple[Dict[str, Any], str]:
    """The GPUs that TensorFlow lists, with the whole log of its start."""
    value = dict.fromkeys(("built_with_cuda", "is_gpu_available", "error"))  # type: Dict[str, Any]
    value.update(ok=False, physical=[])
    value = _gpu_task(args, "gpus", value)
    _listed[context(args).key] = value
    return value, "tf.test.is_gpu_available, tf.config.list_physical_devices"


@collector("tf.operation", 180.0)
def operation(args: Dict[str, Any]) -> Tuple[Dict[str, Any], str]:
    """A small matrix product on the GPU: a listed GPU is no proof."""
    listed = _listed.get(context(args).key)
    if listed is not None and listed["ok"] and not listed["physical"]:
        raise Skipped("no-gpu-listed")
    value = dict.fromkeys(("device", "result", "correct", "error"))  # type: Dict[str, Any]
    value.update(ok=False, expected=0.0, seconds=0.0)
    return _gpu_task(args, "operation", value), "tf.matmul on /device:GPU:0"


@collector("tf.libraries", 90.0)
def libraries(args: Dict[str, Any]) -> Tuple[Dict[str, Any], str]:
    """Open libraries by name in a child of the target; one that kills the child is said to have done so."""
    until = _until(args)
    where = context(args)
    names = [str(name) for name in args.get("libraries") or []]
    if not names:
        raise Skipped("no-names")
    flags = start(where, until).flags
    found = []  # type: List[Dict[str, Any]]
    while len(found) < len(names):
        answer = launch(where, "libraries", names[len(found) :], _left(until), flags)
        new = [line["opened"] for line in answer.lines if "opened" in line]
        found += new
        if len(found) < len(names):
            if not any("opening" in line for line in answer.lines):
                _value(answer)
                raise Failed("no answer")
            found.append({"name": names[len(found)], "code": None, "path": None, "error": died(answer)})
    return {"opened": found}, "LoadLibraryExW(name, 0, 8)" if child.WINDOWS else "dlopen"


@collector("jupyter.import", 180.0)
def jupyter_import(args: Dict[str, Any]) -> Tuple[Dict[str, Any], str]:
    """The import as a notebook's cell: jupyter_client of the server's Python starts the kernel and runs it."""
    if not args.get("kernel"):
        raise Skipped("no-kernel-named")
    python = args.get("server_python") or args.get("python")
    if not python:
        raise Skipped("no-server-python")
    until = _until(args)
    where = _told(context(args, python))
    module = args.get("module") or "tensorflow"
    given = {"kernel": args["kernel"], "module": module, "limit": max(1.0, _left(until) - 4.0)}
    answer = launch(where, "kernel", [json.dumps(given)], _left(until), source="kernel_inside.py")
    if answer.begun is None and not answer.result.timed_out:
        start(where, until)  # raises what is wrong with the interpreter
    value = _value(answer)
    log = value.pop("log")
    lines = set(log.splitlines())
    # A kernel's own terminal repeats what went to the notebook; what it says besides (why it died) is evidence.
    rest = [line for line in answer.log.splitlines() if line.strip() and line not in lines]
    value["log"] = _shortened(log + "".join(line + "\n" for line in rest))
    value["stack"] = stack_of(value["log"])
    code = value.pop("exit")
    ended = ending(answer._replace(lines=[], result=answer.result._replace(exit=code, timed_out=False), log=""))
    value.update(exit=ended["exit"], signal=ended["signal"])
    value["context"] = dict(_context(args), kind="kernel", kernel=args["kernel"])
    return value, "kernel %s, started by jupyter_client of %s" % (args["kernel"], python)
