"""Our own small workload: whether this machine can fill its GPU, or the person's program starves it."""

from __future__ import annotations

from typing import Any

from tftriage.facts import Facts
from tftriage.probes.base import Evidence, Finding, probe, unknown
from tftriage.probes.usage import LOW_MEAN
from tftriage.tables import Tables

# The first step starts cuBLAS and cuDNN: seconds. Translating a build's kernels for a card that it has no code for
# takes minutes (35 s is the least that was reported), and no later step is like it.
JIT_SECONDS, JIT_TIMES = 20.0, 50.0
# A large product reads each number many times from the card's caches; a memory that is busy four fifths of the time
# is what holds it up.
FULL_MEMORY = 80.0
# Below this the card is not worth the trouble for a net of that size.
WORTH = 1.5
# Fed from Python a step may take twice as long as with data that lie on the card; from there on feeding is the work.
FED = 0.5


def rate(phase: dict[str, Any] | None) -> float:
    """Steps a second; 0 for a phase that did not get that far."""
    return float(phase["steps"]) / float(phase["seconds"]) if phase and phase.get("seconds") else 0.0


def gigaflops(phase: dict[str, Any]) -> float:
    """Billions of multiplications and additions a second of the matrix product."""
    return 2.0 * float(phase.get("size") or 0) ** 3 * rate(phase) / 1e9


@probe(
    "workload",
    answers=(
        "compute-bound", "input-bound", "on-cpu", "too-small", "jit", "memory-bound", "wrong-result", "fails",
    ),
    needs=("usage.workload", "gpu.devices"),
    fills=("detail", "core", "busy", "gpu", "capability"),
)  # fmt: skip
def workload(facts: Facts, tables: Tables) -> Finding:
    """What a large matrix product and a small convolution net do on this GPU. A minute; only on request.

    Sample (one phase)::

        {"name": "matmul", "device": "/device:GPU:0", "size": 4096, "steps": 412, "seconds": 12.6, "first": 1.9,
         "correct": true, "error": null, "during": {"utilization": 98.7, "memory_utilization": 31.0}}
    """
    value = facts.value("usage.workload")
    if not isinstance(value, dict):
        return unknown(facts, "usage.workload")
    phases = {str(phase["name"]): phase for phase in value.get("phases") or []}
    if value.get("gpus") == [] and phases and value.get("error") is None:
        return _found("on-cpu", "tf.config.list_physical_devices('GPU') -> []", facts, phases)
    trouble = _trouble(value, phases)
    if trouble is not None:
        return _found(*trouble, facts, phases)
    if "matmul" not in phases or "net" not in phases:
        reason = "usage.workload: it ended before it had computed anything"
        return Finding("unknown", (Evidence("workload.nothing"),), {}, reason)
    return _found(*_bound(phases), facts, phases)


def _trouble(value: dict[str, Any], phases: dict[str, dict[str, Any]]) -> tuple[str, str] | None:
    """What went wrong, the worst first: a wrong number, a card without room, an error or a death."""
    for phase in phases.values():
        if phase.get("correct") is False:
            return "wrong-result", f"{phase['name']}: {phase.get('detail')}"
    full = next((phase for phase in phases.values() if phase.get("memory")), None)
    if full is not None:
        return "memory-bound", f"{full['name']} {full.get('size')}: {_first_line(full.get('error'))}"
    broken = next((phase for phase in phases.values() if phase.get("error")), None)
    if broken is not None:
        return "fails", f"{broken['name']}: {_first_line(broken['error'])}"
    if value.get("error") is not None:
        return "fails", _first_line(value["error"])
    return None


def _first_line(text: Any) -> str:
    return (str(text).strip().splitlines() or ["?"])[0][:200]


def _bound(phases: dict[str, dict[str, Any]]) -> tuple[str, str]:
    """What bounds a workload that went well. ``phases`` hold at least the product and the net on the GPU."""
    product, net = phases["matmul"], phases["net"]
    for phase in (product, net):
        first, each = float(phase.get("first") or 0.0), 1.0 / max(rate(phase), 1e-6)
        if first >= JIT_SECONDS and first >= JIT_TIMES * each:
            return "jit", f"{first:.0f} s, {each * 1000:.0f} ms"
    seen = product.get("during") or {}
    memory, load = seen.get("memory_utilization"), seen.get("utilization")
    if product.get("shrunk"):
        return "memory-bound", f"matmul {product.get('size')}"
    if memory is not None and memory >= FULL_MEMORY:
        return "memory-bound", f"{memory:.0f} %"
    if load is not None and load < LOW_MEAN:
        return "too-small", f"matmul {product.get('size')}: {load:.0f} %"
    slow = rate(phases.get("net-cpu"))
    if slow and rate(net) < WORTH * slow:
        return "too-small", f"{rate(net) / slow:.1f}"
    fed = rate(phases.get("fed"))
    if fed and fed < FED * rate(net):
        return "input-bound", f"{fed / rate(net):.2f}"
    return "compute-bound", f"{gigaflops(product):.0f}"


def _found(answer: str, detail: str, facts: Facts, phases: dict[str, dict[str, Any]]) -> Finding:
    devices = (facts.value("gpu.devices") or {}).get("devices") or [{}]
    fed = (phases.get("fed") or {}).get("during") or {}
    values = {
        "detail": detail,
        "core": f"{fed.get('max_core') or 0:.0f}",
        "busy": "0",
        "gpu": str(devices[0].get("name") or "GPU"),
        "capability": str(devices[0].get("capability") or "?"),
    }
    level = "ok" if answer == "compute-bound" else "bad"
    return Finding(answer, (Evidence(f"workload.{answer}", values, level), *_numbers(phases)), values)  # type: ignore[arg-type]


def _numbers(phases: dict[str, dict[str, Any]]) -> list[Evidence]:
    """What was measured, for those who want to compare."""
    found = []
    product, net, slow = phases.get("matmul"), phases.get("net"), phases.get("net-cpu")
    if product and rate(product):
        load = (product.get("during") or {}).get("utilization")
        shown = {"size": str(product.get("size")), "gflops": f"{gigaflops(product):.0f}"}
        shown |= {"steps": str(product["steps"]), "load": "?" if load is None else f"{load:.0f}"}
        found.append(Evidence("workload.product", shown))
    if rate(net) and rate(slow):
        times = rate(net) / rate(slow)
        shown = {"gpu": f"{rate(net):.0f}", "cpu": f"{rate(slow):.1f}", "times": f"{times:.1f}"}
        found.append(Evidence("workload.net", shown))
    return found
