"""The closure of imports over every copy of every library: listings, headers, and files that look alike."""

import os
import re
import time
from functools import lru_cache
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Set, Tuple

from . import elf, pe, places

BUDGET = 40.0  # seconds; then the tree is returned as far as it got, marked ``incomplete``
MAX_FILES = 800
MAX_NAMES = 600
NOT_LIBRARIES = (".lib", ".h", ".pdb", ".txt", ".py", ".zip", ".a", ".json", ".manifest")


class Tree:
    """The folders listed and the files read so far.

    ``alias`` maps a folder to where it must be read: a 32-bit Python sees another System32 than the 64-bit
    target.
    """

    def __init__(self, windows: bool, budget: float = BUDGET, alias: Optional[Mapping[str, str]] = None) -> None:
        self.windows, self.alias = windows, dict(alias or {})
        self.end = time.monotonic() + budget
        self.listings: Dict[str, Dict[str, List[str]]] = {}
        self.files: Dict[str, Dict[str, Any]] = {}
        self.incomplete = False

    def key(self, name: str) -> str:
        """A file name as the system compares it."""
        return name.lower() if self.windows else name

    def listing(self, folder: str) -> Dict[str, List[str]]:
        """{compared name: real names} of a folder. A folder that is not there is not remembered as looked into."""
        if folder not in self.listings:
            listed: Dict[str, List[str]] = {}
            place = self.alias.get(folder, folder)
            if self.late() or not os.path.isdir(place):
                return listed
            for name in places.names_in(place):
                listed.setdefault(self.key(name), []).append(name)
            self.listings[folder] = listed
        return self.listings[folder]

    def place(self, path: str) -> str:
        """Where a file must be read."""
        folder, name = os.path.split(path)
        return os.path.join(self.alias[folder], name) if folder in self.alias else path

    def copies(self, name: str, folders: Iterable[str]) -> List[str]:
        """The paths of a name in the given folders."""
        return [
            os.path.join(folder, real) for folder in folders for real in self.listing(folder).get(self.key(name), [])
        ]

    def read(self, path: str, follow: bool) -> Dict[str, Any]:
        """Header facts of one file, read once; of a system's file that is not followed, without ``imports``."""
        if path not in self.files:
            if self.late() or len(self.files) >= MAX_FILES:
                self.incomplete = True
                return {}
            facts = (pe if self.windows else elf).read(self.place(path))
            facts["followed"] = follow
            if not follow:
                facts.update({key: [] for key in ("imports", "delay_imports", "needed") if key in facts})
            self.files[path] = facts
        return self.files[path]

    def late(self) -> bool:
        """Whether the time is used up."""
        self.incomplete = self.incomplete or time.monotonic() > self.end
        return self.incomplete


def closure(
    tree: Tree,
    roots: List[str],
    search: Callable[[], List[str]],
    elsewhere: List[str],
    system: Set[str],
    more: Callable[[str, Dict[str, Any]], None] = lambda path, facts: None,
) -> Tuple[List[str], List[str]]:
    """Read every copy of every needed name. Returns (needed names as written, API sets met).

    ``system`` are the system's own folders, normalised: there only the libraries of interest are followed.
    ``more`` is told each file that was read (RUNPATH adds folders).
    """
    waiting: List[str] = []
    needed: Dict[str, str] = {}
    api_sets: Set[str] = set()

    def take(path: str) -> None:
        inside = os.path.normcase(os.path.normpath(os.path.dirname(path))) in system
        facts = tree.read(path, not inside or places.is_library(os.path.basename(path)))
        if facts:
            more(path, facts)
            waiting.extend(facts["imports"] + facts["delay_imports"])

    for root in roots:
        if os.path.dirname(root):
            take(root)
        else:
            waiting.append(root)
    while waiting and len(needed) < MAX_NAMES:
        name = waiting.pop(0)
        if tree.windows and pe.is_api_set(name):
            api_sets.add(name.lower())
        elif tree.key(name) not in needed:
            needed[tree.key(name)] = name
            for path in tree.copies(name, [*search(), *elsewhere]):
                if path not in tree.files:
                    take(path)
    tree.incomplete = tree.incomplete or bool(waiting)
    return list(needed.values()), sorted(api_sets)


@lru_cache(maxsize=None)
def _stem(name: str) -> str:
    return re.sub(r"(\.dll|\.so[.0-9]*)$", "", name)


def looks_like(name: str, wanted: str) -> bool:
    """Whether a file is probably ``wanted`` under another name.

    cudnn64_7_v741.dll, cudnn64_7.dll.bak, "cudnn64_7 - Copy.dll" and "cudnn64_7 (1).dll" look like
    cudnn64_7.dll; cublas64_100.dll does not look like cublas64_10.dll, nor msvcp140_1.dll like msvcp140.dll.
    """
    name, wanted = name.lower(), wanted.lower()
    stem = _stem(wanted)
    if stem not in name or name == wanted or name.endswith(NOT_LIBRARIES):
        return False
    if wanted.endswith(".dll"):
        after = r"[ ._(\-].*" if places.CUDA_LIBRARY.match(wanted) else r"(\.dll.+| .*|\(.*)"
        return bool(re.match(r"^(old|bak|my|copy of|_|-| )*[_ -]?" + re.escape(stem) + after + "$", name))
    # libcudnn.so.7: a backup or a copy, but neither the development link libcudnn.so nor libcudnn.so.7.6.5
    # itself
    return bool(
        re.match(
            "^" + re.escape(wanted) + r"[ _(\-~].*|^" + re.escape(wanted) + r"\.(bak|old|orig|disabled|\d+bak)",
            name,
        )
    )


def finish(
    tree: Tree,
    roots: List[str],
    context: Dict[str, Any],
    needed: List[str],
    api_sets: List[str],
    search: List[str],
    elsewhere: List[str],
) -> Dict[str, Any]:
    """Assemble the fact from what was listed and read."""
    searched, keys = set(search), {tree.key(name) for name in needed}
    other = [folder for folder in elsewhere if folder not in searched]
    found_elsewhere = {name: tree.copies(name, other) for name in needed}
    near: Dict[str, List[str]] = {}
    interesting = [name for name in needed if places.is_library(name)]
    for folder, listed in list(tree.listings.items()):
        for real in (real for names in listed.values() for real in names):
            for name in interesting:
                if looks_like(real, name):
                    near.setdefault(name, []).append(os.path.join(folder, real))
    for path in [path for paths in near.values() for path in paths][:100]:
        tree.read(path, True)
    similar = {path for paths in near.values() for path in paths}
    folders = {
        folder: sorted(
            real
            for key, names in listed.items()
            for real in names
            if key in keys or places.is_library(real) or os.path.join(folder, real) in similar
        )
        for folder, listed in tree.listings.items()
    }
    return {
        "roots": roots,
        "context": context,
        "folders": folders,
        "files": tree.files,
        "elsewhere": {name: paths for name, paths in found_elsewhere.items() if paths},
        "near": near,
        "apisets": api_sets,
        "incomplete": tree.incomplete,
    }
