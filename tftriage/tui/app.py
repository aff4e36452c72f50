"""The Textual app: holds the session, the language and what every screen needs."""

from __future__ import annotations

import sys
import threading
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import msgspec
from textual import events
from textual.binding import BindingType

from tftriage import cases, choose, recent
from tftriage.facts import Facts
from tftriage.headless import USAGE, Stop, source_of, text_of
from tftriage.knowledge import Knowledge, load
from tftriage.plain import plain
from tftriage.requests import Target
from tftriage.session import Session
from tftriage.tui import glyphs, pasting
from tftriage.tui.base import Choices, TriageScreen
from tftriage.tui.burst import Bursts
from tftriage.tui.celldiff import CellDiffApp
from tftriage.tui.commands import LANGUAGE, QUIT, bindings
from tftriage.tui.pasting import Typed
from tftriage.tui.screens.start import StartScreen


class TriageApp(CellDiffApp[int]):
    """``busy`` is held by the one thread that works with the session; ``leaving`` tells it that the screen is gone."""

    CSS_PATH = "tftriage.tcss"
    ENABLE_COMMAND_PALETTE = False
    ESCAPE_DELAY = 0.05
    BINDINGS: ClassVar[list[BindingType]] = bindings(LANGUAGE, QUIT)

    def __init__(self, kb: Knowledge, session: Session, lang: str, ascii_only: bool = False) -> None:
        super().__init__(ansi_color=True)  # before the theme, or NO_COLOR would mean shades of grey
        self.kb = kb
        self.session = session
        self.home: Session | None = None  # this machine's session, while a case is open
        self.lang = lang
        self.ascii = ascii_only
        self.busy = threading.Lock()
        self.leaving = threading.Event()
        self.ending: threading.Thread | None = None
        self.first: Callable[[], TriageScreen] | None = None  # a screen to begin on; the first one is below it
        self.theme = "ansi-dark"
        if ascii_only:
            self._filters.append(glyphs.AsciiFrames())
        self._bursts = Bursts(self.set_timer, super().on_event)

    def on_mount(self) -> None:
        """The first screen; a recorded case goes on where it ended."""
        self.push_screen(StartScreen())
        if self.first is not None:
            self.push_screen(self.first())

    async def on_event(self, event: events.Event) -> None:
        """Key presses go through the burst detector: a paste that arrives as keys never presses a command."""
        if isinstance(event, (events.Key, Typed)):
            await self._bursts.take(event)
        else:
            await super().on_event(event)

    def _set_pointer_shape(self, shape: str) -> None:
        """The mouse is off: its pointer is not ours, and asking for a shape would cost bytes on every screen."""

    def action_language(self) -> None:
        """The other language, everywhere."""
        self.lang = "en" if self.lang == "zh" else "zh"
        for screen in self.screen_stack:
            repaint = getattr(screen, "repaint", None)
            if repaint is not None and screen.is_mounted:
                repaint()

    async def action_quit(self) -> None:
        """Leave at once, whatever still runs: the collector and its children are ended.

        Only while a fix changes things one Q is not enough: it says so first.
        """
        if isinstance(self.screen, TriageScreen) and self.screen.hold():
            return
        self.leaving.set()
        self.stop_looking()
        self.exit(0)

    def stop_looking(self) -> None:
        """End the collector and what it started, in a thread: a hung import takes a moment to end."""
        self.ending = threading.Thread(target=self.session.close, name="tftriage-ending", daemon=True)
        self.ending.start()

    def to_start(self, notice: str = "") -> None:
        """Back to the first screen, whatever stands above it."""
        while not isinstance(self.screen, StartScreen):
            if isinstance(self.screen, TriageScreen):
                self.screen.leave()
            self.pop_screen()
        self.screen.notice = notice
        self.screen.query_one(Choices).highlighted = None
        self.screen.repaint()

    def new_session(self, target: Target) -> None:
        """The same text on another target: what was seen of the old one does not count any more."""
        old = self.session
        keep = ("pythons.list", "env.process", "system.os", "paste.text")
        old.source.close()
        self.session = Session(self.kb, old.source, target, "", Facts(old.facts[n] for n in keep if old.facts.ok(n)))
        self.session.text, self.session.matched = old.text, old.matched  # recognising 10 MB again takes its time

    def take_session(self, session: Session) -> None:
        """Another triage on the first screen: a recorded case, or this machine again (which is kept meanwhile)."""
        if self.session.source.live:
            self.home = self.session
            self.stop_looking()
        self.session = session
        self.to_start()
        if isinstance(self.screen, StartScreen):
            self.screen.started()

    def suggest_target(self) -> None:
        """Choose the likely environment when the person did not say (blocking: in a thread)."""
        session = self.session
        session.observe(("pythons.list", "env.process", "system.os"))
        if session.target.python is None:
            python, _ = choose.suggest(session.facts, session.text)
            session.retarget(msgspec.structs.replace(session.target, python=python))


def triage(options: Namespace) -> int:
    """``tftriage [FILE|-]``: the screen, with that text pasted."""
    text = text_of(options) if options.file else ""
    kb = load()
    if options.case:
        return show_case(options.case, options)
    target = Target(
        python=options.python, module=options.module, cwd=options.cwd, kernel=options.kernel,
        fresh=options.fresh, search=tuple(options.search),
    )  # fmt: skip
    return _run(_app(Session(kb, source_of(options, kb), target, plain(text)), options))


def open_case(options: Namespace) -> int:
    """``tftriage open CASE``."""
    recent.remember(Path(options.case))
    return show_case(options.case, options)


def monitor(options: Namespace) -> int:
    """``tftriage monitor`` in a terminal."""
    from tftriage.monitoring import session_of
    from tftriage.tui.screens.monitor import MonitorScreen

    app = _app(session_of(options, load()), options)
    app.first = MonitorScreen
    return _run(app)


def show_case(path: str, options: Namespace) -> int:
    """The screen on a recorded case."""
    kb = load()
    try:
        case = cases.read(Path(path))
        session = cases.replay(case, kb)
    except cases.CaseError as error:
        raise Stop(USAGE, str(error)) from error
    return _run(_app(session, options))


def _app(session: Session, options: Namespace) -> TriageApp:
    app = TriageApp(session.knowledge, session, options.lang, options.ascii or glyphs.wanted())
    app.full_redraw = options.full_redraw
    return app


def _run(app: TriageApp) -> int:
    if not sys.stdout.isatty() and sys.platform != "win32":
        raise Stop(USAGE, app.kb.say("error.no-terminal", app.lang))
    _reopen_terminal()
    pasting.install()
    try:
        app.run(mouse=False)
    finally:
        app.leaving.set()
        if app.ending is None:
            app.session.close()
        else:
            app.ending.join(timeout=5.0)
    return app.return_code or 0


def _reopen_terminal() -> None:
    """After ``command | tftriage -`` standard input is the pipe's end: keys come from the terminal itself."""
    if sys.stdin is not None and not sys.stdin.isatty() and sys.platform != "win32":
        import os

        try:
            terminal = os.open("/dev/tty", os.O_RDONLY)
        except OSError:
            return
        os.dup2(terminal, 0)
        os.close(terminal)
