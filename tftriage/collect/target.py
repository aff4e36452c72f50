"""What the target interpreter is, what it holds, and what happens when it imports TensorFlow: always in a child."""

import json
import os
import re
import time
from typing import Any, Dict, List, Optional, Tuple

from . import child
from .launch import Context, changed, context, died, ending, launch, shortened, stack_of, start, value_of
from .registry import Absent, Failed, Skipped, collector

_imported = {}  # type: Dict[str, Dict[str, Any]]  # context -> value of tf.import
_listed = {}  # type: Dict[str, Dict[str, Any]]  # context -> value of tf.gpus


def attempt(args: Dict[str, Any]) -> Dict[str, Any]:
    """Import a module in a child and return the value of ``tf.import``; any failure of the import is a value, too."""
    until = until_of(args)
    where = context(args)
    module = args.get("module") or "tensorflow"
    value = {
        "module": module, "ok": False, "seconds": 0.0, "version": None, "file": None, "error_type": None, "error": None,
        "traceback": "", "context": _context(args),
    }  # type: Dict[str, Any]  # fmt: skip
    begun = start(where, until)
    if begun.plain is None:
        answer = launch(told(where), "import", [module, _dump(until)], _left(until))
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


def until_of(args: Dict[str, Any]) -> float:
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


def told(where: Context, gpu: bool = False) -> Context:
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
    until = until_of(args)
    where = context(args)
    begun = start(where, until)
    value = dict(begun.value, start=" ".join(begun.flags) or "plain")
    if value["platform"] == "win32" and value["version"] >= [3, 8] and not begun.flags:
        try:
            value["dll_directories"] = value_of(launch(where, "hooks", [], min(20.0, _left(until)), ["-S"]))
        except (Absent, Failed):
            pass  # the plain start was fine; what its hooks add stays unknown
    return value, where.python


def _look(args: Dict[str, Any], task: str) -> Tuple[Dict[str, Any], str]:
    until = until_of(args)
    where = context(args)
    begun = start(where, until)
    budget = repr(max(1.0, _left(until) * 0.4))
    module = args.get("module") or "tensorflow"
    answer = launch(where, task, [budget, module], _left(until), begun.flags)
    return value_of(answer), where.python


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
    until = until_of(args)
    where = context(args)
    _refuse(_imported.get(where.key))
    if start(where, until).plain is not None:
        raise Skipped("import-failed")
    answer = launch(told(where, gpu=True), task, ["tensorflow", _dump(until)], _left(until))
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
    until = until_of(args)
    where = context(args)
    names = [str(name) for name in args.get("libraries") or []]
    if not names:
        raise Skipped("no-names")
    flags = start(where, until).flags
    found: List[Dict[str, Any]] = []
    while len(found) < len(names):
        answer = launch(where, "libraries", names[len(found) :], _left(until), flags)
        new = [line["opened"] for line in answer.lines if "opened" in line]
        found += new
        if len(found) < len(names):
            if not any("opening" in line for line in answer.lines):
                value_of(answer)
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
    until = until_of(args)
    where = told(context(args, python))
    module = args.get("module") or "tensorflow"
    given = {"kernel": args["kernel"], "module": module, "limit": max(1.0, _left(until) - 4.0)}
    answer = launch(where, "kernel", [json.dumps(given)], _left(until), source="kernel_inside.py")
    if answer.begun is None and not answer.result.timed_out:
        start(where, until)  # raises what is wrong with the interpreter
    value = value_of(answer)
    log = value.pop("log")
    lines = set(log.splitlines())
    # A kernel's own terminal repeats what went to the notebook; what it says besides (why it died) is evidence.
    rest = [line for line in answer.log.splitlines() if line.strip() and line not in lines]
    value["log"] = shortened(log + "".join(line + "\n" for line in rest))
    value["stack"] = stack_of(value["log"])
    code = value.pop("exit")
    ended = ending(answer._replace(lines=[], result=answer.result._replace(exit=code, timed_out=False), log=""))
    value.update(exit=ended["exit"], signal=ended["signal"])
    value["context"] = dict(_context(args), kind="kernel", kernel=args["kernel"])
    return value, "kernel %s, started by jupyter_client of %s" % (args["kernel"], python)
