"""Every symptom is recognised by its own examples, is not by its near misses, and obeys the rules for authors."""

from __future__ import annotations

import importlib
import re
import sys
from itertools import pairwise
from typing import Any

import pytest

from tests.matching.base import KNOWLEDGE, load_loader_errors, load_symptoms
from tftriage.anchors import anchors, strength
from tftriage.matching import GUESSED, match
from tftriage.symptoms import Rule, Symptom

# The parser of the standard library has moved; its shape has not.
sre_parse: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
sre_constants: Any = importlib.import_module("re._constants" if sys.version_info >= (3, 11) else "sre_constants")

SYMPTOMS = load_symptoms()
ERRORS = load_loader_errors()
IDS = {symptom.id for symptom in SYMPTOMS}
NAMED = [(f"{s.id}-{n}", rule) for s in SYMPTOMS for n, rule in enumerate(s.recognise)]
RULES = [pytest.param(rule, id=name) for name, rule in NAMED]
REGEXES = [pytest.param(rule, id=name) for name, rule in NAMED if rule.regex]
EXAMPLES = [pytest.param(s, text, id=f"{s.id}-{n}") for s in SYMPTOMS for n, text in enumerate(s.examples)]
NEAR_MISSES = [pytest.param(s, text, id=f"{s.id}-{n}") for s in SYMPTOMS for n, text in enumerate(s.near_misses)]
COMPLAINTS = [
    "import-fails",
    "import-hangs",
    "gpu-not-listed",
    "gpu-found-not-added",
    "gpu-util-low",
    "oom",
    "notebook-module-not-found",
    "non-ascii-suspected",
    "antivirus-suspected",
]


@pytest.mark.parametrize(("symptom", "text"), EXAMPLES)
def test_example_is_recognised_first(symptom: Symptom, text: str) -> None:
    result = match(text, SYMPTOMS, ERRORS)
    assert result.matches, "nothing recognised"
    assert result.matches[0].id == symptom.id, [hit.id for hit in result.matches]
    assert result.verdict == symptom.verdict
    last = text.count("\n") + 1
    assert all(1 <= start <= end <= last for hit in result.matches for start, end in hit.lines)


@pytest.mark.parametrize(("symptom", "text"), NEAR_MISSES)
def test_near_miss_is_not(symptom: Symptom, text: str) -> None:
    assert symptom.id not in [hit.id for hit in match(text, SYMPTOMS, ERRORS).matches if hit.score > GUESSED]


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda symptom: symptom.id)
def test_symptom_is_complete(symptom: Symptom) -> None:
    assert (KNOWLEDGE / "symptoms" / f"{symptom.id}.yaml").is_file()
    for words in [symptom.title, *([symptom.summary] if symptom.summary else [])]:
        assert set(words) == {"en", "zh"}
        assert all(words.values())
    assert len(symptom.examples) >= 2
    assert len(symptom.near_misses) >= 2
    assert set(symptom.outranks) <= IDS - {symptom.id}
    assert re.fullmatch(r"diagnosis:[a-z0-9-]+(?:\.[a-z0-9]+)*[a-z0-9+-]*|[a-z-]+/[a-z-]+", symptom.start)
    assert not re.search(r"[\u4e00-\u9fff][,;:?!]", " ".join([symptom.title["zh"], symptom.summary.get("zh", "")]))


@pytest.mark.parametrize("rule", RULES)
def test_rule_has_one_pattern(rule: Rule) -> None:
    assert sum(map(bool, (rule.message, rule.text, rule.regex))) == 1
    assert 0 < rule.weight <= 2.5
    if rule.message:
        codes = {str(error.code) for error in ERRORS} | {"any"}
        assert rule.message.removeprefix("loader-error:") in codes


@pytest.mark.parametrize("rule", REGEXES)
def test_regex_is_re2_compatible_and_anchored(rule: Rule) -> None:
    forbidden = {"ASSERT", "ASSERT_NOT", "GROUPREF", "GROUPREF_EXISTS", "ATOMIC_GROUP", "POSSESSIVE_REPEAT"}
    names = {str(op) for op, _ in walk(sre_parse.parse(rule.regex))}
    assert not names & forbidden
    assert strength(anchors(rule.regex)) >= 3, anchors(rule.regex)
    assert not nested_repeat(sre_parse.parse(rule.regex)), "a repeat without bound inside another one"


@pytest.mark.parametrize("pattern", ["(?=a)bcde", r"(a)\1bcde", "(?<!x)abcd", "((ab)+)+cdef"])
def test_the_lint_sees_what_it_forbids(pattern: str) -> None:
    parsed = sre_parse.parse(pattern)
    names = {str(op) for op, _ in walk(parsed)}
    assert names & {"ASSERT", "ASSERT_NOT", "GROUPREF"} or nested_repeat(parsed)


def test_outranks_has_no_cycle() -> None:
    below = {symptom.id: set(symptom.outranks) for symptom in SYMPTOMS}
    for start in below:
        seen, todo = set(), list(below[start])
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += below[name]
        assert start not in seen


def test_complaints_stand_in_order() -> None:
    shown = sorted((symptom for symptom in SYMPTOMS if symptom.complaint), key=lambda symptom: symptom.order)
    assert {symptom.id for symptom in shown} == set(COMPLAINTS)
    assert all(before.order < after.order for before, after in pairwise(shown))


def test_loader_errors_have_every_code_and_no_shared_text() -> None:
    assert {error.code for error in ERRORS} == {5, 126, 127, 182, 193, 225, 1114, 1455}
    owner: dict[str, int] = {}
    for error in ERRORS:
        assert error.source
        for texts in error.texts.values():
            for text in texts:
                assert owner.setdefault(text, error.code) == error.code


def walk(parsed: object) -> list[tuple[object, object]]:
    """All (operation, argument) pairs of a parsed regex."""
    found: list[tuple[object, object]] = []
    todo = [parsed]
    while todo:
        item = todo.pop()
        if isinstance(item, sre_parse.SubPattern):
            todo += list(item.data)
        elif isinstance(item, tuple | list):
            if len(item) == 2 and isinstance(item[0], type(sre_constants.LITERAL)):
                found.append((item[0], item[1]))
            todo += [part for part in item if isinstance(part, tuple | list | sre_parse.SubPattern)]
    return found


def nested_repeat(parsed: object) -> bool:
    """Whether an unbounded repeat holds another one, which can take exponential time."""
    unbounded = [
        argument
        for operation, argument in walk(parsed)
        if str(operation) in ("MAX_REPEAT", "MIN_REPEAT") and isinstance(argument, tuple) and argument[1] > 1000
    ]
    return any(
        str(operation) in ("MAX_REPEAT", "MIN_REPEAT") and isinstance(inner, tuple) and inner[1] > 1000
        for argument in unbounded
        for operation, inner in walk(argument[2])
    )
