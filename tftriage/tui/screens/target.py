"""Choose the Python environment under suspicion."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tftriage import choose
from tftriage.plain import one_line
from tftriage.tui.base import TriageScreen
from tftriage.tui.commands import TARGET, bindings


class TargetScreen(TriageScreen):
    """Interpreters of this machine, those with a TensorFlow first; found without starting any of them."""

    COMMANDS_HERE = TARGET
    BINDINGS: ClassVar[list[BindingType]] = bindings(*TARGET)

    def body(self) -> ComposeResult:
        """Hint and list."""
        yield Static(id="hint", markup=False)
        yield OptionList(id="choices", markup=False)

    def on_mount(self) -> None:
        """Look for Pythons if nobody did."""
        super().on_mount()
        self.query_one(OptionList).focus()
        if "pythons.list" not in self.triage.session.facts:
            self.in_thread(self.triage.suggest_target, lambda _: self.repaint())

    def heading(self) -> str:
        """What is chosen here."""
        return self.say("target.heading")

    def show(self) -> None:
        """One line a Python: version, TensorFlow, kind, path."""
        session = self.triage.session
        found = choose.candidates(session.facts)
        known = "pythons.list" in session.facts
        hint = "target.hint" if found else "target.nothing" if known else "target.looking"
        self.query_one("#hint", Static).update(Text(self.say(hint)))
        choices = self.query_one(OptionList)
        choices.clear_options()
        for number, python in enumerate(found):
            choices.add_option(Option(self._line(python), id=str(number)))
        at = [n for n, python in enumerate(found) if python["path"] == session.target.python]
        choices.highlighted = at[0] if at else 0 if found else None

    def _line(self, python: dict[str, Any]) -> Text:
        tensorflow = python.get("tensorflow")
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f" {python.get('version') or '?':<8}")
        label = one_line(tensorflow or self.say("target.no-tensorflow"), 24)
        line.append(f"{label:<25}", "bold" if tensorflow else "dim")
        return line.append(f"{python.get('kind', ''):<8} {one_line(python['path'])}")

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """This one."""
        python = choose.candidates(self.triage.session.facts)[int(event.option_id or 0)]
        target = msgspec.structs.replace(self.triage.session.target, python=python["path"])
        self.triage.new_session(target)
        self.dismiss()

    def action_choose(self) -> None:
        """Enter on the list."""
        self.query_one(OptionList).action_select()

    def action_back(self) -> None:
        """Nothing chosen."""
        self.dismiss()
