"""Every collector on every Python: Windows 3.8 and 3.11, Linux 3.6 to 3.13, with the real pynvml on a pretend NVML.

No collector may end in an error: what is missing is ``absent`` or ``skipped``, with the reason. Every value
has the shape that probes and cases read.
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import shutil
from collections.abc import Iterable
from typing import Any

import labtools
import pytest

from tests.collect import shapes

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINUX = ["3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13"]
COLLECTOR = ("-B", "-m", "tftriage.collect")
CPU_ONLY = {"CUDA_VISIBLE_DEVICES": "-1"}  # the pretend driver computes nothing; the processor's numbers are real


@pytest.fixture
def modules(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with pynvml alone, as an optional module for a Python that has none."""
    found = importlib.util.find_spec("pynvml")
    if found is None or found.origin is None:
        pytest.skip("nvidia-ml-py is not installed")
    folder = tmp_path / "modules"
    folder.mkdir()
    shutil.copy(found.origin, folder / "pynvml.py")
    return folder


def requests(args: dict[str, Any], but: Iterable[str] = (), **more: dict[str, Any]) -> bytes:
    """A request for every fact there is; ``more`` are arguments for some, with ``__`` for the dot."""
    named = {name.replace("__", "."): value for name, value in more.items()}
    lines = [{"collect": name, "args": {**args, **named.get(name, {})}} for name in shapes.SHAPES if name not in but]
    return "".join(json.dumps(line) + "\n" for line in lines).encode("ascii")


def checked(ran: labtools.Ran, count: int) -> dict[str, dict[str, Any]]:
    """The facts by name, each of its shape and none an error."""
    lines = [line for line in ran.out.splitlines() if line.startswith("{")]
    assert len(lines) == count, ran
    assert [problem for line in lines for problem in shapes.problems(line.encode())] == []
    facts = {fact["fact"]: fact for fact in map(json.loads, lines)}
    bad = {name: fact["note"] for name, fact in facts.items() if fact["status"] in ("error", "timeout")}
    assert bad == {}
    return facts


@pytest.mark.parametrize("version", LINUX)
def test_linux(version, old_python, native, modules, tmp_path):
    python = str(old_python(version))
    args = {"python": python, "module": "json", "seconds": 1, "libraries": ["libcuda.so.1", "libgone.so.1"],
            "roots": ["libcuda.so.1"], "cwd": str(tmp_path), "limit": 100}  # fmt: skip
    env = {
        "LD_LIBRARY_PATH": f"{native}/linux/nvml:{native}/linux/driver",
        "PYTHONPATH": f"{ROOT}:{modules}",
        "FAKE_NVML_THROTTLE": "4",
    }
    ran = labtools.run_program([python, *COLLECTOR], env, 300, tmp_path, requests(args))
    facts = checked(ran, len(shapes.SHAPES))
    assert ".".join(map(str, facts["target.interpreter"]["value"]["version"])).startswith(version + ".")
    gpu = facts["gpu.devices"]
    assert (gpu["status"], gpu["source"], gpu["value"]["devices"][0]["throttle"]) == ("ok", "nvml", ["sw-power-cap"])
    assert facts["gpu.driver"]["value"]["cu_init"] == 0
    assert [one["code"] for one in facts["tf.libraries"]["value"]["opened"]] == [0, None]
    assert facts["tf.import"]["value"]["ok"] and facts["tf.import"]["value"]["module"] == "json"
    assert facts["usage.workload"]["note"] == "no-tensorflow"
    assert facts["usage.sample"]["value"]["gpu"], "the pretend card was not sampled"


def test_linux_with_tensorflow(linux_target, modules, tmp_path):
    target, server = linux_target("tf210"), linux_target("jupyter")
    args = {"python": str(target.python), "seconds": 6, "libraries": ["libcudart.so.10.1"], "limit": 170,
            "roots": ["libcudart.so.10.1"]}  # fmt: skip
    kernel = {"kernel": "python3", "server_python": str(server.python)}
    env = {"LD_LIBRARY_PATH": target.libraries("nvml", "driver", "cuda101"), "PYTHONPATH": f"{ROOT}:{modules}"}
    asked = requests(args, jupyter__import=kernel, usage__workload={"env": CPU_ONLY})
    ran = labtools.run_program([str(target.python), *COLLECTOR], env, 500, tmp_path, asked)
    facts = checked(ran, len(shapes.SHAPES))
    assert facts["tf.gpus"]["value"]["physical"] == ["/physical_device:GPU:0"]
    requires = facts["target.packages"]["value"]["tensorflow-gpu"]["requires"]
    assert "protobuf (>=3.8.0)" in requires or any(line.startswith("protobuf") for line in requires)
    assert facts["usage.workload"]["value"]["gpus"] == []
    assert {p["name"]: p["correct"] for p in facts["usage.workload"]["value"]["phases"]} == {
        "matmul": True, "net-cpu": True, "fed": True,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["tf1131", "tf210"])
def test_the_workload_dies_with_a_driver_that_computes_nothing_and_that_is_told(name, linux_target, modules, tmp_path):
    target = linux_target(name)
    cuda = target.libraries("cuda101") if name == "tf210" else str(target.native / "linux-cuda100")
    env = {"LD_LIBRARY_PATH": f"{target.libraries('nvml', 'driver')}:{cuda}", "PYTHONPATH": f"{ROOT}:{modules}"}
    line = json.dumps({"collect": "usage.workload", "args": {"python": str(target.python), "seconds": 6}}) + "\n"
    ran = labtools.run_program([str(target.python), *COLLECTOR], env, 250, tmp_path, line.encode())
    value = checked(ran, 1)["usage.workload"]["value"]
    assert not value["ok"] and (value["signal"] or value["error"])
    blind = json.dumps({"collect": "usage.workload",
                        "args": {"python": str(target.python), "seconds": 6, "env": CPU_ONLY}}) + "\n"  # fmt: skip
    ran = labtools.run_program([str(target.python), *COLLECTOR], env, 250, tmp_path, blind.encode())
    value = checked(ran, 1)["usage.workload"]["value"]
    assert value["ok"] and value["gpus"] == [] and all(phase["correct"] for phase in value["phases"])


@pytest.mark.parametrize("version", ["3.8", "3.11"])
def test_windows(version, windows, modules):
    windows.driver()
    target = labtools.wine_path(windows.python("3.11"))  # without TensorFlow, whose import takes minutes under Wine
    args = {"python": target, "seconds": 2, "libraries": ["nvcuda.dll", "gone64_1.dll"], "roots": ["nvcuda.dll"],
            "limit": 150}  # fmt: skip
    kernel = {"kernel": "python3", "server_python": target}
    path = f"{labtools.wine_path(ROOT)};{labtools.wine_path(modules)}"
    asked = requests(args, jupyter__import=kernel)
    ran = windows.run(windows.python(version), *COLLECTOR, env={"PYTHONPATH": path}, timeout=500, stdin=asked)
    facts = checked(ran, len(shapes.SHAPES))
    assert facts["target.interpreter"]["value"]["version"][:2] == [3, 11]
    assert (facts["gpu.devices"]["source"], facts["gpu.devices"]["value"]["nvml"]) == ("nvml", None)
    assert facts["gpu.devices"]["value"]["devices"][0]["limits"] == ["process-memory"]
    assert facts["system.os"]["value"]["wine"] is True
    assert [one["code"] for one in facts["tf.libraries"]["value"]["opened"]] == [0, 126]
    assert "msvcp140.dll" in [one["name"] for one in facts["system.vcruntime"]["value"]["files"]]
    assert facts["env.machine"]["value"]["Path"]["entries"]
    assert facts["usage.workload"]["note"] == "no-tensorflow"


def test_windows_with_tensorflow(windows, modules):
    windows.driver()
    names = ("target.packages", "tf.package", "tf.record", "usage.workload")
    args = {"python": labtools.wine_path(windows.python("3.8")), "seconds": 4, "limit": 420, "env": CPU_ONLY}
    path = f"{labtools.wine_path(ROOT)};{labtools.wine_path(modules)}"
    asked = requests(args, but=set(shapes.SHAPES) - set(names))
    ran = windows.run(windows.python("3.8"), *COLLECTOR, env={"PYTHONPATH": path}, timeout=500, stdin=asked)
    facts = checked(ran, len(names))
    assert facts["target.packages"]["value"]["tensorflow-gpu"]["requires"]
    value = facts["usage.workload"]["value"]
    assert (value["ok"], value["version"], value["gpus"]) == (True, "2.3.1", [])
    assert {phase["name"]: phase["correct"] for phase in value["phases"]} == {
        "matmul": True, "net-cpu": True, "fed": True,
    }  # fmt: skip
