"""Every probe, what is wrong first."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from tftriage.probes import PROBES
from tftriage.probes.base import Finding
from tftriage.requests import SLOW
from tftriage.session import Arrived, Progress
from tftriage.tui.base import Scroll, TriageScreen
from tftriage.tui.commands import ALL, BACK, CAUSE, DLLS, DOCTOR, EVERYWHERE, SAVE, Command, bindings
from tftriage.tui.screens.walk import bad_first
from tftriage.tui.wrapping import Page

FEW = 3  # lines of evidence of one probe before "more"


class DoctorScreen(TriageScreen):
    """Facts arrive, probes judge; the wrong ones come first. Enter lets the target fail and follows its tree."""

    COMMANDS_HERE = DOCTOR
    BINDINGS: ClassVar[list[BindingType]] = bindings(*DOCTOR)

    def __init__(self) -> None:
        super().__init__()
        self.findings: list[tuple[str, Finding]] = []
        self.count = 0
        self.running = True
        self.all = False

    def body(self) -> ComposeResult:
        """One scrolling text, one line of what to do."""
        with Scroll(id="text"):
            yield Static(id="lines", markup=False)
        yield Static(id="status", markup=False)

    def started(self) -> None:
        """Observe everything that does not take long."""
        session, kb = self.triage.session, self.triage.kb
        listen = self.from_thread(self.heard)

        def work() -> list[tuple[str, Finding]]:
            names = dict.fromkeys(n for p in PROBES.values() for n in p.needs if n not in SLOW)
            session.observe(names, listen)
            return [(probe.name, probe(session.facts, kb.tables)) for probe in PROBES.values()]

        self.in_thread(work, self.judged)

    def commands(self) -> tuple[Command, ...]:
        """Nothing to follow before everything has answered."""
        if self.running:
            return (BACK, *EVERYWHERE)
        return (CAUSE, ALL._replace(words="fewer" if self.all else ""), DLLS, SAVE, BACK, *EVERYWHERE)

    def heard(self, progress: Progress) -> None:
        """Count what arrived."""
        if isinstance(progress, Arrived):
            self.count += 1
            self.repaint()

    def judged(self, findings: list[tuple[str, Finding]]) -> None:
        """All probes have answered."""
        self.findings, self.running = findings, False
        self.repaint()

    def went_wrong(self, error: Exception) -> None:
        """Stay usable."""
        self.running = False
        super().went_wrong(error)

    def heading(self) -> str:
        """How far it is."""
        return self.say("doctor.running", n=self.count) if self.running else self.say("doctor.heading")

    def show(self) -> None:
        """Probes with bad evidence first, then those that work, then those that could not look."""
        page = self.page()
        if self.running:
            page.add(self.say("doctor.wait"), "dim")

        def rank(row: tuple[str, Finding]) -> tuple[bool, bool]:
            return not wrong(row[1]), row[1].answer == "unknown"

        for name, finding in sorted(self.findings, key=rank):
            self._probe(page, name, finding)
        self.query_one("#lines", Static).update(page.text)
        status = self.query_one("#status", Static)
        status.display = bool(self.notice)
        said = self.page()
        said.add(self.notice, "bold")
        status.update(said.text)

    def _probe(self, page: Page, name: str, finding: Finding) -> None:
        bad = wrong(finding)
        unknown = finding.answer == "unknown"
        what = self.say("probe." + name) if "probe." + name in self.triage.kb.messages else name
        line = Text(self.say("doctor.line", what=what), "" if bad else "dim")
        said = self.answer(name, finding.answer)
        line.append(said, "bold" if bad else "")
        page.add(line, mark=self.mark("bad" if bad else "unknown" if unknown else "ok"))
        lines = bad_first(finding.evidence) if bad or self.all else []
        few = lines if self.all or len(lines) <= FEW else lines[:FEW]
        for evidence in few:
            style = "" if evidence.level == "bad" else "dim"
            page.add(self.sentence(evidence), style, self.mark(evidence.level), indent=2)
        if len(few) < len(lines):
            page.add(self.say("walk.more", n=len(lines) - len(few)), "dim", indent=4)

    # --- keys --------------------------------------------------------------------------------------------------

    def action_go_on(self) -> None:
        """To the cause: what the target printed when it failed says where to begin."""
        from tftriage.tui.screens.walk import WalkScreen

        if self.running:
            return
        session = self.triage.session
        listen = self.from_thread(lambda _: None)
        self.notice = self.say("start.reproducing")
        self.repaint()

        def begin(symptom: str | None) -> None:
            if symptom is None:
                self.notice = self.say("diagnose.nothing-wrong")
                self.repaint()
                return
            self.notice = ""
            self.app.push_screen(WalkScreen(symptom))

        self.in_thread(lambda: session.reproduce(listen), begin)

    def action_show_all(self) -> None:
        """All evidence, also of what is right."""
        self.all = not self.all
        self.repaint()

    def action_dlls(self) -> None:
        """Who needs whom."""
        if not self.running:
            super().action_dlls()

    def action_save(self) -> None:
        """Write the case."""
        from tftriage.tui.saving import save

        if not self.running:
            self.notice = save(self.triage)
            self.repaint()

    def leave(self) -> None:
        """What still runs is ended."""
        super().leave()
        if self.running and self.triage.session.source.live:
            self.triage.stop_looking()


def wrong(finding: Finding) -> bool:
    """Whether a probe has seen a fault."""
    return any(evidence.level == "bad" for evidence in finding.evidence)
