"""restore-dll-name: give a renamed library its name back, by a copy beside it.

An import table and a LoadLibrary call name ``cudnn64_7.dll``; no other name is tried, so a renamed file does not exist
for them. The copy removes nothing: whoever uses the other name keeps it.
"""

from __future__ import annotations

import os
import re

from tftriage.facts import Facts
from tftriage.fixes import situation
from tftriage.fixes.plans import CopyFile, Plan, Refused
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import Tables

_MAJOR = re.compile(r"cudnn64_(\d+)\.dll", re.IGNORECASE)


def refuses(facts: Facts, values: Values) -> str | None:
    dll, near = _names(facts, values)
    if not dll or not near:
        return "fix.refuse.no-renamed-file"
    seen = _seen(facts, near)
    if seen.get("machine") not in (None, "x64"):
        return "fix.refuse.wrong-machine"
    wanted, version = _MAJOR.fullmatch(dll), seen.get("cudnn_version")
    if wanted and version and str(version).split(".")[0] != wanted[1]:
        return "fix.refuse.other-version"
    if _known_there(facts, situation.path_rules(facts).dirname(near), dll):
        return "fix.refuse.already-there"
    return None


def plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(facts, values):
        raise Refused(reason)
    dll, near = _names(facts, values)
    folder = situation.path_rules(facts).dirname(near)
    target = situation.path_rules(facts).join(folder, dll)
    if situation.here(facts) and os.path.lexists(target):
        raise Refused("fix.refuse.already-there")
    searched = {situation.path_rules(facts).normcase(entry["folder"]) for entry in facts.value("env.path") or ()}
    off_path = bool(searched) and situation.path_rules(facts).normcase(folder) not in searched
    return Plan(
        fix="restore-dll-name",
        title={"dll": dll, "near": near},
        steps=(CopyFile(source=near, target=target),),
        needs=situation.rights(facts, folder),
        risk="safe",
        python=situation.interpreter(facts).get("executable"),
        notes=(Evidence("fix.note.folder-not-on-path", {"folder": folder}, "info"),) if off_path else (),
        verify=situation.libraries_verify(facts, tables, fresh=False),
    )


def _names(facts: Facts, values: Values) -> tuple[str, str]:
    """The library's right name and the full path of the renamed file; empty when not known."""
    dll = situation.path_rules(facts).basename(values.get("dll", ""))
    near = values.get("near", "").split(";")[0].strip()
    known = {name.lower(): found for name, found in (facts.value("dlls.tree") or {}).get("near", {}).items()}
    candidates = [
        path for path in known.get(dll.lower(), []) if not near or situation.path_rules(facts).basename(path) == near
    ]
    if not situation.path_rules(facts).isabs(near):
        near = candidates[0] if candidates else ""
    return dll, near


def _seen(facts: Facts, path: str) -> dict[str, object]:
    """What the header of the file says, as far as it was read."""
    files = (facts.value("dlls.tree") or {}).get("files", {})
    return next((value for name, value in files.items() if name.lower() == path.lower()), {})


def _known_there(facts: Facts, folder: str, dll: str) -> bool:
    listed = (facts.value("dlls.tree") or {}).get("folders", {})
    names: list[str] = next((found for known, found in listed.items() if known.lower() == folder.lower()), [])
    return dll.lower() in {name.lower() for name in names}


FIX = Fix("restore-dll-name", refuses, plan)
