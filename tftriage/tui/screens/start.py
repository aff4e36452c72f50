"""Paste the error, or choose what you see, or let us reproduce it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from tftriage import cases, recent
from tftriage.fixes.journal import Entry, Journal
from tftriage.fixes.undo import recover
from tftriage.matching import MatchResult, match
from tftriage.plain import one_line, plain
from tftriage.session import Session
from tftriage.tui.base import Choices, TriageScreen
from tftriage.tui.commands import DIGITS, EVERYWHERE, RECOVER, START, TYPED, Command, bindings, moves
from tftriage.walk import WalkError

# The clock and the source file at the head of TensorFlow's log lines fill the screen and say nothing.
LOGGED = re.compile(r"^(?:\[[^\]]+\] )?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: ([IWEF]) \S+:\d+\] ")
SHOWN_LINES = 6  # lines of the pasted text on screen: those around the best match
CASE, HOME = "case:", "home:"  # ids of lines that are no symptoms
MOST_TYPED = 100_000  # characters of a pasted text that the box for typing takes


class StartScreen(TriageScreen):
    """The paste box with live recognition, and the list of complaints."""

    COMMANDS_HERE = START
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*START, *RECOVER), *moves(*DIGITS)]

    def __init__(self) -> None:
        super().__init__()
        self.typing = False
        self.recent: list[Path] = []
        self.cut_off: tuple[Entry, ...] = ()  # what a crash left of a fix

    def body(self) -> ComposeResult:
        """Hint, the pasted text, the choices."""
        yield Static(id="hint", markup=False)
        yield Static(id="box", markup=False)
        yield Choices(id="choices", markup=False, classes="chosen")

    def started(self) -> None:
        """Look for the target, and for what a crash left, while the person reads."""
        session = self.triage.session
        if session.walk is not None:  # a recorded case that was walked already
            from tftriage.tui.screens.walk import WalkScreen

            self.app.push_screen(WalkScreen())
        elif session.source.live:
            self._look_for_cut_off()
            self.in_thread(self.triage.suggest_target, lambda _: self.repaint())

    def commands(self) -> tuple[Command, ...]:
        """While typing, only the way out counts; after a crash, what it left comes first."""
        if self.typing:
            return (TYPED,)
        return (*(RECOVER if self.cut_off else ()), *START, *EVERYWHERE)

    def heading(self) -> str:
        """Machine and target."""
        python = self.triage.session.target.python
        where = f"tftriage  {self.say('title.this-machine' if self.triage.session.source.live else 'title.recorded')}  "
        room = self.app.size.width - cell_len(where) - cell_len(self.say("title.other-language")) - 3
        return where + (self.path(python, room) if python else self.say("target.none"))

    def show(self) -> None:
        """Hint, box and choices in the present language."""
        page = self.page()
        for entry in self.cut_off[:1]:
            words = self.triage.kb.fixes.get(entry.fix)
            title, when = self.words(words.title) if words else entry.fix, entry.at[:16].replace("T", " ")
            page.add(self.say("start.cut-off", title=title, when=when), "bold", self.mark("bad"))
        session = self.triage.session
        known = session.target.python is not None or not session.source.live
        if self.notice:
            page.add(self.notice, "bold")
        elif self.typing:
            page.add(self.say("start.typing"))
        elif session.text.strip():
            page.add(self.say("start.hint-pasted"))
        else:
            page.add(self.say("start.hint" if known else "start.hint-no-target"))
            if session.source.live and not recent.toured():
                page.add(self.say("start.first-run"), "dim")
        self.query_one("#hint", Static).update(page.text)
        self.query_one("#box", Static).update(self._pasted())
        self._fill()

    def _pasted(self) -> Text:
        """The lines around the best match; the lines that matched carry a mark."""
        session = self.triage.session
        if not session.text.strip():
            return Text(self.say("start.empty-box"), style="dim")
        lines = plain(session.text).rstrip("\n").split("\n")
        hits: set[int] = set()
        matches = session.matched.matches if session.matched else ()
        for start, end in matches[0].lines if matches else ():
            hits.update(range(start, end + 1))
        last = max(hits, default=len(lines))
        first = max(1, min(last - SHOWN_LINES + 2, len(lines) - SHOWN_LINES + 1))
        mark, style = self.mark("here")
        shown = []
        for number in range(first, min(first + SHOWN_LINES, len(lines) + 1)):
            hit = number in hits
            text = LOGGED.sub(r"\1 ", one_line(lines[number - 1][:2000]))
            shown.append(Text(f"{mark if hit else ' '} {text}", style if hit else ""))
        return Text("\n", no_wrap=True, overflow="ellipsis").join(shown)

    def _fill(self) -> None:
        kb, session = self.triage.kb, self.triage.session
        choices = self.query_one(Choices)
        highlighted = choices.highlighted
        choices.clear_options()
        seen: set[str] = set()
        matches = session.matched.matches[:4] if session.matched else ()
        if session.matched is not None and session.matched.verdict != "fault":
            choices.add(self._heading(f"verdict.{session.matched.verdict}", ""), disabled=True)
        if matches:
            choices.add(self._heading("start.looks-like"), disabled=True)
        for found in matches:
            seen.add(found.id)
            lines = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found.lines[:2])
            where = self.say("start.line", lines=lines) if lines else ""
            title = self.words(kb.symptom(found.id).title)
            choices.add(self._line(len(seen), title, where), id=found.id)
        choices.add(self._heading("start.or-choose" if matches else "start.choose"), disabled=True)
        for symptom in sorted((s for s in kb.symptoms if s.complaint and s.id not in seen), key=lambda s: s.order):
            seen.add(symptom.id)
            choices.add(self._line(len(seen), self.words(symptom.title)), id=symptom.id)
        self._recent(choices)
        if highlighted is not None and highlighted in choices.choosable():
            choices.highlighted = highlighted
        else:
            choices.highlighted = next(iter(choices.choosable()), None)

    def _recent(self, choices: Choices) -> None:
        """Cases that were saved or opened lately; while one is open, the way back to this machine."""
        self.recent = recent.cases()
        home = self.triage.home is not None and not self.triage.session.source.live
        if self.recent or home:
            choices.add(self._heading("recent.heading"), disabled=True)
        if home:
            choices.add(self._line(10, self.say("recent.this-machine")), id=HOME)
        for number, path in enumerate(self.recent):
            when = datetime.fromtimestamp(path.stat().st_mtime).strftime("%Y-%m-%d %H:%M")
            choices.add(self._line(10, self.path(str(path), self.app.size.width - 26), when), id=f"{CASE}{number}")

    def _heading(self, key: str, style: str = "dim") -> Text:
        return Text(" " + self.say(key), style, no_wrap=True, overflow="ellipsis")

    def _line(self, number: int, title: str, right: str = "") -> Text:
        left = Text(f" {number} " if number < 10 else "   ", no_wrap=True, overflow="ellipsis").append(title)
        left.truncate(max(10, self.app.size.width - cell_len(right) - 2), overflow="ellipsis", pad=bool(right))
        return left.append(f" {right}", "dim") if right else left

    # --- pasting and typing ----------------------------------------------------------------------------------

    def pasted(self, text: str) -> None:
        """A paste lands here wherever the bar is; it is text and never a command."""
        if not text.strip("\0 \r\n\t"):
            self.notice = self.say("error.empty-paste")
            self.repaint()
            return
        self.notice = self.say("start.reading")
        self.repaint()
        session, kb = self.triage.session, self.triage.kb

        def done(matched: MatchResult) -> None:
            self.notice = ""
            session.take(text, matched)
            self.query_one(Choices).highlighted = None
            self.repaint()

        # It may be 10 MB; it touches no machine, so it need not wait for what looks at one.
        self.in_thread(lambda: match(text, kb.symptoms, kb.tables.loader_errors), done, alone=False)

    def action_type(self) -> None:
        """A box to type or correct the text in; Esc takes it."""
        from textual.widgets import TextArea  # its modules are a sixth of what our start costs

        self.typing, self.notice = True, ""
        text = plain(self.triage.session.text[:MOST_TYPED])
        entry = TextArea(text, id="entry", soft_wrap=False)
        entry.cursor_blink = False  # a blinking cursor costs bytes on a slow line
        self.query_one("#box").display = False
        self.mount(entry, after="#hint")
        entry.focus()
        self.repaint()

    def key_escape(self) -> None:
        """Take the typed text."""
        if not self.typing:
            return
        from textual.widgets import TextArea

        entry = self.query_one(TextArea)
        self.typing = False
        text = entry.text
        entry.remove()
        self.set_focus(None)
        self.query_one("#box").display = True
        before = self.triage.session.text
        if text.strip() and text != plain(before[:MOST_TYPED]):
            self.pasted(text)
        elif not text.strip() and before:
            self.action_clear()
        else:
            self.repaint()

    def action_clear(self) -> None:
        """Forget the text."""
        self.triage.session.paste("")
        self.notice = ""
        self.query_one(Choices).highlighted = None
        self.repaint()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """While a text is typed no key is a command but those that lead out."""
        return not self.typing or action in ("help", "language", "quit")

    # --- going on ----------------------------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        """The bar."""
        self.query_one(Choices).move(by)

    def action_page(self, pages: int) -> None:
        """The bar, faster."""
        self.query_one(Choices).move(pages * 6)

    def action_end(self, end: int) -> None:
        """The first or the last."""
        self.query_one(Choices).move(end * 10_000)

    def action_follow(self) -> None:
        """Follow the tree of the highlighted choice."""
        choices = self.query_one(Choices)
        if choices.highlighted is not None:
            self.begin(choices.get_option_at_index(choices.highlighted).id or "")

    def action_pick(self, number: int) -> None:
        """A digit chooses a line."""
        choices = self.query_one(Choices)
        places = choices.choosable()
        if number <= len(places):
            self.begin(choices.get_option_at_index(places[number - 1]).id or "")

    def with_target(self, go_on: Callable[[], None], title: dict[str, str]) -> None:
        """Go on once it is known which Python it is about: the person is asked, and then it does go on."""
        from tftriage.tui.screens.target import TargetScreen

        session = self.triage.session
        if not session.source.live or session.target.python is not None:
            go_on()
            return

        def chosen(_: None) -> None:
            if self.triage.session.target.python is not None:
                go_on()

        self.app.push_screen(TargetScreen(title), chosen)

    def begin(self, symptom: str) -> None:
        """Walk from a symptom. Without a target the person chooses one first."""
        from tftriage.tui.screens.walk import WalkScreen

        self.notice = ""
        if symptom.startswith((CASE, HOME)):
            self._open(symptom)
            return
        title = self.triage.kb.symptom(symptom).title
        self.with_target(lambda: self._push(WalkScreen(symptom)), title)

    def _open(self, id: str) -> None:
        """A recent case, or this machine again."""
        if id == HOME:
            home, self.triage.home = self.triage.home, None
            if home is not None:
                self.triage.take_session(home)
            return
        path, kb = self.recent[int(id.removeprefix(CASE))], self.triage.kb

        def work() -> Session | str:
            try:
                return cases.replay(cases.read(path), kb)
            except (cases.CaseError, KeyError, WalkError) as error:
                return one_line(str(error), 200)

        def done(opened: Session | str) -> None:
            if isinstance(opened, str):
                self.notice = self.say("recent.gone", error=opened)
                self.repaint()
                return
            recent.remember(path)
            self.triage.take_session(opened)

        self.in_thread(work, done, alone=False)

    def action_target(self) -> None:
        """Choose the environment."""
        from tftriage.tui.screens.target import TargetScreen

        if not self.triage.session.source.live:
            self.notice = self.say("error.recorded")
            self.repaint()
            return
        self.app.push_screen(TargetScreen(), lambda _: self.repaint())

    def action_doctor(self) -> None:
        """Check everything."""
        from tftriage.tui.screens.doctor import DoctorScreen

        self.notice = ""
        self.with_target(lambda: self._push(DoctorScreen()), self.triage.kb.messages["doctor.heading"])

    def action_reproduce(self) -> None:
        """Let the target fail by itself, then recognise what it printed."""
        if not self.triage.session.source.live:
            self.notice = self.say("error.recorded")
            self.repaint()
            return
        self.with_target(self._reproduce, self.triage.kb.messages["key.reproduce.help"])

    def _reproduce(self) -> None:
        session = self.triage.session
        self.notice = self.say("start.reproducing")
        self.repaint()
        heard = self.from_thread(lambda _: None)

        def done(symptom: str | None) -> None:
            if session is not self.triage.session:
                return  # another target was chosen meanwhile
            self.notice = self.say("diagnose.nothing-wrong") if symptom is None else ""
            choices = self.query_one(Choices)
            choices.highlighted = None
            self.repaint()
            ids = [option.id for option in choices.options]
            if symptom in ids:
                choices.highlighted = ids.index(symptom)

        self.in_thread(lambda: session.reproduce(heard), done)

    # --- after a crash -----------------------------------------------------------------------------------------

    def _look_for_cut_off(self) -> None:
        def look() -> tuple[Entry, ...]:
            try:
                return Journal().unfinished()
            except OSError:
                return ()

        def found(entries: tuple[Entry, ...]) -> None:
            self.cut_off = entries[::-1]  # the latest first: it may stand on what an earlier one did
            self.repaint()

        self.in_thread(look, found, alone=False)

    def action_take_back(self) -> None:
        """What the crash left is undone."""
        self._recover(finish=False)

    def action_finish(self) -> None:
        """What the crash left undone is done."""
        self._recover(finish=True)

    def _recover(self, finish: bool) -> None:
        if not self.cut_off:
            return
        entry = self.cut_off[0].id

        def work() -> str:
            undone = recover(Journal(), entry, "finish" if finish else "take-back").get(entry)
            if undone is None:
                return ""
            if undone.error is not None:
                return self.sentence(undone.error)
            what = "undo.conflict" if not undone.ok else "undo.finished" if finish else "undo.done"
            return self.say(what, entry=entry)

        def done(said: str) -> None:
            self.notice = said
            self.triage.session.forget()
            self._look_for_cut_off()

        def go() -> None:
            self.notice = self.say("undo.working")
            self.repaint()
            self.in_thread(work, done)

        self.deliberately(go)
