"""Whose a library's own message is: the text says it, or the person does."""

from __future__ import annotations

import pytest

from tests.probes.test_context import run
from tftriage.facts import Fact

CUDNN = "Could not load library cudnn_cnn_infer64_8.dll. Error code 126"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (CUDNN, "unknown"),
        (f"Epoch 1/3\n{CUDNN}", "tensorflow"),
        (f"2022-01-01 10:00:00.1: I tensorflow/stream_executor/cuda_dnn.cc:384] Loaded cuDNN version 8401\n{CUDNN}",
         "tensorflow"),
        (f'  File "C:\\e\\lib\\site-packages\\whisper\\audio.py", line 3, in load\n{CUDNN}', "other-package"),
    ],
)  # fmt: skip
def test_the_text_names_the_program_or_nobody_does(text: str, answer: str) -> None:
    assert run("whose_program", paste=text).answer == answer


def test_without_a_text_the_person_is_asked() -> None:
    finding = run("whose_program")
    assert finding.answer == "unknown" and finding.reason == "paste.text: not-recorded"


def test_where_tensorflow_is_nowhere_it_is_another_program() -> None:
    absent = Fact("tf.package", "absent", note="not-installed")
    assert run("whose_program", paste=CUDNN, tf__package=absent).answer == "other-package"
    assert run("whose_program", paste=f"tensorflow\n{CUDNN}", tf__package=absent).answer == "tensorflow"
    assert run("whose_program", paste=CUDNN, tf__package={"version": "2.10"}).answer == "unknown"
    assert run("whose_program", tf__package=absent).answer == "unknown"
