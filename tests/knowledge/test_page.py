"""The generated page of symptoms is current and complete."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tftriage import knowledge

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("symptoms_page", ROOT / "tools" / "symptoms_page.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(tool: ModuleType) -> None:
    written = (ROOT / "docs" / "symptoms.md").read_text(encoding="utf-8")
    assert written == tool.page(knowledge.load(knowledge.CHECKOUT)), "run: python tools/symptoms_page.py"
    assert "docs/symptoms.md" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_symptom_stands_there_once(tool: ModuleType) -> None:
    kb = knowledge.load(knowledge.CHECKOUT)
    text = tool.page(kb)
    assert {tool.group(symptom) for symptom in kb.symptoms} <= tool.GROUPS.keys()
    for symptom in kb.symptoms:
        assert text.count(f"`{symptom.id}`") == 1, symptom.id
