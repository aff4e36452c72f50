"""A GPU that works but idles: four layers, hardware, driver, supply and TensorFlow, each with its own question.

Units: utilisation and CPU load in percent, disk load 0 to 1, power in watts, temperature in °C.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tftriage.facts import Facts
from tftriage.probes.base import Evidence, Finding, probe, unknown
from tftriage.probes.logs import pasted
from tftriage.tables import Tables

# NVML's utilisation is the share of time with any kernel running. A training loop that is fed keeps it well above;
# below 70 % the card has nothing at all to do for a third of the time, whatever the kernels do.
LOW_MEAN = 70.0
# Below this peak nothing but the desktop draws: no computation ran while we looked.
IDLE_PEAK = 10.0
# Fewer readings than this say nothing about a pattern in time.
MIN_SAMPLES = 4
# Cards protect themselves somewhere between 83 and 95 °C, by model; from 90 on every one of them slows down.
HOT = 90.0
# A power limit is normal at full clock; it is a brake only when the clock falls clearly below what the card can do.
SLOW_CLOCK = 0.7
# Compute runs in P0 to P2 (P3 and P4 on some laptops); from P5 on the card saves power.
LOW_PSTATE = 5
# A reading counts as "under load" from here; an idle card may sleep in any state and at any link width.
UNDER_LOAD = 20.0
# One Python thread that prepares data fills one core; 90 % allows for the sampling's own gaps.
FULL_CORE = 90.0
FULL_DISK = 0.8
# In pulses: at least every fifth reading near idle and every fifth near full.
PULSE_LOW, PULSE_HIGH, PULSE_SHARE = 20.0, 60.0, 0.2

# Programs that draw the desktop hold the GPU on every machine and are no load.
DESKTOP = re.compile(
    r"^(?:dwm|explorer|csrss|winlogon|searchhost|searchapp|searchui|startmenuexperiencehost|shellexperiencehost|textinputhost|"
    r"applicationframehost|systemsettings|lockapp|nvcontainer|nvidia.*|chrome|msedge|msedgewebview2|firefox|code|teams|"
    r"slack|xorg|xwayland|gnome-shell|kwin.*|plasmashell|compiz|windowsterminal|insufficient permissions)(?:\.exe)?$",
    re.IGNORECASE,
)
_PYTHON = re.compile(r"^(?:python|pythonw|pypy|jupyter|ipython)[\d.]*(?:\.exe)?$", re.IGNORECASE)
_GENERIC_RNN = re.compile(r"Layer (\S+) will not use cuDNN kernels?\b", re.IGNORECASE)
_ON_CPU = re.compile(r"Executing op \w+ in device \S*device:CPU:0")


def _numbers(rows: Iterable[dict[str, Any]], key: str) -> list[float]:
    return [float(row[key]) for row in rows if row.get(key) is not None]


def _mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def busiest(sample: dict[str, Any]) -> list[dict[str, Any]]:
    """The readings of the card with the highest mean utilisation: on a laptop the other one only draws."""
    cards: dict[Any, list[dict[str, Any]]] = {}
    for row in sample.get("gpu") or []:
        cards.setdefault(row.get("index"), []).append(row)
    return max(cards.values(), key=lambda rows: _mean(_numbers(rows, "utilization")), default=[])


def _base(process: dict[str, Any]) -> str:
    """The file name of a process: Windows gives whole paths in places."""
    return re.split(r"[\\/]", str(process.get("name") or ""))[-1]


def computing(processes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The processes that are not part of the desktop, each process once."""
    seen = {process.get("pid"): process for process in processes}
    return [process for process in seen.values() if _base(process) and not DESKTOP.match(_base(process))]


def _on_gpu(sample: dict[str, Any]) -> list[dict[str, Any]]:
    return computing(p for p in sample.get("processes") or [] if p.get("on_gpu"))


def _sampled(facts: Facts) -> tuple[dict[str, Any], list[float]] | None:
    """The sample and its card's utilisation, or nothing when there are too few readings."""
    sample = facts.value("usage.sample")
    if not isinstance(sample, dict):
        return None
    load = _numbers(busiest(sample), "utilization")
    return (sample, load) if len(load) >= MIN_SAMPLES else None


def _no_sample(facts: Facts) -> Finding:
    if not facts.ok("usage.sample"):
        return unknown(facts, "usage.sample")
    reason = "usage.sample: too few readings of a GPU"
    return Finding("unknown", (Evidence("usage.few-readings"),), {}, reason)


@probe("usage_low", answers=("low", "busy", "no-load"), needs=("usage.sample",), fills=("mean", "peak"))
def usage_low(facts: Facts, tables: Tables) -> Finding:
    """Whether the GPU was idle while something should have computed on it.

    Sample (one reading)::

        {"t": 0.5, "index": 0, "utilization": 12, "memory_utilization": 3, "power": 41.2,
         "clock_sm": 1410, "pstate": "P2"}
    """
    sampled = _sampled(facts)
    if sampled is None:
        return _no_sample(facts)
    sample, load = sampled
    values = {"mean": f"{_mean(load):.0f}", "peak": f"{max(load):.0f}"}
    if _mean(load) >= LOW_MEAN:
        return Finding("busy", (Evidence("usage_low.busy", values, "ok"),), values)
    if max(load) < IDLE_PEAK and not _on_gpu(sample):
        return Finding("no-load", (Evidence("usage_low.no-load", values),), values)
    return Finding("low", (Evidence("usage_low.low", values, "bad"),), values)


@probe(
    "usage_hardware",
    answers=("fine", "throttled", "power-limited", "pcie-narrow", "hot"),
    needs=("usage.sample", "gpu.devices"),
    fills=("reason", "value"),
)
def usage_hardware(facts: Facts, tables: Tables) -> Finding:
    """Whether the card itself is held back: heat, power, a slow-down signal, a narrow slot.

    Sample (NVML)::

        {"temperature": 91, "power": 79.8, "power_limit": 80.0, "clock_sm": 885, "clock_sm_max": 1785,
         "throttle": ["sw_thermal_slowdown"], "pcie_width": 4, "pcie_width_max": 16}
    """
    devices = (facts.value("gpu.devices") or {}).get("devices")
    if not devices:
        return unknown(facts, "gpu.devices")
    sample = facts.value("usage.sample") or {}
    readings = busiest(sample)
    index = readings[0].get("index") if readings else devices[0].get("index")
    device = next((d for d in devices if d.get("index") == index), devices[0])
    loaded = [row for row in readings if (row.get("utilization") or 0) >= UNDER_LOAD]
    # What held it while it worked counts; without such readings, what holds it now.
    told = [reason for row in loaded for reason in row.get("throttle") or []] or device.get("throttle") or []
    reasons = list(dict.fromkeys(re.sub(r"[^a-z]+", "_", str(reason).lower()) for reason in told))
    temperature = max([float(device.get("temperature") or 0.0), *_numbers(loaded, "temperature")])
    thermal = next((reason for reason in reasons if "thermal" in reason), None)
    if thermal or temperature >= HOT:
        return _held("hot", thermal or "temperature", f"{temperature:.0f} °C")
    slowed = next((reason for reason in reasons if "slowdown" in reason or "brake" in reason), None)
    if slowed:
        return _held("throttled", slowed, f"{device.get('clock_sm')} MHz")
    top = float(device.get("clock_sm_max") or 0.0)
    clocks = _numbers(loaded, "clock_sm") or _numbers([device], "clock_sm")
    slow = bool(top) and bool(clocks) and _mean(clocks) < SLOW_CLOCK * top
    if slow and any("power_cap" in reason for reason in reasons):
        return _held("power-limited", "power_cap", f"{_mean(clocks):.0f} of {top:.0f} MHz")
    widest = device.get("pcie_width_max")
    width = max(_numbers(loaded, "pcie_width"), default=0.0) or device.get("pcie_width")
    if loaded and width and widest and int(width) < int(widest):
        return _held("pcie-narrow", "pcie_width", f"x{int(width)} of x{widest}")
    return Finding("fine", (Evidence("usage_hardware.fine", {"temperature": f"{temperature:.0f}"}, "ok"),))


def _held(answer: str, reason: str, value: str) -> Finding:
    values = {"reason": reason, "value": value}
    return Finding(answer, (Evidence(f"usage_hardware.{answer}", values, "bad"),), values)


@probe(
    "usage_driver",
    answers=("fine", "other-process", "low-pstate"),
    needs=("gpu.devices", "usage.sample", "system.settings"),
    fills=("process", "pstate"),
)
def usage_driver(facts: Facts, tables: Tables) -> Finding:
    """Whether the driver gives the card to somebody else or keeps it in a power-saving state under load.

    Sample (NVML)::

        {"pstate": "P8", "processes": [{"pid": 4120, "name": "python.exe", "memory": null},
         {"pid": 988, "name": "miner.exe"}]}
    """
    devices = (facts.value("gpu.devices") or {}).get("devices")
    if not devices:
        return unknown(facts, "gpu.devices")
    sample = facts.value("usage.sample") or {}
    more = _of_windows(devices, facts)
    listed = computing([*(p for d in devices for p in d.get("processes") or []), *_on_gpu(sample)])
    pythons = [process for process in listed if _PYTHON.match(_base(process))]
    strangers = [process for process in listed if process not in pythons]
    if strangers or len(pythons) > 1:
        shown = ", ".join(f"{_base(p)} ({p.get('pid')})" for p in (strangers or pythons))
        params = {"process": shown}
        return Finding("other-process", (Evidence("usage_driver.other-process", params, "bad"), *more), params)
    readings = busiest(sample)
    loaded = [row for row in readings if (row.get("utilization") or 0) >= UNDER_LOAD]
    states = [int(hit[1]) for row in loaded if (hit := re.match(r"P?(\d+)$", str(row.get("pstate"))))]
    if states and min(states) >= LOW_PSTATE:
        params = {"pstate": f"P{min(states)}"}
        return Finding("low-pstate", (Evidence("usage_driver.low-pstate", params, "bad"), *more), params)
    return Finding("fine", (Evidence("usage_driver.fine", {}, "ok"), *more))


def _of_windows(devices: list[dict[str, Any]], facts: Facts) -> list[Evidence]:
    """What Windows' driver model hides, and the setting that is worth a try in either direction."""
    found = []
    if any("process-memory" in (device.get("limits") or []) and device.get("driver_model") for device in devices):
        found.append(Evidence("usage_driver.wddm"))
    hags = (facts.value("system.settings") or {}).get("hags")
    if hags is not None:
        found.append(Evidence("usage_driver.hags-on" if hags else "usage_driver.hags-off"))
    return found


@probe(
    "usage_supply",
    answers=("fine", "cpu-bound", "disk-bound", "pulsed"),
    needs=("usage.sample",),
    fills=("core", "busy"),
)
def usage_supply(facts: Facts, tables: Tables) -> Finding:
    """Whether the GPU waits for data: a full disk, a full CPU core, or work in pulses.

    Sample (one reading each)::

        "cpu": [{"t": 0.5, "total": 31.0, "max_core": 99.4}], "disk": [{"t": 0.5, "busy": 0.07, "read_bytes": 1048576}]
    """
    sampled = _sampled(facts)
    if sampled is None:
        return _no_sample(facts)
    sample, load = sampled
    core, busy = (
        _mean(_numbers(sample.get("cpu") or [], "max_core")),
        _mean(_numbers(sample.get("disk") or [], "busy")),
    )
    values = {"core": f"{core:.0f}", "busy": f"{busy * 100:.0f}"}
    answer = "fine" if _mean(load) >= LOW_MEAN else supply(load, core, busy)
    return Finding(answer, (Evidence(f"usage_supply.{answer}", values, "ok" if answer == "fine" else "bad"),), values)


def supply(load: list[float], core: float, busy: float) -> str:
    """What keeps a GPU waiting; the disk before the core, because a slow disk also keeps a core spinning."""
    if busy >= FULL_DISK:
        return "disk-bound"
    if core >= FULL_CORE:
        return "cpu-bound"
    low = sum(value < PULSE_LOW for value in load) / len(load)
    high = sum(value > PULSE_HIGH for value in load) / len(load)
    return "pulsed" if low >= PULSE_SHARE and high >= PULSE_SHARE else "fine"


@probe(
    "usage_tensorflow",
    answers=("on-cpu", "rnn-generic", "small-work", "fine"),
    needs=("tf.gpus", "tf.operation", "usage.sample", "paste.text"),
    fills=("detail",),
)
def usage_tensorflow(facts: Facts, tables: Tables) -> Finding:
    """Whether TensorFlow itself leaves the GPU idle: on the CPU, a recurrent layer without cuDNN, or too little work.

    Sample (TensorFlow 2.2)::

        WARNING:tensorflow:Layer gru_4 will not use cuDNN kernel since it doesn't meet the cuDNN kernel criteria.
        It will use generic GPU kernel as fallback when running on GPU
    """
    text = pasted(facts)
    if hit := _GENERIC_RNN.search(re.sub(r"\s+", " ", text)):
        return _tensorflow("rnn-generic", hit[1])
    if hit := _ON_CPU.search(text):
        return _tensorflow("on-cpu", hit[0])
    gpus, operation = facts.value("tf.gpus") or {}, facts.value("tf.operation") or {}
    if gpus.get("ok") and gpus.get("physical") == []:
        return _tensorflow("on-cpu", "tf.config.list_physical_devices('GPU') -> []")
    device = str(operation.get("device") or "")
    if operation.get("ok") and "CPU" in device.upper():
        return _tensorflow("on-cpu", device)
    sampled = _sampled(facts)
    if sampled is None:
        return _no_sample(facts)
    sample, load = sampled
    pythons = [p for p in computing(sample.get("processes") or []) if _PYTHON.match(_base(p))]
    working = [p for p in pythons if (p.get("cpu") or 0) >= UNDER_LOAD]
    if working and max(load) < IDLE_PEAK and not any(p.get("on_gpu") for p in pythons):
        return _tensorflow("on-cpu", f"{_base(working[0])} ({working[0].get('pid')})")
    core, busy = (
        _mean(_numbers(sample.get("cpu") or [], "max_core")),
        _mean(_numbers(sample.get("disk") or [], "busy")),
    )
    if max(load) >= IDLE_PEAK and _mean(load) < LOW_MEAN and supply(load, core, busy) == "fine":
        return _tensorflow("small-work", f"{_mean(load):.0f} %")
    return Finding("fine", (Evidence("usage_tensorflow.fine", {}, "ok"),))


def _tensorflow(answer: str, detail: str) -> Finding:
    return Finding(answer, (Evidence(f"usage_tensorflow.{answer}", {"detail": detail}, "bad"),), {"detail": detail})
