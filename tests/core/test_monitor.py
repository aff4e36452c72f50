"""The monitor without a screen: readings joined over time, drawn, and judged in four layers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tftriage import cases, watching
from tftriage.facts import Fact, Facts
from tftriage.knowledge import load

KB = load()
ROOT = Path(__file__).parents[2]
DEVICES = {
    "driver": "461.92",
    "devices": [{"index": 0, "name": "GeForce RTX 2060", "capability": "7.5", "memory_total": 6 * watching.GIB,
                 "temperature": 61, "clock_sm": 1410, "clock_sm_max": 1785, "throttle": [], "power_limit": 160.0,
                 "pcie_width": 16, "pcie_width_max": 16, "processes": []}],
}  # fmt: skip


def sample(load: list[float], core: float = 30.0, seconds: float = 5.0) -> dict[str, Any]:
    """Readings of a training that leaves the card at ``load``."""
    gpu = [
        {"t": 0.5 * i, "index": 0, "utilization": value, "memory_used": 3 * watching.GIB, "power": 80.0,
         "clock_sm": 1410, "pstate": "P2"}
        for i, value in enumerate(load)
    ]  # fmt: skip
    cpu = [{"t": 0.5 * i, "total": 20.0, "max_core": core} for i in range(len(load))]
    processes = [{"pid": 4120, "name": "python.exe", "cpu": core, "memory": 2 * watching.GIB, "on_gpu": True}]
    return {"seconds": seconds, "interval": 0.5, "gpu": gpu, "cpu": cpu, "disk": [], "processes": processes}


def facts(value: dict[str, Any] | None, devices: Any = DEVICES) -> Facts:
    made = [Fact("gpu.devices", "ok", devices), Fact("system.os", "ok", {"system": "Windows"})]
    return Facts([*made, *([Fact("usage.sample", "ok", value)] if value else [])])


def test_a_starved_card_is_seen_in_its_layer() -> None:
    found = dict(watching.verdict(facts(sample([12.0] * 10, core=99.0)), KB.tables))
    assert list(found) == list(watching.LAYERS)
    assert found["usage_low"].answer == "low" and found["usage_supply"].answer == "cpu-bound"
    assert found["usage_hardware"].answer == "fine"


def test_samples_join_in_time_and_old_ones_fall_out() -> None:
    whole: dict[str, Any] | None = None
    for number in range(80):
        whole = watching.joined(whole, sample([float(number)] * 4, seconds=2.0), 2.0 * number)
    assert whole is not None and whole["seconds"] == 160.0
    times = [row["t"] for row in whole["gpu"]]
    assert times == sorted(times) and times[0] > 160.0 - watching.WINDOW and times[-1] < 160.0
    assert len(times) == watching.WINDOW / 0.5 - 1 or len(times) == watching.WINDOW / 0.5
    assert whole["gpu"][-1]["utilization"] == 79.0


def test_rows_have_their_own_scale_and_unit() -> None:
    rows = {row.name: row for row in watching.series(sample([10.0, 50.0]), facts(None))}
    assert list(rows) == ["gpu", "gpu-memory", "power", "clock", "cpu", "core"]
    assert rows["gpu"].now == "50 %" and rows["gpu-memory"].now == "3.0/6.0 GB" and rows["power"].now == "80/160 W"
    assert rows["clock"].top == 1785 and "disk" not in rows, "nothing was read of a disk"
    bare = {row.name: row for row in watching.series(sample([10.0]), Facts())}
    assert bare["gpu-memory"].now == "3.0 GB"


@given(st.lists(st.none() | st.floats(-10, 500), max_size=40), st.integers(1, 30), st.floats(0.5, 200))
def test_a_sparkline_is_as_wide_as_asked_and_ends_with_the_newest(
    values: list[float | None], width: int, top: float
) -> None:
    for levels in (watching.BLOCKS, watching.ASCII):
        drawn = watching.sparkline(values, width, top, levels)
        assert len(drawn) == width and set(drawn) <= {" ", *levels}
        if values:
            last = values[-1]
            assert (drawn[-1] == " ") == (last is None)
            assert last is None or last < top or drawn[-1] == levels[-1]


def test_higher_is_never_drawn_lower() -> None:
    drawn = watching.sparkline([float(n) for n in range(101)], 101, 100.0)
    assert list(drawn) == sorted(drawn) and set(drawn) == set(watching.BLOCKS)


# --- the command -------------------------------------------------------------------------------------------


def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "PYTHONUTF8": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tftriage", "monitor", *arguments]
    return subprocess.run(command, capture_output=True, env=env, timeout=120, stdin=subprocess.DEVNULL)


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    path = tmp_path / "case.json"
    cases.write(cases.Case(facts=tuple(facts(sample([12.0] * 10, core=99.0)).values())), path)
    return str(path)


def test_a_recorded_sample_as_json(recorded: str) -> None:
    ran = run("--case", recorded, "--json", "--lang", "en")
    document = json.loads(ran.stdout)
    assert ran.returncode == 1 and ran.stderr == b""
    layers = {layer["probe"]: layer for layer in document["layers"]}
    assert layers["usage_supply"]["answer"] == "cpu-bound" and layers["usage_supply"]["evidence"][0]["text"]
    assert len(document["sample"]["gpu"]) == 10 and document["gpu"]["driver"] == "461.92"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_and_for_people_also_in_ascii(recorded: str, lang: str) -> None:
    text = run("--case", recorded, "--lang", lang).stdout.decode()
    assert "GeForce RTX 2060" in text and "▁" in text and KB.say("monitor.core", lang) in text
    assert KB.say("probe.usage_supply", lang) in text and "python.exe" in text
    drawn = run("--case", recorded, "--lang", lang, "--ascii").stdout.decode()
    assert not set(watching.BLOCKS) & set(drawn) and "____" in drawn


def test_a_case_without_a_sample_could_not_look(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    cases.write(cases.Case(), path)
    ran = run("--case", str(path), "--lang", "en")
    assert ran.returncode == 4 and b"not-recorded" in ran.stderr
    ran = run("--case", str(path), "--json")
    assert ran.returncode == 4 and json.loads(ran.stdout)["sample"] is None


def test_this_machine_for_a_second() -> None:
    ran = run("--seconds", "1", "--json")
    document = json.loads(ran.stdout)
    assert ran.returncode in (0, 1), ran.stderr
    assert document["status"] == "ok" and document["sample"]["cpu"][0]["total"] >= 0
    assert len(document["layers"]) == 5
