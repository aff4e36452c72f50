"""The whole triage as questions and answers, line by line (``--plain``, and where TERM is ``dumb``).

The same session, the same words and the same fixes as on the screen; a fix needs its preview and the typed word.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TextIO

from tftriage import cases, headless
from tftriage.headless import OK, PERSON, USAGE, Stop
from tftriage.knowledge import load
from tftriage.lines import End, Lines
from tftriage.requests import Target
from tftriage.session import Session
from tftriage.sources import LiveSource
from tftriage.talk import Talk


def triage(options: Namespace) -> int:
    """``tftriage --plain [FILE|-]``."""
    text = headless.text_of(options) if options.file else ""
    if options.case:
        return open_case(options)
    target = Target(
        python=options.python, module=options.module, cwd=options.cwd, kernel=options.kernel,
        fresh=options.fresh, search=tuple(options.search),
    )  # fmt: skip
    return _converse(Session(load(), LiveSource(), target, text), options)


def open_case(options: Namespace) -> int:
    """``tftriage open CASE --plain``."""
    kb = load()
    try:
        session = cases.replay(cases.read(Path(options.case)), kb)
    except cases.CaseError as error:
        raise Stop(USAGE, str(error)) from error
    return _converse(session, options)


def demo(options: Namespace) -> int:
    """``tftriage demo [NAME] --plain``."""
    found = headless.demo(options)
    if found is None:
        return OK
    options.case = str(found)
    return open_case(options)


def _converse(session: Session, options: Namespace) -> int:
    for stream in (sys.stdin, sys.stdout):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    talk = Talk(session, Lines(_answers(options), sys.stdout), options)
    try:
        talk.hold()
    except End:
        talk.say("plain.end")
    finally:
        talk.session.close()
    if talk.session.walk is None:
        return PERSON if talk.session.text and talk.session.best_match() is None else OK
    return headless.exit_status(talk.session)


def _answers(options: Namespace) -> TextIO:
    """Standard input; behind ``command | tftriage --plain -`` the terminal itself, if there is one."""
    if getattr(options, "file", None) == "-" and sys.platform != "win32":
        try:
            return open("/dev/tty", encoding="utf-8", errors="replace")
        except OSError:
            pass
    return sys.stdin
