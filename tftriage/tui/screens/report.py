"""The report as others will see it, before it leaves: copy it, or write it as a page or a picture."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from tftriage import pages, report
from tftriage.report import Report
from tftriage.tui.base import Scroll, TriageScreen
from tftriage.tui.commands import BACK, EVERYWHERE, REPORT_SCREEN, Command, bindings
from tftriage.tui.screens.diagnosis import wrap_step
from tftriage.tui.wrapping import Page


class ReportScreen(TriageScreen):
    """Redacted. In the present language: switching it makes the report anew."""

    COMMANDS_HERE = REPORT_SCREEN
    BINDINGS: ClassVar[list[BindingType]] = bindings(*REPORT_SCREEN)

    def __init__(self) -> None:
        super().__init__()
        self.report: Report | None = None
        self.wanted = ""  # the language that is being made

    def body(self) -> ComposeResult:
        """One line of what to do, one scrolling text."""
        yield Static(id="hint", markup=False)
        with Scroll(id="text"):
            yield Static(id="lines", markup=False)

    def commands(self) -> tuple[Command, ...]:
        """Nothing to write before it is made."""
        return (*(REPORT_SCREEN if self.report else (BACK,)), *EVERYWHERE)

    def heading(self) -> str:
        """Look before you send."""
        return self.say("report.heading")

    def started(self) -> None:
        """Make it, in a thread: on a live machine the user's name has to be asked for, to leave it out."""
        self._make()

    def _make(self) -> None:
        lang = self.wanted = self.triage.lang
        session = self.triage.session
        self.in_thread(lambda: report.of_session(session, lang), self.made)

    def made(self, made: Report) -> None:
        """Show it, unless the language has changed meanwhile."""
        if made.lang == self.wanted:
            self.report = made
            self.repaint()

    def show(self) -> None:
        """The same words as in the files."""
        if self.wanted and self.wanted != self.triage.lang:
            self._make()
        hint = self.page()
        if self.notice:
            hint.add(self.notice, "bold")
        else:
            hint.add(self.say("report.hint" if self.report else "report.writing"))
        self.query_one("#hint", Static).update(hint.text)
        page = self.page()
        if self.report is not None:
            for part in pages.parts(self.report, self.triage.kb):
                self._part(page, part)
            page.gap()
            page.add(self.ours(pages.footer(self.report, self.triage.kb)), "dim")
        self.query_one("#lines", Static).update(page.text)

    def _part(self, page: Page, part: pages.Part) -> None:
        text = self.ours(part.text)
        if part.kind == "heading":
            page.gap()
            page.add(text, "bold underline")
        elif part.kind == "code":
            for line in part.text.split("\n"):
                page.add(line, "dim", mark=("|", "dim"))
        elif part.kind == "seen":
            page.add(text, "bold" if part.level == "bad" else "", mark=self.mark(part.level), indent=2)
        elif part.kind == "row":
            page.add(f"{part.level}: {text}")
        elif part.kind == "step":
            page.lines.append(wrap_step(text, page.width))
        else:
            mark = ("-", "") if part.kind == "item" else None
            page.add(text, "bold" if part.kind == "strong" else "", mark=mark)

    # --- keys --------------------------------------------------------------------------------------------------

    def _text(self, ending: str) -> str | None:
        return pages.FORMATS[ending](self.report, self.triage.kb) if self.report is not None else None

    def action_copy_report(self) -> None:
        """As Markdown, to the clipboard and to a file."""
        from tftriage.tui.saving import copy

        text = self._text("md")
        if text is not None:
            self.notice = copy(self.triage, text, "report", "md")
            self.repaint()

    def action_write_html(self) -> None:
        """As a page."""
        self._write("html")

    def action_write_svg(self) -> None:
        """As a picture."""
        self._write("svg")

    def _write(self, ending: str) -> None:
        from tftriage.tui.saving import write

        text = self._text(ending)
        if text is not None:
            self.notice = write(self.triage, text, "report", ending)
            self.repaint()
