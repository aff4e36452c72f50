"""Our own workload: every answer, from phases as the collector gives them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.probes.evidence_words import run
from tftriage.facts import Fact

GPU, CPU = "/device:GPU:0", "/device:CPU:0"
DEVICES = {"driver": "461.92", "devices": [{"index": 0, "name": "GeForce GTX 1650", "capability": "7.5"}]}


def phase(name: str, rate: float, **more: Any) -> dict[str, Any]:
    during = {"utilization": 97.0, "memory_utilization": 31.0, "max_core": 55.0} | more.pop("during", {})
    found = {"name": name, "device": CPU if name == "net-cpu" else GPU, "steps": round(rate * 10), "seconds": 10.0}
    found |= {"first": 1.5, "correct": True, "error": None, "detail": None, "during": during}
    return found | {"size": 4096 if name == "matmul" else 64} | more


def value(*changed: dict[str, Any], **more: Any) -> dict[str, Any]:
    phases = {p["name"]: p for p in (phase("matmul", 30), phase("net-cpu", 8), phase("net", 200), phase("fed", 160))}
    phases |= {p["name"]: p for p in changed}
    found = {"ok": True, "gpus": ["/physical_device:GPU:0"], "version": "2.3.1", "error": None, "last": None}
    return found | {"phases": list(phases.values())} | more


@pytest.mark.parametrize(
    ("seen", "answer", "detail"),
    [
        (value(), "compute-bound", "4123"),
        (value(phase("fed", 60)), "input-bound", "0.30"),
        (value(gpus=[]), "on-cpu", "[]"),
        (value(phase("net", 9)), "too-small", "1.1"),
        (value(phase("matmul", 30, during={"utilization": 20.0})), "too-small", "20 %"),
        (value(phase("matmul", 30, first=190.0)), "jit", "190 s, 33 ms"),
        (value(phase("net", 200, first=61.0)), "jit", "61 s, 5 ms"),
        (value(phase("matmul", 30, during={"memory_utilization": 92.0})), "memory-bound", "92 %"),
        (value(phase("matmul", 30, size=1024, shrunk=True)), "memory-bound", "matmul 1024"),
        (value(phase("net", 0, error="ResourceExhaustedError: OOM", memory=True)), "memory-bound", "OOM"),
        (value(phase("matmul", 30, correct=False, detail="[0.0] instead of [8.0]")), "wrong-result", "instead"),
        (value(phase("net", 0, steps=0, seconds=0.0, error="UnknownError: x\ny", correct=None)), "fails", "UnknownE"),
        (value(error="killed: SIGABRT", phases=[]), "fails", "SIGABRT"),
        (value(phases=[phase("net-cpu", 8)]), "unknown", ""),
    ],
)
def test_answers(seen: dict[str, Any], answer: str, detail: str) -> None:
    finding = run("workload", usage__workload=seen, gpu__devices=DEVICES)
    assert finding.answer == answer
    if answer != "unknown":
        assert detail in finding.values["detail"]
        assert (finding.values["gpu"], finding.values["capability"]) == ("GeForce GTX 1650", "7.5")


def test_a_slow_first_step_is_no_jit_when_every_step_is_slow() -> None:
    slow = value(phase("matmul", 0.5, first=30.0), phase("net", 20, first=22.0, steps=3, seconds=30.0))
    assert run("workload", usage__workload=slow, gpu__devices=DEVICES).answer != "jit"


def test_a_wrong_number_outranks_all_else() -> None:
    both = value(phase("matmul", 30, correct=False, detail="x"), phase("net", 0, error="died"), error="exit: 1")
    assert run("workload", usage__workload=both, gpu__devices=DEVICES).answer == "wrong-result"


def test_without_counters_it_is_judged_by_its_speed() -> None:
    blind = value(*(p | {"during": {}} for p in value()["phases"]))
    finding = run("workload", usage__workload=blind, gpu__devices=Fact("gpu.devices", "absent", note="no-library"))
    assert finding.answer == "compute-bound"
    assert finding.values["gpu"] == "GPU"


def test_what_was_not_run_is_unknown() -> None:
    assert run("workload").reason == "usage.workload: not-recorded"
    skipped = run("workload", usage__workload=Fact("usage.workload", "skipped", note="import-failed"))
    assert skipped.reason == "usage.workload: skipped: import-failed"
