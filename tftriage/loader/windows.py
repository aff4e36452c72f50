"""The Windows DLL loader as a pure model: context, listings and PE headers in, a ``Resolution`` out.

The search orders are Microsoft's documented ones (Dynamic-link library search order; LoadLibraryEx); what
Python makes of them is CPython's ``dynload_win.c`` and conda's patches to it. They were measured with
``LoadLibraryExW`` under Wine, except one rule that is Windows' alone: a copy of the wrong machine type ends
the search (193) instead of being passed over.
"""

from __future__ import annotations

import ntpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tftriage.loader import model
from tftriage.loader.model import Copy, Entry, Found, Header, Ignored, Place, Resolution, Rule, Via

# The usual content of Session Manager\KnownDLLs (Windows 10) and what those files pull in: mapped, never
# searched for.
_KNOWN = """
advapi32 bcryptprimitives cfgmgr32 clbcatq combase comdlg32 coml2 crypt32 difxapi gdi32 gdi32full gdiplus
imagehlp imm32 kernel.appcore kernel32 kernelbase msctf msvcp_win msvcrt normaliz nsi ntdll ole32 oleaut32
powrprof profapi psapi rpcrt4 sechost setupapi shcore shell32 shlwapi ucrtbase user32 win32u windows.storage
wintrust wldap32 ws2_32
"""
KNOWN_DLLS = frozenset(_KNOWN.split())
# conda's Python adds these of its prefix as if by os.add_dll_directory (3.8 and newer).
CONDA_FOLDERS = ("Library\\mingw-w64\\bin", "Library\\usr\\bin", "Library\\bin", "Scripts", "bin")
_API_SET = re.compile(r"^(api-ms-|ext-ms-)", re.IGNORECASE)
_BROKEN: dict[str, model.Failure] = {
    "not-pe": "not-a-pe", "truncated": "not-a-pe", "empty": "not-a-pe", "unreadable": "unreadable",
}  # fmt: skip


def resolve(
    tree: Mapping[str, Any],
    *,
    via: Via | None = None,
    with_path: Sequence[str] = (),
    with_files: Mapping[str, Header] | None = None,
) -> Resolution:
    """Resolve every root of a ``dlls.tree``.

    A root with a folder is an extension import (``.pyd``) or a load by full path; a bare name is a run-time
    load by name, as TensorFlow does it. ``via`` overrides that. ``with_path`` (folders put first in PATH)
    and ``with_files`` (path → header) ask "what if".
    """
    world = _World(tree, with_path, with_files or {})
    entries: list[Entry] = []
    places: dict[str, tuple[Place, ...]] = {}
    starts: dict[str, tuple[str, ...]] = {}
    for root in tree.get("roots", ()):
        kind = via or _kind(root)
        places[root] = tuple(world.order(kind, root))
        first = world.root(root, places[root])

        def find(name: str, _paths: tuple[str, ...], order: tuple[Place, ...] = places[root]) -> Found:
            return world.find(name, order)

        closed = model.closure(root, first, world.needs, find, str.lower, world.lacks)
        found = _outdated(model.dressed(closed.entries, world.header), world)
        entries += found
        starts[root] = closed.starts
        if not found[0].failure:  # what failed to load is unloaded again
            world.loaded.update({e.name.lower(): e.path for e in found if e.path and not e.optional})
    used = {place.folder for order in places.values() for place in order if place.rule == "system32"}
    return Resolution(
        "pe",
        tuple(entries),
        places,
        tuple(world.ignored),
        tuple(sorted(f for f in used if not world.listed(f))),
        bool(tree.get("incomplete")),
        starts,
    )


def _outdated(entries: list[Entry], world: _World) -> list[Entry]:
    """Mark Visual C++ runtimes that are older than the linker of a module that uses them.

    The installed runtime must be at least as new as the newest build tools of any module of the process
    (Microsoft, "C++ binary compatibility between Visual Studio versions").
    """
    linkers = ((e.name, _fourteen((world.header(e.path) or {}).get("linker"))) for e in entries if e.path)
    built = {name: linker for name, linker in linkers if linker}

    def one(entry: Entry) -> Entry:
        have = _fourteen(entry.version) if model.library(entry.name).kind == "vc-runtime" else None
        newest = max((linker for name, linker in built.items() if name != entry.name), default=None)
        if not have or not newest or have >= newest:
            return entry
        return msgspec.structs.replace(entry, older_than=f"14.{newest[1]}")

    return [one(entry) for entry in entries]


def _fourteen(version: str | None) -> tuple[int, int] | None:
    """(14, 24) of "14.24" or "14.24.28127.4"; None for linkers and files that are not of Visual C++ 14."""
    numbers = re.match(r"14\.(\d+)", version or "")
    return (14, int(numbers[1])) if numbers else None


def _kind(root: str) -> Via:
    if not model.folder(root):
        return "runtime"
    return "extension" if root.lower().endswith(".pyd") else "ctypes"


def _key(path: str) -> str:
    return ntpath.normcase(ntpath.normpath(path))


class _World:
    """The recorded machine, indexed the way the loader compares names: without case."""

    def __init__(self, tree: Mapping[str, Any], with_path: Sequence[str], extra: Mapping[str, Header]) -> None:
        self.context: Mapping[str, Any] = tree.get("context") or {}
        self.headers: dict[str, Header] = {_key(p): h for p, h in {**(tree.get("files") or {}), **extra}.items()}
        self.known = {f"{name}.dll" for name in KNOWN_DLLS}
        self.known |= {name.lower() for name in self.context.get("known_dlls") or ()}
        self.api_sets = {name.lower() for name in tree.get("apisets") or ()}
        self.lacking = {
            (_key(one["importer"]), _key(one["dll"])): tuple(one.get("names") or ("?",))
            for one in tree.get("missing_exports") or ()
        }
        self.folders: dict[str, dict[str, str]] = {}
        self.looked_into = {_key(folder) for folder in tree.get("folders") or {}}
        for where, names in (tree.get("folders") or {}).items():
            for name in names:
                self._add(ntpath.join(where, name))
        others = [p for key in ("elsewhere", "near") for paths in (tree.get(key) or {}).values() for p in paths]
        for path in [*(tree.get("files") or {}), *others, *extra]:
            self._add(path)
        self.version = tuple(self.context.get("python") or (3, 8))
        self.python_folder: str = self.context.get("python_folder") or ""
        self.ignored: list[Ignored] = []
        self.path = self._path(with_path)
        self.process = self._process(tree)
        self.loaded: dict[str, str] = {}
        for name in (*self.context.get("loaded", ()), *self._started()):
            where, short = ntpath.split(name)
            copy = self._in(where or self.python_folder, short) or (name if where else None)
            if copy:
                self.loaded[short.lower()] = copy

    def _add(self, path: str) -> None:
        where, name = ntpath.split(path)
        self.folders.setdefault(_key(where), {}).setdefault(name.lower(), path)

    def _started(self) -> tuple[str, ...]:
        """What python.exe has loaded from its own folder before the first import."""
        major, minor = (*self.version, 0)[:2]
        return (f"python{major}{minor}.dll", "vcruntime140.dll")

    def _process(self, tree: Mapping[str, Any]) -> str:
        if self.context.get("bits"):
            return "x86" if self.context["bits"] == 32 else "x64"
        headers = (self.header(root) for root in tree.get("roots", ()) if model.folder(root))
        return next((h["machine"] for h in headers if h and h.get("machine")), "x64")

    def _path(self, first: Sequence[str]) -> list[str]:
        """The usable folders of PATH. Quotes and unexpanded variables make an entry useless to the loader."""
        cwd, good = self.context.get("cwd") or "", list[str]()
        for entry in (*first, *self.context.get("path", ())):
            if not entry:
                continue
            folder = entry if ntpath.isabs(entry) or not cwd else ntpath.join(cwd, entry)
            if '"' in entry:
                self.ignored.append(Ignored(entry, "quoted"))
            elif _key(folder) in self.folders or _key(folder) in self.looked_into:
                good.append(folder)
            else:
                self.ignored.append(Ignored(entry, "unexpanded" if entry.count("%") > 1 else "missing"))
        return good

    def header(self, path: str) -> Header | None:
        return self.headers.get(_key(path))

    def listed(self, folder: str) -> bool:
        return _key(folder) in self.looked_into

    def _in(self, folder: str, name: str) -> str | None:
        return self.folders.get(_key(folder), {}).get(name.lower()) if folder else None

    def lacks(self, importer: str, dll: str) -> tuple[str, ...]:
        """The functions that one file imports from another and that are not there."""
        return self.lacking.get((_key(importer), _key(dll)), ())

    def needs(self, path: str) -> list[tuple[str, bool]]:
        header = self.header(path) or {}
        hard = [(name, False) for name in header.get("imports") or ()]
        return hard + [(name, True) for name in header.get("delay_imports") or ()]

    def order(self, kind: Via, root: str) -> list[Place]:
        """The folders searched for ``root`` and for what it imports, first to last."""
        own, cwd = model.folder(root), self.context.get("cwd") or ""
        system = [Place("system32", self.context.get("system32") or "C:\\Windows\\System32")]
        windows = [Place("windows", self.context.get("windows") or "C:\\Windows")]
        beside = [Place("pyd-folder", own)] if own else []
        python = [Place("python-folder", self.python_folder)] if self.python_folder else []
        path = [Place("path", folder) for folder in self.path]
        tail = [*system, *windows, *([Place("cwd", cwd)] if cwd else []), *path]
        if kind != "runtime" and self._flags():
            return [*beside, *python, *self._added(), *system]
        if self.context.get("store"):  # packaged: neither PATH nor the current folder
            return [*(beside if kind == "extension" else python), *system]
        if kind == "extension" and beside:  # LOAD_WITH_ALTERED_SEARCH_PATH: the file's folder replaces python.exe's
            return [*beside, *tail]
        return [*python, *tail]

    def _flags(self) -> bool:
        """Whether this Python imports with LOAD_LIBRARY_SEARCH_*: 3.8 and newer, or conda's patch is on."""
        return self.version >= (3, 8) or bool(self.context.get("conda_path_mode"))

    def _added(self) -> list[Place]:
        given = list(self.context.get("dll_directories") or ())
        if self.context.get("conda") and self.context.get("conda_path_mode"):
            given += self.path
        elif self.context.get("conda"):
            prefix = self.context.get("prefix") or self.python_folder
            given += [ntpath.join(prefix, part) for part in CONDA_FOLDERS]
        unique: dict[str, str] = {}
        for folder in given:
            unique.setdefault(_key(folder), folder)
        return [Place("dll-directory", folder) for folder in unique.values()]

    def root(self, root: str, order: Sequence[Place]) -> Found:
        if not model.folder(root):
            return self.find(root, order)
        path = self._in(model.folder(root), model.base(root))
        return Found(path, "root", self._fault(path) if path else "absent")

    def find(self, name: str, order: Sequence[Place]) -> Found:
        """Search for one base name, in the loader's order of rules."""
        low = name.lower()
        if _API_SET.match(low) or low in self.api_sets:
            return Found(None, "api-set")
        if low in self.loaded:
            return Found(self.loaded[low], "loaded", shadowed=self._copies(low, order, but=self.loaded[low]))
        if low in self.known:
            return Found(None, "known-dll")
        for place in order:
            path = self._in(place.folder, name)
            if path:
                return Found(path, place.rule, self._fault(path), self._copies(low, order, but=path))
        return Found(None, "nowhere", "absent", unsearched=self._unsearched(low, order))

    def _fault(self, path: str) -> model.Failure | None:
        header = self.header(path)
        if header is None:
            return None
        if header.get("error"):
            return _BROKEN.get(header["error"], "unreadable")
        return "wrong-machine" if header.get("machine") not in (None, self.process) else None

    def _copy(self, path: str, rule: Rule) -> Copy:
        header = self.header(path)
        return Copy(path, rule, model.version(header), model.machine(header))

    def _copies(self, low: str, order: Sequence[Place], but: str) -> tuple[Copy, ...]:
        """The copies later in the order that the winner hides."""
        hits: dict[str, Copy] = {}
        for place in order:
            path = self._in(place.folder, low)
            if path and _key(path) != _key(but):
                hits.setdefault(_key(path), self._copy(path, place.rule))
        return tuple(hits.values())

    def _unsearched(self, low: str, order: Sequence[Place]) -> tuple[Copy, ...]:
        searched = {_key(place.folder) for place in order}
        hits = [names[low] for folder, names in self.folders.items() if low in names and folder not in searched]
        return tuple(self._copy(path, "nowhere") for path in hits)
