"""Choose the Python environment under suspicion."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import msgspec
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input, Static

from tftriage import choose
from tftriage.plain import one_line, plain
from tftriage.tui.base import Choices, TriageScreen
from tftriage.tui.commands import DIGITS, EVERYWHERE, TARGET, TYPED, Command, bindings, moves

INSIDE = ("bin/python", "bin/python3", "python.exe", "Scripts/python.exe")  # of an environment's folder


class TargetScreen(TriageScreen):
    """Interpreters of this machine, those with a TensorFlow first; found without starting any of them.

    ``then`` says what goes on once one is chosen (the complaint that led here). The result is whether one was chosen.
    """

    COMMANDS_HERE = TARGET
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*TARGET), *moves(*DIGITS)]

    def __init__(self, then: dict[str, str] | None = None) -> None:
        super().__init__()
        self.then = then
        self.typing = False

    def body(self) -> ComposeResult:
        """Hint and list."""
        yield Static(id="hint", markup=False)
        yield Choices(id="choices", markup=False, classes="chosen")

    def started(self) -> None:
        """Look for Pythons if nobody did."""
        if "pythons.list" not in self.triage.session.facts:
            self.in_thread(self.triage.suggest_target, lambda _: self.repaint())

    def commands(self) -> tuple[Command, ...]:
        """While a path is typed, Enter and Esc."""
        return (TARGET[0], TYPED) if self.typing else (*TARGET, *EVERYWHERE)

    def heading(self) -> str:
        """What is chosen here."""
        return self.say("target.heading")

    def show(self) -> None:
        """One line a Python: version, TensorFlow, kind, path."""
        session = self.triage.session
        found = choose.candidates(session.facts)
        known = "pythons.list" in session.facts
        page = self.page()
        if self.notice:
            page.add(self.notice, "bold")
        page.add(self.say("target.hint" if found else "target.nothing" if known else "target.looking"))
        if self.then:
            page.add(self.say("target.then", title=self.words(self.then)), "dim")
        self.query_one("#hint", Static).update(page.text)
        choices = self.query_one(Choices)
        before = choices.highlighted
        choices.clear_options()
        for number, python in enumerate(found):
            choices.add(self._line(number + 1, python), id=str(number))
        at = [n for n, python in enumerate(found) if python["path"] == session.target.python]
        choices.highlighted = before if before is not None else at[0] if at else 0 if found else None

    def _line(self, number: int, python: dict[str, Any]) -> Text:
        tensorflow = python.get("tensorflow")
        line = Text(f" {number} " if number < 10 else "   ", no_wrap=True, overflow="ellipsis")
        columns = (
            (one_line(python.get("version") or "?"), 8, ""),
            (one_line(tensorflow or self.say("target.no-tensorflow")), 23, "bold" if tensorflow else "dim"),
            (one_line(python.get("kind", "")), 10, ""),
        )  # fmt: skip
        for text, width, style in columns:
            cell = Text(text, style)
            cell.truncate(width, overflow="ellipsis", pad=True)
            line.append_text(cell).append(" ")
        return line.append(self.path(python["path"], max(12, self.app.size.width - 47)))

    # --- keys --------------------------------------------------------------------------------------------------

    def take(self, path: str) -> None:
        """This one."""
        self.leave()
        self.triage.new_session(msgspec.structs.replace(self.triage.session.target, python=path))
        self.dismiss(None)

    def action_choose(self) -> None:
        """Enter: the one under the bar."""
        at = self.query_one(Choices).highlighted
        if at is not None:
            self.action_pick(at + 1)

    def action_pick(self, number: int) -> None:
        """A digit."""
        found = choose.candidates(self.triage.session.facts)
        if not self.typing and number <= len(found):
            self.take(found[number - 1]["path"])

    def action_move(self, by: int) -> None:
        """The bar."""
        self.query_one(Choices).move(by)

    def action_page(self, pages: int) -> None:
        """The bar, faster."""
        self.query_one(Choices).move(pages * 10)

    def action_end(self, end: int) -> None:
        """The first or the last."""
        self.query_one(Choices).move(end * 10_000)

    def action_type_path(self, text: str = "") -> None:
        """A box for a path that was not found."""
        if self.typing:
            return
        self.typing = True
        entry = Input(text, id="path")
        entry.cursor_blink = False
        self.mount(entry, after="#hint")
        entry.focus()
        self.repaint()

    def pasted(self, text: str) -> None:
        """A path, most likely: into the box, where Enter takes it."""
        line = one_line(text, 1000)
        if line:
            self.action_type_path(line)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The interpreter, or the folder of its environment."""
        path = interpreter(event.value)
        if path is None:
            self.notice = self.say("target.no-such", path=self.path(event.value, 60))
            self.repaint()
            return
        self.take(str(path))

    def action_back(self) -> None:
        """No path after all; or nothing chosen."""
        if self.typing:
            self.query_one(Input).remove()
            self.typing, self.notice = False, ""
            self.set_focus(None)
            self.repaint()
            return
        self.leave()
        self.dismiss(None)


def interpreter(typed: str) -> Path | None:
    """The interpreter that a person means: its path, or the folder of its environment."""
    text = plain(typed).strip().strip("\"'")
    if not text:
        return None
    try:
        path = Path(text).expanduser()
        found = next((at for at in (path, *(path / inside for inside in INSIDE)) if at.is_file()), None)
    except (OSError, RuntimeError, ValueError):  # a name too long, no home folder, a NUL
        return None
    return found.absolute() if found else None
