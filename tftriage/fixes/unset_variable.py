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
from tftriage.probes.context import hides
from tftriage.tables import Tables

NAME = "CUDA_VISIBLE_DEVICES"


MACHINE = r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment"


def refuses(facts: Facts, values: Values) -> str | None:
    if _user(facts) is None and not _kernels(facts, values) and not _in_process(facts) and not _in_machine(facts):
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
        path = str(situation.path_rules(facts).join(kernel["folder"], "kernel.json"))
        data = situation.read(path) if situation.here(facts) else None
        changes: dict[str, Any] = {"env": {name: None for name in kernel["env"] if name.upper() == NAME}}
        expected = situation.fingerprint(data) if situation.here(facts) else None
        steps.append(EditKernelspec(path=path, changes=changes, expected=expected))
        needs += ["restart-kernel", *situation.rights(facts, kernel["folder"])]
    notes, commands = _by_hand(facts, user)
    return Plan(
        fix="unset-variable",
        title={"name": NAME, "value": _value(values, user), "where": values.get("where", "")},
        steps=tuple(steps),
        needs=tuple(dict.fromkeys(needs)),
        risk="safe",
        python=situation.interpreter(facts).get("executable"),
        notes=notes,
        commands=commands,
        verify=Verify(
            facts=("env.process", "env.user", "env.machine", "jupyter.kernels"),
            probe="gpu_hidden",
            good_answers=("visible",),
            context={
                "fresh": True,
                "kernel": kernels[0]["name"] if kernels else None,
                "env": {} if steps else {NAME: None},
            },
        ),
    )


def _by_hand(facts: Facts, user: Variable | None) -> tuple[tuple[Evidence, ...], dict[str, tuple[str, ...]]]:
    """What only a person can do: the machine's variable needs an administrator, a running shell is out of reach."""
    if _in_machine(facts):
        note = Evidence("fix.note.machine-variable", {"name": NAME}, "info")
        powershell = f"[Environment]::SetEnvironmentVariable('{NAME}', $null, 'Machine')"
        return (note,), {"cmd": (f'reg delete "{MACHINE}" /v {NAME} /f',), "powershell": (powershell,)}
    if not _in_process(facts) or user is not None:
        return (), {}
    note = Evidence("fix.note.this-shell", {"name": NAME}, "info")
    if situation.windows(facts):
        return (note,), {"cmd": (f'set "{NAME}="',), "powershell": (f"Remove-Item Env:{NAME}",)}
    return (note,), {"bash": (f"unset {NAME}",)}


def _value(values: Values, user: Variable | None) -> str:
    return values.get("value") or (user.value if user and user.value is not None else "")


def _hides(facts: Facts, value: Any) -> bool:
    """A value that leaves a card visible is somebody's choice and stays."""
    devices = (facts.value("gpu.devices") or {}).get("devices")
    return hides(value, len(devices) if devices else None)


def _registry(facts: Facts, fact: str) -> Variable | None:
    for name, found in ((facts.value(fact) or {}).get("variables") or {}).items():
        # An empty value in the registry never reaches a process: Windows drops it.
        if name.upper() == NAME and found["value"] and _hides(facts, found["value"]):
            return Variable(name, found["value"], found["type"])
    return None


def _user(facts: Facts) -> Variable | None:
    """The user's variable in the registry, if it hides a card."""
    return _registry(facts, "env.user")


def _in_machine(facts: Facts) -> bool:
    return _registry(facts, "env.machine") is not None


def _in_process(facts: Facts) -> bool:
    process = facts.value("env.process") or {}
    return NAME in process and _hides(facts, process[NAME])


def _kernels(facts: Facts, values: Values) -> list[dict[str, Any]]:
    """The kernels that hide a card: the one that the probe named, else all of them."""
    hiding = [
        kernel
        for kernel in facts.value("jupyter.kernels") or ()
        if any(name.upper() == NAME and _hides(facts, value) for name, value in (kernel.get("env") or {}).items())
    ]
    where = values.get("kernel") or values.get("where", "")
    return [kernel for kernel in hiding if kernel["name"] == where] or hiding


FIX = Fix("unset-variable", refuses, plan)
