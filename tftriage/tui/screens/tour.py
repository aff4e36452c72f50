"""What this program does, in one minute: six short pages."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from tftriage import recent
from tftriage.tui.base import Scroll, TriageScreen
from tftriage.tui.commands import TOUR_SCREEN, bindings

PAGES = 6


class TourScreen(TriageScreen):
    """Enter turns the page, B turns back; both lead out at the ends."""

    COMMANDS_HERE = TOUR_SCREEN
    BINDINGS: ClassVar[list[BindingType]] = bindings(*TOUR_SCREEN)

    def __init__(self) -> None:
        super().__init__()
        self.number = 1

    def body(self) -> ComposeResult:
        """One page."""
        with Scroll(id="text"):
            yield Static(id="lines", markup=False)

    def started(self) -> None:
        """It is not offered again."""
        recent.remember_tour()

    def heading(self) -> str:
        """Tour."""
        return self.say("tour.heading")

    def progress(self) -> str:
        """Which page."""
        return self.say("tour.page", n=self.number, of=PAGES)

    def show(self) -> None:
        """Title and text."""
        page = self.page(min(self.columns, 72))
        page.lines.append(page.text)  # an empty line on top
        page.add(self.say(f"tour.{self.number}.title"), "bold")
        page.gap()
        page.add(self.say(f"tour.{self.number}.text"))
        self.query_one("#lines", Static).update(page.text)

    def action_next_page(self) -> None:
        """Enter."""
        if self.number == PAGES:
            super().action_back()
            return
        self.number += 1
        self.repaint()

    def action_back(self) -> None:
        """The page before, or out."""
        if self.number == 1:
            super().action_back()
            return
        self.number -= 1
        self.repaint()
