"""A fix: preview, yes, apply, verify, undo."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from tftriage import mend
from tftriage.fixes.effects import Applied, StepResult
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import Plan, Refused
from tftriage.fixes.undo import undo
from tftriage.session import Arrived, Progress, Verified
from tftriage.show import sentence
from tftriage.tui.base import TriageScreen
from tftriage.tui.commands import BACK, EVERYWHERE, FIX, Command, bindings

QUIET = 0.4  # seconds without a key before Y counts: a yes must be deliberate, not the tail of something typed
STYLES = {
    "diff+": "green",
    "diff-": "red",
    "path+": "green",
    "path-": "red",
    "path~": "yellow",
    "diff=": "dim",
    "path=": "dim",
    "command": "bold",
    "file": "bold",
}


class FixScreen(TriageScreen):
    """Nothing is done before ``Y``; everything that is done stands in the journal first."""

    COMMANDS_HERE = FIX
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(*FIX),
        ("down", "scroll(1)", ""),
        ("up", "scroll(-1)", ""),
        ("space", "scroll(10)", ""),
    ]

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        self.phase = "preview"  # applying, verifying, verified, failed, undone
        self.results: list[StepResult] = []
        self.facts: list[Arrived] = []
        self.applied: Applied | None = None
        self.verified: Verified | None = None
        self.notice = ""
        self.last_key = time.monotonic()

    def body(self) -> ComposeResult:
        """One scrolling text."""
        with VerticalScroll(id="text"):
            yield Static(id="lines", markup=False)
        yield Static(id="status", markup=False)

    def on_key(self) -> None:
        """Remember when the last key was pressed (bindings run after this)."""
        now = time.monotonic()
        self.quiet, self.last_key = now - self.last_key > QUIET, now

    def heading(self) -> str:
        """What happens now."""
        return f"{self.words(self.triage.kb.fixes[self.plan.fix].title)}   {self.say('fix.phase-' + self.phase)}"

    def commands(self) -> tuple[Command, ...]:
        """Only what can be done now."""
        apply, copy, undo_, no, back = FIX
        by_phase: dict[str, tuple[Command, ...]] = {
            "preview": (apply, no, copy, back),
            "verified": (undo_, copy, back),
            "failed": (copy, back),
            "undone": (copy, back),
        }
        return (*by_phase.get(self.phase, (BACK,)), *EVERYWHERE)

    def show(self) -> None:
        """Preview, then what was done and what the machine says now."""
        text = self._preview()
        if self.results or self.phase != "preview":
            text.append("\n")
        for result in self.results:
            glyph, style = self.mark("ok" if result.ok else "bad")
            text.append(f"{glyph} ", style).append(
                f"{sentence(self.triage.kb, result.detail, self.triage.lang)}   {result.seconds:.1f} s\n"
            )
        for arrived in self.facts[-6:] if self.phase == "verifying" else ():
            text.append(f"  {arrived.fact.name}  {arrived.fact.status}  {arrived.fact.seconds:.1f} s\n", "dim")
        text.append_text(self._outcome())
        self.query_one("#lines", Static).update(text)
        status = self.notice or (self.say("fix.ask") if self.phase == "preview" else "")
        self.query_one("#status", Static).update(Text(status, "bold"))
        if self.phase != "preview":
            self.call_after_refresh(self.query_one("#text", VerticalScroll).scroll_end, animate=False)

    def _preview(self) -> Text:
        text = Text()
        for kind, line in mend.shown(self.plan, self.triage.session.facts, self.triage.kb, self.triage.lang):
            text.append(f"{mend.MARKS.get(kind, '')}{line}\n", STYLES.get(kind, ""))
        return text

    def _outcome(self) -> Text:
        text = Text()
        if self.phase in ("applying", "verifying"):
            return text.append(self.say(f"fix.now-{self.phase}") + "\n", "dim")
        verified = self.verified
        if verified is None:
            return text
        level = "bad" if verified.result == "not-cured" else "ok"
        glyph, style = self.mark(level)
        text.append(f"\n{glyph} {self.say('verified.' + verified.result)}\n", style)
        for evidence in verified.finding.evidence:
            mark, style = self.mark(evidence.level)
            text.append(f"  {mark} ", style).append(sentence(self.triage.kb, evidence, self.triage.lang) + "\n")
        if verified.result == "next-cause" and verified.diagnosis:
            text.append(self.words(self.triage.kb.diagnoses[verified.diagnosis].title) + "\n", "bold")
        return text

    # --- keys --------------------------------------------------------------------------------------------------

    def action_apply(self) -> None:
        """Yes. Counts only after a moment without keys."""
        if self.phase != "preview":
            return
        if not self.quiet:
            self.notice = self.say("fix.too-fast")
            self.repaint()
            return
        self.phase, self.notice = "applying", ""
        self.repaint()
        told = self.from_thread(self.step_done)
        self.in_thread(lambda: self._carry_out(told), self.was_applied)

    def _carry_out(self, told: Callable[[StepResult], None]) -> Applied:
        try:
            return mend.carry_out(self.triage.session, self.plan, Journal(), told)
        except Refused as refused:
            return Applied(None, (), False, refused.evidence)

    def step_done(self, result: StepResult) -> None:
        """One step of the plan is done."""
        self.results.append(result)
        self.repaint()

    def was_applied(self, applied: Applied) -> None:
        """Verify, or say why nothing was changed."""
        if not applied.ok:
            self.phase = "failed"
            error = sentence(self.triage.kb, applied.error, self.triage.lang) if applied.error else ""
            self.notice = self.say("fix.failed", error=error)
            self.repaint()
            return
        self.applied, self.phase = applied, "verifying"
        self.repaint()
        listen = self.from_thread(self.heard)
        self.in_thread(lambda: mend.verify(self.triage.session, self.plan, listen), self.was_verified)

    def heard(self, progress: Progress) -> None:
        """A fact of the verification arrived."""
        if isinstance(progress, Arrived):
            self.facts.append(progress)
            self.repaint()

    def was_verified(self, verified: Verified) -> None:
        """The same probe has answered again."""
        self.verified, self.phase = verified, "verified"
        self.repaint()

    def action_undo(self) -> None:
        """Take it back."""
        entry = self.applied.entry_id if self.applied else None
        if entry is None or self.phase != "verified":
            return

        def work() -> str:
            undone = undo(Journal(), entry)
            if undone.error is not None:
                return sentence(self.triage.kb, undone.error, self.triage.lang)
            return self.say("undo.done" if undone.ok else "undo.conflict", entry=entry)

        def done(sentence_: str) -> None:
            self.notice, self.phase = sentence_, "undone"
            self.triage.session.close()
            self.repaint()

        self.in_thread(work, done)

    def action_copy(self) -> None:
        """The commands, for a person who wants to do it by hand."""
        from tftriage.tui.saving import copy

        self.notice = copy(self.triage, mend.by_hand(self.plan, self.triage.session.facts))
        self.repaint()

    def action_no(self) -> None:
        """No."""
        if self.phase == "preview":
            self.app.pop_screen()

    def action_back(self) -> None:
        """Back; after a verified fix to the walk, which stands at its new end."""
        if self.phase in ("applying", "verifying"):
            return
        self.app.pop_screen()
        if self.verified is not None and self.triage.session.walk is not None:
            from tftriage.tui.screens.start import StartScreen

            while not isinstance(self.app.screen, StartScreen):
                self.app.pop_screen()

    def action_scroll(self, lines: int) -> None:
        """Scroll the text."""
        self.query_one("#text", VerticalScroll).scroll_relative(y=lines, animate=False)
