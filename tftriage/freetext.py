"""A complaint in a person's own words -> the symptoms it may mean: "显卡不动", "notebook can't find tf".

Every title, summary and synonym of a symptom is a phrase. English words are compared by stem and, when they are long
enough, by likeness (typing errors); Chinese by pairs of characters, since nothing separates its words. A symptom is as
close as its closest phrase: how much of the query the phrase explains, and, less, how much of the phrase was said.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from math import log

from tftriage.symptoms import Symptom

LONGEST = 80  # characters: what is longer is no complaint but an output
ENOUGH = 0.60  # of 1.0: below it the query speaks of something else
_BEHIND = 0.8  # of the best score: what is further behind is not shown
_MOST = 4
_ALIKE = 0.8  # two words are one with a slip: "tensorfow", "jupiter"
_NOT_WORDS = re.compile(r"[\\/:=<>|{}\[\]()\"`$#*@;]|\w\.\w{2,}\b|^\s*at ")  # paths, codes, prompts, tables
_RUNS = re.compile(r"[a-z0-9_.+]*[a-z0-9_]|[\u3400-\u9fff]+")
_NOT = re.compile(r"\b(?:can ?not|can'?t|(?:do|does|did|is|are|was|wo|would|could|has|have)(?:n'?t| not)|without)\b")
# Said in many ways, one thing; and words that say nothing.
_SAME = {
    "tf": "tensorflow",
    "no": "not",
    "never": "not",
    "nothing": "not",
    "notebook": "jupyter",
    "nvidia": "gpu",
    "dying": "di",
}
_SAME_PHRASES = (
    ("graphics card", "gpu"),
    ("video card", "gpu"),
    ("显卡", " gpu "),
    ("顯卡", " gpu "),
    ("独显", " gpu "),
)
_EMPTY = re.compile(
    "a|an|the|is|are|was|be|been|it|its|this|that|my|our|your|i|we|you|me|in|on|at|of|to|for|from|by|with|as|and|or|but|"
    "so|very|just|when|while|during|why|how|what|do|does|did|has|have|had|will|would|can|could|get|got|s|t|m"
)
_FILLER = re.compile(r"为什么|怎么办?|请问|求助|会不会|非常|一下|[的了吗呢啊吧呀么太很我]|(?<=没)有")


def search(query: str, symptoms: Sequence[Symptom], lang: str | None = None) -> tuple[str, ...]:
    """The ids of the symptoms that a complaint may mean, best first; empty when none is near.

    ``lang`` searches only that language's phrases; ``None`` all. Whatever looks like output (a path, a code, a
    table) or is longer than ``LONGEST`` finds nothing: recognising output is the matcher's work.
    """
    if len(query.strip()) > LONGEST or _NOT_WORDS.search(query):
        return ()
    wanted = words(query)
    if not wanted:
        return ()
    phrases = {symptom.id: [found for text in _texts(symptom, lang) if (found := words(text))] for symptom in symptoms}
    spread = Counter(word for found in phrases.values() for word in {w for phrase in found for w in phrase})
    weights = {word: log(1 + len(phrases) / count) for word, count in spread.items()}
    likes = {word: {other: like for other in spread if (like := _like(word, other))} for word in wanted}
    scores = {
        name: max((_closeness(likes, one, weights) for one in found), default=0.0) for name, found in phrases.items()
    }
    rank = {s.id: (not s.complaint, s.order) for s in symptoms}
    best = max(scores.values(), default=0.0)
    near = [name for name, score in scores.items() if score >= max(ENOUGH, best * _BEHIND)]
    return tuple(sorted(near, key=lambda name: (-round(scores[name], 2), rank[name], name))[:_MOST])


@lru_cache(maxsize=2048)
def words(text: str) -> tuple[str, ...]:
    """The units that are compared, each once: stems of words, pairs of Chinese characters."""
    text = unicodedata.normalize("NFKC", text).lower().replace("\u2019", "'")
    text = _FILLER.sub("", _NOT.sub(" not ", text))
    for said, meant in _SAME_PHRASES:
        text = text.replace(said, meant)
    found: list[str] = []
    for run in _RUNS.findall(text):
        if run[0] >= "\u3400":
            found += [run[at : at + 2] for at in range(max(1, len(run) - 1))]
        elif not _EMPTY.fullmatch(run):
            found.append(_SAME.get(run, _stem(run)))
    return tuple(dict.fromkeys(found))


def _texts(symptom: Symptom, lang: str | None) -> list[str]:
    named = [symptom.title, symptom.summary]
    single = [text for texts in named for key, text in texts.items() if lang in (None, key)]
    return single + [text for key, texts in symptom.also.items() if lang in (None, key) for text in texts]


def _stem(word: str) -> str:
    for ending in ("ings", "ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] in "ey" else word


def _closeness(likes: dict[str, dict[str, float]], phrase: tuple[str, ...], weights: dict[str, float]) -> float:
    """How much of the query the phrase explains, lowered a little by what the phrase says beyond it."""
    rare = max(weights.values())  # a word that no phrase has is as telling as the rarest
    total = explained = 0.0
    met: set[str] = set()
    for near in likes.values():
        other = max(phrase, key=lambda word: near.get(word, 0.0))
        if other in near:
            met.add(other)
            total += weights[other]
            explained += weights[other] * near[other]
        else:
            total += max((weights[word] for word, like in near.items() if like == 1.0), default=rare)
    if not met or explained / total < ENOUGH:
        return 0.0
    said = sum(weights[word] for word in met) / sum(weights[word] for word in phrase)
    if len(met) == 1 and said < 0.4:  # one word of many says little
        return 0.0
    return explained / total * (0.55 + 0.45 * said)


def _like(one: str, other: str) -> float:
    """1 for the same word, nearly 1 for one with a slip, 0 for another word."""
    if one == other:
        return 1.0
    if min(len(one), len(other)) < 4 or not (one.isascii() and other.isascii()) or one[0] != other[0]:
        return 0.0
    matcher = SequenceMatcher(None, one, other)
    if abs(len(one) - len(other)) > 2 or matcher.quick_ratio() < _ALIKE:
        return 0.0
    ratio = matcher.ratio()
    return ratio if ratio >= _ALIKE else 0.0
