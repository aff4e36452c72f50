"""A GPU that idles: is it low, and which of the four layers is it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.probes.evidence_words import WIN10, run
from tftriage.facts import Fact
from tftriage.probes import usage

PYTHON = {"pid": 4120, "name": "python.exe", "cpu": 96.0, "memory": 2 << 30, "on_gpu": True}
DWM = {"pid": 988, "name": r"C:\Windows\System32\dwm.exe", "cpu": 1.0, "memory": 1 << 20, "on_gpu": True}
MINER = {"pid": 77, "name": "miner.exe", "cpu": 3.0, "memory": 1 << 20, "on_gpu": True}


def sample(load: list[float], processes: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    core, busy = more.pop("core", 40.0), more.pop("busy", 0.1)
    reading = {
        "index": 0,
        "memory_utilization": 3,
        "power": 41.2,
        "clock_sm": 1410,
        "pstate": "P2",
        "memory_used": 1,
    } | more
    return {
        "seconds": 10,
        "interval": 0.5,
        "gpu": [{"t": i * 0.5, **reading, "utilization": value} for i, value in enumerate(load)],
        "cpu": [{"t": i * 0.5, "total": 20.0, "max_core": core} for i in range(len(load))],
        "disk": [{"t": i * 0.5, "busy": busy, "read_bytes": 0} for i in range(len(load))],
        "processes": [PYTHON] if processes is None else processes,
    }


LOW = [12.0] * 10
PULSES = [95.0, 4.0] * 5


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (sample(LOW), "low"),
        (sample([90.0] * 10), "busy"),
        (sample([2.0] * 10, []), "no-load"),
        (sample([2.0] * 10, [DWM]), "no-load"),
        (sample([0.0] * 10), "low"),
        (sample([30.0] * 10, []), "low"),
    ],
)
def test_usage_low(value: dict[str, Any], answer: str) -> None:
    finding = run("usage_low", usage__sample=value)
    assert finding.answer == answer
    assert set(finding.values) == {"mean", "peak"}


def test_the_busiest_card_counts() -> None:
    two = sample(LOW)
    two["gpu"] += [{"t": 0.5 * i, "index": 1, "utilization": 95.0} for i in range(10)]
    assert run("usage_low", usage__sample=two).answer == "busy"


@pytest.mark.parametrize("name", ["usage_low", "usage_supply", "usage_tensorflow"])
def test_no_sample_or_too_few_readings(name: str) -> None:
    assert run(name).reason == "usage.sample: not-recorded"
    slow = Fact("usage.sample", "timeout", note="10 s")
    assert run(name, usage__sample=slow).reason == "usage.sample: timeout: 10 s"
    assert run(name, usage__sample=sample(LOW[:2])).answer == "unknown"
    assert run(name, usage__sample={**sample(LOW), "gpu": []}).answer == "unknown"


def devices(**more: Any) -> dict[str, Any]:
    base = {
        "index": 0,
        "temperature": 61,
        "clock_sm": 1410,
        "clock_sm_max": 1785,
        "throttle": [],
        "pstate": "P2",
    }
    return {
        "driver": "461.92",
        "devices": [{**base, "pcie_width": 16, "pcie_width_max": 16, "processes": [PYTHON, DWM], **more}],
    }


@pytest.mark.parametrize(
    ("card", "reading", "answer"),
    [
        ({}, {}, "fine"),
        ({"throttle": None, "temperature": None, "clock_sm_max": None}, {}, "fine"),
        ({"temperature": 91}, {}, "hot"),
        ({"throttle": ["sw_thermal_slowdown"]}, {}, "hot"),
        ({"throttle": ["HW Slowdown"]}, {}, "throttled"),
        ({"throttle": ["hw_power_brake"]}, {}, "throttled"),
        ({"throttle": ["sw_power_cap"]}, {"clock_sm": 700}, "power-limited"),
        ({"throttle": ["sw_power_cap"]}, {"clock_sm": 1700}, "fine"),  # a full card at its limit is well
        ({"throttle": ["gpu_idle"]}, {"clock_sm": 300}, "fine"),
        ({"pcie_width": 4}, {}, "pcie-narrow"),
        ({"pcie_width": None}, {}, "fine"),
    ],
)
def test_usage_hardware(card: dict[str, Any], reading: dict[str, Any], answer: str) -> None:
    busy = sample([50.0] * 10, **reading)
    assert run("usage_hardware", gpu__devices=devices(**card), usage__sample=busy).answer == answer


def test_an_idle_cards_narrow_link_means_nothing() -> None:
    assert run("usage_hardware", gpu__devices=devices(pcie_width=4), usage__sample=sample([0.0] * 10)).answer == "fine"
    assert run("usage_hardware", gpu__devices=devices(pcie_width=4)).answer == "fine"
    assert run("usage_hardware", usage__sample=sample(LOW)).reason == "gpu.devices: not-recorded"


def test_the_sampled_card_is_judged() -> None:
    two = devices(index=0, temperature=95)
    two["devices"].append(devices(index=1)["devices"][0])
    one = sample([50.0] * 10, index=1)
    assert run("usage_hardware", gpu__devices=two, usage__sample=one).answer == "fine"
    assert run("usage_hardware", gpu__devices=two, usage__sample=sample([50.0] * 10, index=7)).answer == "hot"


@pytest.mark.parametrize(
    ("processes", "reading", "answer"),
    [
        ([PYTHON, DWM], {}, "fine"),
        ([], {}, "fine"),
        (None, {}, "fine"),
        ([PYTHON, MINER], {}, "other-process"),
        ([PYTHON, {**PYTHON, "pid": 4121}], {}, "other-process"),
        ([PYTHON], {"pstate": "P8"}, "low-pstate"),
        ([PYTHON], {"pstate": 8}, "low-pstate"),
        ([PYTHON], {"pstate": None}, "fine"),
    ],
)
def test_usage_driver(processes: list[dict[str, Any]] | None, reading: dict[str, Any], answer: str) -> None:
    value = sample([40.0] * 10, [PYTHON], **reading)
    finding = run("usage_driver", gpu__devices=devices(processes=processes), usage__sample=value, system__os=WIN10)
    assert finding.answer == answer
    if MINER in (processes or []):
        assert finding.values["process"] == "miner.exe (77)"


def test_an_idle_card_may_sleep() -> None:
    value = sample([0.0] * 10, [PYTHON], pstate="P8")
    assert run("usage_driver", gpu__devices=devices(), usage__sample=value).answer == "fine"
    assert run("usage_driver").reason == "gpu.devices: not-recorded"


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (sample(LOW), "fine"),
        (sample(LOW, core=99.0), "cpu-bound"),
        (sample(LOW, busy=0.95, core=99.0), "disk-bound"),
        (sample(PULSES), "pulsed"),
        (sample([90.0] * 10, core=99.0), "fine"),
        ({**sample(LOW), "cpu": None, "disk": None}, "fine"),
    ],
)
def test_usage_supply(value: dict[str, Any], answer: str) -> None:
    assert run("usage_supply", usage__sample=value).answer == answer


GRU = (
    "WARNING:tensorflow:Layer gru_4 will not use cuDNN kernel since it doesn't meet the cuDNN kernel criteria. It "
    "will use generic GPU kernel as fallback when running on GPU"
)
LSTM = (
    "WARNING:tensorflow:Layer lstm_1 will not use cuDNN kernels since it doesn't meet the criteria. It will\nuse a "
    "generic GPU kernel as fallback when running on GPU."
)
OFF_GPU = {**PYTHON, "on_gpu": False}


@pytest.mark.parametrize(
    ("values", "answer", "detail"),
    [
        ({"paste": GRU}, "rnn-generic", "gru_4"),
        ({"paste": LSTM}, "rnn-generic", "lstm_1"),
        (
            {"paste": "Executing op MatMul in device /job:localhost/replica:0/task:0/device:CPU:0"},
            "on-cpu",
            None,
        ),
        ({"tf__gpus": {"ok": True, "physical": []}}, "on-cpu", None),
        ({"tf__operation": {"ok": True, "device": "/device:CPU:0"}}, "on-cpu", "/device:CPU:0"),
        ({"usage__sample": sample([1.0] * 10, [OFF_GPU])}, "on-cpu", "python.exe (4120)"),
        ({"usage__sample": sample(LOW)}, "small-work", "12 %"),
        ({"usage__sample": sample(LOW, core=99.0)}, "fine", None),
        (
            {
                "usage__sample": sample([90.0] * 10),
                "tf__gpus": {"ok": True, "physical": ["/physical_device:GPU:0"]},
            },
            "fine",
            None,
        ),
        ({"usage__sample": sample([1.0] * 10, [{**OFF_GPU, "cpu": None}])}, "fine", None),
        ({"tf__gpus": {"ok": False, "physical": []}, "usage__sample": sample([90.0] * 10)}, "fine", None),
    ],
)
def test_usage_tensorflow(values: dict[str, Any], answer: str, detail: str | None) -> None:
    finding = run("usage_tensorflow", **values)
    assert finding.answer == answer
    if detail:
        assert finding.values["detail"] == detail


def test_the_desktop_is_no_load() -> None:
    names = ["dwm.exe", "Xorg", "explorer.exe", "", None, "train.exe", "NVIDIA Share.exe", "python3.9"]
    kept = usage.computing({"pid": i, "name": name} for i, name in enumerate(names))
    assert [process["name"] for process in kept] == ["train.exe", "python3.9"]


@pytest.mark.parametrize(("hags", "key"), [(True, "usage_driver.hags-on"), (False, "usage_driver.hags-off")])
def test_the_limits_of_windows_are_said(hags: bool, key: str) -> None:
    device = {"index": 0, "driver_model": "WDDM", "limits": ["process-memory"], "processes": []}
    finding = run(
        "usage_driver", gpu__devices={"devices": [device]}, usage__sample=sample(LOW), system__settings={"hags": hags}
    )
    assert finding.answer == "fine"
    assert {"usage_driver.wddm", key} <= {e.key for e in finding.evidence}


def test_what_held_the_card_while_it_worked_counts() -> None:
    device = {"index": 0, "throttle": [], "temperature": 45, "clock_sm": 300, "clock_sm_max": 1785}
    work = sample([95.0] * 10, throttle=["hw-thermal"], temperature=88, pcie_width=4)
    finding = run("usage_hardware", gpu__devices={"devices": [device]}, usage__sample=work)
    assert (finding.answer, finding.values["reason"]) == ("hot", "hw_thermal")
    narrow = sample([95.0] * 10, throttle=[], temperature=60, pcie_width=4)
    finding = run("usage_hardware", gpu__devices={"devices": [device | {"pcie_width_max": 16}]}, usage__sample=narrow)
    assert (finding.answer, finding.values["value"]) == ("pcie-narrow", "x4 of x16")
