"""The dynamic loader of Linux (ld.so) as a pure model, to the depth that TensorFlow's libraries need.

Order (ld.so(8)): what is loaded already, DT_RPATH of the file, its importers and the program (unless the file
has a RUNPATH), LD_LIBRARY_PATH, DT_RUNPATH of the file itself, the ld.so cache, the default folders. A file of the
other ELF class is passed over and only reported when nothing else bears the name; a file that is no ELF at
all ends the search.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from tftriage.loader import model
from tftriage.loader.model import Copy, Entry, Found, Header, Place, Resolution, Via

DEFAULT = ("/lib64", "/usr/lib64", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib", "/usr/lib")
# glibc itself: python has loaded all of it before the first import.
GLIBC = (
    "libc.so",
    "libm.so",
    "libdl.so",
    "libpthread.so",
    "librt.so",
    "libutil.so",
    "ld-linux",
    "linux-vdso",
)
# The files whose RUNPATH counts when TensorFlow opens a library by name: the caller's own.
CALLERS = ("libtensorflow_framework.so", "libtensorflow_cc.so", "_pywrap_tensorflow_internal.so")


def resolve(
    tree: Mapping[str, Any],
    *,
    via: Via | None = None,
    with_path: Sequence[str] = (),
    with_files: Mapping[str, Header] | None = None,
) -> Resolution:
    """Resolve every root of a ``dlls.tree`` of a Linux machine.

    ``context.path`` holds the folders of LD_LIBRARY_PATH; ``with_path`` are put in front of them. ``via``
    makes no difference on Linux (one order serves all) and is accepted so that both models are called alike.
    """
    world = _World(tree, with_path, with_files or {})
    entries: list[Entry] = []
    places: dict[str, tuple[Place, ...]] = {}
    starts: dict[str, tuple[str, ...]] = {}
    for root in tree.get("roots", ()):
        asker = root if model.folder(root) else world.caller
        places[root] = tuple(world.order((asker,) if asker else ()))
        first = world.root(root)
        closed = model.closure(root, first, world.needs, world.find, str)
        found = model.dressed(closed.entries, world.header)
        starts[root] = closed.starts
        entries += found
        if not found[0].failure:
            world.loaded.update({**world.called, **{e.name: e.path for e in found if e.path}})
        world.called = {}
    blind = bool(entries) and not world.cache and not any(f in world.folders for f in world.default)
    unlisted = ("ld.so.cache",) if blind else ()
    return Resolution("elf", tuple(entries), places, (), unlisted, bool(tree.get("incomplete")), starts)


class _World:
    """The recorded machine, indexed by folder and exact name."""

    def __init__(self, tree: Mapping[str, Any], with_path: Sequence[str], extra: Mapping[str, Header]) -> None:
        self.context: Mapping[str, Any] = tree.get("context") or {}
        files: dict[str, Header] = {**(tree.get("files") or {}), **extra}
        self.headers: dict[str, Header] = {posixpath.normpath(path): header for path, header in files.items()}
        self.folders: dict[str, dict[str, str]] = {}
        for where, names in (tree.get("folders") or {}).items():
            self.folders.setdefault(posixpath.normpath(where), {})
            for name in names:
                self._add(posixpath.join(where, name))
        others = [p for key in ("elsewhere", "near") for paths in (tree.get(key) or {}).values() for p in paths]
        for path in [*files, *others]:
            self._add(path)
        self.cache: Mapping[str, str] = self.context.get("cache") or {}
        self.default: tuple[str, ...] = tuple(self.context.get("default") or DEFAULT)
        self.library_path = [entry for entry in (*with_path, *self.context.get("path", ())) if entry]
        self.loaded: dict[str, str] = {}
        self.called: dict[str, str] = {}  # names that files found so far give themselves (DT_SONAME)
        known = (path for path in files if model.base(path).startswith(CALLERS))
        self.caller: str = self.context.get("caller") or next(known, "")
        self.bits = self._bits(tree)

    def _add(self, path: str) -> None:
        where, name = posixpath.split(posixpath.normpath(path))
        self.folders.setdefault(where, {})[name] = path

    def _bits(self, tree: Mapping[str, Any]) -> int:
        headers = (self.header(root) for root in tree.get("roots", ()) if model.folder(root))
        return self.context.get("bits") or next((h["elf_class"] for h in headers if h and h.get("elf_class")), 64)

    def header(self, path: str) -> Header | None:
        return self.headers.get(posixpath.normpath(path))

    def needs(self, path: str) -> list[tuple[str, bool]]:
        return [(name, False) for name in (self.header(path) or {}).get("needed") or ()]

    def _own(self, path: str, key: str) -> list[str]:
        """A file's RPATH or RUNPATH with $ORIGIN put in."""
        given = (self.header(path) or {}).get(key) or []
        folders = given.split(":") if isinstance(given, str) else given
        here = posixpath.dirname(path)
        return [f.replace("${ORIGIN}", here).replace("$ORIGIN", here) for f in folders if f]

    def order(self, paths: tuple[str, ...]) -> list[Place]:
        """The folders searched on behalf of the last of ``paths``; the others are its importers."""
        asker = paths[-1] if paths else ""
        runpath = self._own(asker, "runpath")
        program = (self.context.get("program") or "",)
        elders = [] if runpath else [p for p in (*reversed(paths), *program) if p and not self._own(p, "runpath")]
        return [
            *(Place("rpath", f) for path in elders for f in self._own(path, "rpath")),
            *(Place("ld-library-path", f) for f in self.library_path),
            *(Place("runpath", f) for f in runpath),
            *(Place("default", f) for f in self.default),
        ]

    def root(self, root: str) -> Found:
        if not model.folder(root):
            return self.find(root, (self.caller,) if self.caller else ())
        path = self._in(posixpath.dirname(root), model.base(root))
        return Found(path, "root", self._fault(path) if path else "absent")

    def _in(self, where: str, name: str) -> str | None:
        where = posixpath.join(self.context.get("cwd") or "", where)
        return self.folders.get(posixpath.normpath(where), {}).get(name)

    def find(self, name: str, paths: tuple[str, ...]) -> Found:
        """Search for one SONAME; a file found before that calls itself so is taken, too."""
        if name in self.loaded:
            return Found(self.loaded[name], "loaded")
        if name in self.called:
            return Found(self.called[name], "loaded")
        if name.startswith(GLIBC):
            return Found(None, "known-dll")
        order = self.order(paths)
        hits = [(place, path) for place in order if (path := self._in(place.folder, name))]
        if name in self.cache:
            at = next((i for i, (place, _) in enumerate(hits) if place.rule == "default"), len(hits))
            hits.insert(at, (Place("cache", posixpath.dirname(self.cache[name])), self.cache[name]))
        usable = [hit for hit in hits if self._fault(hit[1]) != "wrong-machine"] or hits
        if not usable:
            searched = {posixpath.normpath(place.folder) for place in order}
            lost = [names[name] for where, names in self.folders.items() if name in names and where not in searched]
            copies = tuple(Copy(p, "nowhere", *self._facts(p)) for p in lost)
            return Found(None, "nowhere", "absent", unsearched=copies)
        place, path = usable[0]
        soname = (self.header(path) or {}).get("soname")
        if soname and not self._fault(path):
            self.called.setdefault(soname, path)
        others = ((at, p) for at, p in hits if p != path and not self._same(p, path))
        shadowed = {p: Copy(p, at.rule, *self._facts(p)) for at, p in others}
        return Found(path, place.rule, self._fault(path), tuple(shadowed.values()))

    def _same(self, one: str, other: str) -> bool:
        """Whether two paths are one file, as where /lib is a link to /usr/lib."""
        real = [(self.header(path) or {}).get("real") or path for path in (one, other)]
        return real[0] == real[1]

    def _facts(self, path: str) -> tuple[str | None, str | None]:
        return model.version(self.header(path)), model.machine(self.header(path))

    def _fault(self, path: str) -> model.Failure | None:
        header = self.header(path)
        if header is None:
            return None
        if header.get("error"):
            return "unreadable" if header["error"] == "unreadable" else "not-a-pe"
        return "wrong-machine" if header.get("elf_class") not in (None, self.bits) else None
