"""Driver, card and operation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.probes.evidence_words import LINUX, WIN10, WSL2, run
from tests.probes.test_logs import ABORT_113, CORES_09, CREATED_21, FOUND, IGNORED, INSUFFICIENT, NO_DRIVER_210, gpus
from tftriage.facts import Fact
from tftriage.probes import gpu

NO_NVML = Fact("gpu.devices", "absent", note="no-library")


def package(version: str) -> dict[str, Any]:
    return {"distributions": [{"name": "tensorflow-gpu", "version": version}], "version": version}


def devices(driver: str | None = "461.92", *cards: dict[str, Any], cuda: str | None = "11.2") -> dict[str, Any]:
    return {
        "driver": driver,
        "cuda_driver": cuda,
        "devices": list(cards) or [{"index": 0, "name": "GeForce GTX 1650"}],
    }


def driver(**more: Any) -> dict[str, Any]:
    base = {"library": r"C:\Windows\System32\nvcuda.dll", "loads": True, "error": None, "cu_init": 0}
    return {**base, "cuda_version": "11.2", "kernel_module": None, "cards": None, **more}


GONE = driver(library=None, loads=None, cu_init=None, cuda_version=None)
INTEL = [{"vendor": "Intel", "name": "Intel(R) UHD Graphics 620"}]
NVIDIA = [{"vendor": "0x10de", "name": "VGA compatible controller"}]


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ({"gpu__devices": devices(), "gpu__driver": driver()}, "ok"),
        ({"gpu__devices": devices("411.31"), "gpu__driver": driver()}, "driver-too-old"),
        ({"gpu__devices": devices("461.92"), "gpu__driver": driver(library=None)}, "no-driver"),
        (
            {"gpu__devices": devices(None, cuda=None), "gpu__driver": driver(cuda_version="10.0")},
            "driver-too-old",
        ),
        ({"gpu__devices": devices(None, cuda="10.2"), "gpu__driver": driver()}, "ok"),
        ({"gpu__devices": NO_NVML, "gpu__driver": GONE | {"cards": INTEL}}, "no-gpu"),
        ({"gpu__devices": NO_NVML, "gpu__driver": GONE | {"cards": []}}, "no-gpu"),
        ({"gpu__devices": NO_NVML, "gpu__driver": GONE | {"cards": NVIDIA}}, "no-driver"),
        ({"gpu__devices": NO_NVML, "gpu__driver": GONE}, "no-driver"),
        (
            {"gpu__devices": NO_NVML, "gpu__driver": driver(loads=False, error="invalid", cu_init=None)},
            "no-driver",
        ),
        ({"gpu__devices": NO_NVML, "gpu__driver": driver(cu_init=100)}, "no-gpu"),
        ({"gpu__devices": NO_NVML, "gpu__driver": driver(cu_init=100, cards=NVIDIA)}, "no-driver"),
        ({"gpu__devices": NO_NVML, "gpu__driver": driver(cu_init=35)}, "driver-too-old"),
        ({"gpu__devices": NO_NVML, "gpu__driver": driver(cu_init=803)}, "library-mismatch"),
        ({"gpu__devices": NO_NVML, "gpu__driver": driver(cu_init=999)}, "unknown"),
        ({"gpu__devices": NO_NVML, "gpu__driver": driver(cu_init=None)}, "unknown"),
        ({"gpu__devices": devices(), "gpu__driver": driver(cu_init=999)}, "unknown"),
        ({"gpu__devices": devices(), "gpu__driver": driver(cu_init=100)}, "unknown"),
        ({"gpu__devices": {"driver": "461.92", "devices": []}}, "no-gpu"),
        (
            {
                "gpu__devices": {"driver": "461.92", "devices": []},
                "gpu__driver": driver(cu_init=100, cards=NVIDIA),
            },
            "no-driver",
        ),
        ({"gpu__driver": driver()}, "ok"),
        ({"gpu__devices": devices()}, "ok"),
        ({}, "unknown"),
    ],
)
def test_driver_state_on_windows(values: dict[str, Any], answer: str) -> None:
    assert run("driver_state", system__os=WIN10, tf__package=package("2.1.0"), **values).answer == answer


def test_driver_values() -> None:
    known = {"system__os": WIN10, "tf__package": package("2.1.0"), "gpu__driver": driver()}
    finding = run("driver_state", gpu__devices=devices("411.31"), **known)
    assert finding.values == {"driver": "411.31", "floor": "418.96", "cuda": "10.1"}
    assert run("driver_state", gpu__devices=devices()).evidence[0].key == "driver_state.no-floor"


def test_from_cuda_11_on_the_major_versions_floor_is_enough() -> None:
    known: dict[str, Any] = {"tf__package": package("2.10.1"), "gpu__driver": driver()}
    assert run("driver_state", system__os=WIN10, gpu__devices=devices("456.71"), **known).answer == "ok"
    assert run("driver_state", system__os=WIN10, gpu__devices=devices("451.00"), **known).answer == "driver-too-old"
    # Without such a row the release's own counts.
    assert run("driver_state", system__os=LINUX, gpu__devices=devices("455.23"), **known).answer == "driver-too-old"
    old = devices(None, cuda="11.0")
    assert run("driver_state", system__os=WIN10, gpu__devices=old, **known).answer == "ok"
    old = devices(None, cuda="10.2")
    assert run("driver_state", system__os=WIN10, gpu__devices=old, **known).answer == "driver-too-old"


def test_wsl_has_windows_driver() -> None:
    known: dict[str, Any] = {"system__os": WSL2, "tf__package": package("2.1.0")}
    assert run("driver_state", gpu__devices=devices("418.50"), **known).answer == "driver-too-old", "Windows' floor"
    none = run("driver_state", gpu__devices=NO_NVML, gpu__driver=GONE | {"cards": INTEL}, **known)
    assert (none.answer, none.evidence[0].key) == ("no-driver", "driver_state.wsl-none"), "its bus shows no card"
    own = driver(library="/usr/lib/x86_64-linux-gnu/libcuda.so.1", cu_init=100)
    assert (
        run("driver_state", gpu__devices=NO_NVML, gpu__driver=own, **known).evidence[0].key
        == "driver_state.wsl-own-driver"
    )


def test_tensorflow_found_the_card_although_nvml_is_not_there() -> None:
    finding = run("driver_state", gpu__devices=NO_NVML, gpu__driver=GONE, tf__gpus=gpus(FOUND), system__os=LINUX)
    assert (finding.answer, finding.evidence[0].key) == ("ok", "driver_state.tf-found")


def test_too_old_by_tensorflows_own_words() -> None:
    said = gpus(FOUND, error=INSUFFICIENT)
    finding = run("driver_state", gpu__devices=devices(), gpu__driver=driver(), tf__gpus=said, system__os=WIN10)
    assert finding.answer == "driver-too-old"
    assert "insufficient" in finding.values["error"]
    # The same words in a paste count only where the machine says nothing against them.
    assert run("driver_state", paste=INSUFFICIENT).answer == "driver-too-old"
    assert run("driver_state", paste=INSUFFICIENT, gpu__devices=devices()).answer == "ok"


def test_library_mismatch_in_three_places() -> None:
    note = Fact("gpu.devices", "error", note="driver:NVML_ERROR_LIB_RM_VERSION_MISMATCH")
    assert run("driver_state", gpu__devices=note).values["error"] == note.note
    line = (
        "2018-09-26 16:20:01.273640: E tensorflow/stream_executor/cuda/cuda_diagnostics.cc:303] kernel version "
        "384.130.0 does not match DSO version 375.66.0 -- cannot find working devices in this configuration"
    )
    assert run("driver_state", tf__gpus=gpus(line)).answer == "library-mismatch"
    line = "E tensorflow/cuda_driver.cc:351] failed call to cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: x"
    assert run("driver_state", tf__gpus=gpus(line)).answer == "library-mismatch"


def test_driver_seen_only_through_tensorflow() -> None:
    assert run("driver_state", tf__gpus=gpus(NO_DRIVER_210)).answer == "no-driver"
    unloaded = Fact("gpu.devices", "error", note="driver:NVML_ERROR_DRIVER_NOT_LOADED")
    assert run("driver_state", gpu__devices=unloaded).answer == "no-driver"
    said = "driver:NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    assert run("driver_state", gpu__devices=Fact("gpu.devices", "error", note=said)).answer == "no-driver"
    said = "driver:Failed to initialize NVML: Driver/library version mismatch"
    assert run("driver_state", gpu__devices=Fact("gpu.devices", "error", note=said)).answer == "library-mismatch"


def test_a_hidden_card_is_no_missing_card() -> None:
    hidden = {"CUDA_VISIBLE_DEVICES": "-1"}
    finding = run("driver_state", gpu__devices=NO_NVML, gpu__driver=driver(cu_init=100), env__process=hidden)
    assert (finding.answer, finding.evidence[0].key) == ("unknown", "driver_state.hidden")
    shown = run("driver_state", gpu__devices=devices(), gpu__driver=driver(cu_init=100), env__process=hidden)
    assert shown.answer == "ok"


def one(name: str, capability: str | None) -> dict[str, Any]:
    return devices("461.92", {"index": 0, "name": name, "capability": capability})


@pytest.mark.parametrize(
    ("version", "capability", "answer"),
    [
        ("2.1.0", "7.5", "fits"),
        ("2.1.0", "5.0", "fits"),
        ("2.1.0", "3.0", "too-old"),
        ("2.1.0", "8.6", "too-new"),
        ("2.3.1", "5.0", "build-lacks-arch"),
        ("2.3.1", "7.5", "fits"),
        ("2.3.1", "8.6", "too-new"),
        ("2.10.1", "8.9", "fits"),
        ("2.10.1", "12.0", "too-new"),
        ("2.0.0", "8.6", "build-lacks-arch"),
    ],
)
def test_card_against_build(version: str, capability: str, answer: str) -> None:
    finding = run("card_fits", gpu__devices=one("X", capability), tf__package=package(version), system__os=WIN10)
    assert finding.answer == answer
    assert finding.values["capability"] == capability
    assert finding.values["tf_version"] == version


def test_one_fitting_card_of_two_is_enough() -> None:
    both = devices("1", {"index": 0, "name": "A", "capability": "3.0"}, {"index": 1, "name": "B", "capability": "7.5"})
    finding = run("card_fits", gpu__devices=both, tf__package=package("2.1.0"), system__os=WIN10)
    assert (finding.answer, finding.values["gpu"]) == ("fits", "B")


def test_where_the_capability_comes_from() -> None:
    known: dict[str, Any] = {"tf__package": package("2.1.0"), "system__os": WIN10}
    by_name = run("card_fits", gpu__devices=one("NVIDIA GeForce RTX 3060 Ti", None), **known)
    assert (by_name.answer, by_name.values["capability"]) == ("too-new", "8.6")
    by_log = run("card_fits", gpu__devices=one("Odd card", None), tf__gpus=gpus(FOUND), **known)
    assert (by_log.answer, by_log.values["capability"]) == ("fits", "7.5")
    assert run("card_fits", tf__gpus=gpus(FOUND), **known).values["gpu"] == "GeForce GTX 1650"
    bus = driver(cards=[*INTEL, {"vendor": "NVIDIA", "name": "GeForce GTX 660"}])
    assert run("card_fits", gpu__driver=bus, **known).answer == "too-old"


def test_card_unknown() -> None:
    known: dict[str, Any] = {"tf__package": package("2.1.0"), "system__os": WIN10}
    assert run("card_fits", **known).reason == "gpu.devices: not-recorded"
    assert "Odd" in run("card_fits", gpu__devices=one("Odd", None), **known).reason
    assert run("card_fits", gpu__devices=one("Odd", "7.5")).reason.startswith("tf.package")
    no_code = {"tf__package": package("2.9.1"), "system__os": WIN10}
    assert run("card_fits", gpu__devices=one("Odd", "7.5"), **no_code).answer == "unknown"


def test_what_tensorflow_says_comes_first() -> None:
    known: dict[str, Any] = {
        "tf__package": package("2.1.0"),
        "system__os": WIN10,
        "gpu__devices": one("X", "7.5"),
    }
    refused = run("card_fits", tf__gpus=gpus(IGNORED), **known)
    assert (refused.answer, refused.values["gpu"], refused.values["minimum"]) == (
        "too-old",
        "GeForce GTX 660",
        "3.5",
    )
    aborted = run("card_fits", tf__gpus=gpus(ABORT_113, ok=False, signal="SIGABRT"), **known)
    assert (aborted.answer, aborted.values["capability"]) == ("too-old", "3.0")
    assert run("card_fits", paste=CORES_09, **known).answer == "core-count"
    jit = (
        "2026-11-30 14:40:33.504494: W tensorflow/core/common_runtime/gpu/gpu_device.cc:2027] TensorFlow was not built "
        "with CUDA kernel binaries compatible with compute capability 12.0. CUDA kernels will be jit-compiled from "
        "PTX, which could take 30 minutes or longer."
    )
    assert run("card_fits", tf__gpus=gpus(jit), **known).values["capability"] == "12.0"
    image = (
        "InternalError: CUDA runtime implicit initialization on GPU:0 failed. Status: device kernel image is invalid"
    )
    assert run("card_fits", paste=image, **known).answer == "build-lacks-arch"
    # A second, weaker card that is left out does not matter when a device was made.
    assert run("card_fits", tf__gpus=gpus(IGNORED + CREATED_21), **known).answer == "fits"
    no_number = "Ignoring visible gpu device (device: 0, name: Y) whose CUDA compute capability is not available."
    assert run("card_fits", tf__gpus=gpus(no_number), **known).answer == "fits", "then the table decides"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7.5", (7, 5)),
        ("sm_75", (7, 5)),
        ("compute_80", (8, 0)),
        ("90a", (9, 0)),
        ("120", (12, 0)),
        ("x", None),
        ("7", None),
    ],
)
def test_capability_spellings(text: str, number: tuple[int, int] | None) -> None:
    assert gpu.capability_number(text) == number


def ran(**more: Any) -> dict[str, Any]:
    base = {
        "ok": True,
        "device": "/job:localhost/replica:0/task:0/device:GPU:0",
        "expected": 64.0,
        "result": 64.0,
    }
    return {
        **base,
        "correct": True,
        "error": None,
        "log": "",
        "exit": 0,
        "signal": None,
        "timed_out": False,
        "seconds": 2.1,
    } | more


@pytest.mark.parametrize(
    ("value", "answer", "error"),
    [
        (ran(), "right", None),
        (ran(correct=False, result=0.0), "wrong-result", None),
        (ran(device="/device:CPU:0"), "not-on-gpu", None),
        (ran(device=None), "not-on-gpu", None),
        (ran(correct=None), "unknown", None),
        (ran(ok=False, error="InternalError: Blas GEMM launch failed : a.shape=(64, 64)\n\t [[node MatMul]]"), "fails",
         "InternalError: Blas GEMM launch failed : a.shape=(64, 64)"),
        (ran(ok=False, signal="SIGABRT"), "fails", "SIGABRT"),
        (ran(ok=False, exit=1), "fails", "exit 1"),
        (ran(ok=False, timed_out=True), "fails", "no answer within 2.1 s"),
    ],
)  # fmt: skip
def test_operation(value: dict[str, Any], answer: str, error: str | None) -> None:
    finding = run("gpu_operation", tf__operation=value)
    assert (finding.answer, finding.values.get("error")) == (answer, error)


def test_an_operation_that_was_not_tried_is_no_failure() -> None:
    skipped = Fact("tf.operation", "skipped", note="no GPU listed")
    assert run("gpu_operation", tf__operation=skipped).reason == "tf.operation: skipped: no GPU listed"
