"""Every probe, what is wrong first."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from tftriage.headless import SLOW
from tftriage.probes import PROBES
from tftriage.probes.base import Finding
from tftriage.session import Arrived, Progress
from tftriage.show import sentence
from tftriage.tui.base import TriageScreen
from tftriage.tui.commands import DOCTOR, bindings


class DoctorScreen(TriageScreen):
    """Facts arrive, probes judge; the wrong ones come first."""

    COMMANDS_HERE = DOCTOR
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(*DOCTOR),
        ("down", "scroll(1)", ""),
        ("up", "scroll(-1)", ""),
        ("space", "scroll(10)", ""),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.findings: list[tuple[str, Finding]] = []
        self.count = 0
        self.running = True

    def body(self) -> ComposeResult:
        """One scrolling text."""
        with VerticalScroll(id="text"):
            yield Static(id="lines", markup=False)

    def on_mount(self) -> None:
        """Observe everything that does not take long."""
        super().on_mount()
        session, kb = self.triage.session, self.triage.kb
        listen = self.from_thread(self.heard)

        def work() -> list[tuple[str, Finding]]:
            names = dict.fromkeys(n for p in PROBES.values() for n in p.needs if n not in SLOW)
            session.observe(names, listen)
            return [(probe.name, probe(session.facts, kb.tables)) for probe in PROBES.values()]

        self.in_thread(work, self.judged)

    def heard(self, progress: Progress) -> None:
        """Count what arrived."""
        if isinstance(progress, Arrived):
            self.count += 1
            self.repaint()

    def judged(self, findings: list[tuple[str, Finding]]) -> None:
        """All probes have answered."""
        self.findings, self.running = findings, False
        self.repaint()

    def heading(self) -> str:
        """How far it is."""
        return self.say("doctor.running", n=self.count) if self.running else self.say("doctor.heading")

    def show(self) -> None:
        """Probes with bad evidence first, then the unknown ones, then the rest."""
        text = Text()

        def rank(row: tuple[str, Finding]) -> tuple[bool, bool]:
            return not any(e.level == "bad" for e in row[1].evidence), row[1].answer == "unknown"

        for name, finding in sorted(self.findings, key=rank):
            bad = any(e.level == "bad" for e in finding.evidence)
            glyph, style = self.mark("bad" if bad else "unknown" if finding.answer == "unknown" else "ok")
            text.append(f"{glyph} ", style).append(f"{name:<20} {finding.answer}\n", "bold" if bad else "")
            for evidence in finding.evidence:
                text.append(f"    {sentence(self.triage.kb, evidence, self.triage.lang)}\n", "" if bad else "dim")
        self.query_one("#lines", Static).update(text)

    def action_scroll(self, lines: int) -> None:
        """Scroll the text."""
        self.query_one("#text", VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_back(self) -> None:
        """Back; what still runs is ended."""
        if self.running and self.triage.session.source.live:
            self.triage.session.close()
        self.app.pop_screen()
