"""The keys of the screen one came from."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from tftriage.tui.base import TriageScreen
from tftriage.tui.commands import BACK, Command, bindings


class HelpScreen(TriageScreen):
    """One line a command: keys, label, what it does."""

    COMMANDS_HERE = (BACK,)
    BINDINGS: ClassVar[list[BindingType]] = bindings(BACK)

    def __init__(self, explained: tuple[Command, ...]) -> None:
        super().__init__()
        self.explained = explained

    def body(self) -> ComposeResult:
        """One scrolling text."""
        with VerticalScroll(id="text"):
            yield Static(id="lines", markup=False)

    def heading(self) -> str:
        """Help."""
        return self.say("help.heading")

    def show(self) -> None:
        """The keys, then what tftriage promises."""
        text = Text(self.say("help.intro") + "\n\n")
        for command in self.explained:
            others = " ".join(key for key in command.keys if len(key) > 1 and key != command.shown.lower())
            text.append(f" {command.shown:<6}", "bold reverse").append(f" {self.say(command.message)}", "bold")
            text.append(f"  {self.say(command.message + '.help')}")
            text.append(f"   ({others})\n" if others else "\n", "dim")
        text.append("\n" + self.say("help.promise"))
        self.query_one("#lines", Static).update(text)

    def action_help(self) -> None:
        """Help on help is the way back."""
        self.app.pop_screen()
