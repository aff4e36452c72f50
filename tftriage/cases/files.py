"""Case files: read with suspicion, written whole or not at all."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import msgspec

from tftriage.cases.form import SCHEMA, Case, CaseError

MAX_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 64


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
