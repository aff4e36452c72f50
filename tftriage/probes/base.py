"""What a probe is: a pure function from facts (and tables) to a finding.

A probe declares the answers it can give, the facts it needs and the placeholders its values fill, so that
the knowledge base can be checked against it without running it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from tftriage.facts import Facts
from tftriage.tables import Tables

Level = Literal["ok", "bad", "info"]
UNKNOWN = "unknown"


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of what was seen. The words stand in ``knowledge/evidence.yaml`` under ``key``."""

    key: str
    params: dict[str, str] = {}
    level: Level = "info"


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A probe's answer with its evidence; ``values`` fill placeholders of nodes and diagnoses.

    The answer ``unknown`` carries the ``reason``: which fact is missing and why. Missing input is never "no".
    """

    answer: str
    evidence: tuple[Evidence, ...] = ()
    values: dict[str, str] = {}
    reason: str = ""


Function = Callable[[Facts, Tables], Finding]


class Probe(msgspec.Struct, frozen=True):
    """A registered probe. ``answers`` always holds ``unknown``."""

    name: str
    function: Function
    answers: tuple[str, ...]
    needs: tuple[str, ...]
    fills: tuple[str, ...]

    def __call__(self, facts: Facts, tables: Tables) -> Finding:
        """Run the probe. An answer that was not declared is a defect of the probe: ``ValueError``.

        A recorded case may hold anything under a fact's name: there, a fact of another form is unknown, no error.
        """
        try:
            finding = self.function(facts, tables)
        except Exception as error:
            if not facts.ok("case.recorded"):
                raise
            reason = f"the case holds a fact of another form ({type(error).__name__})"
            shown = Evidence("fact.missing", {"fact": ", ".join(self.needs), "reason": reason})
            return Finding(UNKNOWN, (shown,), {}, reason)
        if finding.answer not in self.answers:
            raise ValueError(f"probe {self.name} gave the undeclared answer {finding.answer!r}")
        return finding


PROBES: dict[str, Probe] = {}


def probe(
    name: str, *, answers: tuple[str, ...], needs: tuple[str, ...], fills: tuple[str, ...] = ()
) -> Callable[[Function], Function]:
    """Register a probe under ``name``. ``unknown`` is added to the answers."""

    def register(function: Function) -> Function:
        if name in PROBES:
            raise ValueError(f"two probes are called {name}")
        PROBES[name] = Probe(name, function, (*answers, UNKNOWN), needs, fills)
        return function

    return register


def unknown(facts: Facts, *names: str, **values: str) -> Finding:
    """The finding ``unknown`` with the reason why the first missing fact of ``names`` has no value."""
    missing = next((name for name in names if not facts.ok(name)), names[0] if names else "")
    return Finding(
        UNKNOWN,
        (Evidence("fact.missing", {"fact": missing, "reason": facts.why_not(missing)}),),
        values,
        f"{missing}: {facts.why_not(missing)}",
    )
