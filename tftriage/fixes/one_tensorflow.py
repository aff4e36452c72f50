"""one-tensorflow: keep one TensorFlow of several that share a folder, and lay that one down again.

Uninstalling one of them takes files away from the other, so the one that stays is installed anew afterwards, and its
RECORD is compared. Undo installs the others again; in which order their files once lay over one another nobody knows.
"""

from __future__ import annotations

from typing import Any

from packaging.utils import canonicalize_name

from tftriage.facts import Facts
from tftriage.fixes import running, situation
from tftriage.fixes.plans import Plan, Refused, Run, Verify
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.probes.packages import DISTRIBUTIONS
from tftriage.tables import Tables


def found(facts: Facts) -> dict[str, str]:
    """The TensorFlow distributions: normalised name to version."""
    listed = (facts.value("tf.package") or {}).get("distributions") or ()
    names = {canonicalize_name(d["name"]): str(d["version"]) for d in listed}
    return {name: version for name, version in names.items() if name in DISTRIBUTIONS}


def kept(facts: Facts, values: Values) -> str | None:
    """The one that stays: the one asked for, else the one built for a GPU, else the newest name there is."""
    names = found(facts)
    wanted = canonicalize_name(values.get("keep", ""))
    if wanted:
        return wanted if wanted in names else None
    return next((n for n in ("tensorflow-gpu", "tensorflow", *sorted(names)) if n in names), None)


def refuses(facts: Facts, values: Values) -> str | None:
    interpreter = situation.interpreter(facts)
    if not interpreter:
        return "fix.refuse.no-interpreter"
    if not interpreter.get("pip"):
        return "fix.refuse.no-pip"
    if not facts.ok("target.packages"):
        return "fix.refuse.packages-unknown"
    if len(found(facts)) < 2:
        return "fix.refuse.one-already"
    if kept(facts, values) is None:
        return "fix.refuse.not-installed"
    packages: dict[str, Any] = facts.value("target.packages")
    if any((packages.get(name) or {}).get("installer") == "conda" for name in found(facts)):
        return "fix.refuse.conda-package"
    return None


def plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(facts, values):
        raise Refused(reason)
    interpreter = situation.interpreter(facts)
    python = interpreter["executable"]
    names = found(facts)
    keep = situation.need(kept(facts, values), "fix.refuse.not-installed")
    extra = {name: version for name, version in sorted(names.items()) if name != keep}
    env, cwd = situation.pip_environment(facts), interpreter.get("prefix")
    folders = {str(d["folder"]) for d in facts.value("tf.package")["distributions"] if d.get("folder")}
    return Plan(
        fix="one-tensorflow",
        title={"keep": f"{keep} {names[keep]}", "remove": ", ".join(f"{n} {v}" for n, v in extra.items())},
        steps=(
            Run(
                argv=(python, "-m", "pip", "uninstall", "-y", *extra),
                undo_argv=running.restoring(python, extra, {}),
                env=env,
                cwd=cwd,
                python=python,
                absent=tuple(extra),
            ),
            Run(
                argv=(python, "-m", "pip", "install", "--force-reinstall", "--no-deps", f"{keep}=={names[keep]}"),
                env=env,
                cwd=cwd,
                python=python,
                packages={keep: names[keep]},
                whole=(keep,),
            ),
        ),
        needs=("network", *sorted({right for folder in folders for right in situation.rights(facts, folder)})),
        risk="moderate",
        python=python,
        notes=(Evidence("fix.note.order-unknown", {"keep": keep}, "info"),),
        verify=Verify(
            facts=("tf.package", "target.packages"),
            probe="one_tensorflow",
            good_answers=("one",),
            context={"fresh": False, "kernel": None, "env": {}},
            own=True,
        ),
    )


FIX = Fix("one-tensorflow", refuses, plan)
