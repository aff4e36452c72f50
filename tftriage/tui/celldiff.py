"""Send a terminal only the cells that changed: a cell-level diff below Textual's compositor.

Textual (8.2.8) repaints whole widgets: one step of a bar in a list sends 8 kB for 137 cells that changed.
``CellDiffApp`` is an ``App`` that remembers what the terminal shows and writes the difference: a tenth to a thirtieth
of the bytes, for the same picture. It knows nothing of what is painted::

    class MyApp(CellDiffApp[None]):
        ...

How it works. The compositor hands ``App._display`` either a whole screen (``LayoutUpdate``) or parts of lines
(``ChopsUpdate``), made of Rich segments. ``Painter`` takes them apart into cells, compares them with a grid, and writes
what differs with the shortest moves and the shortest change of style it knows of.

- A cell is a character with what belongs to it, and a ``Pen``; the right half of a wide character is the empty string,
  and both halves are always written together. A space has no foreground: its pen is what can be seen of it.
- Characters whose width terminals disagree on (emoji, joined or combining ones, ambiguous signs) are followed by an
  absolute move, and the cell behind them is written again: whatever width they were drawn with, nothing else shifts.
- Between two updates the pen is always the default one, so that whoever else writes finds the terminal as usual.
- What the terminal shows is forgotten when it is resized, suspended or written to by somebody else (``HARMLESS`` lists
  what may pass). Forgotten cells are written again as soon as they are painted.
- Whatever was not expected (control segments, other renderables, inline mode, any exception) is written as Textual
  would have written it, and everything is forgotten.
- With another release of Textual, or other internals than those used here, it is plain Textual (``fits``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Generic

import textual
from rich.color import ColorSystem
from rich.console import Console, RenderableType
from textual import events
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App, ReturnType
from textual.driver import Driver
from textual.screen import Screen
from textual.strip import Strip

from tftriage.tui.cells import BLANK, PLAIN, Cell, Pen, Unexpected, cells, change, seen, sure, whole

KNOWN = ("8.2.8",)  # the releases of Textual whose internals this was written and tested for
ATOMIC = 1024  # an update of fewer characters reaches the terminal in one piece: no need to ask it to wait

# --- the painter: what the terminal shows, and how it gets there ----------------------------------------------------


class Painter:
    """The grid of what the terminal shows (``None``: not known), and the diff. It writes nothing itself."""

    def __init__(self) -> None:
        self.size = (0, 0)
        self.rows: list[list[Cell | None]] = []
        self.cursor: tuple[int, int] | None = None
        self._stale = True
        self._ink = PLAIN
        self._out: list[str] = []

    def forget(self) -> None:
        """Nothing is known of the terminal any more. May be called from any thread, also during ``paint``."""
        self._stale = True

    def paint(self, parts: Iterable[tuple[int, int, list[Cell]]], size: tuple[int, int]) -> str:
        """What has to be written so that ``parts`` (row, column, cells) are shown. The pen ends as the default one."""
        if self._stale or size != self.size:
            self._stale = False
            self.size, self.cursor = size, None
            self.rows = [[None] * size[0] for _ in range(size[1])]
        wanted: dict[int, list[Cell | None]] = {}
        for y, x, line in parts:
            if y not in range(size[1]) or x < 0 or x + len(line) > size[0]:
                raise Unexpected(f"cells outside of the screen at {x}, {y}")
            row = wanted.get(y)
            if row is None:
                row = wanted[y] = list(self.rows[y])
            row[x : x + len(line)] = line
        self._out, self._ink = [], PLAIN
        for y in sorted(wanted):
            if wanted[y] != self.rows[y]:
                self._row(y, wanted[y])
        self._pen(PLAIN)
        return "".join(self._out)

    def _row(self, y: int, wanted: list[Cell | None]) -> None:
        old, width = self.rows[y], len(wanted)
        new = [cell or BLANK for cell in wanted]
        whole(new)
        shown: list[Cell | None] = [None if was is None else cell for was, cell in zip(wanted, new, strict=True)]
        self.rows[y] = shown
        tail = width  # from here on there are only spaces
        while tail and shown[tail - 1] == BLANK:
            tail -= 1
        for x, step in _changed(old, shown):
            if x >= tail and self._dear(x, shown, old):
                self._to(x, y, shown)
                self._pen(PLAIN)
                self._out.append("\x1b[K")
                return
            self._to(x, y, shown)
            self._cell(x, y, new[x], step, width)

    def _dear(self, x: int, new: list[Cell | None], old: list[Cell | None]) -> bool:
        """Whether erasing to the end of the line is shorter than writing the spaces."""
        last = max((at for at in range(x, len(new)) if new[at] != old[at]), default=x)
        erase = 3 if seen(self._ink) == PLAIN else 3 + len(change(self._ink, PLAIN))
        return last + 1 - x > erase

    def _cell(self, x: int, y: int, cell: Cell, step: int, width: int) -> None:
        """Write one character where the cursor is."""
        text, ink = cell
        if text != " " or seen(self._ink) != ink:
            self._pen(ink)
        if sure(text):
            self._out.append(text)
            self.cursor = (x + step, y) if x + step < width else None
            return
        if step > 1:  # a terminal that takes it for narrow would leave what stood behind it
            self._out.append(" " * step)
            self._out.append(f"\x1b[{y + 1};{x + 1}H")
        self._out.append(text)
        self.cursor = None

    def _pen(self, ink: Pen) -> None:
        if ink != self._ink:
            self._out.append(change(self._ink, ink))
            self._ink = ink

    def _to(self, x: int, y: int, row: list[Cell | None]) -> None:
        """Bring the cursor there in the shortest way."""
        if self.cursor == (x, y):
            return
        move = f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H"
        if self.cursor is not None:
            at, line = self.cursor
            if line == y and at < x:
                skip = f"\x1b[{x - at}C" if x - at > 1 else "\x1b[C"
                move = self._over(row[at:x], len(skip)) or skip
            elif line + 1 == y and x == 0:
                move = "\r\n"
        self._out.append(move)
        self.cursor = (x, y)

    def _over(self, between: list[Cell | None], room: int) -> str:
        """The unchanged cells between, to be written again, if that is as short as a move."""
        texts = []
        for text, ink in (cell or ("", PLAIN) for cell in between):
            if not text or not text.isascii() or (seen(self._ink) if text == " " else self._ink) != ink:
                return ""
            texts.append(text)
        return "".join(texts) if len(texts) <= room else ""


def _changed(old: list[Cell | None], new: list[Cell | None]) -> Iterator[tuple[int, int]]:
    """Where a character has to be written, and its width.

    A character that may be drawn wider or narrower than it should be is written with its right neighbour or not at all.
    """
    places = [x for x, cell in enumerate(new) if cell is None or cell[0]]
    steps = [after - x for x, after in zip(places, [*places[1:], len(new)], strict=True)]
    differs = [new[x : x + step] != old[x : x + step] for x, step in zip(places, steps, strict=True)]
    doubtful = [n for n, x in enumerate(places[:-1]) if (cell := new[x]) is not None and not sure(cell[0])]
    for n in [*reversed(doubtful), *doubtful]:
        differs[n] = differs[n + 1] = differs[n] or differs[n + 1]
    for x, step, written in zip(places, steps, differs, strict=True):
        if written and new[x] is not None:
            yield x, step


# --- Textual --------------------------------------------------------------------------------------------------------


def _of_layout(update: LayoutUpdate, colours: ColorSystem) -> Iterator[tuple[int, int, list[Cell]]]:
    """As ``LayoutUpdate.render_segments``."""
    left, top = update.region.offset
    for y, line in enumerate(update.strips, top):
        x = left
        for strip in line:
            part = cells(strip, colours)
            yield y, x, part
            x += len(part)


def _of_chops(update: ChopsUpdate, colours: ColorSystem) -> Iterator[tuple[int, int, list[Cell]]]:
    """As ``ChopsUpdate.render_segments``."""
    for y, left, right in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is None or x > right or end <= left:
                continue
            if not (right > x >= left and end <= right):
                strip = strip.crop(0, min(end, right) - x)
            yield y, x, cells(strip, colours)


class _Ready(CompositorUpdate):
    """An update that is text already."""

    def __init__(self, text: str) -> None:
        self.text = text

    def render_segments(self, console: Console) -> str:
        return self.text


# Sequences that neither write a cell nor move the cursor: the bell, OSC (title, clipboard), modes (the alternate screen
# and those that clear are not among them), queries, the Kitty keyboard.
HARMLESS = re.compile(
    r"(?:\x07|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[\?(?:7|25|10\d\d|2004|2026|2048)(?<!1047)(?<!1048)(?<!1049)"
    r"(?:[hl]|\$p)|\x1b\[[<>=?]\d*u|\x1b\[\d*[cn])*"
)
_INTERNALS = (
    (App, ("_display", "_begin_update", "_end_update", "post_display_hook")),
    (LayoutUpdate, ("render_segments",)),
    (ChopsUpdate, ("render_segments",)),
    (Strip, ("render_ansi", "crop")),
    (Driver, ("write",)),
)


def fits() -> bool:
    """Whether this is a Textual whose internals are known."""
    return textual.__version__ in KNOWN and all(hasattr(part, name) for part, names in _INTERNALS for name in names)


class CellDiffApp(App[ReturnType], Generic[ReturnType]):
    """An app that sends the cells that changed. ``full_redraw = True`` (before it runs) makes it plain Textual.

    ``fallbacks`` counts the updates that were written as Textual writes them, because something was not expected.
    """

    full_redraw = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fallbacks = 0
        self._fits = fits()
        self._painter = Painter()
        self._watched: Driver | None = None
        self._painting = False
        self._short = False

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        driver = self._driver
        if (
            self.full_redraw or renderable is None or self._batch_count or self._closed or not self._running
            or driver is None or driver.is_headless or not self._fits
        ):  # fmt: skip
            super()._display(screen, renderable)
            return
        if driver is not self._watched:
            self._watch(driver)
        update: RenderableType | _Ready = renderable
        cursor: tuple[int, int] | None = None
        try:
            text = self._diff(renderable)
            cursor = self.screen.outer_size.clamp_offset(self.cursor_position)
        except Exception:  # whatever it is: plain Textual can do it
            self.fallbacks += 1
            self._painter.forget()
        else:
            if not text and cursor == self._painter.cursor:
                self.post_display_hook()
                return
            update, self._short = _Ready(text), len(text) < ATOMIC
        self._painting = True
        try:
            super()._display(screen, update)  # type: ignore[arg-type]  # Textual's own updates are no renderables either
        finally:
            self._painting = self._short = False
            self._painter.cursor = cursor  # Textual moves it there at the end

    def _diff(self, renderable: RenderableType) -> str:
        colours = self.console._color_system or ColorSystem.TRUECOLOR
        if type(renderable) is LayoutUpdate and renderable.region.offset == (0, 0):
            return self._painter.paint(_of_layout(renderable, colours), renderable.region.size)
        if type(renderable) is ChopsUpdate:
            size = (renderable.chop_ends[0][-1], len(renderable.chops))
            return self._painter.paint(_of_chops(renderable, colours), size)
        raise Unexpected(type(renderable).__name__)

    def _watch(self, driver: Driver) -> None:
        """Notice what anybody else writes to the terminal."""
        self._watched = driver
        self._painter.forget()
        setattr(driver, "write", partial(self._written, driver.write))  # noqa: B010

    def _written(self, write: Any, data: str) -> None:
        if not self._painting and not HARMLESS.fullmatch(data):
            self._painter.forget()
            if "\x1b[?1049h" in data:  # back from being suspended, from a signal handler: Textual does not repaint
                self.call_later(self.refresh, layout=True)
        write(data)

    def _begin_update(self) -> None:
        if not self._short:
            super()._begin_update()

    def _end_update(self) -> None:
        if not self._short:
            super()._end_update()

    async def _on_resize(self, event: events.Resize) -> None:
        """Terminals cut, move or clear what they show, also on the way back to the same size."""
        self._painter.forget()
