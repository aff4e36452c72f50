"""Raw observations of one machine, as frozen values.

A *fact* is what a collector saw: it carries no judgement. ``Facts`` is an immutable mapping of them;
probes read it and nothing else, so they cannot tell a live machine from a recorded one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

Status = Literal["ok", "absent", "error", "timeout", "skipped"]


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """One observation.

    ``status`` is ``ok`` when ``value`` was observed; ``absent`` when the thing looked for is not there
    (that is an observation too); ``error``, ``timeout`` and ``skipped`` when nothing could be observed,
    and then ``note`` says why. ``seconds`` is the wall time the observation took.
    """

    name: str
    status: Status
    value: Any = None
    source: str = ""
    seconds: float = 0.0
    note: str = ""


class Facts(Mapping[str, Fact]):
    """An immutable set of facts, by name. ``with_`` returns a new set; nothing changes in place."""

    __slots__ = ("_facts",)

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._facts: dict[str, Fact] = {fact.name: fact for fact in facts}

    def __getitem__(self, name: str) -> Fact:
        return self._facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def with_(self, *facts: Fact) -> Facts:
        """A new set in which ``facts`` replace those of the same name."""
        return Facts([*self._facts.values(), *facts])

    def without(self, names: Iterable[str]) -> Facts:
        """A new set that lacks ``names``: they have to be observed again."""
        gone = set(names)
        return Facts(fact for fact in self._facts.values() if fact.name not in gone)

    def ok(self, name: str) -> bool:
        """Whether the fact was observed (status ``ok``)."""
        fact = self._facts.get(name)
        return fact is not None and fact.status == "ok"

    def value(self, name: str, default: Any = None) -> Any:
        """The observed value, or ``default`` when the fact is not ``ok``."""
        fact = self._facts.get(name)
        return fact.value if fact is not None and fact.status == "ok" else default

    def why_not(self, name: str) -> str:
        """Why a fact has no value: its status and note, or ``not-recorded``."""
        fact = self._facts.get(name)
        if fact is None:
            return "not-recorded"
        return f"{fact.status}: {fact.note}" if fact.note else fact.status
