"""GPU and CPU over time, the four-layer verdict, and the busiest processes."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from tftriage import watching
from tftriage.facts import Fact
from tftriage.monitoring import look
from tftriage.plain import one_line
from tftriage.tui.base import Scroll, TriageScreen
from tftriage.tui.commands import BACK, EVERYWHERE, MONITOR_SCREEN, PAUSE, SAVE, Command, bindings
from tftriage.tui.wrapping import Page

ROUND = 2.0  # seconds of one sample; each brings one repaint
LABEL, VALUE = 20, 14  # cells
PROCESSES = 5


class MonitorScreen(TriageScreen):
    """Samples in rounds while it is on top; a recorded case shows its one sample."""

    COMMANDS_HERE = MONITOR_SCREEN
    BINDINGS: ClassVar[list[BindingType]] = bindings(*MONITOR_SCREEN)

    def __init__(self) -> None:
        super().__init__()
        self.fact: Fact | None = None
        self.paused = False
        self.sampling = False
        self.began = 0.0  # of the first round
        self.round_began = 0.0

    def body(self) -> ComposeResult:
        """One scrolling text, one line of what was done."""
        with Scroll(id="text"):
            yield Static(id="lines", markup=False)
        yield Static(id="status", markup=False)

    def commands(self) -> tuple[Command, ...]:
        """A recorded sample neither stops nor goes on."""
        if not self.triage.session.source.live:
            return (BACK, *EVERYWHERE)
        pause = PAUSE._replace(words="resume" if self.paused else "")
        return (pause, *((SAVE,) if self.sample else ()), BACK, *EVERYWHERE)

    @property
    def sample(self) -> dict[str, Any] | None:
        """The readings so far."""
        return self.fact.value if self.fact is not None and self.fact.status == "ok" else None

    def heading(self) -> str:
        """The card."""
        name = watching.card_name(self.triage.session.facts, self.sample) if self.sample else ""
        return name or self.say("monitor.heading")

    def progress(self) -> str:
        """How long."""
        if self.sample is None:
            return ""
        live = self.triage.session.source.live
        seconds = float(self.sample.get("seconds") or 0.0)
        shown = min(seconds, watching.WINDOW) if live else seconds
        said = self.say("monitor.live" if live else "monitor.recorded", seconds=f"{shown:.0f}")
        return f"{said}  {self.say('monitor.paused')}" if self.paused else said

    # --- sampling ----------------------------------------------------------------------------------------------

    def started(self) -> None:
        """The first round."""
        self._round()

    def on_screen_resume(self) -> None:
        """On top again: go on."""
        super().on_screen_resume()
        if self.began:
            self._round()

    def _round(self) -> None:
        if self.sampling or self.paused or not self.standing or self.app.screen is not self:
            return
        self.sampling, self.round_began = True, time.monotonic()
        session = self.triage.session
        self.in_thread(lambda: look(session, ROUND), self.looked)

    def looked(self, fact: Fact) -> None:
        """A round has ended; the next one begins, if anybody looks."""
        self.sampling = False
        session = self.triage.session
        now = time.monotonic()
        if fact.status == "ok" and session.source.live:
            self.began = self.began or now - ROUND
            whole = watching.joined(self.sample, fact.value, now - ROUND - self.began)
            fact = Fact(fact.name, "ok", whole, fact.source, fact.seconds)
        if fact.status == "ok" or self.fact is None or self.sample is None:
            self.fact = fact
            session.learn(fact)
        self.repaint()
        if session.source.live and fact.status == "ok":  # a machine that answers at once is not asked more often
            self.set_timer(max(0.01, ROUND - (time.monotonic() - self.round_began)), self._round)

    def went_wrong(self, error: Exception) -> None:
        """Stay usable; Enter tries again."""
        self.sampling, self.paused = False, True
        super().went_wrong(error)

    # --- painting ----------------------------------------------------------------------------------------------

    def show(self) -> None:
        """Rows, verdict, processes."""
        page = self.page()
        sample = self.sample
        if self.fact is None:
            page.add(self.say("monitor.begins"))
        elif sample is None:
            reason = self.fact.note or self.fact.status
            page.add(self.say("monitor.none", reason=one_line(reason, 200)), "bold")
            if not self.triage.session.source.live:
                page.gap()
                page.add(self.say("monitor.none-why"))
        else:
            self._rows(page, sample)
            page.gap()
            self._verdict(page)
            page.gap()
            self._processes(page, sample)
        self.query_one("#lines", Static).update(page.text)
        status = self.page()
        status.add(self.notice, "bold")
        self.query_one("#status", Static).update(status.text)
        self.query_one("#status", Static).display = bool(self.notice)

    def _rows(self, page: Page, sample: dict[str, Any]) -> None:
        facts = self.triage.session.facts
        if not sample.get("gpu"):
            page.add(self.say("monitor.no-gpu", reason=one_line(facts.why_not("gpu.devices"), 100)), "bold")
        levels = watching.ASCII if self.triage.ascii else watching.BLOCKS
        room = max(10, page.width - LABEL - VALUE - 2)
        for one in watching.series(sample, facts):
            label = Text(self.say("monitor." + one.name))
            label.truncate(LABEL, overflow="ellipsis", pad=True)
            drawn = watching.sparkline(one.values, room, one.top, levels)
            value = " " * max(1, VALUE - cell_len(one.now)) + one.now
            page.add(label.append(drawn).append(value, "bold"))

    def _verdict(self, page: Page) -> None:
        page.add(self.say("monitor.verdict"), "bold")
        for name, finding in watching.verdict(self.triage.session.facts, self.triage.kb.tables):
            bad = any(line.level == "bad" for line in finding.evidence)
            mark = self.mark("bad" if bad else "unknown" if finding.answer == "unknown" else "ok")
            what = self.say("doctor.line", what=self.say("probe." + name))
            said = " ".join(self.sentence(line) for line in finding.evidence) or self.answer(name, finding.answer)
            page.add(Text(what).append(said, "bold" if bad else ""), mark=mark)

    def _processes(self, page: Page, sample: dict[str, Any]) -> None:
        page.add(self.say("monitor.processes"), "bold")
        for pid, name, cpu, memory, on_gpu in watching.top_processes(sample, PROCESSES):
            line = Text(f"{pid:>7}  ")
            shown = Text(name)
            shown.truncate(28, overflow="ellipsis", pad=True)
            page.add(
                line.append_text(shown).append(f" {cpu:>6} {memory:>9}  {self.say('monitor.on-gpu') if on_gpu else ''}")
            )

    # --- keys --------------------------------------------------------------------------------------------------

    def action_pause(self) -> None:
        """Stop, or go on."""
        if self.triage.session.source.live:
            self.paused, self.notice = not self.paused, ""
            self._round()
            self.repaint()

    def action_save(self) -> None:
        """Write the case; the sample is in it."""
        from tftriage.tui.saving import save

        if self.sample is not None and self.triage.session.source.live:
            self.notice = save(self.triage)
            self.repaint()

    def leave(self) -> None:
        """Nobody watches any more."""
        super().leave()
        if self.sampling and self.triage.session.source.live:
            self.triage.stop_looking()
