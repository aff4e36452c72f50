"""The keys of the screen one came from."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from tftriage.tui.base import Scroll, TriageScreen
from tftriage.tui.commands import BACK, NAMES, TOUR, Command, bindings


class HelpScreen(TriageScreen):
    """One line a command: its key, what it does, the other keys for it; then how to move."""

    COMMANDS_HERE = (TOUR._replace(footer=True), BACK)
    BINDINGS: ClassVar[list[BindingType]] = bindings(TOUR, BACK)

    def __init__(self, explained: tuple[Command, ...]) -> None:
        super().__init__()
        self.explained = explained

    def body(self) -> ComposeResult:
        """One scrolling text."""
        with Scroll(id="text"):
            yield Static(id="lines", markup=False)

    def heading(self) -> str:
        """Help."""
        return self.say("help.heading")

    def show(self) -> None:
        """The keys, then what tftriage promises."""
        page = self.page()
        page.add(self.say("help.intro"))
        page.gap()
        for command in self.explained:
            line = Text(self.say(command.message + ".help"))
            others = [NAMES[key] for key in command.keys if key in NAMES and NAMES[key] != command.shown]
            if others:
                line.append(f"  ({', '.join(others)})", "dim")
            page.add(line, mark=(f" {command.shown:<6}", "bold"))
        page.add(self.say("help.move"), mark=(f" {self.say('help.move-keys'):<6}", "bold"))
        page.gap()
        page.add(self.say("help.promise"))
        self.query_one("#lines", Static).update(page.text)

    def action_help(self) -> None:
        """Help on help is the way back."""
        self.action_back()
