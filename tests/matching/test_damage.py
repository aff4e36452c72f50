"""What a text shows does not change when a terminal, a forum, a notebook or a code page damages it."""

from __future__ import annotations

import json

import pytest

from tests.matching import damage
from tests.matching.base import load_loader_errors, load_symptoms
from tftriage.matching import match
from tftriage.repair import repair
from tftriage.slips import meant

SYMPTOMS, ERRORS = load_symptoms(), load_loader_errors()
EXAMPLES = [pytest.param(s.id, text, id=f"{s.id}-{n}") for s in SYMPTOMS for n, text in enumerate(s.examples)]
NAMES = ("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "tensorflowjs", "keras", "numpy")


@pytest.mark.parametrize(("symptom", "text"), EXAMPLES)
def test_an_example_is_recognised_in_every_damage(symptom: str, text: str) -> None:
    forms = [*damage.ASCII, damage.notebook, *(() if text.isascii() else damage.CHINESE)]
    for form in forms:
        found = match(form(text), SYMPTOMS, ERRORS).matches
        assert found and found[0].id == symptom, (form.__name__, form(text), [hit.id for hit in found])


def test_the_damages_do_damage() -> None:
    text = 'File "C:\\张伟\\a.py", line 1\n' + "x" * 150 + "\nError"
    for form in (*damage.ASCII, damage.notebook, *damage.CHINESE):
        assert form(text) != text


def test_entities_become_letters_once() -> None:
    text = "&lt;module&gt; can&#39;t &#x627e;&#25214; &amp;lt; &unknown; a&b"
    assert repair(text).text == "<module> can't 找找 &lt; &unknown; a&b"


def test_entities_cannot_smuggle_control_sequences() -> None:
    assert repair("a&#27;[31mb&#0;c&#x1b;[2Jd&#7;e&#155;f").text.isprintable()


def test_the_texts_of_a_cell_in_a_notebook_file() -> None:
    cell = {"ename": "E", "traceback": ["\x1b[0;31mValueError\x1b[0m: a", {"more": ["b\nc"]}], "n": 1}
    assert repair(json.dumps(cell)).text == "E\nValueError: a\nb\nc"
    assert repair('   "ImportError: DLL load failed\\n",').text == "ImportError: DLL load failed"


@pytest.mark.parametrize("line", ["[]", '["a", ', "[" * 5000 + '"', '{"a": 1}', '"' * 9])
def test_what_is_no_json_with_texts_stays(line: str) -> None:
    assert repair(line).text.replace("\\", "") == line.replace("\\", "")


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("tensorfow", "tensorflow"),
        ("tensorflow-gpuu", "tensorflow-gpu"),
        ("tenserflow", "tensorflow"),
        ("Tensor_Flow", "tensorflow"),
        ("tensorflwo", "tensorflow"),
        ("kears", "keras"),
        ("tensorflow_gpu", None),
        ("tensorflow-hub", None),
        ("tensorlayer", None),
        ("numpyro", None),
        ("", None),
        ("torch", None),
    ],
)
def test_a_slip_of_the_keyboard(name: str, right: str | None) -> None:
    assert meant(name, NAMES) == right


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("ERROR: No matching distribution found for tensorflow-gpuu", "pip-no-matching-distribution"),
        (
            "PackagesNotFoundError: The following packages are not available from current channels:\n\n  - tensorfow",
            "conda-packages-not-found",
        ),
        ("ModuleNotFoundError: No module named 'tesorflow'", "package-name-typo"),
    ],
)
def test_a_misspelt_package_is_no_fault_of_the_machine(text: str, first: str) -> None:
    result = match(text, SYMPTOMS, ERRORS)
    assert result.matches[0].id == first
    assert result.verdict == "not-an-installation-fault"
    assert result.matches[0].captures["meant"].startswith("tensorflow")


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
        "CUDA kernel errors might be asynchronously reported at some other API call",
        'File "/e/lib/python3.10/site-packages/torch/nn/modules/conv.py", line 443, in forward\n'
        "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
        "[ONNXRuntimeError] : 1 : FAIL : LoadLibrary failed with error 126 when trying to load providers_cuda.dll",
        "OSError: (External) CUDNN error(1), CUDNN_STATUS_NOT_INITIALIZED. (at D:\\build\\paddle\\device_context.cc)",
        "RuntimeError: module compiled against API version 0x10 but this version of numpy is 0xf\n"
        '  File "C:\\e\\lib\\site-packages\\cv2\\__init__.py", line 5\n'
        "ImportError: numpy.core.multiarray failed to import",
        "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.1.0 as it may crash.\n"
        '  File "C:\\e\\lib\\site-packages\\seaborn\\__init__.py", line 2, in <module>',
        "ERROR: streamlit 1.12.0 requires protobuf<4,>=3.12, but you have protobuf 4.25.0 which is incompatible.",
        "cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorInsufficientDriver: CUDA driver version is "
        "insufficient for CUDA runtime version",
        "XGBoostError: gpu_hist: no CUDA-capable device is detected",
        "ERROR: Could not find a version that satisfies the requirement torch==1.4.0",
        'Could not load library cudnn_cnn_infer64_8.dll. Error code 126\n  File "C:\\lib\\site-packages\\torch\\x.py"',
    ],
)
def test_a_text_about_another_package_starts_no_tree_of_ours(text: str) -> None:
    result = match(text, SYMPTOMS, ERRORS)
    assert result.verdict == "not-tensorflow", [hit.id for hit in result.matches]


def test_a_mention_of_another_package_does_not_hide_our_fault() -> None:
    text = (
        "torch sees the GPU, tensorflow does not:\n"
        "failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
    )
    assert match(text, SYMPTOMS, ERRORS).matches[0].id == "cuinit-failed"
