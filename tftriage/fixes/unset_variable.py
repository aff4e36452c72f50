"""unset-variable: take CUDA_VISIBLE_DEVICES away from where it hides the GPU.

The user's variable and a kernel's ``env`` can be changed and taken back; in a shell that runs already only a person
can do it, so that is shown as a command.
"""

from __future__ import annotations

from typing import Any

from tftriage.facts import Facts
from tftriage.fixes import situation
from tftriage.fixes.plans import EditKernelspec, Plan, Refused, Step, UnsetUserVariable, Variable, Verify
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import Tables

NAME = "CUDA_VISIBLE_DEVICES"


def refuses(facts: Facts, values: Values) -> str | None:
    if _user(facts) is None and not _kernels(facts, values) and not _in_process(facts):
        return "fix.refuse.not-set"
    return None


def plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(facts, values):
        raise Refused(reason)
    steps: list[Step] = []
    needs: list[str] = []
    user = _user(facts)
    if user is not None:
        steps.append(UnsetUserVariable(name=user.name, expected=user))
        needs.append("new-console")
    kernels = _kernels(facts, values)
    for kernel in kernels:
        path = _kernel_file(facts, kernel)
        data = situation.read(path) if situation.here(facts) else None
        changes: dict[str, Any] = {"env": {name: None for name in kernel["env"] if name.upper() == NAME}}
        expected = situation.fingerprint(data) if situation.here(facts) else None
        steps.append(EditKernelspec(path=path, changes=changes, expected=expected))
        needs += ["restart-kernel", *situation.rights(facts, kernel["folder"])]
    commands: dict[str, tuple[str, ...]] = {}
    notes: list[Evidence] = []
    if _in_process(facts) and (not steps or not user):
        notes.append(Evidence("fix.note.this-shell", {"name": NAME}, "info"))
        if situation.windows(facts):
            commands = {"cmd": (f'set "{NAME}="',), "powershell": (f"Remove-Item Env:{NAME}",)}
        else:
            commands = {"bash": (f"unset {NAME}",)}
    return Plan(
        fix="unset-variable",
        title={"name": NAME, "value": _value(facts, values, user), "where": values.get("where", "")},
        steps=tuple(steps),
        needs=tuple(dict.fromkeys(needs)),
        risk="safe",
        python=situation.interpreter(facts).get("executable"),
        notes=tuple(notes),
        commands=commands,
        verify=Verify(
            facts=("env.process", "env.user", "jupyter.kernels"),
            probe="gpu_hidden",
            good_answers=("visible",),
            context={
                "fresh": True,
                "kernel": kernels[0]["name"] if kernels else None,
                "env": {NAME: None} if not steps else {},
            },
        ),
    )


def _value(facts: Facts, values: Values, user: Variable | None) -> str:
    return values.get("value") or (user.value if user and user.value is not None else "")


def _user(facts: Facts) -> Variable | None:
    """The user's variable in the registry, if there is one."""
    for name, found in (facts.value("env.user") or {}).get("variables", {}).items():
        if name.upper() == NAME:
            return Variable(name, found["value"], found["type"])
    return None


def _in_process(facts: Facts) -> bool:
    return NAME in (facts.value("env.process") or {})


def _kernels(facts: Facts, values: Values) -> list[dict[str, Any]]:
    """The kernels that set it: the one that the probe named, else all of the target's."""
    hiding = [k for k in facts.value("jupyter.kernels") or () if any(n.upper() == NAME for n in k.get("env") or {})]
    where = values.get("kernel") or values.get("where", "")
    named = [kernel for kernel in hiding if where and kernel["name"] in where.replace(":", " ").split()]
    return named or hiding


def _kernel_file(facts: Facts, kernel: dict[str, Any]) -> str:
    return str(kernel["folder"]) + ("\\" if situation.windows(facts) else "/") + "kernel.json"


FIX = Fix("unset-variable", refuses, plan)
