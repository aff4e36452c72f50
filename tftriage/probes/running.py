"""Kernels that run now: the environment that they really have, not the one that a file promises."""

from __future__ import annotations

import re
from typing import Any

from tftriage.facts import Facts
from tftriage.probes.base import Evidence, Finding, probe, unknown
from tftriage.probes.context import same_path
from tftriage.probes.jupyter import runs_target
from tftriage.tables import Tables

SHOWN = 3  # loaded libraries named


@probe(
    "kernel_running",
    answers=("has-cuda", "lacks-cuda", "none"),
    needs=("jupyter.running", "cuda.toolkits", "target.interpreter", "tf.package", "system.os"),
    fills=("kernel", "folder"),
)
def kernel_running(facts: Facts, tables: Tables) -> Finding:
    """Whether a kernel of the target that runs now has the CUDA folder on its path.

    Sample::

        {"kind": "kernel", "pid": 4120, "python": "D:\\\\envs\\\\tf\\\\python.exe", "connection": "kernel-8d3f.json",
         "env": {"PATH": "C:\\\\Windows\\\\system32;..."}, "libraries": ["D:\\\\cuda\\\\bin\\\\cudart64_101.dll"]}
    """
    fact = facts.get("jupyter.running")
    if fact is not None and fact.status == "absent":
        return Finding("none", (Evidence("kernel_running.none"),))
    if not all(facts.ok(name) for name in ("jupyter.running", "system.os", "target.interpreter")):
        return unknown(facts, "jupyter.running", "system.os", "target.interpreter")
    kernels = [one for one in facts.value("jupyter.running") or [] if one.get("kind") == "kernel"]
    ours = [one for one in kernels if runs_target({"interpreter": one.get("python")}, facts)]
    if not ours:
        return Finding("none", (Evidence("kernel_running.none" if not kernels else "kernel_running.others"),))
    return _judged(ours[-1], facts, tables)


def _judged(kernel: dict[str, Any], facts: Facts, tables: Tables) -> Finding:
    windows = (facts.value("system.os") or {}).get("system") == "Windows"
    build = tables.build((facts.value("tf.package") or {}).get("version"), "Windows" if windows else "Linux")
    toolkits = facts.value("cuda.toolkits") or []
    wanted = [t for t in toolkits if build and f"{t.get('version')}.".startswith(f"{build.cuda}.")] or toolkits
    folders = [str(t["bin"]) for t in wanted if t.get("bin")]
    name = f"{kernel.get('connection') or 'kernel'} ({kernel.get('pid')})"
    values = {"kernel": name, "folder": folders[0] if folders else ""}
    loaded = [str(path) for path in kernel.get("libraries") or []]
    shown = [re.split(r"[\\/]", path)[-1] for path in loaded if re.search(r"cudart|cudnn|cublas", path, re.I)]
    more = [Evidence("kernel_running.loaded", {"libraries": ", ".join(shown[:SHOWN])})] if shown else []
    process = kernel.get("env")
    if process is None or not folders:
        key = "kernel_running.denied" if process is None else "kernel_running.no-toolkit"
        reason = f"jupyter.running: {'its environment may not be read' if process is None else 'no CUDA folder known'}"
        return Finding("unknown", (Evidence(key, {"kernel": name}), *more), values, reason)
    variable = "PATH" if windows else "LD_LIBRARY_PATH"
    text = next((str(v) for k, v in process.items() if k.upper() == variable), "")
    entries = [entry for entry in text.split(";" if windows else ":") if entry]
    for folder in folders:
        if any(same_path(entry, folder) for entry in entries):
            values["folder"] = folder
            shown_now = {**values, "variable": variable}
            return Finding("has-cuda", (Evidence("kernel_running.has-cuda", shown_now, "ok"), *more), values)
    lacks = Evidence("kernel_running.lacks-cuda", {**values, "variable": variable}, "bad")
    return Finding("lacks-cuda", (lacks, *more), values)
