"""The journal: what is about to happen is on the disk before it happens.

One JSON object a line, only ever appended, each line forced to the disk before the step it announces. Content that
a step replaces is kept beside it (``saved/``), named by its SHA-256. A line cut off by a power cut is passed over;
what it announced had not begun.

Lines of one entry: ``begin`` (the plan), per step ``intent`` (before, ours), ``started`` (a command's process) and
``done`` (after) or ``failed``; ``finish``; later ``undo-begin``, per step ``undone``, ``undo-finish``.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal

import msgspec
import platformdirs

from tftriage.fixes import disk
from tftriage.fixes.plans import Plan, State
from tftriage.probes.base import Evidence

Status = Literal["interrupted", "applied", "failed", "undo-interrupted", "partly-undone", "undone"]
StepStatus = Literal["intent", "done", "failed", "undone", "kept"]


class Busy(Exception):
    """Another tftriage is changing this machine. ``pid`` is its process number, as far as known."""

    def __init__(self, pid: str) -> None:
        super().__init__(f"another tftriage (process {pid or '?'}) is applying or undoing a fix")
        self.evidence = Evidence("fix.error.busy", {"pid": pid or "?"}, "bad")


class StepRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the journal knows of one step. ``after`` is what was read back when it was done."""

    index: int
    before: State
    ours: State
    status: StepStatus = "intent"
    after: State | None = None
    seconds: float = 0.0
    pid: int | None = None
    started: float | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One application of a plan. ``at`` is the local time with its offset, ISO 8601."""

    id: str
    at: str
    plan: Plan
    status: Status
    steps: tuple[StepRecord, ...] = ()
    error: Evidence | None = None

    @property
    def fix(self) -> str:
        return self.plan.fix

    @property
    def undoable(self) -> bool:
        return self.plan.undoable and self.status in ("applied", "partly-undone", "undo-interrupted")


def state_folder() -> Path:
    """Where the journal lies: the user's state folder, or TFTRIAGE_STATE (a stick, a test)."""
    given = os.environ.get("TFTRIAGE_STATE")
    return Path(given) if given else platformdirs.user_state_path("tftriage", appauthor=False)


class Journal:
    """The journal in a folder. Reading needs no lock; ``locked`` is for whoever changes the machine."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else state_folder()
        self._lock: IO[bytes] | None = None
        self._depth = 0

    @property
    def file(self) -> Path:
        return self.path / "journal.jsonl"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the journal for one change. Raises ``Busy`` at once when another process or thread holds it.

        The system gives the lock back when its holder dies, so none is ever left behind.
        """
        if self._depth == 0:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = _take(self.path / "lock")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0 and self._lock is not None:
                self._lock.close()
                self._lock = None

    def save(self, path: str) -> str:
        """Keep a file's content; the key it is found by. ``OSError`` (a full disk) leaves nothing half done."""
        with open(path, "rb") as file:
            data = file.read()
        key = hashlib.sha256(data).hexdigest()
        target = self.path / "saved" / key
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            disk.write(str(target), data, 0o600)
        return key

    def saved(self, key: str) -> bytes:
        """The content kept under a key. ``OSError`` when it is gone, ``ValueError`` when it was altered."""
        data = (self.path / "saved" / key).read_bytes()
        if hashlib.sha256(data).hexdigest() != key:
            raise ValueError(f"saved content {key[:12]} was altered")
        return data

    def begin(self, plan: Plan) -> str:
        """Open an entry; its id, a number as text."""
        entry = str(1 + max((int(known) for known in self._lines() if known.isdigit()), default=0))
        now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        self._append(entry, "begin", at=now, plan=plan)
        return entry

    def step_intent(self, entry: str, index: int, before: State, ours: State) -> None:
        self._append(entry, "intent", step=index, before=before, ours=ours)

    def step_started(self, entry: str, index: int, pid: int, started: float) -> None:
        """A command runs: if we die, recovery must not start before it has ended."""
        self._append(entry, "started", step=index, pid=pid, started=started)

    def step_done(self, entry: str, index: int, after: State, seconds: float) -> None:
        self._append(entry, "done", step=index, after=after, seconds=seconds)

    def step_failed(self, entry: str, index: int, error: Evidence) -> None:
        self._append(entry, "failed", step=index, error=error)

    def step_undone(self, entry: str, index: int, kept: bool = False) -> None:
        """The step was taken back, or (``kept``) the person chose to keep what is there now."""
        self._append(entry, "undone", step=index, kept=kept)

    def finish(self, entry: str, status: Literal["applied", "failed"], error: Evidence | None = None) -> None:
        self._append(entry, "finish", status=status, error=error)

    def undo_begin(self, entry: str) -> None:
        self._append(entry, "undo-begin")

    def undo_finish(self, entry: str, complete: bool) -> None:
        self._append(entry, "undo-finish", complete=complete)

    def entries(self) -> tuple[Entry, ...]:
        """All entries, oldest first."""
        return tuple(entry for id, lines in self._lines().items() if (entry := _readable(id, lines)) is not None)

    def entry(self, id: str) -> Entry:
        """One entry. ``KeyError`` when there is none."""
        found = _entry(id, self._lines().get(id, []))
        if found is None:
            raise KeyError(id)
        return found

    def unfinished(self) -> tuple[Entry, ...]:
        """What a crash left in the middle: applied or undone only in part, to be recovered first."""
        return tuple(entry for entry in self.entries() if entry.status in ("interrupted", "undo-interrupted"))

    def _append(self, entry: str, record: str, **values: Any) -> None:
        line = {
            "entry": entry,
            "record": record,
            **{name: msgspec.to_builtins(value) for name, value in values.items()},
        }
        # json, not msgspec: a file name that is not valid Unicode must survive, and does as an escape.
        data = json.dumps(line, ensure_ascii=True).encode("ascii") + b"\n"
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.file, "a+b") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    data = b"#cut off\n" + data  # what was not forced to the disk whole was never announced
            end = file.seek(0, os.SEEK_END)
            try:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                with contextlib.suppress(OSError):
                    file.truncate(end)
                raise
        if sys.platform != "win32" and record == "begin":
            disk.sync_folder(str(self.path))

    def _lines(self) -> dict[str, list[dict[str, Any]]]:
        """The lines by entry. What is not a whole line of ours is passed over."""
        result: dict[str, list[dict[str, Any]]] = {}
        try:
            raw = self.file.read_bytes()
        except FileNotFoundError:
            return result
        for line in raw.split(b"\n")[:-1]:
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict) and isinstance(value.get("entry"), str):
                result.setdefault(value["entry"], []).append(value)
        return result


def _readable(id: str, lines: list[dict[str, Any]]) -> Entry | None:
    """The entry, or None for one that another version of the program wrote in a way that this one cannot read."""
    try:
        return _entry(id, lines)
    except (msgspec.ValidationError, KeyError):
        return None


def _entry(id: str, lines: list[dict[str, Any]]) -> Entry | None:
    """Fold an entry's lines into its present state."""
    if not lines or lines[0]["record"] != "begin":
        return None
    plan = msgspec.convert(lines[0]["plan"], Plan)
    steps: dict[int, StepRecord] = {}
    status: Status = "interrupted"
    error: Evidence | None = None
    for line in lines[1:]:
        match line["record"]:
            case "intent":
                steps[line["step"]] = StepRecord(
                    index=line["step"], before=_state(line["before"]), ours=_state(line["ours"])
                )
            case "started":
                steps[line["step"]] = _with(steps[line["step"]], pid=line["pid"], started=line["started"])
            case "done":
                after = _state(line["after"])
                steps[line["step"]] = _with(steps[line["step"]], status="done", after=after, seconds=line["seconds"])
            case "failed":
                error = msgspec.convert(line["error"], Evidence)
                if line["step"] in steps:
                    steps[line["step"]] = _with(steps[line["step"]], status="failed")
            case "undone":
                steps[line["step"]] = _with(steps[line["step"]], status="kept" if line["kept"] else "undone")
            case "finish":
                status = line["status"]
                error = msgspec.convert(line["error"], Evidence) if line["error"] else error
            case "undo-begin":
                status = "undo-interrupted"
            case "undo-finish":
                status = "undone" if line["complete"] else "partly-undone"
    records = tuple(steps[index] for index in sorted(steps))
    return Entry(id=id, at=lines[0]["at"], plan=plan, status=status, steps=records, error=error)


def _state(value: Any) -> State:
    state: State = msgspec.convert(value, State)
    return state


def _with(record: StepRecord, **changes: Any) -> StepRecord:
    return msgspec.structs.replace(record, **changes)


def _take(path: Path) -> IO[bytes]:
    """Lock a file for as long as it stays open. The number of the process is in it, for the other one's message."""
    file = open(path, "a+b")  # noqa: SIM115 - it must outlive this function
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(1 << 20)  # a byte that nobody reads: a locked one could not be read by the other process
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        pid = file.read(20).decode("ascii", "replace").strip()
        file.close()
        raise Busy(pid) from error
    file.truncate(0)
    file.write(f"{os.getpid()}\n".encode("ascii"))
    file.flush()
    return file
