"""Sampling: the arithmetic on made readings, and a real sample of this machine."""

import os
import subprocess
import sys
import time

import pytest

from tftriage.collect import usage
from tftriage.collect.registry import COLLECTORS

STAT = """cpu  300 0 100 1600 20 0 0 0 0 0
cpu0 100 0 50 840 10 0 0 0 0 0
cpu1 200 0 50 760 10 0 0 0 90 0
intr 1
"""
DISKSTATS = """   8       0 sda 100 0 2000 50 10 0 80 5 0 700 55 0 0 0 0
   8       1 sda1 90 0 1900 40 10 0 80 5 0 600 45 0 0 0 0
   7       0 loop0 5 0 100 1 0 0 0 0 0 9 1
 259       0 nvme0n1 1 0 10 1 0 0 0 0 0 90 1 0 0 0 0
"""


def test_processor():
    assert usage.times_of(STAT) == [(150.0, 1000.0), (250.0, 1020.0)]
    before, after = [(100.0, 1000.0), (100.0, 1000.0)], [(190.0, 1100.0), (110.0, 1100.0)]
    assert usage.load_between(before, after) == {"total": 50.0, "max_core": 90.0}
    assert usage.load_between(before, before) is None
    assert usage.load_between([], []) is None


def test_disks():
    assert usage.disks_of(DISKSTATS) == {"sda": (0.7, 1024000), "nvme0n1": (0.09, 5120)}
    before, after = {"a": (1.0, 100), "b": (0.0, 0)}, {"a": (1.45, 300), "b": (0.1, 50), "new": (9.0, 9)}
    assert usage.disk_between(before, after, 0.5) == {"busy": 0.9, "read_bytes": 250}
    assert usage.disk_between({"a": (None, 1)}, {"a": (None, 3)}, 0.5) == {"busy": None, "read_bytes": 2}
    assert usage.disk_between({}, {"a": (1.0, 3)}, 0.5) is None


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("sda", True),
        ("sda1", False),
        ("nvme0n1", True),
        ("nvme0n1p2", False),
        ("loop0", False),
        ("PhysicalDrive0", True),
    ],
)
def test_whole_disk(name, whole):
    assert usage.whole_disk(name) is whole


def test_devices():
    names = "index utilization memory_utilization power clock_sm pstate memory_used temperature throttle pcie_gen"
    device = dict.fromkeys([*names.split(), "pcie_width"], 1)
    found = usage.gpu_sample({"devices": [dict(device, name="x", processes=[])]}, 0.504)
    assert found == [dict(device, t=0.5)]


@pytest.mark.skipif(sys.platform == "win32", reason="Wine's processor times are wrong")
def test_a_busy_process_is_seen():
    pytest.importorskip("psutil")
    busy = subprocess.Popen([sys.executable, "-c", "import time\nend = time.time() + 8\nwhile time.time() < end: pass"])
    try:
        time.sleep(0.3)
        began = time.monotonic()
        value, _ = COLLECTORS["usage.sample"].function({"seconds": 1.5})
        assert time.monotonic() - began < 15
    finally:
        busy.kill()
        busy.wait()
    assert (value["seconds"], value["interval"]) == (1.5, usage.INTERVAL)
    assert len(value["cpu"]) >= 1 and all(0 <= one["total"] <= one["max_core"] <= 100 for one in value["cpu"])
    found = [one for one in value["processes"] if one["pid"] == busy.pid]
    assert found and found[0]["cpu"] > 5 and found[0]["memory"] > 0 and found[0]["on_gpu"] is False


def test_without_libraries(monkeypatch):
    # Neither psutil nor NVML nor nvidia-smi: what /proc tells is used, and nothing raises.
    monkeypatch.setitem(sys.modules, "psutil", None)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", "")
    value = usage.sample(0.6, 0.2)
    assert value["processes"] == []
    assert value["gpu"] == [] or os.path.exists("/usr/bin/nvidia-smi")
    assert bool(value["cpu"]) is os.path.exists("/proc/stat")


def test_seconds_are_bounded(monkeypatch):
    asked = []
    monkeypatch.setattr(usage, "sample", lambda seconds: asked.append(seconds) or {"gpu": [1], "cpu": []})
    for args in ({}, {"seconds": 0.2}, {"seconds": 9999}, {"seconds": 30, "limit": 10}):
        COLLECTORS["usage.sample"].function(args)
    assert asked == [10.0, 1.0, 112.0, 8.0]
