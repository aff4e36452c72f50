"""vc-runtime and defender-exclusion: what only a person may do, as commands to copy and read.

A runtime comes from its maker's installer, and an exception of a virus scanner is the person's own decision. Nothing
here is run by tftriage; the plan has no step, and whether it helped is asked afterwards all the same.
"""

from __future__ import annotations

from tftriage.facts import Facts
from tftriage.fixes import quoting, situation
from tftriage.fixes.plans import Plan, Refused, Verify
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import Tables

WINGET = ("winget", "install", "--exact", "--id", "Microsoft.VCRedist.2015+.x64")


def runtime_refuses(facts: Facts, values: Values) -> str | None:
    return None if situation.windows(facts) else "fix.refuse.windows-only"


def runtime_plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := runtime_refuses(facts, values):
        raise Refused(reason)
    interpreter = situation.interpreter(facts)
    argv: list[tuple[str, ...]] = [WINGET]
    if interpreter.get("conda") and interpreter.get("prefix"):
        # A copy beside python.exe is loaded before the one in System32, so conda's own has to be new enough, too.
        argv.append(("conda", "update", "--prefix", str(interpreter["prefix"]), "vc", "vs2015_runtime"))
    return Plan(
        fix="vc-runtime",
        steps=(),
        needs=("network", "admin", "new-console"),
        risk="moderate",
        python=interpreter.get("executable"),
        notes=(Evidence("fix.note.vendors-installer", {"file": "vc_redist.x64.exe"}, "info"),),
        commands={
            "cmd": tuple(quoting.cmd(each) for each in argv),
            "powershell": tuple(quoting.powershell(each).removeprefix("& ") for each in argv),
        },
        undoable=False,
        verify=Verify(
            facts=("dlls.tree", "tf.package"),
            probe="import_chain",
            good_answers=("complete",),
            context={"fresh": True, "kernel": None, "env": {}},
        ),
    )


def defender_refuses(facts: Facts, values: Values) -> str | None:
    if not situation.windows(facts):
        return "fix.refuse.windows-only"
    if not (facts.value("security.antivirus") or {}).get("defender"):
        return "fix.refuse.no-defender"
    if not situation.interpreter(facts).get("prefix"):
        return "fix.refuse.no-interpreter"
    prefix = str(situation.interpreter(facts)["prefix"])
    return "fix.refuse.too-wide" if len(prefix.rstrip("\\").split("\\")) < 3 else None


def defender_plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    """The exclusion of one environment's folder, its undo, and the restoring of what was taken from that folder."""
    if reason := defender_refuses(facts, values):
        raise Refused(reason)
    prefix = str(situation.interpreter(facts)["prefix"])
    seen = (facts.value("security.antivirus") or {}).get("detections") or ()
    taken = [str(d["path"]) for d in seen if str(d.get("path", "")).lower().startswith(prefix.lower() + "\\")]
    tool = '& "$env:ProgramFiles\\Windows Defender\\MpCmdRun.exe" -Restore -FilePath '
    undo = f"Remove-MpPreference -ExclusionPath {quoting.ps_string(prefix)}"
    return Plan(
        fix="defender-exclusion",
        title={"folder": prefix},
        steps=(),
        needs=("admin",),
        risk="moderate",
        python=situation.interpreter(facts).get("executable"),
        notes=(
            Evidence("fix.note.exclusion-means", {"folder": prefix}, "bad"),
            Evidence("fix.note.undo-command", {"command": undo}, "info"),
        ),
        commands={
            "powershell": (
                f"Add-MpPreference -ExclusionPath {quoting.ps_string(prefix)}",
                *(tool + quoting.ps_string(path) for path in taken),
            )
        },
        undoable=False,
        verify=Verify(
            facts=("tf.record", "tf.package"),
            probe="package_whole",
            good_answers=("whole",),
            context={"fresh": False, "kernel": None, "env": {}},
        ),
    )


FIXES = (
    Fix("vc-runtime", runtime_refuses, runtime_plan),
    Fix("defender-exclusion", defender_refuses, defender_plan),
)
