"""Samples of GPU and CPU over time: joined, as rows to draw, and judged in four layers. Values in, values out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tftriage.facts import Facts
from tftriage.plain import one_line
from tftriage.probes import PROBES
from tftriage.probes.base import Finding
from tftriage.probes.usage import busiest
from tftriage.tables import Tables

# Whether it idles at all; then the card, the driver, the supply of data, TensorFlow's own part.
LAYERS = ("usage_low", "usage_hardware", "usage_driver", "usage_supply", "usage_tensorflow")
WINDOW = 120.0  # seconds that are kept
GIB = 2**30

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = "_.-:=+*#"


class Series(msgspec.Struct, frozen=True):
    """One row: ``name`` is a message key, ``top`` the value of a full bar, ``now`` the latest value with its unit."""

    name: str
    values: tuple[float | None, ...]
    top: float
    now: str


def joined(before: dict[str, Any] | None, new: dict[str, Any], at: float) -> dict[str, Any]:
    """A sample that goes on: ``new`` began ``at`` seconds after the first one. Older than ``WINDOW`` falls out.

    ``t`` of every reading counts from the same beginning. Processes are those of the newest part.
    """
    result = {**new, "seconds": at + float(new.get("seconds") or 0.0)}
    for kind in ("gpu", "cpu", "disk"):
        moved = [{**row, "t": round(float(row.get("t") or 0.0) + at, 2)} for row in new.get(kind) or []]
        old = (before or {}).get(kind) or []
        result[kind] = [row for row in [*old, *moved] if row["t"] > result["seconds"] - WINDOW]
    return result


def series(sample: dict[str, Any], facts: Facts) -> list[Series]:
    """The rows that there are readings for; of several cards the busiest one."""
    card = busiest(sample)
    devices = (facts.value("gpu.devices") or {}).get("devices") or []
    index = card[0].get("index") if card else None
    device: dict[str, Any] = next((one for one in devices if one.get("index") == index), {})
    memory, limit = device.get("memory_total"), device.get("power_limit")
    cpu, disk = sample.get("cpu") or [], sample.get("disk") or []
    made = [
        _series("gpu", card, "utilization", 100.0, "{:.0f} %"),
        _series("gpu-memory", card, "memory_used", memory, "{:.1f}" + (f"/{memory / GIB:.1f} GB" if memory else " GB"),
                GIB),
        _series("power", card, "power", limit, "{:.0f}" + (f"/{limit:.0f} W" if limit else " W")),
        _series("clock", card, "clock_sm", device.get("clock_sm_max"), "{:.0f} MHz"),
        _series("cpu", cpu, "total", 100.0, "{:.0f} %"),
        _series("core", cpu, "max_core", 100.0, "{:.0f} %"),
        _series("disk", [{**row, "busy": _percent(row.get("busy"))} for row in disk], "busy", 100.0, "{:.0f} %"),
    ]  # fmt: skip
    return [one for one in made if any(value is not None for value in one.values)]


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


def _series(
    name: str, rows: Sequence[dict[str, Any]], key: str, top: float | None, form: str, unit: float = 1.0
) -> Series:
    values = tuple(None if row.get(key) is None else float(row[key]) for row in rows)
    known = [value for value in values if value is not None]
    highest = float(top or max(known, default=0.0) or 1.0)
    return Series(name, values, highest, form.format(known[-1] / unit) if known else "")


def sparkline(values: Sequence[float | None], width: int, top: float, levels: str = BLOCKS) -> str:
    """The last ``width`` values, the newest on the right; a gap where nothing was read."""
    shown = list(values)[-width:]
    marks = [" " if value is None else levels[_level(value / top, len(levels))] for value in shown]
    return "".join(marks).rjust(width)


def _level(share: float, levels: int) -> int:
    return min(levels - 1, max(0, int(share * levels)))


def verdict(facts: Facts, tables: Tables) -> list[tuple[str, Finding]]:
    """The layers in their order, each with what it says."""
    return [(name, PROBES[name](facts, tables)) for name in LAYERS]


def card_name(facts: Facts, sample: dict[str, Any]) -> str:
    """The card whose readings are shown."""
    rows = busiest(sample)
    devices = (facts.value("gpu.devices") or {}).get("devices") or []
    found = [one for one in devices if not rows or one.get("index") == rows[0].get("index")]
    return one_line(str(found[0].get("name") or ""), 40) if found else ""


def top_processes(sample: dict[str, Any], most: int) -> list[tuple[str, str, str, str, bool]]:
    """The busiest processes as text: number, name, processor, memory, and whether it is on the GPU."""
    rows = (sample.get("processes") or [])[:most]
    return [
        (str(row.get("pid")), one_line(str(row.get("name") or "?"), 28), f"{row.get('cpu') or 0:.0f} %",
         f"{(row.get('memory') or 0) / GIB:.1f} GB", bool(row.get("on_gpu")))
        for row in rows
    ]  # fmt: skip
