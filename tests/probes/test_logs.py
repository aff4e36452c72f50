"""The log reader and the stages, on lines that real TensorFlow builds printed."""
# ruff: noqa: E501 - lines of real logs and tracebacks

from __future__ import annotations

import pytest

from tests.probes.evidence_words import run
from tftriage.facts import Fact
from tftriage.probes import logs
from tftriage.probes.logs import events, first, prints, read_log

NUMA = """\
2026-11-30 14:11:15.891991: E tensorflow/stream_executor/cuda/cuda_gpu_executor.cc:967] could not open file to read NUMA node: /sys/bus/pci/devices/0000:01:00.0/numa_node
Your kernel may have been built without NUMA support.
"""
TENSORRT = """\
2026-11-30 14:11:13.998799: W tensorflow/stream_executor/platform/default/dso_loader.cc:55] Could not load dynamic library 'libnvinfer.so.6'; dlerror: libnvinfer.so.6: cannot open shared object file: No such file or directory; LD_LIBRARY_PATH: fake
2026-11-30 14:11:14.000643: W tensorflow/stream_executor/platform/default/dso_loader.cc:55] Could not load dynamic library 'libnvinfer_plugin.so.6'; dlerror: libnvinfer_plugin.so.6: cannot open shared object file: No such file or directory; LD_LIBRARY_PATH: fake
2026-11-30 14:11:14.000665: W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:30] Cannot dlopen some TensorRT libraries. If you would like to use Nvidia GPU with TensorRT, please make sure the missing libraries mentioned above are installed properly.
"""
FOUND = """\
2026-11-30 14:11:15.892258: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1555] Found device 0 with properties: 
pciBusID: 0000:01:00.0 name: GeForce GTX 1650 computeCapability: 7.5
coreClock: 1.665GHz coreCount: 16 deviceMemorySize: 4.00GiB deviceMemoryBandwidth: 119.24GiB/s
"""
CANNOT = """\
2026-11-30 14:11:15.892811: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1592] Cannot dlopen some GPU libraries. Please make sure the missing libraries mentioned above are installed properly if you would like to use GPU. Follow the guide at https://www.tensorflow.org/install/gpu for how to download and setup the required libraries for your platform.
Skipping registering GPU devices...
"""
NO_CUDNN = (
    "2026-11-30 14:11:29.166027: W tensorflow/stream_executor/platform/default/dso_loader.cc:55] Could not load dynamic "
    "library 'libcudnn.so.7'; dlerror: libcudnn.so.7: cannot open shared object file: No such file or directory\n"
)
ADDED = "2026-11-30 14:12:07.426519: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1697] Adding visible gpu devices: 0\n"
CREATED_21 = (
    "2026-11-30 14:40:36.646813: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1241] Created TensorFlow device "
    "(/device:GPU:0 with 3156 MB memory) -> physical GPU (device: 0, name: GeForce GTX 1650, pci bus id: 0000:01:00.0, "
    "compute capability: 7.5)\n"
)
CREATED_210 = (
    "2023-03-12 13:45:42.381082: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1616] Created device "
    "/job:localhost/replica:0/task:0/device:GPU:0 with 2787 MB memory:  -> device: 0, name: NVIDIA GeForce GTX 1050, "
    "pci bus id: 0000:01:00.0, compute capability: 6.1\n"
)
NO_DRIVER_210 = """\
2026-11-30 14:25:34.221443: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory
2026-11-30 14:25:34.221476: I tensorflow/stream_executor/cuda/cudart_stub.cc:29] Ignore above cudart dlerror if you do not have a GPU set up on your machine.
2026-11-30 14:25:34.246332: E tensorflow/stream_executor/cuda/cuda_blas.cc:2981] Unable to register cuBLAS factory: Attempting to register factory for plugin cuBLAS when one has already been registered
2026-11-30 14:25:38.962801: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libcuda.so.1'; dlerror: libcuda.so.1: cannot open shared object file: No such file or directory
2026-11-30 14:25:38.963721: W tensorflow/stream_executor/cuda/cuda_driver.cc:263] failed call to cuInit: UNKNOWN ERROR (303)
2026-11-30 14:25:38.963754: I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:156] kernel driver does not appear to be running on this host (vm): /proc/driver/nvidia/version does not exist
"""
STUB_215 = """\
2026-11-30 14:33:56.203954: I tensorflow/core/util/port.cc:113] oneDNN custom operations are on. You may see slightly different numerical results.
2026-11-30 14:33:56.205803: I external/local_tsl/tsl/cuda/cudart_stub.cc:31] Could not find cuda drivers on your machine, GPU will not be used.
2026-11-30 14:33:56.253171: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered
2026-11-30 14:33:57.268349: W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT
"""
ABSL_221 = """\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1796048776.320834   15987 port.cc:153] oneDNN custom operations are on. You may see slightly different numerical results.
I0000 00:00:1796048776.321926   15987 cudart_stub.cc:31] Could not find cuda drivers on your machine, GPU will not be used.
E0000 00:00:1796048782.501907   15987 cuda_platform.cc:52] failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)
"""
ABSL_LIBRARIES = """\
I0000 00:00:1796048792.336088   16470 cudart_stub.cc:31] Could not find cuda drivers on your machine, GPU will not be used.
E0000 00:00:1796048793.510305   16470 cuda_executor.cc:1737] INTERNAL: CUDA Runtime error: Failed call to cudaGetRuntimeVersion: Error loading CUDA libraries. GPU will not be used.: Error loading CUDA libraries. GPU will not be used.
W0000 00:00:1796048793.539852   16470 gpu_device.cc:2365] Cannot dlopen some GPU libraries. Please make sure the missing libraries mentioned above are installed properly if you would like to use GPU.
Skipping registering GPU devices...
"""
IGNORED = (
    "2026-11-30 14:40:17.022267: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1976] Ignoring visible gpu device "
    "(device: 0, name: GeForce GTX 660, pci bus id: 0000:01:00.0, compute capability: 3.0) with Cuda compute capability "
    "3.0. The minimum required Cuda capability is 3.5.\n"
)
ABORT_113 = """\
2026-11-30 14:14:37.758621: I tensorflow/compiler/xla/service/platform_util.cc:194] StreamExecutor cuda device (0) is of insufficient compute capability: 3.5 required, device is 3.0
2026-11-30 14:14:37.758689: F tensorflow/stream_executor/lib/statusor.cc:34] Attempting to fetch value instead of handling error Internal: no supported devices found for platform CUDA
"""
CORES_09 = """\
I tensorflow/core/common_runtime/gpu/gpu_init.cc:102] Found device 0 with properties:
name: Quadro K4200
major: 3 minor: 0 memoryClockRate (GHz) 0.784
Ignoring gpu device with Cuda multiprocessor count: 7. The minimum required count is 8.
"""
INSUFFICIENT = (
    "RuntimeError: cudaGetDevice() failed. Status: CUDA driver version is insufficient for CUDA runtime version"
)


def gpus(log: str = "", **more: object) -> dict[str, object]:
    return {
        "ok": True,
        "built_with_cuda": True,
        "is_gpu_available": False,
        "physical": [],
        "error": None,
        "log": log,
        "exit": 0,
        "signal": None,
        "timed_out": False,
        **more,
    }


def package(version: str) -> dict[str, object]:
    return {
        "distributions": [{"name": "tensorflow-gpu", "version": version}],
        "version": version,
        "folder": "x",
    }


def test_both_forms_of_lines_are_read() -> None:
    lines = read_log("text before\r\n" + FOUND + ABSL_221)
    assert [(line.level, line.file) for line in lines] == [
        ("", ""),
        ("I", "gpu_device.cc"),
        ("I", "port.cc"),
        ("I", "cudart_stub.cc"),
        ("E", "cuda_platform.cc"),
    ]
    assert "computeCapability: 7.5" in lines[1].text, "a line without prefix continues the message"
    assert lines[1].around(0) == "Found device 0 with properties:"


def test_old_windows_builds_write_a_build_path_and_no_date() -> None:
    text = r"I C:\tf_jenkins\workspace\rel-win\M\windows-gpu\PY\35\tensorflow\core\common_runtime\gpu\gpu_device.cc:885] Found device 0 with properties:"
    (line,) = read_log(text)
    assert (line.level, line.file, line.text) == ("I", "gpu_device.cc", "Found device 0 with properties:")


def test_a_notebooks_prefix_before_the_line_does_not_hide_it() -> None:
    assert read_log("  <stderr> " + ADDED)[0].file == "gpu_device.cc"


def test_a_long_line_is_cut_for_the_screen() -> None:
    assert len(read_log("x" * 500)[0].around(0)) == 200


def test_harmless_lines_prove_nothing() -> None:
    assert events(TENSORRT + NUMA + "kernel driver does not appear to be running on this host") == ()


def test_a_console_of_80_columns_breaks_words() -> None:
    wide = CANNOT.splitlines()[0]
    broken = "\n".join(wide[i : i + 80] for i in range(0, len(wide), 80))
    assert first(events(broken), "skipping")


@pytest.mark.parametrize(
    ("event", "version", "expected"),
    [
        ("found", "2.1.0", True),
        ("found", "2.5.3", True),
        ("found", "2.8.0", False),
        ("missing", "2.15.1", False),
        ("created", "2.21.0", True),
        ("stub", "2.10.1", False),
        ("found", None, None),
        ("found", "nonsense", None),
    ],
)
def test_what_a_version_prints(event: str, version: str | None, expected: bool | None) -> None:
    assert prints(event, version) is expected


@pytest.mark.parametrize(
    "text", [CREATED_21, CREATED_210, FOUND + NUMA + ADDED + CREATED_21, TENSORRT + CREATED_210], ids="abcd"
)
def test_created(text: str) -> None:
    finding = run("log_stage", tf__gpus=gpus(text))
    assert finding.answer == "created"
    assert "GPU:0" in finding.values["line"]


def test_a_silent_log_with_a_listed_gpu_is_created() -> None:
    assert run("log_stage", tf__gpus=gpus("", physical=["/physical_device:GPU:0"])).answer == "created"
    assert (
        run("log_stage", paste="[PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')]").answer == "created"
    )


def test_dlopen_failed_names_the_library_and_not_tensorrt() -> None:
    finding = run("log_stage", tf__gpus=gpus(TENSORRT + FOUND + NO_CUDNN + NO_CUDNN + CANNOT))
    assert finding.answer == "dlopen-failed"
    assert finding.values["missing"] == "libcudnn.so.7"


def test_new_versions_name_no_library() -> None:
    finding = run("log_stage", tf__gpus=gpus(CANNOT), tf__package=package("2.15.1"))
    assert (finding.answer, finding.values["missing"]) == ("dlopen-failed", "")


def test_could_not_find_cuda_drivers_means_libcudart() -> None:
    finding = run("log_stage", tf__gpus=gpus(STUB_215))
    assert (finding.answer, finding.values["missing"]) == ("dlopen-failed", "libcudart")
    finding = run("log_stage", tf__gpus=gpus(ABSL_LIBRARIES))
    assert (finding.answer, finding.values["missing"]) == ("dlopen-failed", "libcudart")


def test_only_a_missing_library_in_a_paste() -> None:
    text = "Could not load dynamic library 'cudart64_101.dll'; dlerror: cudart64_101.dll not found"
    finding = run("log_stage", paste=text)
    assert (finding.answer, finding.values["missing"]) == ("dlopen-failed", "cudart64_101.dll")
    assert run("log_stage", paste="Could not dlopen library 'cusolver64_100.dll'").answer == "dlopen-failed"


@pytest.mark.parametrize("text", [NO_DRIVER_210, ABSL_221], ids=["2.10", "2.21"])
def test_no_driver_is_cuinit_although_libcudart_is_missing_too(text: str) -> None:
    finding = run("log_stage", tf__gpus=gpus(text))
    assert (finding.answer, finding.values["error"]) == ("cuinit-failed", "UNKNOWN ERROR (303)")


def test_cuinit_with_a_name_and_without() -> None:
    line = "2026-11-30 14:13:01.385820: E tensorflow/stream_executor/cuda/cuda_driver.cc:351] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
    assert run("log_stage", tf__gpus=gpus(line)).values["error"].startswith("CUDA_ERROR_NO_DEVICE")
    mixed = (
        line.replace("NO_DEVICE: no CUDA-capable device is detected", "UNKNOWN: unknown error") + "\nDevice mapping:"
    )
    assert run("log_stage", tf__gpus=gpus(mixed)).values["error"] == "CUDA_ERROR_UNKNOWN: unknown error"
    only = "W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'nvcuda.dll'; dlerror: nvcuda.dll not found"
    finding = run("log_stage", paste=only)
    assert finding.answer == "cuinit-failed"
    assert "nvcuda.dll" in finding.values["error"]


def test_capability_refused_by_both_wordings() -> None:
    finding = run("log_stage", tf__gpus=gpus(FOUND + IGNORED + ADDED.replace("devices: 0", "devices: ")))
    assert finding.answer == "ignored-capability"
    assert (finding.values["capability"], finding.values["minimum"]) == ("3.0", "3.5")
    finding = run("log_stage", tf__gpus=gpus(NUMA + ABORT_113, ok=False, exit=134, signal="SIGABRT"))
    assert finding.answer == "ignored-capability"
    assert (finding.values["capability"], finding.values["minimum"]) == ("3.0", "3.5")
    unknown = "Ignoring visible gpu device (device: 0, name: X) whose CUDA compute capability is not available."
    assert run("log_stage", paste=unknown).values.get("minimum") is None


def test_core_count_and_executor() -> None:
    assert run("log_stage", paste=CORES_09).answer == "ignored-core-count"
    text = "Ignoring visible gpu device (device: 0, name: Y) whose executor is in invalid state: Internal: failed"
    finding = run("log_stage", paste=text)
    assert (finding.answer, finding.values["error"]) == ("executor-invalid", "Internal: failed")


def test_found_then_nothing() -> None:
    finding = run("log_stage", tf__gpus=gpus(FOUND + ADDED, timed_out=True), tf__package=package("2.1.0"))
    assert finding.answer == "found-then-nothing"
    assert "log_stage.absence-counts" in [e.key for e in finding.evidence]
    assert run("log_stage", paste=FOUND).evidence[1].key == "log_stage.absence-open"


def test_a_listed_gpu_whose_driver_is_too_old_is_not_created() -> None:
    finding = run("log_stage", tf__gpus=gpus(FOUND + ADDED, physical=["/physical_device:GPU:0"], error=INSUFFICIENT))
    assert finding.answer == "found-then-nothing"
    assert "insufficient" in finding.values["error"]


def test_the_log_of_a_check_stopped_at_its_limit_still_counts() -> None:
    late = Fact("tf.gpus", "timeout", {"log": FOUND + ADDED}, note="limit")
    assert run("log_stage", tf__gpus=late).answer == "found-then-nothing"


def test_the_paste_counts_where_the_check_is_silent() -> None:
    finding = run("log_stage", tf__gpus=gpus(), paste=CANNOT)
    assert finding.answer == "dlopen-failed"
    assert finding.evidence[-1].params == {"fact": "paste.text"}
    assert run("log_stage", tf__gpus=gpus(CREATED_21), paste=CANNOT).answer == "created", "the machine comes first"


def test_no_gpu_lines_and_why() -> None:
    assert run("log_stage", tf__gpus=gpus(TENSORRT)).answer == "no-gpu-lines"
    quiet = run("log_stage", tf__gpus=gpus(), env__process={"TF_CPP_MIN_LOG_LEVEL": "3"})
    assert [e.key for e in quiet.evidence] == ["log_stage.none", "log_stage.switched-off"]
    newer = run("log_stage", tf__gpus=gpus(), tf__package=package("2.10.1"), env__process={})
    assert newer.evidence[-1].key == "log_stage.prints-less"


def test_unknown_with_its_reason() -> None:
    assert run("log_stage").reason == "tf.gpus: not-recorded"
    failed = run("log_stage", tf__gpus=gpus(ok=False, error="ImportError: libcublas.so.10.0"))
    assert (failed.answer, failed.reason) == ("unknown", "tf.gpus: ImportError: libcublas.so.10.0")
    silent = run("log_stage", tf__gpus=gpus(ok=False, timed_out=True))
    assert silent.reason == "tf.gpus: no answer"


def test_colours_are_taken_off_a_paste() -> None:
    assert run("log_stage", paste="\x1b[31mCannot dlopen some \x1b[0mGPU libraries.").answer == "dlopen-failed"


def test_the_card_of_a_log() -> None:
    assert logs.card(events(FOUND)) == ("GeForce GTX 1650", "7.5")
    assert logs.card(events(CREATED_210)) == ("NVIDIA GeForce GTX 1050", "6.1")
    old = "gpu_device.cc:1433] Found device 0 with properties: \nname: GeForce GTX 1650 major: 7 minor: 5 memoryClockRate(GHz): 1.665"
    assert logs.card(events("2026-11-30 14:14:36.533783: I tensorflow/core/common_runtime/gpu/" + old)) == (
        "GeForce GTX 1650",
        "7.5",
    )
    assert logs.card(()) == ("", "")
