"""Whose fault, which Python, does it happen again, can the build use a GPU, is the card hidden."""
# ruff: noqa: E501 - lines of real logs and tracebacks

from __future__ import annotations

from typing import Any

import pytest

from tests.probes.evidence_words import LINUX, WIN10, WSL2, run
from tftriage.facts import Fact
from tftriage.probes import context

TF_126 = r"""Traceback (most recent call last):
  File "C:\Users\alice\AppData\Local\Programs\Python\Python38\lib\site-packages\tensorflow\python\pywrap_tensorflow.py", line 64, in <module>
    from tensorflow.python._pywrap_tensorflow_internal import *
ImportError: DLL load failed while importing _pywrap_tensorflow_internal: The specified module could not be found.

Failed to load the native TensorFlow runtime.
"""
PROTOBUF = r"""Traceback (most recent call last):
  File "run.py", line 7, in <module>
    import tensorflow as tf
  File "G:\project\lib\site-packages\tensorflow\python\__init__.py", line 52, in <module>
    from tensorflow.core.framework.graph_pb2 import *
  File "G:\project\lib\site-packages\google\protobuf\descriptor.py", line 47, in <module>
    from google.protobuf.pyext import _message
ImportError: DLL load failed: The specified procedure could not be found.
"""
DESCRIPTORS = """Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "/home/alice/v37-210/lib/python3.7/site-packages/tensorflow_core/core/framework/tensor_shape_pb2.py", line 42, in <module>
    serialized_options=None, file=DESCRIPTOR),
  File "/home/alice/v37-210/lib/python3.7/site-packages/google/protobuf/descriptor.py", line 561, in __new__
    _message.Message._CheckCalledFromGeneratedFile()
TypeError: Descriptors cannot not be created directly.
"""
H5PY = r"""  File "D:\env\lib\site-packages\tensorflow\python\keras\engine\saving.py", line 28, in <module>
    import h5py
  File "D:\env\lib\site-packages\h5py\__init__.py", line 36, in <module>
    from ._conv import register_converters as _register_converters
ImportError: DLL load failed: The specified module could not be found.
"""
DLIB = r"""Traceback (most recent call last):
  File "faceswap.py", line 32, in <module>
    ARGUMENTS.func(ARGUMENTS)
  File "E:\python\faceswap\lib\FaceLandmarksExtractor.py", line 5, in <module>
    import dlib
ImportError: DLL load failed: 找不到指定的模块。
"""
TORCH_1455 = (
    "OSError: [WinError 1455] The paging file is too small for this operation to complete. Error loading "
    r'"C:\Users\alice\AppData\Local\Programs\Python\Python310\lib\site-packages\torch\lib\cudnn_adv_infer64_8.dll" or one of its dependencies.'
)
NOTEBOOK = r"""ImportError                               Traceback (most recent call last)
~\anaconda3\lib\site-packages\tensorflow\python\pywrap_tensorflow.py in <module>
     63   try:
---> 64     from tensorflow.python._pywrap_tensorflow_internal import *
     65   # This try catch logic is because there is no bazel equivalent for py_extension.

ImportError: DLL load failed: The specified module could not be found.
"""
PROTOBUF_CELL = r"""c:\users\alice\python36\lib\site-packages\google\protobuf\descriptor.py in <module>
     45   import binascii
     46   import os
---> 47   from google.protobuf.pyext import _message
     48   _USE_C_DESCRIPTORS = getattr(_message, '_USE_C_DESCRIPTORS', False)

ImportError: DLL load failed: The specified procedure could not be found.
"""
H5PY_WARNING = r"""C:\Anaconda3\lib\site-packages\h5py\__init__.py:36: FutureWarning: Conversion of the second argument is deprecated.
  from ._conv import register_converters as _register_converters
Using TensorFlow backend.
Traceback (most recent call last):
ImportError: DLL load failed: Não foi possível encontrar o módulo especificado.
"""
OLD_CODE = """Traceback (most recent call last):
  File "demo.py", line 4, in <module>
    from mrcnn.model import log
AttributeError: module 'tensorflow' has no attribute 'placeholder'
"""
MATPLOTLIB = r"""Traceback (most recent call last):
  File "C:\Anaconda\lib\site-packages\matplotlib\__init__.py", line 109, in <module>
    show(1)
RuntimeError: no
"""


@pytest.mark.parametrize(
    ("text", "answer", "module"),
    [
        (TF_126, "tensorflow", "_pywrap_tensorflow_internal"),
        (NOTEBOOK, "tensorflow", "tensorflow.python._pywrap_tensorflow_internal"),
        (PROTOBUF, "protobuf-binary", "google.protobuf.pyext._message"),
        (PROTOBUF_CELL, "protobuf-binary", "google.protobuf.pyext._message"),
        (DESCRIPTORS, "tensorflow", "protobuf"),
        (H5PY, "tensorflow", "h5py._conv"),
        ("    from ._conv import x\nImportError: no", "other-package", "_conv"),
        (DLIB, "other-package", "dlib"),
        (TORCH_1455, "other-package", "torch"),
        (H5PY_WARNING, "tensorflow", "tensorflow"),
        (OLD_CODE, "tensorflow", "tensorflow"),
        (MATPLOTLIB, "other-package", "matplotlib"),
        ("ImportError: DLL load failed while importing _ssl: 找不到指定的模块。", "other-package", "_ssl"),
        ("ImportError: DLL load failed while importing QtCore: nope", "other-package", "QtCore"),
        ("Failed to load the native TensorFlow runtime.", "tensorflow", "tensorflow"),
        ("ModuleNotFoundError: No module named '_pywrap_tensorflow_internal'", "tensorflow", "tensorflow"),
        ("ModuleNotFoundError: No module named 'tensorflow'", "tensorflow", "tensorflow"),
        ("failed call to cuInit: UNKNOWN ERROR (303)", "tensorflow", "tensorflow"),
        (
            r'OSError: [WinError 126] Error loading "D:\tools\fbgemm.dll" or one',
            "other-package",
            "fbgemm.dll",
        ),
    ],
    ids=lambda value: value if value.isascii() and len(value) < 30 else "text",
)
def test_whose_fault(text: str, answer: str, module: str) -> None:
    finding = run("whose_fault", paste=text)
    assert (finding.answer, finding.values["module"]) == (answer, module)


def imported(**more: Any) -> dict[str, Any]:
    base = {"module": "tensorflow", "ok": False, "seconds": 1.25, "version": None, "file": None}
    rest = {
        "error_type": None,
        "error": None,
        "traceback": "",
        "log": "",
        "exit": 1,
        "signal": None,
        "timed_out": False,
    }
    return {**base, **rest, "stack": "", **more}


def test_without_a_telling_text_the_import_decides() -> None:
    bare = "ImportError: DLL load failed: 找不到指定的模块。"
    assert run("whose_fault", paste=bare).reason == "tf.import: not-recorded"
    assert run("whose_fault", paste=bare, tf__import=imported(traceback=PROTOBUF)).answer == "protobuf-binary"
    assert run("whose_fault", paste=bare, tf__import=imported(ok=True)).answer == "tensorflow"
    assert run("whose_fault", tf__import=imported(traceback=TF_126)).answer == "tensorflow"
    assert run("whose_fault").reason == "paste.text: not-recorded"


def test_the_symptoms_capture_names_the_module() -> None:
    symptom = {"id": "dll-load-failed-126", "captures": {"module": "cv2"}}
    assert run("whose_fault", paste="找不到指定的模块。", paste__symptom=symptom).values["module"] == "cv2"


def test_a_module_the_person_asked_about_counts_as_ours() -> None:
    text = "ImportError: DLL load failed while importing fast_ops: The specified module could not be found."
    assert run("whose_fault", paste=text).answer == "other-package"
    assert run("whose_fault", paste=text, tf__import=imported(module="fast_ops")).answer == "tensorflow"
    same = imported(traceback=text)
    assert run("whose_fault", paste=text, tf__import=same).evidence[0].key == "whose_fault.same-in-import"


TARGET = {
    "executable": r"C:\Users\Alice\anaconda3\python.exe",
    "version": [3, 7, 16],
    "prefix": r"C:\Users\Alice\anaconda3",
    "base_prefix": r"C:\Users\Alice\anaconda3",
    "site_packages": [r"C:\Users\Alice\anaconda3\Lib\site-packages"],
}
LINUX_TARGET = {
    "executable": "/usr/bin/python3",
    "version": [3, 8, 10],
    "prefix": "/usr",
    "base_prefix": "/usr",
    "site_packages": ["/usr/local/lib/python3.8/dist-packages", "/usr/lib/python3/dist-packages"],
}


@pytest.mark.parametrize(
    ("text", "target", "answer"),
    [
        (NOTEBOOK, TARGET, "same"),
        (r'File "c:\users\alice\ANACONDA3\lib\site-packages\numpy\x.py"', TARGET, "same"),
        (r'File "c:\\users\\alice\\anaconda3\\lib\\site-packages\\numpy\\x.py"', TARGET, "same"),
        (r'File "C:\Users\Alice\anaconda3\envs\tf\lib\site-packages\numpy\x.py"', TARGET, "other"),
        (TF_126, TARGET, "other"),
        (
            r"~\AppData\Roaming\Python\Python37\site-packages\tensorflow\python\x.py in <module>",
            TARGET,
            "same",
        ),
        (r"~\AppData\Roaming\Python\Python310\site-packages\tensorflow\x.py in <module>", TARGET, "other"),
        ('File "/usr/local/lib/python3.8/dist-packages/tensorflow/x.py"', LINUX_TARGET, "same"),
        ('File "/home/alice/v37/lib/python3.7/site-packages/tensorflow/x.py"', LINUX_TARGET, "other"),
        ('File "/home/alice/.local/lib/python3.8/site-packages/tensorflow/x.py"', LINUX_TARGET, "same"),
    ],
    ids=lambda value: value if value in ("same", "other") else "",
)
def test_target_matches(text: str, target: dict[str, Any], answer: str) -> None:
    finding = run("target_matches", paste=text, target__interpreter=target)
    assert finding.answer == answer
    assert finding.values["target_python"] == target["executable"]


def test_target_unknown() -> None:
    assert run("target_matches", target__interpreter=TARGET).reason.startswith("paste.text")
    assert run("target_matches", paste=TF_126).reason.startswith("target.interpreter")
    assert run("target_matches", paste="DLL load failed", target__interpreter=TARGET).answer == "unknown"


def test_home_sign_alone_is_no_match() -> None:
    assert context.same_path("~", "/home/alice") is False
    assert context.same_path("~/env", "/home/alice/env") is True


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (imported(ok=True, version="2.1.0", file="/x/tensorflow/__init__.py"), "works"),
        (imported(ok=True), "fails"),
        (imported(error_type="ImportError", error="DLL load failed: 找不到指定的模块。\nmore"), "fails"),
        (imported(exit=-7, signal="SIGBUS"), "killed"),
        (imported(exit=3221225477), "killed"),
        (imported(timed_out=True, stack='  File "opt_einsum/__init__.py", line 3 in <module>'), "hangs"),
        (imported(timed_out=True), "hangs"),
        (imported(error_type="ModuleNotFoundError", error="No module named 'tensorflow'"), "not-installed"),
        (
            imported(error_type="ModuleNotFoundError", error="No module named '_pywrap_tensorflow_internal'"),
            "fails",
        ),
    ],
)
def test_reproduce(value: dict[str, Any], answer: str) -> None:
    finding = run("reproduce", tf__import=value)
    assert finding.answer == answer
    assert finding.values["module"] == "tensorflow"


def test_reproduce_details() -> None:
    assert run("reproduce", tf__import=imported(exit=-7, signal="SIGBUS")).values["signal"] == "SIGBUS"
    assert run("reproduce", tf__import=imported(exit=3221225477)).values["signal"] == "exit 3221225477"
    stopped = Fact("tf.import", "timeout", None, note="300 s")
    assert run("reproduce", tf__import=stopped).reason == "tf.import: timeout: 300 s"


def package(*distributions: tuple[str, str], **more: Any) -> dict[str, Any]:
    rows = [{"name": name, "version": version, "folder": "x"} for name, version in distributions]
    return {
        "distributions": rows,
        "version": distributions[0][1] if rows else None,
        "build_info": None,
        **more,
    }


@pytest.mark.parametrize(
    ("system", "installed", "built", "answer"),
    [
        (WIN10, package(("tensorflow-gpu", "2.1.0")), True, "gpu-build"),
        (WIN10, package(("tensorflow-gpu", "2.1.0")), None, "gpu-build"),
        (WIN10, package(("tensorflow-gpu", "1.13.1")), False, "cpu-only"),
        (WIN10, package(("tensorflow", "2.15.0")), False, "native-windows-2.11plus"),
        (WIN10, package(("tensorflow", "2.15.0")), None, "native-windows-2.11plus"),
        (WIN10, package(("tensorflow", "2.15.0")), True, "gpu-build"),
        (WSL2, package(("tensorflow", "2.15.0")), None, "gpu-build"),
        (WIN10, package(("tensorflow", "1.15.0")), None, "gpu-build"),
        (WIN10, package(("tensorflow", "1.15.5")), None, "cpu-only"),
        (WIN10, package(("tensorflow", "2.0.4")), None, "cpu-only"),
        (WIN10, package(("tensorflow", "1.13.1")), None, "cpu-only"),
        (WIN10, package(("tensorflow_cpu", "2.10.0")), None, "cpu-only"),
        (WIN10, package(("tensorflow", "2.10.1")), None, "gpu-build"),
        (LINUX, package(("tensorflow", "2.0.4")), None, "unknown"),
        (LINUX, package(("tensorflow", "2.0.4"), build_info={"cuda_version": "10.0"}), None, "gpu-build"),
        (WIN10, package(("tensorflow-gpu", "2.1.0"), ("tensorflow-cpu", "2.1.0")), None, "unknown"),
        (WIN10, package(("tf-nightly", "2.5.0.dev1")), None, "unknown"),
        (WIN10, package(), None, "unknown"),
    ],
)
def test_build_gpu(system: dict[str, Any], installed: dict[str, Any], built: bool | None, answer: str) -> None:
    gpus = {"ok": True, "built_with_cuda": built, "log": ""}
    assert run("build_gpu", system__os=system, tf__package=installed, tf__gpus=gpus).answer == answer


def test_build_gpu_without_facts() -> None:
    assert run("build_gpu").reason == "tf.package: not-recorded"
    assert run("build_gpu", tf__package=package(("tensorflow", "2.4.0"))).answer == "unknown", (
        "which system is not known"
    )


def kernel(name: str, interpreter: str, **env: str) -> dict[str, Any]:
    return {"name": name, "interpreter": interpreter, "env": env, "argv": [interpreter], "bare": False}


@pytest.mark.parametrize(
    ("value", "cards", "answer"),
    [
        (None, 1, "visible"),
        ("0", 1, "visible"),
        ("0,5", 1, "visible"),
        ("GPU-8932f937-d72c", 1, "visible"),
        ("-1", 1, "hidden-process"),
        ("", 1, "hidden-process"),
        ("1", 1, "hidden-process"),
        ("1", 2, "visible"),
        ("1", 0, "visible"),
        ("none", 2, "hidden-process"),
    ],
)
def test_gpu_hidden_here(value: str | None, cards: int, answer: str) -> None:
    process = {"PATH": "x"} | ({} if value is None else {"CUDA_VISIBLE_DEVICES": value})
    finding = run("gpu_hidden", env__process=process, gpu__devices={"devices": [{"index": i} for i in range(cards)]})
    assert finding.answer == answer


def test_gpu_hidden_elsewhere() -> None:
    stored = {"Path": None, "variables": {"CUDA_VISIBLE_DEVICES": {"type": "REG_SZ", "value": "-1"}}}
    finding = run("gpu_hidden", env__process={}, env__user=stored)
    assert (finding.answer, finding.values) == ("hidden-user", {"value": "-1", "where": "user"})
    assert run("gpu_hidden", env__process={}, env__machine=stored).values["where"] == "machine"
    empty = {"variables": {"CUDA_VISIBLE_DEVICES": {"type": "REG_SZ", "value": ""}}}
    assert run("gpu_hidden", env__process={}, env__user=empty).answer == "visible"


def test_only_the_targets_kernels_count() -> None:
    ours = kernel("tf21", r"C:\Users\Alice\anaconda3\python.exe", CUDA_VISIBLE_DEVICES="-1")
    theirs = kernel("cpu", r"C:\Users\Alice\anaconda3\envs\cpu\python.exe", CUDA_VISIBLE_DEVICES="-1")
    finding = run("gpu_hidden", env__process={}, jupyter__kernels=[theirs, ours], target__interpreter=TARGET)
    assert (finding.answer, finding.values["where"]) == ("hidden-kernel", "tf21")
    assert run("gpu_hidden", env__process={}, jupyter__kernels=[theirs], target__interpreter=TARGET).answer == "visible"
    assert run("gpu_hidden", env__process={}, jupyter__kernels=[theirs]).answer == "hidden-kernel"
    assert run("gpu_hidden").reason == "env.process: not-recorded"
