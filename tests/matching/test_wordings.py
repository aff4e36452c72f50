"""Every symptom in its many wordings; and ordinary texts, which show none."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.matching.base import load_loader_errors, load_symptoms
from tftriage.matching import match

SYMPTOMS, ERRORS = load_symptoms(), load_loader_errors()
WORDINGS: dict[str, list[str]] = yaml.safe_load(Path(__file__).with_name("wordings.yaml").read_text(encoding="utf-8"))
VERDICTS = {symptom.id: symptom.verdict for symptom in SYMPTOMS}


@pytest.mark.parametrize("symptom", WORDINGS)
def test_every_wording_shows_its_symptom_first(symptom: str) -> None:
    for text in WORDINGS[symptom]:
        result = match(text, SYMPTOMS, ERRORS)
        assert result.matches and result.matches[0].id == symptom, (text, [hit.id for hit in result.matches])
        assert result.verdict == VERDICTS[symptom], text


def test_every_symptom_has_wordings() -> None:
    assert set(VERDICTS) - set(WORDINGS) == set()


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow as tf\nprint(tf.__version__)",
        "[PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')]",
        "Epoch 1/5\n1875/1875 [=====] - 3s 2ms/step - loss: 0.29 - accuracy: 0.91",
        "Successfully installed tensorflow-gpu-2.10.1",
        "conda create -n tf python=3.10\npip install tensorflow-gpu==2.10.1",
        "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 10.1",
        "GPU is used and works fine",
        "我装好了 tensorflow，GPU 能用",
        "C:\\> where cudnn64_7.dll\nC:\\cuda\\bin\\cudnn64_7.dll",
        "PATH=C:\\Windows;C:\\cuda\\bin",
        "hello torch",
        "npm ERR! code ENOENT",
        "make: *** [all] Error 2",
    ],
)
def test_an_ordinary_text_shows_nothing(text: str) -> None:
    assert match(text, SYMPTOMS, ERRORS).verdict == "unrecognised"
