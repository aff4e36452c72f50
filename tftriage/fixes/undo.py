"""Taking back: a fix that was applied, or what a crash left of one.

Compared first, always: a thing is put back only while it is as we left it. If someone has changed it since, that is
a conflict, shown with all three values, and the person chooses.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

import msgspec

from tftriage.fixes import effects, running, situation, states
from tftriage.fixes.journal import Busy, Entry, Journal, StepRecord
from tftriage.fixes.plans import Files, Folder, MachineValue, Packages, Plan, Refused, Run, State, Step, UserVariable
from tftriage.fixes.registry import Registry, user_registry
from tftriage.probes.base import Evidence

Choice = Literal["restore", "keep"]


class Conflict(msgspec.Struct, frozen=True):
    """Someone changed what a step had written. ``saved`` was there before us, ``ours`` is what we left; ``diff`` leads
    from ``saved`` to ``now`` where both are text."""

    step: int
    what: str
    saved: str
    ours: str
    now: str
    diff: tuple[str, ...] = ()


class Undone(msgspec.Struct, frozen=True):
    """``ok``: everything is as it was, or kept by choice. Steps without conflict are taken back in any case."""

    ok: bool
    conflicts: tuple[Conflict, ...] = ()
    error: Evidence | None = None


def undo(
    journal: Journal,
    entry_id: str,
    force: Mapping[int, Choice] | None = None,
    *,
    registry: Registry | None = None,
    on_output: Callable[[str], None] | None = None,
) -> Undone:
    """Take an entry back, last step first. ``force`` decides conflicts by step: ``restore`` or ``keep`` what is now.

    A crash in the middle is no harm: what was put back already is seen, and the rest follows at the next call.
    """
    registry = registry or user_registry()
    try:
        with journal.locked():
            entry = journal.entry(entry_id)
            if not entry.plan.undoable:
                return Undone(False, (), Evidence("fix.error.not-undoable", {"fix": entry.fix}, "bad"))
            if entry.status in ("failed", "undone"):
                return Undone(False, (), Evidence("fix.error.nothing-to-undo", {"entry": entry_id}, "bad"))
            _wait_for_nobody(entry)
            return _take_back(journal, entry, force or {}, registry, on_output)
    except KeyError:
        return Undone(False, (), Evidence("fix.error.no-such-entry", {"entry": entry_id}, "bad"))
    except Busy as busy:
        return Undone(False, (), busy.evidence)
    except effects.PROBLEMS as error:
        return Undone(False, (), effects.explain(error))


def recover(
    journal: Journal,
    entry_id: str | None = None,
    how: Literal["take-back", "finish"] = "take-back",
    *,
    registry: Registry | None = None,
    force: Mapping[int, Choice] | None = None,
    on_output: Callable[[str], None] | None = None,
) -> dict[str, Undone]:
    """Deal with what a crash left (all of it, or one entry): take it back, or carry it to its end.

    ``finish`` does the steps that are not done yet; when one cannot be done the entry is taken back instead, and
    ``error`` says why. An undo that was cut off is always carried to its end. By entry id; empty: nothing to do.
    """
    registry = registry or user_registry()
    result: dict[str, Undone] = {}
    for found in reversed(journal.unfinished()):  # the latest first: it may stand on what an earlier one did
        if entry_id not in (None, found.id):
            continue
        try:
            with journal.locked():
                entry = journal.entry(found.id)
                _wait_for_nobody(entry)
                if entry.status == "interrupted" and not entry.plan.undoable and how != "finish":
                    why = Evidence("fix.error.not-undoable", {"fix": entry.fix}, "bad")
                    journal.finish(entry.id, "failed", why)
                    result[entry.id] = Undone(False, (), why)
                elif how == "finish" and entry.status == "interrupted":
                    result[entry.id] = _finish(journal, entry, registry, force or {}, on_output)
                else:
                    result[entry.id] = _take_back(journal, entry, force or {}, registry, on_output)
        except Busy as busy:
            result[found.id] = Undone(False, (), busy.evidence)
        except effects.PROBLEMS as error:
            result[found.id] = Undone(False, (), effects.explain(error))
    return result


def _wait_for_nobody(entry: Entry) -> None:
    """Refuse while a command that the dead process had started still runs: it would change things under us."""
    for record in entry.steps:
        if record.status == "intent" and record.pid is not None and record.started is not None:
            at = running.started(record.pid)
            if at is not None and abs(at - record.started) < 2.0:
                raise Refused("fix.error.still-running", pid=str(record.pid))


def _finish(
    journal: Journal,
    entry: Entry,
    registry: Registry,
    force: Mapping[int, Choice],
    on_output: Callable[[str], None] | None,
) -> Undone:
    """Do the rest of an interrupted plan. A step found done is not done again."""
    records = {record.index: record for record in entry.steps}
    try:
        for index, step in enumerate(entry.plan.steps):
            record = records.get(index)
            if record is not None and record.status == "done":
                continue
            if record is not None:
                for file in record.before.files if isinstance(record.before, Files) else ():
                    effects.sweep(file.path)
                now = states.look(step, registry)
                by_command = isinstance(record.ours, Packages | Folder)
                if states.reached(step, record.ours, now) and not by_command:
                    journal.step_done(entry.id, index, now, 0.0)
                    continue
                if not by_command and not states.same(now, record.before):
                    raise Refused("fix.error.changed-since", what=effects.subject(step))
                if isinstance(record.ours, Folder):  # half of a folder is no folder: made anew
                    effects.restore(step, record, registry, journal, now=now, on_output=on_output)
                # The packages of before the first attempt stay the ones that undo brings back.
                journal.step_intent(entry.id, index, record.before, record.ours)
                effects.do(step, registry, partial(journal.step_started, entry.id, index), on_output)
                after = states.look(step, registry)
                if not states.reached(step, record.ours, after):
                    raise Refused("fix.error.not-as-written", what=effects.subject(step), found="")
            else:
                after = effects.one(step, entry.id, index, journal, registry, on_output)
            journal.step_done(entry.id, index, after, 0.0)
    except effects.PROBLEMS as error:
        back = _take_back(journal, journal.entry(entry.id), force, registry, on_output)
        return Undone(False, back.conflicts, effects.explain(error))
    journal.finish(entry.id, "applied")
    return Undone(True)


def _take_back(
    journal: Journal,
    entry: Entry,
    force: Mapping[int, Choice],
    registry: Registry,
    on_output: Callable[[str], None] | None,
) -> Undone:
    plan: Plan = entry.plan
    later = _changed_later(journal, entry)
    compared: list[tuple[StepRecord, State, bool]] = []
    for record in filter(_is_open, entry.steps):
        step = plan.steps[record.index]
        now = states.look(step, registry)
        left = record.after or record.ours
        ours = states.ours(record.before, left, record.after is not None, now) and effects.subject(step) not in later
        compared.append((record, now, ours))
    journal.undo_begin(entry.id)
    conflicts: list[Conflict] = []
    for record, now, ours in reversed(compared):
        step = plan.steps[record.index]
        choice = force.get(record.index)
        if not ours and choice is None:
            conflicts.append(_conflict(step, record, now, journal))
        elif not ours and choice == "keep":
            journal.step_undone(entry.id, record.index, kept=True)
        else:
            if not ours:
                effects.keep(now, journal)  # chosen, and still not lost
            effects.restore(step, record, registry, journal, now=now, on_output=on_output)
            journal.step_undone(entry.id, record.index)
    journal.undo_finish(entry.id, complete=not conflicts)
    return Undone(not conflicts, tuple(conflicts))


def _is_open(record: StepRecord) -> bool:
    return record.status not in ("undone", "kept")


def _changed_later(journal: Journal, entry: Entry) -> set[str]:
    """What later entries that still stand have changed: they may have left it as this one did, and stand on it.

    Commands are left out: two of them share an environment, and their packages are compared by version anyway.
    """
    entries = journal.entries()
    at = next((number for number, one in enumerate(entries) if one.id == entry.id), len(entries))
    standing = [one for one in entries[at + 1 :] if one.undoable]
    steps = [one.plan.steps[record.index] for one in standing for record in one.steps if _is_open(record)]
    return {effects.subject(step) for step in steps if not isinstance(step, Run)}


def _conflict(step: Step, record: StepRecord, now: State, journal: Journal) -> Conflict:
    ours = record.after or record.ours
    versions = (show(record.before), show(ours), show(now))
    return Conflict(record.index, effects.subject(step), *versions, _difference(record, now, journal))


def _difference(record: StepRecord, now: State, journal: Journal) -> tuple[str, ...]:
    """The lines by which a text file differs from what was there before us; none for anything else."""
    match record.before, now:
        case Files(files=(before,)), Files(files=(after,)) if before.saved and after.sha256:
            try:
                old = journal.saved(before.saved).decode("utf-8").splitlines()
                new = (situation.read(after.path) or b"").decode("utf-8").splitlines()
            except (OSError, ValueError):
                return ()
            lines = difflib.unified_diff(old, new, n=0, lineterm="")
            return tuple(line for line in lines if not line.startswith(("---", "+++", "@@")))[:40]
    return ()


def show(state: State) -> str:
    """A state in one line, for a person who has to choose."""
    match state:
        case Files():
            return "; ".join("-" if f.sha256 is None else f"{f.size} bytes, {f.sha256[:12]}" for f in state.files)
        case UserVariable():
            variable = state.variable
            return "-" if variable.value is None else f"{variable.type} {variable.value}"
        case Folder():
            return "-" if state.fingerprint is None else f"{state.path} {state.fingerprint[:12]}"
        case MachineValue():
            return "-" if state.value is None else f"REG_DWORD {state.value}"
        case Packages():
            return ", ".join(f"{name} {version}" for name, version in sorted(state.versions.items()))
    return "?"
