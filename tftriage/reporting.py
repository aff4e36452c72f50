"""The command ``report``: a case, or this machine, as something to hand to another person."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import msgspec

from tftriage import cases, headless, pages, report
from tftriage.headless import BLIND, OK, USAGE, Stop, complain, out
from tftriage.knowledge import load
from tftriage.session import Session


def command(options: Namespace) -> int:
    """``tftriage report CASE --format md|html|svg|json [-o FILE]``; without CASE the target is walked first."""
    kb = load()
    session = _session(options)
    try:
        made = report.of_session(session, options.lang, redact=not options.no_redact)
    except cases.RedactionError as error:
        raise Stop(BLIND, kb.say("redact.refused", options.lang, reason=error)) from error
    finally:
        session.close()
    if options.json or options.format == "json":
        text = msgspec.json.format(msgspec.json.encode(report.document(made)), indent=2).decode() + "\n"
    else:
        text = pages.FORMATS[options.format](made, kb)
    if options.output is None or options.output == "-":
        out(text.rstrip("\n"))
        return OK
    path = Path(options.output)
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise Stop(BLIND, f"{path}: {error.strerror or error}") from error
    complain(kb.say("report.written", options.lang, path=path))
    return OK


def write(session: Session, lang: str, ending: str) -> Path:
    """The redacted report in a new file of the current folder; Markdown unless ``ending`` is a known one."""
    ending = ending if ending in pages.FORMATS else "md"
    path = headless.new_file("report", ending)
    text = pages.FORMATS[ending](report.of_session(session, lang), session.knowledge)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def _session(options: Namespace) -> Session:
    kb = load()
    if options.file is not None:
        try:
            return cases.replay(cases.read(Path(options.file)), kb)
        except cases.CaseError as error:
            raise Stop(USAGE, str(error)) from error
    if not (options.error or options.symptom or options.case):
        raise Stop(USAGE, kb.say("report.need-case", options.lang))
    session = headless.session_of(options, headless.text_of(options), kb)
    try:
        headless.walk(session, options)
    except BaseException:
        session.close()
        raise
    return session
