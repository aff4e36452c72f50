"""Drives one triage: gets facts from a source, runs probes, moves the walk, applies and verifies fixes.

The same session serves the command line and the screen, a live machine and a recorded case. Its methods block while
facts arrive; a caller with a screen runs them in a thread and is told of every step through ``listener``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from tftriage import matching, requests
from tftriage.facts import Fact, Facts
from tftriage.knowledge import Diagnosis, Knowledge
from tftriage.probes import PROBES
from tftriage.probes.base import Finding
from tftriage.requests import Target
from tftriage.sources import FactSource
from tftriage.walk import Answered, Ask, Back, Begin, Found, Observe, Reached, Request, Walk, WalkError, step


class Entered(msgspec.Struct, frozen=True):
    """A node's probe is about to run; ``wants`` are the facts it still needs."""

    node: str
    wants: tuple[str, ...]


class Arrived(msgspec.Struct, frozen=True):
    """A fact became known."""

    fact: Fact


class Judged(msgspec.Struct, frozen=True):
    """A node's probe answered."""

    node: str
    finding: Finding


Progress = Entered | Arrived | Judged
Listener = Callable[[Progress], None]


class Verified(msgspec.Struct, frozen=True):
    """What became of a fix: the probe that failed, asked again in the context that failed, and the walk after it.

    ``cured``: the walk ends well. ``next-cause``: this cause is gone, another one stands (failures are stacked).
    ``not-cured``: the probe still sees the same fault.
    """

    result: Literal["cured", "next-cause", "not-cured"]
    finding: Finding
    diagnosis: str | None
    asks: str | None = None


class NoTarget(Exception):
    """The interpreter that was named cannot be looked at; ``kind`` is gone, not-python, not-executable or too-old."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


NO_TARGET = ("gone", "not-python", "not-executable", "too-old")


def unheard(progress: Progress) -> None:
    """The listener of a caller that does not want to know."""


class Session:
    """One triage of one target. ``facts``, ``walk`` and ``request`` are values that only this class replaces."""

    def __init__(
        self, knowledge: Knowledge, source: FactSource, target: Target, text: str = "", facts: Facts | None = None
    ) -> None:
        self.knowledge = knowledge
        self.source = source
        self._knowing = threading.Lock()  # a text may be pasted while a thread looks at the machine
        self.target: Target
        self.facts = facts or Facts()
        if not source.live:
            self.facts = self.facts.with_(Fact("case.recorded", "ok", True, "the case"))
        self.retarget(target)
        self.walk: Walk | None = None
        self.request: Request | None = None
        self.matched: matching.MatchResult | None = None
        self.text = ""
        self.paste(text)

    def retarget(self, target: Target) -> None:
        """Look at another environment, or at the same one in another context."""
        self.target = target
        with self._knowing:
            self.facts = self.facts.without(["target.kernel"])
        if target.kernel is not None:
            self._know(Fact("target.kernel", "ok", {"name": target.kernel}, "given"))

    # --- the symptom ---------------------------------------------------------------------------------------

    def paste(self, text: str) -> None:
        """Take a pasted text and recognise it (``matched`` is ``None`` when there is no text)."""
        tables = self.knowledge.tables
        self.take(text, matching.match(text, self.knowledge.symptoms, tables.loader_errors) if text.strip() else None)

    def take(self, text: str, matched: matching.MatchResult | None) -> None:
        """Take a text that was recognised already; without text, forget the one of before."""
        self.text, self.matched = text, matched
        if matched is None:
            with self._knowing:
                self.facts = self.facts.without(["paste.text"])
        else:
            self._know(Fact("paste.text", "ok", {"text": matched.text}, "pasted"))

    def _know(self, fact: Fact) -> None:
        with self._knowing:
            self.facts = self.facts.with_(fact)

    def learn(self, fact: Fact) -> None:
        """Take a fact that was observed by other means than ``observe`` (samples over time)."""
        self._know(fact)

    def reproduce(self, listener: Listener = unheard) -> str | None:
        """Let the target fail by itself: import, then the GPU check. Returns the symptom to start from.

        ``None`` when nothing fails. The text that the machine printed is taken as if it had been pasted.
        Raises ``NoTarget``.
        """
        self.check_target(listener)
        self.observe(("tf.import",), listener)
        attempt = _object(self.facts.value("tf.import"))
        if attempt is None:
            return "import-fails"
        if not attempt.get("ok"):
            self.paste(_joined(attempt.get("log"), attempt.get("traceback")))
            return "import-hangs" if attempt.get("timed_out") else self.best_match() or "import-fails"
        if self.target.module != "tensorflow":
            return None
        self.observe(("tf.gpus", "tf.operation"), listener)
        gpus = _object(self.facts.value("tf.gpus")) or {}
        operation = _object(self.facts.value("tf.operation")) or {}
        if operation.get("correct"):
            return None
        self.paste(_joined(gpus.get("log"), operation.get("log"), operation.get("error")))
        return self.best_match() or "gpu-not-listed"

    def best_match(self) -> str | None:
        """The best recognised symptom of the pasted text that is a fault, or ``None``."""
        if self.matched is None or not self.matched.matches or self.matched.verdict in ("harmless", "unrecognised"):
            return None
        return self.matched.matches[0].id

    def begin(self, symptom_id: str) -> None:
        """Start the walk at a symptom. ``KeyError`` when there is none of that id."""
        symptom = self.knowledge.symptom(symptom_id)
        captures: dict[str, str] = {}
        if self.matched is not None:
            captures = next((dict(m.captures) for m in self.matched.matches if m.id == symptom_id), {})
        value = {"id": symptom_id, "captures": captures}
        self._know(Fact("paste.symptom", "ok", value, "recognised"))
        self.walk, self.request = step(self.knowledge.nodes, None, Begin(symptom_id, symptom.start))

    # --- the walk ------------------------------------------------------------------------------------------

    def advance(self, listener: Listener = unheard) -> Ask | Reached:
        """Answer node after node by probes until the person is needed or a diagnosis is reached.

        Raises ``NoTarget`` when the interpreter that was named is none: then no question about it has an answer.
        """
        self.check_target(listener)
        while isinstance(self.request, Observe):
            probe = PROBES[self.request.probe]
            wanted = [name for wave in requests.waves(probe.needs, self.facts) for name in wave]
            listener(Entered(self.request.node, tuple(wanted)))
            self.observe(probe.needs, listener)
            finding = probe(self.facts, self.knowledge.tables)
            listener(Judged(self.request.node, finding))
            self._step(Found(finding))
        if self.request is None:
            raise WalkError("the walk has not begun")
        if self.diagnosis is not None and self.diagnosis.fixes:
            self.observe(requests.FOR_FIXES, listener)
        return self.request

    def check_target(self, listener: Listener = unheard) -> None:
        """Raise ``NoTarget`` unless the named interpreter can be looked at (a case is taken as it is)."""
        if not self.source.live or self.target.python is None:
            return
        self.observe(("target.interpreter",), listener)
        fact = self.facts.get("target.interpreter")
        kind, _, detail = fact.note.partition(": ") if fact is not None and fact.status == "error" else ("", "", "")
        if kind in NO_TARGET:
            raise NoTarget(kind, detail or str(self.target.python))

    def answer(self, node: str, answer: str) -> None:
        """The person answers a node, or overrides an earlier answer."""
        self._step(Answered(node, answer))

    def back(self) -> None:
        """One question back; it is then the person's to answer."""
        self._step(Back())

    def _step(self, event: Found | Answered | Back) -> None:
        self.walk, self.request = step(self.knowledge.nodes, self.walk, event)

    @property
    def values(self) -> dict[str, str]:
        """What the findings on the way filled in."""
        return self.walk.values if self.walk else {}

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The diagnosis reached, or ``None``."""
        reached = self.walk.diagnosis if self.walk else None
        return self.knowledge.diagnoses[reached] if reached else None

    # --- facts ---------------------------------------------------------------------------------------------

    def observe(self, names: Iterable[str], listener: Listener = unheard) -> None:
        """Make sure that facts are known, as far as the source can tell; those known already are kept."""
        for wave in requests.waves(names, self.facts):
            # A recorded fact is there or not, however it was asked for; and what a case holds may be no sound argument.
            asked = [(name, self.arguments(name) if self.source.live else {}) for name in wave]
            for fact in self.source.collect(asked):
                self._know(fact)
                listener(Arrived(fact))

    def arguments(self, name: str) -> dict[str, Any]:
        """The arguments of the request for one fact."""
        return requests.arguments(name, self.target, self.facts, self.knowledge.tables, self.values)

    def forget(self) -> None:
        """Every observation is out of date (something was changed); only what the person gave stays."""
        self.facts = Facts(self.facts[name] for name in requests.GIVEN if name in self.facts)

    def close(self) -> None:
        """End whatever still looks at the machine."""
        self.source.close()


def _object(value: Any) -> dict[str, Any] | None:
    """The value of a fact that has to be an object; a case may hold anything."""
    return value if isinstance(value, dict) else None


def _joined(*parts: Any) -> str:
    return "\n".join(part for part in parts if part and isinstance(part, str))
