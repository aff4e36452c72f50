"""The same steps as commands that a person could type. Nothing here is run."""

# Paths here are texts of the machine they are of, kept byte for byte.
# ruff: noqa: PTH120
from __future__ import annotations

import os
from collections.abc import Sequence

from tftriage.facts import Facts
from tftriage.fixes import paths, quoting, situation, states
from tftriage.fixes.effects import PROBLEMS
from tftriage.fixes.plans import (
    BuildFolder,
    CopyFile,
    EditKernelspec,
    MoveAside,
    RemoveFile,
    Run,
    SetMachineValue,
    SetUserVariable,
    Step,
    UnsetUserVariable,
    WriteFile,
)

_KINDS = {"REG_SZ": "String", "REG_EXPAND_SZ": "ExpandString"}
# Setting a variable that does not exist to nothing changes nothing, and tells running programs to look again.
_TELL = "[Environment]::SetEnvironmentVariable('TFTRIAGE_NONE', $null, 'User')"


def shells(facts: Facts) -> tuple[str, ...]:
    """The shells a person has on such a machine."""
    return ("cmd", "powershell") if situation.windows(facts) else ("bash",)


def quoted(argv: Sequence[str], shell: str) -> str:
    return {"cmd": quoting.cmd, "powershell": quoting.powershell, "bash": quoting.bash}[shell](argv)


def for_step(step: Step, shell: str) -> list[str]:
    """The step in one shell's words; empty where that shell has none that does exactly the same."""
    match step:
        case Run():
            return [quoted(step.argv, shell)]
        case BuildFolder():
            return [quoted(argv, shell) for argv in step.commands]
        case SetMachineValue():
            if shell == "bash":
                return []
            add = ("reg", "add", f"HKLM\\{step.key}", "/v", step.name, "/t", "REG_DWORD", "/d", str(step.value), "/f")
            return [quoted(add, shell)]
        case CopyFile():
            return _copy(step, shell)
        case MoveAside():
            if shell == "powershell":
                return [f"Move-Item -LiteralPath {_ps(step.path)} -Destination {_ps(step.to)}"]
            return [
                quoted(
                    (
                        "move" if shell == "cmd" else "mv",
                        *(() if shell == "cmd" else ("-n",)),
                        step.path,
                        step.to,
                    ),
                    shell,
                )
            ]
        case RemoveFile():
            if shell == "powershell":
                return [f"Remove-Item -LiteralPath {_ps(step.path)}"]
            return [quoted(("del" if shell == "cmd" else "rm", step.path), shell)]
        case WriteFile() | EditKernelspec():
            return _write(step, shell)
        case SetUserVariable():
            return _set(step, shell)
        case UnsetUserVariable():
            if shell == "cmd":
                return [f'reg delete "HKCU\\Environment" /v {step.name} /f']
            return (
                [f"[Environment]::SetEnvironmentVariable({_ps(step.name)}, $null, 'User')"]
                if shell == "powershell"
                else []
            )


def _ps(text: str) -> str:
    return quoting.ps_string(text)


def _copy(step: CopyFile, shell: str) -> list[str]:
    if shell == "cmd":
        return [f'if not exist "{step.target}" copy "{step.source}" "{step.target}"']
    if shell == "powershell":
        copy = f"Copy-Item -LiteralPath {_ps(step.source)} -Destination {_ps(step.target)}"
        return [f"if (-not (Test-Path -LiteralPath {_ps(step.target)})) {{ {copy} }}"]
    return [quoting.bash(("cp", "-n", "--", step.source, step.target))]


def _write(step: WriteFile | EditKernelspec, shell: str) -> list[str]:
    """The whole new text. cmd cannot write one without changing it: there the file is opened to be edited."""
    if shell == "cmd":
        return [f'notepad "{step.path}"']
    try:
        text = states.new_data(step).decode("utf-8")
    except PROBLEMS:
        return []
    if shell == "powershell":
        folder = step.path.rpartition("\\")[0]
        return [
            f"[void][IO.Directory]::CreateDirectory({_ps(folder)})",
            f"[IO.File]::WriteAllText({_ps(step.path)}, {_ps(text)}, (New-Object Text.UTF8Encoding $false))",
        ]
    lines = [
        f"mkdir -p -- {quoting.sh(os.path.dirname(step.path))}",
        f"printf %s {quoting.sh(text)} > {quoting.sh(step.path)}",
    ]
    if isinstance(step, WriteFile) and step.mode is not None:
        lines.append(f"chmod {step.mode:o} -- {quoting.sh(step.path)}")
    return lines


def _set(step: SetUserVariable, shell: str) -> list[str]:
    if shell == "powershell":
        place = f"Set-ItemProperty -LiteralPath 'HKCU:\\Environment' -Name {_ps(step.name)}"
        return [f"{place} -Value {_ps(step.value)} -Type {_KINDS[step.type]}", _TELL]
    if shell != "cmd":
        return []
    if "%" not in step.value and '"' not in step.value:
        value = step.value + ("\\" if step.value.endswith("\\") else "")
        return [f'reg add "HKCU\\Environment" /v {step.name} /t {step.type} /d "{value}" /f']
    # A % in a typed line is always filled in, so the value cannot be given exactly: this window only.
    entries = paths.compare(step.expected.value or "", step.value)
    first = []
    for entry in entries:
        if entry.mark not in ("added", "moved"):
            break
        first.append(entry.text)
    return ["rem this window only", f'set "PATH={";".join(first)};%PATH%"'] if first else []
