"""Whole pastes, as they arrive, show the symptom that decides first, and the right verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.matching import damage
from tests.matching.base import load_loader_errors, load_symptoms
from tftriage.matching import match

SYMPTOMS, ERRORS = load_symptoms(), load_loader_errors()
VERDICTS = {symptom.id: symptom.verdict for symptom in SYMPTOMS}
PASTES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("field.yaml").read_text(encoding="utf-8"))


def damaged(text: str, forms: list[str]) -> str:
    for form in forms:
        text = getattr(damage, form)(text)
    return text


@pytest.mark.parametrize("paste", PASTES, ids=[f"{n}-{paste['symptom']}" for n, paste in enumerate(PASTES)])
def test_a_paste_shows_what_decides(paste: dict[str, Any]) -> None:
    whole = paste["text"].rstrip("\n")
    for text in {whole, damaged(whole, paste.get("forms", []))}:
        result = match(text, SYMPTOMS, ERRORS)
        assert result.matches and result.matches[0].id == paste["symptom"], (text, [hit.id for hit in result.matches])
        assert result.verdict == paste.get("verdict", VERDICTS[paste["symptom"]])


def test_the_pastes_are_many_and_of_every_form() -> None:
    assert len(PASTES) > 180
    used = {form for paste in PASTES for form in paste.get("forms", [])}
    assert used >= {"wrapped_79", "wrapped_100", "bulleted", "starred", "piped", "compose", "timestamped", "journalled"}
    assert used >= {"log_prefixed", "ranked", "boxed", "interleaved", "json_doubled", "mailed", "notebook", "escaped"}
