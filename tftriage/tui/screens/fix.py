"""A fix: preview, yes, apply, verify, undo."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from tftriage import mend
from tftriage.fixes.effects import Applied, StepResult
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import Plan, Refused
from tftriage.fixes.undo import Undone, undo
from tftriage.session import Arrived, Progress, Verified
from tftriage.tui.base import Scroll, TriageScreen
from tftriage.tui.commands import (
    APPLY,
    BACK,
    COPY,
    EVERYWHERE,
    FIX,
    GO_ON,
    NO,
    UNDO,
    Command,
    bindings,
)
from tftriage.tui.wrapping import Page

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
AFTERWARDS = ("restart-kernel", "new-console")  # needs that are the person's to do, once it is applied


class FixScreen(TriageScreen):
    """Nothing is done before ``Y``; everything that is done stands in the journal first.

    Phases: preview, applying, verifying, verified (its result says what was proved), unverified (the person did not
    wait), failed (nothing was changed, or it was taken back), undoing, undone.
    """

    COMMANDS_HERE = FIX
    BINDINGS: ClassVar[list[BindingType]] = bindings(*FIX)

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        self.phase = "preview"
        self.results: list[StepResult] = []
        self.facts: list[Arrived] = []
        self.applied: Applied | None = None
        self.verified: Verified | None = None
        self.warned = False

    def body(self) -> ComposeResult:
        """One scrolling text, one line of what to do."""
        with Scroll(id="text"):
            yield Static(id="lines", markup=False)
        yield Static(id="status", markup=False)

    def heading(self) -> str:
        """What happens now, and to what."""
        result = self.verified.result if self.phase == "verified" and self.verified else None
        phase = "not-cured" if result == "not-cured" else self.phase
        now = self.say("doctor.line", what=self.say("fix.phase-" + phase))
        return f"{now}{self.words(self.triage.kb.fixes[self.plan.fix].title)}"

    @property
    def applies_here(self) -> bool:
        """Whether the fault is on this machine, and not in a case or behind ssh."""
        source = self.triage.session.source
        return source.live and not source.elsewhere

    def commands(self) -> tuple[Command, ...]:
        """Only what can be done now."""
        result = self.verified.result if self.verified else "cured"
        words = {"next-cause": "next_cause", "not-cured": "other_fix"}.get(result, "close")
        go_on = GO_ON if self.verified and self.verified.asks else GO_ON._replace(words=words)
        take_back = (UNDO,) if self.can_undo else ()
        preview = (APPLY, NO, COPY, BACK) if self.applies_here else (COPY, BACK)
        by_phase: dict[str, tuple[Command, ...]] = {
            "preview": preview,
            "verifying": (BACK._replace(words="stop"),),
            "verified": (go_on, *take_back, COPY),
            "unverified": (GO_ON._replace(words="close"), *take_back, COPY),
            "failed": (GO_ON._replace(words="other_fix"), COPY, BACK),
            "undone": (GO_ON._replace(words="close"), COPY),
        }
        return (*by_phase.get(self.phase, ()), *EVERYWHERE)

    @property
    def can_undo(self) -> bool:
        """Whether something was changed that can be taken back."""
        return self.applied is not None and self.applied.entry_id is not None and self.plan.undoable

    def show(self) -> None:
        """Preview; then what was done and what the machine says now."""
        page = self.page()
        if self.phase in ("preview", "failed"):
            self._preview(page)
        page.gap()
        for result in self.results:
            mark = self.mark("ok" if result.ok else "bad")
            page.add(f"{self.sentence(result.detail)}  {result.seconds:.1f} s", mark=mark)
        for arrived in self.facts[-6:] if self.phase == "verifying" else ():
            page.add(f"{arrived.fact.name}  {arrived.fact.status}  {arrived.fact.seconds:.1f} s", "dim", indent=2)
        self._outcome(page)
        self.query_one("#lines", Static).update(page.text)
        status = self.page()
        live = self.applies_here
        asked = self.say("fix.ask" if live else "fix.recorded") if self.phase == "preview" else ""
        status.add(self.notice or asked, "bold")
        self.query_one("#status", Static).update(status.text)
        if self.phase in ("applying", "verifying", "failed"):
            self.call_after_refresh(self.query_one("#text", Scroll).scroll_end, animate=False)

    def _preview(self, page: Page) -> None:
        lines = mend.shown(self.plan, self.triage.session.facts, self.triage.kb, self.triage.lang)
        for kind, line in lines:
            if kind == "what" and not line:
                page.gap()
                continue
            mark = mend.MARKS.get(kind, "").rstrip()
            text = self.ours(line) if kind in ("what", "note") else line
            page.add(text, STYLES.get(kind, ""), mark=(mark or " ", "") if kind in mend.MARKS else None)

    def _outcome(self, page: Page) -> None:
        page.gap()
        if self.phase in ("applying", "verifying", "undoing"):
            page.add(self.say(f"fix.now-{self.phase}"), "dim")
            return
        verified = self.verified
        if verified is None or self.phase != "verified":
            return
        mark = self.mark("bad" if verified.result == "not-cured" else "ok")
        page.add(self.say("verified." + verified.result), "bold", mark=mark)
        for evidence in verified.finding.evidence:
            page.add(self.sentence(evidence), mark=self.mark(evidence.level), indent=2)
        self._walked_again(page)
        if verified.result == "next-cause" and verified.diagnosis:
            page.gap()
            page.add(self.words(self.triage.kb.diagnoses[verified.diagnosis].title), "bold", mark=self.mark("here"))
        if verified.result != "not-cured":
            for need in (need for need in self.plan.needs if need in AFTERWARDS):
                page.gap()
                page.add(self.say("fix.still", need=self.say(f"needs.{need}")), mark=self.mark("here"))
        if self.can_undo and self.applied is not None:
            page.gap()
            page.add(self.say("fix.can-undo", entry=self.applied.entry_id), "dim")

    def _walked_again(self, page: Page) -> None:
        """What the new walk from the symptom has seen: that, and nothing else, is proved."""
        nodes = self.triage.kb.nodes
        walk = self.triage.session.walk
        for done in walk.steps if walk is not None and self.verified and self.verified.result != "not-cured" else ():
            answer = nodes[done.node].choices.get(done.answer)
            bad = done.finding is not None and any(line.level == "bad" for line in done.finding.evidence)
            level = "unknown" if done.answer == "unknown" else "bad" if bad else "ok"
            line = f"{self.words(nodes[done.node].ask)} {self.words(answer) if answer else done.answer}"
            page.add(line, "dim", mark=self.mark(level), indent=2)

    # --- keys --------------------------------------------------------------------------------------------------

    def action_apply(self) -> None:
        """Yes. Counts only when it stands alone."""
        if self.phase == "preview" and self.applies_here:
            self.deliberately(self._apply)

    def _apply(self) -> None:
        if self.phase != "preview":
            return
        self.phase, self.notice = "applying", ""
        self.repaint()
        self.query_one("#text", Scroll).scroll_home(animate=False)
        self.in_thread(lambda: self._carry_out(self.told), self.was_applied)

    def _carry_out(self, told: Callable[[StepResult], None]) -> Applied:
        try:
            return mend.carry_out(self.triage.session, self.plan, Journal(), told)
        except Refused as refused:
            return Applied(None, (), False, refused.evidence)

    def told(self, result: StepResult) -> None:
        """One step of the plan is done (in the thread: what is begun is finished, whoever looks)."""
        self._on_screen(self.step_done, result)

    def step_done(self, result: StepResult) -> None:
        """Show it."""
        self.results.append(result)
        self.repaint()

    def was_applied(self, applied: Applied) -> None:
        """Verify, or say why nothing was changed."""
        if not applied.ok:
            self.phase = "failed"
            error = self.sentence(applied.error) if applied.error else ""
            self.notice = self.say("fix.failed", error=error)
            self.repaint()
            return
        self.applied, self.phase, self.notice = applied, "verifying", ""
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
        if self.phase == "verifying":
            self.verified, self.phase = verified, "verified"
            self.repaint()
            self.query_one("#text", Scroll).scroll_home(animate=False)

    def went_wrong(self, error: Exception) -> None:
        """The verification broke, or the undo: the change stands, and can be taken back."""
        self.phase = "unverified" if self.applied is not None else "failed"
        super().went_wrong(error)

    def action_undo(self) -> None:
        """Take it back."""
        if self.can_undo and self.phase in ("verified", "unverified"):
            self.deliberately(self._undo)

    def _undo(self) -> None:
        entry = self.applied.entry_id if self.applied else None
        if entry is None or self.phase not in ("verified", "unverified"):
            return
        self.phase, self.notice = "undoing", ""
        self.repaint()

        def done(undone: Undone) -> None:
            if undone.error is not None:
                said = self.sentence(undone.error)
            else:
                said = self.say("undo.done" if undone.ok else "undo.conflict", entry=entry)
            self.notice, self.phase = said, "undone"
            self.triage.stop_looking()
            self.triage.session.forget()
            self.repaint()

        self.in_thread(lambda: undo(Journal(), entry), done)

    def action_copy(self) -> None:
        """The commands, for a person who wants to do it by hand."""
        from tftriage.tui.saving import copy

        self.notice = copy(self.triage, mend.by_hand(self.plan, self.triage.session.facts))
        self.repaint()

    def action_no(self) -> None:
        """No."""
        if self.phase == "preview":
            self.action_back()

    def action_go_on(self) -> None:
        """To what comes next: the next cause, another fix, or the start."""
        if self.phase == "failed":
            self.action_back()
        elif self.phase == "verified" and self.verified is not None:
            self._after(self.verified)
        elif self.phase in ("unverified", "undone"):
            self.triage.to_start(self.notice)

    def _after(self, verified: Verified) -> None:
        if verified.result == "not-cured":
            self.action_back()  # the diagnosis, with its other fixes
        elif verified.result == "next-cause" or verified.asks is not None:
            self.leave()
            self.app.pop_screen()  # this
            self.app.pop_screen()  # the diagnosis that is gone; below it the walk stands at its new end
        else:
            self.triage.session.paste("")  # that text is history
            self.triage.to_start(self.say("verified.cured"))

    def action_back(self) -> None:
        """Back; while it is verified: do not wait for that. What is being written is never left alone."""
        if self.phase == "verifying":
            self.phase, self.notice = "unverified", self.say("fix.not-verified")
            self.leave()
            self.triage.stop_looking()
            self.repaint()
        elif self.phase in ("preview", "failed"):
            super().action_back()
        elif self.phase in ("verified", "unverified", "undone"):
            if self.verified is not None and self.verified.result == "not-cured" and self.phase == "verified":
                super().action_back()
            else:
                self.action_go_on()

    def hold(self) -> bool:
        """While something is written, Q has to be pressed twice."""
        if self.phase not in ("applying", "undoing") or self.warned:
            return False
        self.warned, self.notice = True, self.say("fix.hold")
        self.repaint()
        return True
