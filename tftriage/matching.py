"""Pasted text -> ranked symptoms, each with the lines that matched; and what kind of trouble it is at all.

A pure function of the text and the knowledge base. A rule's weight says how telling it is, its place decides
between equals (the last exception of a traceback beats the warnings before it), a symptom that explains a
wrapper ranks above it, and a harmless line never ranks above a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from tftriage.anchors import anchors
from tftriage.book import EXCEPTION, Book, Span, plain
from tftriage.freetext import LONGEST, search
from tftriage.layout import Line
from tftriage.repair import fold, repair
from tftriage.slips import meant
from tftriage.symptoms import Rule, Symptom
from tftriage.tables import LoaderError

Verdict = Literal["fault", "harmless", "not-tensorflow", "not-an-installation-fault", "unrecognised"]

ALIKE = 6  # lines that differ in their digits alone and on which a pattern has failed: the others are not tried
GUESSED = 0.3  # what a guess is worth, and a complaint in the person's own words: it is below every rule
_FINAL = 1.0  # what a hit in the last exception is worth
_LATE = 0.2  # what the last line is worth more than the first

_MORE = 0.03  # what each further rule of the same symptom adds
_FATAL = re.compile(
    r"(?:^|\d: |\s)F (?:\S+[/\\])?[\w./\\]+\.cc:\d+\]|^F\d{4} \d|^(?:Aborted|Segmentation fault|Fatal Python error)"
)


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
    guess: bool = False


def match(text: str, symptoms: Sequence[Symptom], loader_errors: Sequence[LoaderError]) -> MatchResult:
    """The symptoms that a pasted text shows, best first.

    Never fails on any input. The verdict is the best symptom's, or ``unrecognised`` when there is none, when the
    input is no text, or when only harmless lines were recognised beside an error that was not. A short text that no
    rule knows is searched as a complaint in the person's own words; what that finds is a guess, and the verdict
    stays ``unrecognised``.
    """
    page = repair(text, _phrases(loader_errors))
    book = Book(page, loader_errors)
    hits = {symptom.id: found for symptom in symptoms if (found := _find(symptom, book))}
    guesses = {name for name, found in hits.items() if all(hit.guess for hit in found)}
    if any(hit.settles for found in hits.values() for hit in found):
        hits = {s.id: hits[s.id] for s in symptoms if s.id in hits and _stays(s, hits[s.id])}
    known = {symptom.id: symptom for symptom in symptoms if symptom.id in hits}
    scores = _settle({name: _score(found) for name, found in hits.items()}, known)

    def rank(name: str) -> tuple[bool, bool, float, str]:
        return name in guesses, known[name].verdict == "harmless", -scores[name], name

    matches = tuple(
        Match(name, round(scores[name], 4), _lines(hits[name], book), _captures(hits[name]))
        for name in sorted(scores, key=rank)
    )
    sure = bool(matches) and matches[0].id not in guesses
    verdict: Verdict = _verdict(hits[matches[0].id], known[matches[0].id]) if sure else "unrecognised"
    if not hits:
        matches = _guessed(page.lines, book, symptoms)
    if verdict == "harmless" and _unexplained(book, hits):
        verdict = "unrecognised"
    return MatchResult(matches, verdict, page.text)


def _stays(symptom: Symptom, found: list[_Hit]) -> bool:
    """Whether a symptom may stand beside a rule that settles that no fault is ours: it says so itself, or guesses."""
    return symptom.verdict != "fault" or any(hit.guess or hit.verdict for hit in found)


def _guessed(lines: Sequence[Line], book: Book, symptoms: Sequence[Symptom]) -> tuple[Match, ...]:
    """The symptoms that one or two lines in plain words may mean."""
    said = " ".join(text for text in book.flat if text)
    if not said or len(said) > LONGEST or sum(map(bool, book.flat)) > 2 or book.final >= 0:
        return ()
    spans = tuple((line.start, line.end) for line, text in zip(lines, book.flat, strict=True) if text)
    return tuple(Match(name, GUESSED, spans, {}) for name in search(said, symptoms))


def _captures(hits: list[_Hit]) -> dict[str, str]:
    """Those of the best rule, and what other rules captured on the same line."""
    best = max(hits, key=lambda hit: hit.score)
    beside = [hit for hit in hits if hit.first == best.first]
    return {name: value for hit in [*beside, best] for name, value in hit.captures.items()}


def _verdict(hits: list[_Hit], symptom: Symptom) -> Verdict:
    """That of the best rule which has one of its own, else the symptom's."""
    own = [hit for hit in hits if hit.verdict]
    return max(own, key=lambda hit: hit.score).verdict or symptom.verdict if own else symptom.verdict


def _find(symptom: Symptom, book: Book) -> list[_Hit]:
    hits: list[_Hit] = []
    for rule in symptom.recognise:
        for first, last, captures in _candidates(rule, book):
            if (hit := _judge(rule, book, first, last, captures)) is not None:
                hits.append(hit)
    return hits


def _candidates(rule: Rule, book: Book) -> Iterator[tuple[int, int, dict[str, str]]]:
    if rule.message:
        wanted = rule.message.removeprefix("loader-error:")
        for first, last, code in book.codes:
            if wanted in (str(code), "any"):
                yield first, last, {"code": str(code)}
    elif rule.text:
        for first, last in book.spans(fold(rule.text)) or book.cut(rule.text):
            yield first, last, {}
    else:
        search = _compiled(rule.regex).search
        missed: dict[str, int] = {}
        for index in sorted({first for literal in anchors(rule.regex) for first, _ in book.spans(literal)}):
            shape = book.shapes[index]
            if missed.get(shape, 0) >= ALIKE:
                continue
            if found := search(book.flat[index]):
                yield index, index, _named(found)
                continue
            missed[shape] = missed.get(shape, 0) + 1
            for first, last, text in book.windows(index):
                if found := search(text):
                    yield first, last, _named(found)
                    break


def _named(hit: re.Match[str]) -> dict[str, str]:
    return {name: value for name, value in hit.groupdict().items() if value}


def _judge(rule: Rule, book: Book, first: int, last: int, captures: dict[str, str]) -> _Hit | None:
    around = first - rule.within, last + rule.within
    if (rule.near and not book.has(rule.near, *around)) or (rule.never and book.has(rule.never, *around)):
        return None
    if rule.absent and book.has(rule.absent):
        return None
    if rule.pause and book.pause(first) < rule.pause:
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
    if rule.guess:
        return _Hit(first, last, GUESSED, captures, guess=True)
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
    pairs = [(name, below) for name, below in pairs if scores[name] > GUESSED]
    for _ in range(4):  # chains are short: wrapper of a wrapper
        for name, below in pairs:
            scores[name] = max(scores[name], scores[below] + 0.01)
    return scores


def _lines(hits: list[_Hit], book: Book) -> tuple[Span, ...]:
    spans = sorted({(book.lines[hit.first].start, book.lines[hit.last].end) for hit in hits})
    merged: list[Span] = []
    for start, end in spans:
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def _unexplained(book: Book, hits: dict[str, list[_Hit]]) -> bool:
    covered = {index for found in hits.values() for hit in found for index in range(hit.first, hit.last + 1)}
    return any(
        index not in covered and (EXCEPTION.match(line) or _FATAL.search(line)) for index, line in enumerate(book.flat)
    )


def _phrases(loader_errors: Sequence[LoaderError]) -> list[str]:
    return [
        key
        for error in loader_errors
        for texts in error.texts.values()
        for text in texts
        if len(key := plain(text)) > 5
    ]


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
