"""One cause, why we think so, what is commonly believed instead, and the fixes."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tftriage import mend
from tftriage.fixes.plans import Refused
from tftriage.fixing import refusal
from tftriage.knowledge import fill
from tftriage.plain import one_line, plain
from tftriage.probes.base import Evidence
from tftriage.show import sentence
from tftriage.tui.base import TriageScreen
from tftriage.tui.commands import DIAGNOSIS, bindings


class DiagnosisScreen(TriageScreen):
    """Cause and explanation first, fixes below; the fixes that do not apply here say why."""

    COMMANDS_HERE = DIAGNOSIS
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(*DIAGNOSIS),
        *((str(n), f"pick({n})", "") for n in range(1, 10)),
        ("down", "scroll(1)", ""),
        ("up", "scroll(-1)", ""),
        ("j", "scroll(1)", ""),
        ("k", "scroll(-1)", ""),
        ("space", "scroll(10)", ""),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.myths = False
        self.notice = ""
        self.offers: list[mend.Offer] = []

    def body(self) -> ComposeResult:
        """Text above, fixes below."""
        with VerticalScroll(id="text"):
            yield Static(id="cause", markup=False)
        yield Static(id="status", markup=False)
        yield OptionList(id="fixes", markup=False)

    def on_mount(self) -> None:
        """The first fix is under the cursor."""
        self.offers = mend.offers(self.triage.session)
        super().on_mount()
        self.query_one("#fixes").focus()

    def heading(self) -> str:
        """The diagnosis."""
        diagnosis = self.triage.session.diagnosis
        return self.words(diagnosis.title) if diagnosis else ""

    def show(self) -> None:
        """Cause, explanation, hand steps, myths; then the fixes."""
        kb, lang = self.triage.kb, self.triage.lang
        diagnosis = self.triage.session.diagnosis
        if diagnosis is None:
            return
        values = {name: one_line(value) for name, value in self.triage.session.values.items()}
        text = Text()
        text.append(fill(diagnosis.cause, lang, values) + "\n\n", "bold")
        text.append(fill(diagnosis.explanation, lang, values).strip() + "\n")
        if diagnosis.myths and not self.myths:
            myth = kb.myths[diagnosis.myths[0]]
            text.append("\n" + self.say("diagnosis.myth", claim=self.words(myth.claim)) + " ", "italic")
            text.append(self.say("diagnosis.more-myths"), "dim").append("\n")
        for name in diagnosis.myths if self.myths else ():
            myth = kb.myths[name]
            text.append("\n" + self.say("diagnosis.myth", claim=self.words(myth.claim)) + "\n", "italic")
            text.append(self.words(myth.truth).strip() + "\n")
        if diagnosis.hand is not None:
            text.append("\n" + self.say("diagnosis.by-hand") + "\n", "bold")
            text.append(plain(fill(diagnosis.hand, lang, values)).strip() + "\n")
        text.append("\n" + self.say("diagnosis.sources") + "\n", "bold")
        for source in diagnosis.sources:
            text.append(f"{self.say('source.' + source.kind)}: {source.ref}\n", "dim")
        self.query_one("#cause", Static).update(text)
        self._fixes()

    def _fixes(self) -> None:
        kb, lang = self.triage.kb, self.triage.lang
        status = Text(self.say("diagnosis.fixes" if self.offers else "diagnosis.no-fix"), "bold")
        if self.notice:
            status.append("\n" + self.notice)
        self.query_one("#status", Static).update(status)
        fixes = self.query_one("#fixes", OptionList)
        fixes.clear_options()
        for number, offer in enumerate(self.offers, 1):
            words = kb.fixes[offer.fix]
            line = Text(f" {number} {self.words(words.title)}", no_wrap=True, overflow="ellipsis")
            if offer.refused:
                line.append(f"   {sentence(kb, Evidence(offer.refused), lang)}", "dim")
            else:
                line.append(f"   {self.say('risk.' + words.risk)}", "dim")
            fixes.add_option(Option(line, id=offer.fix, disabled=offer.refused is not None))
        fixes.display = bool(self.offers)
        if self.offers and self.offers[0].refused is None:
            fixes.highlighted = 0

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter on a fix."""
        if event.option_id:
            self.open_fix(event.option_id)

    def action_preview(self) -> None:
        """Enter: preview the fix under the cursor."""
        self.query_one("#fixes", OptionList).action_select()

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
            self.notice = refusal(self.triage.kb, refused, self.triage.lang)
            self.repaint()
            return
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

    def action_scroll(self, lines: int) -> None:
        """The text scrolls; with several fixes the arrows move between them first."""
        fixes = self.query_one("#fixes", OptionList)
        at = fixes.highlighted
        if at is not None and abs(lines) == 1 and 0 <= at + lines < fixes.option_count:
            fixes.highlighted = at + lines
        else:
            self.query_one("#text", VerticalScroll).scroll_relative(y=lines, animate=False)
