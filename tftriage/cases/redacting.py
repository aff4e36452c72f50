"""Redaction of a case with this person's own key (the rules are in ``tftriage.portable.redaction``)."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tftriage.cases.form import Case
from tftriage.fixes.journal import state_folder
from tftriage.portable.redaction import RedactionError
from tftriage.portable.redaction import redact as redact_value
from tftriage.session import Session

KEY_BYTES = 32

__all__ = ["RedactionError", "local_key", "own_names", "redact"]


def redact(case: Case, key: bytes | None = None, users: Iterable[str] = (), hosts: Iterable[str] = ()) -> Case:
    """The case without names, hosts, addresses, numbers of devices and secrets; the shape that matters stays.

    A non-ASCII name stays non-ASCII (it may be the finding): it becomes letters of the same script and number. The
    same value gives the same token under the same ``key`` (this person's own by default). ``users`` and ``hosts``
    are names that the machine itself gave. Raises ``RedactionError`` when a name would remain.
    """
    raw = redact_value(msgspec.to_builtins(case), key or local_key(), users, hosts)
    return msgspec.convert(raw, Case)


def own_names(session: Session) -> tuple[list[str], list[str]]:
    """This machine's names for its user and itself, when the session looks at it: to be taken out everywhere."""
    if not session.source.live or session.source.elsewhere:
        return [], []
    import getpass
    import socket

    users = []
    with contextlib.suppress(OSError, KeyError, ImportError):
        users.append(getpass.getuser())
    return users, [socket.gethostname()]


def local_key(folder: Path | None = None) -> bytes:
    """The key of this person's tokens, made at the first use; a new one each time where none can be kept."""
    path = (folder or state_folder()) / "redaction.key"
    with contextlib.suppress(OSError):
        key = path.read_bytes()
        if len(key) == KEY_BYTES:
            return key
    made = secrets.token_bytes(KEY_BYTES)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(made)
    return made
