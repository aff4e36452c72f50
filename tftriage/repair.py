"""Pasted text -> clean lines that still know which lines of the paste they came from.

What forums, terminals, notebooks and code pages do to an error message is undone by one mechanism for all
languages: control sequences and NULs go, escapes are resolved, line numbers, quote marks and notebook
arrows are peeled off, wrapped lines are joined, wrongly decoded text is decoded again. Nothing is executed
and nothing is trusted: the work is bounded by windows, whatever the size of the input.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from tftriage.layout import Line, peel, unwrap

LIMIT = 200_000  # characters that are read whole,
MOST = 4_000  # and lines
HEAD, TAIL = 40_000, 120_000  # windows into longer texts, in characters
HEAD_LINES, TAIL_LINES = 800, 2_400
KEEP = 1_200  # lines kept from between the windows
MIDDLE = 6_000_000  # characters between the windows that are searched, the last ones
LONGEST = 20_000  # characters kept of one line
GUESSES = 60  # lines for which every decoding is tried

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])")
_SGR_REST = re.compile(r"\[\d{1,3}(?:;\d{1,3})*m")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_NOT_TEXT = re.compile(r"[\x00-\x07\x0b\x0e-\x1a\x1c-\x1f\ufffd]")
_UNDEFINED = re.compile(r"[\x80-\x9f]")
_UNICODE_ESCAPES = re.compile(r"\\?\\u[0-9a-fA-F]{4}(?:\\?\\u[0-9a-fA-F]{4})*")
_ENTITY = re.compile(r"&(?:lt|gt|quot|amp|apos|nbsp|#\d{1,6}|#x[0-9a-fA-F]{1,5});")
_HEX_ESCAPES = re.compile(r"(?:\\?\\x[0-9a-fA-F]{2})+")
_JSON_LINES = re.compile(
    r'\\n\s*File \\?"|\(most recent call last\)(?::|\\?.)?\\n|\\"[^"]*\\n|\\n",|'
    r'(?:Error|Exception|runtime)\b[^\\]{0,300}\\n(?=[\s"A-Z\\]|$)'
)
_JSON_ESCAPE = re.compile(r'\\(\\|n|r|t|"|/)')
# Only literals, without regard to their first letter: that lets the search skip at the speed of memory.
_ANCHOR = re.compile(
    "rror|RROR|xception|ould not|ailed|annot|issing|ot found|nable to|gnoring|denied|Found device|Created"
)
_PUNCTUATION: dict[int, int | str] = {
    **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)},
    0x3000: " ", 0xA0: " ", 0x202F: " ", 0x2007: " ", 0x2018: "'", 0x2019: "'", 0x201A: "'", 0x201C: '"', 0x201D: '"',
    0x201E: '"', 0x2010: "-", 0x2011: "-", 0x2012: "-", 0x2212: "-", 0xB4: "'", 0x300C: "'", 0x300D: "'",
}  # fmt: skip
_DIGITS = dict.fromkeys(range(48, 58), "0")
_HIGH = re.compile(r"[^\x00-\x7f]+")
_FOREIGN = re.compile(r"[\u0250-\ufffc]")
_TELLING = re.compile(r"rror|failed|Win32|DLL")
# Written in one encoding, read as another. The first pairs are believed on their looks, all of them when a known
# phrase comes out.
_LIKELY = (("utf-8", "cp1252"), ("utf-8", "gbk"), ("gbk", "cp1252"), ("big5", "cp1252"), ("cp949", "cp1252"),
           ("cp932", "cp1252"), ("cp1251", "cp1252"), ("utf-8", "cp437"), ("utf-8", "cp850"))  # fmt: skip
_POSSIBLE = tuple(
    (written, read)
    for read in ("cp850", "cp437", "cp1252", "gbk", "cp1251", "cp866")
    for written in ("gbk", "big5", "cp932", "cp949", "cp1251", "cp1250", "cp1252", "cp1254", "cp866", "utf-8")
    if written != read
)


class Page(msgspec.Struct, frozen=True):
    """A repaired text. ``binary``: it is no text at all, and ``lines`` is empty. ``cut``: only parts were read."""

    lines: tuple[Line, ...]
    binary: bool = False
    cut: bool = False

    @property
    def text(self) -> str:
        """The clean lines, joined."""
        return "\n".join(line.text for line in self.lines)


def repair(text: str, known: Iterable[str] = ()) -> Page:
    """Clean lines of a paste. ``known``: phrases (see ``fold``) that settle which of several decodings is right.

    Lines are counted at ``\\n``. A text longer than ``LIMIT`` is read at its head and tail, and in between where
    a line looks like an error, once per kind of line.
    """
    text = text.replace("\0", "")
    if _is_binary(text):
        return Page((), binary=True)
    cut = len(text) > LIMIT or text.count("\n") > MOST
    lines = _windows(text) if cut else _one_value(_numbered(text, 1)) if "\\n" in text else _numbered(text, 1)
    pieces = [(piece, number) for number, raw in lines for piece in _clean(raw)]
    decode = _decoder(tuple(known))
    peeled = [
        piece if piece.text.isascii() else msgspec.structs.replace(piece, text=decode(piece.text))
        for piece in peel(pieces)
    ]
    return Page(tuple(unwrap(peeled)), cut=cut)


@lru_cache(maxsize=4096)
def fold(text: str) -> str:
    """The form in which literals are compared: lower case, plain punctuation, single spaces, none next to CJK."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_PUNCTUATION)).replace("\u3002", ".").replace("\ufffd", "")
        text = re.sub(r"\s*([\u3001-\u9fff\uac00-\ud7ff])\s*", r"\1", text)
    return " ".join(text.lower().split())


def _is_binary(text: str) -> bool:
    sample = text if len(text) < 80_000 else text[:40_000] + text[-40_000:]
    bad = len(_NOT_TEXT.findall(sample))
    return bad > 20 and bad * 20 > len(sample)


def _numbered(text: str, first: int) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), first):
        yield number, line if len(line) <= LONGEST else line[: LONGEST // 2] + " " + line[-LONGEST // 2 :]


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """Head, telling lines of the middle (each kind once), tail; with their true line numbers."""
    first_end, last_start = _edges(text)
    if first_end < 0 or last_start <= first_end:  # no line break to cut at: one endless line
        yield from _numbered(text[:HEAD], 1)
        yield from _numbered(text[-TAIL:], 1 + text.count("\n", 0, len(text) - TAIL))
        return
    yield from _numbered(text[:first_end], 1)
    seen: set[str] = set()
    number, counted, position = 1, 0, max(first_end + 1, last_start - MIDDLE)
    for _ in range(100_000):
        hit = _ANCHOR.search(text, position, last_start)
        if hit is None or len(seen) >= KEEP:
            break
        start = text.rfind("\n", 0, hit.start()) + 1
        position = text.find("\n", hit.end()) + 1 or len(text)
        line = text[start : min(position - 1, start + LONGEST)]
        template = line[:200].translate(_DIGITS)
        if template not in seen:
            seen.add(template)
            number, counted = number + text.count("\n", counted, start), start
            yield number, line
    yield from _numbered(text[last_start + 1 :], 2 + text.count("\n", 0, last_start))


def _one_value(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Lines with escaped breaks that a window broke are one line: a value must be whole to be read."""
    lines = [(number, line.rstrip("\r")) for number, line in lines]
    width = max(len(line) for _, line in lines)
    if width < 60 or sum(1 for _, line in lines if len(line) == width and "\\" in line) < 2:
        yield from lines
        return
    whole, start, goes_on = "", 0, False
    for number, line in lines:
        if start and not goes_on:
            yield start, whole
        whole, start = (whole + line, start) if goes_on else (line, number)
        goes_on = len(line) == width and ("\\" in line or goes_on)
    yield start, whole


def _edges(text: str) -> tuple[int, int]:
    """The line breaks at which the head ends and the tail starts; -1 or a crossing when there are none."""
    first, last = -1, len(text)
    for _ in range(HEAD_LINES):
        first = text.find("\n", first + 1)
        if first < 0 or first >= HEAD:
            break
    for _ in range(TAIL_LINES):
        last = text.rfind("\n", 0, last)
        if last < 0 or last <= len(text) - TAIL:
            break
    return first, last


def _clean(line: str) -> list[str]:
    """One raw line without control sequences and escapes: usually one line, several if breaks were escaped."""
    if "&" in line:
        line = _ENTITY.sub(lambda hit: html.unescape(hit[0]), line)
    if '"' in line[:40]:
        line = _texts_of_json(line)
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    if "\\" in line:
        line = _unescape(line)
    if "[" in line and "m" in line:
        line = _SGR_REST.sub("", line)
    if "\b" in line:
        line = _overtype(line)
    if not (line.isascii() and line.isprintable()):
        line = "\n".join(part for part in re.split(r"[\r\n]+", line) if part.strip()) if "\r" in line else line
        line = _CONTROL.sub("", line)
    return line.split("\n")


def _texts_of_json(line: str, depth: int = 0) -> str:
    """The texts inside a line that is one JSON value (a cell of a notebook file, a line of a log), else the line."""
    bare = line.strip().rstrip(",")
    if not (bare[:1] in '{["' and bare[-1:] in '}]"' and len(bare) > 2):
        return line
    try:
        found = list(_strings(json.loads(bare)))
    except (ValueError, RecursionError):
        return line
    if depth < 3:  # a log of JSON inside JSON
        found = [_texts_of_json(text, depth + 1) for text in found]
    return "\n".join(found) if found else line


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value.removesuffix("\n")
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def _overtype(line: str) -> str:
    kept: list[str] = []
    for char in line:
        if char != "\b":
            kept.append(char)
        elif kept:
            kept.pop()
    return "".join(kept)


def _unescape(line: str) -> str:
    json_like = _JSON_LINES.search(line) is not None
    if line.count("\\u") > 1 or "\\u0" in line:  # a lone one may be a folder: D:\\ubeef
        line = _UNICODE_ESCAPES.sub(_unicode_escape, line)
    if line.count("\\x") > 1:
        line = _HEX_ESCAPES.sub(_hex_escape, line)
    if json_like:
        line = _JSON_ESCAPE.sub(lambda hit: {"n": "\n", "r": "", "t": "\t"}.get(hit[1], hit[1]), line)
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    return line


def _unicode_escape(hit: re.Match[str]) -> str:
    units = re.findall(r"[0-9a-fA-F]{4}", hit[0])
    return b"".join(int(unit, 16).to_bytes(2, "little") for unit in units).decode("utf-16-le", "ignore")


def _hex_escape(hit: re.Match[str]) -> str:
    return bytes.fromhex(hit[0].replace("\\", "").replace("x", "")).decode("latin-1")


def _decoder(known: tuple[str, ...]) -> Callable[[str], str]:
    """A function that decodes wrongly decoded lines again and makes their punctuation plain."""
    memory: dict[str, str] = {}
    guesses = 0

    def decode(line: str) -> str:
        nonlocal guesses
        if line not in memory:
            right, telling = line, guesses < GUESSES and _TELLING.search(line) is not None
            high = len(line) - len(_HIGH.sub("", line))
            if high >= 2 and not (telling and any(phrase in fold(line) for phrase in known)):
                if telling:
                    guesses += 1
                    right = _known(line, known)
                right = _likely(line) if right == line else right
            memory[line] = _UNDEFINED.sub("", right.translate(_PUNCTUATION))
        return memory[line]

    return decode


def _known(line: str, known: tuple[str, ...]) -> str:
    """The decoding in which a known phrase appears, or the line itself."""
    for written, read in (*_LIKELY, *_POSSIBLE) if known else ():
        candidate = _again(line, written, read)
        if candidate is not None and candidate != line:
            key = fold(candidate)
            if any(phrase in key for phrase in known):
                return candidate
    return line


def _likely(line: str) -> str:
    for written, read in _LIKELY:
        candidate = _again(line, written, read)
        if candidate is not None and candidate != line and _plausible(line, candidate, written):
            return candidate
    return line


def _again(line: str, written: str, read: str) -> str | None:
    """The line as if it had been read in the encoding it was written in; ``None`` if that cannot be."""
    try:
        if read == "gbk":  # a lone byte 80 is shown as the euro sign, a lost one as U+FFFD
            raw = line.replace("\ufffd", "?").replace("\u20ac", "?").encode("gbk")
        else:
            raw = line.translate(_bytes_of(read)).encode("latin-1")
    except UnicodeEncodeError:
        return None
    try:
        return raw.decode(written)
    except UnicodeDecodeError:
        if written != "utf-8":
            return None
        result = raw.decode(written, "replace")
        lost = result.count("\ufffd")
        gained = len(_FOREIGN.findall(result))
        return result.replace("\ufffd", "") if gained >= 3 and lost * 2 <= gained else None


@lru_cache(maxsize=16)
def _bytes_of(read: str) -> dict[int, str]:
    """Each character of a one-byte code page as the Latin-1 character of its byte. Undefined bytes stay as they are."""
    table = {0xFFFD: "?"}
    for byte in range(0x80, 0x100):
        char = bytes([byte]).decode(read, "ignore")
        if char:
            table[ord(char)] = chr(byte)
            if ord(char) != byte and read != "cp1252":
                table.setdefault(byte, "\u0100")  # not a character of this page: encoding fails
    return table


def _plausible(before: str, after: str, written: str) -> bool:
    """Whether a decoding is no accident. UTF-8 hardly ever fits by chance; the others must yield a living script."""
    high = [char for char in after if char > "\x7f"]
    if not high or len(high) >= sum(1 for char in before if char > "\x7f"):
        return written == "cp1251" and _share(high, "\u0410", "\u044f") > 0.95 and len(high) >= 6
    if written == "utf-8":
        return all(unicodedata.category(char)[0] in "LPSZM" for char in high)
    longest = max((len(run) for run in _HIGH.findall(before)), default=0)
    if longest < 4:
        return False
    if written == "gbk":
        common = sum(
            1 for char in high if 0xB0 <= char.encode("gbk")[0] <= 0xD7 or char in "\u3002\uff0c\uff1a\uff08\uff09"
        )
        return common > 0.9 * len(high)
    ranges = {"cp949": ("\uac00", "\ud7a3"), "cp932": ("\u3040", "\u30ff"), "big5": ("\u4e00", "\u9fff")}
    return written in ranges and _share(high, *ranges[written]) > (0.4 if written == "cp932" else 0.85)


def _share(chars: list[str], low: str, top: str) -> float:
    return sum(1 for char in chars if low <= char <= top) / len(chars)
