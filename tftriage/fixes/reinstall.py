"""reinstall-package: lay a damaged distribution down again, the same version, without its dependencies.

There is nothing to take back: the state before was the damage.
"""

from __future__ import annotations

from tftriage.facts import Facts
from tftriage.fixes import situation
from tftriage.fixes.pin_packages import normalised
from tftriage.fixes.plans import Plan, Refused, Run, Verify
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import Tables


def damaged(facts: Facts, values: Values) -> tuple[str, str] | None:
    """Name and version of the damaged distribution, ``None`` when it is not known exactly."""
    text = values.get("distribution") or (facts.value("tf.record") or {}).get("distribution") or ""
    name, _, version = text.replace("==", " ").strip().partition(" ")
    version = version.strip()
    if name and not version:
        version = ((facts.value("target.packages") or {}).get(normalised(name)) or {}).get("version") or ""
    return (name, version) if name and version and " " not in version else None


def refuses(facts: Facts, values: Values) -> str | None:
    interpreter = situation.interpreter(facts)
    if not interpreter:
        return "fix.refuse.no-interpreter"
    if not interpreter.get("pip"):
        return "fix.refuse.no-pip"
    found = damaged(facts, values)
    if found is None:
        return "fix.refuse.no-distribution"
    if ((facts.value("target.packages") or {}).get(normalised(found[0])) or {}).get("installer") == "conda":
        return "fix.refuse.conda-package"
    return None


def plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(facts, values):
        raise Refused(reason)
    name, version = situation.need(damaged(facts, values), "fix.refuse.no-distribution")
    python = situation.interpreter(facts)["executable"]
    installed = (facts.value("target.packages") or {}).get(normalised(name)) or {}
    notes = [Evidence("fix.note.not-undoable", {"name": name, "version": version}, "info")]
    if (facts.value("security.antivirus") or {}).get("detections"):
        notes.append(Evidence("fix.note.antivirus-again", {"name": name}, "bad"))
    return Plan(
        fix="reinstall-package",
        title={"distribution": f"{name} {version}"},
        steps=(
            Run(
                argv=(python, "-m", "pip", "install", "--force-reinstall", "--no-deps", f"{name}=={version}"),
                env=situation.pip_environment(facts),
                cwd=situation.interpreter(facts).get("prefix"),
                python=python,
                packages={normalised(name): version},
                whole=(normalised(name),),
            ),
        ),
        needs=("network", *(situation.rights(facts, installed["folder"]) if installed.get("folder") else ())),
        risk="moderate",
        python=python,
        notes=tuple(notes),
        undoable=False,
        verify=Verify(
            facts=("tf.record", "tf.package"),
            probe="package_whole",
            good_answers=("whole",),
            context={"fresh": False, "kernel": None, "env": {}},
        ),
    )


FIX = Fix("reinstall-package", refuses, plan)
