"""Random trees of shared objects: what the dynamic loader of this machine makes of them, and what our model does.

    python -m tests.loader.elf_trees --trees 2000 [--seed 1]

gcc links a few templates once; the names in them are then overwritten, so that a tree costs no compiler. A small
program opens each root with dlopen as Python and TensorFlow do and prints what was loaded from where, or the error.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

from tftriage.collect import dlls
from tftriage.loader import resolve

SLOTS = 3
LONG = 300  # letters of the place holders; ld.so allows much more
PLACES = {"own": 25, "sub": 10, "rp0": 10, "rp1": 10, "env0": 15, "env1": 10, "cwd": 4, "nowhere": 6}
KINDS = {"good": 88, "x86": 6, "text": 3, "empty": 2, "short": 1}
OPENER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
int main(int argc, char **argv) {
    void *caller = dlopen(argv[1], RTLD_NOW), *handle;
    void *(*open_it)(const char *) = (void *(*)(const char *))dlsym(caller, "open_it");
    struct link_map *map;
    if (!open_it) { puts(dlerror()); return 2; }
    handle = open_it(argv[2]);
    if (!handle) { printf("error %s\n", dlerror()); return 1; }
    dlinfo(caller, RTLD_DI_LINKMAP, &map);
    for (; map; map = map->l_next) printf("%s\n", map->l_name);
    return 0;
}
"""
CALLER = r"""
#include <dlfcn.h>
void *open_it(const char *name) { return dlopen(name, RTLD_NOW); }
"""
_ERROR = re.compile(r"^error (?P<name>[^:]+): (?P<text>.*)")
_TEXTS = {"cannot open shared object file": "absent", "wrong ELF class": "wrong-machine",
          "invalid ELF header": "not-a-pe", "file too short": "not-a-pe"}  # fmt: skip


class Templates:
    """The opener, callers and libraries with place holders for names and search folders."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "empty.c").write_text("int zero;", encoding="ascii")
        (folder / "opener.c").write_text(OPENER, encoding="ascii")
        (folder / "caller.c").write_text(CALLER, encoding="ascii")
        for number in range(SLOTS):
            holder = f"slot{number}".ljust(LONG, "_")
            self._gcc("-shared", "-nostdlib", "empty.c", f"-Wl,-soname,{holder}", "-o", f"slot{number}.so")
        self.raw: dict[tuple[str, int], bytes] = {}
        for search in ("", "rpath", "runpath"):
            flags = [f"-Wl,-rpath,{'@' * LONG}", f"-Wl,--{'en' if search == 'runpath' else 'dis'}able-new-dtags"]
            for slots in range(SLOTS + 1):
                names = [f"slot{number}.so" for number in range(slots)]
                self._gcc("-shared", "-nostdlib", "-Wl,--no-as-needed", f"-Wl,-soname,{'#' * LONG}",
                          *(flags if search else []), "empty.c", *names, "-o", "made.so")  # fmt: skip
                self.raw[search, slots] = (folder / "made.so").read_bytes()
            self._gcc("-shared", "-fPIC", *(flags if search else []), "caller.c", "-ldl", "-o", "made.so")
            self.raw[search, -1] = (folder / "made.so").read_bytes()
            self._gcc("-O1", *(flags if search else []), "opener.c", "-ldl", "-o", "made.so")
            self.raw[search, -2] = (folder / "made.so").read_bytes()
        self._gcc("-m32", "-shared", "-nostdlib", "empty.c", "-o", "made.so")
        self.x86 = (folder / "made.so").read_bytes()

    def _gcc(self, *words: str) -> None:
        subprocess.run(["gcc", "-w", *words], cwd=self.folder, check=True, capture_output=True)

    def library(self, needed: list[str], search: str, folders: str, soname: str) -> bytes:
        """A library that needs ``needed``; ``search`` ("", "rpath", "runpath") says what ``folders`` is."""
        raw = _put(self.raw[search, len(needed)], "#" * LONG, soname)
        for number, name in enumerate(needed):
            raw = _put(raw, f"slot{number}".ljust(LONG, "_"), name)
        return _put(raw, "@" * LONG, folders) if search else raw

    def caller(self, search: str, folders: str, program: bool = False) -> bytes:
        """A library that opens others by name, or the program that loads this library."""
        raw = self.raw[search, -2 if program else -1]
        return _put(raw, "@" * LONG, folders) if search else raw


def _put(raw: bytes, holder: str, text: str) -> bytes:
    old, new = holder.encode(), text.encode()
    assert raw.count(old) == 1 and len(new) <= LONG, (holder[:9], raw.count(old))
    return raw.replace(old, new + bytes(len(old) - len(new)))


class Tree(NamedTuple):
    """What to open, with which caller, working folder and LD_LIBRARY_PATH."""

    roots: tuple[str, str]  # by path, by name
    program: str
    caller: str
    cwd: str
    variable: str


def make(seed: int, number: int, work: pathlib.Path, templates: Templates) -> Tree:
    """Write tree ``number`` of a seed into ``work``."""
    dice = random.Random(f"{seed}/{number}")
    places = {place: work / dice.choice((place, place + " x", "目录 " + place, "ü" + place)) for place in PLACES}
    for folder in places.values():
        folder.mkdir(parents=True)
    names = [f"libt{letter}.so.{dice.randint(1, 9)}" for letter in "abcdef"[: dice.randint(1, 6)]]

    def search() -> tuple[str, str]:
        kind = dice.choice(("", "rpath", "runpath", "runpath"))
        styles = ["$ORIGIN", "${ORIGIN}/../" + places["rp0"].name, str(places["rp1"]), str(work / "gone"),
                  "$ORIGIN/../" + places["sub"].name, "../" + places["rp0"].name,
                  str(places["own"]) + "//."]  # fmt: skip
        return kind, ":".join(dice.sample(styles, dice.randint(1, 3)))

    def content(at: int) -> bytes:
        later = names[at + 1 :]
        needed = dice.sample(later, min(len(later), dice.randint(1 if at < 0 else 0, SLOTS)))
        if at > 0 and len(needed) < SLOTS and dice.random() < 0.12:
            needed.append(names[dice.randrange(at)])
        soname = names[at] if dice.random() < 0.85 else dice.choice(names)
        return templates.library(needed, *search(), soname if at >= 0 else "root")

    (places["own"] / "root.so").write_bytes(content(-1))
    plain = dice.random() < 0.4
    for at, name in enumerate(names):
        for place in set(
            dice.choices(list(PLACES), list(PLACES.values()), k=dice.choices((0, 1, 2, 3), (5, 60, 25, 10))[0])
        ):
            kind = "good" if plain else dice.choices(list(KINDS), list(KINDS.values()))[0]
            good = content(at)
            made = {"x86": templates.x86, "text": b"not a library\n" * 9, "empty": b"", "short": good[:40]}
            (places[place] / name).write_bytes(made.get(kind, good))
    (work / "caller.so").write_bytes(templates.caller(*search()))
    (work / "opener").write_bytes(templates.caller(*(search() if dice.random() < 0.4 else ("", "")), program=True))
    (work / "opener").chmod(0o755)
    entries = [str(places["env0"]), dice.choice((str(places["env1"]), "../" + places["env1"].name))]
    entries += dice.sample(["", "/no such folder", str(work / "caller.so"), "."], dice.choice((0, 0, 1, 2)))
    dice.shuffle(entries)
    variable = dice.choice(":::;").join(entries) if dice.random() < 0.8 else ""
    return Tree(
        (str(places["own"] / "root.so"), dice.choice(names)),
        str(work / "opener"),
        str(work / "caller.so"),
        str(places["cwd"]),
        variable,
    )


class Verdict(NamedTuple):
    """ "" or why it does not load, whom that is said of, and the files that won."""

    failure: str
    name: str
    winners: frozenset[str]


def observed(tree: Tree, root: str) -> Verdict:
    """What ld.so does."""
    env = {"LD_LIBRARY_PATH": tree.variable} if tree.variable else {}
    command = [tree.program, tree.caller, root]
    ran = subprocess.run(command, env=env, cwd=tree.cwd, capture_output=True, encoding="utf-8")
    if ran.returncode == 0:
        paths = (os.path.realpath(os.path.join(tree.cwd, line)) for line in ran.stdout.splitlines() if line)
        ours = os.path.dirname(tree.caller)
        return Verdict("", "", frozenset(path for path in paths if path.startswith(ours) and path != tree.caller))
    error = _ERROR.match(ran.stdout)
    assert error, ran
    failure = next(failure for text, failure in _TEXTS.items() if text in error["text"])
    return Verdict(failure, os.path.basename(error["name"]), frozenset())


def expected(tree: Tree, root: str) -> tuple[Verdict, set[tuple[str, str]]]:
    """What the model says from what our collector sees; the second value is everything that fails."""
    environment = {"LD_LIBRARY_PATH": tree.variable}
    roots = [root, tree.caller]
    context = dlls.linux_context({"cwd": tree.cwd, "python": tree.program}, environment, roots)
    fact = dlls.linux_tree({}, roots, context, [], {})
    fact["roots"], fact["context"]["caller"] = [root], tree.caller
    resolution = resolve(fact)
    failed = {(entry.failure or "", os.path.basename(entry.name)) for entry in resolution.failed}
    if not resolution.complete:
        first = resolution.failed[0]
        return Verdict(str(first.failure), os.path.basename(first.name), frozenset()), failed
    real = (os.path.realpath(os.path.join(tree.cwd, entry.path)) for entry in resolution.entries if entry.path)
    return Verdict("", "", frozenset(real)), failed


def disagreements(seed: int, numbers: range, work: pathlib.Path, templates: Templates) -> list[str]:
    """Make and open these trees; a sentence for each load about which the two differ."""
    wrong = []
    for number in numbers:
        tree = make(seed, number, work / f"t{number}", templates)
        for root in tree.roots:
            real, (ours, failed) = observed(tree, root), expected(tree, root)
            if real != ours:
                wrong.append(f"tree {number}, {root}: ld.so {real}, model {ours} of {sorted(failed)}")
    return wrong


def main() -> int:
    """The command line; exit status 1 if there is a disagreement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch).resolve()
        wrong = disagreements(options.seed, range(options.trees), work, Templates(work / "templates"))
    print(*wrong[:20], f"{2 * options.trees} loads compared, {len(wrong)} disagreements", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
