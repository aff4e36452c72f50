"""Where do the CUDA and cuDNN libraries of this build stand? The probe ``gpu_libraries`` and its search.

TensorFlow prints "X not found" for every cause. Here the live attempt (``tf.libraries``) says whether it
opens and the recorded files (``dlls.tree``, ``cuda.toolkits``) say why not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from tftriage import loader
from tftriage.facts import Facts
from tftriage.probes.base import UNKNOWN, Evidence, Finding, probe, unknown
from tftriage.tables import Tables

_NO_ELF = re.compile(r"wrong ELF class|file too short|invalid ELF header")
_NO_SO = re.compile(r"(\S+): cannot open shared object file")
_LOG_NAME = re.compile(r"(?:Could not load dynamic library|Could not dlopen library) '([^']+)'")


class Lack(msgspec.Struct, frozen=True):
    """A library that is wanted and not found by the search order.

    ``paths`` are good copies elsewhere on the machine, ``renamed`` files that are this library under another
    name, ``others`` files of the same family with another version in the name.
    """

    name: str
    importer: str = ""
    paths: tuple[str, ...] = ()
    renamed: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Its kind: ``driver``, ``cuda``, ``cudnn``, ``vc-runtime``, ``optional`` or ``other``."""
        return loader.library(self.name).kind


def lack(name: str, importer: str, facts: Facts, unsearched: Iterable[loader.Copy] = ()) -> Lack:
    """Look for ``name`` in everything that was recorded of the machine outside the search order."""
    tree: Mapping[str, Any] = facts.value("dlls.tree") or {}
    toolkits: Sequence[Mapping[str, Any]] = facts.value("cuda.toolkits") or ()
    wanted = loader.library(name)
    separator = "/" if name.startswith("lib") else "\\"
    here = [copy.path for copy in unsearched] + _under(tree.get("elsewhere"), name)
    seen = [path for paths in (tree.get("near") or {}).values() for path in paths]
    for at, names in (tree.get("folders") or {}).items():
        seen += [f"{at.rstrip(separator)}{separator}{member}" for member in names]
    seen += [path for paths in (tree.get("elsewhere") or {}).values() for path in paths]
    for kit in toolkits:
        at = kit.get("bin") or kit.get("folder") or ""
        for member in kit.get("libraries") or ():
            path = f"{at}{separator}{member}"
            seen.append(path)
            if member.lower() == name.lower():
                here.append(path)
    renamed = [path for path in _under(tree.get("near"), name) if _is_renamed(path, name, tree)]
    others = [path for path in seen if _other_version(path, wanted)]
    good = [path for path in here if _machine_fits(path, tree)]
    return Lack(name, importer, _unique(good), _unique(renamed), _unique(others))


def _under(table: Mapping[str, list[str]] | None, name: str) -> list[str]:
    return [path for key, paths in (table or {}).items() if key.lower() == name.lower() for path in paths]


def _unique(paths: Iterable[str]) -> tuple[str, ...]:
    first: dict[str, str] = {}
    for path in paths:
        first.setdefault(path.lower().replace("/", "\\"), path)
    return tuple(first.values())


def _header(path: str, tree: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((h for p, h in (tree.get("files") or {}).items() if p.lower() == path.lower()), {})


def _machine_fits(path: str, tree: Mapping[str, Any]) -> bool:
    header = _header(path, tree)
    bits = (tree.get("context") or {}).get("bits") or 64
    other = header.get("machine") == ("x86" if bits == 64 else "x64") or header.get("elf_class", bits) != bits
    return not other and not header.get("error")


def _is_renamed(path: str, name: str, tree: Mapping[str, Any]) -> bool:
    """Whether a file that looks like ``name`` is that library under a name nobody asks for."""
    file, wanted = loader.library(path), loader.library(name)
    if file.version and file.kind == wanted.kind:
        return False  # a proper name of another version
    version = _header(path, tree).get("cudnn_version") or ""
    major = version.split(".")[0]
    return _machine_fits(path, tree) and major in ("", wanted.version.split(".")[0])


def _other_version(path: str, wanted: loader.Library) -> bool:
    file = loader.library(path)
    return file.family == wanted.family and bool(file.version) and file.version != wanted.version


def sort_out(lacks: Sequence[Lack]) -> tuple[str, list[Lack]]:
    """The answer for missing CUDA and cuDNN libraries and the ones it is about; ``""`` when none is missing.

    CUDA comes first: cuDNN needs it, and both are usually cured together.
    """
    cuda = [one for one in lacks if one.kind == "cuda"]
    if cuda:
        lost = [one for one in cuda if not one.paths]
        if not lost:
            return "cuda-elsewhere", cuda
        return ("cuda-other-version" if any(one.others for one in lost) else "cuda-missing"), lost
    cudnn = [one for one in lacks if one.kind == "cudnn"]
    lost = [one for one in cudnn if not one.paths]
    if not cudnn:
        return "", []
    if not lost:
        return "cudnn-elsewhere", cudnn
    return ("cudnn-renamed" if any(one.renamed for one in lost) else "cudnn-missing"), lost


def lack_evidence(lacks: Sequence[Lack]) -> list[Evidence]:
    """What was seen of the missing libraries: where copies are, and which files come near; alike ones on one line."""
    missing: dict[str, list[str]] = {}
    seen: dict[tuple[str, str], list[str]] = {}
    for one in lacks:
        missing.setdefault(one.importer or "", []).append(one.name)
        if one.paths:
            where = ("dll.elsewhere", loader.folder(one.paths[0]))
        elif one.renamed:
            where = ("dll.renamed", one.renamed[0])
        elif one.others:
            where = ("dll.other-version", one.others[0])
        else:
            where = ("dll.nowhere", "")
        seen.setdefault(where, []).append(one.name)
    lines: list[Evidence] = []
    for importer, names in missing.items():
        params = {"dll": ", ".join(names)}
        key = "dll.missing-for" if importer else "dll.missing"
        lines.append(Evidence(key, {**params, "importer": importer} if importer else params, "bad"))
    for (key, path), names in seen.items():
        lines.append(Evidence(key, {"dll": ", ".join(names), "path": path} if path else {"dll": ", ".join(names)}))
    return lines


def lack_values(lacks: Sequence[Lack], chosen: Sequence[Lack], facts: Facts, tables: Tables) -> dict[str, str]:
    """The placeholders of a finding about missing libraries; ``chosen`` are those the answer is about."""
    first = chosen[0]
    values = {"missing": ", ".join(one.name for one in lacks), "dll": first.name}
    if first.importer:
        values["importer"] = first.importer
    at = _folders(chosen)
    if at:
        values["folder"] = at[0]
        values["folders"] = (";" if "\\" in at[0] else ":").join(_folders(lacks))
    near = [path for one in chosen for path in one.renamed]
    if near:
        values["near"] = near[0]
    values["wanted_version"] = _wanted(first, facts, tables)
    others = [path for one in chosen for path in one.others]
    if others:
        values["found_version"] = ", ".join(_unique(_version_of(path, facts) for path in others))
    return values


def _folders(lacks: Sequence[Lack]) -> list[str]:
    """The fewest folders that hold all the libraries, the one with most of them first."""
    left, chosen = (
        {one.name: _unique(loader.folder(p) for p in one.paths) for one in lacks if one.paths},
        list[str](),
    )
    while left:
        count = Counter(at for folders in left.values() for at in folders)
        best = count.most_common(1)[0][0]
        chosen.append(best)
        left = {name: folders for name, folders in left.items() if best not in folders}
    return chosen


def _wanted(one: Lack, facts: Facts, tables: Tables) -> str:
    """The CUDA or cuDNN version that this TensorFlow wants; else what the file name says."""
    package = facts.value("tf.package") or {}
    system = "Linux" if one.name.startswith("lib") else "Windows"
    build = tables.build(package.get("version"), system)
    recorded = (package.get("build_info") or {}).get("cudnn_version" if one.kind == "cudnn" else "cuda_version")
    known = (build.cudnn if one.kind == "cudnn" else build.cuda) if build else None
    said = str(recorded or "").removeprefix("64_")  # Windows wheels write "64_101"
    return known or _spoken(said or loader.library(one.name).version) or "?"


def _version_of(path: str, facts: Facts) -> str:
    """The version of the toolkit that a file belongs to, else what its name says."""
    at = loader.folder(path).lower()
    kits = facts.value("cuda.toolkits") or ()
    kit = next((k for k in kits if k.get("folder") and at.startswith(k["folder"].lower())), None)
    file = loader.library(path)
    return str(kit["version"]) if kit and file.kind == "cuda" else _spoken(file.version)


def _spoken(version: str) -> str:
    """A version as people write it: ``101`` is 10.1; ``10`` stays 10, because the name says no more."""
    return f"{version[:-1]}.{version[-1]}" if re.fullmatch(r"(1\d\d|[5-9]\d)", version) else version


@probe(
    "gpu_libraries",
    answers=(
        "all-found", "cuda-elsewhere", "cudnn-elsewhere", "cudnn-renamed", "cudnn-missing",
        "cuda-other-version", "cuda-missing", "wrong-machine", "child-missing",
    ),
    needs=("tf.libraries", "dlls.tree", "cuda.toolkits", "tf.gpus", "tf.package"),
    fills=("missing", "folder", "folders", "found_version", "wanted_version", "dll", "near", "importer"),
)  # fmt: skip
def gpu_libraries(facts: Facts, tables: Tables) -> Finding:
    """Which of the libraries that this build opens by name cannot be opened, and why.

    Sample of ``tf.libraries`` (TensorFlow 2.3.1, a 32-bit cuDNN first on PATH; TensorFlow itself only printed
    ``Could not load dynamic library 'cudnn64_7.dll'; dlerror: cudnn64_7.dll not found``)::

        {"opened": [{"name": "cudart64_101.dll", "code": 0, "error": null,
                     "path": "C:\\\\cuda\\\\bin\\\\cudart64_101.dll"},
                    {"name": "cudnn64_7.dll", "code": 193, "path": null, "error": "Bad EXE format for %1."}]}
    """
    tree = facts.value("dlls.tree")
    entries = _static(tree) if tree else {}
    failing, opened = _outcome(facts, entries)
    if not failing and not opened:
        if not facts.ok("tf.libraries"):
            return unknown(facts, "tf.libraries")
        reason = "tf.libraries: it is not known which libraries this build opens"
        return Finding(UNKNOWN, (Evidence("lib.no-names"),), reason=reason)
    lines = [Evidence("lib.opened", {"count": str(len(opened)), "names": ", ".join(opened)}, "ok")] if opened else []
    needed = [one for one in failing if loader.library(one["name"]).kind != "driver"]
    lines += [Evidence("lib.driver", {"dll": one["name"]}) for one in failing if one not in needed]
    if not needed:
        return Finding("all-found", tuple(lines))
    names = {one["name"].lower() for one in needed}
    lacks: list[Lack] = []
    verdicts: list[Finding] = []
    lines += _attempts(needed)
    for one in needed:
        verdict = _verdict(one, entries.get(one["name"], ()), facts, lacks)
        if verdict is None or verdict.values["dll"].lower() in names - {one["name"].lower()}:
            continue  # absent (judged below), or the victim of another one in this list
        verdicts.append(verdict)
    answer, chosen = sort_out(lacks)
    lines += lack_evidence(lacks)
    if answer and (tree is not None or answer.endswith(("-elsewhere", "-other-version"))):
        verdicts.append(Finding(answer, (), lack_values(lacks, chosen, facts, tables)))
    elif answer:  # it is not on the search path, and nobody looked elsewhere
        verdicts.append(unknown(facts, "dlls.tree"))
    best = min(verdicts, key=lambda finding: _ORDER.get(finding.answer, 3))
    lines += [line for finding in verdicts for line in finding.evidence]
    missing = {"missing": ", ".join(one["name"] for one in needed)}
    return msgspec.structs.replace(best, evidence=tuple(lines), values={**missing, **best.values})


_ORDER = {"wrong-machine": 0, "child-missing": 1, "cuda-other-version": 2, UNKNOWN: 9}


def _outcome(facts: Facts, entries: Mapping[str, Sequence[loader.Entry]]) -> tuple[list[Mapping[str, Any]], list[str]]:
    """What does not open and what does: by trying it, else by TensorFlow's log, else by the loader model."""
    live: list[Mapping[str, Any]] | None = (facts.value("tf.libraries") or {}).get("opened")
    if live is not None:
        needed = [one for one in live if loader.library(one["name"]).kind != "optional"]
        failing = [one for one in needed if one.get("code") or (one.get("code") is None and one.get("error"))]
        return failing, [one["name"] for one in needed if one not in failing]
    log = str((facts.value("tf.gpus") or {}).get("log") or "")
    named = dict.fromkeys(n for n in _LOG_NAME.findall(log) if loader.library(n).kind != "optional")
    lost = list(named) or [name for name, found in entries.items() if found[0].failure]
    return [{"name": name} for name in lost], [n for n, found in entries.items() if n not in lost and not named]


def _attempts(needed: Sequence[Mapping[str, Any]]) -> list[Evidence]:
    """What trying to open them gave: those with the same code on one line."""
    codes: dict[str, list[str]] = {}
    for one in needed:
        if one.get("code"):
            codes.setdefault(str(one["code"]), []).append(one["name"])
    lines = [Evidence("lib.failed", {"dll": ", ".join(names), "code": code}, "bad") for code, names in codes.items()]
    texts = [one for one in needed if one.get("error") and not one.get("code")]
    return lines + [
        Evidence("lib.failed-text", {"dll": one["name"], "error": str(one["error"])}, "bad") for one in texts
    ]


def _static(tree: Mapping[str, Any]) -> dict[str, tuple[loader.Entry, ...]]:
    """What the loader model makes of the libraries opened by name (the roots that are bare names)."""
    resolution = loader.resolve(tree)
    bare = [root for root in resolution.places if not loader.folder(root)]
    return {root: resolution.of(root) for root in bare if loader.library(root).kind != "optional"}


def _verdict(
    one: Mapping[str, Any], entries: Sequence[loader.Entry], facts: Facts, lacks: list[Lack]
) -> Finding | None:
    """Why one library does not open; what is simply absent goes to ``lacks``, judged with the others."""
    name, code, error = one["name"], one.get("code"), str(one.get("error") or "")
    root = entries[0] if entries else None
    guilty = next((e for e in entries if e.failure not in (None, "child-absent") and not e.optional), None)
    if code == 193 or _NO_ELF.search(error) or (guilty and guilty.failure in ("wrong-machine", "not-a-pe")):
        file = (guilty.path if guilty else None) or one.get("path") or name
        return Finding("wrong-machine", (Evidence("dll.wrong-machine", {"path": file}, "bad"),), {"dll": file})
    if code == 127 or "undefined symbol" in error or (guilty and guilty.failure == "export-missing"):
        values = {"dll": name, "wanted_version": "?", "found_version": "?"}
        return Finding("cuda-other-version", (Evidence("lib.other-exports", {"dll": name}, "bad"),), values)
    told = _NO_SO.search(error)
    child = told[1] if told and told[1] != name else guilty.name if guilty and guilty is not root else None
    if child is not None:
        values = {"dll": child, "importer": guilty.importer if guilty and guilty.importer else name}
        return Finding("child-missing", (Evidence("dll.missing-for", values, "bad"),), values)
    if (root is None or root.failure == "absent") and code in (None, 126):
        lacks.append(lack(name, "", facts, root.unsearched if root else ()))
        return None
    shown = str(code or error)
    line = Evidence("lib.unexplained", {"dll": name, "code": shown, "path": (root and root.path) or name}, "bad")
    reason = f"tf.libraries: {name} does not open ({shown}), and the files do not say why"
    return Finding(UNKNOWN, (line,), {"dll": name}, reason)
