"""The command ``dlls``: the import chain of a library, as the loader of this system would follow it."""

from __future__ import annotations

import ntpath
import posixpath
import sys
import unicodedata
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tftriage import headless
from tftriage.headless import FAULT, OK, USAGE, Stop, out, out_json
from tftriage.knowledge import Knowledge, load
from tftriage.loader import (
    CODES,
    Entry,
    Resolution,
    base,
    changes,
    describe,
    folder,
    is_elf,
    library,
    resolve,
)
from tftriage.plain import one_line
from tftriage.requests import arguments
from tftriage.show import MARKS

WIDTH = 80


def dlls(options: Namespace) -> int:
    """``tftriage dlls [FILE]``: per library importer, rule, winner, shadowed copies, failure; and what-ifs."""
    kb = load()
    roots = _roots(options)
    wanted = [_halves(given, options) for given in options.with_file]
    tree = _look(options, kb, roots, [source for source, _ in wanted])
    added = _added(tree, wanted, roots)
    before = resolve(tree, via=options.via)
    what_if = bool(options.with_path or added)
    after = resolve(tree, via=options.via, with_path=options.with_path, with_files=added) if what_if else before
    if options.json:
        document = {**describe(after), "near": tree.get("near") or {}}
        if what_if:
            document["what_if"] = {
                "with_path": options.with_path,
                "with_files": sorted(added),
                "complete_without": before.complete,
                "changed": [_change(was, will) for was, will in changes(before, after)],
            }
        out_json(document)
    else:
        near = tree.get("near") or {}
        for line in (*report(after, kb, options.lang, near), *_differences(before, after, kb, options.lang, what_if)):
            out(line)
    return OK if after.complete else FAULT


# --- what is looked at --------------------------------------------------------------------------------------


def _roots(options: Namespace) -> list[str]:
    """What to start from; none: TensorFlow's own. Raises ``Stop`` for a path with nothing there."""
    if options.file is None:
        return []
    path = Path(options.file)
    if not folder(options.file) and not path.is_file():
        if library(options.file).kind == "other" and not options.file.lower().endswith((".dll", ".so")):
            raise Stop(USAGE, f"{options.file}: no such file, and no library's name")
        return [options.file]
    if options.case is None and not path.is_file():
        raise Stop(USAGE, f"{options.file}: no such file")
    return [options.file if options.case else str(path.absolute())]


def _halves(given: str, options: Namespace) -> tuple[str, str]:
    source, _, place = given.partition("=")
    return source if options.case else str(Path(source).absolute()), place


def _owner(file: str) -> str:
    """The Python in whose environment a file lies; the one that runs us when there is none."""
    for parent in Path(file).absolute().parents:
        for name in ("python.exe", "Scripts/python.exe", "bin/python", "bin/python3"):
            if (parent / name).is_file() and parent != Path(parent.anchor) and parent.name != "usr":
                return str(parent / name)
    return sys.executable


def _look(options: Namespace, kb: Knowledge, roots: list[str], sources: list[str]) -> dict[str, Any]:
    """The fact ``dlls.tree`` of these roots, with the headers of the files that are to be added."""
    for source in sources:
        if options.case is None and not Path(source).is_file():
            raise Stop(USAGE, f"{source}: no such file")
    if roots and not options.case and not options.python:
        options.python = _owner(roots[0])
    session = headless.session_of(options, "", kb)
    try:
        session.observe(("system.os", "target.interpreter", "tf.package"), headless.progress(options))
        asked = arguments("dlls.tree", session.target, session.facts, session.knowledge.tables, {})
        asked |= {"roots": [*roots, *sources], "libraries": []} if roots else {"roots": [*asked["roots"], *sources]}
        asked["search"] = [*(asked.get("search") or ()), *options.with_path]
        fact = next((fact for fact in session.source.collect([("dlls.tree", asked)])), None)
    finally:
        session.close()
    if fact is None or fact.status != "ok":
        told = f"{fact.status} {fact.note}" if fact else "not recorded"
        raise Stop(headless.BLIND, f"dlls.tree: {told}")
    tree = dict(fact.value)
    tree["roots"] = roots or [root for root in tree["roots"] if root not in sources]
    return tree


def _added(tree: Mapping[str, Any], wanted: list[tuple[str, str]], roots: list[str]) -> dict[str, Any]:
    """Path → header of each file that is to be thought of as being there."""
    flavour = posixpath if is_elf(tree) else ntpath
    beside = next((folder(root) for root in (*roots, *tree["roots"]) if folder(root)), "")
    added = {}
    for source, place in wanted:
        header = tree["files"].get(source)
        if header is None or not (place or beside):
            raise Stop(USAGE, f"{source}: not among the files that were looked at, or no place for it is given")
        name = base(place)
        whole = place and "." in name and not Path(place).is_dir()
        added[place if whole else flavour.join(place or beside, base(source))] = header
    return added


# --- what is said -------------------------------------------------------------------------------------------


def report(
    resolution: Resolution, kb: Knowledge, lang: str, near: Mapping[str, list[str]] | None = None
) -> Iterator[str]:
    """Lines for people, at most 80 cells wide: what is wrong first, then what was found where.

    ``near``: files whose name looks like that of a missing one.
    """
    alike = {name.lower(): paths for name, paths in (near or {}).items()}
    for root in resolution.places:
        entries = resolution.of(root)
        yield from wrapped(root, 0)
        order = ", ".join(dict.fromkeys(kb.say(f"dlls.rule.{place.rule}", lang) for place in resolution.places[root]))
        yield from wrapped(kb.say("libraries.searched", lang, order=order), 2)
        for entry in sorted(entries, key=lambda one: (one.failure is None or one.optional, one.rule in _QUIET)):
            if entry.failure or entry.rule not in _QUIET:
                yield from _lines(entry, kb, lang)
                for path in alike.get(entry.name.lower(), ()) if entry.failure == "absent" else ():
                    yield from wrapped(kb.say("libraries.near", lang, path=path), 4)
        quiet = [entry.name for entry in entries if not entry.failure and entry.rule in _QUIET]
        if quiet:
            yield from wrapped(f"{MARKS['ok']} " + kb.say("libraries.system", lang, names=", ".join(quiet)), 0)
    for item in resolution.ignored:
        yield from wrapped(f"{MARKS['info']} " + kb.say(f"libraries.path-{item.reason}", lang, entry=item.entry), 0)
    if resolution.incomplete or resolution.unlisted:
        yield from wrapped(f"{MARKS['info']} " + kb.say("libraries.not-all", lang), 0)
    verdict = "libraries.complete" if resolution.complete else "libraries.broken"
    yield from wrapped(kb.say(verdict, lang, count=len(resolution.entries), names=_names(resolution.failed)), 0)


_QUIET = ("known-dll", "api-set")


def _names(entries: Iterable[Entry]) -> str:
    return ", ".join(dict.fromkeys(entry.name for entry in entries))


def _fate(entry: Entry, kb: Knowledge, lang: str) -> str:
    """Found by which rule, or what is wrong; with Windows' error code for a file of Windows."""
    code = {} if (entry.path or entry.root).startswith("/") else {"code": CODES[entry.failure or "absent"]}
    return kb.say(f"libraries.{entry.failure or 'found'}", lang, rule=kb.say(f"dlls.rule.{entry.rule}", lang), **code)


def _lines(entry: Entry, kb: Knowledge, lang: str) -> Iterator[str]:
    level = "ok" if entry.failure is None else "info" if entry.optional else "bad"
    fate = _fate(entry, kb, lang)
    optional = [kb.say("libraries.optional", lang)] if entry.optional else []
    yield from wrapped(" ".join([MARKS[level], entry.name, "-", fate, *filter(None, [entry.version]), *optional]), 0)
    if entry.path and entry.rule != "root":
        yield from wrapped(entry.path, 4)
    if entry.failure and entry.importer:
        yield from wrapped(kb.say("libraries.needed-by", lang, chain=" > ".join(entry.chain)), 4)
    if entry.symbols:
        names = ", ".join(entry.symbols)
        yield from wrapped(kb.say("libraries.lacks", lang, importer=entry.lacked_by, names=names), 4)
    if entry.older_than:
        yield from wrapped(kb.say("libraries.older", lang, linker=entry.older_than), 4)
    for key, copies in (("libraries.shadowed", entry.shadowed), ("libraries.unsearched", entry.unsearched)):
        for copy in copies:
            yield from wrapped(kb.say(key, lang, path=copy.path, version=copy.version or ""), 4)


def _differences(before: Resolution, after: Resolution, kb: Knowledge, lang: str, what_if: bool) -> Iterator[str]:
    """What the what-if changes."""
    if not what_if:
        return
    changed = changes(before, after)
    yield from wrapped(kb.say("libraries.changes" if changed else "libraries.no-change", lang), 0)
    for was, will in changed:
        sides = [_fate(one, kb, lang) if one else "-" for one in (was, will)]
        name = (will or was or after.entries[0]).name
        yield from wrapped(f"{name}: {sides[0]} -> {sides[1]}", 2)


def _change(was: Entry | None, will: Entry | None) -> dict[str, Any]:
    def side(entry: Entry | None) -> dict[str, Any] | None:
        return {"rule": entry.rule, "path": entry.path, "failure": entry.failure} if entry else None

    one = will or was
    return {"root": one.root if one else "", "name": one.name if one else "", "before": side(was), "after": side(will)}


def wrapped(text: str, indent: int) -> Iterator[str]:
    """Lines of at most 80 cells with a hanging indent; breaks at spaces and after separators of a path."""
    line, room, start = " " * indent, WIDTH, " " * (indent + 2)
    for piece in _pieces(one_line(text)):
        while piece:
            if cells(line) + cells(piece.rstrip()) <= room:
                line, piece = line + piece, ""
            elif line.strip():
                yield line.rstrip()
                line = start
            else:  # a single word wider than a line
                cut = next(n for n in range(len(piece), 0, -1) if cells(line + piece[:n]) <= room)
                yield line + piece[:cut]
                line, piece = start, piece[cut:]
    if line.strip():
        yield line.rstrip()


def _pieces(text: str) -> Iterator[str]:
    """The parts between which a line may be broken."""
    piece = ""
    for letter in text:
        piece += letter
        if letter in " \\/,;，；" or cells(letter) == 2:
            yield piece
            piece = ""
    yield piece


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
