"""The cell diff by itself: whatever is painted, the terminal shows what painting every cell anew would show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyte
import pyte.screens
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style

from tftriage.tui.celldiff import Painter
from tftriage.tui.cells import BLANK, PLAIN, Cell, Pen, Unexpected, cells, change, pen, seen, sure, whole

WIDTH, HEIGHT = 14, 4
CHARACTERS = "  ab7│─é中文。e\u0301…“✓😀한\u3000"
CODES = ("", "1", "2", "1;2", "31", "1;31;44", "7", "7;32", "4", "38;5;17", "38;2;1;2;3;48;2;9;8;7", "3;9", "53", "21")
PENS = [pen(codes) for codes in CODES]

texts = st.text(st.sampled_from(CHARACTERS), max_size=WIDTH)
styles = st.sampled_from(
    [Style.parse(s) for s in ("none", "bold red", "dim", "reverse", "underline", "on blue", "red on blue", "strike")]
)
segments = st.lists(st.tuples(texts, styles).map(lambda pair: Segment(*pair)), max_size=4)
parts = st.tuples(st.integers(0, HEIGHT - 1), st.integers(0, WIDTH - 1), segments)
Part = tuple[int, int, list[Segment]]
updates = st.lists(st.lists(parts, min_size=1, max_size=5), min_size=1, max_size=8)


def fitting(part: Part) -> tuple[int, int, list[Cell]]:
    """A part, cut to the screen."""
    y, x, line = part
    return y, x, cells(line, ColorSystem.TRUECOLOR)[: WIDTH - x]


def terminal() -> tuple[pyte.Screen, pyte.Stream]:
    screen = pyte.Screen(WIDTH, HEIGHT)
    screen.reset_mode(pyte.modes.DECAWM)
    return screen, pyte.Stream(screen)


def looks(screen: pyte.Screen) -> list[list[tuple[object, ...]]]:
    """Every cell as a person sees it: a space has no foreground and cannot be bold."""
    rows = []
    for y in range(screen.lines):
        row = []
        for x in range(screen.columns):
            c = screen.buffer[y][x]
            inked = c.reverse or c.underscore or c.strikethrough
            paint = (c.bg, c.reverse, c.underscore, c.strikethrough, c.blink)
            row.append((c.data, *paint, c.fg if c.data.strip() or inked else "", bool(c.data.strip()) and c.bold))
        rows.append(row)
    return rows


def anew(shown: list[list[Cell | None]]) -> pyte.Screen:
    """Every cell written by itself, at its place, with its whole style."""
    screen, stream = terminal()
    for y, row in enumerate(shown):
        for x, cell in enumerate(row):
            if cell is not None and cell[0]:
                codes = ";".join(["0", *(code for _, code in cell[1].look)])
                stream.feed(f"\x1b[{y + 1};{x + 1}H\x1b[{codes}m{cell[0]}\x1b[m")
    return screen


def model(shown: list[list[Cell | None]], part: tuple[int, int, list[Cell]]) -> None:
    """Lay a part over what is shown."""
    y, x, line = part
    shown[y][x : x + len(line)] = line


def halves(row: list[Cell | None]) -> list[Cell | None]:
    """Half a wide character is a space; what nobody painted stays unknown."""
    known = [cell or (" ", PLAIN) for cell in row]
    whole(known)
    return [None if was is None else cell for was, cell in zip(row, known, strict=True)]


@settings(max_examples=100, deadline=None)
@given(updates)
def test_any_updates_end_in_the_picture_of_painting_everything(
    many: list[list[Part]],
) -> None:
    painter, (screen, stream) = Painter(), terminal()
    shown: list[list[Cell | None]] = [[None] * WIDTH for _ in range(HEIGHT)]
    for update in many:
        given_parts = [fitting(part) for part in update]
        for part in given_parts:
            model(shown, part)
        shown = [halves(row) for row in shown]
        stream.feed(painter.paint(given_parts, (WIDTH, HEIGHT)))
        assert looks(screen) == looks(anew(shown))
        assert screen.cursor.attrs == pyte.screens.Char(" ")._replace(data=screen.cursor.attrs.data), "a pen is left"
        assert painter.paint(given_parts[-1:], (WIDTH, HEIGHT)) == "" or len(given_parts) > 1


@contextmanager
def widths(character: str, width: int) -> Iterator[None]:
    """A terminal with its own idea of a character's width."""
    real = pyte.screens.wcwidth
    pyte.screens.wcwidth = lambda c: width if c == character else real(c)
    try:
        yield
    finally:
        pyte.screens.wcwidth = real


@pytest.mark.parametrize(("character", "width"), [("…", 2), ("“", 2), ("✓", 1), ("😀", 1)])
@settings(max_examples=25, deadline=None)
@given(many=updates)
def test_a_terminal_that_counts_otherwise_still_has_everything_else_in_its_place(
    character: str, width: int, many: list[list[Part]]
) -> None:
    painter, (screen, stream) = Painter(), terminal()
    shown: list[list[Cell | None]] = [[None] * WIDTH for _ in range(HEIGHT)]
    everything = [(y, 0, [Segment("." * WIDTH)]) for y in range(HEIGHT)]
    with widths(character, width):
        for update in [everything, *many]:
            given_parts = [fitting(part) for part in update]
            for part in given_parts:
                model(shown, part)
            shown = [halves(row) for row in shown]
            stream.feed(painter.paint(given_parts, (WIDTH, HEIGHT)))
    right, wrong = looks(anew(shown)), looks(screen)
    for y, row in enumerate(shown):
        for x, cell in enumerate(row):
            own = (cell[0] or (row[x - 1] or BLANK)[0]) if cell else ""
            if not own.startswith(character):  # how it draws the character itself is its own affair
                assert wrong[y][x] == right[y][x], (x, y, cell)


@given(st.sampled_from(PENS), st.sampled_from(PENS))
def test_a_change_of_pen_leads_to_that_pen(old: Pen, new: Pen) -> None:
    def char(*pens: Pen) -> pyte.screens.Char:
        screen, stream = terminal()
        before = PLAIN
        for wanted in pens:
            stream.feed(change(before, wanted))
            before = wanted
        stream.feed("x")
        return screen.buffer[0][0]

    assert char(old, new) == char(new)
    if old != new:
        assert len(change(old, new)) <= len("\x1b[0;m") + sum(len(code) + 1 for _, code in new.look)


def test_pens_keep_what_can_be_seen() -> None:
    assert pen("1;31;44").look == (("bg", "44"), ("bold", "1"), ("fg", "31"))
    assert pen("39;49") == PLAIN
    assert pen("38;2;1;2;3").look == (("fg", "38;2;1;2;3"),)
    assert seen(pen("1;31")) == PLAIN
    assert seen(pen("1;31;7")).look == (("fg", "31"), ("reverse", "7"))
    assert change(pen("1;2"), pen("2")) == "\x1b[0;2m"  # 22 ends both
    assert change(pen("31"), pen("1;31")) == "\x1b[1m"
    assert change(pen("31"), PLAIN) == "\x1b[m"


def test_links_are_opened_and_closed() -> None:
    line = cells([Segment("a", Style(link="https://example.org"))], ColorSystem.TRUECOLOR)
    text = Painter().paint([(0, 0, [*line, ("b", PLAIN)])], (2, 1))
    assert "https://example.org\x1b\\a\x1b]8;;\x1b\\b" in text


def test_characters_of_doubtful_width_are_known() -> None:
    assert all(sure(c) for c in "a│中文。é한✓")
    assert not any(sure(c) for c in ("…", "“", "😀", "e\u0301", "👨\u200d👩", "①", "א"))


def test_a_control_code_is_not_taken_apart() -> None:
    for bad in (Segment("\x1b[2J"), Segment("a\nb"), Segment("\x9b2J"), Segment("", None, [(1,)])):
        with pytest.raises(Unexpected):
            cells([bad], ColorSystem.TRUECOLOR)


def test_a_part_outside_of_the_screen_is_not_taken() -> None:
    for y, x in ((0, 3), (2, 0), (-1, 0), (0, -1)):
        with pytest.raises(Unexpected):
            Painter().paint([(y, x, [("a", PLAIN)] * 2)], (4, 2))


def test_one_changed_cell_costs_a_move_and_a_character() -> None:
    painter = Painter()
    painter.paint([(y, 0, [("a", PLAIN)] * 40) for y in range(20)], (40, 20))
    assert painter.paint([(9, 19, [("b", PLAIN)])], (40, 20)) == "\x1b[10;20Hb"
    assert painter.paint([(9, 21, [("b", PLAIN)])], (40, 20)) == "ab"  # shorter than a move
    assert painter.paint([(9, 20, [("文", PLAIN), ("", PLAIN)])], (40, 20)) == "\x1b[10;21H文"
    assert painter.paint([(9, 0, [(" ", PLAIN)] * 40)], (40, 20)) == "\x1b[10H\x1b[K"


def test_what_is_forgotten_is_written_again() -> None:
    painter = Painter()
    row = [("a", PLAIN)] * 5
    assert painter.paint([(0, 0, row)], (5, 1)) == "\x1b[1Haaaaa"
    assert painter.paint([(0, 0, row)], (5, 1)) == ""
    painter.forget()
    assert painter.paint([(0, 0, row)], (5, 1)) == "\x1b[1Haaaaa"
    assert painter.paint([(0, 0, row)], (5, 2)) == "\x1b[1Haaaaa"  # another size
