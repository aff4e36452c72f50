"""The literals without which a regex cannot match: only lines that hold one need be searched.

Four hundred patterns over a long log are affordable because a plain search for a literal costs a hundredth of
running the pattern.
"""

from __future__ import annotations

from functools import lru_cache

from tftriage.repair import fold

_FREQUENT = frozenset(
    ("tensorflow", "import", "error", "file", "device", "python", "module", "import tensorflow", "not found")
)
_META = frozenset(".^$*+?{}[]()|\\")


@lru_cache(maxsize=4096)
def anchors(pattern: str) -> tuple[str, ...]:
    """Folded literals of which every match holds at least one; empty when there are none to rely on.

    Reads the RE2 subset that symptoms may use. The strongest choice is taken: a run of literal characters, or
    a group in each of whose alternatives there is one.
    """
    found: list[str] = []
    for branch in _branches(pattern):
        best = _best(branch)
        if not best:
            return ()
        found += best
    return tuple(dict.fromkeys(found))


def strength(literals: tuple[str, ...]) -> int:
    """How selective anchors are: the length of the weakest. Words of every log count little, CJK characters twice."""
    return min(
        (3 if word in _FREQUENT else sum(2 if char > "\u2e7f" else 1 for char in word) for word in literals), default=0
    )


def _branches(pattern: str) -> list[str]:
    parts, start, index = [], 0, 0
    while index < len(pattern):
        if pattern[index] == "|":
            parts.append(pattern[start:index])
            start = index + 1
        index = _after(pattern, index)
    return [*parts, pattern[start:]]


def _best(branch: str) -> tuple[str, ...]:
    choices: list[tuple[str, ...]] = []
    run, index = "", 0
    while index < len(branch):
        after = _after(branch, index)
        piece = branch[index:after]
        optional = branch[after : after + 1] in ("*", "?") or branch[after : after + 2] == "{0"
        plain = piece not in _META if len(piece) == 1 else len(piece) == 2 and not piece[1].isalnum()
        literal = piece[-1] if plain else ""
        if literal and not optional and branch[after : after + 1] not in ("+", "{"):
            run += literal
        else:
            choices.append((fold(run),))
            run = ""
            if piece.startswith("(") and not optional:
                inner = piece[1:-1]
                inner = inner[inner.index(">") + 1 :] if inner.startswith("?P<") else inner.removeprefix("?:")
                choices.append(anchors(inner))
        index = after
    choices.append((fold(run),))
    return max((choice for choice in choices if choice and all(choice)), key=strength, default=())


def _after(pattern: str, index: int) -> int:
    """The index behind the element at ``index``: an escape, a class, a group, a count or one character."""
    char = pattern[index]
    if char == "\\":
        return index + 2
    if char == "{":
        return pattern.index("}", index) + 1
    if char == "[":
        index += 2 if pattern[index + 1] != "^" else 3
        while pattern[index] != "]":
            index += 2 if pattern[index] == "\\" else 1
        return index + 1
    if char == "(":
        index += 1
        while pattern[index] != ")":
            index = _after(pattern, index)
        return index + 1
    return index + 1
