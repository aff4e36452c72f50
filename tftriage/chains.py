"""Who needs whom: a resolution of the loader model as the rows of a tree, and what a folder on PATH would change.

Nothing is touched: the what-if asks the loader model, and then the probes, about a machine that differs in one thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tftriage.facts import Fact, Facts
from tftriage.loader import Entry, Resolution, folder, is_elf, library, resolve
from tftriage.probes import PROBES
from tftriage.probes.base import Finding
from tftriage.tables import Tables


class Row(msgspec.Struct, frozen=True):
    """One line of the tree. ``rails`` says for every level above whether its branch goes on below; ``last`` whether
    this is the last branch of its parent. Without ``entry`` the row stands for ``hidden`` libraries that are in order.
    """

    rails: tuple[bool, ...]
    last: bool
    entry: Entry | None
    hidden: int = 0

    @property
    def depth(self) -> int:
        """0 for what a program loads first."""
        return len(self.rails)


class Place(msgspec.Struct, frozen=True):
    """A folder that could be put on PATH; ``searched`` says that it is there already."""

    folder: str
    searched: bool


class Change(msgspec.Struct, frozen=True):
    """A probe whose answer would be another one."""

    probe: str
    before: Finding
    after: Finding


def rows(resolution: Resolution, every: bool = False) -> list[Row]:
    """The tree from the top. Libraries that are in order and of no concern are counted, unless ``every``.

    Of concern is what fails, what leads to it, and every CUDA, cuDNN, driver and Visual C++ library.
    """
    found: list[Row] = []
    heads = [entries for root in resolution.places if (entries := resolution.of(root))]
    heads.sort(key=lambda entries: entries[0].failure is None)  # what fails comes first, on every level
    for number, entries in enumerate(heads):
        _branch(found, entries, entries[0], (), number == len(heads) - 1, every)
    return found


def _branch(
    found: list[Row], entries: Sequence[Entry], entry: Entry, rails: tuple[bool, ...], last: bool, every: bool
) -> None:
    found.append(Row(rails, last, entry))
    children = [e for e in entries if e.importer == entry.name and e.chain == (*entry.chain, entry.name)]
    shown = [child for child in children if every or _matters(child, entries)]
    shown.sort(key=lambda child: child.failure is None or child.optional)
    hidden = len(children) - len(shown)
    below = (*rails, not last)
    for number, child in enumerate(shown):
        _branch(found, entries, child, below, number == len(shown) - 1 and not hidden, every)
    if hidden:
        found.append(Row(below, True, None, hidden))


def _matters(entry: Entry, entries: Sequence[Entry]) -> bool:
    if entry.failure or library(entry.name).kind in ("cuda", "cudnn", "driver", "vc-runtime"):
        return True
    path = (*entry.chain, entry.name)
    return any(e.chain[: len(path)] == path and _matters(e, ()) for e in entries)


# --- what if ------------------------------------------------------------------------------------------------


def places(facts: Facts) -> list[Place]:
    """The folders worth trying: the toolkits', and those in which a missing library lies."""
    tree: dict[str, Any] = facts.value("dlls.tree") or {}
    toolkits = [str(t.get("bin") or "") for t in facts.value("cuda.toolkits") or []]
    elsewhere = [folder(path) for paths in (tree.get("elsewhere") or {}).values() for path in paths]
    searched = {_same(path) for path in (tree.get("context") or {}).get("path") or []}
    first: dict[str, str] = {}
    for path in [*toolkits, *elsewhere]:
        if path:
            first.setdefault(_same(path), path)
    return [Place(path, same in searched) for same, path in first.items()]


def _same(path: str) -> str:
    return path if path.startswith("/") else path.replace("/", "\\").rstrip("\\").lower()


def what_if(facts: Facts, folders: Sequence[str]) -> Facts:
    """The facts as they would be with ``folders`` in front of PATH (LD_LIBRARY_PATH on Linux).

    What was tried out on the real machine is answered by the model where the folders make it a success.
    """
    tree = facts.value("dlls.tree")
    if not tree or not folders:
        return facts
    context = tree.get("context") or {}
    changed = {**tree, "context": {**context, "path": [*folders, *(context.get("path") or [])]}}
    made = [Fact("dlls.tree", "ok", changed, "what if")]
    opened = (facts.value("tf.libraries") or {}).get("opened")
    if opened:
        loads = {root: entries[0].path for root, entries in _loaded(resolve(changed)).items()}
        again = [_tried(one, loads.get(one.get("name"))) for one in opened]
        made.append(Fact("tf.libraries", "ok", {"opened": again}, "what if"))
    return facts.with_(*made)


def _loaded(resolution: Resolution) -> dict[str, tuple[Entry, ...]]:
    """The roots that load with all that they need."""
    found = {root: resolution.of(root) for root in resolution.places}
    return {root: entries for root, entries in found.items() if entries and not _fails(entries)}


def _fails(entries: Sequence[Entry]) -> bool:
    return any(entry.failure and not entry.optional for entry in entries)


def _tried(one: dict[str, Any], path: str | None) -> dict[str, Any]:
    return {**one, "code": 0, "path": path, "error": None} if path and one.get("code") != 0 else one


def changes(facts: Facts, folders: Sequence[str], tables: Tables) -> list[Change]:
    """The probes that would answer differently with ``folders`` in front of PATH.

    One that then has nothing left to look at is no change.
    """
    other = what_if(facts, folders)
    concerned = [probe for probe in PROBES.values() if {"dlls.tree", "tf.libraries"} & set(probe.needs)]
    both = [(probe.name, probe(facts, tables), probe(other, tables)) for probe in concerned]
    return [Change(name, one, two) for name, one, two in both if two.answer not in (one.answer, "unknown")]


def variable(facts: Facts) -> str:
    """What the folders are put into."""
    return "LD_LIBRARY_PATH" if is_elf(facts.value("dlls.tree") or {}) else "PATH"
