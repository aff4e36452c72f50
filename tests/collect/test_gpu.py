"""Devices and driver: the real pynvml on a fake driver library, nvidia-smi's texts, the registry."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tftriage.collect import driver, gpu
from tftriage.collect.registry import COLLECTORS, Failed

ROOT = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir)
NATIVE = os.path.join(ROOT, "tests", "lab", "native")
ASK = """
import json, sys
from tftriage.collect import gpu, registry, usage
try:
    value, source = registry.COLLECTORS[sys.argv[1]].function(json.loads(sys.argv[2]))
    print(json.dumps({"value": value, "source": source}))
except Exception as problem:
    print(json.dumps({"error": type(problem).__name__, "note": str(problem)}))
"""


def built(folder, source, name):
    """A fake library of the lab, compiled; its folder for LD_LIBRARY_PATH."""
    path, gcc = os.path.join(NATIVE, source), shutil.which("gcc")
    if not sys.platform.startswith("linux") or gcc is None or not os.path.exists(path):
        pytest.skip(f"needs Linux, gcc and {source}")
    subprocess.run([gcc, "-shared", "-fPIC", "-O1", "-w", "-o", os.path.join(str(folder), name), path], check=True)
    return str(folder)


def ask(fact, folder, args=None, **environment):
    """A collector in a process of its own: the library's path is fixed when a process starts."""
    env = dict(os.environ, LD_LIBRARY_PATH=folder, PYTHONPATH=ROOT, **environment)
    command = [sys.executable, "-c", ASK, fact, json.dumps(args or {})]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nvml(tmp_path):
    pytest.importorskip("pynvml")
    folder = built(tmp_path, "fake_nvml.c", "libnvidia-ml.so.1")
    answer = ask("gpu.devices", folder, FAKE_NVML_COUNT="2", FAKE_NVML_DRIVER="461.92", FAKE_NVML_CUDA="11020")
    assert answer["source"] == "nvml"
    value = answer["value"]
    assert (value["driver"], value["cuda_driver"]) == ("461.92", "11.2")
    assert [one["index"] for one in value["devices"]] == [0, 1]
    first = value["devices"][0]
    assert (first["name"], first["capability"]) == ("GeForce GTX 1060 6GB", "6.1")
    assert (first["memory_total"], first["memory_used"]) == (6144 << 20, 1144 << 20)
    assert (first["utilization"], first["memory_utilization"], first["power"]) == (37, 12, 71.234)
    assert (first["power_limit"], first["temperature"], first["clock_sm"], first["clock_sm_max"]) == (
        120,
        61,
        1506,
        1911,
    )
    assert (first["pcie_gen"], first["pcie_width"], first["pstate"], first["throttle"]) == (3, 16, "P2", [])
    assert (first["processes"], first["driver_model"]) == ([], "WDDM")


def test_nvml_under_load(tmp_path):
    pytest.importorskip("pynvml")
    folder = built(tmp_path, "fake_nvml.c", "libnvidia-ml.so.1")
    faked = {
        "FAKE_NVML_THROTTLE": "68",
        "FAKE_NVML_PCIE": "1x4",
        "FAKE_NVML_PROCESSES": f"{os.getpid()}:512,99999999:7",
    }
    device = ask("gpu.devices", folder, **faked)["value"]["devices"][0]
    assert device["throttle"] == ["sw-power-cap", "hw-thermal"]
    assert (device["pcie_gen"], device["pcie_gen_max"], device["pcie_width"], device["pcie_width_max"]) == (1, 3, 4, 16)
    assert [(one["pid"], one["memory"]) for one in device["processes"]] == [
        (os.getpid(), 512 << 20),
        (99999999, 7 << 20),
    ]
    value = ask("usage.sample", folder, {"seconds": 1}, **faked)["value"]
    assert [one["pid"] for one in value["processes"] if one["on_gpu"]] == [os.getpid()]


def test_nvml_fields_fail_one_by_one(tmp_path):
    pytest.importorskip("pynvml")
    folder = built(tmp_path, "fake_nvml.c", "libnvidia-ml.so.1")
    device = ask("gpu.devices", folder, FAKE_NVML_FAIL="nvmlDeviceGetPowerUsage:3")["value"]["devices"][0]
    assert device["power"] is None and device["utilization"] == 37
    value = ask("gpu.devices", folder, FAKE_NVML_FAIL="nvmlDeviceGetHandleByIndex_v2:15")["value"]
    assert value["devices"] == [] and value["driver"] == "441.22"
    assert ask("gpu.devices", folder, FAKE_NVML_COUNT="0")["value"]["devices"] == []


@pytest.mark.parametrize(
    ("code", "name"), [("9", "NVML_ERROR_DRIVER_NOT_LOADED"), ("18", "NVML_ERROR_LIB_RM_VERSION_MISMATCH")]
)
def test_dead_driver(tmp_path, code, name):
    pytest.importorskip("pynvml")
    folder = built(tmp_path, "fake_nvml.c", "libnvidia-ml.so.1")
    assert ask("gpu.devices", folder, FAKE_NVML_INIT=code) == {"error": "Failed", "note": "driver:" + name}


def test_no_library(tmp_path):
    if shutil.which("nvidia-smi") or os.path.exists("/usr/lib/wsl/lib/nvidia-smi") or os.name == "nt":
        pytest.skip("this machine may have a driver")
    assert ask("gpu.devices", str(tmp_path)) == {"error": "Absent", "note": "no-library"}


@pytest.mark.parametrize(
    ("source", "note"),
    [
        ("int nvmlInit(void) { return 0; }", "nvml:too-old-library: NVML_ERROR_FUNCTION_NOT_FOUND"),
        (None, "nvml:broken-library: "),
    ],
    ids=["too-old", "broken"],
)
def test_a_library_that_is_no_use_is_told_apart_from_none(tmp_path, source, note):
    pytest.importorskip("pynvml")
    if shutil.which("nvidia-smi") or not sys.platform.startswith("linux") or shutil.which("gcc") is None:
        pytest.skip("needs Linux and gcc, and no driver")
    library = tmp_path / "libnvidia-ml.so.1"
    if source is None:
        library.write_bytes(b"\x7fELF is no library")
    else:
        (tmp_path / "old.c").write_text(source)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "old.c")], check=True)
    answer = ask("gpu.devices", str(tmp_path))
    assert answer["error"] == "Failed" and answer["note"].startswith(note), answer


def test_without_pynvml(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpu.nvml_or_reason()[1].startswith("no-module: ")


def test_wddm_keeps_the_memory_of_programs_to_itself(tmp_path):
    pytest.importorskip("pynvml")
    folder = built(tmp_path, "fake_nvml.c", "libnvidia-ml.so.1")
    assert ask("gpu.devices", folder)["value"]["devices"][0]["limits"] == ["process-memory"]
    assert ask("gpu.devices", folder, FAKE_NVML_MODEL="1")["value"]["devices"][0]["limits"] == []


def test_usage_samples_the_gpu(tmp_path):
    pytest.importorskip("pynvml")
    folder = built(tmp_path, "fake_nvml.c", "libnvidia-ml.so.1")
    value = ask("usage.sample", folder, {"seconds": 1.2})["value"]
    assert {one["utilization"] for one in value["gpu"]} == {37}
    assert [one["t"] for one in value["gpu"]] == sorted(one["t"] for one in value["gpu"])


SMI = r"""#!/bin/sh
case "$*" in
  *compute_cap*) [ -n "$SMI_OLD" ] && { echo 'Field "compute_cap" is not a valid field to query.'; exit 2; }
     echo "0, 6.1";;
  *query-gpu*) [ -n "$SMI_BROKEN" ] && { echo "NVIDIA-SMI has failed because it couldn't communicate"; exit 9; }
     [ -n "$SMI_NONE" ] && { echo "No devices were found"; exit 6; }
     echo "0, GeForce GTX 1060, 461.92, 6144, 300, 5844, 37, [Not Supported], 71.23, [N/A], 61," \
       "1708, 2002, P2, 3, 3, 16, 16";;
  *) echo "| NVIDIA-SMI 461.92       Driver Version: 461.92       CUDA Version: 11.2     |";;
esac
"""


@pytest.fixture
def smi(tmp_path):
    if os.name == "nt":
        pytest.skip("a shell script stands for nvidia-smi")
    path = tmp_path / "nvidia-smi"
    path.write_text(SMI)
    path.chmod(0o755)
    return str(path)


def test_smi(smi, monkeypatch):
    value = gpu.from_smi(smi)
    device = value["devices"][0]
    assert (value["driver"], value["cuda_driver"], device["capability"]) == ("461.92", "11.2", "6.1")
    assert (device["memory_total"], device["utilization"], device["power"]) == (6144 << 20, 37, 71.23)
    assert (device["memory_utilization"], device["power_limit"], device["pstate"]) == (None, None, "P2")
    monkeypatch.setenv("SMI_OLD", "1")
    assert gpu.from_smi(smi)["devices"][0]["capability"] is None
    assert gpu.find_smi({"PATH": os.path.dirname(smi)}) == smi
    monkeypatch.setenv("SMI_NONE", "1")
    assert gpu.from_smi(smi)["devices"] == []
    monkeypatch.setenv("SMI_BROKEN", "1")
    with pytest.raises(Failed, match="driver:NVIDIA-SMI has failed because"):
        gpu.from_smi(smi)


def test_smi_serves_where_nvml_is_not(smi, tmp_path):
    answer = ask("gpu.devices", str(tmp_path / "none"), PATH=os.path.dirname(smi) + os.pathsep + os.environ["PATH"])
    assert answer["source"] in ("nvidia-smi", "nvml")  # nvml: on a machine with a driver


def test_both_ways_give_the_same_fields(tmp_path, smi):
    pytest.importorskip("pynvml")
    folder = built(tmp_path, "fake_nvml.c", "libnvidia-ml.so.1")
    by_nvml = ask("gpu.devices", folder)["value"]["devices"][0]
    assert set(gpu.from_smi(smi)["devices"][0]) == set(by_nvml)


def test_cuda_text():
    assert [driver.cuda_text(number) for number in (9020, 10010, 11020, 12080, 0)] == [
        "9.2",
        "10.1",
        "11.2",
        "12.8",
        None,
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("error libcuda.so.1: cannot open\n", (None, False, None, None)),
        (
            "library /usr/lib/wsl/lib/libcuda.so.1\nversion 0 11020\ninit 100\n",
            ("/usr/lib/wsl/lib/libcuda.so.1", True, 100, "11.2"),
        ),
        (
            "library C:\\\\Windows\\\\nvcuda.dll\nversion 0 9020\n",
            ("C:\\Windows\\nvcuda.dll", True, None, "9.2"),
        ),  # died in cuInit
        ("", (None, None, None, None)),
    ],
)
def test_child_output(text, expected):
    found = driver.parse_child(text)
    assert (found["library"], found["loads"], found["cu_init"], found["cuda_version"]) == expected


def test_driver_library(tmp_path):
    folder = built(tmp_path, "fake_cuda.c", "libcuda.so.1")
    value = ask("gpu.driver", folder)["value"]
    assert value["library"] == os.path.join(folder, "libcuda.so.1")
    assert (value["loads"], value["cu_init"]) == (True, 0)
    assert value["cuda_version"]
    assert ask("gpu.driver", folder, FAKE_CUDA_INIT="100")["value"]["cu_init"] == 100


def test_crashing_driver(tmp_path):
    gcc = shutil.which("gcc")
    if not sys.platform.startswith("linux") or gcc is None:
        pytest.skip("needs Linux and gcc")
    source = tmp_path / "crash.c"
    source.write_text(
        "int cuDriverGetVersion(int *v) { *v = 11020; return 0; }\nint cuInit(int f) { return *(volatile int *)8; }\n"
    )
    subprocess.run([gcc, "-shared", "-fPIC", "-o", str(tmp_path / "libcuda.so.1"), str(source)], check=True)
    value = ask("gpu.driver", str(tmp_path))["value"]
    assert (value["loads"], value["cuda_version"], value["cu_init"]) == (True, "11.2", None)
    assert value["error"] == "the process ended with -11"


def test_a_library_that_does_not_load_is_still_located(tmp_path):
    if not sys.platform.startswith("linux"):
        pytest.skip("LD_LIBRARY_PATH")
    (tmp_path / "libcuda.so.1").write_bytes(b"not elf")
    value = ask("gpu.driver", str(tmp_path))["value"]
    assert (value["loads"], value["library"]) == (False, str(tmp_path / "libcuda.so.1"))
    assert value["error"]


def test_kernel_module(tmp_path):
    path = tmp_path / "version"
    path.write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82.01  Mon Nov  1 21:34:12 UTC 2021\nGCC version:\n"
    )
    assert driver.kernel_module(str(path)) == "470.82.01"
    path.write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build\n")
    assert driver.kernel_module(str(path)) == "550.54.14"
    assert driver.kernel_module(str(tmp_path / "gone")) is None


def test_windows_cards():
    stored = {
        "0000": {
            "DriverDesc": ("REG_SZ", "Intel(R) UHD Graphics 630"),
            "MatchingDeviceId": ("REG_SZ", r"PCI\VEN_8086&DEV_3E9B"),
        },
        "0001": {
            "DriverDesc": ("REG_SZ", "NVIDIA GeForce GTX 1060"),
            "MatchingDeviceId": ("REG_SZ", r"pci\ven_10de&dev_1c20"),
            "DriverVersion": ("REG_SZ", "27.21.14.6192"),
        },
        "0002": {},
    }
    found = driver.windows_cards(
        lambda hive, key: [*stored, "Properties"], lambda hive, key: stored[key.rsplit("\\", 1)[1]]
    )
    assert found == [
        {"vendor": "Intel", "name": "Intel(R) UHD Graphics 630", "driver": None},
        {"vendor": "NVIDIA", "name": "NVIDIA GeForce GTX 1060", "driver": "27.21.14.6192"},
    ]


def test_linux_cards(tmp_path):
    for slot, words in {
        "0000:01:00.0": ("0x030000", "0x10de", "0x1c20"),
        "0000:00:1f.3": ("0x040300", "0x8086", "0xa348"),
    }.items():
        (tmp_path / slot).mkdir()
        for name, word in zip(("class", "vendor", "device"), words, strict=True):
            (tmp_path / slot / name).write_text(word + "\n")
    cards = driver.linux_cards(str(tmp_path))
    assert cards == [{"vendor": "NVIDIA", "name": "10de:1c20"}]
    line = "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GP106M [GTX 1060] [10de:1c20] (rev a1)\n"
    assert driver.named_cards(cards, line)[0]["name"] == "NVIDIA Corporation GP106M [GTX 1060]"
    assert driver.named_cards(cards, "") == cards
    assert driver.linux_cards(str(tmp_path / "gone")) is None


def test_collector_answers_without_a_driver():
    value, source = COLLECTORS["gpu.driver"].function({})
    assert source == "cuInit"
    assert {"library", "loads", "error", "cu_init", "cuda_version", "kernel_module", "cards"} == set(value)
