"""Every command of the screens, declared once: its keys, its words (label and help stand in the knowledge base),
and whether the footer shows it. Two ways for each: a letter and a key that every terminal sends.
"""

from __future__ import annotations

from typing import NamedTuple

from textual.binding import Binding, BindingType


class Command(NamedTuple):
    """``keys`` in Textual's notation, the first one is shown. The label is the message ``key.ACTION``."""

    action: str
    keys: tuple[str, ...]
    shown: str
    footer: bool = True

    @property
    def message(self) -> str:
        """The message key of the label; ``.help`` is appended for the long form."""
        return f"key.{self.action}"


LANGUAGE = Command("language", ("l", "L"), "L")
HELP = Command("help", ("question_mark", "h"), "?")
QUIT = Command("quit", ("q", "Q"), "Q")
BACK = Command("back", ("b", "B", "escape", "backspace", "left"), "B")
EVERYWHERE = (HELP, LANGUAGE, QUIT)

START = (
    Command("follow", ("enter",), "Enter"),
    Command("reproduce", ("r", "R"), "R"),
    Command("target", ("e", "E"), "E"),
    Command("doctor", ("d", "D"), "D"),
    Command("type", ("i", "I"), "I"),
    Command("clear", ("x", "X"), "X", footer=False),
)
TARGET = (Command("choose", ("enter",), "Enter"), BACK)
WALK = (
    Command("go_on", ("enter",), "Enter"),
    Command("answer", ("a", "A"), "A"),
    Command("by_hand", ("m", "M"), "M"),
    Command("save", ("s", "S"), "S"),
    BACK,
)
DIAGNOSIS = (
    Command("preview", ("enter",), "Enter"),
    Command("myths", ("m", "M"), "M"),
    Command("save", ("s", "S"), "S"),
    BACK,
)
FIX = (
    Command("apply", ("y", "Y"), "Y"),
    Command("copy", ("c", "C"), "C"),
    Command("undo", ("u", "U"), "U"),
    Command("no", ("n", "N"), "N", footer=False),
    BACK,
)
DOCTOR = (BACK,)


def bindings(*commands: Command) -> list[BindingType]:
    """Textual's bindings for commands (the footer is ours: it speaks two languages)."""
    return [Binding(key, command.action, show=False) for command in commands for key in command.keys]
