"""rename-shadowing-file: move a file of the user's aside that Python takes for TensorFlow, a package or a module.

Only a file outside every Python installation, and only by a rename in its own folder: content, times and rights stay.
"""

from __future__ import annotations

import os
import re

from tftriage.facts import Facts
from tftriage.fixes import situation
from tftriage.fixes.plans import MoveAside, Plan, Refused, Verify
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import Tables


def _file(facts: Facts, values: Values) -> str:
    listed = (facts.value("tf.package") or {}).get("shadow") or ()
    path = situation.path_rules(facts)
    file = values.get("file") or (str(listed[0]) if listed else "")
    # A package's __init__.py is named by a traceback; it is the folder that stands in the way.
    folder, name = path.split(file.rstrip("/\\"))
    return str(folder) if re.fullmatch(r"__init__\.pyc?", name) else str(file.rstrip("/\\"))


def refuses(facts: Facts, values: Values) -> str | None:
    file = _file(facts, values)
    path = situation.path_rules(facts)
    if not file or not path.isabs(file):
        return "fix.refuse.no-shadowing-file"
    interpreter = situation.interpreter(facts)
    if not interpreter:
        return "fix.refuse.no-interpreter"
    key = path.normcase(path.normpath(file))
    roots = [*(interpreter.get("site_packages") or ()), interpreter.get("user_site")]
    for prefix in (interpreter.get("prefix"), interpreter.get("base_prefix")):
        roots += [path.join(prefix, part) for part in ("Lib", "lib", "lib64", "DLLs")] if prefix else []
    inside = [root for root in roots if root and key.startswith(path.normcase(path.normpath(root)) + path.sep)]
    if inside or re.search(r"[\\/](site|dist)-packages[\\/]", file):
        return "fix.refuse.pythons-own-file"
    return None


def renamed(facts: Facts, file: str, taken: list[str]) -> str:
    """``tensorflow.py`` becomes ``my_tensorflow.py``: a module that still can be imported, under a name of its own."""
    path = situation.path_rules(facts)
    folder, name = path.split(file)
    for prefix in ("my_", *(f"my{number}_" for number in range(2, 100))):
        new = f"{prefix}{name}"
        if new.lower() not in taken:
            return str(path.join(folder, new))
    raise Refused("fix.refuse.already-there")


def plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(facts, values):
        raise Refused(reason)
    file = _file(facts, values)
    path = situation.path_rules(facts)
    folder = path.dirname(file)
    there: list[str] = []
    if situation.here(facts):
        if not os.path.lexists(file):
            raise Refused("fix.error.gone", what=file)
        there = [name.lower() for name in os.listdir(folder)]  # noqa: PTH208 - a text of the machine it is of
    files = [file]
    compiled = re.sub(r"\.py$", ".pyc", file)  # beside the source, Python imports it without any source
    if compiled != file and path.basename(compiled).lower() in there:
        files.append(compiled)
    steps = tuple(MoveAside(path=each, to=renamed(facts, each, there)) for each in files)
    return Plan(
        fix="rename-shadowing-file",
        title={"file": file, "to": steps[0].to},
        steps=steps,
        needs=("restart-kernel", *situation.rights(facts, folder)),
        risk="safe",
        python=situation.interpreter(facts)["executable"],
        notes=(Evidence("fix.note.imports-of-it", {"name": path.basename(steps[0].to)}, "info"),),
        verify=Verify(
            facts=("tf.package", "tf.import"),
            probe="shadowed",
            good_answers=("clear",),
            context={"fresh": False, "kernel": None, "env": {}},
            own=True,
        ),
    )


FIX = Fix("rename-shadowing-file", refuses, plan)
