"""Why a file that exists is not found, and which copy of a library is the wrong one."""

from __future__ import annotations

import ntpath
from collections.abc import Mapping, Sequence
from typing import Any

from tftriage import loader
from tftriage.facts import Facts
from tftriage.probes.base import UNKNOWN, Evidence, Finding, probe, unknown
from tftriage.probes.libraries import Lack, lack, lack_evidence
from tftriage.tables import Tables

NO_PATH_SINCE = (3, 8)  # from this Python on, PATH does not count for an extension's libraries (dynload_win.c)
_OPENMP = ("libiomp5md.dll", "libomp", "libgomp", "mkl_", "vcomp")


@probe(
    "search_rule",
    answers=("conda-inactive", "not-searched", "store", "nowhere"),
    needs=("dlls.tree", "target.interpreter", "cuda.toolkits"),
    fills=("dll", "folder", "python_version"),
)
def search_rule(facts: Facts, tables: Tables) -> Finding:
    """Why this Python does not find a file that the native module needs: which rule keeps it from looking there.

    Sample of ``target.interpreter`` (conda, started by its full path from an unactivated console)::

        {"executable": "C:\\\\conda\\\\envs\\\\tf\\\\python.exe", "version": [3, 7, 16], "prefix":
         "C:\\\\conda\\\\envs\\\\tf", "conda": true, "activated": false, "store": false}
    """
    tree: Mapping[str, Any] | None = facts.value("dlls.tree")
    if tree is None:
        return unknown(facts, "dlls.tree")
    interpreter: Mapping[str, Any] = facts.value("target.interpreter") or {}
    resolution = loader.resolve(tree)
    gone = {e.name.lower(): e for e in resolution.failed if e.failure == "absent"}
    lacks = [lack(e.name, e.importer, facts, e.unsearched) for e in gone.values()]
    if not lacks:
        return Finding(UNKNOWN, (Evidence("search.none-missing"),), reason="dlls.tree: no file is missing")
    if resolution.incomplete or resolution.unlisted:
        reason = "dlls.tree: not every folder was looked into"
        return Finding(UNKNOWN, (Evidence("search.not-everywhere"),), reason=reason)
    version = tuple(interpreter.get("version") or (tree.get("context") or {}).get("python") or ())
    shown = ".".join(map(str, version[:2])) or "?"
    lines = lack_evidence(lacks)
    found = [one for one in lacks if one.paths]
    if not found:
        return Finding("nowhere", tuple(lines), {"dll": lacks[0].name, "python_version": shown})
    folder = loader.folder(found[0].paths[0])
    values = {"dll": found[0].name, "folder": folder, "python_version": shown}
    if interpreter.get("store"):
        return Finding("store", (*lines, Evidence("search.store", {"folder": folder}, "bad")), values)
    if not interpreter:
        return Finding(UNKNOWN, tuple(lines), values, f"target.interpreter: {facts.why_not('target.interpreter')}")
    if _of_inactive_conda(interpreter, found):
        params = {"folder": folder, "prefix": str(interpreter.get("prefix"))}
        return Finding("conda-inactive", (*lines, Evidence("search.conda-inactive", params, "bad")), values)
    if loader.is_elf(tree):  # the rule of 3.8 is Windows' alone
        reason = f"dlls.tree: {found[0].name} lies in {folder}, which the dynamic loader does not search"
        return Finding(UNKNOWN, (*lines, Evidence("search.not-loaded-from", {"folder": folder}, "bad")), values, reason)
    if version >= NO_PATH_SINCE:
        on_path = _on_path(folder, (tree.get("context") or {}).get("path") or ())
        key = "search.path-ignored" if on_path else "search.not-added"
        params = {"folder": folder, "python_version": shown}
        return Finding("not-searched", (*lines, Evidence(key, params, "bad")), values)
    reason = f"dlls.tree: {found[0].name} lies in {folder}, which is not on PATH"
    return Finding(UNKNOWN, (*lines, Evidence("search.not-on-path", {"folder": folder}, "bad")), values, reason)


def _of_inactive_conda(interpreter: Mapping[str, Any], found: Sequence[Lack]) -> bool:
    """Whether the file lies in the environment's own folders, which count only once it is activated."""
    prefix = ntpath.normcase(str(interpreter.get("prefix") or "")).rstrip("\\")
    if not interpreter.get("conda") or interpreter.get("activated") is not False or not prefix:
        return False
    return any(ntpath.normcase(path).startswith(prefix + "\\") for one in found for path in one.paths)


def _on_path(folder: str, entries: Sequence[str]) -> bool:
    wanted = ntpath.normcase(ntpath.normpath(folder))
    return any(ntpath.normcase(ntpath.normpath(entry)) == wanted for entry in entries if entry)


@probe(
    "export_owner",
    answers=("cuda", "vc", "openmp", "other"),
    needs=("dlls.tree",),
    fills=("dll", "importer", "symbol", "found_version"),
)
def export_owner(facts: Facts, tables: Tables) -> Finding:
    """Which loaded file lacks a function that another one imports: that is error 127.

    Only the copy that wins the search counts; older copies elsewhere lack functions, too, and harm nobody.

    Sample of ``dlls.tree``::

        "missing_exports": [{"importer": "C:\\\\…\\\\_pywrap_tensorflow_internal.pyd", "dll":
         "C:\\\\py37\\\\msvcp140.dll", "count": 2, "names": ["?_Xlength_error@std@@YAXPEBD@Z"]}]
    """
    tree: Mapping[str, Any] | None = facts.value("dlls.tree")
    if tree is None:
        return unknown(facts, "dlls.tree")
    lacking: Sequence[Mapping[str, Any]] | None = tree.get("missing_exports")
    if lacking is None:
        reason = "dlls.tree: which functions the files export was not recorded"
        return Finding(UNKNOWN, (Evidence("export.not-recorded"),), reason=reason)
    winners = {_key(e.path): e for e in loader.resolve(tree).entries if e.path}
    guilty = [one for one in lacking if _key(one["dll"]) in winners]
    if not guilty:
        reason = "dlls.tree: every loaded file exports what the others import from it"
        return Finding(UNKNOWN, (Evidence("export.none"),), reason=reason)
    lines, owners = [], []
    for one in guilty:
        names = [str(name) for name in one.get("names") or ()] or ["?"]
        params = {"dll": one["dll"], "importer": loader.base(one["importer"]), "symbol": names[0]}
        lines.append(Evidence("export.lacks", {**params, "count": str(one.get("count") or len(names))}, "bad"))
        owners.append((_owner(one["dll"]), params))
    answer, params = min(owners, key=lambda pair: ("vc", "openmp", "cuda", "other").index(pair[0]))
    version = winners[_key(params["dll"])].version
    return Finding(answer, tuple(lines), {**params, **({"found_version": version} if version else {})})


def _key(path: str) -> str:
    return path if path.startswith("/") else ntpath.normcase(ntpath.normpath(path))


def _owner(path: str) -> str:
    name = loader.base(path).lower()
    if name.startswith(_OPENMP):
        return "openmp"
    kind = loader.library(name).kind
    return {"cuda": "cuda", "cudnn": "cuda", "vc-runtime": "vc"}.get(kind, "other")
