"""``kb check`` finds every kind of hole: the real knowledge base with one thing broken at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tftriage.fixes.catalogue import FIXES
from tftriage.kbcheck import check
from tftriage.knowledge import Diagnosis, Knowledge, Node, fill, load
from tftriage.probes import PROBES
from tftriage.symptoms import Rule

KB = load()
NODE = "dll-import/reproduce"
CAUSE = "cudnn-dll-renamed"


def replaced(value: Any, **changes: Any) -> Any:
    return msgspec.structs.replace(value, **changes)


def node(**changes: Any) -> Knowledge:
    made: Node = replaced(KB.nodes[NODE], **changes)
    return replaced(KB, nodes={**KB.nodes, NODE: made})


def diagnosis(**changes: Any) -> Knowledge:
    made: Diagnosis = replaced(KB.diagnoses[CAUSE], **changes)
    return replaced(KB, diagnoses={**KB.diagnoses, CAUSE: made})


def symptom(**changes: Any) -> Knowledge:
    first, *rest = KB.symptoms
    return replaced(KB, symptoms=(replaced(first, **changes), *rest))


def acquitting() -> Rule:
    made: Rule = replaced(KB.symptoms[0].recognise[0], verdict="not-tensorflow")
    return made


def without_fails() -> dict[str, str]:
    return {a: t for a, t in KB.nodes[NODE].answers.items() if a != "fails"}


HOLES: dict[str, tuple[Callable[[], Knowledge], str]] = {
    "unmapped answer": (lambda: node(answers=without_fails()), "answer fails is not mapped"),
    "answer nobody gives": (lambda: node(answers={**KB.nodes[NODE].answers, "x": "ask"}), "never answers x"),
    "leads nowhere": (lambda: node(answers={**KB.nodes[NODE].answers, "fails": "nowhere"}), "does not exist"),
    "cycle": (lambda: node(answers={**KB.nodes[NODE].answers, "fails": "whose"}), "cycle"),
    "no such probe": (lambda: node(probe="guess"), "no probe guess"),
    "choice without words": (lambda: node(choices={}), "no words for the choice"),
    "one language": (lambda: node(ask={"en": "?"}), "no zh text"),
    "empty language": (lambda: node(why={"en": "x", "zh": " "}), "no zh text"),
    "no source": (lambda: diagnosis(sources=()), "a claim without source"),
    "no way out": (lambda: diagnosis(fixes=(), hand=None), "neither fix nor hand steps"),
    "fix without code": (lambda: diagnosis(fixes=("magic",)), "no code for the fix magic"),
    "myth that is not there": (lambda: diagnosis(myths=("none",)), "no myth none"),
    "placeholder nobody fills": (lambda: diagnosis(cause={"en": "{moon}", "zh": "{moon}"}), "no probe fills {moon}"),
    "placeholders differ": (lambda: diagnosis(cause={"en": "{dll}", "zh": "x"}), "different placeholders"),
    "repair of what is not ours": (lambda: diagnosis(verdict="not-tensorflow"), "may not offer a repair"),
    "mends what is harmless": (lambda: symptom(verdict="harmless"), "which mends"),
    "rule that its tree contradicts": (lambda: symptom(recognise=(acquitting(),)), "a rule says not-tensorflow, but"),
    "synonyms in one language": (lambda: symptom(also={"en": ("x",)}), "no synonyms in zh"),
    "summary in one language": (lambda: symptom(summary={"en": "x"}), "no zh text"),
    "start nowhere": (lambda: symptom(start="dll-import/nowhere"), "which does not exist"),
    "too few texts": (lambda: symptom(examples=("one",)), "two examples"),
    "example not recognised": (lambda: symptom(examples=("one", "two")), "shows nothing first"),
    "near miss recognised": (lambda: symptom(near_misses=KB.symptoms[0].examples[:2]), "near miss"),
    "unreachable": (lambda: replaced(KB, symptoms=KB.symptoms[:1]), "no symptom leads here"),
}


def test_the_knowledge_base_is_whole() -> None:
    assert check(KB, PROBES, FIXES) == []


@pytest.mark.parametrize("hole", HOLES)
def test_a_hole_is_found(hole: str) -> None:
    broken, words = HOLES[hole]
    assert any(words in line for line in check(broken(), PROBES, FIXES))


@pytest.mark.parametrize("pattern", [r"a(?=b)", r"(?<!x)y", r"(a)\1", r"(?P<q>x)(?P=q)"])
def test_patterns_stay_within_re2(pattern: str) -> None:
    rule = replaced(KB.symptoms[0].recognise[0], regex=pattern, text="", message="")
    assert any("look-around" in line for line in check(symptom(recognise=(rule,)), PROBES, FIXES))


def test_an_optional_part_shows_only_with_its_values() -> None:
    text = {"en": "Gone[[: {files}]]. {dll}", "zh": "缺失[[：{files}]]。{dll}"}
    assert fill(text, "en", {"files": "[[a]]", "dll": "x"}) == "Gone: [[a]]. x"
    assert fill(text, "zh", {}) == "缺失。?"
