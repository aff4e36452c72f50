"""What all screens share: words in two languages, the line on top, the footer, and facts arriving from a thread."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.style import Style
from textual.timer import Timer
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tftriage import show
from tftriage.plain import one_line
from tftriage.probes.base import Evidence
from tftriage.session import NoTarget
from tftriage.tui import glyphs
from tftriage.tui.commands import BACK, EVERYWHERE, HELP, MORE, PALETTE, Command, bindings, moves
from tftriage.tui.ways import Ways
from tftriage.tui.wrapping import Page, middle

if TYPE_CHECKING:
    from tftriage.tui.app import TriageApp

COLUMNS, ROWS = 80, 24  # what everything fits
QUIET = 0.4  # seconds without another key, before and after, for a key that changes the machine


class Left(Exception):
    """The screen that wanted to know is gone: stop looking."""


class Scroll(VerticalScroll, can_focus=False):
    """A column that scrolls; the keys are the screen's."""

    class Sized(Message):
        """It has more room, or less: whether there is more below is known only now."""

    def on_resize(self) -> None:
        """Tell the screen: a resize does not bubble, and the room is no reactive that could be watched."""
        self.post_message(self.Sized())


class Choices(OptionList, can_focus=False):
    """A list with a bar; the keys are the screen's. It never wraps around."""

    def get_visual_style(self, *component_classes: str, partial: bool = False) -> Style:
        """The bar in reverse video, so that it needs no colour (Textual 8.2.8 leaves ``reverse`` out here)."""
        style = super().get_visual_style(*component_classes, partial=partial)
        bar = "option-list--option-highlighted" in component_classes and self.has_class("chosen")
        return style + Style(reverse=True) if bar else style

    def add(self, line: Text, id: str | None = None, disabled: bool = False) -> None:
        """One more line."""
        self.add_option(Option(Content.from_rich_text(line), id=id, disabled=disabled))

    def choosable(self) -> list[int]:
        """The places of the options that can be chosen."""
        return [at for at in range(self.option_count) if not self.get_option_at_index(at).disabled]

    def move(self, by: int) -> bool:
        """Move the bar; ``False`` when it stood at the end already."""
        places = self.choosable()
        if not places:
            return False
        now = places.index(self.highlighted) if self.highlighted in places else -1 if by > 0 else len(places)
        to = min(max(now + by, 0), len(places) - 1)
        self.highlighted = places[to]
        if to == 0:
            self.scroll_home(animate=False)  # the heading above the first choice
        return to != now


class TriageScreen(Ways, Screen[None]):
    """A screen with a title line, a body and a footer; ``show`` paints the body in the present language."""

    AUTO_FOCUS = ""  # keys belong to the screen; only a box to type in takes the focus
    COMMANDS_HERE: ClassVar[tuple[Command, ...]] = ()
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(HELP, PALETTE), *moves()]

    def __init__(self) -> None:
        super().__init__()
        self._triage: TriageApp | None = None
        self.gone = threading.Event()
        self.notice = ""
        self._last_key = 0.0
        self._deliberate: Timer | None = None

    @property
    def triage(self) -> TriageApp:
        """The app, typed. Remembered, because a thread may ask when this screen is gone already."""
        if self._triage is None:
            self._triage = cast("TriageApp", self.app)
        return self._triage

    @property
    def columns(self) -> int:
        """The width of a text that fills the screen (a cell of margin on both sides)."""
        return max(20, self.app.size.width - 2)

    def compose(self) -> ComposeResult:
        """Title, body, footer."""
        yield Static(id="title", markup=False)
        yield Static(id="small", markup=False)
        yield from self.body()
        yield Static(id="footer", markup=False)

    def body(self) -> ComposeResult:
        """The widgets between title and footer."""
        yield from ()

    @property
    def standing(self) -> bool:
        """Whether there is something to paint on: not before it is composed, not while it is taken down."""
        return self.is_mounted and self.is_attached and bool(self.query("#footer"))

    def on_mount(self) -> None:
        """Paint once everything is there."""
        for scroll in self.query(Scroll):
            self.watch(scroll, "scroll_y", self.paint_footer, init=False)
            self.watch(scroll, "virtual_size", self.paint_footer, init=False)
        self.repaint()
        self.call_after_refresh(self.started)

    def on_scroll_sized(self) -> None:
        """The footer names the key for "more" only where there is more."""
        self.paint_footer()

    def started(self) -> None:
        """The screen is shown: what has to be looked at may begin (earlier, an answer could come too early)."""

    def on_screen_resume(self) -> None:
        """The language or the session may have changed while another screen was on top."""
        self.repaint()

    def on_resize(self) -> None:
        """Lines are wrapped by us."""
        self.repaint()

    def repaint(self) -> None:
        """Title, body and footer in the present language."""
        if not self.standing:
            return
        self.query_one("#title", Static).update(self.title_line())
        small = self.app.size.width < COLUMNS or self.app.size.height < ROWS
        note = self.query_one("#small", Static)
        note.display = small
        if small:
            width, height = self.app.size
            note.update(Text(" " + self.say("title.small", width=width, height=height), "dim", no_wrap=True))
        self.show()
        self.paint_footer()

    def show(self) -> None:
        """Paint the body."""

    def paint_footer(self) -> None:
        """The keys that count now."""
        if self.standing:
            self.query_one("#footer", Static).update(self.footer_line())

    def heading(self) -> str:
        """The left half of the title line."""
        return "tftriage"

    def progress(self) -> str:
        """What stands behind the heading and is not cut off with it."""
        return ""

    def title_line(self) -> Text:
        """The heading left, the other language right."""
        right = self.say("title.other-language-ascii" if self.triage.ascii else "title.other-language")
        room = max(0, self.app.size.width - cell_len(right) - 2)
        tail = self.progress()
        tail = f"  {tail}" if tail else ""
        left = Text(" " + self.heading(), style="bold", no_wrap=True)
        left.truncate(room - cell_len(tail), overflow="ellipsis")
        left.append(tail)
        left.truncate(room, overflow="ellipsis", pad=True)
        return left.append(f" {right} ", style="dim")

    def commands(self) -> tuple[Command, ...]:
        """The commands that make sense now."""
        return (*self.COMMANDS_HERE, *EVERYWHERE)

    def footer_line(self) -> Text:
        """The keys of this screen: the next one first. What does not fit is left to the help; ``?`` and Q stay."""
        listed = [command for command in self.commands() if command.footer]
        if self.more_below():
            listed.insert(1 if listed and listed[0].shown == "Enter" else 0, MORE)
        kept = {HELP, BACK, EVERYWHERE[-1], *listed[:1]}
        width = self.app.size.width

        def wide(command: Command) -> int:
            return cell_len(command.shown) + cell_len(self.say(command.message)) + 3

        for command in reversed(listed):
            if sum(map(wide, listed)) <= width:
                break
            if command not in kept:
                listed.remove(command)
        line = Text(no_wrap=True, overflow="ellipsis")
        for command in listed:
            line.append(f" {command.shown} ", style="bold reverse").append(f"{self.say(command.message)} ")
        return line

    def more_below(self) -> bool:
        """Whether a text on this screen goes on below."""
        return any(scroll.max_scroll_y > round(scroll.scroll_y) for scroll in self.query(Scroll) if scroll.display)

    # --- words -------------------------------------------------------------------------------------------------

    def say(self, key: str, **params: object) -> str:
        """One of the interface's sentences."""
        return self.ours(self.triage.kb.say(key, self.triage.lang, **params))

    def words(self, text: dict[str, str]) -> str:
        """A text of the knowledge base in the present language."""
        return self.ours(text[self.triage.lang])

    def sentence(self, evidence: Evidence) -> str:
        """A line of evidence in the present language."""
        return self.ours(show.sentence(self.triage.kb, evidence, self.triage.lang))

    def answer(self, probe: str, answer: str) -> str:
        """A probe's answer in words."""
        return self.ours(show.answer(self.triage.kb, probe, answer, self.triage.lang))

    def ours(self, text: str) -> str:
        """A sentence for this terminal."""
        return glyphs.sentence(text) if self.triage.ascii else text

    def mark(self, level: str) -> tuple[str, str]:
        """A glyph and its style."""
        return (glyphs.ASCII if self.triage.ascii else glyphs.GLYPHS)[level], glyphs.STYLES[level]

    def path(self, path: str, width: int) -> str:
        """A path on one line, cut in the middle."""
        return middle(one_line(path), width)

    def page(self, width: int = 0) -> Page:
        """An empty page as wide as the screen."""
        return Page(width or self.columns)

    # --- threads -----------------------------------------------------------------------------------------------

    def in_thread(self, work: Callable[[], Any], then: Callable[[Any], None], alone: bool = True) -> None:
        """Run blocking ``work`` in a thread, then ``then(result)`` on the screen, if it is still there.

        One works with the machine at a time; ``alone=False`` is for work that touches nothing but its argument.
        The threads are daemons: leaving never waits for them.
        """

        gone = self.gone

        def job() -> None:
            try:
                with self.triage.busy if alone else contextlib.nullcontext():
                    ending = self.triage.ending
                    if alone and ending is not None:
                        ending.join()  # or it would end the collector that this work starts
                    result = work()
            except Left:
                return
            except Exception as error:
                if not gone.is_set():
                    self._on_screen(self.went_wrong, error)
            else:
                if not gone.is_set():
                    self._on_screen(then, result)

        threading.Thread(target=job, name="tftriage-work", daemon=True).start()

    def _on_screen(self, call: Callable[..., None], *args: Any) -> None:
        if not self.triage.leaving.is_set():
            with contextlib.suppress(RuntimeError):  # the app ended meanwhile
                # In the screen's own queue: a fault in painting is then Textual's to show, not lost with the thread.
                self.triage.call_from_thread(self.call_later, call, *args)

    def from_thread(self, paint: Callable[..., None]) -> Callable[..., None]:
        """A callback that may be called from the thread of the work; raises ``Left`` when nobody looks any more."""

        gone = self.gone

        def call(*args: Any) -> None:
            if self.triage.leaving.is_set() or gone.is_set():
                raise Left
            self._on_screen(paint, *args)

        return call

    def went_wrong(self, error: Exception) -> None:
        """The interpreter is none: choose another. Else a fault of ours: say so, and stay usable."""
        if isinstance(error, NoTarget):
            said = self.say(f"target.{error.kind}", detail=one_line(str(error), 200))
            self.triage.to_start(f"{said} {self.say('target.another')}")
            return
        self.notice = self.say("error.internal", error=f"{type(error).__name__}: {one_line(str(error), 200)}")
        self.repaint()

    # --- keys --------------------------------------------------------------------------------------------------

    def on_key(self) -> None:
        """Remember when the last key was pressed (bindings run after this); another key takes a waiting yes back."""
        now = time.monotonic()
        self.quiet, self._last_key = now - self._last_key > QUIET, now
        self._take_back_yes()

    def on_paste(self, event: events.Paste) -> None:
        """A paste is never a command. Only the first screen has a use for it."""
        event.stop()
        self._last_key = time.monotonic()
        self._take_back_yes()
        self.pasted(event.text)

    def pasted(self, text: str) -> None:
        """Say where it belongs."""
        self.notice = self.say("error.paste-here-not")
        self.repaint()

    def _take_back_yes(self) -> None:
        if self._deliberate is not None:
            self._deliberate.stop()
            self._deliberate = None

    def deliberately(self, then: Callable[[], None]) -> None:
        """Do ``then``, if the key stands alone: a yes must not be a letter of something typed or pasted."""
        if not self.quiet:
            self.notice = self.say("fix.too-fast")
            self.repaint()
            return

        def alone() -> None:
            self._deliberate = None
            then()

        self._deliberate = self.set_timer(QUIET, alone)

    def action_move(self, lines: int) -> None:
        """Arrows: the text moves."""
        for scroll in self.query(Scroll):
            scroll.scroll_relative(y=lines, animate=False)

    def action_page(self, pages: int) -> None:
        """Space, PgUp, PgDn: a page less one line."""
        for scroll in self.query(Scroll):
            scroll.scroll_relative(y=pages * max(1, scroll.size.height - 1), animate=False)

    def action_end(self, end: int) -> None:
        """Home and End."""
        for scroll in self.query(Scroll):
            if end < 0:
                scroll.scroll_home(animate=False)
            else:
                scroll.scroll_end(animate=False)

    def action_back(self) -> None:
        """To the screen before; what still looks for this one stops."""
        self.leave()
        self.app.pop_screen()

    def leave(self) -> None:
        """Nobody waits for the work of this screen any more."""
        self.gone.set()
        self.gone = threading.Event()

    def hold(self) -> bool:
        """Whether leaving now would be a mistake (said on the screen); asked again, it is not."""
        return False
