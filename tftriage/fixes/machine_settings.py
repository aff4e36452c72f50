"""long-paths and gpu-scheduling: one value of the whole machine, below HKEY_LOCAL_MACHINE.

Only an administrator may write there: the plan is carried out by an elevated process of its own (``elevation``), or
copied as a command. Both count from a new process (long paths) or from the next start of Windows (the scheduler).
"""

from __future__ import annotations

from functools import partial

import msgspec

from tftriage.facts import Facts
from tftriage.fixes import registry, situation
from tftriage.fixes.plans import Plan, Refused, SetMachineValue, Verify
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import Tables


class Setting(msgspec.Struct, frozen=True):
    """One value: ``wanted`` unless the person says another, from this build of Windows on."""

    fix: str
    key: str
    name: str
    wanted: int
    build: int
    needs: tuple[str, ...]


LONG_PATHS = Setting(
    "long-paths", r"SYSTEM\CurrentControlSet\Control\FileSystem", "LongPathsEnabled", 1, 14393, ("new-console",)
)
# 2 is on, 1 is off. "Hardware-accelerated GPU scheduling" came with Windows 10 2004 (build 19041).
SCHEDULING = Setting(
    "gpu-scheduling", r"SYSTEM\CurrentControlSet\Control\GraphicsDrivers", "HwSchMode", 1, 19041, ("restart-windows",)
)


def refuses(setting: Setting, facts: Facts, values: Values) -> str | None:
    if not situation.windows(facts):
        return "fix.refuse.windows-only"
    build = str((facts.value("system.os") or {}).get("version") or "").split(".")[-1]
    if build.isdigit() and int(build) < setting.build:
        return "fix.refuse.windows-too-old"
    return None if _wanted(setting, values) is not None else "fix.refuse.on-or-off"


def _wanted(setting: Setting, values: Values) -> int | None:
    if setting is LONG_PATHS:
        return setting.wanted
    return {"": setting.wanted, "off": 1, "on": 2}.get(values.get("scheduling", ""))


def plan(setting: Setting, facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(setting, facts, values):
        raise Refused(reason)
    wanted = situation.need(_wanted(setting, values), "fix.refuse.on-or-off")
    now = registry.user_registry().read_machine(setting.key, setting.name) if situation.here(facts) else None
    if now == wanted:
        raise Refused("fix.refuse.set-already")
    return Plan(
        fix=setting.fix,
        title={"name": setting.name, "value": str(wanted)},
        steps=(SetMachineValue(key=setting.key, name=setting.name, value=wanted, expected=now),),
        needs=("admin", *setting.needs),
        risk="moderate",
        python=situation.interpreter(facts).get("executable"),
        notes=(Evidence("fix.note.whole-machine", {"name": setting.name}, "info"),),
        verify=Verify(
            facts=("tf.import",),
            probe="reproduce",
            good_answers=("works",),
            context={"fresh": True, "kernel": None, "env": {}},
        ),
    )


FIXES = tuple(Fix(each.fix, partial(refuses, each), partial(plan, each)) for each in (LONG_PATHS, SCHEDULING))
