"""Which copy of a library did a running Python really load?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tftriage import loader
from tftriage.facts import Facts
from tftriage.probes.base import Evidence, Finding, probe, unknown
from tftriage.probes.context import same_path
from tftriage.tables import Tables

_KINDS = ("cuda", "cudnn", "driver")


@probe(
    "loaded_copies",
    answers=("as-expected", "other-copy", "none"),
    needs=("process.modules", "dlls.tree", "target.interpreter"),
    fills=("dll", "folder", "pid"),
)
def loaded_copies(facts: Facts, tables: Tables) -> Finding:
    """Whether the target's running processes (a kernel, a script) loaded the copies that the search order names.

    A kernel keeps what it loaded, and the PATH it was started with, until it is restarted.

    Sample of ``process.modules``::

        {"processes": [{"pid": 4312, "python": "C:\\\\envs\\\\tf\\\\python.exe", "kernel": true, "modules":
         ["C:\\\\CUDA\\\\v10.0\\\\bin\\\\cudart64_100.dll", "C:\\\\old\\\\cudnn64_7.dll"]}]}
    """
    running: Mapping[str, Any] | None = facts.value("process.modules")
    if running is None:
        return unknown(facts, "process.modules")
    interpreter = facts.value("target.interpreter")
    if interpreter is None:
        return unknown(facts, "target.interpreter")
    python = str(interpreter.get("executable") or "")
    mine = [one for one in running["processes"] if same_path(str(one["python"]), python)]
    loaded = [(one, path) for one in mine for path in one["modules"] if loader.library(path).kind in _KINDS]
    if not loaded:
        return Finding("none", (Evidence("running.none"),))
    tree = facts.value("dlls.tree")
    if tree is None:
        return unknown(facts, "dlls.tree")
    winners = [_real(entry.path, tree) for entry in loader.resolve(tree).entries if entry.path]
    wins = {loader.base(path).lower(): path for path in winners}
    lines, others = [], []
    for process, path in loaded:
        params = {"dll": loader.base(path), "path": path, "pid": str(process["pid"])}
        winner = wins.get(loader.base(path).lower())
        if winner is not None and not same_path(winner, path):
            lines.append(Evidence("running.other", {**params, "winner": winner}, "bad"))
            others.append(params)
        else:
            lines.append(Evidence("running.loaded", params, "ok"))
    if not others:
        return Finding("as-expected", tuple(lines))
    first = others[0]
    values = {"dll": first["dll"], "folder": loader.folder(first["path"]), "pid": first["pid"]}
    return Finding("other-copy", tuple(sorted(lines, key=lambda line: line.level != "bad")), values)


def _real(path: str, tree: Mapping[str, Any]) -> str:
    """The file behind a link: Linux says of libcudnn.so.7 that libcudnn.so.7.6.5 is loaded."""
    return ((tree.get("files") or {}).get(path) or {}).get("real") or path
