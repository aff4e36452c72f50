"""Every command of the screens, declared once: its keys, its words (label and help stand in the knowledge base),
and whether the footer shows it.

Two ways for each: a letter, and a key that an input method for Chinese does not catch (a digit, an arrow, Enter, a
function key). Neither Ctrl nor Alt is ever needed.
"""

from __future__ import annotations

from typing import NamedTuple

from textual.binding import Binding, BindingType


class Command(NamedTuple):
    """``keys`` in Textual's notation; ``shown`` is what the footer and the help call the first of them.

    The label is the message ``key.ACTION`` (or of ``words``, where one action means different things).
    """

    action: str
    keys: tuple[str, ...]
    shown: str
    footer: bool = True
    words: str = ""

    @property
    def message(self) -> str:
        """The message key of the label; ``.help`` is appended for the long form."""
        return f"key.{self.words or self.action}"


LANGUAGE = Command("language", ("l", "L", "f2"), "L", footer=False)  # the title line names it
HELP = Command("help", ("question_mark", "h", "H", "f1"), "?")
QUIT = Command("quit", ("q", "Q", "f10", "ctrl+c"), "Q")
BACK = Command("back", ("b", "B", "escape", "backspace", "left"), "B")
MORE = Command("page_down", ("space", "pagedown"), "Space")
PALETTE = Command("palette", ("colon", "p", "P"), ":", footer=False)
EVERYWHERE = (HELP, PALETTE, LANGUAGE, QUIT)

FOLLOW = Command("follow", ("enter", "right"), "Enter")
REPRODUCE = Command("reproduce", ("r", "R", "f5"), "R")
ENVIRONMENT = Command("target", ("e", "E", "f3"), "E")
CHECK = Command("doctor", ("d", "D", "f4"), "D")
TYPE = Command("type", ("i", "I", "f6"), "I")
CLEAR = Command("clear", ("x", "X", "delete"), "X", footer=False)
TAKE_BACK = Command("take_back", ("t", "T", "f8"), "T")
FINISH = Command("finish", ("f", "F", "f9"), "F")
TYPED = Command("typed", ("escape",), "Esc")
MONITOR = Command("monitor", ("m", "M", "f7"), "M")
SEARCH = Command("search", ("slash", "w", "W"), "/")
TOUR = Command("tour", ("v", "V", "f12"), "V", footer=False)
START = (FOLLOW, REPRODUCE, SEARCH, ENVIRONMENT, CHECK, TYPE, MONITOR, CLEAR, TOUR)
RECOVER = (TAKE_BACK, FINISH)

TAKE = Command("take", ("enter", "tab"), "Enter")
LEAVE = Command("typed", ("escape",), "Esc", words="leave")
PICKER = (TAKE, LEAVE)
NEXT_PAGE = Command("next_page", ("enter", "right", "n", "N"), "Enter")
TOUR_SCREEN = (NEXT_PAGE, BACK)

CHOOSE = Command("choose", ("enter", "right"), "Enter")
TYPE_PATH = Command("type_path", ("i", "I", "f6"), "I")
TARGET = (CHOOSE, TYPE_PATH, BACK)

GO_ON = Command("go_on", ("enter", "right"), "Enter")
ANSWER = Command("answer", ("a", "A", "tab"), "A")
BY_HAND = Command("by_hand", ("m", "M", "f3"), "M")
ALL = Command("show_all", ("e", "E", "f4"), "E")
SAVE = Command("save", ("s", "S", "f7"), "S")
REPORT = Command("report", ("x", "X", "f6"), "X")
DLLS = Command("dlls", ("d", "D", "f5"), "D")
WALK = (GO_ON, ANSWER, ALL, DLLS, BY_HAND, REPORT, SAVE, BACK)

PREVIEW = Command("preview", ("enter", "right"), "Enter")
MYTHS = Command("myths", ("m", "M", "f3"), "M")
DIAGNOSIS = (PREVIEW, MYTHS, DLLS, REPORT, SAVE, BACK)

COPY_REPORT = Command("copy_report", ("c", "C", "enter"), "C")
WRITE_HTML = Command("write_html", ("w", "W", "f7", "1"), "W")
WRITE_SVG = Command("write_svg", ("v", "V", "f8", "2"), "V")
REPORT_SCREEN = (COPY_REPORT, WRITE_HTML, WRITE_SVG, BACK)

APPLY = Command("apply", ("y", "Y", "f9"), "Y")
COPY = Command("copy", ("c", "C", "f7"), "C")
UNDO = Command("undo", ("u", "U", "f8"), "U")
NO = Command("no", ("n", "N", "delete"), "N", footer=False)
FIX = (APPLY, COPY, UNDO, NO, GO_ON, BACK)

CHANGING = (TAKE_BACK, FINISH, APPLY, UNDO)  # what changes the machine: only by its own key, pressed alone

CAUSE = Command("go_on", ("enter", "right"), "Enter", words="cause")
DOCTOR = (CAUSE, ALL, DLLS, SAVE, BACK)

WHAT_IF = Command("what_if", ("w", "W", "tab"), "W")
TOGGLE = Command("put_in", ("enter", "t", "T", "right"), "Enter")
PAUSE = Command("pause", ("enter", "t", "T"), "Enter")
MONITOR_SCREEN = (PAUSE, SAVE, BACK)
DLLS_SCREEN = (WHAT_IF, TOGGLE, ALL, BACK)

# Keys of every page that scrolls, and of every list.
MOVES: tuple[tuple[str, str], ...] = (
    ("down", "move(1)"), ("j", "move(1)"), ("J", "move(1)"),
    ("up", "move(-1)"), ("k", "move(-1)"), ("K", "move(-1)"),
    ("space", "page(1)"), ("pagedown", "page(1)"), ("pageup", "page(-1)"), ("minus", "page(-1)"),
    ("home", "end(-1)"), ("end", "end(1)"), ("g", "end(-1)"), ("G", "end(1)"),
)  # fmt: skip
DIGITS: tuple[tuple[str, str], ...] = tuple((str(n), f"pick({n})") for n in range(1, 10))

NAMES = {
    "question_mark": "?", "slash": "/", "colon": ":",
    "escape": "Esc", "backspace": "Backspace", "left": "Left", "right": "Right", "tab": "Tab",
    "enter": "Enter", "space": "Space", "pagedown": "PgDn", "pageup": "PgUp", "delete": "Del", "ctrl+c": "Ctrl+C",
    **{f"f{n}": f"F{n}" for n in range(1, 13)},
}  # fmt: skip


def bindings(*commands: Command) -> list[BindingType]:
    """Textual's bindings for commands (the footer is ours: it speaks two languages)."""
    return [Binding(key, command.action, show=False) for command in commands for key in command.keys]


def moves(*more: tuple[str, str]) -> list[BindingType]:
    """The bindings for scrolling and moving, and digits where they are given."""
    return [Binding(key, action, show=False) for key, action in (*MOVES, *more)]
