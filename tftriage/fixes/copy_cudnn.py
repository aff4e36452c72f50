"""copy-cudnn: copy the cuDNN that is on this machine into the CUDA toolkit that is searched first.

Only files that the person has already; nothing comes from a network, and no file that is there is replaced. cuDNN 8
is a set of libraries that open one another by name, so all of them are copied, with the zlib that 8.3 to 8.9 want.
"""

from __future__ import annotations

import os
import re
from typing import Any

from tftriage.facts import Facts
from tftriage.fixes import situation
from tftriage.fixes.plans import CopyFile, Plan, Refused
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import Tables

_WINDOWS = re.compile(r"(cudnn\w*64_\d+|zlibwapi)\.dll", re.IGNORECASE)
_ELF = re.compile(r"libcudnn\w*\.so\.\d+")  # the name that is opened; the longer ones behind it are not
_MAJOR = re.compile(r"cudnn64_(\d+)\.dll|libcudnn\.so\.(\d+)", re.IGNORECASE)


def refuses(facts: Facts, values: Values) -> str | None:
    if not situation.folders(facts, values):
        return "fix.refuse.no-folder"
    if not names(facts, situation.folders(facts, values)[0]):
        return "fix.refuse.no-cudnn-there"
    if toolkit(facts) is None:
        return "fix.refuse.no-toolkit"
    return None


def toolkit(facts: Facts) -> dict[str, Any] | None:
    """The toolkit whose libraries are searched first; a loose cuDNN folder is none."""
    path = situation.path_rules(facts)
    kits = [kit for kit in facts.value("cuda.toolkits") or () if kit.get("on_path") and kit.get("version")]
    order = [path.normcase(path.normpath(e["folder"])) for e in facts.value("env.path") or () if e.get("folder")]

    def place(kit: dict[str, Any]) -> int:
        folder = path.normcase(path.normpath(kit["bin"]))
        return order.index(folder) if folder in order else len(order)

    return min(kits, key=place, default=None)


def names(facts: Facts, folder: str) -> list[str]:
    """The names of cuDNN's libraries in a folder: read where it is this machine's, else as recorded."""
    if situation.here(facts):
        try:
            found = sorted(os.listdir(folder))  # noqa: PTH208 - a text of the machine it is of
        except OSError:
            return []
    else:
        listed = (facts.value("dlls.tree") or {}).get("folders", {})
        found = sorted(next((seen for known, seen in listed.items() if known.lower() == folder.lower()), []))
    pattern = _WINDOWS if situation.windows(facts) else _ELF
    kept = [name for name in found if pattern.fullmatch(name)]
    return kept if any("cudnn" in name.lower() for name in kept) else []


def plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(facts, values):
        raise Refused(reason)
    path = situation.path_rules(facts)
    source = situation.folders(facts, values)[0]
    kit = situation.need(toolkit(facts), "fix.refuse.no-toolkit")
    target = str(kit["bin"])
    _fits(facts, tables, source, kit)
    if path.normcase(source) == path.normcase(target):
        raise Refused("fix.refuse.already-there")
    there = {name.lower() for name in names(facts, target)}
    wanted = [name for name in names(facts, source) if name.lower() not in there]
    if not any("cudnn" in name.lower() for name in wanted):
        raise Refused("fix.refuse.already-there")
    if any(_MAJOR.fullmatch(name) for name in there):  # half of one cuDNN beside half of another would be worse
        raise Refused("fix.refuse.cudnn-of-another")
    return Plan(
        fix="copy-cudnn",
        title={"folder": source, "toolkit": target, "count": str(len(wanted))},
        steps=tuple(CopyFile(source=path.join(source, name), target=path.join(target, name)) for name in wanted),
        needs=situation.rights(facts, target),
        risk="safe",
        python=situation.interpreter(facts).get("executable"),
        verify=situation.libraries_verify(facts, tables, fresh=False),
        notes=(Evidence("fix.note.uninstaller-leaves", {"toolkit": target}, "info"),),
    )


def _fits(facts: Facts, tables: Tables, source: str, kit: dict[str, Any]) -> None:
    """Refuse a cuDNN or a toolkit that this TensorFlow does not use."""
    version = (facts.value("tf.package") or {}).get("version")
    build = tables.build(version, "Windows" if situation.windows(facts) else "Linux")
    if build is None:
        return
    if build.cuda and not str(kit["version"]).startswith(build.cuda):
        raise Refused("fix.refuse.other-toolkit", toolkit=str(kit["version"]), wanted=build.cuda)
    majors = {"".join(filter(None, m.groups())) for name in names(facts, source) if (m := _MAJOR.fullmatch(name))}
    if build.cudnn and majors and build.cudnn.split(".")[0] not in majors:
        raise Refused("fix.refuse.other-version")


FIX = Fix("copy-cudnn", refuses, plan)
