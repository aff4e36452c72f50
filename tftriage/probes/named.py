"""Which file does the error name, where the machine itself could not be looked at?

What the target's own attempt printed counts more than the pasted text, and a fact about the machine more than both:
these probes stand behind those that look.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tftriage import loader
from tftriage.facts import Facts
from tftriage.probes.base import UNKNOWN, Evidence, Finding, probe, unknown
from tftriage.probes.logs import Event, events, first, gpu_log, missing_libraries, pasted
from tftriage.tables import Tables, parse

_FILE = r"(?P<library>(?:lib)?[\w+-]+(?:\.\d+)*\.(?:dll|pyd|so(?:\.\d+)*))"
# TensorFlow's own check of 1.4 to 2.1, ctypes, cuDNN's loader, and the dynamic loader of Linux.
_NAMES = (
    re.compile(rf"Could not (?:find(?: the DLL\(s\)| module)?|load(?: library)?|locate) *['\"]?{_FILE}", re.IGNORECASE),
    re.compile(rf"(?:ImportError|OSError): *{_FILE}: cannot open shared object file", re.IGNORECASE),
)
_NO_CUDNN = re.compile(r"Could not find cuDNN|Unable to load cuDNN DSO", re.IGNORECASE)
_CHILD = re.compile(
    rf"Could not load dynamic library '(?P<asked>[^']+)'; dlerror: *{_FILE}: cannot open shared object", re.IGNORECASE
)
_OPENED = re.compile(rf"successfully opened (?:dynamic|CUDA) library {_FILE}", re.IGNORECASE)
_STORE = re.compile(r"PythonSoftwareFoundation\.Python\.3|[\\/]WindowsApps[\\/]")
_NOT_RUNNING = re.compile(
    r"driver does not appear to be running|nvidia/version does not exist|couldn't communicate with the NVIDIA driver",
    re.IGNORECASE,
)
CHECKED_SINCE = "1.4"  # from here on self_check.py looks for cudart and cuDNN by name before the import


def attempts(facts: Facts) -> Iterator[tuple[str, str]]:
    """(fact, text) of what TensorFlow said: in our own attempts first, then what the person pasted."""
    tried = facts.value("tf.import") or {}
    if tried and not tried.get("ok"):
        yield "tf.import", "\n".join(str(tried[key]) for key in ("log", "traceback", "error") if tried.get(key))
    ran = facts.value("tf.operation") or {}
    own = [gpu_log(facts), *(str(ran[key]) for key in ("log", "error") if ran.get(key) and not ran.get("ok"))]
    yield "tf.gpus", "\n".join(text for text in own if text)
    yield "paste.text", pasted(facts)


def source(fact: str) -> Evidence:
    """The line that says where the words come from: our own attempt, or the pasted text."""
    return Evidence("said.pasted" if fact == "paste.text" else "said.own", {"fact": fact})


@probe(
    "missing_file",
    answers=("cuda", "cuda-part", "cudart-only", "cudnn", "all", "part-and-cudnn", "child", "driver", "vc-runtime"),
    needs=("tf.import", "tf.gpus", "tf.operation", "paste.text"),
    fills=("missing", "dll"),
)
def missing_file(facts: Facts, tables: Tables) -> Finding:
    """Which library the error or the log names as missing, and how much of CUDA beside it was opened.

    Samples: ``ImportError: Could not find 'cudnn64_7.dll'. TensorFlow requires that this DLL be installed …`` and
    ``Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared object file``
    """
    for fact, text in attempts(facts):
        found = _judge(text)
        if found is not None:
            answer, names, opened = found
            lines = [Evidence("named.missing", {"dll": ", ".join(names)}, "bad")]
            lines += [Evidence("named.opened", {"dll": ", ".join(opened)}, "ok")] if opened else []
            return Finding(answer, (*lines, source(fact)), {"missing": ", ".join(names), "dll": names[0]})
    if not pasted(facts):
        return unknown(facts, "paste.text")
    reason = "paste.text: no library is named in it"
    return Finding(UNKNOWN, (Evidence("named.none"),), reason=reason)


def _judge(text: str) -> tuple[str, list[str], list[str]] | None:
    """The answer for one text, the libraries it misses and those it opened; ``None`` when it names none."""
    seen, flat = events(text), " ".join(text.split())
    logged = list(missing_libraries(seen))
    names = logged + [hit["library"] for pattern in _NAMES for hit in pattern.finditer(flat)]
    names = [name for name in dict.fromkeys(names) if loader.library(name).kind not in ("optional", "other")]
    opened = [hit["library"] for hit in _OPENED.finditer(flat)]
    child = next((h["library"] for h in _CHILD.finditer(flat) if h["library"].lower() != h["asked"].lower()), None)
    if child is not None:
        return "child", [child], opened
    no_cudnn = _NO_CUDNN.search(flat) is not None
    stub = first(seen, "stub") is not None
    kinds = {loader.library(name).kind for name in names} | ({"cudnn"} if no_cudnn else set())
    if not names and (no_cudnn or stub):
        names = ["cuDNN" if no_cudnn else "libcudart"]
    if "cuda" in kinds or (stub and not kinds):
        return _cuda(names, kinds, opened, seen, bool(logged) or stub), names, opened
    return next(((kind, names, opened) for kind in ("cudnn", "driver", "vc-runtime") if kind in kinds), None)


def _cuda(names: list[str], kinds: set[str], opened: list[str], seen: tuple[Event, ...], logged: bool) -> str:
    """How much of CUDA is missing. ``cudart`` alone, before a card was looked for, is printed without one, too."""
    runtime = [name for name in names if loader.library(name).family == "cudart" or name == "libcudart"]
    looked = first(seen, "found", "added", "skipping") or any(loader.library(n).kind == "driver" for n in opened)
    if runtime == names and logged and not looked and "cudnn" not in kinds:
        return "cudart-only"
    whole = bool(runtime) or not logged
    if "cudnn" in kinds:
        return "all" if whole else "part-and-cudnn"
    return "cuda" if whole else "cuda-part"


@probe(
    "load_imports",
    answers=("cuda-unchecked", "cuda-checked", "runtime"),
    needs=("tf.package", "system.os"),
    fills=("tf_version", "missing"),
)
def load_imports(facts: Facts, tables: Tables) -> Finding:
    """What the native module of this version loads while it is imported: CUDA, or only the Visual C++ runtime.

    Sample (import table of tensorflow_gpu-1.12.0-cp36-cp36m-win_amd64.whl, and of 2.1.0)::

        cublas64_90.dll cudart64_90.dll cudnn64_7.dll cufft64_90.dll curand64_90.dll cusolver64_90.dll nvcuda.dll
        msvcp140.dll vcruntime140.dll vcruntime140_1.dll
    """
    package = facts.value("tf.package") or {}
    listed = package.get("distributions") or []
    version = package.get("version") or next((one.get("version") for one in listed), None)
    if parse(version) is None:
        return unknown(facts, "tf.package")
    if (facts.value("system.os") or {"system": "Windows"}).get("system") != "Windows":
        reason = "system.os: the import tables in the knowledge base are those of Windows"
        return Finding(UNKNOWN, (Evidence("named.not-windows"),), {"tf_version": str(version)}, reason)
    row = tables.build(version, "Windows")
    cpu = any(one.get("name") in ("tensorflow", "tensorflow-cpu") for one in listed)
    own = parse(version) < parse("2.1") and cpu  # type: ignore[operator]
    if row is not None and row.imports and not own:
        libraries = ", ".join(row.imports)
        params = {"tf_version": str(version), "dll": libraries}
        checked = parse(version) >= parse(CHECKED_SINCE)  # type: ignore[operator]
        answer = "cuda-checked" if checked else "cuda-unchecked"
        return Finding(answer, (Evidence("named.imports-cuda", params),), {"tf_version": params["tf_version"]})
    params = {"tf_version": str(version), "dll": ", ".join((row and row.vc_runtime) or ("msvcp140.dll",))}
    values = {"tf_version": params["tf_version"], "missing": params["dll"]}
    return Finding("runtime", (Evidence("named.imports-runtime", params),), values)


@probe(
    "python_store",
    answers=("store", "other"),
    needs=("target.interpreter", "paste.text"),
    fills=("python_version",),
)
def python_store(facts: Facts, tables: Tables) -> Finding:
    """Whether Python comes from the Microsoft Store: it does not search PATH for libraries.

    Sample: ``…\\\\Packages\\\\PythonSoftwareFoundation.Python.3.10_qbz5n2kfra8p0\\\\LocalCache\\\\…``
    """
    python = facts.value("target.interpreter") or {}
    values = {"python_version": ".".join(str(part) for part in (python.get("version") or ())[:2])}
    if python.get("store") is not None:
        answer = "store" if python["store"] else "other"
        line = Evidence(f"named.{'is' if python['store'] else 'no'}-store", {}, "bad" if python["store"] else "ok")
        return Finding(answer, (line,), values)
    if _STORE.search(pasted(facts)):
        return Finding("store", (Evidence("named.is-store", {}, "bad"), source("paste.text")), values)
    return unknown(facts, "target.interpreter")


@probe(
    "cuinit_code",
    answers=("file-missing", "no-device", "not-running", "mismatch", "insufficient", "other"),
    needs=("tf.gpus", "paste.text"),
    fills=("error",),
)
def cuinit_code(facts: Facts, tables: Tables) -> Finding:
    """What stands behind "failed call to cuInit", and whether the log says that the driver does not run at all.

    Sample (Linux without the kernel module)::

        E tensorflow/stream_executor/cuda/cuda_driver.cc:271] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no
        CUDA-capable device is detected
        I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:156] kernel driver does not appear to be running on this
        host (HOST): /proc/driver/nvidia/version does not exist
    """
    for fact, text in attempts(facts):
        seen = events(text)
        event = first(seen, "cuinit")
        if event is None:
            continue
        error = event.parts.get("error") or event.shown
        answer = _code(error, " ".join(text.split()), seen)
        params = {"error": error[:160]}
        return Finding(answer, (Evidence(f"named.cuinit-{answer}", params, "bad"), source(fact)), params)
    return unknown(facts, "tf.gpus") if not pasted(facts) else _no_call()


def _no_call() -> Finding:
    return Finding(UNKNOWN, (Evidence("named.no-cuinit"),), reason="paste.text: no call to cuInit in it")


def _code(error: str, flat: str, seen: tuple[Event, ...]) -> str:
    if first(seen, "mismatch"):
        return "mismatch"
    if first(seen, "insufficient") or "INSUFFICIENT" in error:
        return "insufficient"
    if re.search(r"\(303\)", error):
        return "file-missing"
    if _NOT_RUNNING.search(flat):
        return "not-running"
    told = "NO_DEVICE" in error or "no CUDA-capable device" in error or re.search(r"\b100\b", error)
    return "no-device" if told else "other"
