"""A repaired text prepared for look-ups: where a literal stands, which loader errors are in it, whose a fault is."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import accumulate, pairwise

from tftriage.culprit import Culprit, culprit
from tftriage.layout import Line
from tftriage.repair import Page, fold
from tftriage.tables import LoaderError

Span = tuple[int, int]

MOST = 60  # occurrences of one literal that are looked at: the first and the last ones
_SAID = 20  # characters: shorter wordings of a loader error are not looked for across a break
_CUT = 20  # characters: what must be left of a literal that the edge of a text cut off
_EDGE = 160  # characters at either end of a text where such a rest is looked for
_BROKEN = 6  # characters: shorter literals are not either ("tf", "not")
EXCEPTION = re.compile(
    r"^(?:E )?(?:\[\w+\] )?(?:[\w]+\.)*"
    r"([A-Z]\w*(?:Error|Exception|Interrupt|Fault|Exit)|InvalidRequirement)\b(?::|\(| \(|$)"
)
_NUMBER = re.compile(
    r"(?:WinError|(?:error|failed|错误|錯誤)(?: with)?(?: error)? ?(?:code|代码|代碼|號)?:?|GetLastError\(?\)?:?)"
    r" ?\(?(0x[0-9a-f]+|\d{1,5})\b",
    re.IGNORECASE,
)
_TIME = re.compile(r"[IWEF]\d{4} 00:00:(\d{9,11}\.\d+)|\d{4}-\d\d-\d\d (\d\d):(\d\d):(\d\d\.\d+)")
_DIGITS = dict.fromkeys(range(48, 58), "0")


class Book:
    """A page prepared for look-ups: per line a flat and a folded form, all folded lines in one string.

    The string has no blanks and no breaks, so that a literal is found wherever a window broke it.
    """

    def __init__(self, page: Page, loader_errors: Sequence[LoaderError]) -> None:
        self.lines: tuple[Line, ...] = page.lines
        self.flat = [" ".join(line.text.split()) for line in page.lines]
        self.keys = [fold(line) if not line.isascii() else line.lower() for line in self.flat]
        self.tight = [key.replace(" ", "") for key in self.keys]
        self.joined, self.spaced = "".join(self.tight), " ".join(self.keys)
        self.shapes = [key[:160].translate(_DIGITS) for key in self.keys]
        self.head, self.tail = self.joined[:_EDGE], self.joined[-_EDGE:]
        self.starts = [0, *accumulate(map(len, self.tight))][:-1]
        # Lines of one shape count once, each with the beginning of what follows it.
        shapes = " ".join({(one + two[:2]).translate(_DIGITS) for one, two in pairwise([*self.tight, ""])})
        self.triples = {shapes[at : at + 3] for at in range(len(shapes) - 2)}
        self.final = next((i for i in range(len(self.flat) - 1, -1, -1) if EXCEPTION.match(self.flat[i])), -1)
        self.codes = list(_loader_codes(self, loader_errors))
        self.blames: dict[int, Culprit] = {}

    def spans(self, literal: str) -> list[Span]:
        """Line ranges in which a folded literal stands. Blanks count, but where a window may have broken a line."""
        tight, probes = _form(literal)
        found: list[int] = []
        at = self.joined.find(tight) if self.triples.issuperset(probes) else -1
        while at >= 0 and len(found) < MOST // 2:
            found.append(at)
            at = self.joined.find(tight, at + 1)
        if at >= 0:
            late: list[int] = []
            at = self.joined.rfind(tight)
            while at > found[-1] and len(late) < MOST // 2:
                late.append(at)
                at = self.joined.rfind(tight, 0, at)
            found += reversed(late)
        spans = [(self.line_at(at), self.line_at(at + len(tight) - 1)) for at in found]
        if not found or tight is literal:
            return spans
        return [(first, last) for first, last in spans if first < last or self.holds(first, literal)]

    def cut(self, literal: str) -> list[Span]:
        """The edge of the text that cut a literal off: most of it stands there, and enough to know it."""
        tight = _form(literal)[0]
        least = max(_CUT, len(tight) * 3 // 5)
        if len(tight) > least:
            last = len(self.keys) - 1
            if tight[:least] in self.tail and any(
                self.tail.endswith(tight[:n]) for n in range(len(tight) - 1, least - 1, -1)
            ):
                return [(self.line_at(len(self.joined) - least), last)]
            if tight[-least:] in self.head and any(
                self.head.startswith(tight[-n:]) for n in range(len(tight) - 1, least - 1, -1)
            ):
                return [(0, self.line_at(least - 1))]
        return []

    def holds(self, index: int, literal: str) -> bool:
        """Whether a line has the literal with its blanks; in one that was joined they may be lost."""
        line = self.lines[index]
        return literal in self.keys[index] or line.start < line.end

    def line_at(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def has(self, literals: Iterable[str], first: int = 0, last: int = 1 << 60) -> bool:
        """Whether one of the literals stands in these lines. Only longer ones are found across a break."""
        low, high = max(0, first), min(len(self.keys) - 1, last)
        plain, tight = self.spaced, self.joined
        if (low, high) != (0, len(self.keys) - 1):
            plain = " ".join(self.keys[low : high + 1])
            tight = self.joined[self.starts[low] : self.starts[high] + len(self.tight[high])]
        return any(_form(one)[0] in tight if len(one) >= _BROKEN else fold(one) in plain for one in literals)

    def blame(self, index: int) -> Culprit:
        if index not in self.blames:
            torn = index > 0 and self.lines[index - 1].loose
            self.blames[index] = culprit(self.flat, index, self.flat[index - 1] if torn else "")
        return self.blames[index]

    def pause(self, index: int) -> float:
        """Seconds between the time on a line and the one before it; 0 when either has none."""
        now = _time(self.flat[index])
        if now is None and index > 0 and self.lines[index - 1].loose:
            index -= 1
            now = _time(self.flat[index])
        earlier = (_time(self.flat[at]) for at in range(index - 1, max(-1, index - 12), -1))
        before = next((time for time in earlier if time and now and time[0] == now[0]), None)
        return now[1] - before[1] if now and before else 0

    def windows(self, index: int) -> Iterator[tuple[int, int, str]]:
        """A line with its neighbours, where a window may have broken it: joined without and with a blank."""
        first = index - (index > 0 and self.lines[index - 1].loose)
        last = index + (index + 1 < len(self.flat) and self.lines[index].loose)
        last += last + 1 < len(self.flat) and last > first and self.lines[last].loose
        if last > first:
            for gap in ("", " "):
                yield first, last, gap.join(self.flat[first : last + 1])


def plain(text: str) -> str:
    return fold(text).strip(".!… ")


def _loader_codes(book: Book, loader_errors: Sequence[LoaderError]) -> Iterator[tuple[int, int, int]]:
    """Every loader error in the text, as (first line, last line, code); a number on the line beats its words."""
    codes = {error.code for error in loader_errors}
    numbered: dict[int, int] = {}
    for index, line in enumerate(book.flat):
        key = book.tight[index]
        if "err" in key or "错误" in key or "錯誤" in key or "load" in key:
            for hit in _NUMBER.finditer(line):
                number = int(hit[1], 0)
                number = number & 0xFFFF if number >> 16 == 0x8007 else number
                if number in codes or "winerror" in hit[0].lower():
                    numbered[index] = number
                    break
    yield from ((index, index, code) for index, code in numbered.items() if code in codes)
    spoken: dict[int, tuple[int, int, int]] = {}  # per first line the longest text wins
    for error in loader_errors:
        for key in {plain(text) for texts in error.texts.values() for text in texts}:
            for first, last in book.spans(key):
                if key not in book.keys[first] and key.isascii() and len(key) < _SAID:
                    continue
                if first not in numbered and len(key) > spoken.get(first, (0, 0, 0))[0]:
                    spoken[first] = (len(key), last, error.code)
    yield from ((first, last, code) for first, (_, last, code) in spoken.items())
    untold = [index for index, key in enumerate(book.tight) if "dllloadfailed" in key and index not in numbered]
    for index in untold[-3:] if not spoken else ():
        code = _closest(book.keys[index], loader_errors)
        if code is not None:
            yield index, index, code


def _closest(key: str, loader_errors: Sequence[LoaderError]) -> int | None:
    """The code whose text is nearly the words after the last colon: accents lost, a character dropped."""
    words = key.rpartition("failed")[2].partition(":")[2].strip(".! ")
    if len(words) < 8:
        return None
    ratios: dict[int, float] = {}
    for error in loader_errors:
        texts = {plain(text) for versions in error.texts.values() for text in versions}
        ratio = max((SequenceMatcher(None, words, text).ratio() for text in texts), default=0.0)
        ratios[error.code] = max(ratio, ratios.get(error.code, 0.0))
    ranked = sorted(ratios, key=lambda code: -ratios[code])
    best = ranked[0] if ranked else None
    if best is None or ratios[best] < 0.7 or (len(ranked) > 1 and ratios[best] - ratios[ranked[1]] < 0.06):
        return None
    return best


def _time(line: str) -> tuple[bool, float] | None:
    """The time in seconds that TensorFlow wrote on a line, and on which clock; only differences mean something."""
    hit = _TIME.match(line)
    if hit is None:
        return None
    return bool(hit[1]), float(hit[1]) if hit[1] else (int(hit[2]) * 60 + int(hit[3])) * 60 + float(hit[4])


@lru_cache(maxsize=8192)
def _form(literal: str) -> tuple[str, frozenset[str]]:
    """A literal as the joined string has it, folded and without blanks; and triples of letters that stand in every
    text with it: cheaper to ask for than the literal.
    """
    tight = fold(literal).replace(" ", "")
    shape = tight.translate(_DIGITS)
    triples = [shape[at : at + 3] for at in range(len(shape) - 2)]
    return tight, frozenset((triples[0], triples[len(triples) // 2], triples[-1]) if triples else ())
