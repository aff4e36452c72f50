"""How a text was laid out: what stands before each line, and where a line was broken. Both are undone.

Forums number lines, mails quote them, loggers, containers and clusters put a time and a name before them, fancy
tracebacks draw a box around them; consoles break them at their width. A prefix goes when it cannot be part of the
message. A break is undone where the text itself shows it; where it only may be one, the line is marked ``loose`` and
the matcher tries both readings.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

USUAL_WIDTHS = (79, 80, 100, 120, 132, 150, 160)
LOOSE = 56  # characters: a shorter line is not broken by a window
_TORN = 60  # from this length on a line that ends inside a word was broken

_NUMBERED = re.compile(r"^\s{0,6}(\d{1,5})(?:[.:|)]\s?|\s{1,4}|\t|$)")
_ARROW = re.compile(r"^(?:-{2,}>|=>|\u2192)\s*\d+\s|^\s{2,}\d{1,4}\s(?=\s|\S)")
_QUOTE = re.compile(r"^(?:>\s?(?!>>))+")
_BULLETS = frozenset("\u2022\u25e6\u25aa\u25cf\u25cb\u2023")
_BOX = re.compile(r"[\u2500-\u257f]")
_FRAME = re.compile(r"^\s*[\u2500-\u257f\s]+$")
_BOXED = re.compile(r"^\s*[\u2502\u2503\u2551\u258f]\s?(.*?)\s*[\u2502\u2503\u2551\u2595]?\s*$")
_LEVEL = r"(?:DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|TRACE|STDERR|STDOUT|stderr|stdout)"
_NAME = r"(?![\w.]*(?:Error|Exception|Warning)\b)[\w.$/-]{1,40}"
# A logger's time, level and name. TensorFlow's own "2021-01-01 10:00:00.1: W " is part of the message.
_LOGGER = re.compile(
    r"^[\[(]?(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d|\d\d:\d\d:\d\d)(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d)?[\])]?"
    r"(?![\d.,]|:? [IWEF] )"
    rf"(?:\s*[-|:,]?\s*(?:\[{_LEVEL}\s*\]|{_LEVEL}\b:?|\[{_NAME}(?::\d+)?\]|{_NAME}(?= [-|:] |: (?=[A-Z\[]))))*"
    r"\s*(?:[-|:](?=\s))?\s?"
)
_SYSLOG = re.compile(r"^[A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d \S+ [\w./-]+(?:\[\d+\])?: ")
_PROCESS = re.compile(
    r"^(?:\[\d+(?:,\d+)*\](?:<\w+>)?:|\[rank\d+\]:|\((?:[\w.]+ )?pid=\d+[^)]*\)|#\d+ \d+\.\d+|\[std(?:err|out)\]:?)\s?"
)
_COMMON = (  # these go when four of five lines have them
    re.compile(r"^\s*[\u2022\u25e6\u25aa\u25cf\u25cb\u2023\u00b7\u2219\u2013\u2014*+-]\s"),
    re.compile(r"^\s*[|\u00a6]\s?"),
    re.compile(r"^[\w.-]{2,40}\s*\|\s?"),
)
_STARTS = re.compile(
    r'^\s*(?:File "|Traceback|During handling|The above exception|>>>|\.\.\. |\d{4}-\d\d-\d\d|'
    r"[IWEF]\d{4} |[IWEF] \S+\.cc|"
    r"[\w.]*(?:Error|Exception|Warning):|-{2,}>|\(\w+\) |[A-Z]:\\.*>)|^\s{4}\S|^\s*$"
)
_HALF = re.compile(r"(?:Error|Exception|Warning):")  # of a name like FutureWarning
_OPEN_PATH = re.compile(r'^\s*File "[^"]*(?:",?(?: l?i?n?e?)?)?$')
_STATEMENT = re.compile(r"(?:from|import|return|raise|def|class|with|for|if|self|name:|pciBusID:|at)\b")


class Line(msgspec.Struct, frozen=True):
    """One clean line and the lines of the paste it came from (from 1, both included).

    ``loose``: the next line may be its rest, broken off by a window.
    """

    text: str
    start: int
    end: int
    loose: bool = False


class Piece(msgspec.Struct, frozen=True):
    """A line of the paste without its prefix; ``whole`` is its length with it, ``bare`` without."""

    text: str
    number: int
    whole: int
    bare: int


def peel(pieces: list[tuple[str, int]]) -> list[Piece]:
    """Forum line numbers, quote marks, loggers' prefixes, boxes and notebook arrows go."""
    lines = [line for line, _ in pieces]
    for _ in range(3):  # a log in a container in a mail
        before, lines = lines, _peeled(lines)
        if before == lines:
            break
    lines = [_ARROW.sub("", line, count=1) if line[:1] in " -=\u2192" else line for line in lines]
    boxed = [not raw.isascii() and _BOX.search(raw) is not None for raw, _ in pieces]
    lengths = [len(line) if box else len(raw) for line, (raw, _), box in zip(lines, pieces, boxed, strict=True)]
    return [
        Piece(line, number, whole, len(line)) for line, (_, number), whole in zip(lines, pieces, lengths, strict=True)
    ]


def _peeled(lines: list[str]) -> list[str]:
    full = [line for line in lines if line.strip()]
    if _share(full, ">") and _mostly(sum(1 for line in full if line[0] == ">" and line[:3] != ">>>"), full):
        return [_QUOTE.sub("", line) for line in lines]
    labels = [int(hit[1]) for hit in map(_NUMBERED.match, full) if hit]
    steps = sum(1 for before, after in pairwise(labels) if after - before == 1)
    if len(labels) >= 3 and _mostly(len(labels), full) and steps * 5 >= (len(labels) - 1) * 4:
        return [_NUMBERED.sub("", line, count=1) for line in lines]
    if any("\u2500" <= line.lstrip()[0] <= "\u2595" for line in full):
        lines = ["" if _FRAME.match(line) else _BOXED.sub(r"\1", line) for line in lines]
    lines = [_unlogged(line) for line in lines]
    full = [line for line in lines if line.strip()]
    for pattern in _COMMON:
        if len(full) > 1 and _mostly(sum(1 for line in full if pattern.match(line)), full):
            return [pattern.sub("", line, count=1) for line in lines]
    return lines


def _share(lines: list[str], start: str) -> bool:
    return any(line.startswith(start) for line in lines)


def _mostly(count: int, lines: list[str]) -> bool:
    return count * 5 >= len(lines) * 4


def _unlogged(line: str) -> str:
    """The line without what a logger, the system's journal or a cluster put before it, and without a bullet."""
    first = line[:1]
    if first in _BULLETS and line[1:2] == " ":
        return line[2:]
    if first in "[(#" and first:
        line = _PROCESS.sub("", line, count=1)
        first = line[:1]
    if first.isdigit() or first in ("[", "("):
        return _LOGGER.sub("", line, count=1)
    return _SYSLOG.sub("", line, count=1) if first.isupper() and line[3:4] == " " else line


def unwrap(pieces: Sequence[Piece]) -> Iterator[Line]:
    """Lines that a console broke at its width become one again."""
    texts = [piece.text for piece in pieces]
    widths = {
        "whole": _widths(texts, [piece.whole for piece in pieces]),
        "bare": _widths(texts, [piece.bare for piece in pieces]),
        "shown": _widths(texts, [len(text) + _wide(text) for text in texts]),
    }
    any_width = any(widths.values())
    text, start, end, last = "", 0, 0, Piece("", 0, 0, 0)
    for piece in pieces:
        if start:
            begins = _begins(last.text, piece.text)
            long = not begins and max(last.whole, last.bare) >= LOOSE
            gap = _joint(last, piece.text, widths) if any_width and not begins else None
            if gap is None and long and _OPEN_PATH.match(text):
                gap = ""
            if gap is not None:
                text, end, last = text + gap + piece.text, piece.number, piece
                continue
            yield _line(text, start, end, long)
        text, start, end, last = piece.text, piece.number, piece.number, piece
    if start:
        yield _line(text, start, end, False)


def _line(text: str, start: int, end: int, loose: bool) -> Line:
    # Doubled backslashes of a quoted path are made single only now, because they count for the width.
    if "\\\\" in text and not text.lstrip().startswith("\\\\"):
        text = text.replace("\\\\", "\\")
    return Line(text, start, end, loose)


def _joint(last: Piece, line: str, widths: dict[str, frozenset[int]]) -> str | None:
    """What stands between a line and the rest of it: nothing or a lost blank; ``None`` when it has no rest."""
    lengths = {"whole": last.whole, "bare": last.bare, "shown": len(last.text) + _wide(last.text)}
    exact = any(length in widths[kind] for kind, length in lengths.items())
    short = line[:1].isalnum() and any(length + 1 in widths[kind] for kind, length in lengths.items())
    return "" if exact else " " if short else None


def _widths(texts: list[str], lengths: list[int]) -> frozenset[int]:
    """Console widths at which this text seems to be broken.

    A usual one; the length that several lines share and none exceeds; or the longest, when it ends inside a word.
    """
    count = Counter(lengths)
    longest = max(count, default=0)
    if 60 <= longest <= 240 and count[longest] >= 3:
        return frozenset({longest})
    breaks = zip(lengths, pairwise(texts), strict=False)  # the last line has no break
    torn = Counter(length for length, (line, after) in breaks if length >= _TORN and _torn(line, after))
    # One line alone that ends at 79 may as well have lost its last blank: both readings are then left open.
    found = {longest} if torn[longest] > (longest == 79) and longest <= 240 else set()
    for width in USUAL_WIDTHS:
        beyond = sum(times for length, times in count.items() if length > width)
        if beyond * 4 <= len(lengths) and (torn[width] > (width == 79) or (width == 80 and count[80])):
            found.add(width)
    return frozenset(found)


def _begins(before: str, line: str) -> bool:
    """Whether a line is the beginning of something, not the rest of the one before."""
    return _STARTS.match(line) is not None and not (_HALF.match(line) and before[-1:].islower())


def _torn(line: str, after: str) -> bool:
    """Whether a line ends inside a word or a path that goes on in the next one."""
    if _begins(line, after) or _STATEMENT.match(after) or not after:
        return False
    if _OPEN_PATH.match(line):
        return True
    end, begin = line[-1:], after[0]
    if end > "\u2e7f" and begin > "\u2e7f":
        return True
    return (end.isalnum() or end in "_\\/-") and (begin.islower() or begin in "_\\/." or begin.isdigit())


def _wide(line: str) -> int:
    """Columns that a line needs beyond one for each character."""
    if line.isascii():
        return 0
    return sum(1 for char in line if char > "\u10ff" and unicodedata.east_asian_width(char) in "WF")
