"""register-ipykernel: a kernelspec for the target's interpreter, so that a notebook can choose it.

Registering selects the interpreter; it does not give its PATH (that is kernel-path). The file is written as data:
``ipykernel install`` would do the same and could not be taken back.
"""

from __future__ import annotations

import os
import re
from typing import Any

from tftriage.facts import Facts
from tftriage.fixes import kernelspecs, situation
from tftriage.fixes.plans import EditKernelspec, Plan, Refused, Run, Step, Verify, WriteFile
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import Tables

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9._-]+")  # jupyter_client.kernelspec takes [A-Za-z0-9._-] only


def refuses(facts: Facts, values: Values) -> str | None:
    interpreter = situation.interpreter(facts)
    if not interpreter:
        return "fix.refuse.no-interpreter"
    if not interpreter.get("ipykernel") and not interpreter.get("pip"):
        return "fix.refuse.no-pip"
    return None


def kernel_name(facts: Facts, values: Values) -> str:
    """The kernel's name: the one asked for, else the environment's, in the characters that Jupyter takes."""
    wanted = values.get("name") or situation.environment_name(facts)
    return _NOT_IN_A_NAME.sub("-", wanted.lower()).strip("-.") or "tensorflow"


def kernels_folder(facts: Facts) -> str:
    """Where this user's kernels lie. Raises ``Refused`` when that cannot be told."""
    path = situation.path_rules(facts)
    process = facts.value("env.process") or {}
    data = process.get("JUPYTER_DATA_DIR") or (os.environ.get("JUPYTER_DATA_DIR") if situation.here(facts) else None)
    if data:
        return str(path.join(data, "kernels"))
    for kernel in facts.value("jupyter.kernels") or ():
        if kernel.get("scope") == "user":
            return str(path.dirname(kernel["folder"]))
    home = situation.need(situation.home(facts), "fix.refuse.no-home")
    if situation.windows(facts):
        roaming = (os.environ.get("APPDATA") if situation.here(facts) else None) or path.join(
            home, "AppData", "Roaming"
        )
        return str(path.join(roaming, "jupyter", "kernels"))
    if (facts.value("system.os") or {}).get("system") == "Darwin":
        return str(path.join(home, "Library", "Jupyter", "kernels"))
    local = (os.environ.get("XDG_DATA_HOME") if situation.here(facts) else None) or path.join(home, ".local", "share")
    return str(path.join(local, "jupyter", "kernels"))


def spec_for(facts: Facts, name: str) -> dict[str, Any]:
    """The kernelspec: absolute interpreter, as ipykernel writes it."""
    interpreter = situation.interpreter(facts)
    version = str(interpreter.get("ipykernel") or "6")
    label = situation.environment_name(facts) or name
    return {
        "argv": [interpreter["executable"], "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": f"Python ({label})",
        "language": "python",
        # The debugger came with ipykernel 6; an older one would offer it and fail.
        "metadata": {"debugger": True} if version.split(".")[0] not in ("4", "5") else {},
    }


def plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(facts, values):
        raise Refused(reason)
    interpreter = situation.interpreter(facts)
    python = interpreter["executable"]
    name = kernel_name(facts, values)
    path = situation.path_rules(facts)
    file = path.join(kernels_folder(facts), name, "kernel.json")
    spec = spec_for(facts, name)
    steps: list[Step] = []
    needs: list[str] = []
    notes: list[Evidence] = []
    if not interpreter.get("ipykernel"):
        steps.append(
            Run(
                argv=(python, "-m", "pip", "install", "ipykernel"),
                undo_argv=((python, "-m", "pip", "uninstall", "-y", "ipykernel"),),
                env=situation.pip_environment(facts),
                cwd=interpreter.get("prefix"),
                python=python,
                packages={"ipykernel": None},
            )
        )
        needs.append("network")
        notes.append(Evidence("fix.note.ipykernel-first", {"python": python}, "info"))
    old = situation.read(file) if situation.here(facts) else None
    expected = situation.fingerprint(old) if situation.here(facts) else None
    if old is None:
        steps.append(WriteFile(path=file, text=kernelspecs.created(spec), expected=expected))
    else:
        try:
            there = kernelspecs.parse(old.decode("utf-8"))
        except (kernelspecs.Broken, UnicodeDecodeError):
            steps.append(WriteFile(path=file, text=kernelspecs.created(spec), expected=expected))
        else:
            if not steps and there.get("argv") == spec["argv"]:
                raise Refused("fix.refuse.kernel-there", kernel=name)
            steps.append(EditKernelspec(path=file, changes=spec, expected=expected))
        notes.append(Evidence("fix.note.replaces-kernel", {"kernel": name, "file": file}, "info"))
    notes.append(Evidence("fix.note.choose-kernel", {"display_name": spec["display_name"]}, "info"))
    needs.append("restart-kernel")
    needs += situation.rights(facts, path.dirname(file))
    return Plan(
        fix="register-ipykernel",
        title={"kernel": name, "display_name": spec["display_name"], "python": python},
        steps=tuple(steps),
        needs=tuple(needs),
        risk="safe" if len(steps) == 1 else "moderate",
        python=python,
        notes=tuple(notes),
        verify=Verify(
            facts=("jupyter.kernels", "target.interpreter", "jupyter.import"),
            probe="kernel_import",
            good_answers=("works",),
            context={"fresh": False, "kernel": name, "env": {}},
        ),
    )


FIX = Fix("register-ipykernel", refuses, plan)
