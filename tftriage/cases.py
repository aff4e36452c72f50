"""A case: one triage as a file that replays identically anywhere.

A case from somebody else is hostile until proven: its size and depth are bounded, its text is shown as plain text,
no path in it is opened and nothing in it is run.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from tftriage import __version__
from tftriage.facts import Fact, Facts
from tftriage.knowledge import Knowledge
from tftriage.requests import Target
from tftriage.session import Session
from tftriage.sources import CaseSource

SCHEMA = 1
MAX_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 64


class CaseError(Exception):
    """The file is no case that we can open; the message says what is wrong with it."""


class PersonAnswer(msgspec.Struct, frozen=True):
    """What the person answered at a node."""

    node: str
    answer: str


class Case(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What travels. ``knowledge`` is the digest of the knowledge base that was used."""

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


def of_session(session: Session, created: str) -> Case:
    """The case of a session as it stands."""
    walk = session.walk
    return Case(
        knowledge=session.knowledge.digest,
        created=created,
        target=session.target,
        text=session.text,
        symptom=walk.symptom if walk else None,
        answers=tuple(PersonAnswer(s.node, s.answer) for s in (walk.steps if walk else ()) if s.by == "person"),
        facts=tuple(session.facts.values()),
    )


def replay(case: Case, knowledge: Knowledge) -> Session:
    """A session on the recorded facts, walked as it was walked on the machine."""
    facts = Facts(case.facts)
    session = Session(knowledge, CaseSource(facts), case.target, case.text, facts)
    if case.symptom is not None:
        session.begin(case.symptom)
        session.advance()
        for given in case.answers:
            session.answer(given.node, given.answer)
            session.advance()
    return session


def read(path: Path) -> Case:
    """A case from a file. Raises ``CaseError`` with what is wrong in words a person can act on."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise CaseError(f"{path}: {error.strerror or error}") from error
    return decode(data, str(path))


def decode(data: bytes, name: str = "case") -> Case:
    """A case from bytes, checked: size, depth, form, schema."""
    if len(data) > MAX_BYTES:
        raise CaseError(f"{name}: larger than {MAX_BYTES // 2**20} MB; this is no case")
    _check_depth(data, name)
    try:
        case = msgspec.json.decode(data, type=Case)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise CaseError(f"{name}: not a tftriage case ({error})") from error
    if case.schema > SCHEMA:
        raise CaseError(f"{name}: made by a newer tftriage (schema {case.schema}); update tftriage to open it")
    return case


def _check_depth(data: bytes, name: str) -> None:
    """Refuse deep nesting before any parser recurses into it (strings are skipped)."""
    depth = 0
    for token in re.finditer(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', data):
        first = token.group()[:1]
        depth += (first in b"[{") - (first in b"]}")
        if depth > MAX_DEPTH:
            raise CaseError(f"{name}: nested too deeply; this is no case")


def write(case: Case, path: Path) -> None:
    """Write a case whole or not at all (a full disk leaves the old file). Raises ``OSError``."""
    data = msgspec.json.format(msgspec.json.encode(case), indent=1)
    handle, partial = tempfile.mkstemp(dir=path.parent or Path(), prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(partial).replace(path)
    except OSError:
        Path(partial).unlink(missing_ok=True)
        raise


# --- redaction ---------------------------------------------------------------------------------------------

_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]+\b")
_UUID = re.compile(r"\bGPU-[0-9a-fA-F-]{36}\b")
_HOST = re.compile(r"(does not appear to be running on this host \(|hostname: |host: )([\w.-]+)")
_SECRET_NAME = re.compile(r"(?i)(token|secret|passw|api_?key|credential)")


def redact(case: Case) -> Case:
    """The case without the user's name, e-mail, host, GPU serials and secrets; the shape that matters stays.

    A non-ASCII name stays non-ASCII (it may be the finding): it becomes a token of the same script and length.
    """
    user = Facts(case.facts).value("system.user") or {}
    name = str(user.get("name") or "")
    token = _token(name)

    def clean(text: str) -> str:
        if len(name) > 1:
            text = re.sub(rf"(?i)(?<![\w]){re.escape(name)}(?![\w])", token, text)
        text = _EMAIL.sub("user@example.invalid", text)
        text = _UUID.sub("GPU-00000000-0000-0000-0000-000000000000", text)
        return _HOST.sub(r"\1host", text)

    raw = _map(msgspec.to_builtins(case), clean)
    raw["redacted"] = True
    return msgspec.convert(raw, Case)


def _token(name: str) -> str:
    if name.isascii():
        return "student"
    return "".join("名" if not ch.isascii() else "x" for ch in name)


def _map(value: Any, clean: Callable[[str], str], secret: bool = False) -> Any:
    if isinstance(value, str):
        return "[redacted]" if secret and value else clean(value)
    if isinstance(value, dict):
        return {clean(str(k)): _map(v, clean, bool(_SECRET_NAME.search(str(k)))) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map(v, clean) for v in value]
    return value
