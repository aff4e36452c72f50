"""Random trees of DLLs, seeded: which copies lie where, who imports whom, what is wrong with them."""

from __future__ import annotations

import ntpath
import pathlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from labtools import wine_path
from treedlls import SLOTS, Templates

PLACES = {  # where a copy lies, and how often
    "own": 30, "app": 8, "add0": 9, "add1": 6, "system32": 7, "windows": 5, "cwd": 8, "path0": 12, "path1": 7,
    "path2": 4, "nowhere": 4,
}  # fmt: skip
KINDS = {"good": 84, "x86": 5, "text": 2, "empty": 1, "cut": 1, "fail": 5, "lacks": 2}
FOLDERS = ("{}", "{} x", "目录 {}", "Ünï {}", "{}；分", "{}.d", "{} (1)")
STYLES = ("plain", "plain", "plain", "slash", "forward", "relative", "upper", "dot", "quoted", "variable")


@dataclass
class Tree:
    """One tree: files (place, name) → bytes, and how the loader is to be asked."""

    number: int
    python: str
    files: dict[tuple[str, str], bytes] = field(default_factory=dict)
    failing: set[tuple[str, str]] = field(default_factory=set)
    folders: dict[str, str] = field(default_factory=dict)  # place → name of its folder
    styles: dict[str, str] = field(default_factory=dict)
    noise: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    preload: list[tuple[str, str]] = field(default_factory=list)
    bare: str = ""


def generate(seed: int, number: int, python: str, templates: Templates) -> Tree:
    """Tree ``number`` of a seed; ``python`` ("3.8") only decides which python DLL its extension module imports."""
    dice = random.Random(f"{seed}/{number}")
    tree = Tree(number, python)
    # "cudnn64_": in the folders of Windows itself the collector follows only libraries of that kind
    names = [f"cudnn64_t{number}_{letter}.dll" for letter in "abcdef"[: dice.randint(1, 6)]]
    for place in PLACES:
        tree.folders[place] = dice.choice(FOLDERS).format(place)
        tree.styles[place] = dice.choice(STYLES)
    tree.added = dice.sample(["add0", "add1"], dice.choice((0, 1, 1, 2)))
    tree.noise = dice.sample(["", "Z:\\no such folder", "relative\\gone", "%NOT_SET%", "C:\\windows\\win.ini"], 2)
    plain = dice.random() < 0.4  # a tree in which nothing is broken by itself: only the search order decides
    for at, name in enumerate(names):
        _copies(dice, tree, names, at, plain, templates)
        if dice.random() < 0.06:
            _preload(tree, name, templates)
    imports, late, lacking = _imports(dice, names, -1)
    for suffix, python_dll in (("dll", None), ("pyd", f"python{python.replace('.', '')}.dll")):
        content = templates.dll(imports, late=late, python=python_dll, lacking=lacking)
        tree.files["own", f"t{number}_root.{suffix}"] = content
    tree.bare = dice.choice([*names, f"t{number}_root.dll"])
    return tree


def _copies(dice: random.Random, tree: Tree, names: list[str], at: int, plain: bool, templates: Templates) -> None:
    count = dice.choices((0, 1, 2, 3), (6, 60, 24, 10))[0]
    places = set(dice.choices(list(PLACES), list(PLACES.values()), k=count))
    if {"add0", "add1"} <= places:
        places.remove("add1")  # the order among added folders is unspecified (AddDllDirectory)
    for place in sorted(places):
        kind = "good" if plain else dice.choices(list(KINDS), list(KINDS.values()))[0]
        imports, late, lacking = _imports(dice, names, at)
        spelled = dice.choice((names[at], names[at], names[at].upper(), names[at].title()))
        good = templates.dll(imports, late=late, fail=kind == "fail", lacking=lacking if kind == "lacks" else None)
        content = {"x86": templates.x86, "text": b"not a dll\n" * 9, "empty": b"", "cut": good[:1500]}.get(kind, good)
        tree.files[place, spelled] = content
        if kind == "fail":
            tree.failing.add((place, spelled))


def _imports(dice: random.Random, names: list[str], at: int) -> tuple[list[str], str | None, int | None]:
    """What module ``at`` imports: later ones, now and then an earlier one, so that there are cycles."""
    later = names[at + 1 :]
    chosen = dice.sample(later, min(len(later), dice.randint(1 if at < 0 else 0, SLOTS)))
    if at > 0 and len(chosen) < SLOTS and dice.random() < 0.12:
        chosen.append(names[dice.randrange(at)])
    late = dice.choice(names) if dice.random() < 0.2 else None
    written = [name.upper() if dice.random() < 0.2 else name for name in chosen]
    return written, late, (dice.randrange(len(written)) if written and at >= 0 else None)


def _preload(tree: Tree, name: str, templates: Templates) -> None:
    """The program has loaded a copy of that name from a folder that is never searched."""
    tree.files = {key: raw for key, raw in tree.files.items() if key[0] != "nowhere" or key[1].lower() != name}
    tree.failing = {key for key in tree.failing if key in tree.files}
    tree.files["nowhere", name] = templates.dll()
    tree.preload.append(("nowhere", name))


def places_of(tree: Tree, work: pathlib.Path, fixed: Mapping[str, pathlib.Path]) -> dict[str, pathlib.Path]:
    """Each place's folder on this machine; ``fixed``: app, system32 and windows, which all trees share."""
    return {place: fixed.get(place, work / f"t{tree.number}" / name) for place, name in tree.folders.items()}


def write(tree: Tree, places: Mapping[str, pathlib.Path]) -> None:
    """Make the folders and files."""
    for folder in places.values():
        folder.mkdir(parents=True, exist_ok=True)
    for (place, name), content in tree.files.items():
        (places[place] / name).write_bytes(content)


def plan(tree: Tree, places: Mapping[str, pathlib.Path]) -> dict[str, Any]:
    """What ``treechild`` is told."""
    folders = {place: wine_path(folder) for place, folder in places.items()}
    cwd = folders["cwd"]
    root = ntpath.join(folders["own"], f"t{tree.number}_root.")
    entries = [_styled(folders[place], tree.styles[place], cwd) for place in ("path0", "path1", "path2")]
    return {
        "number": tree.number,
        "root": root + "dll",
        "pyd": root + "pyd",
        "bare": tree.bare,
        "names": sorted({name.lower() for _, name in tree.files}),
        "cwd": cwd,
        "path": ";".join([tree.noise[0], entries[0], tree.noise[1], *entries[1:]]),
        "added": [folders[place] for place in tree.added],
        "preload": [ntpath.join(folders[place], name) for place, name in tree.preload],
    }


def _styled(folder: str, style: str, cwd: str) -> str:
    return {
        "slash": folder + "\\",
        "forward": folder.replace("\\", "/"),
        "relative": ntpath.relpath(folder, cwd),
        "upper": "z:" + folder[2:],
        "dot": folder + "\\.\\",
        "quoted": f'"{folder}"',
        "variable": "%SystemRoot%\\..\\" + folder[3:],
    }.get(style, folder)
