"""The driver, the card, and a real operation on it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tftriage.facts import Facts
from tftriage.probes.base import Evidence, Finding, probe, unknown
from tftriage.probes.context import hides
from tftriage.probes.logs import Event, card, events, first, gpu_log, pasted
from tftriage.tables import Build, DriverFloor, System, Tables, parse

# cuInit's answers that say something certain (CUDA driver API; 100 and 803 also seen in runs, and 303 is
# TensorFlow's own code for a driver library that cannot be opened).
CU_NO_DEVICE, CU_MISMATCH, CU_INSUFFICIENT, TF_NO_LIBRARY = 100, 803, 35, 303
_CODES = {"NO_DEVICE": CU_NO_DEVICE, "SYSTEM_DRIVER_MISMATCH": CU_MISMATCH, "(303)": TF_NO_LIBRARY}
_NVIDIA = re.compile(r"nvidia|10de|geforce|quadro|tesla|titan|\b[gr]tx\b", re.IGNORECASE)
# How NVML and nvidia-smi say that no driver runs, and that two versions of one are mixed.
_NO_DRIVER_NOTE = re.compile(r"NOT_LOADED|couldn't communicate with the NVIDIA driver", re.IGNORECASE)
_MISMATCH_NOTE = re.compile(r"MISMATCH", re.IGNORECASE)
# A driver serves every later minor release of a CUDA major version from 11 on (NVIDIA, CUDA Compatibility);
# for 10.x and older the release's own row counts.
FIRST_MINOR_COMPATIBLE = 11


def table_system(facts: Facts) -> System | None:
    """Which rows of the builds table apply; WSL is Linux."""
    name = (facts.value("system.os") or {}).get("system")
    return name if name in ("Windows", "Linux") else None


def is_wsl(facts: Facts) -> bool:
    """Whether the target runs under WSL: the driver is then the one of Windows."""
    return bool((facts.value("system.os") or {}).get("wsl"))


def build_of(facts: Facts, tables: Tables) -> Build | None:
    """The builds row of the installed TensorFlow."""
    system = table_system(facts)
    return tables.build((facts.value("tf.package") or {}).get("version"), system) if system else None


def floor_of(build: Build | None, facts: Facts, tables: Tables) -> DriverFloor | None:
    """The oldest driver for a build. WSL uses the rows of Windows, whose driver it is.

    From CUDA 11 on the floor of the major version (row ``11.x``) is enough, where the table has it.
    """
    system: System | None = "Windows" if is_wsl(facts) else table_system(facts)
    version = parse(build.cuda) if build else None
    if build is None or version is None or system is None:
        return None
    exact = tables.driver_floor(build.cuda, system)
    if version.major < FIRST_MINOR_COMPATIBLE:
        return exact
    return tables.driver_floor(f"{version.major}.x", system) or exact


@probe(
    "driver_state",
    answers=("ok", "no-gpu", "no-driver", "driver-too-old", "library-mismatch"),
    needs=("gpu.devices", "gpu.driver", "tf.gpus", "system.os", "tf.package", "env.process", "paste.text"),
    fills=("driver", "floor", "cuda", "error"),
)
def driver_state(facts: Facts, tables: Tables) -> Finding:
    """Whether an NVIDIA driver works here and is new enough for this TensorFlow's CUDA.

    Sample (Linux; the runtime is CUDA 10.1, the driver knows 9.1)::

        RuntimeError: cudaGetDevice() failed. Status: CUDA driver version is insufficient for CUDA runtime version
    """
    smi = facts.value("gpu.devices") or {}
    driver = facts.value("gpu.driver") or {}
    seen = events(gpu_log(facts))
    build = build_of(facts, tables)
    floor = floor_of(build, facts, tables)
    values = {
        "driver": str(smi.get("driver") or ""),
        "floor": floor.driver if floor else "",
        "cuda": (build.cuda if build else None) or "",
    }
    code = _cu_code(driver, seen)
    if event := first(seen, "insufficient"):
        return _state("driver-too-old", "driver_state.tf-insufficient", values, error=event.shown)
    if code == CU_INSUFFICIENT:
        return _state("driver-too-old", "driver_state.cu-insufficient", values, error="cuInit 35")
    note = facts["gpu.devices"].note if "gpu.devices" in facts else ""
    mixed, noted = first(seen, "mismatch"), _MISMATCH_NOTE.search(note) is not None
    if code == CU_MISMATCH or mixed or noted:
        error = mixed.shown if mixed else (note if noted else f"cuInit {code}")
        return _state("library-mismatch", "driver_state.mismatch", values, error=error)
    worked = first(seen, "found", "added", "created", "capability", "core-count")
    if smi.get("devices") or worked or code == 0:
        return _driver_there(facts, values, worked, code, floor)
    return _driver_missing(facts, values, code)


def _cu_code(driver: dict[str, Any], seen: tuple[Event, ...]) -> int | None:
    """cuInit's answer: our own call's, else the one TensorFlow logged."""
    if driver.get("cu_init") is not None:
        return int(driver["cu_init"])
    event = first(seen, "cuinit")
    text = event.parts.get("error", "") if event else ""
    return next((code for word, code in _CODES.items() if word in text), None)


def _state(answer: str, key: str, values: dict[str, str], **more: str) -> Finding:
    level = "ok" if answer == "ok" else "bad"
    params = {name: value for name, value in {**values, **more}.items() if value}
    filled = {**values, **{name: more[name] for name in ("error",) if name in more}}
    return Finding(answer, (Evidence(key, params, level),), filled)  # type: ignore[arg-type]


def _driver_there(
    facts: Facts, values: dict[str, str], worked: Event | None, code: int | None, floor: DriverFloor | None
) -> Finding:
    """A card answered: is the driver new enough, and does CUDA itself start?"""
    have, want = parse(values["driver"]), parse(values["floor"])
    if have is not None and want is not None and have < want:
        return _state("driver-too-old", "driver_state.below-floor", values)
    cuda = str((facts.value("gpu.devices") or {}).get("cuda_driver") or _cuda_version(facts))
    if have is None and _cuda_too_old(cuda, values["cuda"]):
        return _state("driver-too-old", "driver_state.cuda-below", values, error=f"CUDA {cuda}")
    if worked is not None:
        return _state("ok", "driver_state.tf-found", values, line=worked.shown)
    if code not in (None, 0) and not (code == CU_NO_DEVICE and _hidden(facts)):
        error = f"cuInit {code}"
        finding = _state("unknown", "driver_state.cu-failed", values, error=error)
        return Finding("unknown", finding.evidence, finding.values, f"gpu.driver: {error}")
    library = facts.value("gpu.driver")
    if isinstance(library, dict) and library.get("library") is None:
        return _state("no-driver", "driver_state.no-libcuda", values)
    if have is None:
        return _state("ok", "driver_state.starts", values)
    if not values["floor"]:
        return _state("ok", "driver_state.no-floor", values)
    return _state("ok", "driver_state.above-floor", values)


def _cuda_version(facts: Facts) -> str:
    return str((facts.value("gpu.driver") or {}).get("cuda_version") or "")


def _cuda_too_old(have: str, want: str) -> bool:
    """Whether the newest CUDA a driver knows is below the build's; from 11 on only the major version counts."""
    left, right = parse(have), parse(want)
    if left is None or right is None:
        return False
    return left.major < right.major if right.major >= FIRST_MINOR_COMPATIBLE else left < right


def _hidden(facts: Facts) -> bool:
    """cuInit answers 100 as well when CUDA_VISIBLE_DEVICES hides every card."""
    return hides((facts.value("env.process") or {}).get("CUDA_VISIBLE_DEVICES"), None)


def _driver_missing(facts: Facts, values: dict[str, str], code: int | None) -> Finding:
    """Nothing answered: no card, no driver, or no way to tell. The cards on the bus decide where they are known."""
    driver = facts.value("gpu.driver")
    note = facts["gpu.devices"].note if "gpu.devices" in facts else ""
    library = driver.get("library") if isinstance(driver, dict) else None
    cards = driver.get("cards") if isinstance(driver, dict) else None
    nvidia = any(_NVIDIA.search(f"{c.get('vendor')} {c.get('name')}") for c in cards or [])
    error = str((driver or {}).get("error") or note or (f"cuInit {code}" if code is not None else ""))
    gone = isinstance(driver, dict) and library is None
    broken = isinstance(driver, dict) and driver.get("loads") is False
    silent = _NO_DRIVER_NOTE.search(note) is not None
    stopped = silent or code in (CU_NO_DEVICE, TF_NO_LIBRARY) or facts.value("gpu.devices") is not None
    if not (gone or broken or stopped):
        if insufficient := first(events(pasted(facts)), "insufficient"):
            return _state("driver-too-old", "driver_state.tf-insufficient", values, error=insufficient.shown)
        if code is None and (worked := first(events(pasted(facts)), "found", "added", "created", "capability")):
            return _state("ok", "driver_state.pasted-found", values, line=worked.shown)
        if code is None:
            return unknown(facts, "gpu.driver", "gpu.devices")
        failed = _state("unknown", "driver_state.cu-failed", values, error=error)
        return Finding("unknown", failed.evidence, failed.values, f"gpu.driver: cuInit {code}")
    if code == CU_NO_DEVICE and _hidden(facts):
        reason = "gpu.driver: CUDA_VISIBLE_DEVICES hides every card, so cuInit cannot tell"
        return Finding("unknown", (Evidence("driver_state.hidden"),), values, reason)
    if facts.value("gpu.devices") is not None and not nvidia:
        return _state("no-gpu", "driver_state.nvml-empty", values)  # the driver runs and drives nothing
    if is_wsl(facts):
        # The bus of a WSL machine does not show the card; the driver library comes from Windows.
        own = library is not None and "/wsl/" not in str(library)
        return _state(
            "no-driver",
            "driver_state.wsl-own-driver" if own else "driver_state.wsl-none",
            values,
            error=error,
        )
    if nvidia:
        shown = ", ".join(str(c.get("name")) for c in cards or [])
        return _state("no-driver", "driver_state.card-without-driver", values, error=error, cards=shown)
    if cards is not None:
        shown = ", ".join(str(c.get("name")) for c in cards)
        return _state("no-gpu", "driver_state.other-cards" if shown else "driver_state.no-cards", values, cards=shown)
    if code == CU_NO_DEVICE and not gone:
        return _state("no-gpu", "driver_state.cu-no-device", values, error=error)
    return _state("no-driver", "driver_state.cards-not-seen", values, error=error)


# Best first: a machine with several cards is served when one of them fits.
_RANK = ("fits", "too-new", "core-count", "build-lacks-arch", "too-old")


@probe(
    "card_fits",
    answers=("fits", "too-old", "too-new", "build-lacks-arch", "core-count"),
    needs=("gpu.devices", "gpu.driver", "tf.gpus", "tf.package", "system.os", "paste.text"),
    fills=("gpu", "capability", "minimum", "tf_version"),
)
def card_fits(facts: Facts, tables: Tables) -> Finding:
    """Whether this build has code for this card: machine code of the same major version, or PTX to compile.

    Sample (TensorFlow 2.1.0)::

        Ignoring visible gpu device (device: 0, name: GeForce GTX 660, pci bus id: 0000:01:00.0, compute
        capability: 3.0) with Cuda compute capability 3.0. The minimum required Cuda capability is 3.5.
    """
    version = str((facts.value("tf.package") or {}).get("version") or "")
    seen = events(gpu_log(facts))
    said = _said(seen, version) or _said(events(pasted(facts)), version)
    if said is not None:
        return said
    build = build_of(facts, tables)
    cards = _cards(facts, tables, seen)
    told = () if cards else (Evidence("card_fits.pasted"),)
    cards = cards or _cards(facts, tables, events(pasted(facts)))
    if not cards:
        return unknown(facts, "gpu.devices", "gpu.driver", "tf.gpus")
    known = [(name, capability) for name, capability in cards if parse(capability)]
    if not known:
        shown = {"gpu": cards[0][0], "tf_version": version}
        reason = f"gpu.devices: the compute capability of {cards[0][0] or 'the card'} is not known"
        return Finding("unknown", (Evidence("card_fits.capability-unknown", shown),), shown, reason)
    if build is None or not (build.machine_code or build.ptx):
        shown = {"gpu": known[0][0], "capability": known[0][1], "tf_version": version}
        reason = f"tf.package: which cards TensorFlow {version or '?'} has code for is not in the tables"
        return Finding("unknown", (Evidence("card_fits.build-unknown", shown),), shown, reason)
    judged = [_judge(name, capability, build, version) for name, capability in known]
    best = min(judged, key=lambda finding: _RANK.index(finding.answer))
    return msgspec.structs.replace(best, evidence=(*best.evidence, *told))


def _said(seen: tuple[Event, ...], version: str) -> Finding | None:
    """What TensorFlow itself said about the card, when it made no device."""
    name, capability = card(seen)
    values = {"gpu": name, "capability": capability, "minimum": "", "tf_version": version}
    if event := first(seen, "jit", "bad-ptx"):
        values["capability"] = event.parts.get("capability") or capability
        return Finding("too-new", (Evidence("card_fits.tf-jit", {"line": event.shown}, "bad"),), values)
    if event := first(seen, "no-image"):
        return Finding("build-lacks-arch", (Evidence("card_fits.no-image", {"line": event.shown}, "bad"),), values)
    if first(seen, "created", "listed"):
        return None
    event = first(seen, "capability")
    if event is not None and "minimum" in event.parts:
        values |= {"capability": event.parts["capability"], "minimum": event.parts["minimum"]}
        return Finding("too-old", (Evidence("card_fits.tf-refused", {"line": event.shown}, "bad"),), values)
    if event := first(seen, "core-count"):
        values["minimum"] = event.parts["count"]
        return Finding("core-count", (Evidence("card_fits.core-count", {"line": event.shown}, "bad"),), values)
    return None


def _cards(facts: Facts, tables: Tables, seen: tuple[Event, ...]) -> list[tuple[str, str]]:
    """Names and capabilities of the NVIDIA cards: from NVML, else TensorFlow's log, else the bus."""
    logged = card(seen)
    listed = [
        (str(d.get("name") or ""), str(d.get("capability") or ""))
        for d in (facts.value("gpu.devices") or {}).get("devices") or []
    ]
    if not listed and any(logged):
        listed = [logged]
    if not listed:
        bus = (facts.value("gpu.driver") or {}).get("cards") or []
        listed = [(str(c.get("name")), "") for c in bus if _NVIDIA.search(f"{c.get('vendor')} {c.get('name')}")]
    filled = list[tuple[str, str]]()
    for name, capability in listed:
        row = tables.gpu(name) if name and not capability else None
        by_log = logged[1] if len(listed) == 1 else ""
        filled.append((name, capability or by_log or (row.capability if row else "")))
    return filled


def capability_number(text: str) -> tuple[int, int] | None:
    """``7.5``, ``sm_75``, ``compute_80``, ``90a`` or ``120`` as (major, minor)."""
    hit = re.fullmatch(r"(?:sm_|compute_)?(\d+)(?:\.(\d+)|(\d))[a-z]?", text.strip().lower())
    return (int(hit[1]), int(hit[2] or hit[3])) if hit else None


def _judge(name: str, capability: str, build: Build, version: str) -> Finding:
    """One card against one build. Machine code runs on its own major version only, PTX on anything newer."""
    have = capability_number(capability) or (0, 0)
    code = [number for text in build.machine_code if (number := capability_number(text))]
    ptx = [number for text in build.ptx if (number := capability_number(text))]
    lowest = capability_number(build.capability_min or "") or min([*code, *ptx], default=(0, 0))
    newest = max([*code, *ptx], default=(0, 0))
    values = {
        "gpu": name,
        "capability": capability,
        "minimum": f"{lowest[0]}.{lowest[1]}",
        "tf_version": version,
    }
    params = {key: value for key, value in values.items() if value} | {"newest": f"{newest[0]}.{newest[1]}"}
    if any(major == have[0] and minor <= have[1] for major, minor in code):
        return Finding("fits", (Evidence("card_fits.machine-code", params, "ok"),), values)
    compiles = any(number <= have for number in ptx)
    if have < lowest:
        return Finding("too-old", (Evidence("card_fits.below-minimum", params, "bad"),), values)
    if compiles and have > max(code, default=(0, 0)):
        return Finding("too-new", (Evidence("card_fits.ptx-only", params, "bad"),), values)
    if compiles:
        # An older card between two listed ones (5.0 in 2.1): compiled at the first start, then kept.
        return Finding("fits", (Evidence("card_fits.jit-once", params),), values)
    return Finding("build-lacks-arch", (Evidence("card_fits.no-code", params, "bad"),), values)


@probe(
    "gpu_operation",
    answers=("right", "wrong-result", "fails", "not-on-gpu"),
    needs=("tf.operation",),
    fills=("error", "device", "seconds"),
)
def gpu_operation(facts: Facts, tables: Tables) -> Finding:
    """Whether a matrix product on the GPU gives the right number. A listed GPU is no proof.

    Sample (TensorFlow 1.13.1, the cuBLAS handle cannot be made)::

        2026-11-30 14:30:02.118411: E tensorflow/stream_executor/cuda/cuda_blas.cc:510] failed to create
        cublas handle: CUBLAS_STATUS_NOT_INITIALIZED
        InternalError: Blas GEMM launch failed : a.shape=(64, 64), b.shape=(64, 64), m=64, n=64, k=64
    """
    ran = facts.value("tf.operation")
    if not isinstance(ran, dict):
        return unknown(facts, "tf.operation")
    device, seconds = str(ran.get("device") or ""), f"{float(ran.get('seconds') or 0.0):.1f}"
    values = {"device": device, "seconds": seconds}
    if ran.get("timed_out"):
        error = f"no answer within {seconds} s"
        return Finding("fails", (Evidence("gpu_operation.no-answer", values, "bad"),), {**values, "error": error})
    if not ran.get("ok"):
        lines = str(ran.get("error") or ran.get("signal") or f"exit {ran.get('exit')}").strip().splitlines()
        values["error"] = lines[0]
        return Finding("fails", (Evidence("gpu_operation.fails", values, "bad"),), values)
    if "GPU" not in device.upper():
        return Finding("not-on-gpu", (Evidence("gpu_operation.elsewhere", values, "bad"),), values)
    if ran.get("correct") is None:
        return Finding("unknown", (Evidence("gpu_operation.no-result"),), values, "tf.operation: no result came back")
    numbers = {"result": str(ran.get("result")), "expected": str(ran.get("expected"))}
    if not ran["correct"]:
        return Finding("wrong-result", (Evidence("gpu_operation.wrong", numbers, "bad"),), values)
    return Finding("right", (Evidence("gpu_operation.right", {**values, **numbers}, "ok"),), values)
