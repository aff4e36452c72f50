"""Two cases side by side: where the tree would answer differently, ranked by what it cares about; the rest is noise.

A machine that works and one that does not differ in thousands of values. What counts is what a probe makes of them.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import msgspec

from tftriage import cases, show
from tftriage.casework import read_case
from tftriage.facts import Facts
from tftriage.headless import FAULT, OK, out, out_json
from tftriage.knowledge import Knowledge, load
from tftriage.plain import one_line
from tftriage.probes import PROBES
from tftriage.probes.base import UNKNOWN, Finding
from tftriage.session import Session

# Values that differ between two looks at the same machine.
_MOMENT = re.compile(
    r"(^|[./])(seconds|pid|t|log|memory_(used|free)|available|commit_available|utilization|memory_utilization|power|"
    r"temperature|clock_\w+|pstate|throttle|processes|running|size|created|uuid|serial|display_name)($|[./\[])"
)
_GIVEN = ("paste.text", "paste.symptom", "case.recorded", "system.user", "system.memory")
SHOWN = 6  # changed values shown for one probe


class Change(msgspec.Struct, frozen=True):
    """One value that differs; ``None``: not there."""

    fact: str
    path: str
    good: Any
    bad: Any


class Row(msgspec.Struct, frozen=True):
    """A question that the two machines answer differently. ``on_path``: the walk of the bad one came by it."""

    probe: str
    good: str
    bad: str
    on_path: bool
    evidence: tuple[str, ...]
    changes: tuple[Change, ...]


class Comparison(msgspec.Struct, frozen=True):
    """What differs and matters, best first; ``noise`` counts by fact the differing values that no answer hangs on."""

    rows: tuple[Row, ...]
    noise: dict[str, int]
    good: str | None
    bad: str | None


def compare(good: cases.Case, bad: cases.Case, kb: Knowledge, lang: str = "en") -> Comparison:
    """Where ``bad`` differs from ``good``. Raises ``CaseError`` when one of them cannot be walked."""
    ours, theirs = cases.replay(good, kb), cases.replay(bad, kb)
    changed = list(changes(good, bad))
    order = [kb.nodes[step.node].probe for step in reversed(theirs.walk.steps)] if theirs.walk else []
    rows = []
    for probe in PROBES.values():
        one, other = probe(ours.facts, kb.tables), probe(theirs.facts, kb.tables)
        if not _matters(one, other):
            continue
        below = sorted((c for c in changed if c.fact in probe.needs), key=lambda c: _weight(c, one, other))
        lines = tuple(show.sentence(kb, e, lang) for e in other.evidence if e.level != "info")
        rows.append(Row(probe.name, one.answer, other.answer, probe.name in order, lines, tuple(below[:SHOWN])))
    rows.sort(key=lambda row: (order.index(row.probe) if row.on_path else len(order), row.bad == UNKNOWN))
    mattering = {change.fact for row in rows for change in row.changes}
    noise: dict[str, int] = {}
    for change in changed:
        if change.fact not in mattering:
            noise[change.fact] = noise.get(change.fact, 0) + 1
    return Comparison(tuple(rows), noise, _end(ours), _end(theirs))


def _weight(change: Change, good: Finding, bad: Finding) -> int:
    """0 for a value that a finding names, 1 for another: what the evidence speaks of comes first."""
    named = {text for finding in (good, bad) for e in finding.evidence for text in e.params.values() if len(text) > 1}
    values = [str(value) for value in (change.good, change.bad) if value not in (None, "", [])]
    return 0 if any(value in text or text in value for value in values for text in named) else 1


def _end(session: Session) -> str | None:
    return session.diagnosis.id if session.diagnosis else None


def _matters(good: Finding, bad: Finding) -> bool:
    """Another answer that is no mere lack of a look: a fault on one side, or two different things that were seen."""
    if good.answer == bad.answer or bad.answer == UNKNOWN:
        return False
    return good.answer != UNKNOWN or any(e.level == "bad" for e in bad.evidence)


def changes(good: cases.Case, bad: cases.Case) -> Iterator[Change]:
    """Every value that differs, but those of the moment; homes and prefixes are taken for the same."""
    ours, theirs = _flat(good), _flat(bad)
    for key in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(key), theirs.get(key)
        if one != other:
            yield Change(key[0], key[1], one, other)


def _flat(case: cases.Case) -> dict[tuple[str, str], Any]:
    facts = Facts(case.facts)
    found: dict[tuple[str, str], Any] = {}
    places = _places(facts)

    def spell(text: str) -> str:
        for place, name in places:
            text = re.sub(re.escape(place), name, text, flags=re.I)
        return text

    def down(fact: str, path: str, value: Any) -> None:
        if _MOMENT.search(path):
            return
        if isinstance(value, dict):
            for key, item in value.items():
                down(fact, f"{path}/{spell(str(key))}", item)
        elif isinstance(value, (list, tuple)) and any(isinstance(item, (dict, list, tuple)) for item in value):
            for number, item in enumerate(value):
                down(fact, f"{path}[{number}]", item)
        else:
            found[fact, path] = spell(value) if isinstance(value, str) else value

    for name, fact in facts.items():
        if name not in _GIVEN:
            down(name, "/status", fact.status)
            down(name, "", fact.value)
    return found


def _places(facts: Facts) -> list[tuple[str, str]]:
    """Folders whose name is another on every machine, longest first."""
    user, target = facts.value("system.user"), facts.value("target.interpreter")
    found = []
    for value, key, name in ((target, "prefix", "<prefix>"), (user, "temp", "<temp>"), (user, "home", "~")):
        place = value.get(key) if isinstance(value, dict) else None
        if isinstance(place, str) and len(place) > 3:
            found.append((place, name))
    return sorted(found, key=lambda pair: -len(pair[0]))


def diff(options: Namespace) -> int:
    """``tftriage diff GOOD BAD``: 0 when nothing that matters differs, else 1."""
    kb, lang = load(), options.lang
    try:
        found = compare(read_case(options.good), read_case(options.bad), kb, lang)
    except cases.CaseError as error:
        from tftriage.headless import USAGE, Stop

        raise Stop(USAGE, one_line(str(error))) from error
    if options.json:
        out_json(found)
        return FAULT if found.rows else OK
    for row in found.rows:
        out(f"{'x' if row.on_path else '-'} {row.probe:<20} {row.good} | {row.bad}")
        for line in row.evidence:
            out(f"     {one_line(line, 110)}")
        for change in row.changes:
            out(f"       {change.fact}{change.path}: {_value(change.good)} | {_value(change.bad)}")
    if not found.rows:
        out(kb.say("diff.nothing", lang))
    if found.noise:
        listed = ", ".join(f"{fact} {count}" for fact, count in sorted(found.noise.items()))
        out(one_line(kb.say("diff.noise", lang, facts=listed)))
    return FAULT if found.rows else OK


def _value(value: Any) -> str:
    return "-" if value is None else one_line(value if isinstance(value, str) else repr(value), 60)
