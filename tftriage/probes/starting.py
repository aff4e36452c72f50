"""Why a library that was found refuses to start (1114)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tftriage import loader
from tftriage.facts import Facts
from tftriage.probes.base import UNKNOWN, Evidence, Finding, probe, unknown
from tftriage.tables import Tables, parse

# Packages that bring an OpenMP, MKL or CUDA runtime of their own; loaded first, theirs is the one in the process.
_FIRST = re.compile(
    r"^[ \t>.\d-]*(?:import|from) (?P<module>torch|cv2|onnxruntime|mxnet|paddle|PyQt5|PySide2|numba|faiss|xgboost)\b",
    re.MULTILINE,
)
_TENSORFLOW = re.compile(r"^[ \t>.\d-]*(?:import|from) (?:tensorflow|keras)\b", re.MULTILINE)


@probe(
    "init_cause",
    answers=("old-runtime", "import-order", "none"),
    needs=("dlls.tree", "tf.package", "tf.import", "paste.text"),
    fills=("dll", "found_version", "wanted_version", "module"),
)
def init_cause(facts: Facts, tables: Tables) -> Finding:
    """Whether the Visual C++ runtime that is loaded is older than the build's linker, or another package came first.

    Sample of ``dlls.tree`` (TensorFlow 2.10, linked with 14.29; conda's own runtime lies beside python.exe)::

        "files": {"C:\\\\conda\\\\msvcp140.dll": {"machine": "x64", "file_version": "14.16.27033.0", …}}
    """
    text = str((facts.value("paste.text") or {}).get("text") or "")
    first, ours = _FIRST.search(text), _TENSORFLOW.search(text)
    if (facts.value("tf.import") or {}).get("ok") and first and ours and first.start() < ours.start():
        module = first["module"]
        return Finding("import-order", (Evidence("init.order", {"module": module}, "bad"),), {"module": module})
    tree: Mapping[str, Any] | None = facts.value("dlls.tree")
    if tree is None:
        return unknown(facts, "dlls.tree")
    version = str((facts.value("tf.package") or {}).get("version") or "")
    floor = linker_of(version, tables)
    copies = {e.path: e.version for e in loader.resolve(tree).entries if e.path and e.version and _is_runtime(e.name)}
    if floor is None or not copies:
        shown = {"tf_version": version or "?"}
        reason = "dlls.tree: the version of the Visual C++ runtime, or the one that this build needs, is not known"
        return Finding(UNKNOWN, (Evidence("init.runtime-unknown", shown),), reason=reason)
    needed = parse(floor)
    for path, have in sorted(copies.items()):
        found = parse(".".join(have.split(".")[:2]))
        if found is not None and needed is not None and found < needed:
            values = {"dll": path, "found_version": have, "wanted_version": floor}
            return Finding("old-runtime", (Evidence("init.runtime-old", values, "bad"),), values)
    shown = {"versions": ", ".join(sorted(set(copies.values()))), "wanted_version": floor}
    return Finding("none", (Evidence("init.runtime-fits", shown, "ok"),), {"wanted_version": floor})


def _is_runtime(name: str) -> bool:
    return loader.library(name).kind == "vc-runtime"


def linker_of(version: str, tables: Tables) -> str | None:
    """The linker of the wheel, for builds with and without GPU code; the exact version first, then its series."""
    rows = [row for row in tables.builds if row.system == "Windows" and row.vc_floor]
    series = ".".join(version.split(".")[:2])
    for wanted in (version, series):
        for row in rows:
            if row.version == wanted:
                return row.vc_floor
    near = [row for row in rows if row.version.split(".")[:2] == series.split(".")]
    return near[0].vc_floor if near and series else None
