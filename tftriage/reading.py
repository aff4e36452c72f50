"""Text and files that people hand us: any encoding, any size, perhaps not text at all."""

from __future__ import annotations

import sys
from pathlib import Path

MAX_TEXT = 200 * 1024 * 1024  # a training log of days; beyond that the head and the tail are read
HEAD, TAIL = 4 * 1024 * 1024, 16 * 1024 * 1024


class Unreadable(Exception):
    """The input cannot be used; the message says why and what to do."""


def read_input(name: str) -> str:
    """The text of a file, or of standard input for ``-``. Raises ``Unreadable``."""
    try:
        data = sys.stdin.buffer.read(MAX_TEXT) if name == "-" else _bounded(Path(name))
    except OSError as error:
        raise Unreadable(f"{name}: {error.strerror or error}") from error
    return decode(data)


def _bounded(path: Path) -> bytes:
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(0)
        if size <= MAX_TEXT:
            return stream.read()
        head = stream.read(HEAD)
        stream.seek(-TAIL, 2)
        return head + b"\n" + stream.read()


def decode(data: bytes) -> str:
    """Bytes as text: by byte-order mark, as UTF-8, as GBK (a Chinese console's file), else byte by byte."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if data[1:200:2].count(0) > 60:  # UTF-16 without a mark, as PowerShell's ">" wrote it
        return data.decode("utf-16-le", "replace")
    for encoding in ("utf-8", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")
