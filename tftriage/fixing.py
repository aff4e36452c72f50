"""The commands that change something: ``fix list|show|apply``, ``undo``, ``journal``, and ``run``."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from argparse import Namespace
from typing import IO, Any

from tftriage import headless, mend, show
from tftriage.fixes import never
from tftriage.fixes.catalogue import FIXES
from tftriage.fixes.effects import StepResult
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import Plan, Refused
from tftriage.fixes.preview import preview
from tftriage.fixes.undo import Choice, Conflict, recover
from tftriage.fixes.undo import undo as undo_entry
from tftriage.headless import FAULT, OK, USAGE, Stop, complain, out, out_json
from tftriage.knowledge import Knowledge, load
from tftriage.plain import plain
from tftriage.session import Session

KEEP = 4 * 1024 * 1024  # bytes of a command's output that are kept for the triage


def fix_list(options: Namespace) -> int:
    """Every fix: what it changes, what undo does."""
    kb, lang = load(), options.lang
    fixes = [fix for fix in FIXES if _about(kb, fix, options.word)]
    refused = never.looked_for(options.word) if options.word else list(never.NEVER)
    if options.json:
        rows: list[dict[str, Any]] = [
            {"id": f, "title": kb.fixes[f].title, "risk": kb.fixes[f].risk, "needs": kb.fixes[f].needs} for f in fixes
        ]
        if options.word:
            rows += [{"id": n, "never": True, "why": kb.myths[never.NEVER[n]].truth} for n in refused]
        out_json(rows)
        return OK
    for fix in fixes:
        words = kb.fixes[fix]
        what = re.sub(r"\{(\w+)\}", r"<\1>", words.what[lang]).strip()
        out(f"{fix:<22} {words.title[lang]}\n{'':<22} {what}")
    if refused:
        out("\n" + kb.say("fix.never", lang))
    for name in refused:
        out(_never(kb, name, lang) if options.word else f"{name:<22} {kb.myths[never.NEVER[name]].claim[lang].strip()}")
    if not fixes and not refused:
        out(kb.say("error.no-such-fix", lang, fix=options.word))
    return OK


def _about(kb: Knowledge, fix: str, word: str | None) -> bool:
    """Whether a fix has the word in its name or its texts, in either language."""
    words = kb.fixes[fix]
    texts = (fix, *words.title.values(), *words.what.values())
    return not word or any(word.lower() in text.lower() for text in texts)


def _never(kb: Knowledge, name: str, lang: str) -> str:
    """What is never done, and the reason."""
    myth = kb.myths[never.NEVER[name]]
    return f"{name:<22} {myth.claim[lang].strip()}\n{'':<22} {myth.truth[lang].strip()}"


def _planned(options: Namespace) -> tuple[Session, Plan]:
    """Walk to a diagnosis and plan the fix for it. Raises ``Stop`` (2) with the reason when it does not apply."""
    kb = load()
    if options.id not in FIXES:
        refused = [_never(kb, name, options.lang) for name in never.looked_for(options.id)]
        if refused:
            raise Stop(USAGE, "\n".join([kb.say("fix.never", options.lang), *refused]))
        raise Stop(USAGE, kb.say("error.no-such-fix", options.lang, fix=options.id))
    session = headless.session_of(options, headless.text_of(options), kb)
    try:
        headless.walk(session, options)
        given = dict(pair.split("=", 1) for pair in options.set)
        diagnosis = session.diagnosis
        if not given and (diagnosis is None or options.id not in diagnosis.fixes):
            found = diagnosis.title[options.lang] if diagnosis else "-"
            raise Stop(USAGE, kb.say("fix.not-for-this", options.lang, fix=options.id, diagnosis=found))
        return session, mend.plan(session, options.id, given)
    except Refused as refused:
        session.close()
        raise Stop(USAGE, refusal(kb, refused, options.lang)) from refused
    except BaseException:
        session.close()
        raise


def refusal(kb: Knowledge, refused: Refused, lang: str) -> str:
    """Why a fix does not apply here, in words."""
    return show.sentence(kb, refused.evidence, lang)


def preview_lines(kb: Knowledge, plan: Plan, session: Session, lang: str) -> list[str]:
    """A plan as lines: what changes, what it needs, what undo does."""
    lines = mend.shown(plan, session.facts, kb, lang)
    return [kb.fixes[plan.fix].title[lang], *(mend.MARKS.get(kind, "") + text for kind, text in lines)]


def fix_show(options: Namespace) -> int:
    """``tftriage fix show ID``: the preview."""
    session, plan = _planned(options)
    try:
        return _show(session, plan, options)
    finally:
        session.close()


def _show(session: Session, plan: Plan, options: Namespace) -> int:
    if options.json:
        shown = preview(plan, session.facts)
        out_json({"plan": plan, "lines": shown.lines, "needs": shown.needs, "commands": shown.commands})
    else:
        out("\n".join(preview_lines(session.knowledge, plan, session, options.lang)))
    return OK


def fix_apply(options: Namespace) -> int:
    """``tftriage fix apply ID``: preview, yes, apply, verify. 0 cured, 1 not cured, 2 refused."""
    session, plan = _planned(options)
    try:
        if options.dry_run:
            return _show(session, plan, options)
        if not _agreed(session, plan, options):
            raise Stop(USAGE, session.knowledge.say("fix.not-agreed", options.lang))
        return _apply(session, plan, options)
    finally:
        session.close()


def _agreed(session: Session, plan: Plan, options: Namespace) -> bool:
    if options.yes:
        return True
    if options.json or not sys.stdin.isatty():
        return False
    out("\n".join(preview_lines(session.knowledge, plan, session, options.lang)))
    return input(session.knowledge.say("fix.type-yes", options.lang)).strip().lower() == "yes"


def _apply(session: Session, plan: Plan, options: Namespace) -> int:
    kb, lang = session.knowledge, options.lang

    def tell(result: StepResult) -> None:
        complain(f"  {'+' if result.ok else 'x'} {show.sentence(kb, result.detail, lang)}  {result.seconds:.1f} s")

    try:
        applied = mend.carry_out(session, plan, Journal(), tell)
    except Refused as refused:
        raise Stop(USAGE, refusal(kb, refused, lang)) from refused
    if not applied.ok:
        error = show.sentence(kb, applied.error, lang) if applied.error else ""
        if options.json:
            out_json({"entry": applied.entry_id, "applied": False, "error": error, "verified": None})
        else:
            out(kb.say("fix.failed", lang, error=error))
        return FAULT
    verified = mend.verify(session, plan, headless.progress(options))
    if options.json:
        document: dict[str, Any] = {"entry": applied.entry_id, "applied": True, "error": None}
        document["verified"] = {
            "result": verified.result, "answer": verified.finding.answer, "diagnosis": verified.diagnosis,
            "evidence": show.evidence_of(kb, verified.finding, lang),
        }  # fmt: skip
        out_json(document)
    else:
        out(kb.say(f"verified.{verified.result}", lang))
        for evidence in verified.finding.evidence:
            out(f"  {show.MARKS[evidence.level]} {show.sentence(kb, evidence, lang)}")
        if verified.diagnosis is not None and verified.result != "cured":
            out(kb.diagnoses[verified.diagnosis].title[lang])
        out(kb.say("fix.undo-with", lang, entry=applied.entry_id))
    return FAULT if verified.result == "not-cured" else OK


def undo(options: Namespace) -> int:
    """``tftriage undo [N]``: take a journalled change back (the last one by default)."""
    kb, lang = load(), options.lang
    journalled = Journal()
    if journalled.unfinished():
        return _recover(kb, journalled, options)
    entries = [entry for entry in journalled.entries() if entry.undoable]
    wanted = options.entry or (entries[-1].id if entries else None)
    if wanted is None:
        raise Stop(USAGE, kb.say("journal.nothing-to-undo", lang))
    steps = range(len(journalled.entry(wanted).steps)) if wanted in {e.id for e in entries} else ()
    choice: Choice | None = "restore" if options.force else "keep" if options.keep else None
    undone = undo_entry(journalled, wanted, dict.fromkeys(steps, choice) if choice else None)
    if undone.conflicts and not options.json and sys.stdin.isatty():
        undone = undo_entry(journalled, wanted, {c.step: _chosen(kb, c, lang) for c in undone.conflicts})
    error = show.sentence(kb, undone.error, lang) if undone.error else None
    if options.json:
        out_json({"entry": wanted, "undone": undone.ok, "conflicts": undone.conflicts, "error": error})
    else:
        out(error or kb.say("undo.done" if undone.ok else "undo.conflict", lang, entry=wanted))
        for conflict in undone.conflicts:
            out("\n".join(_versions(kb, conflict, lang)))
        if undone.conflicts:
            out(kb.say("undo.how-to-choose", lang, entry=wanted))
    return USAGE if undone.error else OK if undone.ok else FAULT


def _versions(kb: Knowledge, conflict: Conflict, lang: str) -> list[str]:
    """The three versions of what somebody has changed since, and what the last change was where it is text."""
    lines = [f"  {plain(conflict.what)}"]
    for key, value in (("before", conflict.saved), ("ours", conflict.ours), ("now", conflict.now)):
        lines.append(f"    {kb.say(f'undo.version-{key}', lang)} {plain(value)}")
    return [*lines, *(f"      {plain(line)}" for line in conflict.diff)]


def _chosen(kb: Knowledge, conflict: Conflict, lang: str) -> Choice:
    """Ask the person which version is to stay; anything but the whole word keeps what is there now."""
    out("\n".join(_versions(kb, conflict, lang)))
    answer = input(kb.say("undo.choose", lang)).strip().lower()
    return "restore" if answer in ("before", "原来") else "keep"


def _recover(kb: Knowledge, journalled: Journal, options: Namespace) -> int:
    """A crash or a power cut left a change in the middle: take it back, or (``--finish``) carry it to its end."""
    lang = options.lang
    ended = recover(journalled, options.entry, "finish" if options.finish else "take-back")
    rows = [
        {"entry": entry, "ok": done.ok, "error": show.sentence(kb, done.error, lang) if done.error else None}
        for entry, done in ended.items()
    ]
    if options.json:
        out_json({"recovered": rows})
    for row in () if options.json else rows:
        ended_well = kb.say("recover.finished" if options.finish else "undo.done", lang, entry=row["entry"])
        out(str(row["error"] or ended_well))
    return OK if all(done.ok for done in ended.values()) else FAULT


def journal(options: Namespace) -> int:
    """``tftriage journal``: what was changed, newest last."""
    kb, lang = load(), options.lang
    entries = Journal().entries()
    if options.json:
        out_json(entries)
        return OK
    for entry in entries:
        title = kb.fixes[entry.fix].title[lang] if entry.fix in kb.fixes else entry.fix
        out(f"{entry.id:<6} {entry.at:<26} {entry.status:<16} {title}")
    if not entries:
        out(kb.say("journal.empty", lang))
    return OK


# --- run ---------------------------------------------------------------------------------------------------


def run(options: Namespace) -> int:
    """``tftriage run -- CMD``: run it unchanged, copy its output, triage it when it fails; CMD's own exit status."""
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    kb, lang = load(), options.lang
    if not command:
        raise Stop(USAGE, kb.say("run.no-command", lang))
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise Stop(USAGE, f"{command[0]}: {error.strerror or error}") from error
    kept = bytearray()
    copies = [
        threading.Thread(target=_copy, args=(stream, sink, kept))
        for stream, sink in ((process.stdout, sys.stdout.buffer), (process.stderr, sys.stderr.buffer))
    ]
    for copy in copies:
        copy.start()
    try:
        process.wait()
    except KeyboardInterrupt:  # the command got it too; its own status counts
        process.wait()
    for copy in copies:
        copy.join()
    if process.returncode != 0:
        _triage(kb, bytes(kept), lang)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _copy(stream: IO[bytes] | None, sink: IO[bytes], kept: bytearray) -> None:
    assert stream is not None
    with stream:
        while chunk := stream.read1(65536):  # type: ignore[attr-defined]
            sink.write(chunk)
            sink.flush()
            kept += chunk
            del kept[:-KEEP]


def _triage(kb: Knowledge, output: bytes, lang: str) -> None:
    from tftriage.matching import match
    from tftriage.reading import decode

    result = match(decode(output), kb.symptoms, kb.tables.loader_errors)
    complain(kb.say("run.failed", lang))
    for found in result.matches[:3]:
        complain(f"  {kb.symptom(found.id).title[lang]}  ({found.id})")
    complain(kb.say("run.next" if result.matches else "run.unrecognised", lang))
