"""Case files: read with suspicion, written whole or not at all."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import msgspec

from tftriage.cases.form import SCHEMA, Case, CaseError
from tftriage.portable import whole

MAX_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 64
MAX_NODES = 400_000  # the largest real case has 9,000
MAX_STRING = 8 * 1024 * 1024  # bytes of one string; a collector keeps 512 K characters of a log
MAX_NUMBER = 40  # digits: beyond that a number is an attack on whoever converts it
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.S)
_LONG_NUMBER = re.compile(rb"[-+.\deE]{%d,}" % (MAX_NUMBER + 1))
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def read(path: Path) -> Case:
    """A case from a file. Raises ``CaseError`` with what is wrong in words a person can act on."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CaseError(f"{path}: no file")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise CaseError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    return decode(data, str(path))


def decode(data: bytes, name: str = "case") -> Case:
    """A case from bytes, checked: size, depth, number of values, form, schema; no member is given twice."""
    if len(data) > MAX_BYTES:
        raise CaseError(f"{name}: larger than {MAX_BYTES // 2**20} MB; this is no case")
    if not data.lstrip()[:1] == b"{":
        raise CaseError(f"{name}: not a tftriage case (no JSON object; a packed file has to be unpacked first)")
    _check_bounds(data, name)
    try:
        case = msgspec.json.decode(data, type=Case)
        json.loads(data, object_pairs_hook=_once)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CaseError(f"{name}: not a tftriage case ({error})") from error
    if not (case.facts or case.text) and b'"tftriage-case"' not in data:
        raise CaseError(f"{name}: not a tftriage case (it neither says so nor holds a fact)")
    if case.schema > SCHEMA:
        raise CaseError(f"{name}: made by a newer tftriage (schema {case.schema}); update tftriage to open it")
    names = [fact.name for fact in case.facts]
    if len(set(names)) != len(names):
        raise CaseError(f"{name}: not a tftriage case (a fact is there twice)")
    return case


def _check_bounds(data: bytes, name: str) -> None:
    """Refuse what would cost too much before any parser builds it: deep nesting, many values, huge strings."""
    if len(data) > MAX_STRING and any(one.end() - one.start() > MAX_STRING for one in _STRING.finditer(data)):
        raise CaseError(f"{name}: a text in it is larger than {MAX_STRING // 2**20} MB; this is no case")
    structure = _STRING.sub(b"", data)
    if sum(map(structure.count, (b",", b"[", b"{"))) > MAX_NODES:
        raise CaseError(f"{name}: too many values; this is no case")
    if _LONG_NUMBER.search(structure):
        raise CaseError(f"{name}: a number in it has too many digits; this is no case")
    depth = 0
    for bracket in structure.translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            raise CaseError(f"{name}: nested too deeply; this is no case")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose members have different names: two readers must not see two different cases."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a member is there twice")
    return made


def write(case: Case, path: Path) -> None:
    """Write a case whole or not at all. Raises ``OSError``."""
    stated = {"format": case.format, "schema": case.schema, "tool": case.tool}  # a default is stated, too
    data = msgspec.json.format(msgspec.json.encode({**stated, **msgspec.to_builtins(case)}), indent=1)
    whole.write(data, str(path))
