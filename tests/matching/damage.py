"""What terminals, forums, notebooks and code pages do to a text. Each keeps the meaning, so a match must not change."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator


def wrapped(text: str, width: int = 80) -> str:
    """Broken by a console at its width."""
    return "\n".join(piece for line in text.split("\n") for piece in _cut(line, width))


def wrapped_wide(text: str) -> str:
    """Broken by a console of 120 columns, the default of Windows Terminal."""
    return wrapped(text, 120)


def _cut(line: str, width: int) -> Iterator[str]:
    yield line[:width]
    for at in range(width, len(line), width):
        yield line[at : at + width]


def coloured(text: str) -> str:
    """With a terminal's colours."""
    return "\n".join(f"\x1b[0;31m{line}\x1b[0m" for line in text.split("\n"))


def notebook(text: str) -> str:
    """The last line but one under a notebook's arrow, others numbered."""
    lines = text.split("\n")
    return "\n".join(f"{'----> ' if n == len(lines) - 2 else '      '}{n + 1} {line}" for n, line in enumerate(lines))


def numbered(text: str) -> str:
    """With a forum's line numbers."""
    return "\n".join(f"{n:3} {line}" for n, line in enumerate(text.split("\n"), 1))


def quoted(text: str) -> str:
    """Quoted in a reply."""
    return "\n".join(f"> {line}" for line in text.split("\n"))


def windows_lines(text: str) -> str:
    """With carriage returns."""
    return text.replace("\n", "\r\n")


def in_json(text: str) -> str:
    """As the cell of a notebook file: one line, breaks and quotes escaped."""
    return json.dumps({"output_type": "stream", "text": text})


def escaped(text: str) -> str:
    r"""Letters outside ASCII as ``\uXXXX``."""
    return "".join(char if char < "\x80" else f"\\u{ord(char):04x}" for char in text)


def in_html(text: str) -> str:
    """With a web page's entities."""
    return html.escape(text)


def utf8_as_latin(text: str) -> str:
    """UTF-8 shown as Windows-1252."""
    return "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in text.encode())


def gbk_as_latin(text: str) -> str:
    """A Chinese Windows' bytes shown as Windows-1252."""
    raw = text.encode("gbk", "replace")
    return "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in raw)


ASCII: tuple[Callable[[str], str], ...] = (
    wrapped,
    wrapped_wide,
    coloured,
    numbered,
    quoted,
    windows_lines,
    in_json,
    in_html,
)
CHINESE: tuple[Callable[[str], str], ...] = (escaped, utf8_as_latin, gbk_as_latin)
