"""What a plan would do, in lines for a person, and the commands that would do the same by hand. Changes nothing."""

# Paths here are texts of the machine they are of, kept byte for byte.
# ruff: noqa: PTH110, PTH120, PTH202
from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from typing import Literal

import msgspec

from tftriage.facts import Facts
from tftriage.fixes import commands, disk, paths, situation, states
from tftriage.fixes.effects import PROBLEMS, explain
from tftriage.fixes.path_environment import decoded
from tftriage.fixes.plans import (
    BuildFolder,
    CopyFile,
    EditKernelspec,
    MoveAside,
    Plan,
    RemoveFile,
    Risk,
    Run,
    SetMachineValue,
    SetUserVariable,
    Step,
    UnsetUserVariable,
    WriteFile,
)
from tftriage.probes.base import Evidence

Kind = Literal["file", "diff+", "diff-", "diff=", "path+", "path-", "path=", "path~", "command", "note"]
_MARKS: dict[paths.Mark, Kind] = {"added": "path+", "removed": "path-", "kept": "path=", "moved": "path~"}


class Line(msgspec.Struct, frozen=True):
    """One line. ``text`` is shown as it is, except of a ``note``: there it is a key of
    knowledge/evidence/fixes.yaml and ``params`` fills its placeholders. ``diff=`` is context, ``path~`` moved."""

    kind: Kind
    text: str
    params: dict[str, str] = {}


class Preview(msgspec.Struct, frozen=True):
    """``commands`` by shell (cmd, powershell, bash): what a person could type instead. ``undo`` names the words:
    ``fixes.<id>.undo`` is the text ``undo`` of that fix in the knowledge base."""

    lines: tuple[Line, ...]
    needs: tuple[str, ...]
    risk: Risk
    commands: dict[str, list[str]]
    undo: str
    undoable: bool = True


def preview(plan: Plan, facts: Facts) -> Preview:
    """The preview. What cannot be read becomes a note, never an error."""
    lines: list[Line] = []
    for step in plan.steps:
        try:
            lines += _step(step, facts)
        except PROBLEMS as error:
            lines.append(_note(explain(error)))
    lines += [_note(evidence) for evidence in (*plan.notes, *plan.predicted)]
    by_hand = {shell: [*plan.commands.get(shell, ())] for shell in commands.shells(facts)}
    for shell, texts in by_hand.items():
        for step in plan.steps:
            texts += commands.for_step(step, shell)
    by_hand = {shell: texts for shell, texts in by_hand.items() if texts}
    if not plan.steps:
        lines += [Line("command", text) for texts in by_hand.values() for text in texts]
    return Preview(tuple(lines), plan.needs, plan.risk, by_hand, f"fixes.{plan.fix}.undo", plan.undoable)


def _step(step: Step, facts: Facts) -> Iterator[Line]:
    match step:
        case WriteFile() | EditKernelspec():
            yield Line("file", step.path)
            old = situation.read(step.path) if situation.here(facts) else None
            if step.expected is not None and situation.fingerprint(old) != step.expected:
                yield _note(Evidence("fix.error.changed-since", {"what": step.path}, "bad"))
            yield from _diff(step, old, facts)
            yield from _rights(os.path.dirname(step.path), facts)
        case CopyFile():
            yield Line("file", step.target)
            size = os.path.getsize(step.source) if situation.here(facts) and os.path.exists(step.source) else None
            params = {
                "source": step.source,
                "target": step.target,
                "size": "?" if size is None else f"{size:,}",
            }
            yield Line("note", "fix.note.copy", params)
            yield from _rights(os.path.dirname(step.target), facts)
        case MoveAside():
            yield Line("file", step.path)
            yield Line("note", "fix.note.move", {"path": step.path, "to": step.to})
        case RemoveFile():
            yield Line("file", step.path)
            yield Line("note", "fix.note.remove", {"path": step.path})
        case SetUserVariable():
            yield Line("note", "fix.note.registry", {"name": step.name, "type": step.type})
            if step.name.upper() == "PATH":
                for entry in paths.compare(step.expected.value or "", step.value):
                    yield Line(_MARKS[entry.mark], entry.text)
            else:
                if step.expected.value is not None:
                    yield Line("diff-", f"{step.name}={step.expected.value}")
                yield Line("diff+", f"{step.name}={step.value}")
        case UnsetUserVariable():
            yield Line("note", "fix.note.registry", {"name": step.name, "type": step.expected.type or ""})
            yield Line("diff-", f"{step.name}={step.expected.value}")
        case SetMachineValue():
            yield Line("note", "fix.note.machine-registry", {"key": step.key, "name": step.name})
            if step.expected is not None:
                yield Line("diff-", f"{step.name}={step.expected}")
            yield Line("diff+", f"{step.name}={step.value}")
        case BuildFolder():
            yield Line("file", step.path)
            for text in commands.for_step(step, commands.shells(facts)[0]):
                yield Line("command", text)
            yield from _rights(os.path.dirname(step.path), facts)
        case Run():
            yield Line("command", commands.for_step(step, commands.shells(facts)[0])[0])
            for argv in step.undo_argv:
                text = commands.quoted(argv, commands.shells(facts)[0])
                yield Line("note", "fix.note.undo-command", {"command": text})


def _diff(step: WriteFile | EditKernelspec, old: bytes | None, facts: Facts) -> Iterator[Line]:
    if old is None and isinstance(step, EditKernelspec):
        for name, value in step.changes.items():
            yield Line("diff+", f"{name}: {value}")
        return
    before = decoded(old, facts)[0].splitlines() if old is not None else []
    after = decoded(states.new_data(step), facts)[0].splitlines()
    for index, line in enumerate(difflib.unified_diff(before, after, n=2, lineterm="")):
        if index < 2 or line.startswith("@@"):
            continue
        kind: Kind = "diff+" if line[0] == "+" else "diff-" if line[0] == "-" else "diff="
        yield Line(kind, line[1:])


def _rights(folder: str, facts: Facts) -> Iterator[Line]:
    """Whether this user may write there, said before he is asked to say yes."""
    if situation.here(facts):
        may = disk.may_write(folder)
        if may is not None:
            yield Line("note", "fix.note.may-write" if may else "fix.note.may-not-write", {"folder": folder})


def _note(evidence: Evidence) -> Line:
    return Line("note", evidence.key, evidence.params)
