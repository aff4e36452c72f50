"""One cause, why we think so, what is commonly believed instead, and the fixes."""

from __future__ import annotations

import re
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from tftriage import mend
from tftriage.fixes.plans import Refused
from tftriage.fixing import refusal
from tftriage.knowledge import fill
from tftriage.plain import one_line, plain
from tftriage.probes.base import Evidence
from tftriage.tui.base import Choices, Scroll, TriageScreen
from tftriage.tui.commands import (
    BACK,
    DIAGNOSIS,
    DIGITS,
    DLLS,
    EVERYWHERE,
    MYTHS,
    PREVIEW,
    REPORT,
    SAVE,
    Command,
    bindings,
    moves,
)
from tftriage.tui.wrapping import wrap


class DiagnosisScreen(TriageScreen):
    """Cause and explanation first, fixes below; the fixes that do not apply here say why."""

    COMMANDS_HERE = DIAGNOSIS
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*DIAGNOSIS), *moves(*DIGITS)]

    def __init__(self) -> None:
        super().__init__()
        self.myths = False
        self.offers: list[mend.Offer] = []

    def body(self) -> ComposeResult:
        """Text above, fixes below."""
        with Scroll(id="text"):
            yield Static(id="cause", markup=False)
        yield Static(id="status", markup=False)
        yield Choices(id="fixes", markup=False, classes="chosen")

    def on_mount(self) -> None:
        """The first fix is under the bar."""
        self.offers = mend.offers(self.triage.session)
        super().on_mount()

    def commands(self) -> tuple[Command, ...]:
        """Preview only where there is something to preview."""
        diagnosis = self.triage.session.diagnosis
        first = PREVIEW if self._open() else PREVIEW._replace(words="close")
        myths = (MYTHS,) if diagnosis is not None and diagnosis.myths else ()
        return (first, *myths, DLLS, REPORT, SAVE, BACK, *EVERYWHERE)

    def _open(self) -> list[mend.Offer]:
        return [offer for offer in self.offers if offer.refused is None]

    def heading(self) -> str:
        """The diagnosis."""
        diagnosis = self.triage.session.diagnosis
        return self.words(diagnosis.title) if diagnosis else ""

    def show(self) -> None:
        """Cause, explanation, hand steps, myths; then the fixes."""
        kb = self.triage.kb
        diagnosis = self.triage.session.diagnosis
        if diagnosis is None:
            return
        page = self.page()
        page.add(self._filled(diagnosis.cause), "bold")
        page.gap()
        page.add(self._filled(diagnosis.explanation))
        if diagnosis.hand is not None:
            page.gap()
            page.add(self.say("diagnosis.by-hand"), "bold")
            for line in plain(self._filled(diagnosis.hand)).split("\n"):
                page.lines.append(wrap_step(line, page.width))
        for name in diagnosis.myths:
            page.gap()
            myth = Text(self.say("diagnosis.myth", claim=self.words(kb.myths[name].claim).strip()), "italic")
            if not self.myths:
                page.add(myth.append("  " + self.say("diagnosis.more-myths"), "not italic dim"))
                break
            page.add(myth)
            page.add(self.words(kb.myths[name].truth).strip(), indent=2)
        page.gap()
        page.add(self.say("diagnosis.sources"), "bold")
        for source in diagnosis.sources:
            kind = self.say("doctor.line", what=self.say("source." + source.kind))
            page.add(f"{kind}{self.ours(source.ref)}", "dim", mark=("-", "dim"))
        self.query_one("#cause", Static).update(page.text)
        self._fixes()

    def _filled(self, text: dict[str, str]) -> str:
        values = {name: one_line(value) for name, value in self.triage.session.values.items()}
        return self.ours(fill(text, self.triage.lang, values)).strip()

    def _fixes(self) -> None:
        status = self.page()
        if self.notice:
            status.add(self.notice, "bold")
        refused = "diagnosis.no-fix-here" if self.offers else "diagnosis.no-fix"
        status.add(self.say("diagnosis.fixes" if self._open() else refused), "bold")
        self.query_one("#status", Static).update(status.text)
        fixes = self.query_one("#fixes", Choices)
        before = fixes.highlighted
        fixes.clear_options()
        for number, offer in enumerate(self.offers, 1):
            fixes.add(self._offer(number, offer), id=offer.fix, disabled=offer.refused is not None)
        fixes.display = bool(self.offers)
        if self._open():
            fixes.highlighted = before or 0

    def _offer(self, number: int, offer: mend.Offer) -> Text:
        words = self.triage.kb.fixes[offer.fix]
        line = Text(f" {number} " if offer.refused is None else "   ", no_wrap=True, overflow="ellipsis")
        line.append(self.words(words.title))
        room = self.app.size.width - line.cell_len - 2
        if offer.refused is None:
            right = self.say("risk." + words.risk)
            return line.append(" " * max(2, room - cell_len(right)) + right, "dim")
        return line.append(": " + self.sentence(Evidence(offer.refused)), "dim")

    # --- keys --------------------------------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        """With several fixes the arrows move between them first; then the text scrolls."""
        if len(self._open()) < 2 or not self.query_one("#fixes", Choices).move(by):
            super().action_move(by)

    def action_preview(self) -> None:
        """Enter: preview the fix under the bar; without a fix, to the first screen."""
        at = self.query_one("#fixes", Choices).highlighted
        if self._open():
            self.open_fix(self.offers[at or 0].fix)
        else:
            self.triage.to_start()

    def action_pick(self, number: int) -> None:
        """A digit previews a fix."""
        if number <= len(self.offers) and self.offers[number - 1].refused is None:
            self.open_fix(self.offers[number - 1].fix)

    def open_fix(self, fix: str) -> None:
        """Plan it and show the preview."""
        from tftriage.tui.screens.fix import FixScreen

        try:
            planned = mend.plan(self.triage.session, fix)
        except Refused as refused:
            self.notice = self.ours(refusal(self.triage.kb, refused, self.triage.lang))
            self.repaint()
            return
        self.notice = ""
        self.app.push_screen(FixScreen(planned))

    def action_myths(self) -> None:
        """What is commonly believed, and what refutes it."""
        self.myths = not self.myths
        self.repaint()

    def action_save(self) -> None:
        """Write the case."""
        from tftriage.tui.saving import save

        self.notice = save(self.triage)
        self.repaint()


def wrap_step(line: str, width: int) -> Text:
    """A numbered step: its further lines stand below its words, not below its number."""
    number = re.match(r" *(?:\d{1,2}[.)]|-) +", line)
    return wrap(Text(line), width, number.end() if number else 0)
