"""allow-growth and include-small-gpu: set one variable that TensorFlow reads when it starts.

On Windows it is the user's variable in the registry. Elsewhere it belongs to the environment: a script in conda's
``activate.d``, or a marked block in a venv's activate script; a value that somebody has set already wins there.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from tftriage.facts import Facts
from tftriage.fixes import quoting, situation
from tftriage.fixes.path_environment import decoded, with_blocks
from tftriage.fixes.plans import EditKernelspec, Plan, Refused, SetUserVariable, Step, Variable, Verify, WriteFile
from tftriage.fixes.situation import Fix, Values
from tftriage.tables import Tables

GROWTH = "TF_FORCE_GPU_ALLOW_GROWTH"
SMALL = "TF_MIN_GPU_MULTIPROCESSOR_COUNT"
_IDS = {GROWTH: "allow-growth", SMALL: "include-small-gpu"}
_COUNT = re.compile(r"Ignoring (?:visible )?gpu device.*?(?:multiprocessor|core) count: *(\d+)")


def value_of(variable: str, facts: Facts, values: Values) -> str | None:
    """The value to set: for the small card the number of its own multiprocessors, which TensorFlow prints."""
    if variable == GROWTH:
        return "true"
    given = values.get("count") or values.get("error") or ""
    if given.isdigit():
        return given
    for text in (facts.value("paste.text"), (facts.value("tf.gpus") or {}).get("log")):
        if match := _COUNT.search(text or ""):
            return match[1]
    return None


def refuses(variable: str, facts: Facts, values: Values) -> str | None:
    value = value_of(variable, facts, values)
    if value is None:
        return "fix.refuse.no-count"
    if situation.windows(facts):
        if not facts.ok("env.user"):
            return "fix.refuse.user-path-unknown"
        user = _user(facts, variable)
        return "fix.refuse.set-already" if user.value == value else None
    interpreter = situation.interpreter(facts)
    if not interpreter:
        return "fix.refuse.no-interpreter"
    if not interpreter.get("conda") and not interpreter.get("venv"):
        return "fix.refuse.not-an-environment"
    return None


def _user(facts: Facts, variable: str) -> Variable:
    for name, found in ((facts.value("env.user") or {}).get("variables") or {}).items():
        if name.upper() == variable:
            return Variable(name, found["value"], found["type"])
    return Variable(variable)


def plan(variable: str, facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(variable, facts, values):
        raise Refused(reason)
    value = situation.need(value_of(variable, facts, values), "fix.refuse.no-count")
    kernel = _kernel(facts, values)
    if situation.windows(facts):
        user = _user(facts, variable)
        steps: list[Step] = [SetUserVariable(name=user.name, value=value, type=user.type or "REG_SZ", expected=user)]
        needs = ["new-console"]
    else:
        steps, needs = [*_scripts(facts, variable, value)], ["new-console"]
    if kernel is not None:
        file = str(situation.path_rules(facts).join(kernel["folder"], "kernel.json"))
        data = situation.read(file) if situation.here(facts) else None
        expected = situation.fingerprint(data) if situation.here(facts) else None
        steps.append(EditKernelspec(path=file, changes={"env": {variable: value}}, expected=expected))
        needs.append("restart-kernel")
    if not steps:
        raise Refused("fix.refuse.set-already")
    return Plan(
        fix=_IDS[variable],
        title={"name": variable, "value": value},
        steps=tuple(steps),
        needs=tuple(needs),
        risk="safe",
        python=situation.interpreter(facts).get("executable"),
        verify=Verify(
            facts=("tf.operation",),
            probe="gpu_operation",
            good_answers=("right",),
            context={"fresh": True, "kernel": None, "env": {variable: value}},
        ),
    )


def _kernel(facts: Facts, values: Values) -> dict[str, Any] | None:
    """The kernel in which it failed: a kernel does not run any activate script."""
    wanted = values.get("kernel") or facts.value("target.kernel")
    return next((kernel for kernel in facts.value("jupyter.kernels") or () if kernel["name"] == wanted), None)


def _scripts(facts: Facts, variable: str, value: str) -> list[WriteFile]:
    interpreter = situation.interpreter(facts)
    path = situation.path_rules(facts)
    prefix = str(interpreter["prefix"])
    flag = f"_TFTRIAGE_SET_{variable}"
    add = [
        f'if [ -z "${{{variable}+x}}" ]; then',
        f"    export {variable}={quoting.sh(value)} {flag}=1",
        "fi",
    ]
    remove = [f'if [ -n "${{{flag}:-}}" ]; then', f"    unset {variable} {flag}", "fi"]
    if interpreter.get("venv"):
        file = path.join(prefix, "bin", "activate")
        raw = situation.need(situation.read(file) if situation.here(facts) else b"", "fix.refuse.no-activate-script")
        text, encoding = decoded(raw, facts)
        new = with_blocks(text, "#", add, remove, name=variable)
        step = WriteFile(path=file, text=new, encoding=encoding, expected=situation.fingerprint(raw))
        return [step] if new != text else []
    steps = []
    for folder, lines in (("activate.d", add), ("deactivate.d", remove)):
        file = path.join(prefix, "etc", "conda", folder, f"tftriage-{_IDS[variable]}.sh")
        old = situation.read(file) if situation.here(facts) else None
        expected = situation.fingerprint(old) if situation.here(facts) else None
        step = WriteFile(path=file, text="\n".join(lines) + "\n", newline="\n", expected=expected)
        if step.data() != old:
            steps.append(step)
    return steps


FIXES = tuple(Fix(id, partial(refuses, name), partial(plan, name)) for name, id in _IDS.items())
