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


def wrapped_79(text: str) -> str:
    """Broken by a console that keeps its last column free."""
    return wrapped(text, 79)


def wrapped_100(text: str) -> str:
    """Broken by a window that somebody made wider."""
    return wrapped(text, 100)


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


def _marked(text: str, mark: str) -> str:
    return "\n".join(f"{mark}{line}" for line in text.split("\n"))


def bulleted(text: str) -> str:
    """Each line an item of a list."""
    return _marked(text, "\u2022 ")


def starred(text: str) -> str:
    """Each line an item of a Markdown list."""
    return _marked(text, "* ")


def piped(text: str) -> str:
    """Behind the bar of a tool that shows another one's output."""
    return _marked(text, "  | ")


def mailed(text: str) -> str:
    """Quoted twice in a mail."""
    return _marked(text, "> > ")


def compose(text: str) -> str:
    """Behind the name of a container."""
    return _marked(text, "trainer_1  | ")


def timestamped(text: str) -> str:
    """As a build server or a cluster keeps its logs: a time before each line, a little later each."""
    lines = text.split("\n")
    return "\n".join(f"2024-05-01T10:11:{12 + n // 10:02}.{n % 10}456789Z {line}" for n, line in enumerate(lines))


def journalled(text: str) -> str:
    """As systemd keeps it."""
    return _marked(text, "May 01 10:11:12 lab-7 python3[2211]: ")


def log_prefixed(text: str) -> str:
    """Through a program's own logging."""
    lines = text.split("\n")
    return "\n".join(f"2024-05-01 10:11:12,{345 + n} - train - ERROR - {line}" for n, line in enumerate(lines))


def ranked(text: str) -> str:
    """As mpirun marks the output of its processes."""
    return _marked(text, "[1,0]<stderr>:")


def boxed(text: str) -> str:
    """In a frame, as a fancy traceback has it."""
    lines = [line for whole in text.split("\n") for line in _cut(whole, 76)]
    return "\n".join(["\u256d" + "\u2500" * 78 + "\u256e", *(f"\u2502 {line:76} \u2502" for line in lines),
                      "\u2570" + "\u2500" * 78 + "\u256f"])  # fmt: skip


def interleaved(text: str) -> str:
    """Between the lines of another process."""
    note = "I0000 00:00:1720000000.{:06} 4242 worker.cc:77] worker 1: step {} done"
    return "\n".join(f"{line}\n{note.format(n, n)}" for n, line in enumerate(text.split("\n")))


def json_doubled(text: str) -> str:
    """As a string inside a string: quotes, breaks and backslashes escaped twice."""
    return json.dumps(json.dumps({"evalue": text}))


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
