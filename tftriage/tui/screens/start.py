"""Paste the error, or choose what you see, or let us reproduce it."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import OptionList, Static, TextArea
from textual.widgets.option_list import Option

from tftriage.plain import one_line, plain
from tftriage.tui.base import TriageScreen
from tftriage.tui.commands import BACK, EVERYWHERE, START, Command, bindings

SHOWN_LINES = 6  # lines of the pasted text on screen: those around the best match


class StartScreen(TriageScreen):
    """The paste box with live recognition, and the list of complaints."""

    COMMANDS_HERE = START
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(*START),
        *((str(n), f"pick({n})", "") for n in range(1, 10)),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.status = ""
        self.typing = False

    def body(self) -> ComposeResult:
        """Hint, the pasted text, the choices."""
        yield Static(id="hint", markup=False)
        yield Static(id="box", markup=False)
        yield OptionList(id="choices", markup=False)

    def on_mount(self) -> None:
        """Look for the target while the person reads."""
        super().on_mount()
        self.query_one(OptionList).focus()
        session = self.triage.session
        if session.walk is not None:  # a recorded case that was walked already
            from tftriage.tui.screens.walk import WalkScreen

            self.app.push_screen(WalkScreen())
        elif session.source.live:
            self.in_thread(self.triage.suggest_target, lambda _: self.repaint())

    def commands(self) -> tuple[Command, ...]:
        """While typing, only the way out counts."""
        return (BACK,) if self.typing else (*START, *EVERYWHERE)

    def heading(self) -> str:
        """Machine and target."""
        python = self.triage.session.target.python
        target = one_line(python, 46) if python else self.say("target.none")
        where = "title.this-machine" if self.triage.session.source.live else "title.recorded"
        return f"tftriage   {self.say(where)}   {target}"

    def show(self) -> None:
        """Hint, box and choices in the present language."""
        target = self.triage.session.target.python
        hint = self.status or (self.say("start.hint") if target else self.say("start.hint-no-target"))
        self.query_one("#hint", Static).update(Text(hint))
        self.query_one("#box", Static).update(self._pasted())
        self._fill()

    def _pasted(self) -> Text:
        """The lines around the best match; the lines that matched carry a mark."""
        session = self.triage.session
        if not session.text.strip():
            return Text(self.say("start.empty-box"), style="dim")
        lines = plain(session.text).split("\n")
        hits: set[int] = set()
        matches = session.matched.matches if session.matched else ()
        for start, end in matches[0].lines if matches else ():
            hits.update(range(start, end + 1))
        last = max(hits, default=len(lines))
        first = max(1, min(last - SHOWN_LINES + 2, len(lines) - SHOWN_LINES + 1))
        mark, style = self.mark("here")
        shown = Text(no_wrap=True, overflow="ellipsis")
        for number in range(first, min(first + SHOWN_LINES, len(lines) + 1)):
            hit = number in hits
            shown.append(f"{mark if hit else ' '} {one_line(lines[number - 1])}\n", style=style if hit else "")
        return shown

    def _fill(self) -> None:
        kb, session = self.triage.kb, self.triage.session
        choices = self.query_one(OptionList)
        highlighted = choices.highlighted
        choices.clear_options()
        number = 0
        seen: set[str] = set()
        matches = session.matched.matches[:4] if session.matched else ()
        if session.matched is not None and session.matched.verdict != "fault":
            choices.add_option(Option(Text(self.say(f"verdict.{session.matched.verdict}")), disabled=True))
        if matches:
            choices.add_option(Option(Text(self.say("start.looks-like"), style="dim"), disabled=True))
        for match in matches:
            number += 1
            seen.add(match.id)
            lines = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in match.lines[:2])
            label = Text(f" {number} {self.words(kb.symptom(match.id).title)}", no_wrap=True, overflow="ellipsis")
            choices.add_option(Option(label.append(f"   {self.say('start.line', lines=lines)}", "dim"), id=match.id))
        choices.add_option(Option(Text(self.say("start.or-choose"), style="dim"), disabled=True))
        complaints = sorted((s for s in kb.symptoms if s.complaint and s.id not in seen), key=lambda s: s.order)
        for symptom in complaints:
            number += 1
            prefix = f" {number} " if number < 10 else "   "
            choices.add_option(Option(Text(prefix + self.words(symptom.title)), id=symptom.id))
        first = next((i for i in range(choices.option_count) if not choices.get_option_at_index(i).disabled), None)
        choices.highlighted = highlighted if highlighted and highlighted < choices.option_count else first

    # --- pasting and typing ----------------------------------------------------------------------------------

    def on_paste(self, event: events.Paste) -> None:
        """A paste lands here wherever the focus is; it is text and never a command."""
        event.stop()
        self.take(event.text)

    def take(self, text: str) -> None:
        """Recognise a text in the background (it may be 10 MB) and show what it looks like."""
        if not text.strip("\0 \r\n\t"):
            self.status = self.say("error.empty-paste")
            self.repaint()
            return
        self.status = self.say("start.reading")
        self.repaint()
        session = self.triage.session

        def done(_: None) -> None:
            self.status = ""
            self.query_one(OptionList).highlighted = None
            self.repaint()

        self.in_thread(lambda: session.paste(text), done)

    def action_type(self) -> None:
        """A box to type or correct the text in; Esc takes it."""
        if self.typing:
            return
        self.typing = True
        entry = TextArea(plain(self.triage.session.text), id="entry", soft_wrap=False)
        entry.cursor_blink = False  # a blinking cursor costs bytes on a slow line
        self.query_one("#box").display = False
        self.mount(entry, after="#hint")
        entry.focus()
        self.repaint()

    def key_escape(self) -> None:
        """Take the typed text."""
        if not self.typing:
            return
        entry = self.query_one(TextArea)
        self.typing = False
        text = entry.text
        entry.remove()
        self.query_one("#box").display = True
        self.query_one(OptionList).focus()
        self.take(text)

    def action_clear(self) -> None:
        """Forget the text."""
        self.triage.session.paste("")
        self.status = ""
        self.repaint()

    # --- going on ----------------------------------------------------------------------------------------------

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter on a choice."""
        if event.option_id:
            self.begin(event.option_id)

    def action_follow(self) -> None:
        """Follow the tree of the highlighted choice."""
        self.query_one(OptionList).action_select()

    def action_pick(self, number: int) -> None:
        """A digit chooses a line."""
        choices = self.query_one(OptionList)
        enabled = [o.id for o in choices.options if not o.disabled and o.id]
        if number <= len(enabled):
            self.begin(enabled[number - 1])

    def begin(self, symptom: str) -> None:
        """Walk from a symptom. Without a target the person chooses one first."""
        from tftriage.tui.screens.target import TargetScreen
        from tftriage.tui.screens.walk import WalkScreen

        def chosen(_: None) -> None:
            if self.triage.session.target.python is not None:
                self.begin(symptom)

        session = self.triage.session
        if session.source.live and session.target.python is None:
            self.app.push_screen(TargetScreen(), chosen)
            return
        session.begin(symptom)
        self.app.push_screen(WalkScreen())

    def action_target(self) -> None:
        """Choose the environment."""
        from tftriage.tui.screens.target import TargetScreen

        self.app.push_screen(TargetScreen(), lambda _: self.repaint())

    def action_doctor(self) -> None:
        """Check everything."""
        from tftriage.tui.screens.doctor import DoctorScreen

        self.app.push_screen(DoctorScreen())

    def action_reproduce(self) -> None:
        """Let the target fail by itself, then recognise what it printed."""
        session = self.triage.session
        if not session.source.live:
            self.status = self.say("error.recorded")
            self.repaint()
            return
        if session.target.python is None:
            self.action_target()
            return
        self.status = self.say("start.reproducing")
        self.repaint()

        def done(symptom: str | None) -> None:
            self.status = self.say("diagnose.nothing-wrong") if symptom is None else ""
            self.repaint()

        self.in_thread(session.reproduce, done)
