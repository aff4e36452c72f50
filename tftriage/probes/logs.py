"""TensorFlow's own log: a small reader, and how far the search for a GPU came according to it.

TensorFlow walks through fixed stages (driver, device, libraries, filters, device made) and logs most of them;
the wording and even the presence of a line depend on the version, so the absence of one proves something only
where that version prints it (``prints``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from tftriage.facts import Facts
from tftriage.probes.base import Evidence, Finding, probe, unknown
from tftriage.tables import Tables, parse

# Two forms, both measured: 1.x to 2.15 write a date, a level and the source file's path (very old Windows builds
# write no date); absl in 2.16+ packs level and date and writes the bare file name.
_CLASSIC = r"(?:\d{4}\S{3,8} \d\d:\d\d:\d\d\.\d+: )?(?P<level>[IWEF]) (?P<path>\S+\.(?:cc|h|cu)):\d+\] ?"
_ABSL = r"(?P<level2>[IWEF])\d{4} \d\d:\d\d:\d+\.\d+ +\d+ (?P<path2>\S+\.(?:cc|h|cu)):\d+\] ?"
_START = re.compile(rf"(?:^|(?<=[\s>])){_CLASSIC}|(?:^|(?<=[\s>])){_ABSL}")


SHOWN = 200  # characters of a line that are shown


class Line(msgspec.Struct, frozen=True):
    """One message. ``text`` holds its continuation lines too; ``level`` is I, W, E, F or empty (no log line)."""

    level: str
    file: str
    text: str

    def around(self, position: int) -> str:
        """The one line of the message that holds a position, cut to what fits a screen."""
        start = self.text.rfind("\n", 0, position) + 1
        shown = self.text[start:].split("\n", 1)[0].strip()
        return shown if len(shown) <= SHOWN else shown[: SHOWN - 1] + "…"


class Event(msgspec.Struct, frozen=True):
    """One stage that a log proves: its name, the line that says it, the whole message, the wording's named parts."""

    name: str
    shown: str
    line: Line
    parts: dict[str, str]


class Wording(msgspec.Struct, frozen=True):
    """How a stage is worded; ``first`` and ``last`` are the versions that print it at the default level."""

    event: str
    pattern: str
    first: str | None = None
    last: str | None = None


# The file column of each line is TensorFlow's gpu_device.cc, cuda_driver.cc, dso_loader.cc or cudart_stub.cc.
# Versions: phrases in the wheels' binaries, and runs of 1.13.1, 2.1, 2.3, 2.4, 2.5, 2.8, 2.10, 2.15, 2.21.
WORDINGS: tuple[Wording, ...] = (
    # The driver answered and named the card. Needs no CUDA library at all. A debug line from 2.6 on.
    Wording("found", r"Found device \d+ with properties", "0.9", "2.5"),
    # All filters passed and every library opened. An empty list after the colon means that none passed.
    Wording("added", r"Adding visible gpu devices?: *\d", "1.6", "2.5"),
    # The device exists. "/gpu:0" up to 1.3, "/device:GPU:0" later, other words again from 2.6 on.
    Wording(
        "created",
        r"Creat(?:ed|ing) (?:TensorFlow )?device \(?/(?:job:\S*?/)?(?:device:GPU|gpu):\d",
        "0.9",
        None,
    ),
    # What Python shows of the list: enough to know that TensorFlow accepted the card.
    Wording("listed", r"/physical_device:GPU:\d|/device:GPU:\d['\"]"),
    # The build refuses the card. The second form comes from XLA in 1.13.1, and then the process aborts.
    Wording(
        "capability",
        r"Ignoring (?:visible )?gpu device.*?compute capability (?P<capability>\d+\.\d+)\. "
        r"*The minimum required Cuda capability is (?P<minimum>\d+\.\d+)",
    ),
    Wording(
        "capability",
        r"insufficient compute capability: (?P<minimum>\d+\.\d+) required, device is (?P<capability>[\d.]+\d)",
    ),
    Wording(
        "capability",
        r"whose CUDA compute capability is not available|No supported cuda capabilities in binary",
    ),
    Wording("core-count", r"Ignoring (?:visible )?gpu device.*?(?:multiprocessor|core) count: *(?P<count>\d+)"),
    Wording("executor", r"whose executor is in invalid state(?:: *(?P<error>.*))?"),
    # cuInit said no. 303 is TensorFlow's own code for "the driver library cannot be opened".
    Wording(
        "cuinit",
        r"failed call to cuInit: *(?:INTERNAL: CUDA error: Failed call to cuInit: *)?(?P<error>[^\n]*)",
    ),
    Wording("cuinit", r"Call to cuInit results in (?P<error>[^\n]*)"),  # the same call, made by Numba
    Wording("skipping", r"Cannot dlopen some GPU libraries|Skipping registering GPU devices", "1.14", None),
    # 1.14 "dlopen", 1.15 to 2.10 "load"; a debug line later, so that 2.15 and newer name no library at all.
    Wording("missing", r"Could not (?:load dynamic|dlopen) library '(?P<library>[^']+)'", "1.14", "2.14"),
    Wording("missing", r"Couldn't open CUDA library (?P<library>[\w.]+)", "0.9", "1.3"),
    # The stub of libcudart prints this, whatever the driver does (measured with a driver and no runtime).
    Wording("stub", r"Could not find cuda drivers on your machine", "2.12", None),
    Wording("stub", r"Error loading CUDA libraries\. GPU will not be used"),
    # PTX of a newer CUDA than the driver knows is refused with the second name (CUDA driver API, error 222).
    Wording(
        "insufficient",
        r"driver version is insufficient for CUDA runtime version|cudaErrorInsufficientDriver|"
        r"CUDA_ERROR_UNSUPPORTED_PTX_VERSION|compiled with an unsupported toolchain",
    ),
    Wording("mismatch", r"kernel version \S+ does not match DSO version|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    Wording(
        "jit",
        r"not built with CUDA kernel binaries compatible with compute capability (?P<capability>\d+\.\d+)",
    ),
    # Code that was translated for a card this build knows; a newer one refuses it (seen with RTX 50xx, 2.16 to 2.20).
    Wording("bad-ptx", r"CUDA_ERROR_INVALID_PTX"),
    # Keras' own check before several GPUs are used.
    Wording(
        "short",
        r"we expect the following devices to be available: \[[^\]]*\]\. *"
        r"However this machine only has: *\[(?P<have>[^\]]*)\]",
    ),
    # TensorFlow 2.0 links cudart statically; a part of it then asks another copy for a function that it lacks.
    Wording("symbol", r"cuda\w+ symbol not found"),
    Wording("no-image", r"no kernel image is available|device kernel image is invalid"),
    Wording(
        "device",
        r"compute ?capability: *(?P<capability>\d+\.\d+)|Compute Capability (?P<capability2>\d+\.\d+)",
    ),
    Wording("device", r"major: (?P<major>\d+) minor: (?P<minor>\d+) memoryClockRate"),
)
_PATTERNS = tuple((w.event, re.compile(w.pattern, re.IGNORECASE | re.DOTALL)) for w in WORDINGS)

# Optional libraries: TensorFlow works on the GPU without them (TensorRT, the profiler, NVML, the compilers).
_OPTIONAL = re.compile(r"nvinfer|cupti|nvidia-ml|nvml|nvrtc|nccl|tensorrt", re.IGNORECASE)
_DRIVER = re.compile(r"^(?:nvcuda\.dll|libcuda\.so.*)$", re.IGNORECASE)
_CARD_NAME = re.compile(r"name: (.+?)(?:,| computeCapability:| major:|\n|$)")


def read_log(text: str) -> tuple[Line, ...]:
    """Split a log into messages. Lines before the first message stand alone, with an empty level.

    A message without a prefix continues the one before: ``Skipping registering GPU devices...`` belongs to
    ``Cannot dlopen some GPU libraries``.
    """
    return tuple(_messages(text.replace("\r\n", "\n").replace("\r", "\n")))


def _messages(text: str) -> Iterator[Line]:
    level, file, gathered = "", "", list[str]()
    for raw in text.split("\n"):
        start = _START.search(raw)
        if start is None and level:
            gathered.append(raw)
            continue
        if level:
            yield Line(level, file, "\n".join(gathered))
        if start is None:
            yield Line("", "", raw)
            continue
        level = start["level"] or start["level2"]
        file = re.split(r"[\\/]", start["path"] or start["path2"])[-1]
        gathered = [raw[start.end() :]]
    if level:
        yield Line(level, file, "\n".join(gathered))


def events(text: str) -> tuple[Event, ...]:
    """The stages a log proves, in order of the messages. Harmless lines (TensorRT, NUMA, factories) give none.

    A console of 80 columns breaks messages in the middle of a word; both ways of joining are tried.
    """
    found = list[Event]()
    for line in read_log(text):
        broken = "\n" in line.text
        ways = (line.text.replace("\n", " "), line.text.replace("\n", "")) if broken else (line.text,)
        for name, pattern in _PATTERNS:
            way, hits = next(((way, hits) for way in ways if (hits := list(pattern.finditer(way)))), ("", []))
            for hit in hits[:20]:
                shown = line.around(hit.start() if len(way) == len(line.text) else 0)
                parts = {key: value.strip() for key, value in hit.groupdict().items() if value}
                if "error" in parts and len(way) == len(line.text):  # what follows may be another program's line
                    parts["error"] = line.text[hit.start("error") :].split("\n", 1)[0].strip()
                if not _OPTIONAL.search(parts.get("library", "")):
                    found.append(Event(name, shown, line, parts))
    return tuple(found)


def first(seen: tuple[Event, ...], *names: str) -> Event | None:
    """The first event of one of these names."""
    return next((event for event in seen if event.name in names), None)


def prints(event: str, version: str | None) -> bool | None:
    """Whether a version prints a stage at the default level; ``None`` when the version is not known."""
    parsed = parse(version)
    if parsed is None:
        return None
    series = parse(f"{parsed.major}.{parsed.minor}")
    rows = [w for w in WORDINGS if w.event == event and w.first]
    return any(parse(w.first) <= series and (w.last is None or series <= parse(w.last)) for w in rows)  # type: ignore[operator]


def gpu_log(facts: Facts) -> str:
    """What the GPU check of the target printed, with its error; also when it was stopped at its limit."""
    fact = facts.get("tf.gpus")
    value = fact.value if fact is not None else None
    if not isinstance(value, dict):
        return ""
    return "\n".join(str(value[key]) for key in ("log", "error") if value.get(key))


def pasted(facts: Facts) -> str:
    """The text the person pasted, without terminal colours; empty when there is none."""
    value = facts.value("paste.text")
    text = value.get("text") if isinstance(value, dict) else None
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text) if isinstance(text, str) else ""


def missing_libraries(seen: tuple[Event, ...]) -> tuple[str, ...]:
    """The libraries that could not be opened, once each; the driver's own library is none of them."""
    names = dict.fromkeys(e.parts["library"] for e in seen if e.name == "missing")
    return tuple(name for name in names if not _DRIVER.match(name))


def card(seen: tuple[Event, ...]) -> tuple[str, str]:
    """Name and compute capability of the first card a log mentions; empty where it does not say."""
    name, capability = "", ""
    for event in seen:
        parts = event.parts
        capability = capability or parts.get("capability") or parts.get("capability2") or ""
        if not capability and "major" in parts:
            capability = f"{parts['major']}.{parts['minor']}"
        hit = _CARD_NAME.search(event.line.text) if event.name in ("found", "created", "capability") else None
        name = name or (hit[1].strip() if hit else "")
    return name, capability


@probe(
    "log_stage",
    answers=(
        "created",
        "cuinit-failed",
        "dlopen-failed",
        "ignored-capability",
        "ignored-core-count",
        "executor-invalid",
        "found-then-nothing",
        "second-missing",
        "symbol-missing",
        "no-gpu-lines",
    ),
    needs=("tf.gpus", "paste.text", "tf.package", "env.process"),
    fills=("error", "line", "missing", "capability", "minimum"),
)
def log_stage(facts: Facts, tables: Tables) -> Finding:
    """How far TensorFlow came on the way to a GPU, by its own log; the paste counts where the check is silent.

    Sample (TensorFlow 2.1.0, cuDNN missing)::

        2026-11-30 14:11:29.165236: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1555] Found device 0 with
        properties:
        pciBusID: 0000:01:00.0 name: GeForce GTX 1650 computeCapability: 7.5
        2026-11-30 14:11:29.166027: W tensorflow/stream_executor/platform/default/dso_loader.cc:55] Could not load
        dynamic library 'libcudnn.so.7'; dlerror: libcudnn.so.7: cannot open shared object file: No such file or
        directory
        2026-11-30 14:11:29.166032: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1592] Cannot dlopen some
        GPU libraries. Please make sure the missing libraries mentioned above are installed properly if you would like
        to use GPU. Skipping registering GPU devices...
    """
    checked = facts.value("tf.gpus")
    check: dict[str, Any] = checked if isinstance(checked, dict) else {}
    version = (facts.value("tf.package") or {}).get("version")
    for source, text in (("tf.gpus", gpu_log(facts)), ("paste.text", pasted(facts))):
        finding = _stage(events(text), check if source == "tf.gpus" else {}, version)
        if finding is not None:
            where = Evidence("log_stage.source", {"fact": source})
            return msgspec.structs.replace(finding, evidence=(*finding.evidence, where))
    if check.get("ok"):
        return Finding("no-gpu-lines", (Evidence("log_stage.none"), *_quiet(facts, version)))
    if check:
        reason = str(check.get("error") or check.get("signal") or "no answer")
        key = Evidence("log_stage.check-failed", {"error": reason}, "bad")
        return Finding("unknown", (key,), {"error": reason}, f"tf.gpus: {reason}")
    return unknown(facts, "tf.gpus")


def _stage(seen: tuple[Event, ...], check: dict[str, Any], version: str | None) -> Finding | None:
    """The stage that decides. Later stages first: a log that shows a device made has passed all others."""
    listed = bool(check.get("physical"))
    made = first(seen, "created") or first(seen, "listed")
    failed = first(seen, "insufficient")
    if (made or (listed and not first(seen, "capability", "core-count", "executor"))) and not failed:
        return _finding("created", made, level="ok")
    if event := first(seen, "capability"):
        parts = {key: event.parts[key] for key in ("capability", "minimum") if key in event.parts}
        return _finding("ignored-capability", event, **parts)
    if event := first(seen, "core-count"):
        return _finding("ignored-core-count", event, error=event.parts["count"])
    if event := first(seen, "executor"):
        return _finding("executor-invalid", event, error=event.parts.get("error", ""))
    missing = ", ".join(missing_libraries(seen))
    skipped, refused, stub = first(seen, "skipping"), first(seen, "cuinit"), first(seen, "stub")
    if skipped:
        return _finding("dlopen-failed", skipped, missing=missing or ("libcudart" if stub else ""))
    # "Could not load" of libcudart is printed at import too; where cuInit also fails, that is what stopped it.
    driver = next((e for e in seen if e.name == "missing" and _DRIVER.match(e.parts["library"])), None)
    if stopped := refused or driver:
        return _finding("cuinit-failed", stopped, error=stopped.parts.get("error") or stopped.shown)
    if missing:
        event = next(e for e in seen if e.name == "missing")
        return _finding("dlopen-failed", event, missing=missing)
    if stub:
        return _finding("dlopen-failed", stub, missing="libcudart")
    short = first(seen, "short")
    if short and re.search(r"/gpu:\d", short.parts["have"], re.IGNORECASE):
        return _finding("second-missing", short)
    if symbol := first(seen, "symbol"):
        return _finding("symbol-missing", symbol)
    event = failed or first(seen, "added") or first(seen, "found")
    if event is None:
        return None
    error = failed.shown if failed else str(check.get("error") or check.get("signal") or "")
    counts = Evidence("log_stage.absence-counts" if prints("created", version) else "log_stage.absence-open")
    finding = _finding("found-then-nothing", event, error=error)
    return msgspec.structs.replace(finding, evidence=(*finding.evidence, counts))


def _finding(answer: str, event: Event | None, level: str = "bad", **values: str) -> Finding:
    """A stage with the line that proves it."""
    line = event.shown if event else ""
    keys = {"created": "log_stage.line" if event else "log_stage.listed"}
    shown = Evidence(
        keys.get(answer, "log_stage.line"), {"line": line} if line else {}, "ok" if level == "ok" else "bad"
    )
    more = tuple(
        Evidence(f"log_stage.{name}", {name: values[name]}, "bad")
        for name in ("missing", "minimum")
        if values.get(name)
    )
    return Finding(answer, (shown, *more), {"line": line, **values})


def _quiet(facts: Facts, version: str | None) -> tuple[Evidence, ...]:
    """Why silence may mean nothing: the log is switched off, or this version prints less."""
    process = facts.value("env.process") or {}
    level = str(process.get("TF_CPP_MIN_LOG_LEVEL", "0"))
    if level not in ("", "0"):
        return (Evidence("log_stage.switched-off", {"level": level}),)
    if prints("found", version) is False:
        return (Evidence("log_stage.prints-less", {"version": str(version)}),)
    return ()
