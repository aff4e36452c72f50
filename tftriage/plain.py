"""Foreign text made harmless: nothing pasted or recorded may move the cursor, ring, hide or reorder text."""

from __future__ import annotations

import re

# C0 (but tab and newline), DEL, C1, and the bidirectional and invisible format characters.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# Whole terminal sequences go, so that "ESC[31mred" leaves "red", not "[31mred".
_SEQUENCE = re.compile(
    "\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[PX^_][^\x1b]*(?:\x1b\\\\)?|[ -/]*[0-~])"
)


def plain(text: str) -> str:
    """``text`` without control sequences and without characters that act instead of showing."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSAFE.sub("", _SEQUENCE.sub("", text)).encode("utf-8", "replace").decode("utf-8")


def one_line(text: str, width: int = 0) -> str:
    """``text`` on one line, cut with an ellipsis at ``width`` characters (0: no limit)."""
    line = " ".join(plain(text).split())
    return line[: width - 1] + "…" if 0 < width < len(line) else line


def escaped(document: str) -> str:
    """A JSON document in which characters that act instead of showing are written as escapes."""
    return _UNSAFE.sub(lambda match: _escape(match.group()), document)


def _escape(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
