"""path-user (Windows): put folders first on the user's Path, in the registry.

Never ``setx``: it cuts at 1,024 characters and says so only in passing. The value is read unexpanded, its type is
kept, everything else in it stays byte for byte, and running programs are told.
"""

from __future__ import annotations

from typing import Any

from tftriage.facts import Facts
from tftriage.fixes import paths, situation
from tftriage.fixes.plans import Plan, Refused, SetUserVariable, Variable
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import Tables


def refuses(facts: Facts, values: Values) -> str | None:
    if not situation.windows(facts):
        return "fix.refuse.windows-only"
    if not situation.folders(facts, values):
        return "fix.refuse.no-folder"
    if not facts.ok("env.user"):
        return "fix.refuse.user-path-unknown"
    return None


def current(facts: Facts) -> Variable:
    """The user's Path as it was read; value None when the user has none."""
    found: Any = (facts.value("env.user") or {}).get("Path")
    return Variable("Path", found["value"], found["type"]) if found else Variable("Path")


def plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(facts, values):
        raise Refused(reason)
    before = current(facts)
    kind = before.type or "REG_EXPAND_SZ"
    folders = situation.folders(facts, values)
    known = situation.variables(facts) if kind == "REG_EXPAND_SZ" else None
    old = before.value or ""
    if kind == "REG_EXPAND_SZ" and (odd := next(filter(paths.would_expand, folders), None)):
        raise Refused("fix.refuse.folder-percent", folder=odd)
    try:
        new = paths.prepend(old, folders, variables=known)
    except paths.TooLong as error:
        raise Refused("fix.refuse.path-too-long", length=str(error)) from error
    if new == old:
        raise Refused("fix.refuse.already-first", folder=";".join(folders))
    notes = []
    if paths.units(new) > paths.OLD_DIALOG:
        notes.append(Evidence("fix.note.long-path", {"length": str(paths.units(new))}, "info"))
    machine = ((facts.value("env.machine") or {}).get("Path") or {}).get("value", "")
    rival = next((entry for entry in paths.split(machine) if "cuda" in entry.lower()), None)
    if rival:
        notes.append(Evidence("fix.note.machine-first", {"entry": rival}, "info"))
    return Plan(
        fix="path-user",
        title={"folder": ";".join(folders)},
        steps=(SetUserVariable(name=before.name, value=new, type=kind, expected=before),),
        needs=("new-console",),
        risk="safe",
        python=situation.interpreter(facts).get("executable"),
        notes=tuple(notes),
        verify=situation.libraries_verify(facts, tables),
    )


FIX = Fix("path-user", refuses, plan)
