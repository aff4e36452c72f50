"""Which file does a name become? The loaders of Windows and Linux as pure models of a ``dlls.tree``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tftriage.loader import elf, windows
from tftriage.loader.model import CODES, Copy, Entry, Header, Library, Resolution, Via, base, folder, library

__all__ = [
    "CODES",
    "Copy",
    "Entry",
    "Library",
    "Resolution",
    "base",
    "changes",
    "describe",
    "folder",
    "is_elf",
    "library",
    "resolve",
]


def is_elf(tree: Mapping[str, Any]) -> bool:
    """Whether a ``dlls.tree`` was recorded on a system with ELF files: its paths begin with a slash."""
    context = tree.get("context") or {}
    paths = [context.get("python_folder") or "", *(tree.get("files") or {}), *(tree.get("folders") or {})]
    return next((path.startswith("/") for path in paths if path), False)


def resolve(
    tree: Mapping[str, Any],
    *,
    via: Via | None = None,
    with_path: Sequence[str] = (),
    with_files: Mapping[str, Header] | None = None,
) -> Resolution:
    """What the system's loader makes of every root of ``tree`` (the value of the fact ``dlls.tree``).

    ``via`` says how the roots are loaded when their form does not: as an extension module, by name at run
    time, by ctypes. ``with_path`` puts folders in front of PATH (LD_LIBRARY_PATH), ``with_files`` adds files
    (path → header): both ask what would happen, without touching anything.
    """
    system = elf.resolve if is_elf(tree) else windows.resolve
    return system(tree, via=via, with_path=with_path, with_files=with_files)


def changes(before: Resolution, after: Resolution) -> list[tuple[Entry | None, Entry | None]]:
    """The libraries about which two resolutions of the same roots differ: (as it was, as it would be).

    ``None`` stands for a library that only the other one comes to, because its importer was not found.
    """
    was = {(one.root, one.name.lower()): one for one in before.entries}
    will = {(one.root, one.name.lower()): one for one in after.entries}

    def fate(entry: Entry | None) -> tuple[str | None, str | None] | None:
        return (entry.path, entry.failure) if entry else None

    keys = [*will, *(key for key in was if key not in will)]
    return [(was.get(key), will.get(key)) for key in keys if fate(was.get(key)) != fate(will.get(key))]


def describe(resolution: Resolution) -> dict[str, Any]:
    """A resolution as JSON-able values, for ``tftriage dlls``: each library and what was decided about it."""

    def one(entry: Entry) -> dict[str, Any]:
        return {
            "name": entry.name,
            "chain": list(entry.chain),
            "importer": entry.importer or None,
            "rule": entry.rule,
            "path": entry.path,
            "version": entry.version,
            "machine": entry.machine,
            "failure": entry.failure,
            "code": CODES[entry.failure] if entry.failure and resolution.format == "pe" else None,
            "lacks": list(entry.symbols),
            "lacked_by": entry.lacked_by or None,
            "older_than": entry.older_than,
            "optional": entry.optional or library(entry.root).kind == "optional",
            "shadowed": [msgspec.to_builtins(copy) for copy in entry.shadowed],
            "not_searched": [msgspec.to_builtins(copy) for copy in entry.unsearched],
        }

    return {
        "format": resolution.format,
        "complete": resolution.complete,
        "missing": sorted({entry.name for entry in resolution.failed if entry.failure == "absent"}),
        "roots": [
            {
                "root": root,
                "search_order": [{"rule": place.rule, "folder": place.folder} for place in order],
                "libraries": [one(entry) for entry in resolution.of(root)],
                "initialisers": list(resolution.starts.get(root, ())),
            }
            for root, order in resolution.places.items()
        ],
        "ignored_path_entries": [{"entry": item.entry, "reason": item.reason} for item in resolution.ignored],
        "not_looked_into": list(resolution.unlisted),
        "incomplete": resolution.incomplete,
    }
