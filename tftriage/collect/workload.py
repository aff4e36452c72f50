"""A workload of our own in the target's interpreter, sampled while it runs: is it the machine, or the program?"""

import bisect
import threading
import time
from typing import Any, Dict, List

from . import usage
from .launch import Answer, context, died, ending, launch, start
from .registry import Absent, Failed, Skipped, collector
from .target import told, until_of

SECONDS = 36.0  # of computing; with imports and first steps it is a minute
# What is told of a phase: mean of each counter while it ran.
GPU_COUNTERS = ("utilization", "memory_utilization", "power", "clock_sm", "memory_used")


class _Sampler:
    """Samples in a thread of its own until ``stop``."""

    def __init__(self, limit: float) -> None:
        self.began = time.time()
        self.value: Dict[str, Any] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(limit,), daemon=True)
        self._thread.start()

    def _work(self, limit: float) -> None:
        try:
            self.value = usage.sample(limit, stop=self._end)
        except Exception:  # counters that cannot be read take nothing from the workload's own numbers
            pass

    def stop(self) -> Dict[str, Any]:
        self._end.set()
        self._thread.join(5.0)
        return self.value


def during(sample: Dict[str, Any], phase: Dict[str, Any]) -> Dict[str, Any]:
    """Means of the readings that were taken while a phase ran; ``gpu_readings`` and ``cpu_readings`` say of how many.

    A reading of a counter covers the time before it, so the first half second of a phase is left out where the phase
    is long enough.
    """
    first, last = float(phase["began"]), float(phase["ended"])
    first += min(0.5, (last - first) / 2)
    found: Dict[str, Any] = {}
    for kind, names in (("gpu", GPU_COUNTERS), ("cpu", ("total", "max_core"))):
        rows = within(sample.get(kind) or [], first, last)
        if kind == "gpu":
            rows = busiest_card(rows)
        for name in names:
            numbers = [float(row[name]) for row in rows if row.get(name) is not None]
            if numbers:
                found[name] = round(sum(numbers) / len(numbers), 1)
        found[kind + "_readings"] = len(rows)
    return found


def within(rows: List[Dict[str, Any]], first: float, last: float) -> List[Dict[str, Any]]:
    """The rows with ``first <= t <= last``; rows are in the order of time."""
    times = [row["t"] for row in rows]
    return rows[bisect.bisect_left(times, first) : bisect.bisect_right(times, last)]


def busiest_card(rows: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """The rows of the card with the highest load: of two cards the workload uses one."""
    cards: Dict[Any, List[Dict[str, Any]]] = {}
    for row in rows:
        cards.setdefault(row.get("index"), []).append(row)
    return max(cards.values(), key=lambda found: sum(row.get("utilization") or 0 for row in found), default=[])


def told_by(answer: Answer) -> Dict[str, Any]:
    """What the child told, phase by phase, also when it died in the middle: what it did last is then the place."""
    value: Dict[str, Any] = {"gpus": [], "phases": [], "version": None, "error": None, "last": None}
    for line in answer.lines:
        value.update(line.get("begun", {}))
        if "progress" in line:
            value["last"] = line["progress"]
        if "phase" in line:
            value["phases"].append(line["phase"])
            value["last"] = None
        ended_with = line.get("value", {})
        value["error"] = ended_with.get("error", value["error"])
        if "not_imported" in ended_with:
            value["not_imported"] = ended_with["not_imported"]
    # Of several sizes of one phase the one that fitted counts; that others did not is told.
    kept: Dict[str, Dict[str, Any]] = {}
    for phase in value["phases"]:
        shrunk = kept.get(phase["name"])
        kept[phase["name"]] = dict(phase, shrunk=True) if shrunk else phase
    value["phases"] = list(kept.values())
    return value


@collector("usage.workload", 240.0)
def workload(args: Dict[str, Any]) -> Any:
    """A matrix product and a small net, on the GPU if TensorFlow lists one, with what the counters said meanwhile.

    ``seconds`` is how long it computes (default 36). Sample of a phase: ``{"name": "matmul", "device":
    "/device:GPU:0", "size": 4096, "steps": 412, "seconds": 12.6, "first": 1.9, "correct": true, "during":
    {"utilization": 98.7, "memory_utilization": 31.0, "power": 118.2, "max_core": 41.0}}``.
    """
    until = until_of(args)
    where = context(args)
    left = until - time.monotonic()
    seconds = min(left * 0.6, max(4.0, float(args.get("seconds") or SECONDS)))
    if start(where, until).plain is not None:
        raise Skipped("import-failed")
    sampler = _Sampler(left)
    try:
        give_up = repr(round(time.time() + max(1.0, until - time.monotonic() - 2.0), 3))
        arguments = [repr(seconds), give_up]
        answer = launch(told(where, gpu=True), "workload", arguments, max(1.0, left), source="workload_inside.py")
    finally:
        sample = sampler.stop()
    value = told_by(answer)
    refused = value.pop("not_imported", None)
    if refused is not None:
        if "No module named" in refused and "tensorflow" in refused:
            raise Absent("no-tensorflow")
        raise Skipped("import-failed")
    if answer.begun is None:
        raise Failed(died(answer) or "no answer")
    for phase in value["phases"]:
        for key in ("began", "ended"):  # seconds since the sampling began
            phase[key] = round(phase[key] - sampler.began, 3)
        phase["during"] = during(sample, phase)
    value.update(ending(answer), log=answer.log)
    value["error"] = value["error"] or died(answer)
    value["ok"] = value["error"] is None and all(phase["error"] is None for phase in value["phases"])
    return value, "tf.matmul and tf.nn.conv2d in %s" % where.python
