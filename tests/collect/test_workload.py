"""The workload: what is told of its phases. TensorFlow itself runs it in the lab's tests."""

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tftriage.collect import child, launch, workload
from tftriage.collect.registry import COLLECTORS, Absent


def answer(*lines):
    result = child.Result(0, b"", b"", False, 1.0)
    return launch.Answer([3, 7, 16], list(lines), result, "")


def test_readings_are_taken_from_the_time_of_the_phase():
    rows = [{"t": t / 2, "index": 0, "utilization": 90 if 8 <= t < 16 else 0} for t in range(24)]
    idle = [{"t": t / 2, "index": 1, "utilization": 1} for t in range(24)]
    cores = [{"t": 5.0, "total": 40.0, "max_core": 99.0}]
    sample = {"gpu": sorted(rows + idle, key=lambda row: row["t"]), "cpu": cores}
    found = workload.during(sample, {"began": 3.6, "ended": 7.9})
    assert (found["utilization"], found["gpu_readings"], found["max_core"]) == (90.0, 7, 99.0)
    assert workload.during({}, {"began": 0.0, "ended": 9.0}) == {"gpu_readings": 0, "cpu_readings": 0}


def test_a_size_that_did_not_fit_is_remembered():
    big = {"name": "matmul", "size": 4096, "error": "ResourceExhaustedError", "memory": True}
    small = {"name": "matmul", "size": 1024, "error": None}
    value = workload.told_by(answer({"begun": {"gpus": ["GPU:0"]}}, {"phase": big}, {"phase": small}))
    assert value["phases"] == [dict(small, shrunk=True)]
    assert value["gpus"] == ["GPU:0"]


def test_the_place_of_a_death_is_told():
    count = {"phase": "net", "steps": 12, "at": 1.0}
    done = {"name": "matmul", "size": 64, "error": None}
    value = workload.told_by(answer({"phase": done}, {"progress": count}))
    assert value["last"] == count and value["phases"] == [done]


def test_without_tensorflow():
    if importlib.util.find_spec("tensorflow"):
        pytest.skip("this Python has TensorFlow")
    with pytest.raises(Absent) as none:
        COLLECTORS["usage.workload"].function({"python": sys.executable, "limit": 60.0})
    assert str(none.value) == "no-tensorflow"


def test_the_child_says_why_tensorflow_cannot_be_imported(tmp_path):
    (tmp_path / "tensorflow.py").write_text("raise ImportError('DLL load failed')")
    source = Path(workload.__file__).with_name("workload_inside.py").read_bytes()
    done = subprocess.run(
        [sys.executable, "-B", "-", "workload", "MARK:", "4", str(time.time() + 50)], input=source, cwd=tmp_path,
        capture_output=True, timeout=60,
    )  # fmt: skip
    assert b'MARK:{"value": {"not_imported": "ImportError: DLL load failed"}}' in done.stdout
