"""What all screens share: words in two languages, the line on top, the footer, and facts arriving from a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Static

from tftriage.tui.commands import EVERYWHERE, HELP, Command, bindings

if TYPE_CHECKING:
    from tftriage.tui.app import TriageApp

GLYPHS = {"ok": "✓", "bad": "✗", "info": "·", "here": "▶", "unknown": "?", "more": "…"}
ASCII = {"ok": "+", "bad": "x", "info": "-", "here": ">", "unknown": "?", "more": "..."}
STYLES = {"ok": "green", "bad": "bold red", "info": "", "here": "bold", "unknown": "yellow", "more": "dim"}


class TriageScreen(Screen[None]):
    """A screen with a title line, a body and a footer; ``show`` paints the body in the present language."""

    COMMANDS_HERE: ClassVar[tuple[Command, ...]] = ()
    BINDINGS: ClassVar[list[BindingType]] = bindings(HELP)

    @property
    def triage(self) -> TriageApp:
        """The app, typed."""
        return cast("TriageApp", self.app)

    def compose(self) -> ComposeResult:
        """Title, body, footer."""
        yield Static(id="title", markup=False)
        yield from self.body()
        yield Static(id="footer", markup=False)

    def body(self) -> ComposeResult:
        """The widgets between title and footer."""
        yield from ()

    def on_mount(self) -> None:
        """Paint once everything is there."""
        self.repaint()

    def on_screen_resume(self) -> None:
        """The language or the session may have changed while another screen was on top."""
        if self.is_mounted:
            self.repaint()

    def repaint(self) -> None:
        """Title, body and footer in the present language."""
        self.query_one("#title", Static).update(self.title_line())
        self.query_one("#footer", Static).update(self.footer_line())
        self.show()

    def show(self) -> None:
        """Paint the body."""

    def heading(self) -> str:
        """The left half of the title line."""
        return "tftriage"

    def title_line(self) -> Text:
        """The heading left, the machine or the other language right."""
        right = self.say("title.other-language")
        left = Text(" " + self.heading(), style="bold", no_wrap=True, overflow="ellipsis")
        room = max(0, self.app.size.width - cell_len(right) - 1)
        left.truncate(room, overflow="ellipsis", pad=True)
        return left.append(right + " ", style="dim")

    def commands(self) -> tuple[Command, ...]:
        """The commands that make sense now."""
        return (*self.COMMANDS_HERE, *EVERYWHERE)

    def footer_line(self) -> Text:
        """The keys of this screen: the next one first, never more than the width."""
        line = Text(no_wrap=True, overflow="ellipsis")
        for command in self.commands():
            if command.footer:
                line.append(f" {command.shown} ", style="bold reverse").append(f"{self.say(command.message)} ")
        return line

    def say(self, key: str, **params: object) -> str:
        """One of the interface's sentences."""
        return self.triage.kb.say(key, self.triage.lang, **params)

    def words(self, text: dict[str, str]) -> str:
        """A text of the knowledge base in the present language."""
        return text[self.triage.lang]

    def mark(self, level: str) -> tuple[str, str]:
        """A glyph and its style."""
        return (ASCII if self.triage.ascii else GLYPHS)[level], STYLES[level]

    def in_thread(self, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Run blocking ``work`` in a thread, one at a time, then ``then(result)`` on the screen."""

        def job() -> None:
            with self.triage.busy:
                result = work()
            if not self.triage.leaving.is_set():
                self.app.call_from_thread(then, result)

        self.run_worker(job, thread=True, group="session")

    def from_thread(self, paint: Callable[..., None]) -> Callable[..., None]:
        """A callback that may be called from the thread of the work."""

        def call(*args: Any) -> None:
            if not self.triage.leaving.is_set():
                self.app.call_from_thread(paint, *args)

        return call

    def action_back(self) -> None:
        """To the screen before."""
        self.app.pop_screen()

    def action_help(self) -> None:
        """The keys of this screen."""
        from tftriage.tui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen(self.commands()))
