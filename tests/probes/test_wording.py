"""What the words of an error say about versions, memory, conda, pip and whose error it is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.probes.evidence_words import LINUX, WIN10, run

MAC = {**LINUX, "system": "Darwin"}
LACKS = "AttributeError: module 'tensorflow' has no attribute "


def kind(text: str, version: str | None = None, **more: Any) -> str:
    package = {"tf__package": {"version": version}} if version else {}
    return run("error_kind", paste=text, **package, **more).answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("TypeError: Descriptors cannot not be created directly.", "descriptors"),
        ("TypeError: Descriptors cannot be created directly.", "descriptors"),
        ("A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.0.0", "numpy-2"),
        ("AttributeError: _ARRAY_API not found", "numpy-2"),
        ("RuntimeError: module compiled against API version 0xe but this version of numpy is 0xd", "numpy-old"),
        ("RuntimeError: module compiled against API version a but this version of numpy is 9", "numpy-old"),
        ("module compiled against ABI version 0x1000009 but this version of numpy is 0x2000000", "numpy-2"),
        ("module compiled against API version 0xc but this version of numpy is 0xf", "numpy-new"),
        ("ValueError: numpy.ndarray size changed. Expected 96 from C header, got 88 from PyObject", "numpy-old"),
        ("ValueError: numpy.dtype size changed. Expected 88 from C header, got 96 from PyObject", "numpy-2"),
        ("ModuleNotFoundError: No module named 'tensorflow_estimator.contrib'", "estimator"),
        ("VersionError: Detected mismatched Protobuf Gencode/Runtime major versions", "protobuf-clash"),
        ("ImportError: cannot import name 'builder' from 'google.protobuf.internal'", "protobuf-clash"),
        ("ImportError: cannot import name 'LayerNormalization' from 'tensorflow.keras.layers'", "keras"),
        ("ImportError: Keras requires TensorFlow 2.2 or higher.", "keras"),
        ("_pywrap_tensorflow_internal.TFE_DEVICE_EXPLICIT_swigconstant(x)", "half"),
        ("ImportError: cannot import name 'pywrap_tensorflow' from 'tensorflow.python'", "half"),
        (LACKS + "'__version__'", "half"),
        (LACKS + "'compat'", "half-api"),
        (LACKS + "'estimator'", "half-api"),
        ("module 'tensorflow.python.estimator.estimator_lib' has no attribute 'X'", "estimator"),
        ("module 'tensorflow.keras' has no attribute 'X'", "keras"),
        (LACKS + "'placeholder'", "old-program"),
        ("ModuleNotFoundError: No module named 'tensorflow.contrib'", "old-program"),
        ("Using TensorFlow backend.\n" + LACKS + "'get_default_graph'", "keras"),
        ("partially initialized module 'tensorflow' (most likely due to a circular import)", "circular"),
        ("ImportError: something else", "unknown"),
    ],
)
def test_the_words_name_a_package(text: str, answer: str) -> None:
    assert kind(text) == answer


def test_a_name_of_tensorflow_1_counts_by_the_version_that_is_installed() -> None:
    assert kind(LACKS + "'Session'", "2.3.0") == "old-program"
    assert kind(LACKS + "'Session'", "1.15.0") == "half"
    assert kind(LACKS + "'estimator'", "2.16.1") == "old-program"
    assert kind(LACKS + "'estimator'", "2.12.0") == "half-api"
    assert kind("No module named 'tensorflow.contrib'", "1.15.0") == "unknown"


def test_the_own_import_counts_more_than_the_text() -> None:
    tried = {"ok": False, "error": "module compiled against API version 0xe but this version of numpy is 0xd"}
    finding = run("error_kind", paste="Descriptors cannot be created directly", tf__import=tried)
    assert finding.answer == "numpy-old" and finding.evidence[-1].key == "said.own"
    assert run("error_kind").answer == "unknown"


def test_the_line_of_the_error_is_shown() -> None:
    finding = run("error_kind", paste="x\nTypeError: Descriptors cannot be created directly.\nIf this call came")
    assert finding.values["error"] == "TypeError: Descriptors cannot be created directly."


OOM = "OOM when allocating tensor with shape[16,19] and type float on /job:localhost/device:"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (OOM + "CPU:0 by allocator cpu", "host"),
        ("OOM when allocating tensor with shape[2304,384]\n [[Node: x, _device=\"/job:localhost/cpu:0\"", "host"),
        ("MemoryError: Unable to allocate 14.1 GiB for an array with shape (1, 2)", "host"),
        (OOM + "GPU:0 by allocator GPU_0_bfc", "tensor"),
        ("Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.2GiB", "tensor"),
        ("Could not load library cudnn_cnn_infer64_8.dll. Error code 126", "sub-126"),
        ("Could not load library cudnn_cnn_infer64_8.dll. Error code 127", "sub-127"),
        ("Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR", "handle"),
        ("Failed to get convolution algorithm. This is probably", "handle"),
        ("failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED", "blas"),
        ("InternalError: Blas GEMM launch failed : a.shape=(64, 64)", "blas"),
        ("failed to allocate 3.2G from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory", "at-start"),
        ("ValueError: shapes", "unknown"),
        ("", "unknown"),
    ],
)
def test_what_failed_in_use(text: str, answer: str) -> None:
    assert run("use_error", **({"paste": text} if text else {})).answer == answer


def test_a_long_line_is_cut() -> None:
    text = "OOM when allocating tensor " + "x" * 400 + " device:CPU:0"
    assert len(run("use_error", paste=text).values["error"]) == 160


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("  _tflow_select    2.1.0-gpu --> 2.3.0-mkl", "changed-build"),
        ("Current channels:\n - .../main/win-32", "bits"),
        ("- tensorflow -> python[version='3.7.*']\n\nYour python: python=3.8", "python"),
        ("PackagesNotFoundError: The following packages are not available", "not-packaged"),
        ("Package cudatoolkit conflicts for: cudnn", "conflict"),
        ("incompatible with your CUDA driver:\n - feature:/win-64::__cuda==11.0=0", "driver-words"),
        ("Solving environment: done", "unknown"),
        ("", "unknown"),
    ],
)
def test_what_conda_says(text: str, answer: str) -> None:
    assert run("conda_says", **({"paste": text} if text else {})).answer == answer


@pytest.mark.parametrize(
    ("text", "system", "answer"),
    [
        ("You are using pip version 9.0.1, however version 20.1 is available.", WIN10, "old-pip"),
        ("pip 18.1 from /usr/lib/python3/dist-packages/pip (python 3.7)", LINUX, "old-pip"),
        ("You are using pip version 20.0.2", LINUX, "unknown"),
        ("No matching distribution found for tensorflow-gpu", MAC, "no-gpu-platform"),
        ("No matching distribution found for tensorflow-gpu==1.1.0", MAC, "unknown"),
        ("No matching distribution found for tensorflow-gpu==2.4.0", MAC, "no-gpu-platform"),
        ("No matching distribution found for tensorflow", MAC, "unknown"),
        ("No matching distribution found for nvidia-nccl-cu12==2.16.5", WIN10, "native-windows"),
        ("No matching distribution found for nvidia-nccl-cu12==2.16.5", LINUX, "unknown"),
        ("", WIN10, "unknown"),
    ],
)
def test_what_pip_says(text: str, system: dict[str, Any], answer: str) -> None:
    assert run("pip_says", system__os=system, **({"paste": text} if text else {})).answer == answer
