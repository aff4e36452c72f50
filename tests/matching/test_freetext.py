"""A complaint in a person's own words finds the symptom; output, and talk of other things, does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.matching.base import load_loader_errors, load_symptoms
from tftriage.freetext import LONGEST, search, words
from tftriage.matching import match
from tftriage.symptoms import Symptom

SYMPTOMS = load_symptoms()
ERRORS = load_loader_errors()
IDS = {symptom.id for symptom in SYMPTOMS}

# What people type: as it is, with slips, as a sentence.
SAID = [
    ("显卡不动", "gpu-not-listed"),
    ("为什么我的显卡没有用上", "gpu-not-listed"),
    ("tf没有用gpu", "gpu-not-listed"),
    ("我的显卡识别不了", "gpu-not-listed"),
    ("gpu not used", "gpu-not-listed"),
    ("no gpu", "gpu-not-listed"),
    ("my gpu isnt deteced", "gpu-not-listed"),
    ("the graphics card is not found", "gpu-not-listed"),
    ("jupyter cannot find tensorflow", "notebook-module-not-found"),
    ("jupiter cant find tensorfow", "notebook-module-not-found"),
    ("notebook can't find tf", "notebook-module-not-found"),
    ("jupyter 找不到 tensorflow 怎么办", "notebook-module-not-found"),
    ("导入很慢", "import-hangs"),
    ("the import is so slow", "import-hangs"),
    ("dll load failed", "import-fails"),
    ("can't import tf", "import-fails"),
    ("导入报错", "import-fails"),
    ("my gpu is idle during training", "gpu-util-low"),
    ("训练太慢了", "gpu-util-low"),
    ("爆显存了", "oom"),
    ("用户名是中文", "non-ascii-suspected"),
    ("被杀毒软件删了", "antivirus-suspected"),
    ("the kernel keeps dying", "notebook-kernel-died"),
    ("cudnn 版本不对怎么办", "cudnn-version-mismatch"),
    ("conda stuck solving environment", "conda-unsatisfiable"),
]
OTHER = [
    "the weather is fine",
    "今天天气很好",
    "hello world",
    "x",
    "one",
    "minutes",
    "",
    "   ",
    "how do I plot a histogram",
    "no internet",
    "你好，请问怎么安装？",
    "the driver of the printer is insufficient",
    "I have no antivirus on this machine.",
    "路径没有问题",
    "!!! ??? ...",
]
OUTPUT = [
    "gpu: not used",
    "no gpu\n" * 40,
    "C:\\no\\gpu",
    "gpu == used",
    "print(gpu)",
    "no gpu " * 20,
]


@pytest.mark.parametrize(("text", "wanted"), SAID)
def test_a_complaint_is_found(text: str, wanted: str) -> None:
    found = search(text, SYMPTOMS)
    assert found[:1] == (wanted,), found


@pytest.mark.parametrize("text", OTHER)
def test_other_talk_finds_nothing(text: str) -> None:
    assert search(text, SYMPTOMS) == ()


@pytest.mark.parametrize("text", OUTPUT)
def test_output_is_the_matchers_work(text: str) -> None:
    assert search(text, SYMPTOMS) == ()


def test_one_language() -> None:
    assert search("显卡不动", SYMPTOMS, "zh")[:1] == ("gpu-not-listed",)
    assert search("显卡跑不满", SYMPTOMS, "en") != search("显卡跑不满", SYMPTOMS, "zh") == ("gpu-util-low",)
    assert search("second gpu not used", SYMPTOMS, "en")[:1] == ("second-gpu-not-used",)


def test_words_are_stems_and_pairs() -> None:
    assert words("The GPUs aren't detected") == words("GPU is not detecting") == ("gpu", "not", "detect")
    assert words("显卡不动") == ("gpu", "不动")
    assert words("找不到模块") == ("找不", "不到", "到模", "模块")


@pytest.mark.parametrize("symptom", [s for s in SYMPTOMS if s.also], ids=lambda symptom: symptom.id)
def test_synonyms_find_their_symptom(symptom: Symptom) -> None:
    assert set(symptom.also) == {"en", "zh"} and all(symptom.also.values())
    for text in (text for texts in symptom.also.values() for text in texts):
        assert len(text) <= LONGEST
        assert symptom.id in search(text, SYMPTOMS), text


@pytest.mark.parametrize("symptom", [s for s in SYMPTOMS if s.also], ids=lambda symptom: symptom.id)
def test_the_first_synonym_is_matched(symptom: Symptom) -> None:
    result = match(symptom.also["zh"][0], SYMPTOMS, ERRORS)
    assert (
        symptom.id in [hit.id for hit in result.matches] or result.verdict != "unrecognised"
    )  # a rule may know better


def test_every_complaint_of_the_list_has_synonyms() -> None:
    assert [s.id for s in SYMPTOMS if s.complaint and not s.also] == []


def test_a_guess_stays_below_every_rule() -> None:
    guess = match("\n导入很慢\n", SYMPTOMS, ERRORS)
    assert [(hit.id, hit.score, hit.lines) for hit in guess.matches] == [("import-hangs", 0.3, ((2, 2),))]
    assert guess.verdict == "unrecognised"
    assert match("the weather is fine", SYMPTOMS, ERRORS).matches == ()
    assert match("no gpu\nno gpu\nno gpu", SYMPTOMS, ERRORS).matches == ()  # three lines are output
    assert match("ValueError\nno gpu", SYMPTOMS, ERRORS).matches == ()
    assert all(match(symptom.examples[0], SYMPTOMS, ERRORS).matches[0].score > 0.3 for symptom in SYMPTOMS)


@given(st.text(max_size=LONGEST + 8))
@settings(max_examples=60, deadline=None)
def test_any_text(text: str) -> None:
    found = search(text, SYMPTOMS)
    assert set(found) <= IDS and len(found) == len(set(found)) <= 4
