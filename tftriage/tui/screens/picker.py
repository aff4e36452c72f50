"""A box to type in above a list: the search over symptoms, and the palette of commands."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.timer import Timer
from textual.widgets import Input, Static

from tftriage import freetext
from tftriage.symptoms import Symptom
from tftriage.tui.base import Choices, TriageScreen
from tftriage.tui.commands import HELP, LANGUAGE, PICKER, QUIT, Command, bindings
from tftriage.tui.screens.start import StartScreen

TYPING_PAUSE = 0.25  # seconds


class Line(NamedTuple):
    """One line of the list; without ``id`` a heading. ``right`` stands at the right edge."""

    id: str
    left: str
    right: str = ""


class PickerScreen(TriageScreen):
    """Letters go into the box; Up, Down and Enter choose; Esc leaves. Function keys do what they do everywhere."""

    COMMANDS_HERE = PICKER
    BINDINGS: ClassVar[list[BindingType]] = bindings(*PICKER)
    typing = True  # keys are letters here
    NAME = ""

    def body(self) -> ComposeResult:
        """Hint, box, list."""
        yield Static(id="hint", markup=False)
        box = Input(id="path")
        box.cursor_blink = False  # a blinking cursor costs bytes on a slow line
        yield box
        yield Choices(id="choices", markup=False, classes="chosen")

    def commands(self) -> tuple[Command, ...]:
        """Function keys for what letters do elsewhere."""
        everywhere = (HELP._replace(shown="F1"), LANGUAGE._replace(shown="F2"), QUIT._replace(shown="F10"))
        return (*PICKER, *everywhere)

    def heading(self) -> str:
        """What is listed."""
        return self.say(f"{self.NAME}.heading")

    def started(self) -> None:
        """Type at once."""
        self.query_one(Input).focus()

    def settled(self, query: str) -> bool:
        """Whether all that fits the query is known already."""
        return True

    def lines(self, query: str) -> list[Line]:
        """What fits the query."""
        raise NotImplementedError

    def picked(self, id: str) -> None:
        """Do it."""
        raise NotImplementedError

    def show(self) -> None:
        """The list for what is typed."""
        query = self.query_one(Input).value.strip()
        lines = self.lines(query)
        page = self.page()
        nothing = not any(line.id for line in lines) and self.settled(query)
        page.add(self.say(f"{self.NAME}.nothing" if nothing else f"{self.NAME}.hint"))
        self.query_one("#hint", Static).update(page.text)
        choices = self.query_one(Choices)
        choices.clear_options()
        for line in lines:
            choices.add(self._line(line), id=line.id or None, disabled=not line.id)
        choices.highlighted = next(iter(choices.choosable()), None)
        choices.scroll_home(animate=False)

    def _line(self, line: Line) -> Text:
        if not line.id:
            return Text(f" {line.left}", "dim", no_wrap=True, overflow="ellipsis")
        left = Text(f"   {line.left}", no_wrap=True, overflow="ellipsis")
        left.truncate(max(10, self.app.size.width - cell_len(line.right) - 3), overflow="ellipsis", pad=True)
        return left.append(f" {line.right} ", "dim")

    # --- keys --------------------------------------------------------------------------------------------------

    def on_input_changed(self) -> None:
        """Another query."""
        self.repaint()

    def on_input_submitted(self) -> None:
        """Enter."""
        self.action_take()

    def action_take(self) -> None:
        """The line under the bar."""
        choices = self.query_one(Choices)
        if choices.highlighted is not None:
            self.picked(choices.get_option_at_index(choices.highlighted).id or "")

    def action_typed(self) -> None:
        """Esc leaves."""
        self.action_back()

    def pasted(self, text: str) -> None:
        """What the box does not take is no query."""
        self.query_one(Input).value = text.split("\n")[0][:200]

    def action_move(self, lines: int) -> None:
        """The bar."""
        self.query_one(Choices).move(lines)

    def action_page(self, pages: int) -> None:
        """The bar, faster."""
        self.query_one(Choices).move(pages * 8)


class SearchScreen(PickerScreen):
    """Every symptom, found by a person's own words in either language."""

    NAME = "search"

    def progress(self) -> str:
        """How many."""
        return self.say("search.count", n=len(self.triage.kb.symptoms))

    def __init__(self) -> None:
        super().__init__()
        self.near: dict[str, tuple[str, ...]] = {}  # what a query may mean; comparing takes a tenth of a second
        self.pause: Timer | None = None

    def on_input_changed(self) -> None:
        """The titles at once; by meaning when the typing pauses, so that no key waits for it."""
        super().on_input_changed()
        if self.pause is not None:
            self.pause.stop()
        self.pause = self.set_timer(TYPING_PAUSE, self._compare)

    def _compare(self) -> None:
        query, symptoms = self.query_one(Input).value.strip(), self.triage.kb.symptoms
        if not query or query in self.near:
            return

        def done(found: tuple[str, ...]) -> None:
            self.near[query] = found
            if self.query_one(Input).value.strip() == query:
                self.repaint()

        self.in_thread(lambda: freetext.search(query, symptoms), done, alone=False)

    def action_take(self) -> None:
        """Enter right behind the last letter: what it means counts, too."""
        query = self.query_one(Input).value.strip()
        if query and query not in self.near and self.query_one(Choices).highlighted in (0, None):
            self.near[query] = freetext.search(query, self.triage.kb.symptoms)
            self.repaint()
        super().action_take()

    def lines(self, query: str) -> list[Line]:
        """By meaning first, then by a part of the title; without a query all of them, complaints first."""
        symptoms = sorted(self.triage.kb.symptoms, key=lambda s: (not s.complaint, s.order))
        if query:
            by_id = {symptom.id: symptom for symptom in symptoms}
            found = [by_id[name] for name in self.near.get(query, ())]
            symptoms = found + [s for s in symptoms if s not in found and _contains(s, query)]
        return [Line(symptom.id, self.words(symptom.title)) for symptom in symptoms]

    def settled(self, query: str) -> bool:
        """Not before it was compared."""
        return not query or query in self.near

    def picked(self, id: str) -> None:
        """Walk from there."""
        self.triage.to_start()
        screen = self.triage.screen
        assert isinstance(screen, StartScreen)
        screen.begin(id)


def _contains(symptom: Symptom, query: str) -> bool:
    """Every word of the query is in the title, in either language, or in the id."""
    text = " ".join([*symptom.title.values(), *symptom.summary.values(), symptom.id]).lower()
    return all(word in text for word in query.lower().split())
