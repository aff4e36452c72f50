"""What was done, what was found instead, and what went wrong: as words with a key."""

from __future__ import annotations

import errno

from tftriage.fixes import running
from tftriage.fixes.plans import (
    BuildFolder,
    CopyFile,
    EditKernelspec,
    Folder,
    MachineValue,
    MoveAside,
    Packages,
    Refused,
    RemoveFile,
    Run,
    SetMachineValue,
    SetUserVariable,
    State,
    Step,
    UnsetUserVariable,
    UserVariable,
    WriteFile,
)
from tftriage.fixes.registry import OddType, Unsupported
from tftriage.probes.base import Evidence

PROBLEMS = (OSError, ValueError, Refused, Unsupported, OddType, running.CannotScan)
"""What can go wrong on a machine, and is told to the person; anything else is a defect of ours and is raised."""


def subject(step: Step) -> str:
    """The thing a step changes, in one name."""
    match step:
        case WriteFile() | EditKernelspec() | RemoveFile() | MoveAside() | BuildFolder():
            return step.path
        case SetMachineValue():
            return f"HKLM\\{step.key} {step.name}"
        case CopyFile():
            return step.target
        case SetUserVariable() | UnsetUserVariable():
            return f"HKCU\\Environment {step.name}"
        case Run():
            return step.python or step.argv[0]


def describe(step: Step) -> Evidence:
    """What was done, for the list of finished steps."""
    match step:
        case WriteFile():
            return Evidence("fix.done.written", {"what": step.path}, "ok")
        case EditKernelspec():
            return Evidence("fix.done.kernelspec", {"what": step.path}, "ok")
        case CopyFile():
            return Evidence("fix.done.copied", {"what": step.target}, "ok")
        case MoveAside():
            return Evidence("fix.done.moved", {"what": step.path, "to": step.to}, "ok")
        case RemoveFile():
            return Evidence("fix.done.removed", {"what": step.path}, "ok")
        case SetUserVariable():
            return Evidence("fix.done.variable-set", {"what": step.name}, "ok")
        case UnsetUserVariable():
            return Evidence("fix.done.variable-unset", {"what": step.name}, "ok")
        case SetMachineValue():
            return Evidence("fix.done.variable-set", {"what": step.name}, "ok")
        case BuildFolder():
            return Evidence("fix.done.built", {"what": step.path}, "ok")
        case Run() if step.python and not step.packages:
            return Evidence("fix.done.uninstalled", {"what": ", ".join(step.absent)}, "ok")
        case Run() if step.python:
            names = ", ".join(f"{name} {version or ''}".strip() for name, version in step.packages.items())
            return Evidence("fix.done.installed", {"what": names}, "ok")
        case Run():
            return Evidence("fix.done.ran", {"what": " ".join(step.argv)}, "info")


def found(step: Step, ours: State, after: State) -> str:
    """What was read back instead of what was to be there."""
    if isinstance(ours, Packages) and isinstance(after, Packages) and isinstance(step, Run):
        wrong = [
            f"{name} {after.versions.get(name, '-')}"
            for name, version in step.packages.items()
            if name not in after.versions or version not in (None, after.versions[name])
        ]
        wrong += [f"{name} {after.versions[name]}" for name in step.absent if name in after.versions]
        return ", ".join([*wrong, *(f"{name}: {count} files" for name, count in after.damaged.items() if count)])
    if isinstance(after, Folder) and isinstance(step, BuildFolder):
        return ", ".join(f"{name} {after.versions.get(name, '-')}" for name in step.packages)
    if isinstance(after, MachineValue):
        return str(after.value)
    if isinstance(after, UserVariable):
        return f"{after.variable.type} {after.variable.value}"
    return ""


def explain(error: BaseException) -> Evidence:
    """An error as words with a key: what a person can do something about has its own."""
    match error:
        case Refused():
            return error.evidence
        case Unsupported():
            return Evidence("fix.error.no-registry", {}, "bad")
        case OddType():
            return Evidence("fix.error.odd-type", {"what": str(error)}, "bad")
        case running.CannotScan():
            return Evidence("fix.error.cannot-read-packages", {"error": str(error)}, "bad")
        case KeyboardInterrupt():
            return Evidence("fix.error.interrupted", {}, "bad")
        case OSError():
            params = {"what": str(error.filename or ""), "error": error.strerror or str(error)}
            winerror = getattr(error, "winerror", None)
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or winerror == 112:
                return Evidence("fix.error.disk-full", params, "bad")
            if winerror == 32:
                return Evidence("fix.error.in-use", params, "bad")
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) or winerror == 5:
                return Evidence("fix.error.no-permission", params, "bad")
            if isinstance(error, FileExistsError):
                return Evidence("fix.error.already-there", params, "bad")
            return Evidence("fix.error.system", params, "bad")
    return Evidence("fix.error.system", {"what": type(error).__name__, "error": str(error)}, "bad")


def bare(evidence: Evidence) -> str:
    """A message's bare content, for use inside another message."""
    return " ".join([evidence.key, *(value for value in evidence.params.values() if value)])
