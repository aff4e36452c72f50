"""Editing a Windows ``Path`` value without harming it. Pure: text in, text out.

The value is a list separated by ``;`` in which an entry may be quoted (so that it can hold a ``;``), empty, written
with ``%VARIABLES%``, or there twice. Whoever edits it must leave all that is not his own byte for byte as it was.
"""

from __future__ import annotations

import difflib
import ntpath
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

LIMIT = 32_767  # characters of one environment variable; Microsoft, ProcThread/environment-variables
OLD_DIALOG = 2_047  # longer values are cut by the old environment dialog of Windows; ours is written whole
_VARIABLE = re.compile(r"%([^%]+)%")

Mark = Literal["added", "moved", "kept", "removed"]


class TooLong(ValueError):
    """The new value would be longer than Windows allows (``LIMIT``)."""


class Entry(msgspec.Struct, frozen=True):
    """One entry, exactly as written, and what becomes of it."""

    text: str
    mark: Mark


def split(value: str, separator: str = ";") -> list[str]:
    """The entries as they are written; a ``;`` inside double quotes separates nothing.

    ``separator.join(split(value)) == value`` for every text.
    """
    if separator != ";":
        return value.split(separator)
    entries, start, quoted = [], 0, False
    for index, character in enumerate(value):
        if character == '"':
            quoted = not quoted
        elif character == separator and not quoted:
            entries.append(value[start:index])
            start = index + 1
    entries.append(value[start:])
    return entries


def expand(text: str, variables: Mapping[str, str]) -> str:
    """``%NAME%`` replaced once, as Windows does it: names in any case, unknown ones left as they are.

    ``variables`` has upper-case names.
    """
    return _VARIABLE.sub(lambda match: variables.get(match.group(1).upper(), match.group(0)), text)


def folder_key(entry: str, variables: Mapping[str, str] | None = None, windows: bool = True) -> str:
    """What two spellings of one folder have in common: expanded, unquoted, one case, no final backslash."""
    if not windows:
        return posixpath.normpath(entry) if entry else ""
    text = entry.replace('"', "").strip()
    if variables is not None:
        text = expand(text, variables)
    return ntpath.normcase(ntpath.normpath(text)) if text else ""


def quoted(folder: str) -> str:
    """The folder as an entry: in quotes when it holds a ``;``."""
    return f'"{folder}"' if ";" in folder else folder


def would_expand(folder: str) -> bool:
    """Whether a folder's own name looks like a variable: an expandable value cannot hold it literally."""
    return _VARIABLE.search(folder) is not None


def prepend(
    value: str,
    folders: Sequence[str],
    *,
    variables: Mapping[str, str] | None = None,
    separator: str = ";",
    limit: int | None = LIMIT,
) -> str:
    """The value with ``folders`` first, in their order, once each.

    A folder that is in the list already, in whatever spelling, moves with its spelling; its further copies go.
    All other entries stay byte for byte and in their order, empty ones and foreign doubles too. ``variables``
    expand entries for the comparison (leave it out for a value that Windows does not expand, REG_SZ).
    Raises ``TooLong``.
    """
    windows = separator == ";"
    entries = split(value, separator) if value else []
    keys = [folder_key(entry, variables, windows) for entry in entries]
    wanted: dict[str, str] = {}
    for folder in folders:
        key = folder_key(folder, None, windows)
        if key:
            wanted.setdefault(key, quoted(folder) if windows else folder)
    head = [entries[keys.index(key)] if key in keys else text for key, text in wanted.items()]
    tail = [entry for entry, key in zip(entries, keys, strict=True) if key not in wanted]
    new = separator.join([*head, *tail])
    if limit is not None and units(new) > limit:
        raise TooLong(str(units(new)))
    return new


def compare(old: str, new: str, separator: str = ";") -> tuple[Entry, ...]:
    """Every entry of the new list with its mark, and the removed ones where they stood."""
    before, after = (split(value, separator) if value else [] for value in (old, new))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    blocks = matcher.get_opcodes()
    gone = [text for tag, a, b, _, _ in blocks if tag in ("delete", "replace") for text in before[a:b]]
    moved: list[str] = []
    entries: list[Entry] = []
    for tag, a, b, c, d in blocks:
        if tag == "equal":
            entries += [Entry(text, "kept") for text in after[c:d]]
            continue
        for text in after[c:d]:
            if text in gone:
                gone.remove(text)
                moved.append(text)
                entries.append(Entry(text, "moved"))
            else:
                entries.append(Entry(text, "added"))
        entries += [Entry(text, "removed") for text in before[a:b]]
    for text in moved:  # a moved entry is shown where it is now, not also where it was
        entries.remove(Entry(text, "removed"))
    return tuple(entries)


def units(text: str) -> int:
    """The length as Windows counts it: UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)
