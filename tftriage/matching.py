"""Pasted text -> ranked symptoms, each with the lines that matched; and what kind of trouble it is at all.

A pure function of the text and the knowledge base. A rule's weight says how telling it is, its place decides
between equals (the last exception of a traceback beats the warnings before it), a symptom that explains a
wrapper ranks above it, and a harmless line never ranks above a fault.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Literal

import msgspec

from tftriage.anchors import anchors
from tftriage.culprit import Culprit, culprit
from tftriage.freetext import LONGEST, search
from tftriage.repair import Line, Page, fold, repair
from tftriage.slips import meant
from tftriage.symptoms import Rule, Symptom
from tftriage.tables import LoaderError

Verdict = Literal["fault", "harmless", "not-tensorflow", "not-an-installation-fault", "unrecognised"]
Span = tuple[int, int]

MOST = 60  # occurrences of one literal that are looked at: the first and the last ones
_FINAL = 1.0  # what a hit in the last exception is worth
_LATE = 0.2  # what the last line is worth more than the first
_GUESSED = 0.3  # what a complaint in the person's own words is worth: it is below every rule
_MORE = 0.03  # what each further rule of the same symptom adds
_EXCEPTION = re.compile(
    r"^(?:E )?(?:\[\w+\] )?(?:[\w]+\.)*"
    r"([A-Z]\w*(?:Error|Exception|Interrupt|Fault|Exit)|InvalidRequirement)\b(?::|\(| \(|$)"
)
_FATAL = re.compile(
    r"(?:^|\d: |\s)F (?:\S+[/\\])?[\w./\\]+\.cc:\d+\]|^F\d{4} \d|^(?:Aborted|Segmentation fault|Fatal Python error)"
)
_NUMBER = re.compile(
    r"(?:WinError|(?:error|failed|错误|錯誤)(?: with)?(?: error)? ?(?:code|代码|代碼|號)?:?|GetLastError\(?\)?:?)"
    r" ?\(?(0x[0-9a-f]+|\d{1,5})\b",
    re.IGNORECASE,
)
_DIGITS = dict.fromkeys(range(48, 58), "0")


class Match(msgspec.Struct, frozen=True):
    """A symptom found: its score (only the order means something), its lines in the paste, what was captured.

    ``captures``: named groups of the rule; for loader errors ``code``; ``module`` and ``package`` of the failing
    import and ``python`` (the folder of the interpreter in the traceback) when the text shows them.
    """

    id: str
    score: float
    lines: tuple[Span, ...]
    captures: dict[str, str]


class MatchResult(msgspec.Struct, frozen=True):
    """Symptoms, best first; the verdict on the text as a whole; the text as it was understood."""

    matches: tuple[Match, ...]
    verdict: Verdict
    text: str


class _Hit(msgspec.Struct, frozen=True):
    first: int  # index of the clean line
    last: int
    score: float
    captures: dict[str, str]
    verdict: Verdict | None = None
    settles: bool = False


class _Book:
    """A page prepared for look-ups: per line a flat and a folded form, all folded lines in one string."""

    def __init__(self, page: Page, loader_errors: Sequence[LoaderError]) -> None:
        self.lines: tuple[Line, ...] = page.lines
        self.flat = [" ".join(line.text.split()) for line in page.lines]
        self.keys = [fold(line) if not line.isascii() else line.lower() for line in self.flat]
        self.joined = " ".join(self.keys)
        shapes = " ".join({key.translate(_DIGITS) for key in self.keys})  # lines of one shape count once
        self.triples = {shapes[at : at + 3] for at in range(len(shapes) - 2)}
        self.starts: list[int] = []
        at = 0
        for key in self.keys:
            self.starts.append(at)
            at += len(key) + 1
        self.final = next((i for i in range(len(self.flat) - 1, -1, -1) if _EXCEPTION.match(self.flat[i])), -1)
        self.codes = list(_loader_codes(self, loader_errors))
        self.blames: dict[int, Culprit] = {}

    def spans(self, literal: str) -> list[Span]:
        """Line ranges in which a folded literal stands; a break counts as a space."""
        found: list[int] = []
        at = self.joined.find(literal) if self.triples.issuperset(_probes(literal)) else -1
        while at >= 0 and len(found) < MOST // 2:
            found.append(at)
            at = self.joined.find(literal, at + 1)
        if at >= 0:
            late: list[int] = []
            at = self.joined.rfind(literal)
            while at > found[-1] and len(late) < MOST // 2:
                late.append(at)
                at = self.joined.rfind(literal, 0, at)
            found += reversed(late)
        return [(self.line_at(at), self.line_at(at + len(literal) - 1)) for at in found]

    def line_at(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def around(self, first: int, last: int, within: int) -> str:
        low, high = max(0, first - within), min(len(self.keys) - 1, last + within)
        return self.joined[self.starts[low] : self.starts[high] + len(self.keys[high])]

    def blame(self, index: int) -> Culprit:
        if index not in self.blames:
            self.blames[index] = culprit(self.flat, index)
        return self.blames[index]


def match(text: str, symptoms: Sequence[Symptom], loader_errors: Sequence[LoaderError]) -> MatchResult:
    """The symptoms that a pasted text shows, best first.

    Never fails on any input. The verdict is the best symptom's, or ``unrecognised`` when there is none, when the
    input is no text, or when only harmless lines were recognised beside an error that was not. A short text that no
    rule knows is searched as a complaint in the person's own words; what that finds is a guess, and the verdict
    stays ``unrecognised``.
    """
    page = repair(text, _phrases(loader_errors))
    book = _Book(page, loader_errors)
    hits = {symptom.id: found for symptom in symptoms if (found := _find(symptom, book))}
    if any(hit.settles for found in hits.values() for hit in found):
        hits = {s.id: hits[s.id] for s in symptoms if s.id in hits and s.verdict != "fault"}
    known = {symptom.id: symptom for symptom in symptoms if symptom.id in hits}
    scores = _settle({name: _score(found) for name, found in hits.items()}, known)
    matches = tuple(
        Match(name, round(scores[name], 4), _lines(hits[name], book), _captures(hits[name]))
        for name in sorted(scores, key=lambda name: (known[name].verdict == "harmless", -scores[name], name))
    )
    verdict: Verdict = _verdict(hits[matches[0].id], known[matches[0].id]) if matches else "unrecognised"
    if not hits:
        matches = _guessed(page.lines, book, symptoms)
    if verdict == "harmless" and _unexplained(book, hits):
        verdict = "unrecognised"
    return MatchResult(matches, verdict, page.text)


def _guessed(lines: Sequence[Line], book: _Book, symptoms: Sequence[Symptom]) -> tuple[Match, ...]:
    """The symptoms that one or two lines in plain words may mean."""
    said = " ".join(text for text in book.flat if text)
    if not said or len(said) > LONGEST or sum(map(bool, book.flat)) > 2 or book.final >= 0:
        return ()
    spans = tuple((line.start, line.end) for line, text in zip(lines, book.flat, strict=True) if text)
    return tuple(Match(name, _GUESSED, spans, {}) for name in search(said, symptoms))


def _captures(hits: list[_Hit]) -> dict[str, str]:
    """Those of the best rule, and what other rules captured on the same line."""
    best = max(hits, key=lambda hit: hit.score)
    beside = [hit for hit in hits if hit.first == best.first]
    return {name: value for hit in [*beside, best] for name, value in hit.captures.items()}


def _verdict(hits: list[_Hit], symptom: Symptom) -> Verdict:
    """That of the best rule which has one of its own, else the symptom's."""
    own = [hit for hit in hits if hit.verdict]
    return max(own, key=lambda hit: hit.score).verdict or symptom.verdict if own else symptom.verdict


def _find(symptom: Symptom, book: _Book) -> list[_Hit]:
    hits: list[_Hit] = []
    for rule in symptom.recognise:
        for first, last, captures in _candidates(rule, book):
            if (hit := _judge(rule, book, first, last, captures)) is not None:
                hits.append(hit)
    return hits


def _candidates(rule: Rule, book: _Book) -> Iterator[tuple[int, int, dict[str, str]]]:
    if rule.message:
        wanted = rule.message.removeprefix("loader-error:")
        for first, last, code in book.codes:
            if wanted in (str(code), "any"):
                yield first, last, {"code": str(code)}
    elif rule.text:
        for first, last in book.spans(fold(rule.text)):
            yield first, last, {}
    else:
        for index in sorted({first for literal in anchors(rule.regex) for first, _ in book.spans(literal)}):
            found = _compiled(rule.regex).search(book.flat[index])
            if found is not None:
                yield index, index, {name: value for name, value in found.groupdict().items() if value}


def _judge(rule: Rule, book: _Book, first: int, last: int, captures: dict[str, str]) -> _Hit | None:
    if rule.near or rule.never:
        around = book.around(first, last, rule.within)
        if rule.near and not any(fold(literal) in around for literal in rule.near):
            return None
        if any(fold(literal) in around for literal in rule.never):
            return None
    if any(fold(literal) in book.joined for literal in rule.absent):
        return None
    if rule.like:
        name = meant(captures.get("name", ""), rule.like)
        if name is None:
            return None
        captures = {**captures, "meant": name}
    blame = book.blame(last) if rule.owner or rule.message else None
    if blame is not None:
        if (rule.owner == "tensorflow" and blame.owner == "other") or (
            rule.owner == "other" and blame.owner != "other"
        ):
            return None
        captures = {**blame.captures(), **captures}
    score = rule.weight + _LATE * (last + 1) / len(book.keys)
    if book.final >= 0 and last >= book.final and first <= book.final + 8:
        score += _FINAL
    return _Hit(first, last, score, captures, rule.verdict, rule.settles)


def _score(hits: list[_Hit]) -> float:
    return max(hit.score for hit in hits) + _MORE * min(len({hit.first for hit in hits}) - 1, 5)


def _settle(scores: dict[str, float], known: dict[str, Symptom]) -> dict[str, float]:
    """A symptom rises above every wrapper it explains, and the wrapper stays below it."""
    scores = dict(scores)
    pairs = [(name, below) for name, symptom in known.items() for below in symptom.outranks if below in scores]
    for _ in range(4):  # chains are short: wrapper of a wrapper
        for name, below in pairs:
            scores[name] = max(scores[name], scores[below] + 0.01)
    return scores


def _lines(hits: list[_Hit], book: _Book) -> tuple[Span, ...]:
    spans = sorted({(book.lines[hit.first].start, book.lines[hit.last].end) for hit in hits})
    merged: list[Span] = []
    for start, end in spans:
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def _unexplained(book: _Book, hits: dict[str, list[_Hit]]) -> bool:
    covered = {index for found in hits.values() for hit in found for index in range(hit.first, hit.last + 1)}
    return any(
        index not in covered and (_EXCEPTION.match(line) or _FATAL.search(line)) for index, line in enumerate(book.flat)
    )


def _phrases(loader_errors: Sequence[LoaderError]) -> list[str]:
    return [
        key
        for error in loader_errors
        for texts in error.texts.values()
        for text in texts
        if len(key := _plain(text)) > 5
    ]


def _plain(text: str) -> str:
    return fold(text).strip(".!… ")


def _loader_codes(book: _Book, loader_errors: Sequence[LoaderError]) -> Iterator[tuple[int, int, int]]:
    """Every loader error in the text, as (first line, last line, code); a number on the line beats its words."""
    codes = {error.code for error in loader_errors}
    numbered: dict[int, int] = {}
    for index, line in enumerate(book.flat):
        key = book.keys[index]
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
        for key in {_plain(text) for texts in error.texts.values() for text in texts}:
            for first, last in book.spans(key):
                if first not in numbered and len(key) > spoken.get(first, (0, 0, 0))[0]:
                    spoken[first] = (len(key), last, error.code)
    yield from ((first, last, code) for first, (_, last, code) in spoken.items())
    untold = [index for index, key in enumerate(book.keys) if "dll load failed" in key and index not in numbered]
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
        texts = {_plain(text) for versions in error.texts.values() for text in versions}
        ratio = max((SequenceMatcher(None, words, text).ratio() for text in texts), default=0.0)
        ratios[error.code] = max(ratio, ratios.get(error.code, 0.0))
    ranked = sorted(ratios, key=lambda code: -ratios[code])
    best = ranked[0] if ranked else None
    if best is None or ratios[best] < 0.7 or (len(ranked) > 1 and ratios[best] - ratios[ranked[1]] < 0.06):
        return None
    return best


@lru_cache(maxsize=8192)
def _probes(literal: str) -> tuple[str, ...]:
    """Three triples of letters that stand in every text with the literal: cheaper to ask for than the literal."""
    plain = literal.translate(_DIGITS)
    triples = [part for at in range(len(plain) - 2) if " " not in (part := plain[at : at + 3])]
    return (triples[0], triples[len(triples) // 2], triples[-1]) if triples else ()


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
