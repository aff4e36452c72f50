"""The walk is a pure state machine: every event has one result, a bad event changes nothing."""

from __future__ import annotations

import pytest

from tftriage.knowledge import Node
from tftriage.probes.base import Finding
from tftriage.walk import Answered, Ask, Back, Begin, Found, Observe, Reached, Walk, WalkError, step

T = {"en": "?", "zh": "？"}


def node(probe: str | None, **answers: str) -> Node:
    return Node(ask=T, why=T, by_hand=T, probe=probe, choices=dict.fromkeys(answers, T), answers=answers)


NODES = {
    "a/first": node("p", yes="second", no="diagnosis:bad", unknown="ask"),
    "a/second": node("q", yes="b/third", unknown="b/third"),
    "b/third": node(None, yes="diagnosis:good", no="diagnosis:bad"),
    "b/loop": node("p", yes="loop"),
}


def begin(at: str = "a/first") -> Walk:
    walk, _ = step(NODES, None, Begin("s", at))
    return walk


def test_a_probe_answers_and_the_walk_goes_on() -> None:
    walk, request = step(NODES, None, Begin("s", "a/first"))
    assert request == Observe("a/first", "p")
    walk, request = step(NODES, walk, Found(Finding("yes", values={"dll": "x.dll"})))
    assert request == Observe("a/second", "q")
    assert [done.answer for done in walk.steps] == ["yes"]
    assert walk.values == {"dll": "x.dll"}


def test_unknown_asks_the_person_with_the_reason() -> None:
    walk, request = step(NODES, begin(), Found(Finding("unknown", reason="no tool")))
    assert request == Ask("a/first", ("yes", "no"), "no tool")
    assert walk.asking
    walk, request = step(NODES, walk, Answered("a/first", "no"))
    assert request == Reached("bad")
    assert walk.diagnosis == "bad"
    assert walk.steps[0].by == "person"


def test_unknown_may_lead_on() -> None:
    walk, _ = step(NODES, begin(), Found(Finding("yes")))
    _, request = step(NODES, walk, Found(Finding("unknown")))
    assert isinstance(request, Ask)
    assert request.node == "b/third"


def test_a_person_overrides_an_earlier_answer() -> None:
    walk, _ = step(NODES, begin(), Found(Finding("yes")))
    walk, _ = step(NODES, walk, Found(Finding("yes")))
    walk, request = step(NODES, walk, Answered("a/first", "no"))
    assert request == Reached("bad")
    assert len(walk.steps) == 1


def test_back_returns_to_the_question_before_and_asks() -> None:
    walk, _ = step(NODES, begin(), Found(Finding("yes")))
    walk, request = step(NODES, walk, Back())
    assert isinstance(request, Ask)
    assert request.node == "a/first"
    assert walk.steps == ()


@pytest.mark.parametrize(
    ("walk", "event"),
    [
        (None, Back()),
        (None, Found(Finding("yes"))),
        (begin(), Back()),
        (begin(), Found(Finding("perhaps"))),
        (begin(), Answered("a/second", "yes")),
        (begin(), Answered("a/first", "unknown")),
        (begin("b/third"), Found(Finding("yes"))),
        (begin("b/loop"), Found(Finding("yes"))),
        (Walk("s", "diagnosis:bad"), Found(Finding("yes"))),
        (None, Begin("s", "a/nowhere")),
    ],
)
def test_a_bad_event_is_refused(walk: Walk | None, event: Back | Found | Answered | Begin) -> None:
    with pytest.raises(WalkError):
        step(NODES, walk, event)
