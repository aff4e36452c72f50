"""Does the loader model agree with a real loader? Random trees, loaded by Windows Python under Wine.

By hand, from the repository's root:

    python -m tests.lab.agreement --trees 2000 [--seed 1] [--python 3.8 3.11]

Every tree is loaded in six ways (``treechild.WAYS``). Compared are the error code, the file that wins for each
name, the set of libraries that cannot be loaded, and the order in which initialisers run.
"""

from __future__ import annotations

import argparse
import json
import ntpath
import pathlib
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import labtools  # noqa: E402
import trees  # noqa: E402
from treedlls import Templates  # noqa: E402

from tftriage.loader import Entry, Via, base, resolve  # noqa: E402

REPOSITORY = HERE.parent.parent
BATCH = 100  # trees a process
# How each way of loading is put to the model: which root, ``via``, and whether as Python 3.7 would do it.
WAYS: dict[str, tuple[str, Via | None, bool]] = {
    "altered": ("root", "extension", True),
    "plain": ("root", "ctypes", True),
    "ctypes": ("root", "ctypes", False),
    "runtime": ("bare", None, False),
    "ctypes-bare": ("bare", "ctypes", False),
    "import": ("pyd", None, False),
}
_MARK = re.compile(r"^mark (\S+) (\S+)$", re.MULTILINE)
_LOADED = re.compile(r'loaddll:build_module Loaded L"((?:[^"\\]|\\.)*)"')
_BLAMED = re.compile(r"(?:Library (\S+) \(which is needed by .*?\) not found|Loading library (\S+) \(which is needed)")
_OURS = re.compile(r"[\\/](?:cudnn64_)?t\d+_[^\\/]+$", re.IGNORECASE)
_ATTACH = re.compile(r"^attach (.+?)\r?$", re.MULTILINE)


class Verdict(NamedTuple):
    """What became of one load; paths and names in lower case."""

    code: int
    winners: frozenset[str]
    blamed: frozenset[str]
    order: tuple[str, ...]
    ignored: frozenset[str] = frozenset()


# ---------------------------------------------------------------- where Wine differs from Windows


def as_wine_sees(tree: dict[str, Any], root: str) -> dict[str, Any]:
    """A recorded tree changed so that the model answers as Wine 8 does. The whole list of differences:

    - Windows refuses a module whose import the DLL does not export (127); Wine plants a stub and goes on.
    - Windows stops at the first file of a name, whatever is in it (193); Wine passes over one of another machine
      type and searches on (with nothing else of that name it says 193 after all, but only of what was asked for).
    - Of libraries that import each other and of which one fails, Wine leaves the other loaded, because it found the
      first in its list before that had failed; so the members of a cycle are not compared then (``_circular``).
    - Windows hands the cause of a failed dependency up (193, 127, 5); Wine always says 126 (see ``expected``).

    What Windows does is the rule of the model; tests/loader/test_windows.py tests those rules without a loader.
    """
    alien = {ntpath.normcase(path) for path, header in tree["files"].items() if header["machine"] == "x86"}
    alien.discard(ntpath.normcase(root))
    folders = {
        folder: [name for name in names if ntpath.normcase(ntpath.join(folder, name)) not in alien]
        for folder, names in tree["folders"].items()
    }
    files = {path: header for path, header in tree["files"].items() if ntpath.normcase(path) not in alien}
    return {**tree, "roots": [root], "folders": folders, "files": files, "missing_exports": []}


# ---------------------------------------------------------------- the two verdicts


def expected(tree: dict[str, Any], plan: Mapping[str, Any], way: str, failing: Iterable[str]) -> Verdict:
    """The model's verdict, for Wine. ``failing``: files whose initialiser fails, which no header tells."""
    kind, via, old = WAYS[way]
    root = plan[kind]
    seen = as_wine_sees(tree, root)
    seen["context"] = {**tree["context"], "loaded": plan["preload"]}
    if old:
        seen["context"]["python"] = [3, 7]
    resolution = resolve(seen, via=via)
    entries = [entry for entry in resolution.entries if not entry.optional]
    first = entries[0]
    own = [e for e in entries if e.path and e.rule not in ("loaded", "known-dll", "api-set")]
    won = frozenset(ntpath.normcase(ntpath.normpath(e.path)) for e in own if e.path and not e.failure)
    lost = frozenset(e.name.lower() for e in entries[1:] if e.failure)
    order = tuple(name.lower() for name in resolution.starts[root])
    if first.failure:
        alone = resolve({**tree, "context": seen["context"], "roots": [root]}, via=via).entries[0].failure
        alien = "wrong-machine" in (first.failure, alone if first.failure == "absent" else None)
        code = 193 if alien or first.failure == "not-a-pe" else 126
        return Verdict(code, won, lost, (), _circular(entries, seen["files"]))
    where = {e.name.lower(): ntpath.normcase(e.path) for e in own if e.path}
    bad = {ntpath.normcase(path) for path in failing}
    stop = next((at for at, name in enumerate(order) if where.get(name) in bad), None)
    return Verdict(0 if stop is None else 1114, won, lost, order if stop is None else order[: stop + 1])


def _circular(entries: Iterable[Entry], files: Mapping[str, Any]) -> frozenset[str]:
    """The names that import themselves in the end."""
    imports = {e.name.lower(): {n.lower() for n in files[e.path]["imports"]} for e in entries if e.path in files}
    circular = set()
    for name in imports:
        reached, line = set[str](), [name]
        while line:
            new = imports.get(line.pop(), set()) - reached
            reached |= new
            line += new
        if name in reached:
            circular.add(name)
    return frozenset(circular)


def without(verdict: Verdict, names: frozenset[str]) -> Verdict:
    """A verdict that does not mention these libraries."""
    winners = frozenset(path for path in verdict.winners if base(path).lower() not in names)
    return verdict._replace(winners=winners, blamed=verdict.blamed - names)


def observed(code: Any, text: str) -> Verdict:
    """Wine's verdict: the code that Python got, and what the loader and the DLLs printed meanwhile."""
    paths = map(_unwine, _LOADED.findall(text))
    won = frozenset(ntpath.normcase(ntpath.normpath(path)) for path in paths if _OURS.search(path))
    lost = frozenset(name.lower() for pair in _BLAMED.findall(text) for name in pair if name)
    order = tuple(name.lower() for name in _ATTACH.findall(text))
    return Verdict(code, won, lost, order)


def _unwine(text: str) -> str:
    r"""Wine writes ``\4e2d`` for a character that is not ASCII, and doubles a backslash."""
    return re.sub(r"\\(?:\\|([0-9a-f]{4}))", lambda match: chr(int(match[1], 16)) if match[1] else "\\", text)


# ---------------------------------------------------------------- the run


class Disagreement(NamedTuple):
    """One load about which the two do not agree."""

    python: str
    number: int
    way: str
    model: Verdict
    wine: Verdict

    def __str__(self) -> str:
        lines = [f"Python {self.python}, tree {self.number}, {self.way}:"]
        for name, ours, theirs in list(zip(Verdict._fields, self.model, self.wine, strict=True))[:4]:
            if ours != theirs:
                lines.append(f"  {name}: model {_shown(ours)}, Wine {_shown(theirs)}")
        return "\n".join(lines)


def _shown(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else value


def compare(
    prefix: pathlib.Path,
    python: pathlib.Path,
    version: str,
    templates: Templates,
    work: pathlib.Path,
    seed: int,
    numbers: range,
) -> tuple[int, list[Disagreement]]:
    """Make these trees, load them with this Python in this Windows; (loads compared, disagreements)."""
    windows = prefix / "drive_c" / "windows"
    fixed = {"app": python.parent, "system32": windows / "system32", "windows": windows}
    made = {number: trees.generate(seed, number, version, templates) for number in numbers}
    places = {number: trees.places_of(tree, work, fixed) for number, tree in made.items()}
    plans = {number: trees.plan(tree, places[number]) for number, tree in made.items()}
    for number, tree in made.items():
        trees.write(tree, places[number])
    (work / "plan.jsonl").write_text("".join(json.dumps(plan) + "\n" for plan in plans.values()), encoding="utf-8")
    env = {"WINEDEBUG": "-all,err+module,trace+loaddll", "PYTHONPATH": labtools.wine_path(REPOSITORY),
           "PYTHONUTF8": "1", "LC_ALL": "C.UTF-8"}  # fmt: skip
    script = [python, HERE / "treechild.py", work / "plan.jsonl", work / "out.jsonl"]
    ran = labtools.run_wine(prefix, script, env, timeout=580)
    if ran.code != 0:
        raise RuntimeError(f"the Windows Python ended with {ran.code}: {ran.text[-3000:]}")
    printed = _pieces(ran.err)
    loads, wrong = 0, list[Disagreement]()
    for line in (work / "out.jsonl").read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        number = told["number"]
        assert told["held"], f"tree {number}: the copy to be loaded beforehand does not load"
        at = {place: labtools.wine_path(folder) for place, folder in places[number].items()}
        context = told["tree"]["context"]
        at |= {"app": context["python_folder"], "system32": context["system32"], "windows": context["windows"]}
        bad = [ntpath.join(at[place], name) for place, name in made[number].failing]
        for way in WAYS:
            ours = expected(told["tree"], plans[number], way, bad)
            theirs = observed(told["codes"][way], printed[str(number), way])
            loads += 1
            ours, theirs = without(ours, ours.ignored), without(theirs, ours.ignored)
            if ours[:4] != theirs[:4]:
                wrong.append(Disagreement(version, number, way, ours, theirs))
    for number, tree in made.items():
        for place, name in tree.files:
            (places[number][place] / name).unlink()
        shutil.rmtree(work / f"t{number}")
    return loads, wrong


def _pieces(text: str) -> dict[tuple[str, str], str]:
    """What was printed during each load: (number, way) → text."""
    marks = list(_MARK.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return {(mark[1], mark[2]): text[mark.end() : end] for mark, end in zip(marks, ends, strict=True)}


def clone(lab: pathlib.Path, prefix: pathlib.Path, version: str) -> pathlib.Path:
    """A Python of its own on drive C:, because files are put into the program's folder."""
    target = prefix / "drive_c" / f"agree{version}"
    if not target.is_dir():
        source = lab / "win" / f"py{version}"
        target.mkdir()
        for item in source.iterdir():
            if item.is_file():
                shutil.copy2(item, target)
        shutil.copytree(source / "Lib", target / "Lib", ignore=shutil.ignore_patterns("site-packages"))
    return target / "python.exe"


def main(arguments: list[str] | None = None) -> int:
    """The command line: prints each disagreement, exit status 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--python", nargs="+", default=["3.8", "3.11"])
    options = parser.parse_args(arguments)
    lab, loads, wrong = labtools.lab_folder(), 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        work, prefix = pathlib.Path(scratch), pathlib.Path(scratch, "windows")
        shutil.copytree(lab / "win" / "prefix", prefix, symlinks=True)
        templates = Templates(work / "templates")
        try:
            for start in range(options.first, options.first + options.trees, BATCH):
                numbers = range(start, min(start + BATCH, options.first + options.trees))
                for version in options.python:
                    python = clone(lab, prefix, version)
                    count, found = compare(prefix, python, version, templates, work, options.seed, numbers)
                    loads, wrong = loads + count, wrong + len(found)
                    print(*found, f"{loads} loads compared, {wrong} disagreements", sep="\n", flush=True)
        finally:
            labtools.stop_wine(prefix)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
