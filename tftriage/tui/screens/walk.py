"""The walk: the path with its answers on the left; the question, live evidence and the reason on the right."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tftriage.knowledge import Node
from tftriage.plain import one_line, plain
from tftriage.probes.base import Finding
from tftriage.session import Arrived, Entered, Judged, Progress
from tftriage.show import sentence
from tftriage.tui.base import TriageScreen
from tftriage.tui.commands import BACK, EVERYWHERE, WALK, Command, bindings
from tftriage.walk import Ask, Reached, WalkError

LIVE_LINES = 8  # facts shown while they arrive


class WalkScreen(TriageScreen):
    """Walks by probes until the person is needed or a diagnosis is reached; every answer can be overridden."""

    COMMANDS_HERE = WALK
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(*WALK),
        *((str(n), f"pick({n})", "") for n in range(1, 10)),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.running = False
        self.node = ""  # the node on the right; follows the walk
        self.arrived: list[Arrived] = []
        self.waiting = 0
        self.hand = False
        self.choosing = False  # the person answers the node on the right
        self.notice = ""

    def body(self) -> ComposeResult:
        """Steps left, the question right."""
        with Horizontal(id="columns"):
            yield OptionList(id="steps", markup=False)
            with VerticalScroll(id="seen"):
                yield Static(id="question", markup=False)

    def on_mount(self) -> None:
        """Start walking."""
        super().on_mount()
        self.query_one("#steps").focus()
        self.advance()

    def commands(self) -> tuple[Command, ...]:
        """Enter only when there is somewhere to go."""
        here = WALK if not self.running else (BACK,)
        return (*here, *EVERYWHERE)

    def heading(self) -> str:
        """The symptom, and how far the walk is."""
        session = self.triage.session
        if session.walk is None:
            return "tftriage"
        title = self.words(self.triage.kb.symptom(session.walk.symptom).title)
        return f"{one_line(title, 52)}   {self.say('walk.step', n=len(session.walk.steps) + 1)}"

    # --- walking ---------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Go on by probes, in the background."""
        self.running, self.hand, self.choosing, self.notice = True, False, False, ""
        self.repaint()
        session = self.triage.session
        listen = self.from_thread(self.heard)
        self.in_thread(lambda: session.advance(listen), self.stopped)

    def heard(self, progress: Progress) -> None:
        """A fact or an answer arrived."""
        if isinstance(progress, Entered):
            self.node, self.arrived, self.waiting = progress.node, [], len(progress.wants)
        elif isinstance(progress, Arrived):
            self.arrived = [*self.arrived, progress][-LIVE_LINES:]
            self.waiting = max(0, self.waiting - 1)
        elif isinstance(progress, Judged):
            self.arrived = []
        if self.is_mounted:
            self.repaint()

    def stopped(self, request: Ask | Reached) -> None:
        """The person is needed, or the walk is at its end."""
        self.running = False
        if isinstance(request, Ask):
            self.node, self.choosing = request.node, True
        elif self.triage.session.walk and self.triage.session.walk.steps:
            self.node = self.triage.session.walk.steps[-1].node
        if self.is_mounted:
            self.repaint()
        if isinstance(request, Reached) and self.triage.session.walk and not self.triage.session.walk.steps:
            self.action_go_on()  # nothing was asked: the text itself says it

    # --- painting --------------------------------------------------------------------------------------------

    def show(self) -> None:
        """Both columns."""
        self._steps()
        self.query_one("#question", Static).update(self._question())

    def _steps(self) -> None:
        kb, session = self.triage.kb, self.triage.session
        steps = self.query_one("#steps", OptionList)
        steps.clear_options()
        for number, done in enumerate(session.walk.steps if session.walk else ()):
            node = kb.nodes[done.node]
            levels = {e.level for e in done.finding.evidence} if done.finding else set()
            level = "unknown" if done.answer == "unknown" else "bad" if "bad" in levels else "ok"
            glyph, style = self.mark(level)
            label = self.words(node.choices[done.answer]) if done.answer in node.choices else done.answer
            line = Text(no_wrap=True, overflow="ellipsis").append(f"{glyph} ", style)
            line.append(self.words(node.ask), "dim").append("\n  ").append(label)
            steps.add_option(Option(line, id=str(number)))
        if session.walk and session.walk.diagnosis is None:
            glyph, style = self.mark("here")
            now = kb.nodes[session.walk.at]
            line = Text(no_wrap=True, overflow="ellipsis").append(f"{glyph} {self.words(now.ask)}", style)
            steps.add_option(Option(line, id="now"))
        if steps.option_count and steps.highlighted is None:
            steps.highlighted = steps.option_count - 1

    def _question(self) -> Text:
        kb, session = self.triage.kb, self.triage.session
        shown = Text()
        node = kb.nodes.get(self.node)
        if node is None:
            return shown.append(self.say("walk.settled"))
        shown.append(self.words(node.ask) + "\n\n", "bold")
        if self.running and session.walk and session.walk.at == self.node:
            shown.append(self.say("walk.looking", left=self.waiting) + "\n", "dim")
            for progress in self.arrived:
                glyph, style = self.mark("ok" if progress.fact.status == "ok" else "info")
                note = f"  {one_line(progress.fact.note, 30)}" if progress.fact.note else ""
                shown.append(f"{glyph} ", style).append(f"{progress.fact.name}  {progress.fact.seconds:.1f} s{note}\n")
        shown.append_text(self._evidence(self._finding()))
        if self.choosing:
            shown.append("\n").append_text(self._choices(node))
        if self.hand:
            shown.append("\n" + self.say("walk.by-hand") + "\n", "bold").append(plain(self.words(node.by_hand)) + "\n")
        shown.append("\n" + self.say("walk.why") + "\n", "bold").append(self.words(node.why) + "\n")
        diagnosis = session.diagnosis
        if diagnosis is not None and not self.running:
            glyph, style = self.mark("here")
            shown.append(f"\n{glyph} {self.words(diagnosis.title)}\n", style).append(self.say("walk.enter-diagnosis"))
        if self.notice:
            shown.append("\n" + self.notice + "\n", "bold")
        return shown

    def _finding(self) -> Finding | None:
        walk = self.triage.session.walk
        if walk is None:
            return None
        if walk.at == self.node:
            return walk.finding
        return next((done.finding for done in walk.steps if done.node == self.node), None)

    def _evidence(self, finding: Finding | None) -> Text:
        shown = Text()
        for evidence in finding.evidence if finding else ():
            glyph, style = self.mark(evidence.level)
            words = sentence(self.triage.kb, evidence, self.triage.lang)
            shown.append(f"{glyph} ", style).append(words + "\n")
        return shown

    def _choices(self, node: Node) -> Text:
        shown = Text(self.say("walk.you-answer") + "\n", "bold")
        for number, choice in enumerate(self._answers(node), 1):
            shown.append(f" {number} ", "bold reverse").append(f" {self.words(node.choices[choice])}\n")
        return shown

    def _answers(self, node: Node) -> list[str]:
        return [answer for answer, target in node.answers.items() if target != "ask" and answer in node.choices][:9]

    # --- keys --------------------------------------------------------------------------------------------------

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """The right side shows the step under the cursor."""
        walk = self.triage.session.walk
        if self.running or walk is None or event.option_id is None:
            return
        chosen = walk.at if event.option_id == "now" else walk.steps[int(event.option_id)].node
        if chosen != self.node and chosen in self.triage.kb.nodes:
            self.node = chosen
            self.choosing = isinstance(self.triage.session.request, Ask) and walk.at == chosen
            self.query_one("#question", Static).update(self._question())

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter."""
        self.action_go_on()

    def action_go_on(self) -> None:
        """To the diagnosis, when there is one."""
        from tftriage.tui.screens.diagnosis import DiagnosisScreen

        if not self.running and self.triage.session.diagnosis is not None:
            self.app.push_screen(DiagnosisScreen())

    def action_answer(self) -> None:
        """Answer (or override) the question on the right."""
        if not self.running:
            self.choosing = not self.choosing
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

    def action_by_hand(self) -> None:
        """How to look without tftriage."""
        self.hand = not self.hand
        self.repaint()

    def action_save(self) -> None:
        """Write the case."""
        from tftriage.tui.saving import save

        self.notice = save(self.triage)
        self.repaint()

    def action_back(self) -> None:
        """To the start; what was seen is kept."""
        if self.running and self.triage.session.source.live:
            self.triage.session.close()  # ends the probe; the thread reports what it has
        self.app.pop_screen()
