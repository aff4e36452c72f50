"""A key that stands twice in a file of the knowledge base is refused: YAML would keep the second and say nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tftriage.knowledge import KnowledgeError, read_yaml


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tree.yaml"
    file.write_text("first: &first {ask: a}\nsecond:\n  <<: *first\n  ask: b\n", encoding="utf-8")
    assert read_yaml(file)["second"] == {"ask": "b"}
    file.write_text("whose: {ask: a}\nsays: {ask: b}\nwhose: {ask: c}\n", encoding="utf-8")
    with pytest.raises(KnowledgeError, match=r"tree\.yaml: twice: whose"):
        read_yaml(file)
