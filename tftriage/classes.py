"""A class: many cases as one table, grouped by root cause. Each case is walked once and kept in an index.

The index is a sqlite3 file in this person's state folder, one for each folder of cases: the folder itself may be a
share that others write to. A row is made anew when its file or the knowledge base has changed.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from tftriage import cases
from tftriage.fixes.journal import state_folder
from tftriage.knowledge import Knowledge
from tftriage.message import language_of, script
from tftriage.plain import one_line
from tftriage.probes import PROBES
from tftriage.session import Session
from tftriage.walk import Ask

# Probes whose fault stands for itself, whatever the way to it was; the others mean something only at their node.
INDEPENDENT = (
    "package_whole", "one_tensorflow", "shadowed", "dependencies_fit", "python_fits", "build_gpu", "gpu_hidden",
    "card_fits", "driver_state", "antivirus_seen",
)  # fmt: skip
VERSION = 1  # of the index's form: another one is made anew
ENDINGS = (".json", ".tftriage")
_COLUMNS = (
    "file TEXT PRIMARY KEY, size INTEGER, changed INTEGER, knowledge TEXT, owner TEXT, system TEXT, python TEXT, "
    "tensorflow TEXT, gpu TEXT, lang TEXT, symptom TEXT, cause TEXT, asks TEXT, fix TEXT, also TEXT, error TEXT"
)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One case. ``cause`` is a diagnosis; ``asks`` the question at which the walk waits; ``error`` why it is no case.

    ``also`` are further causes that the facts show by themselves; ``fix`` is the first one that can be planned.
    ``handled`` and ``note`` are the assistant's own.
    """

    file: str
    owner: str = ""
    system: str = ""
    python: str = ""
    tensorflow: str = ""
    gpu: str = ""
    lang: str = "en"
    symptom: str = ""
    cause: str = ""
    asks: str = ""
    fix: str = ""
    also: tuple[str, ...] = ()
    error: str = ""
    handled: bool = False
    note: str = ""


class Group(msgspec.Struct, frozen=True):
    """Who shares a cause, and what the first fix would cure. ``cause`` is empty where a question is open."""

    cause: str
    files: tuple[str, ...]
    fixes: dict[str, int]
    handled: int


class ClassIndex:
    """The index of one folder. Not for two threads at once."""

    def __init__(self, folder: Path, kb: Knowledge, state: Path | None = None) -> None:
        self.folder, self.kb = folder, kb
        name = hashlib.sha256(os.path.normcase(folder.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        place = (state or state_folder()) / "classes"
        place.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(place / f"{name}.sqlite", check_same_thread=False)
        if self._db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            self._db.executescript("DROP TABLE IF EXISTS cases")
        self._db.execute(f"CREATE TABLE IF NOT EXISTS cases ({_COLUMNS})")
        self._db.execute("CREATE TABLE IF NOT EXISTS marks (file TEXT PRIMARY KEY, handled INTEGER, note TEXT)")
        self._db.execute(f"PRAGMA user_version = {VERSION}")
        self._db.commit()

    def close(self) -> None:
        """The index stays for the next time."""
        self._db.close()

    def update(self, progress: Callable[[int, int], None] | None = None, at_most: int = 0) -> int:
        """Read what is new or changed, forget what is gone; the number of cases read (``at_most``: then stop).

        Raises ``OSError`` when the folder cannot be read.
        """
        there = dict(_files(self.folder))
        query = "SELECT file, size, changed FROM cases WHERE knowledge = ?"
        known = {file: (size, changed) for file, size, changed in self._db.execute(query, (self.kb.digest,))}
        new = [file for file, stamp in there.items() if known.get(file) != stamp][: at_most or None]
        with self._db:
            gone = [(file,) for (file,) in self._db.execute("SELECT file FROM cases") if file not in there]
            self._db.executemany("DELETE FROM cases WHERE file = ?", gone)
        for number, file in enumerate(new):
            row = self._look(file)
            values = (file, *there[file], self.kb.digest, row.owner, row.system, row.python, row.tensorflow, row.gpu)
            ends = (row.lang, row.symptom, row.cause, row.asks, row.fix, " ".join(row.also), row.error)
            self._db.execute(f"INSERT OR REPLACE INTO cases VALUES ({', '.join('?' * 16)})", (*values, *ends))
            if number % 50 == 49:
                self._db.commit()
            if progress is not None:
                progress(number + 1, len(new))
        self._db.commit()
        return len(new)

    def _look(self, file: str) -> Row:
        try:
            return row_of(file, cases.replay(cases.read(self.folder / file), self.kb))
        except cases.CaseError as error:
            return Row(file=file, error=one_line(str(error), 200))

    def rows(self) -> list[Row]:
        """Every case of the folder, by file name."""
        names = [name for name in Row.__struct_fields__ if name not in ("handled", "note")]
        query = (
            f"SELECT {', '.join('cases.' + name for name in names)}, coalesce(handled, 0), coalesce(note, '') "
            "FROM cases LEFT JOIN marks USING (file) ORDER BY file"
        )
        found = []
        for *values, handled, note in self._db.execute(query):
            fields: dict[str, Any] = dict(zip(names, values, strict=True))
            fields["also"] = tuple(str(fields["also"]).split())
            found.append(Row(**fields, handled=bool(handled), note=note))
        return found

    def mark(self, file: str, handled: bool, note: str) -> None:
        """The assistant's own words on a case; they stay when the case is read anew."""
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", (file, int(handled), note))


def _files(folder: Path) -> Iterable[tuple[str, tuple[int, int]]]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            if entry.name.lower().endswith(ENDINGS) and entry.is_file():
                about = entry.stat()
                yield entry.name, (about.st_size, about.st_mtime_ns)


def row_of(file: str, session: Session) -> Row:
    """A case's row, from its replay."""
    diagnosis, request = session.diagnosis, session.request
    lang = language_of(session)
    python = _text(session, "target.interpreter", "version")
    cards = _value(session, "gpu.devices").get("devices") or [{}]
    first = cards[0] if isinstance(cards, list) and isinstance(cards[0], dict) else {}
    return Row(
        file=file,
        owner=_text(session, "system.user", "name"),
        system=" ".join(filter(None, (_text(session, "system.os", "system"), _text(session, "system.os", "release")))),
        python=python,
        tensorflow=_text(session, "tf.package", "version"),
        gpu=one_line(str(first.get("name") or ""), 60),
        lang=lang,
        symptom=session.walk.symptom if session.walk else "",
        cause=diagnosis.id if diagnosis else "",
        asks=request.node if isinstance(request, Ask) else "" if session.walk else "symptom",
        fix=script(session, lang)[0] or "" if diagnosis else "",
        also=also_seen(session),
    )


def _value(session: Session, fact: str) -> dict[str, Any]:
    value = session.facts.value(fact)
    return value if isinstance(value, dict) else {}


def _text(session: Session, fact: str, key: str) -> str:
    value = _value(session, fact).get(key)
    if isinstance(value, (list, tuple)):
        return ".".join(str(part) for part in value[:3])
    return one_line(str(value), 60) if value is not None else ""


def also_seen(session: Session) -> tuple[str, ...]:
    """Causes besides the one that the walk found: a probe off the walk saw a fault, and one answer leads to it."""
    kb = session.knowledge
    walked = {step.node for step in session.walk.steps} if session.walk else set()
    ours = session.diagnosis.id if session.diagnosis else None
    found: dict[str, None] = {}
    for name, node in kb.nodes.items():
        if node.probe not in INDEPENDENT or name in walked or any(kb.nodes[w].probe == node.probe for w in walked):
            continue
        finding = PROBES[str(node.probe)](session.facts, kb.tables)
        kind, _, diagnosis = str(node.answers.get(finding.answer, "")).partition(":")
        fault = kind == "diagnosis" and kb.diagnoses[diagnosis].verdict == "fault"
        if fault and diagnosis != ours and any(e.level == "bad" for e in finding.evidence):
            found.setdefault(diagnosis)
    return tuple(found)


def groups(rows: Iterable[Row]) -> list[Group]:
    """By root cause, the most frequent first; what is no case and what needs a person are groups of their own."""
    by: dict[str, list[Row]] = {}
    for row in rows:
        by.setdefault(row.cause or ("error" if row.error else f"asks:{row.asks}" if row.asks else ""), []).append(row)
    made = []
    for cause, members in by.items():
        fixes: dict[str, int] = {}
        for row in members:
            if row.fix:
                fixes[row.fix] = fixes.get(row.fix, 0) + 1
        made.append(Group(cause, tuple(r.file for r in members), fixes, sum(r.handled for r in members)))
    return sorted(made, key=lambda group: (-len(group.files), group.cause))
