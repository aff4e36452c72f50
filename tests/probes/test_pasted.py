"""Probes that look at the machine and read the pasted text where it cannot say: a fact always wins over the text."""

from __future__ import annotations

from typing import Any

import pytest

from tests.probes.evidence_words import WIN10, run
from tftriage.facts import Fact
from tftriage.tables import Build, Tables

PACKAGE = {"version": "2.3.0", "distributions": [{"name": "tensorflow", "version": "2.3.0"}], "folder": "/s"}
CODE = 'Traceback (most recent call last):\n  File "{file}", line 1, in <module>\n    from tensorflow import keras\n'


@pytest.mark.parametrize(
    ("text", "answer", "file"),
    [
        (CODE.format(file="code.py"), "stdlib-file", "code.py"),
        (CODE.format(file=r"C:\\w\\numbers.py") + "AttributeError: x", "stdlib-file", r"C:\w\numbers.py"),
        (CODE.format(file="/home/a/keras.py") + "ModuleNotFoundError", "package-file", "/home/a/keras.py"),
        (CODE.format(file="/w/ocr.py") + "partially initialized module 'ocr' has no attribute 'x'", "package-file",
         "/w/ocr.py"),
        ("ImportError: cannot import name 'keras' (most likely due to a circular import) (C:\\w\\tensorflow.py)",
         "tensorflow-file", "C:\\w\\tensorflow.py"),
        ("No module named 'tensorflow.keras'; 'tensorflow' is not a package\nModuleNotFoundError", "tensorflow-file",
         "tensorflow.py"),
        (CODE.format(file="/w/train.py"), "clear", ""),
        (CODE.format(file="/w/test.py"), "clear", ""),
        (CODE.format(file="/usr/lib/python3.8/random.py"), "clear", ""),
        (CODE.format(file="/v/site-packages/keras.py"), "clear", ""),
        (CODE.format(file="code.py") + "ImportError: DLL load failed", "clear", ""),
        ("nothing was imported, code.py", "clear", ""),
    ],
)  # fmt: skip
def test_a_traceback_names_the_file_in_the_way(text: str, answer: str, file: str) -> None:
    finding = run("shadowed", paste=text, tf__package=PACKAGE)
    assert (finding.answer, finding.values.get("file", "")) == (answer, file)


def test_an_import_that_works_here_beats_the_text() -> None:
    text = CODE.format(file="code.py")
    assert run("shadowed", paste=text, tf__package=PACKAGE, tf__import={"ok": True}).answer == "clear"
    listed = {**PACKAGE, "shadow": ["/w/random.py"]}
    assert run("shadowed", paste=text, tf__package=listed).values["file"] == "/w/random.py"
    assert run("shadowed", paste="x").answer == "unknown"


PLAN = "The following packages will be DOWNGRADED:\n\n  tensorflow   2.6.0-gpu_py39h --> 2.6.0-mkl_py39h\n"


def test_condas_plan_takes_the_gpu_build_away_unless_the_build_itself_says() -> None:
    named = {"version": "1.8.0", "distributions": [{"name": "tensorflow-gpu", "version": "1.8.0"}]}
    assert run("build_gpu", paste=PLAN, tf__package=named, system__os=WIN10).answer == "exchanged"
    assert run("build_gpu", paste=PLAN, tf__package=named, tf__gpus={"built_with_cuda": True}).answer == "gpu-build"
    stays = PLAN.replace("2.6.0-mkl", "2.7.0-gpu")
    assert run("build_gpu", paste=stays, tf__package=named, system__os=WIN10).answer == "gpu-build"


NOTE = "This TensorFlow binary is optimized to use the following CPU instructions in performance-critical operations: "


@pytest.mark.parametrize(
    ("text", "avx", "answer"),
    [
        ("Your CPU supports instructions that this TensorFlow binary was not compiled to use: AVX2 FMA", None, "yes"),
        (NOTE + "SSE3 SSE4.1 AVX", None, "yes"),
        ("binary was not compiled to use: SSE4.1", None, "unknown"),
        (NOTE + "AVX2", False, "no"),
    ],
)
def test_a_note_on_the_processor_tells_that_it_has_avx(text: str, avx: bool | None, answer: str) -> None:
    assert run("cpu_avx", paste=text, system__cpu={"name": "x", "avx": avx}).answer == answer


FOUND = "I x/gpu_device.cc:1] Found device 0 with properties: \nname: GeForce RTX 3060 computeCapability: 8.6"


def test_a_card_in_the_text_proves_the_driver_and_is_judged_where_none_was_seen() -> None:
    package = {"version": "2.3.0"}
    assert run("driver_state", paste=FOUND, tf__package=package, system__os=WIN10).answer == "ok"
    gone = {"library": None, "loads": None, "cu_init": None, "cards": []}
    assert run("driver_state", paste=FOUND, gpu__driver=gone, system__os=WIN10).answer == "no-gpu"
    told = run("card_fits", paste=FOUND, tf__package=package, system__os=WIN10)
    assert told.answer == "too-new" and told.evidence[-1].key == "card_fits.pasted"
    seen = {"devices": [{"name": "GeForce GTX 1060", "capability": "6.1"}]}
    assert run("card_fits", paste=FOUND, tf__package=package, system__os=WIN10, gpu__devices=seen).answer == "fits"


def test_code_that_the_card_or_the_driver_refuses() -> None:
    words = "W x/tf_gpu_runtime_wrappers.cc:40] 'cuModuleLoadData' failed with 'CUDA_ERROR_{}'"
    assert run("card_fits", paste=words.format("INVALID_PTX")).answer == "too-new"
    assert run("driver_state", paste=words.format("UNSUPPORTED_PTX_VERSION")).answer == "driver-too-old"


SHORT = (
    "ValueError: To call `multi_gpu_model` with `gpus=2`, we expect the following devices to be available: "
    "['/cpu:0', '/gpu:0', '/gpu:1']. However this machine only has: [{}]. Try reducing `gpus`."
)


def test_one_card_of_two_and_a_missing_symbol_are_stages_of_their_own() -> None:
    assert run("log_stage", paste=SHORT.format("'/cpu:0', '/gpu:0'")).answer == "second-missing"
    assert run("log_stage", paste=SHORT.format("'/cpu:0'")).answer == "unknown"
    symbol = "cudaGetDevice() failed. Status: cudaGetErrorString symbol not found."
    assert run("log_stage", paste=symbol).answer == "symbol-missing"


def build_row() -> Tables:
    row = Build(package="tensorflow", version="2.3", system="Windows", pythons=("3.8",), cuda="10.1", source="t")
    return Tables(builds=(row,))


@pytest.mark.parametrize(
    ("python", "answer"),
    [({"bits": 64}, "fits"), ({}, "unknown"), ({"version": [3, 11, 1]}, "python-unsupported")],
)
def test_a_python_of_unknown_bits_does_not_fit_for_certain(python: dict[str, Any], answer: str) -> None:
    value = {"version": [3, 8, 5], "platform": "win32", **python}
    assert run("python_fits", build_row(), target__interpreter=value, tf__package=PACKAGE).answer == answer


def test_a_version_without_a_package_does_not_mean_leftovers() -> None:
    assert run("one_tensorflow", tf__package={"version": "1.1", "folder": "x"}).answer == "unknown"
    assert run("one_tensorflow", tf__package=Fact("tf.package", "error", note="x")).answer == "unknown"
