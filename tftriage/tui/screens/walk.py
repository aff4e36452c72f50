"""The walk: the path with its answers on the left; the question, live evidence and the reason on the right."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from tftriage.knowledge import Node
from tftriage.plain import one_line, plain
from tftriage.probes.base import Evidence, Finding
from tftriage.session import Arrived, Entered, Judged, Progress
from tftriage.show import likely_text
from tftriage.tui.base import Choices, Scroll, TriageScreen
from tftriage.tui.commands import (
    ALL,
    ANSWER,
    BACK,
    BY_HAND,
    DIGITS,
    DLLS,
    EVERYWHERE,
    GO_ON,
    REPORT,
    SAVE,
    WALK,
    Command,
    bindings,
    moves,
)
from tftriage.tui.wrapping import Page, wrap
from tftriage.walk import Ask, Reached, Walk, WalkError

LIVE_LINES = 8  # facts shown while they arrive
MOST_EVIDENCE = 6  # lines of evidence before "more"
STEPS = 34  # cells of the left column, at most


def bad_first(evidence: tuple[Evidence, ...]) -> list[Evidence]:
    """What is wrong first, otherwise in the order of the probe."""
    return sorted(evidence, key=lambda line: line.level != "bad")


class WalkScreen(TriageScreen):
    """Walks by probes until the person is needed or a diagnosis is reached; every answer can be overridden."""

    COMMANDS_HERE = WALK
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*WALK), *moves(*DIGITS)]

    def __init__(self, symptom: str | None = None) -> None:
        super().__init__()
        self.symptom = symptom  # where to begin; None: go on where the session stands
        self.running = False
        self.node = ""  # the node on the right; follows the walk
        self.arrived: list[Arrived] = []
        self.waiting = 0
        self.hand = False
        self.all = False  # every line of evidence
        self.choosing = False  # the person answers the node on the right
        self.settled: Walk | None = None  # the walk as this screen last showed it at rest

    def body(self) -> ComposeResult:
        """Steps left, the question right, its answers below."""
        with Horizontal(id="columns"):
            yield Choices(id="steps", markup=False)
            with Vertical(id="right"):
                with Scroll(id="seen"):
                    yield Static(id="question", markup=False)
                yield Choices(id="answers", markup=False, classes="chosen")

    def started(self) -> None:
        """Start walking."""
        self.advance(self.symptom)

    def on_screen_resume(self) -> None:
        """After a fix the walk stands elsewhere."""
        walk = self.triage.session.walk
        if not self.running and self.settled is not None and walk is not self.settled and walk is not None:
            self._settle()
        super().on_screen_resume()

    def commands(self) -> tuple[Command, ...]:
        """Only what can be done now."""
        if self.running:
            return (BACK, *EVERYWHERE)
        go = GO_ON._replace(words="give" if self.choosing else "diagnosis" if self.triage.session.diagnosis else "")
        finding = self._finding()
        more = (ALL,) if finding is not None and len(finding.evidence) > MOST_EVIDENCE else ()
        answer = ANSWER._replace(words="steps") if self.choosing else ANSWER
        return (go, answer, *more, DLLS, BY_HAND, REPORT, SAVE, BACK, *EVERYWHERE)

    def heading(self) -> str:
        """The symptom."""
        symptom = self._symptom()
        return self.words(self.triage.kb.symptom(symptom).title) if symptom else "tftriage"

    def _symptom(self) -> str | None:
        walk = self.triage.session.walk
        return self.symptom if walk is None or (self.running and self.symptom) else walk.symptom

    def progress(self) -> str:
        """How far the walk is."""
        walk, symptom = self.triage.session.walk, self._symptom()
        steps = len(walk.steps) if walk is not None and walk.symptom == symptom else 0
        at_end = walk is not None and walk.diagnosis is not None and not self.running
        return self.say("walk.steps" if at_end else "walk.step", n=steps + (not at_end))

    # --- walking ---------------------------------------------------------------------------------------------

    def advance(self, begin: str | None = None) -> None:
        """Go on by probes, in the background; ``begin`` at a symptom (there too: another walk may still be ending)."""
        self.running, self.hand, self.choosing, self.all, self.notice = True, False, False, False, ""
        self.repaint()
        session = self.triage.session
        listen = self.from_thread(self.heard)

        def work() -> Ask | Reached:
            if begin is not None:
                session.begin(begin)
            return session.advance(listen)

        self.in_thread(work, self.stopped)

    def heard(self, progress: Progress) -> None:
        """A fact or an answer arrived."""
        if isinstance(progress, Entered):
            self.node, self.arrived, self.waiting = progress.node, [], len(progress.wants)
        elif isinstance(progress, Arrived):
            self.arrived = [*self.arrived, progress][-LIVE_LINES:]
            self.waiting = max(0, self.waiting - 1)
        elif isinstance(progress, Judged):
            self.arrived = []
        self.repaint()

    def stopped(self, request: Ask | Reached) -> None:
        """The person is needed, or the walk is at its end."""
        self.running = False
        self._settle()
        self.repaint()
        if isinstance(request, Reached) and self.triage.session.walk and not self.triage.session.walk.steps:
            self.action_go_on()  # nothing was asked: the text itself says it

    def went_wrong(self, error: Exception) -> None:
        """Stay usable."""
        self.running = False
        super().went_wrong(error)

    def _settle(self) -> None:
        """Show where the walk stands: the question that waits for the person, or the last one answered."""
        session = self.triage.session
        walk = self.settled = session.walk
        self.choosing, self.all, self.hand = False, False, False
        if isinstance(session.request, Ask):
            self.node, self.choosing = session.request.node, True
        elif walk is not None:
            self.node = walk.steps[-1].node if walk.steps else ""
        self.query_one("#steps", Choices).highlighted = None
        self.query_one("#answers", Choices).highlighted = None
        self.query_one("#seen", Scroll).scroll_home(animate=False)

    # --- painting --------------------------------------------------------------------------------------------

    @property
    def left(self) -> int:
        """Cells of the left column."""
        return min(STEPS, int(self.app.size.width * 0.42))

    @property
    def room(self) -> int:
        """Cells of a line on the right."""
        return self.app.size.width - self.left - 2

    def show(self) -> None:
        """Both columns."""
        self._steps()
        self.query_one("#question", Static).update(self._question())
        self._answers_list()

    def _steps(self) -> None:
        kb, session = self.triage.kb, self.triage.session
        steps = self.query_one("#steps", Choices)
        steps.styles.width = self.left
        before = steps.highlighted
        steps.clear_options()
        walk = session.walk if self.symptom is None or not self.running or self.node else None
        for number, done in enumerate(walk.steps if walk else ()):
            node = kb.nodes[done.node]
            levels = {e.level for e in done.finding.evidence} if done.finding else set()
            level = "unknown" if done.answer == "unknown" else "bad" if "bad" in levels else "ok"
            label = self.words(node.choices[done.answer]) if done.answer in node.choices else done.answer
            label = self.say("walk.by-you", answer=label) if done.by == "person" else label
            steps.add(self._step(level, self.words(node.ask), label, "dim"), id=str(number))
        if walk and walk.diagnosis is None and walk.at in kb.nodes:
            now = self.say("walk.now-looking" if self.running else "walk.now-you")
            steps.add(self._step("here", self.words(kb.nodes[walk.at].ask), now, "bold"), id="now")
        last = steps.option_count - 1
        steps.highlighted = None if last < 0 else last if self.running or before is None else min(before, last)
        steps.set_class(not self.choosing and not self.running, "chosen")

    def _step(self, level: str, ask: str, answer: str, style: str) -> Text:
        """Two lines, each cut to the column."""
        glyph, mark = self.mark(level)
        lines = [Text().append(f"{glyph} ", mark).append(ask, style), Text(f"  {answer}")]
        for line in lines:
            line.truncate(self.left - 2, overflow="ellipsis")
        return Text("\n", no_wrap=True).join(lines)

    def _question(self) -> Text:
        kb, session = self.triage.kb, self.triage.session
        page = Page(self.room)
        if self.notice:
            page.add(self.notice, "bold")
            page.gap()
        diagnosis = session.diagnosis
        if diagnosis is not None and not self.running and not self.choosing:
            page.add(Text(self.words(diagnosis.title), "bold"), mark=self.mark("here"))
            page.add(self.say("walk.enter-diagnosis"), indent=2)
            page.gap()
        node = kb.nodes.get(self.node)
        if node is None:
            page.add(self.say("walk.begins" if self.running else "walk.settled"))
            return page.text
        page.add(self.words(node.ask), "bold")
        page.gap()
        if self.running and session.walk and session.walk.at == self.node:
            page.add(self.say("walk.looking", left=self.waiting), "dim")
            for progress in self.arrived:
                note = f"  {one_line(progress.fact.note, 60)}" if progress.fact.note else ""
                mark = self.mark("ok" if progress.fact.status == "ok" else "info")
                page.add(f"{progress.fact.name}  {progress.fact.seconds:.1f} s{note}", mark=mark)
        self._evidence(page, self._finding())
        self._likely(page)
        if self.hand:
            page.gap()
            page.add(self.say("walk.by-hand"), "bold")
            page.add(plain(self.words(node.by_hand)).strip())
        page.gap()
        page.add(self.say("walk.why"), "bold")
        page.add(self.words(node.why).strip())
        return page.text

    def _finding(self) -> Finding | None:
        walk = self.triage.session.walk
        if walk is None:
            return None
        if walk.at == self.node:
            return walk.finding
        return next((done.finding for done in walk.steps if done.node == self.node), None)

    def _given(self) -> str | None:
        """The answer that the question on the right has now."""
        walk = self.triage.session.walk
        return next((done.answer for done in walk.steps if done.node == self.node), None) if walk else None

    def _evidence(self, page: Page, finding: Finding | None) -> None:
        lines = bad_first(finding.evidence) if finding else []
        shown = lines if self.all or len(lines) <= MOST_EVIDENCE else lines[: MOST_EVIDENCE - 1]
        for evidence in shown:
            page.add(self.sentence(evidence), mark=self.mark(evidence.level))
        if len(shown) < len(lines):
            page.add(self.say("walk.more", n=len(lines) - len(shown)), "dim", mark=(" ", ""))

    def _likely(self, page: Page) -> None:
        """What mostly stands behind the question that waits for the person."""
        session = self.triage.session
        waits = isinstance(session.request, Ask) and session.request.node == self.node and not self.running
        if waits and (causes := likely_text(session, self.triage.lang)):
            page.gap()
            page.add(causes)

    def _answers(self, node: Node) -> list[str]:
        return [answer for answer, target in node.answers.items() if target != "ask" and answer in node.choices]

    def _answers_list(self) -> None:
        answers = self.query_one("#answers", Choices)
        node = self.triage.kb.nodes.get(self.node)
        before = answers.highlighted
        answers.clear_options()
        answers.display = self.choosing and node is not None
        if not self.choosing or node is None:
            return
        for number, choice in enumerate(self._answers(node), 1):
            label = Text(f"{number} " if number < 10 else "  ").append(self.words(node.choices[choice]))
            answers.add(wrap(label, self.room, 2))
        if answers.option_count:
            given = self._given()
            first = self._answers(node).index(given) if given in self._answers(node) else 0
            answers.highlighted = min(first if before is None else before, answers.option_count - 1)

    # --- keys --------------------------------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        """The bar: among the answers while the person answers, else among the steps; the right side follows."""
        if self.choosing:
            self.query_one("#answers", Choices).move(by)
        else:
            self._move_steps(by)

    def action_end(self, end: int) -> None:
        """The first or the last of them."""
        self.action_move(end * 10_000)

    def _move_steps(self, by: int) -> None:
        steps = self.query_one("#steps", Choices)
        steps.move(by)
        walk = self.triage.session.walk
        if self.running or walk is None or steps.highlighted is None:
            return
        chosen = steps.get_option_at_index(steps.highlighted).id
        node = walk.at if chosen == "now" else walk.steps[int(chosen or 0)].node
        if node != self.node:
            self.node, self.all, self.hand = node, False, False
            self.query_one("#seen", Scroll).scroll_home(animate=False)
            self.repaint()

    def action_go_on(self) -> None:
        """Give the answer under the bar; or to the question that waits; or to the diagnosis."""
        from tftriage.tui.screens.diagnosis import DiagnosisScreen

        session = self.triage.session
        if self.running:
            return
        if self.choosing:
            at = self.query_one("#answers", Choices).highlighted
            self.action_pick(1 + (at or 0))
        elif session.diagnosis is not None:
            self.app.push_screen(DiagnosisScreen())
        else:
            self._settle()
            self.repaint()

    def action_answer(self) -> None:
        """Answer (or override) the question on the right; or leave it and look at the steps."""
        if not self.running and self.node in self.triage.kb.nodes:
            self.choosing = not self.choosing
            self.query_one("#answers", Choices).highlighted = None
            self.repaint()

    def action_pick(self, number: int) -> None:
        """A digit answers."""
        node = self.triage.kb.nodes.get(self.node)
        if self.running or not self.choosing or node is None or number > len(self._answers(node)):
            return
        try:
            self.triage.session.answer(self.node, self._answers(node)[number - 1])
        except WalkError as error:
            self.notice = str(error)
            self.repaint()
            return
        self.advance()

    def action_show_all(self) -> None:
        """All evidence, or the first lines of it."""
        self.all = not self.all
        self.repaint()

    def action_by_hand(self) -> None:
        """How to look without tftriage."""
        self.hand = not self.hand
        self.repaint()

    def action_save(self) -> None:
        """Write the case."""
        from tftriage.tui.saving import save

        if not self.running:
            self.notice = save(self.triage)
            self.query_one("#seen", Scroll).scroll_home(animate=False)
            self.repaint()

    def action_dlls(self) -> None:
        """Who needs whom; not while a probe looks."""
        if not self.running:
            super().action_dlls()

    def action_report(self) -> None:
        """What was found so far, to hand to another person."""
        if not self.running:
            super().action_report()

    def leave(self) -> None:
        """To the start; what was seen is kept, and the probe that still looks is ended."""
        super().leave()
        if self.running and self.triage.session.source.live:
            self.triage.stop_looking()
