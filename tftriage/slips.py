"""Slips of the keyboard in the name of a package: ``tensorfow``, ``tensorflow-gpuu``, ``tensor-flow``, ``kears``."""

from __future__ import annotations

from collections.abc import Iterable

SHORT = 8  # names below this length may differ by one slip, longer ones by two


def normal(name: str) -> str:
    """A package name as installers compare it: lower case, one kind of separator."""
    return "-".join(part for part in name.lower().replace("_", "-").replace(".", "-").split("-") if part)


def meant(name: str, names: Iterable[str]) -> str | None:
    """The one of ``names`` that was probably meant by ``name``; ``None`` when it is one of them or near none."""
    given, known = normal(name), [normal(one) for one in names]
    if not given or given in known:
        return None
    ranked = sorted((slips(given, one), -len(one), one) for one in known)
    for count, _, one in ranked:
        allowed = 1 if min(len(one), len(given)) < SHORT else 2
        if count <= allowed or given.replace("-", "") == one.replace("-", ""):
            return one
    return None


def slips(left: str, right: str) -> int:
    """Letters dropped, added, exchanged or swapped with their neighbour between two short words."""
    if abs(len(left) - len(right)) > 2:
        return 3
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, one in enumerate(left, 1):
        older, before, row = before, row, [i]
        for j, other in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (one != other))
            if i > 1 and j > 1 and one == right[j - 2] and left[i - 2] == other:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
