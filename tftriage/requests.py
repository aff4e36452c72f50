"""What to tell the collector for each fact: the target, and what earlier facts say about it.

Some facts can only be asked for when others are known: which libraries a TensorFlow build opens depends on its
version. ``PREREQUISITES`` orders them; ``arguments`` builds one request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tftriage.facts import Facts
from tftriage.probes import PROBES
from tftriage.tables import Tables

PREREQUISITES: dict[str, tuple[str, ...]] = {
    "tf.libraries": ("system.os", "tf.package"),
    "dlls.tree": ("system.os", "tf.package", "target.interpreter"),
    "jupyter.import": ("jupyter.server", "jupyter.kernels"),
    "names.ascii_import": ("tf.import",),
}
# Facts that the session itself adds; no collector knows them.
GIVEN = ("paste.text", "paste.symptom", "target.kernel", "case.recorded")
# What every fix may need to be planned, whatever the way to its diagnosis was.
FOR_FIXES = (
    "system.os", "system.user", "target.interpreter", "target.packages", "tf.package",
    "env.process", "env.path", "env.user", "env.machine", "jupyter.kernels", "jupyter.server", "cuda.toolkits",
)  # fmt: skip
# On request: seconds of sampling, a minute of computing, a kernel start.
SLOW = frozenset(["usage.sample", "usage.workload", "jupyter.import", "names.ascii_import"])
ALSO = ("system.user", "system.locale", "system.memory", "system.cpu", "pythons.list")
SYSTEMS = {"Windows": "Windows", "Linux": "Linux"}


class Target(msgspec.Struct, frozen=True, omit_defaults=True):
    """The Python environment under suspicion, and the context in which it fails.

    ``module`` is what is imported. ``fresh`` means: as a newly started console would see the environment (Windows
    keeps old variables in running processes). ``env`` changes variables of the child (``None`` removes one).
    ``kernel`` names a Jupyter kernel; ``search`` adds folders in which to look for libraries.
    """

    python: str | None = None
    module: str = "tensorflow"
    cwd: str | None = None
    kernel: str | None = None
    fresh: bool = False
    env: dict[str, str | None] = {}
    search: tuple[str, ...] = ()


def waves(names: Iterable[str], facts: Facts) -> list[list[str]]:
    """The facts still to be observed, in groups: each group's prerequisites are in the groups before it."""
    wanted: dict[str, None] = {}

    def add(name: str) -> None:
        for before in PREREQUISITES.get(name, ()):
            add(before)
        if name not in facts and name not in GIVEN:
            wanted.setdefault(name)

    for name in names:
        add(name)
    groups: list[list[str]] = []
    left, known = list(wanted), set(facts)
    while left:
        ready = [n for n in left if all(b in known or b not in left for b in PREREQUISITES.get(n, ()))]
        groups.append(ready)
        known.update(ready)
        left = [n for n in left if n not in ready]
    return groups


def arguments(name: str, target: Target, facts: Facts, tables: Tables, values: dict[str, str]) -> dict[str, Any]:
    """The arguments of one request. ``values`` are what the walk has found so far (a kernel's name)."""
    given: dict[str, Any] = {
        "python": target.python,
        "module": target.module,
        "cwd": target.cwd,
        "kernel": target.kernel or values.get("kernel"),
        "fresh": target.fresh or None,
        "env": target.env or None,
        "search": list(target.search) or None,
    }
    if name in ("tf.libraries", "dlls.tree"):
        given["libraries"] = libraries(target, facts, tables)
    if name == "dlls.tree":
        given["roots"] = roots(target, facts, tables)
        given["dll_directories"] = (facts.value("target.interpreter") or {}).get("dll_directories") or None
    if name == "jupyter.import":
        given["server_python"] = (facts.value("jupyter.server") or {}).get("python")
    return {key: value for key, value in given.items() if value is not None}


def libraries(target: Target, facts: Facts, tables: Tables) -> list[str]:
    """The libraries that this TensorFlow build opens by name, from the builds table."""
    if target.module != "tensorflow":
        return []
    package = facts.value("tf.package") or {}
    system = SYSTEMS.get((facts.value("system.os") or {}).get("system", ""), "")
    build = tables.build(package.get("version"), system)
    return list(build.libraries) if build else []


def roots(target: Target, facts: Facts, tables: Tables) -> list[str]:
    """What the loader model starts from: the native module that is imported, and the libraries opened by name."""
    package = facts.value("tf.package") or {}
    native = package.get("main_native") if target.module == "tensorflow" else package.get("module_file")
    first = [native] if native and native.lower().endswith((".pyd", ".dll", ".so")) else []
    return first + libraries(target, facts, tables)


def facts_wanted() -> list[str]:
    """What a case holds: whatever any probe reads, but for what takes long, and the machine's own description."""
    names = dict.fromkeys(name for probe in PROBES.values() for name in probe.needs)
    return [name for name in [*names, *ALSO] if name not in SLOW and name not in GIVEN]
