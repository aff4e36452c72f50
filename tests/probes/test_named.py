"""What an error names: the missing file, what a version loads, where Python comes from, the code behind cuInit."""

from __future__ import annotations

from typing import Any

import pytest

from tests.probes.evidence_words import LINUX, WIN10, run
from tftriage.facts import Fact
from tftriage.probes.base import Finding
from tftriage.tables import Build, Tables


def dlopen(*names: str, opened: tuple[str, ...] = (), after: str = "") -> str:
    """A log of TensorFlow 2 that misses some libraries and opens others."""
    lines = [f"I tensorflow/x/dso_loader.cc:49] Successfully opened dynamic library {name}" for name in opened]
    lines += [
        f"W tensorflow/x/dso_loader.cc:60] Could not load dynamic library '{name}'; dlerror: {name} not found"
        for name in names
    ]
    return "\n".join([*lines, after])


SKIP = "W tensorflow/x/gpu_device.cc:1] Cannot dlopen some GPU libraries. \nSkipping registering GPU devices..."
STUB = "I tensorflow/x/cudart_stub.cc:29] Ignore above cudart dlerror if you do not have a GPU set up on your machine."


@pytest.mark.parametrize(
    ("text", "answer", "named"),
    [
        ("ImportError: Could not find 'cudart64_90.dll'. TensorFlow requires that this DLL", "cuda", "cudart64_90.dll"),
        ("ImportError: Could not find 'cudnn64_7.dll'. TensorFlow requires", "cudnn", "cudnn64_7.dll"),
        ("Could not find 'nvcuda.dll'. TensorFlow requires that this DLL", "driver", "nvcuda.dll"),
        ("ImportError: Could not find the DLL(s) 'msvcp140.dll or msvcp140_1.dll'.", "vc-runtime", "msvcp140.dll"),
        ("- Could not load 'cudart64_80.dll'. The GPU\n- Could not find cuDNN 6.", "all", "cudart64_80.dll"),
        ("ImportError: libcublas.so.9.0: cannot open shared object file: No such", "cuda", "libcublas.so.9.0"),
        ("ImportError: libcudnn.so.7: cannot open shared object file: No such", "cudnn", "libcudnn.so.7"),
        ("I x/dso_loader.cc:119] Couldn't open CUDA library cudnn64_5.dll\nUnable to load cuDNN DSO", "cudnn",
         "cudnn64_5.dll"),
        (dlopen("cudart64_110.dll", after=STUB), "cudart-only", "cudart64_110.dll"),
        (dlopen("cudart64_110.dll", opened=("nvcuda.dll",), after=SKIP), "cuda", "cudart64_110.dll"),
        (dlopen("cusolver64_10.dll", opened=("cudart64_110.dll",), after=SKIP), "cuda-part", "cusolver64_10.dll"),
        (dlopen("cudnn64_8.dll", opened=("cudart64_110.dll",), after=SKIP), "cudnn", "cudnn64_8.dll"),
        (dlopen("cusolver64_10.dll", "cudnn64_8.dll", after=SKIP), "part-and-cudnn", "cusolver64_10.dll"),
        (dlopen("cudart64_110.dll", "cudnn64_8.dll", after=SKIP), "all", "cudart64_110.dll"),
        ("I x/cudart_stub.cc:28] Could not find cuda drivers on your machine, GPU will not be used.", "cudart-only",
         "libcudart"),
    ],
)  # fmt: skip
def test_the_missing_file_is_read_from_the_text(text: str, answer: str, named: str) -> None:
    finding = run("missing_file", paste=text)
    assert (finding.answer, finding.values["dll"]) == (answer, named)
    assert "said.pasted" in {line.key for line in finding.evidence}


def test_a_file_behind_dlerror_is_the_one_that_is_missing() -> None:
    text = (
        "W x/dso_loader.cc:60] Could not load dynamic library 'libcusolver.so.11'; dlerror: libnvJitLink.so.12: "
        "cannot open shared object file: No such file or directory"
    )
    assert run("missing_file", paste=text).answer == "child"
    assert run("missing_file", paste=text.replace("libnvJitLink.so.12", "libcusolver.so.11")).answer == "cuda-part"


def test_what_was_tried_here_counts_more_than_the_pasted_text() -> None:
    tried = {"ok": False, "error": "ImportError: libcudnn.so.7: cannot open shared object file", "traceback": ""}
    finding = run("missing_file", paste="Could not find 'cudart64_90.dll'. TensorFlow", tf__import=tried)
    assert finding.answer == "cudnn" and finding.evidence[-1].key == "said.own"
    works = run("missing_file", paste="Could not find 'cudart64_90.dll'.", tf__import={**tried, "ok": True})
    assert works.answer == "cuda"


@pytest.mark.parametrize("text", ["", "ImportError: DLL load failed", "dlerror: cupti64_110.dll not found"])
def test_a_text_without_a_library_leaves_it_open(text: str) -> None:
    given = {"paste": text} if text else {}
    assert run("missing_file", **given).answer == "unknown"


def row(version: str, imports: tuple[str, ...]) -> Build:
    return Build(
        package="tensorflow-gpu", version=version, system="Windows", pythons=("3.6",), cuda="9.0", imports=imports,
        vc_runtime=("msvcp140.dll",), source="test",
    )  # fmt: skip


IMPORTS = Tables(builds=(row("1.3", ("cudnn64_6.dll",)), row("1.12", ("cudart64_90.dll",)), row("2.1", ())))


def loads(version: str | None, name: str | None = "tensorflow-gpu", **more: Any) -> Finding:
    package: dict[str, Any] = {"version": version}
    if name:
        package["distributions"] = [{"name": name, "version": version}]
    return run("load_imports", IMPORTS, tf__package=package, **more)


@pytest.mark.parametrize(
    ("version", "name", "answer"),
    [
        ("1.3", "tensorflow-gpu", "cuda-unchecked"), ("1.12.0", "tensorflow-gpu", "cuda-checked"),
        ("1.12.0", None, "cuda-checked"), ("1.12.0", "tensorflow", "runtime"), ("2.1.0", "tensorflow", "runtime"),
        ("2.40", "tensorflow", "runtime"),
    ],
)  # fmt: skip
def test_what_a_version_loads_comes_from_its_import_table(version: str, name: str | None, answer: str) -> None:
    assert loads(version, name, system__os=WIN10).answer == answer


def test_what_a_version_loads_is_known_for_windows_only() -> None:
    assert loads("1.12.0", system__os=LINUX).answer == "unknown"
    assert loads("1.12.0").answer == "cuda-checked"  # without a word on the system, a DLL is Windows'
    assert loads(None).answer == "unknown"
    assert run("load_imports", IMPORTS).answer == "unknown"


def test_a_python_of_the_store_is_known_by_its_paths_unless_the_machine_says() -> None:
    path = r'File "C:\Users\k\AppData\Local\Packages\PythonSoftwareFoundation.Python.3.10_qbz5n2kfra8p0\x.py"'
    own = {"version": [3, 10, 1]}
    assert run("python_store", paste=path, target__interpreter=own).answer == "store"
    assert run("python_store", paste=path, target__interpreter={**own, "store": False}).answer == "other"
    assert run("python_store", paste="", target__interpreter={**own, "store": True}).answer == "store"
    assert run("python_store", paste="x", target__interpreter=own).answer == "unknown"
    assert run("python_store", paste="x").answer == "unknown"


CUINIT = "E tensorflow/x/cuda_driver.cc:271] failed call to cuInit: "


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (CUINIT + "UNKNOWN ERROR (303)", "file-missing"),
        (CUINIT + "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected", "no-device"),
        ("CudaSupportError: Call to cuInit results in CUDA_ERROR_NO_DEVICE (100)", "no-device"),
        (CUINIT + "CUDA_ERROR_NO_DEVICE\nI x/d.cc:1] kernel driver does not appear to be running on this host",
         "not-running"),
        (CUINIT + "CUDA_ERROR_UNKNOWN\nI x/d.cc:1] h: /proc/driver/nvidia/version does not exist", "not-running"),
        (CUINIT + "CUDA_ERROR_NO_DEVICE\nE x/d.cc:3] kernel version 384.13 does not match DSO version 375.66",
         "mismatch"),
        (CUINIT + "CUDA_ERROR_INSUFFICIENT_DRIVER", "insufficient"),
        (CUINIT + "CUDA_ERROR_UNKNOWN: unknown error", "other"),
        ("nothing of the kind", "unknown"),
        ("", "unknown"),
    ],
)  # fmt: skip
def test_the_code_behind_cuinit(text: str, answer: str) -> None:
    assert run("cuinit_code", **({"paste": text} if text else {})).answer == answer


def test_the_own_gpu_check_is_asked_first() -> None:
    own = {"log": CUINIT + "UNKNOWN ERROR (303)", "ok": True}
    finding = run("cuinit_code", paste=CUINIT + "CUDA_ERROR_NO_DEVICE", tf__gpus=own)
    assert finding.answer == "file-missing" and finding.evidence[-1].params["fact"] == "tf.gpus"
    failed = {"ok": False, "log": CUINIT + "CUDA_ERROR_UNKNOWN", "error": "x"}
    assert run("cuinit_code", tf__operation=failed).answer == "other"
    assert run("cuinit_code", tf__gpus=Fact("tf.gpus", "timeout", note="60 s")).answer == "unknown"
