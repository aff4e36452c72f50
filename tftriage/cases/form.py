"""The form of a case file: versioned JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from tftriage import __version__
from tftriage.facts import Fact
from tftriage.requests import Target

SCHEMA = 1
PUBLISHED = Path(__file__).parent / "case.schema.json"


class CaseError(Exception):
    """The file is no case that we can open; the message says what is wrong with it."""


class PersonAnswer(msgspec.Struct, frozen=True):
    """What the person answered at a node."""

    node: str
    answer: str


class Case(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What travels.

    ``knowledge`` is the digest of the knowledge base that was used; ``tokens`` are the stand-ins that redaction wrote,
    so that a second redaction leaves them as they are.
    """

    format: Literal["tftriage-case"] = "tftriage-case"
    schema: int = SCHEMA
    tool: str = __version__
    knowledge: str = ""
    created: str = ""
    title: dict[str, str] = {}
    redacted: bool = False
    target: Target = Target()
    text: str = ""
    symptom: str | None = None
    answers: tuple[PersonAnswer, ...] = ()
    facts: tuple[Fact, ...] = ()
    tokens: tuple[str, ...] = ()


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a case, for other programs; it is published beside this module (``PUBLISHED``).

    Members that it does not name are allowed: a later version may add some without a new number.
    """
    made = msgspec.json.schema(Case)
    title = {"title": "tftriage case", "$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**title, **made}


if __name__ == "__main__":
    PUBLISHED.write_bytes(msgspec.json.format(msgspec.json.encode(json_schema()), indent=1) + b"\n")
