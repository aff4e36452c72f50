"""What a step touches: as it is now, and as it will be when the step is done. Reads only."""

# Paths here are texts of the machine they are of, kept byte for byte.
# ruff: noqa: PTH110, PTH113, PTH116, PTH208
from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import os
import stat
from collections.abc import Mapping

from tftriage.fixes import disk, kernelspecs, running
from tftriage.fixes.plans import (
    ABSENT,
    BuildFolder,
    CopyFile,
    EditKernelspec,
    Files,
    FileState,
    Folder,
    MachineValue,
    MoveAside,
    Nothing,
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
    Variable,
    WriteFile,
)
from tftriage.fixes.registry import Registry

UNKNOWN = "?"  # the fingerprint of a folder that is still to be made


def file_state(path: str) -> FileState:
    """A file as it is now. ``OSError`` when it is there and cannot be read."""
    if not os.path.lexists(path):
        return FileState(path=path, missing_folders=disk.missing_folders(path))
    info = os.stat(path)
    if stat.S_ISDIR(info.st_mode):
        return FileState(path=path, sha256=f"folder {disk.folder_fingerprint(path)}", mode=stat.S_IMODE(info.st_mode))
    return FileState(path=path, sha256=disk.sha256(path), size=info.st_size, mode=stat.S_IMODE(info.st_mode))


def look(step: Step, registry: Registry) -> State:
    """What the step touches, now. ``OSError``, ``Unsupported`` or ``CannotScan`` when it cannot be read."""
    match step:
        case WriteFile() | EditKernelspec() | RemoveFile():
            return Files(files=(file_state(step.path),))
        case CopyFile():
            return Files(files=(file_state(step.target),))
        case MoveAside():
            return Files(files=(file_state(step.path), file_state(step.to)))
        case SetUserVariable() | UnsetUserVariable():
            return UserVariable(variable=registry.read(step.name))
        case SetMachineValue():
            return MachineValue(key=step.key, name=step.name, value=registry.read_machine(step.key, step.name))
        case BuildFolder():
            return folder_state(step)
        case Run():
            return running.packages(step.python, step.whole) if step.python else Nothing()


def folder_state(step: BuildFolder) -> Folder:
    """The folder as it is now, with the packages of the interpreter in it where there is one."""
    if not os.path.lexists(step.path):
        return Folder(path=step.path, missing_folders=disk.missing_folders(step.path))
    versions: dict[str, str] = {}
    if step.python and os.path.exists(step.python):
        with contextlib.suppress(running.CannotScan):  # half an environment has no packages that count
            versions = running.packages(step.python).versions
    return Folder(path=step.path, fingerprint=disk.folder_fingerprint(step.path), versions=versions)


def check(step: Step, now: State) -> None:
    """Refuse a step whose object is not what the plan was made from: someone changed it meanwhile."""
    match step, now:
        case (WriteFile() | EditKernelspec() | RemoveFile(), Files()):
            found = now.files[0].sha256 or ABSENT
            if step.expected not in (None, found):
                raise Refused("fix.error.changed-since", what=step.path)
            if isinstance(step, EditKernelspec | RemoveFile) and found == ABSENT:
                raise Refused("fix.error.gone", what=step.path)
        case (CopyFile(), Files()):
            if now.files[0].sha256 is not None:
                raise Refused("fix.error.already-there", what=step.target)
            if not os.path.isfile(step.source):
                raise Refused("fix.error.gone", what=step.source)
        case (MoveAside(), Files()):
            if now.files[0].sha256 is None:
                raise Refused("fix.error.gone", what=step.path)
            if now.files[1].sha256 is not None:
                raise Refused("fix.error.already-there", what=step.to)
        case (SetUserVariable() | UnsetUserVariable(), UserVariable()):
            if not same_variable(now.variable, step.expected):
                raise Refused("fix.error.changed-since", what=f"HKCU\\Environment {step.name}")
        case (SetMachineValue(), MachineValue()):
            if now.value != step.expected:
                raise Refused("fix.error.changed-since", what=f"HKLM\\{step.key} {step.name}")
        case (BuildFolder(), Folder()):
            if now.fingerprint is not None:
                raise Refused("fix.error.already-there", what=step.path)
        case _:
            return


def same_variable(one: Variable, other: Variable) -> bool:
    """Bit for bit: the value and its type."""
    return (one.value, one.type) == (other.value, other.type)


def new_data(step: WriteFile | EditKernelspec) -> bytes:
    """The bytes the step will write. ``Refused`` when the kernel.json cannot be read as one."""
    if isinstance(step, WriteFile):
        return step.data()
    with open(step.path, "rb") as file:
        raw = file.read()
    try:
        return kernelspecs.edited(raw.decode("utf-8"), step.changes).encode("utf-8")
    except (kernelspecs.Broken, UnicodeDecodeError) as error:
        raise Refused("fix.refuse.kernelspec-broken", file=step.path, error=str(error)) from error


def intended(step: Step, before: State) -> State:
    """What will be there when the step is done. For a command: the versions it must bring."""
    match step:
        case WriteFile() | EditKernelspec():
            data = new_data(step)
            return Files(files=(FileState(path=step.path, sha256=hashlib.sha256(data).hexdigest(), size=len(data)),))
        case CopyFile():
            return Files(files=(_as(file_state(step.source), step.target),))
        case MoveAside():
            assert isinstance(before, Files)
            return Files(files=(FileState(path=step.path), _as(before.files[0], step.to)))
        case RemoveFile():
            return Files(files=(FileState(path=step.path),))
        case SetUserVariable():
            return UserVariable(variable=Variable(step.name, step.value, step.type))
        case UnsetUserVariable():
            return UserVariable(variable=Variable(step.name))
        case SetMachineValue():
            return MachineValue(key=step.key, name=step.name, value=step.value)
        case BuildFolder():
            versions = {name: version for name, version in step.packages.items() if version is not None}
            return Folder(path=step.path, fingerprint=UNKNOWN, versions=versions)
        case Run():
            versions = {name: version for name, version in step.packages.items() if version is not None}
            return Packages(python=step.python, versions=versions) if step.python else Nothing()


def _as(state: FileState, path: str) -> FileState:
    return FileState(path=path, sha256=state.sha256, size=state.size, mode=state.mode)


def same(one: State, other: State) -> bool:
    """Whether two states are the same as far as we answer for them: content of files, value and type, versions."""
    match one, other:
        case Files(), Files():
            return [(f.path, f.sha256) for f in one.files] == [(f.path, f.sha256) for f in other.files]
        case UserVariable(), UserVariable():
            return same_variable(one.variable, other.variable)
        case Packages(), Packages():
            return one.versions == other.versions
        case Folder(), Folder():
            return (one.path, one.fingerprint) == (other.path, other.fingerprint)
        case MachineValue(), MachineValue():
            return one == other
        case Nothing(), Nothing():
            return True
    return False


def reached(step: Step, ours: State, now: State) -> bool:
    """Whether what is there now is what the step was to bring."""
    if isinstance(now, Folder) and isinstance(step, BuildFolder):
        return now.fingerprint is not None and _has(now.versions, step.packages) and _holds(step)
    if not isinstance(now, Packages) or not isinstance(ours, Packages):
        return same(ours, now)
    assert isinstance(step, Run)
    gone = not set(step.absent) & set(now.versions)
    return _has(now.versions, step.packages) and gone and all(now.damaged.get(name) == 0 for name in step.whole)


def _has(versions: Mapping[str, str], wanted: Mapping[str, str | None]) -> bool:
    return all(name in versions and version in (None, versions[name]) for name, version in wanted.items())


def _holds(step: BuildFolder) -> bool:
    names = os.listdir(step.path)
    return all(fnmatch.filter(names, pattern) for pattern in step.files)


def ours(before: State, left: State, finished: bool, now: State) -> bool:
    """Whether nobody but us has been at it: it is as before (not begun, or put back already) or as we ``left`` it.

    Of a command that did not come to its end (``finished`` false) whatever differs from before is its work.
    """
    if isinstance(before, Folder) and not finished:
        return True  # it was not there, and was announced: what is there is what the commands have made so far
    if isinstance(before, Packages) and isinstance(now, Packages):
        if not finished or not isinstance(left, Packages):
            return True
        names = [n for n in {*before.versions, *left.versions} if before.versions.get(n) != left.versions.get(n)]
        return all(now.versions.get(n) in (before.versions.get(n), left.versions.get(n)) for n in names)
    return same(now, before) or same(now, left)
