"""dll-directory: give a folder to ``os.add_dll_directory`` whenever this environment's Python starts.

From Python 3.8 on PATH does not count for what an extension's import table names. A ``.pth`` file in site-packages
is read at every start, in a kernel too, and a line of it that begins with ``import`` is executed (site.py). The line
is ASCII whatever the folder is called, because the file is decoded by the system's code page before Python 3.13.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tftriage import loader
from tftriage.facts import Facts
from tftriage.fixes import situation
from tftriage.fixes.plans import Plan, Refused, Verify, WriteFile
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import Tables

NAME = "tftriage-dll-directories.pth"
SINCE = (3, 8)


def line(folder: str) -> str:
    """One line of the file. A folder that is gone by then is no error."""
    text = ascii(folder)
    return f"import os; os.path.isdir({text}) and os.add_dll_directory({text})"


def refuses(facts: Facts, values: Values) -> str | None:
    if not situation.windows(facts):
        return "fix.refuse.windows-only"
    interpreter = situation.interpreter(facts)
    if not interpreter:
        return "fix.refuse.no-interpreter"
    if tuple((interpreter.get("version") or ())[:2]) < SINCE:
        return "fix.refuse.python-searches-path"
    if not interpreter.get("site_packages"):
        return "fix.refuse.no-site-packages"
    folders = situation.folders(facts, values)
    if not folders:
        return "fix.refuse.no-folder"
    tree = facts.value("dlls.tree")
    if not isinstance(tree, dict):
        return "fix.refuse.import-table-unknown"
    return None if helps(tree, folders) else "fix.refuse.loader-says-no"


def helps(tree: Mapping[str, Any], folders: Sequence[str]) -> bool:
    """Whether fewer libraries would be missing with these folders, by the loader's own rules."""
    context = dict(tree.get("context") or {})
    context["dll_directories"] = [*(context.get("dll_directories") or ()), *folders]
    after = loader.resolve({**tree, "context": context})
    return len(after.failed) < len(loader.resolve(tree).failed)


def plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(facts, values):
        raise Refused(reason)
    interpreter = situation.interpreter(facts)
    folders = situation.folders(facts, values)
    site_packages = str(interpreter["site_packages"][0])
    file = situation.path_rules(facts).join(site_packages, NAME)
    old = situation.read(file) if situation.here(facts) else None
    lines = old.decode("ascii", "replace").splitlines() if old else []
    wanted = [text for text in map(line, folders) if text not in lines]
    if not wanted:
        raise Refused("fix.refuse.already-there")
    return Plan(
        fix="dll-directory",
        title={"folder": ";".join(folders), "environment": situation.environment_name(facts)},
        steps=(
            WriteFile(
                path=file,
                text="\n".join([*lines, *wanted]) + "\n",
                newline="\r\n",
                expected=situation.fingerprint(old) if situation.here(facts) else None,
            ),
        ),
        needs=("restart-kernel", *situation.rights(facts, site_packages)),
        risk="safe",
        python=interpreter["executable"],
        notes=(Evidence("fix.note.pth", {"file": file}, "info"),),
        predicted=(Evidence("fix.note.loader-says-yes", {"folder": ";".join(folders)}, "ok"),),
        verify=Verify(
            facts=("target.interpreter", "dlls.tree"),
            probe="import_chain",
            good_answers=("complete",),
            context={"fresh": False, "kernel": None, "env": {}},
            own=True,
        ),
    )


FIX = Fix("dll-directory", refuses, plan)
