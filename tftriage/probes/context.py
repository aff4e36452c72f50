"""Before the machine is searched: whose fault, which Python, does it happen again, can this build use a GPU."""

from __future__ import annotations

import ntpath
import posixpath
import re
from typing import Any

import msgspec

from tftriage.facts import Facts
from tftriage.probes.base import Evidence, Finding, probe, unknown
from tftriage.probes.logs import events, pasted
from tftriage.tables import Tables, parse

_FRAME = re.compile(r'File "(?P<file>[^"]+)"|^(?P<cell>[^\s"<][^"\n]*?\.py)(?: in |:\d+, in |:\d+)', re.MULTILINE)
_PACKAGE = re.compile(r"[\\/](?:site|dist)-packages[\\/](?P<package>[\w.]+)(?P<rest>[^\s\"']*)")
_WHILE = re.compile(r"DLL load failed (?:with error code -?\d+ )?while importing (?P<module>[\w.]+)")
_LOADING = re.compile(r"Error loading \s*[\"'](?P<path>[^\"']+)[\"']")
_STATEMENT = re.compile(
    r"^[\s\d>\-|]*(?:from (?P<base>[\w.]+) import (?P<name>\w+|\*)|import (?P<module>[\w.]+))", re.MULTILINE
)
_NO_MODULE = re.compile(r"(?:No module named|module) ['\"]?(?P<module>[\w.]+)")
# A warning shows a file and a line of code as a traceback does, and is no failure.
_WARNING = re.compile(r"^.*:\d+: \w*Warning: .*\n(?:  .*\n)?", re.MULTILINE)
_NATIVE = re.compile(r"^_?pywrap_|^tensorflow|^_?tf_|^libtensorflow", re.IGNORECASE)
_TENSORFLOW_WORDS = re.compile(
    r"_pywrap_tensorflow|native TensorFlow runtime|Using TensorFlow backend|"
    r"tensorflow[\\/](?:core|python|stream_executor)[\\/]"
)
_SITE = re.compile(
    r"^(?P<prefix>.*?)(?:[\\/]lib(?:64)?[\\/](?:python\d[\d.]*[\\/])?(?:site|dist)-packages)(?=[\\/]|$)",
    re.IGNORECASE,
)
_USER_SITE = re.compile(
    r"[\\/](?:Python(?P<windows>\d{2,3})[\\/]site-packages|\.local[\\/]lib[\\/]python(?P<posix>\d\.\d+))[\\/]",
    re.IGNORECASE,
)

# Packages that belong to TensorFlow: an error below one of them happened inside its import or its use.
OURS = frozenset({"tensorflow", "keras", "tensorboard"})


class Frame(msgspec.Struct, frozen=True):
    """One file of a traceback and the package it belongs to (empty outside site-packages)."""

    path: str
    package: str


def frames(text: str) -> tuple[Frame, ...]:
    """The files of a traceback, outermost first, in the plain and in the notebook form."""
    found = list[Frame]()
    for hit in _FRAME.finditer(text):
        path = (hit["file"] or hit["cell"]).replace("\\\\", "\\")  # logs and JSON double the backslashes
        package = _PACKAGE.search(path)
        found.append(Frame(path, package_of(package["package"] + package["rest"]) if package else ""))
    return tuple(found)


def package_of(inside: str) -> str:
    """The package of a path below site-packages: ``tensorflow`` for ``tensorflow_core/python/x.py``."""
    parts = [part for part in re.split(r"[\\/]", inside) if part]
    name = parts[0].split(".")[0].lower() if parts else ""
    if name.startswith("tensorflow"):
        return "tensorflow"
    return "protobuf" if parts[:2] == ["google", "protobuf"] else name


def blamed(text: str) -> str:
    """The module a failed load names: in the message, by the file it could not load, or in the last import."""
    if hits := _WHILE.findall(text):
        return str(hits[-1])
    if paths := _LOADING.findall(text):
        inside = _PACKAGE.search(paths[-1])
        return package_of(inside["package"]) if inside else re.split(r"[\\/]", paths[-1])[-1]
    # An error text may itself contain "import", so only what stands before the last error line counts.
    head = re.split(r"^\w*(?:Error|Exception)\b", text, flags=re.MULTILINE)
    statements = list(_STATEMENT.finditer("\n".join(head[:-1])))
    if not statements:
        return ""
    last = statements[-1]
    base = last["module"] or (last["name"] if last["name"].startswith("_") else last["base"])
    if not base.startswith("."):
        return base
    stack = frames(text)  # a relative import is of the package whose file holds it
    return f"{stack[-1].package}{base}" if stack else base.lstrip(".")


@probe(
    "whose_fault",
    answers=("tensorflow", "other-package", "protobuf-binary"),
    needs=("paste.text", "paste.symptom", "tf.import"),
    fills=("module",),
)
def whose_fault(facts: Facts, tables: Tables) -> Finding:
    """Which package's file failed to load.

    Sample (Windows, Python 3.7; protobuf's compiled part does not load)::

        File "G:\\\\project\\\\lib\\\\site-packages\\\\tensorflow\\\\python\\\\__init__.py", line 52, in <module>
          from tensorflow.core.framework.graph_pb2 import *
        File "G:\\\\project\\\\lib\\\\site-packages\\\\google\\\\protobuf\\\\descriptor.py", line 47, in <module>
          from google.protobuf.pyext import _message
        ImportError: DLL load failed: The specified procedure could not be found.
    """
    text = _WARNING.sub("", pasted(facts))
    imported: dict[str, Any] = facts.value("tf.import") or {}
    asked = str(imported.get("module") or "tensorflow")
    captures = (facts.value("paste.symptom") or {}).get("captures") or {}
    finding = _whose(text, asked, str(captures.get("module") or ""))
    if finding is None and imported:
        # Nothing in the text tells: what the target's own attempt says is about the same import.
        finding = _whose(str(imported.get("traceback") or ""), asked, "")
        return finding or _answer("tensorflow", asked, "whose_fault.import-tried")
    if finding is None:
        return unknown(facts, "tf.import") if text else unknown(facts, "paste.text", "tf.import")
    own = str(imported.get("traceback") or "")
    if finding.answer == "other-package" and blamed(own) == finding.values["module"]:
        return _answer("tensorflow", blamed(own), "whose_fault.same-in-import")
    return finding


def _whose(text: str, asked: str, captured: str) -> Finding | None:
    """Judge one text; ``None`` when it names no module."""
    stack = frames(text)
    through = any(frame.package in OURS for frame in stack)
    module = blamed(text) or captured
    if module.split(".")[-1] == "_message" or module.startswith("google.protobuf.pyext"):
        return _answer("protobuf-binary", "google.protobuf.pyext._message", "whose_fault.protobuf")
    if module and (_NATIVE.search(module) or module == asked or module.startswith(asked + ".")):
        return _answer("tensorflow", module, "whose_fault.tensorflow")
    if through:
        inner = module or stack[-1].package or "tensorflow"
        return _answer("tensorflow", inner, "whose_fault.inside")
    if any(_NATIVE.search(name) for name in _NO_MODULE.findall(text)):
        return _answer("tensorflow", asked, "whose_fault.words")
    if module or (stack and stack[-1].package):
        # The package of the innermost frame tells more than a helper module it was loading.
        last = stack[-1].package if stack else ""
        return _answer("other-package", module or last, "whose_fault.other", package=last or module)
    if _TENSORFLOW_WORDS.search(text) or events(text):
        return _answer("tensorflow", asked, "whose_fault.words")
    return None


def _answer(answer: str, module: str, key: str, **params: str) -> Finding:
    level = "info" if answer == "tensorflow" else "bad"
    return Finding(answer, (Evidence(key, {"module": module, **params}, level),), {"module": module})  # type: ignore[arg-type]


def same_path(one: str, other: str) -> bool:
    """Whether two spellings name one place: Windows ignores case and slashes; ``~`` stands for a home."""
    windows = any("\\" in path or path[1:2] == ":" for path in (one, other))
    module = ntpath if windows else posixpath
    left, right = (module.normcase(module.normpath(path)) for path in (one, other))
    for short, long in ((left, right), (right, left)):
        if short.startswith("~"):  # IPython writes ~\Anaconda3\lib\... for paths below the home
            tail = short[1:]
            return bool(tail) and str(long).endswith(tail)
    return bool(left == right)


def site_prefix(path: str) -> str:
    """The environment a file of a traceback belongs to, or nothing outside site-packages."""
    hit = _SITE.match(path)
    return hit["prefix"] if hit and not _USER_SITE.search(path) else ""


@probe(
    "target_matches",
    answers=("same", "other"),
    needs=("paste.text", "target.interpreter"),
    fills=("traceback_python", "target_python"),
)
def target_matches(facts: Facts, tables: Tables) -> Finding:
    """Whether the pasted traceback ran in the environment that is being examined.

    Sample (a notebook; IPython shortens the home folder)::

        ~\\\\anaconda3\\\\lib\\\\site-packages\\\\tensorflow\\\\python\\\\pywrap_tensorflow.py in <module>
             63   try:
        ---> 64     from tensorflow.python._pywrap_tensorflow_internal import *
    """
    target = facts.value("target.interpreter")
    text = pasted(facts)
    if not text or not target:
        return unknown(facts, "paste.text", "target.interpreter")
    stack = frames(text)
    shown = str(target.get("executable") or target.get("prefix"))
    prefixes = list(dict.fromkeys(prefix for frame in stack if (prefix := site_prefix(frame.path))))
    own = [str(target[key]) for key in ("prefix", "base_prefix") if target.get(key)]
    own += [prefix for folder in target.get("site_packages") or [] if (prefix := site_prefix(str(folder)))]
    if prefixes:
        match = next((p for p in prefixes if any(same_path(p, mine) for mine in own)), None)
        return _compared("same" if match else "other", match or prefixes[0], shown)
    users = [hit for frame in stack if (hit := _USER_SITE.search(frame.path))]
    version = target.get("version") or []
    if users and len(version) >= 2:
        # A user site serves every Python of that version: only the version can differ.
        digits = users[0]["windows"]
        theirs = f"{digits[0]}.{digits[1:]}" if digits else users[0]["posix"]
        same = theirs == f"{version[0]}.{version[1]}"
        return _compared("same" if same else "other", f"Python {theirs}", shown)
    reason = "paste.text: no file of an environment in it"
    return Finding("unknown", (Evidence("target_matches.no-path"),), {"target_python": shown}, reason)


def _compared(answer: str, theirs: str, ours: str) -> Finding:
    values = {"traceback_python": theirs, "target_python": ours}
    return Finding(answer, (Evidence(f"target_matches.{answer}", values, "ok" if answer == "same" else "bad"),), values)


@probe(
    "reproduce",
    answers=("works", "fails", "hangs", "killed", "not-installed"),
    needs=("tf.import",),
    fills=("error", "seconds", "signal", "module"),
)
def reproduce(facts: Facts, tables: Tables) -> Finding:
    """What the import does in a child process of the target.

    Sample (TensorFlow 2.1.0 whose native library was cut off; no traceback at all)::

        lib.sh: line 9:  7019 Bus error   v37-210/bin/python -c 'import tensorflow as tf; print(tf.__version__)'
        [exit 135, 0.3 s]
    """
    tried = facts.value("tf.import")
    if not isinstance(tried, dict):
        return unknown(facts, "tf.import")
    module = str(tried.get("module") or "tensorflow")
    seconds = f"{float(tried.get('seconds') or 0.0):.1f}"
    error = ": ".join(str(tried[key]) for key in ("error_type", "error") if tried.get(key))
    base = {"module": module, "seconds": seconds}
    if tried.get("timed_out"):
        stack = [line for line in str(tried.get("stack") or "").splitlines() if "File " in line]
        where = (
            Evidence("reproduce.stack", {"line": stack[0].strip()}, "bad") if stack else Evidence("reproduce.no-stack")
        )
        return Finding("hangs", (Evidence("reproduce.hangs", base, "bad"), where), {**base, "error": error})
    if tried.get("ok"):
        if not tried.get("file") and not tried.get("version"):
            values = {**base, "error": f"{module} has no file: only an empty folder of that name was found"}
            return Finding("fails", (Evidence("reproduce.namespace", {"module": module}, "bad"),), values)
        params = {**base, "version": str(tried.get("version") or "?")}
        return Finding("works", (Evidence("reproduce.works", params, "ok"),), base)
    signal = str(tried.get("signal") or "")
    if signal or not error:
        signal = signal or f"exit {tried.get('exit')}"
        values = {**base, "signal": signal}
        return Finding("killed", (Evidence("reproduce.killed", values, "bad"),), {**values, "error": error or signal})
    absent = re.search(r"No module named '?([\w.]+)'?", error)
    if absent and absent[1] == module:
        return Finding("not-installed", (Evidence("reproduce.not-installed", base, "bad"),), {**base, "error": error})
    first_line = error.strip().splitlines()[0]
    values = {**base, "error": first_line}
    return Finding("fails", (Evidence("reproduce.fails", values, "bad"),), values)


# Names under which only CPU builds were published for Windows or Linux (measured: is_cuda_build = False).
CPU_DISTRIBUTIONS = frozenset({"tensorflow-cpu", "tensorflow-intel", "intel-tensorflow", "tensorflow-macos"})
# conda's plan of an update: the build's name says gpu before the arrow and something else behind it.
_EXCHANGED = re.compile(r"^\s*_?t(?:ensor)?flow\S*:? .*gpu\S* *--> *(?!\S*gpu)\S.*$", re.MULTILINE)
NATIVE_WINDOWS_END = "2.11"  # the first version without a GPU build for native Windows (TensorFlow's install page)


@probe(
    "build_gpu",
    answers=("gpu-build", "cpu-only", "native-windows-2.11plus", "exchanged"),
    needs=("tf.package", "tf.gpus", "system.os", "paste.text"),
    fills=("tf_version", "distribution"),
)
def build_gpu(facts: Facts, tables: Tables) -> Finding:
    """Whether this TensorFlow was built with CUDA at all.

    Sample (``tf.test.is_built_with_cuda()`` in the target, and the installed distribution)::

        {"built_with_cuda": false, ...}   {"distributions": [{"name": "tensorflow", "version": "1.15.5", ...}], ...}
    """
    package = facts.value("tf.package") or {}
    built = (facts.value("tf.gpus") or {}).get("built_with_cuda")
    distributions = package.get("distributions") or []
    version = package.get("version") or next((d.get("version") for d in distributions), None)
    names = [f"{d.get('name')} {d.get('version')}" for d in distributions]
    values = {"tf_version": str(version or ""), "distribution": ", ".join(names)}
    parsed, limit = parse(version), parse(NATIVE_WINDOWS_END)
    windows = (facts.value("system.os") or {}).get("system") == "Windows"
    if windows and built is not True and parsed is not None and limit is not None and parsed >= limit:
        return Finding("native-windows-2.11plus", (Evidence("build_gpu.native-windows", values, "bad"),), values)
    if built is not None:
        answer = "gpu-build" if built else "cpu-only"
        return Finding(answer, (Evidence(f"build_gpu.says-{answer}", values, "ok" if built else "bad"),), values)
    plan = _EXCHANGED.search(pasted(facts))
    if plan is not None:  # conda's package tensorflow-gpu is an empty name, so the names below would not tell
        line = " ".join(plan[0].split())
        return Finding("exchanged", (Evidence("build_gpu.exchanged", {"line": line}, "bad"),), values)
    if not package:
        return unknown(facts, "tf.package", "tf.gpus")
    verdicts = {_distribution_gpu(d, package, facts) for d in distributions}
    if len(verdicts) != 1 or None in verdicts:
        reason = "tf.package: the names do not tell whether the build has CUDA"
        return Finding("unknown", (Evidence("build_gpu.names-open", values),), values, reason)
    answer = "gpu-build" if verdicts == {True} else "cpu-only"
    return Finding(
        answer,
        (Evidence(f"build_gpu.name-{answer}", values, "ok" if answer == "gpu-build" else "bad"),),
        values,
    )


def _distribution_gpu(distribution: dict[str, Any], package: dict[str, Any], facts: Facts) -> bool | None:
    """Whether a distribution is a GPU build, by its name and version; ``None`` where the name does not tell.

    Measured on the Windows wheels: ``tensorflow`` 1.15.0 is the GPU build, 1.15.2 to 1.15.5 and 2.0.x are CPU
    builds of 48 to 55 MB, from 2.1 on it is the same file as ``tensorflow-gpu``.
    """
    name = str(distribution.get("name") or "").lower().replace("_", "-")
    version = parse(distribution.get("version"))
    if (package.get("build_info") or {}).get("cuda_version"):
        return True
    if name in CPU_DISTRIBUTIONS:
        return False
    if name == "tensorflow-gpu":
        return True
    if name != "tensorflow" or version is None or not facts.ok("system.os"):
        return None
    if version < parse("1.15"):  # type: ignore[operator]
        return False
    if version < parse("2.1"):  # type: ignore[operator]
        later = version >= parse("1.15.2")  # type: ignore[operator]
        return (not later) if facts.value("system.os").get("system") == "Windows" else None
    return True


@probe(
    "gpu_hidden",
    answers=("visible", "hidden-process", "hidden-user", "hidden-kernel"),
    needs=("env.process", "env.user", "jupyter.kernels", "env.machine", "gpu.devices", "target.interpreter"),
    fills=("value", "where"),
)
def gpu_hidden(facts: Facts, tables: Tables) -> Finding:
    """Whether CUDA_VISIBLE_DEVICES hides every card, here, in new consoles or in a kernel.

    Sample (TensorFlow then says CUDA_ERROR_NO_DEVICE although the driver was opened)::

        {"PATH": "...", "CUDA_VISIBLE_DEVICES": "-1"}
    """
    if not facts.ok("env.process"):
        return unknown(facts, "env.process")
    devices = (facts.value("gpu.devices") or {}).get("devices")
    count = len(devices) if devices else None
    places = [("hidden-process", "process", (facts.value("env.process") or {}).get("CUDA_VISIBLE_DEVICES"))]
    for fact, where in (("env.user", "user"), ("env.machine", "machine")):
        entry = ((facts.value(fact) or {}).get("variables") or {}).get("CUDA_VISIBLE_DEVICES") or {}
        # An empty value in the registry never reaches a process: Windows drops it.
        places.append(("hidden-user", where, entry.get("value") or None))
    prefix = str((facts.value("target.interpreter") or {}).get("prefix") or "")
    for kernel in facts.value("jupyter.kernels") or []:
        interpreter = str(kernel.get("interpreter") or "")
        if not prefix or not interpreter or of_prefix(interpreter, prefix):
            env = kernel.get("env") or {}
            places.append(("hidden-kernel", str(kernel.get("name")), env.get("CUDA_VISIBLE_DEVICES")))
    for answer, where, value in places:
        if hides(value, count):
            values = {"value": str(value), "where": where}
            key = "gpu_hidden.hidden-machine" if where == "machine" else f"gpu_hidden.{answer}"
            return Finding(answer, (Evidence(key, values, "bad"),), values)
    set_here = places[0][2]
    shown = (
        Evidence("gpu_hidden.set", {"value": str(set_here)}) if set_here is not None else Evidence("gpu_hidden.unset")
    )
    return Finding("visible", (msgspec.structs.replace(shown, level="ok"),))


def hides(value: Any, count: int | None) -> bool:
    """Whether a CUDA_VISIBLE_DEVICES value leaves no card: CUDA stops at the first entry that names none."""
    if value is None:
        return False
    entry = str(value).split(",")[0].strip()
    if entry.upper().startswith(("GPU-", "MIG-")):
        return False
    if not entry.isdecimal():
        return True
    return count is not None and int(entry) >= count


def of_prefix(interpreter: str, prefix: str) -> bool:
    """Whether an interpreter is that of a prefix itself, not of an environment nested in it (conda's ``envs``)."""
    module = ntpath if "\\" in interpreter or interpreter[1:2] == ":" else posixpath
    folder = module.dirname(interpreter)
    places = (prefix, module.join(prefix, "bin"), module.join(prefix, "Scripts"))
    return bool(interpreter) and any(same_path(folder, place) for place in places)
