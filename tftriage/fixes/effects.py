"""The only writer of the program: carries a plan out, step by step, each announced in the journal first.

A step is: look, compare with what the plan was made from, write down what is there and what will be, do it, look
again. What was read back decides, never a command's exit status. When a step fails, the steps before it are taken
back, so that the machine is as it was.
"""

# Paths here are texts of the machine they are of, kept byte for byte.
# ruff: noqa: PTH103, PTH106, PTH108, PTH120
from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from functools import partial

import msgspec

from tftriage.fixes import disk, running, states
from tftriage.fixes.journal import Busy, Journal, StepRecord
from tftriage.fixes.plans import (
    BuildFolder,
    CopyFile,
    EditKernelspec,
    Files,
    FileState,
    Folder,
    MachineValue,
    MoveAside,
    Packages,
    Plan,
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
from tftriage.fixes.registry import Registry, user_registry
from tftriage.fixes.telling import PROBLEMS, bare, describe, explain, found, subject
from tftriage.probes.base import Evidence

__all__ = ["PROBLEMS", "Applied", "StepResult", "apply", "bare", "describe", "explain", "found", "subject"]

Output = Callable[[str], None]


class StepResult(msgspec.Struct, frozen=True):
    """One step's end. ``detail`` has its words in knowledge/evidence/fixes.yaml; ``read_back``: seen, not assumed."""

    index: int
    ok: bool
    detail: Evidence
    seconds: float
    read_back: bool


class Applied(msgspec.Struct, frozen=True):
    """What became of a plan. ``entry_id`` is None when nothing was begun. With ``ok`` false nothing has changed,
    unless ``error`` is ``fix.error.not-taken-back``."""

    entry_id: str | None
    results: tuple[StepResult, ...]
    ok: bool
    error: Evidence | None = None


def apply(
    plan: Plan,
    journal: Journal,
    on_step: Callable[[StepResult], None] | None = None,
    *,
    registry: Registry | None = None,
    on_output: Output | None = None,
) -> Applied:
    """Carry a plan out. What can go wrong on a machine comes back as ``error``.

    ``on_output`` gets a command's lines while it runs. Ctrl-C takes back what was done and is raised on.
    """
    registry = registry or user_registry()
    if not plan.steps:
        return Applied(None, (), False, Evidence("fix.error.by-hand-only", {}, "bad"))
    try:
        with journal.locked():
            if journal.unfinished():
                return Applied(None, (), False, Evidence("fix.error.unfinished", {}, "bad"))
            for step in plan.steps:  # all of them before the first: a plan that is out of date changes nothing
                states.check(step, states.look(step, registry))
            return _carry_out(plan, journal, on_step or (lambda result: None), registry, on_output)
    except Busy as busy:
        return Applied(None, (), False, busy.evidence)
    except PROBLEMS as error:
        return Applied(None, (), False, explain(error))


def _carry_out(
    plan: Plan,
    journal: Journal,
    on_step: Callable[[StepResult], None],
    registry: Registry,
    on_output: Output | None,
) -> Applied:
    entry = journal.begin(plan)
    results: list[StepResult] = []
    for index, step in enumerate(plan.steps):
        start = time.monotonic()
        try:
            after = one(step, entry, index, journal, registry, on_output)
            seconds = time.monotonic() - start
            journal.step_done(entry, index, after, seconds)
            read_back = not isinstance(step, Run) or step.python is not None
            results.append(StepResult(index, True, describe(step), seconds, read_back))
            on_step(results[-1])
            if index == len(plan.steps) - 1:
                journal.finish(entry, "applied")
        except BaseException as error:
            why = explain(error)
            result = StepResult(index, False, why, time.monotonic() - start, False)
            back = _abandon(entry, index, why, journal, registry, on_output)
            if not isinstance(error, PROBLEMS):
                raise
            on_step(result)
            return Applied(entry, (*results[:index], result), False, why if back is None else back)
    return Applied(entry, tuple(results), True)


def one(step: Step, entry: str, index: int, journal: Journal, registry: Registry, on_output: Output | None) -> State:
    """One step, announced, done and read back. Returns what is there now."""
    before = keep(states.look(step, registry), journal)
    states.check(step, before)
    ours = states.intended(step, before)
    journal.step_intent(entry, index, before, ours)
    do(step, registry, partial(journal.step_started, entry, index), on_output)
    after = states.look(step, registry)
    if not states.reached(step, ours, after):
        raise Refused("fix.error.not-as-written", what=subject(step), found=found(step, ours, after))
    return after


def _abandon(
    entry: str, index: int, why: Evidence, journal: Journal, registry: Registry, on_output: Output | None
) -> Evidence | None:
    """Take back what was done, the failed step first. None when all is as it was, else what is not."""
    trouble: Evidence | None = None
    try:
        journal.step_failed(entry, index, why)
        plan, records = journal.entry(entry).plan, journal.entry(entry).steps
        for record in reversed(records):
            step = plan.steps[record.index]
            now = states.look(step, registry)
            if not states.ours(record.before, record.after or record.ours, record.after is not None, now):
                raise Refused("fix.error.changed-since", what=subject(step))
            if plan.undoable or not isinstance(step, Run):
                restore(step, record, registry, journal, now=now, on_output=on_output)
                journal.step_undone(entry, record.index)
        journal.finish(entry, "failed", why)
    except PROBLEMS as error:  # the entry stays open: recovery deals with it
        trouble = Evidence("fix.error.not-taken-back", {"why": bare(why), "error": bare(explain(error))}, "bad")
    return trouble


def keep(state: State, journal: Journal) -> State:
    """The state, with the content of its files kept in the journal's folder (none for a name that is only moved)."""
    if not isinstance(state, Files):
        return state
    kept = [f if f.sha256 is None or len(state.files) > 1 else _saved(f, journal) for f in state.files]
    return Files(files=tuple(kept))


def _saved(state: FileState, journal: Journal) -> FileState:
    key = journal.save(state.path)
    if key != state.sha256:
        raise Refused("fix.error.changed-since", what=state.path)
    return msgspec.structs.replace(state, saved=key)


def do(
    step: Step,
    registry: Registry,
    on_start: Callable[[int, float], None] | None = None,
    on_output: Output | None = None,
) -> None:
    """The change itself. What is there afterwards is for the caller to see."""
    match step:
        case WriteFile() | EditKernelspec():
            data = states.new_data(step)
            _make_folders(step.path)
            disk.write(step.path, data, step.mode if isinstance(step, WriteFile) else None)
        case CopyFile():
            _make_folders(step.target)
            disk.copy_new(step.source, step.target)
        case MoveAside():
            disk.rename_new(step.path, step.to)
        case RemoveFile():
            os.unlink(step.path)
        case SetUserVariable():
            registry.write(Variable(step.name, step.value, step.type))
            registry.broadcast()
        case UnsetUserVariable():
            registry.delete(step.name)
            registry.broadcast()
        case SetMachineValue():
            registry.write_machine(step.key, step.name, step.value)
        case Run():
            _command(step.argv, step, on_start, on_output)
        case BuildFolder():
            for argv in step.commands:
                _command(argv, step, on_start, on_output)


def _command(
    argv: tuple[str, ...],
    step: Run | BuildFolder,
    on_start: Callable[[int, float], None] | None,
    on_output: Output | None,
) -> None:
    result = running.run(
        argv, env=step.env, cwd=step.cwd, limit=step.limit, on_output=on_output, on_start=on_start
    )  # fmt: skip
    if result.exit != 0:
        key = "fix.error.command-stopped" if result.exit is None else "fix.error.command-failed"
        exit_text = "" if result.exit is None else str(result.exit)
        raise Refused(key, command=" ".join(argv), exit=exit_text, tail=result.tail[-1500:])


def restore(
    step: Step, record: StepRecord, registry: Registry, journal: Journal, *, now: State | None = None,
    on_output: Output | None = None,
) -> None:  # fmt: skip
    """Put back what was there before a step, and see that it is there. The caller has compared already.

    Raises ``Refused``, ``OSError`` and the like when it is not as before afterwards.
    """
    now = now or states.look(step, registry)
    match step, record.before:
        case (MoveAside(), Files()):
            if not states.same(now, record.before):
                disk.rename_new(step.to, step.path)
        case (_, Files() as before):
            _restore_file(before.files[0], journal)
        case (_, UserVariable() as before):
            if not states.same_variable(before.variable, registry.read(before.variable.name)):
                if before.variable.value is None:
                    registry.delete(before.variable.name)
                else:
                    registry.write(before.variable)
                registry.broadcast()
        case (_, Folder() as before):
            disk.remove_tree(before.path)
            _remove_empty(before.missing_folders)
        case (SetMachineValue(), MachineValue() as before):
            registry.write_machine(before.key, before.name, before.value)
        case (Run(), Packages() as before):
            _restore_packages(step, before, touched(record, now), on_output)
            return
        case (Run(), _):
            for argv in step.undo_argv:
                do(Run(argv=argv, env=step.env, cwd=step.cwd, limit=step.limit), registry, None, on_output)
            return
    if not states.same(states.look(step, registry), record.before):
        raise Refused("fix.error.not-as-written", what=subject(step), found="")


def sweep(path: str) -> None:
    """Remove what a crash in the middle of writing ``path`` left beside it."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(disk.temporary(path))


def _restore_file(before: FileState, journal: Journal) -> None:
    sweep(before.path)
    if before.sha256 is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(before.path)
        _remove_empty(before.missing_folders)
    elif states.file_state(before.path).sha256 != before.sha256:
        assert before.saved is not None
        disk.write(before.path, journal.saved(before.saved), before.mode)


def _remove_empty(folders: tuple[str, ...]) -> None:
    for folder in reversed(folders):
        with contextlib.suppress(OSError):  # something else lives in it by now: it stays
            os.rmdir(folder)


def touched(record: StepRecord, now: State) -> Packages:
    """What a command left: the packages read after it, or, when it did not come to its end, those of now."""
    after = record.after if isinstance(record.after, Packages) else now
    assert isinstance(after, Packages)
    return after


def _restore_packages(step: Run, before: Packages, after: Packages, on_output: Output | None) -> None:
    now = running.packages(before.python)
    names = {n for n in {*before.versions, *after.versions} if before.versions.get(n) != after.versions.get(n)}
    then = {name: version for name, version in before.versions.items() if name in names}
    there = {name: version for name, version in now.versions.items() if name in names}
    for argv in running.restoring(before.python, then, there):
        result = running.run(argv, env=step.env, cwd=step.cwd, limit=step.limit, on_output=on_output)
        if result.exit != 0:
            raise Refused(
                "fix.error.command-failed",
                command=" ".join(argv),
                exit=str(result.exit),
                tail=result.tail[-1500:],
            )
    found = running.packages(before.python).versions
    wrong = sorted(name for name in names if found.get(name) != before.versions.get(name))
    if wrong:
        raise Refused("fix.error.not-as-written", what=before.python, found=", ".join(wrong))


def _make_folders(path: str) -> None:
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
