"""pin-packages: install the versions that make this TensorFlow work, all at once.

Failures are stacked: a protobuf that is put right uncovers the numpy behind it, so a set is never applied in part,
and never without the TensorFlow version it is for.
"""

from __future__ import annotations

import re

from tftriage.facts import Facts
from tftriage.fixes import running, situation
from tftriage.fixes.plans import Plan, Refused, Run, Verify
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import Tables

_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*==\s*([0-9][A-Za-z0-9.!+_-]*)")


def normalised(name: str) -> str:
    """A distribution's name as installers compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def tensorflow_version(facts: Facts, values: Values) -> str | None:
    """The version the set is for. Not guessed."""
    return values.get("tf_version") or (facts.value("tf.package") or {}).get("version")


def pins(facts: Facts, values: Values, tables: Tables) -> dict[str, str]:
    """The set for this TensorFlow on this Python from the table, else the one that the probe named."""
    row = tables.pin_set(tensorflow_version(facts, values), situation.python_series(facts) or "")
    found = row.pins if row is not None else dict(_PIN.findall(values.get("pins", "")))
    return {normalised(name): version for name, version in found.items()}


def refuses(facts: Facts, values: Values) -> str | None:
    interpreter = situation.interpreter(facts)
    if not interpreter:
        return "fix.refuse.no-interpreter"
    if not interpreter.get("pip"):
        return "fix.refuse.no-pip"
    if not tensorflow_version(facts, values):
        return "fix.refuse.no-tf-version"
    if not facts.ok("target.packages"):
        return "fix.refuse.packages-unknown"
    return None


def plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(facts, values):
        raise Refused(reason)
    wanted = situation.need(pins(facts, values, tables), "fix.refuse.no-pins")
    python = situation.interpreter(facts)["executable"]
    installed = facts.value("target.packages")
    before = {name: installed[name]["version"] for name in wanted if name in installed}
    if all(before.get(name) == version for name, version in wanted.items()):
        raise Refused("fix.refuse.pins-there")
    conda = sorted(name for name in wanted if (installed.get(name) or {}).get("installer") == "conda")
    requirements = tuple(f"{name}=={version}" for name, version in sorted(wanted.items()))
    folders = {str(installed[name]["folder"]) for name in wanted if (installed.get(name) or {}).get("folder")}
    rights = {right for folder in folders for right in situation.rights(facts, folder)}
    changes = [
        Evidence("fix.note.version-change", {"name": n, "before": before.get(n, "-"), "after": v}, "info")
        for n, v in sorted(wanted.items())
        if before.get(n) != v
    ]
    if conda:
        changes.append(Evidence("fix.note.conda-managed", {"names": ", ".join(conda)}, "bad"))
    return Plan(
        fix="pin-packages",
        title={"tf_version": tensorflow_version(facts, values) or "", "pins": " ".join(requirements)},
        steps=(
            Run(
                argv=(python, "-m", "pip", "install", *requirements),
                undo_argv=running.restoring(python, before, wanted),
                env=situation.pip_environment(facts),
                cwd=situation.interpreter(facts).get("prefix"),
                python=python,
                packages=dict(wanted),
            ),
        ),
        needs=("network", *sorted(rights)),
        risk="moderate",
        python=python,
        notes=tuple(changes),
        verify=Verify(
            facts=("target.packages", "tf.package", "tf.import"),
            probe="dependencies_fit",
            good_answers=("fit",),
            context={"fresh": False, "kernel": None, "env": {}},
        ),
    )


FIX = Fix("pin-packages", refuses, plan)
