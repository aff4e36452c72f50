"""The decision tree as a state machine: (state, event) -> (state, requests).

No clock, disk, thread or screen: all that moves a walk lives in ``step``; who asks the machine or the person,
and when, is the caller's affair. An event that does not fit the state raises ``WalkError`` and changes nothing.

    Begin ──▶ node with a probe ──Found──▶ next node …            ──▶ diagnosis
                    │ unknown, mapped to "ask"                         ▲
                    └────────▶ waits for the person ──Answered────────┘
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from tftriage.knowledge import Node
from tftriage.probes.base import Finding

DIAGNOSIS = "diagnosis:"
ASK = "ask"


class WalkError(Exception):
    """An event that does not fit the state, or an answer that the node does not know."""


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answered node: by its probe (with the finding) or by the person (who may have overridden a probe)."""

    node: str
    answer: str
    by: Literal["probe", "person"]
    finding: Finding | None = None


class Walk(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a walk stands. ``at`` is a node, or ``diagnosis:ID`` at the end; ``asking`` waits for the person."""

    symptom: str
    at: str
    steps: tuple[Step, ...] = ()
    asking: bool = False
    finding: Finding | None = None  # the unknown finding that made us ask

    @property
    def diagnosis(self) -> str | None:
        """The diagnosis reached, or ``None``."""
        return self.at[len(DIAGNOSIS) :] if self.at.startswith(DIAGNOSIS) else None

    @property
    def values(self) -> dict[str, str]:
        """The placeholders that the findings on the way filled; later ones win."""
        merged: dict[str, str] = {}
        for done in self.steps:
            if done.finding is not None:
                merged.update(done.finding.values)
        return merged


class Begin(msgspec.Struct, frozen=True, tag=True):
    """The person, or the matcher, chose a symptom; ``start`` is where its tree begins."""

    symptom: str
    start: str


class Found(msgspec.Struct, frozen=True, tag=True):
    """The probe of the present node answered."""

    finding: Finding


class Answered(msgspec.Struct, frozen=True, tag=True):
    """The person answered the present node, or overrode an earlier one (the walk goes on from there)."""

    node: str
    answer: str


class Back(msgspec.Struct, frozen=True, tag=True):
    """Go back to the question before."""


Event = Begin | Found | Answered | Back


class Observe(msgspec.Struct, frozen=True, tag=True):
    """Run the probe of this node."""

    node: str
    probe: str


class Ask(msgspec.Struct, frozen=True, tag=True):
    """Ask the person; ``reason`` says why no probe could answer (empty for a question only a person can answer)."""

    node: str
    choices: tuple[str, ...]
    reason: str = ""


class Reached(msgspec.Struct, frozen=True, tag=True):
    """The walk ended in this diagnosis."""

    diagnosis: str


Request = Observe | Ask | Reached


def step(nodes: Mapping[str, Node], walk: Walk | None, event: Event) -> tuple[Walk, Request]:
    """The next state and what it asks for. Pure; raises ``WalkError`` and changes nothing on a bad event."""
    if isinstance(event, Begin):
        return _enter(nodes, Walk(event.symptom, event.start))
    if walk is None:
        raise WalkError("the walk has not begun")
    if isinstance(event, Back):
        if not walk.steps:
            raise WalkError("this is the first question")
        last = walk.steps[-1]
        return _ask(nodes, Walk(walk.symptom, last.node, walk.steps[:-1], asking=True, finding=last.finding))
    if isinstance(event, Answered):
        return _answered(nodes, walk, event)
    if walk.diagnosis is not None or walk.asking:
        raise WalkError("no probe was asked for")
    return _found(nodes, walk, event.finding)


def _found(nodes: Mapping[str, Node], walk: Walk, finding: Finding) -> tuple[Walk, Request]:
    target = _target(nodes, walk.at, finding.answer)
    if target == ASK:
        return _ask(nodes, Walk(walk.symptom, walk.at, walk.steps, asking=True, finding=finding))
    steps = (*walk.steps, Step(walk.at, finding.answer, "probe", finding))
    return _enter(nodes, Walk(walk.symptom, target, steps))


def _answered(nodes: Mapping[str, Node], walk: Walk, event: Answered) -> tuple[Walk, Request]:
    earlier = [done.node for done in walk.steps]
    if event.node == walk.at:
        kept, finding = walk.steps, walk.finding
    elif event.node in earlier:
        index = earlier.index(event.node)
        kept, finding = walk.steps[:index], walk.steps[index].finding
    else:
        raise WalkError(f"{event.node} is not on this walk")
    target = _target(nodes, event.node, event.answer)
    if target == ASK:
        raise WalkError(f"{event.answer!r} is not an answer a person can give to {event.node}")
    steps = (*kept, Step(event.node, event.answer, "person", finding))
    return _enter(nodes, Walk(walk.symptom, target, steps))


def _target(nodes: Mapping[str, Node], node: str, answer: str) -> str:
    answers = nodes[node].answers
    if answer not in answers:
        raise WalkError(f"{node} has no answer {answer!r}")
    return absolute(answers[answer], node)


def absolute(target: str, node: str) -> str:
    """A target as written in a tree (``node``, ``tree/node``, ``diagnosis:id``, ``ask``), made absolute."""
    if target == ASK or target.startswith(DIAGNOSIS) or "/" in target:
        return target
    return f"{node.split('/', 1)[0]}/{target}"


def _enter(nodes: Mapping[str, Node], walk: Walk) -> tuple[Walk, Request]:
    diagnosis = walk.diagnosis
    if diagnosis is not None:
        return walk, Reached(diagnosis)
    if walk.at not in nodes:
        raise WalkError(f"there is no node {walk.at}")
    if walk.at in {done.node for done in walk.steps}:
        raise WalkError(f"the tree leads back to {walk.at}")
    probe = nodes[walk.at].probe
    if probe is None:
        return _ask(nodes, Walk(walk.symptom, walk.at, walk.steps, asking=True))
    return walk, Observe(walk.at, probe)


def _ask(nodes: Mapping[str, Node], walk: Walk) -> tuple[Walk, Request]:
    choices = tuple(a for a, target in nodes[walk.at].answers.items() if target != ASK)
    return walk, Ask(walk.at, choices, walk.finding.reason if walk.finding else "")
