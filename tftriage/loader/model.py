"""The words of the loader model, and the part that both systems share: the transitive closure of imports.

A *root* is what a program loads first: an extension module (by path) or a library opened by name at run
time. Each file of the closure is one ``Entry``: who asked for it, by which rule it was found, which other
copies lost.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

Rule = Literal[
    "root", "loaded", "known-dll", "api-set", "pyd-folder", "python-folder", "dll-directory", "system32",
    "windows", "cwd", "path", "rpath", "ld-library-path", "runpath", "cache", "default", "nowhere",
]  # fmt: skip
Failure = Literal["absent", "child-absent", "wrong-machine", "not-a-pe", "unreadable", "export-missing"]
Via = Literal["extension", "runtime", "ctypes"]
# The Windows error that each failure ends in; when every file is in order, only an initialiser can fail: 1114.
CODES: dict[Failure, int] = {
    "absent": 126, "child-absent": 126, "wrong-machine": 193, "not-a-pe": 193, "unreadable": 5, "export-missing": 127,
}  # fmt: skip


class Copy(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file that bears the name asked for; ``rule`` is ``nowhere`` where the search does not reach."""

    path: str
    rule: Rule
    version: str | None = None
    machine: str | None = None


class Found(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the search for one name gave: the winner (or none), and the copies that did not win."""

    path: str | None
    rule: Rule
    failure: Failure | None = None
    shadowed: tuple[Copy, ...] = ()
    unsearched: tuple[Copy, ...] = ()


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One library of the closure.

    ``chain`` leads from the root to the direct importer. ``optional`` marks what is only needed on first use
    (delay-loaded): its absence does not break the load. ``child-absent`` says that the file itself is in
    order and something that it imports is not. ``symbols`` are functions that ``lacked_by`` imports and this
    file does not export (failure ``export-missing``). ``older_than`` is the linker version of the newest module
    that uses this Visual C++ runtime, when the runtime is older: a crash or 127 that no file explains.
    """

    name: str
    root: str
    chain: tuple[str, ...]
    rule: Rule
    path: str | None = None
    version: str | None = None
    machine: str | None = None
    failure: Failure | None = None
    optional: bool = False
    shadowed: tuple[Copy, ...] = ()
    unsearched: tuple[Copy, ...] = ()
    symbols: tuple[str, ...] = ()
    lacked_by: str = ""
    older_than: str | None = None

    @property
    def importer(self) -> str:
        """The library whose import table names this one; empty for a root."""
        return self.chain[-1] if self.chain else ""


class Place(msgspec.Struct, frozen=True):
    """One folder of a search order."""

    rule: Rule
    folder: str


class Ignored(msgspec.Struct, frozen=True):
    """A PATH entry that the loader cannot use: ``quoted``, ``unexpanded`` or ``missing``."""

    entry: str
    reason: str


class Resolution(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer of the model.

    ``unlisted`` names folders of the search order that nobody looked into, ``incomplete`` says that the
    observation was cut short: then "absent" is not proved. ``starts`` lists for each root the libraries whose
    initialisers run, in order: the suspects of error 1114.
    """

    format: Literal["pe", "elf"]
    entries: tuple[Entry, ...] = ()
    places: dict[str, tuple[Place, ...]] = {}
    ignored: tuple[Ignored, ...] = ()
    unlisted: tuple[str, ...] = ()
    incomplete: bool = False
    starts: dict[str, tuple[str, ...]] = {}

    @property
    def failed(self) -> tuple[Entry, ...]:
        """The entries that are at fault themselves, without optional ones and without mere victims."""
        return tuple(e for e in self.entries if e.failure and e.failure != "child-absent" and not e.optional)

    @property
    def complete(self) -> bool:
        """Whether every root loads, as far as files, machine types and search order decide."""
        return not any(entry.failure for entry in self.entries if not entry.optional)

    def of(self, root: str) -> tuple[Entry, ...]:
        """The entries of one root, the root first."""
        return tuple(entry for entry in self.entries if entry.root == root)


Header = Mapping[str, Any]
Needs = Callable[[str], list[tuple[str, bool]]]
Find = Callable[[str, tuple[str, ...]], Found]
Lacks = Callable[[str, str], tuple[str, ...]]
_Job = tuple[str, tuple[str, ...], bool]  # key, the paths from the root to this file, whether it is optional


class Closure(msgspec.Struct, frozen=True):
    """Everything that a root needs, and the names in the order in which their initialisers run."""

    entries: list[Entry]
    starts: tuple[str, ...]


def closure(
    root: str, first: Found, needs: Needs, find: Find, fold: Callable[[str], str], lacks: Lacks | None = None
) -> Closure:
    """Everything that ``root`` needs, each name once, breadth first, hard imports before delay-loaded ones.

    ``needs(path)`` lists what a file imports with a flag for delay-loaded names; ``find(name, paths)``
    searches for one name on behalf of the last of ``paths`` (the others are its importers); ``fold`` makes
    names equal that the system takes for equal; ``lacks(importer, library)`` are the functions that one file
    imports from another and does not find there.
    """
    name = base(root)
    entries = {fold(name): Entry(name, root, (), first.rule, first.path, failure=first.failure,
                                 shadowed=first.shadowed, unsearched=first.unsearched)}  # fmt: skip
    imports: dict[str, list[str]] = {}  # of each file, the hard ones
    start = (fold(name), (first.path or name,), False)
    hard, delayed = deque[_Job]([start]), deque[_Job]()
    while hard or delayed:
        key, paths, optional = hard.popleft() if hard else delayed.popleft()
        entry = entries[key]
        if entry.path is None or entry.failure is not None or entry.rule == "loaded":
            continue  # what is loaded already has all that it needs
        imports.pop(key, None)
        for child, late in needs(entry.path):
            child_key = fold(child)
            if not late:
                imports.setdefault(key, []).append(child_key)
            if child_key in entries and not (entries[child_key].optional and not late and not optional):
                continue
            found = find(child, paths)
            entries[child_key] = Entry(
                child, root, (*entry.chain, entry.name), found.rule, found.path, failure=found.failure,
                optional=late or optional, shadowed=found.shadowed, unsearched=found.unsearched,
            )  # fmt: skip
            line = delayed if late or optional else hard
            line.append((child_key, (*paths, found.path or child), late or optional))
    if lacks:
        _mark_lacking(entries, imports, lacks)
    return Closure(list(_blame(entries, imports).values()), _starts(fold(name), entries, imports))


def _mark_lacking(entries: dict[str, Entry], imports: Mapping[str, list[str]], lacks: Lacks) -> None:
    """Fail the files that do not export what one of their importers asks for."""
    for key, children in imports.items():
        for child in children:
            importer, entry = entries[key], entries[child]
            symbols = lacks(importer.path, entry.path) if importer.path and entry.path else ()
            if symbols and entry.failure is None:
                entries[child] = msgspec.structs.replace(
                    entry, failure="export-missing", symbols=tuple(symbols), lacked_by=importer.name
                )


def _blame(entries: dict[str, Entry], imports: Mapping[str, list[str]]) -> dict[str, Entry]:
    """Mark as ``child-absent`` every file that hard-imports, directly or not, one that fails."""
    done = dict(entries)
    parents: dict[str, set[str]] = {}
    for key, children in imports.items():
        for child in children:
            parents.setdefault(child, set()).add(key)
    queue = deque(key for key, entry in entries.items() if entry.failure)
    while queue:
        for key in parents.get(queue.popleft(), ()):
            if done[key].failure is None:
                done[key] = msgspec.structs.replace(done[key], failure="child-absent")
                queue.append(key)
    return done


def _starts(root: str, entries: Mapping[str, Entry], imports: Mapping[str, list[str]]) -> tuple[str, ...]:
    """The initialisers in the order in which they run: what a file imports before itself, each once."""
    done: list[str] = []
    seen: set[str] = {root}
    stack = [(root, iter(imports.get(root, ())))]
    while stack:
        key, rest = stack[-1]
        child = next((one for one in rest if one not in seen), None)
        if child is not None:
            seen.add(child)
            stack.append((child, iter(imports.get(child, ()))))
            continue
        stack.pop()
        entry = entries[key]
        if entry.path and entry.rule != "loaded":
            done.append(entry.name)
    return tuple(done)


def dressed(entries: Iterable[Entry], header: Callable[[str], Header | None]) -> list[Entry]:
    """The entries with the version and machine type that their files' headers state."""
    return [
        msgspec.structs.replace(e, version=version(header(e.path)), machine=machine(header(e.path))) if e.path else e
        for e in entries
    ]


def version(header: Header | None) -> str | None:
    """A file's version: cuDNN's own number first, because its version resource names CUDA, not cuDNN."""
    return (header.get("cudnn_version") or header.get("file_version")) if header else None


def machine(header: Header | None) -> str | None:
    """A file's machine type (``x64``, ``x86``, ``arm64``); for ELF its class if nothing else is recorded."""
    if not header:
        return None
    bits = header.get("elf_class")
    return header.get("machine") or ({32: "x86", 64: "x64"}.get(bits) if bits else None)


def base(path: str) -> str:
    """The file name of a Windows or POSIX path."""
    return re.split(r"[\\/]", path)[-1]


def folder(path: str) -> str:
    """The folder of a Windows or POSIX path, without the trailing separator; empty for a bare name."""
    return path[: len(path) - len(base(path))].rstrip("\\/")


class Library(msgspec.Struct, frozen=True):
    """What a library's file name says: its kind, its family (``cudart``) and its version (``101``)."""

    kind: Literal["driver", "cuda", "cudnn", "vc-runtime", "optional", "other"]
    family: str
    version: str = ""


_CUDA = "cudart|cublaslt|cublas|cufftw|cufft|curand|cusolvermg|cusolver|cusparse|nvrtc-builtins|nvrtc|nvjitlink"
_NVIDIA = re.compile(
    rf"^(?:lib)?(?P<family>{_CUDA}|cudnn(?:_[a-z_]*[a-z])?|cupti|nvinfer(?:_plugin)?|nvtoolsext|nccl)"
    r"_?(?:64)?_?(?P<version>\d[\d._]*?)?(?:\.dll|\.so(?:\.(?P<soname>[\d.]+))?)$"
)
_VC = re.compile(r"^(?:msvcp|vcruntime|concrt|vcomp|vccorlib)1\d\d(?:_\w+)?\.dll$")
_OPTIONAL = ("cupti", "nvinfer", "nvtoolsext", "nccl")


def library(name: str) -> Library:
    """Read a library's file name.

    >>> library("cudart64_101.dll").version, library("libcudnn.so.7").kind, library("nvcuda.dll").kind
    ('101', 'cudnn', 'driver')
    """
    low = base(name).lower()
    if low == "nvcuda.dll" or low.startswith("libcuda.so"):
        return Library("driver", "cuda")
    if _VC.match(low):
        return Library("vc-runtime", low.split(".")[0])
    match = _NVIDIA.match(low)
    if match is None:
        return Library("other", low)
    family, number = match["family"], match["soname"] or match["version"] or ""
    if family.startswith(_OPTIONAL):
        return Library("optional", family, number)
    return Library("cudnn" if family.startswith("cudnn") else "cuda", family, number)
