"""The cell diff in an app: random sessions, resizing, screens, suspending, foreign writes, the way back to plain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pyte
import pytest
import textual
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.segment import Segment
from rich.text import Text
from textual import events
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.drivers.headless_driver import HeadlessDriver
from textual.geometry import Size
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static

from tests.tui.test_celldiff import looks
from tftriage.tui.celldiff import HARMLESS, CellDiffApp, fits

LINES = [
    "DLL load failed: 找不到指定的模块。", "plain words", "│ framed ─ │", "emoji 😀 and e\u0301", "“quoted” … ①", "",
    "国" * 60, "한국어 ☃ tail",
]  # fmt: skip


class Recorder(HeadlessDriver):
    """A driver whose terminal is a list of what was written."""

    instances: ClassVar[list[Recorder]] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.written: list[str] = []
        self.instances.append(self)

    is_headless = False
    can_suspend = True

    def write(self, data: str) -> None:
        self.written.append(data)

    def start_application_mode(self) -> None:
        self.write("\x1b[?1049h\x1b[?25l")
        super().start_application_mode()

    def stop_application_mode(self) -> None:
        self.write("\x1b[?1049l\x1b[?25h")


class Box(ModalScreen[None]):
    """A window over the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [("x", "dismiss", "")]
    CSS = "Box { align: center middle; } Box Static { width: 31; height: 5; border: solid red; }"

    def compose(self) -> ComposeResult:
        yield Static("窗口 window " * 6)


class Sample(CellDiffApp[None]):
    """A list, a text that follows, a line to type in."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("m", "box", ""), ("n", "next", ""), ("t", "tone", ""), ("s", "scroll", ""), ("w", "wide", ""),
    ]  # fmt: skip
    CSS = """
    #left { width: 40%; } #right { width: 1fr; border: round green; } Input { dock: bottom; }
    .loud { background: red; text-style: bold underline; }
    """

    def __init__(self, full_redraw: bool = False) -> None:
        super().__init__(driver_class=Recorder)
        self.full_redraw = full_redraw
        self.number = 0

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield OptionList(*(f"{n} {LINES[n % len(LINES)]}"[:50] for n in range(40)), id="left")
            with VerticalScroll(id="right"):
                yield Static(id="text")
        yield Input(placeholder="输入 here")

    def on_mount(self) -> None:
        self.query_one(Input).cursor_blink = False
        self.query_one(OptionList).focus()
        self.show()

    def show(self) -> None:
        lines = [LINES[(self.number + n) % len(LINES)] for n in range(30)]
        text = Text("\n").join(Text(line, ("", "bold", "red on blue", "dim")[n % 4]) for n, line in enumerate(lines))
        self.query_one("#text", Static).update(text)

    def action_next(self) -> None:
        self.number += 1
        self.show()

    def action_box(self) -> None:
        self.push_screen(Box())

    def action_tone(self) -> None:
        self.query_one("#text").toggle_class("loud")

    def action_scroll(self) -> None:
        self.query_one("#right").scroll_relative(y=3, animate=False)

    def action_wide(self) -> None:
        self.query_one("#left").styles.width = 21 + self.number % 5

    @property
    def recorder(self) -> Recorder:
        assert isinstance(self._driver, Recorder)
        return self._driver


class Shown:
    """The terminal of a recorder: what was written so far, as a picture."""

    def __init__(self, app: Sample) -> None:
        self.app = app
        self.read = 0
        self.screen = pyte.Screen(80, 24)
        self.screen.reset_mode(pyte.modes.DECAWM)
        self.stream = pyte.Stream(self.screen)

    def take(self) -> str:
        """What is new, shown now too."""
        size = self.app.size
        if (self.screen.columns, self.screen.lines) != tuple(size):
            self.screen.resize(size.height, size.width)
        new = "".join(self.app.recorder.written[self.read :])
        self.read = len(self.app.recorder.written)
        self.stream.feed(new.replace("\x1b[?2026$p", ""))
        return new

    def wanted(self) -> pyte.Screen:
        """The picture that Textual would paint on an empty terminal now."""
        app = self.app
        screen = pyte.Screen(*app.size)
        screen.reset_mode(pyte.modes.DECAWM)
        update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
        pyte.Stream(screen).feed(update.render_segments(app.console))
        return screen


@asynccontextmanager
async def running(app: Sample, size: tuple[int, int] = (80, 24)) -> AsyncIterator[tuple[Pilot[None], Shown]]:
    """The app on its recorder."""
    async with app.run_test(headless=False, size=size) as pilot:
        await settle(pilot)
        shown = Shown(app)
        shown.take()
        yield pilot, shown


async def settle(pilot: Pilot[None]) -> None:
    """Until everything is painted."""
    for _ in range(3):
        await pilot.pause()
    await asyncio.sleep(0.05)
    await pilot.pause()


async def resize(pilot: Pilot[None], width: int, height: int) -> None:
    """As a driver says it."""
    size = Size(width, height)
    pilot.app.post_message(events.Resize(size, size))


STEPS = ("down", "up", "pagedown", "end", "home", "m", "x", "n", "t", "s", "w", "tab", "a", "文", "backspace")
sessions = st.lists(st.one_of(st.sampled_from(STEPS), st.tuples(st.integers(20, 100), st.integers(6, 30))), max_size=8)


async def play(app: Sample, steps: list[str | tuple[int, int]]) -> list[list[tuple[object, ...]]]:
    """Play a session; after each step the terminal shows what it should. What it shows in the end."""
    async with running(app) as (pilot, shown):
        assert looks(shown.screen) == looks(shown.wanted())
        for step in steps:
            if isinstance(step, tuple):
                await resize(pilot, *step)
            else:
                await pilot.press(step)
            await settle(pilot)
            shown.take()
            assert looks(shown.screen) == looks(shown.wanted()), step
        assert app.fallbacks == 0
        return looks(shown.screen)


@settings(max_examples=6, deadline=None)
@given(sessions)
def test_random_sessions_end_in_the_same_picture_in_both_modes(steps: list[str | tuple[int, int]]) -> None:
    diff, full = asyncio.run(play(Sample(), steps)), asyncio.run(play(Sample(full_redraw=True), steps))
    assert diff == full


async def test_a_step_of_the_bar_sends_little() -> None:
    costs = {}
    for full in (False, True):
        async with running(Sample(full)) as (pilot, shown):
            await pilot.press("down")
            await settle(pilot)
            shown.take()
            await pilot.press("down")
            await settle(pilot)
            costs[full] = len(shown.take())
    assert costs[False] * 5 < costs[True], costs


async def test_nothing_is_sent_when_nothing_changes() -> None:
    async with running(Sample()) as (pilot, shown):
        pilot.app.screen.refresh(layout=True)
        await settle(pilot)
        assert shown.take() == ""


async def test_switching_screens_and_back_restores_every_cell() -> None:
    async with running(Sample()) as (pilot, shown):
        before = looks(shown.screen)
        await pilot.press("m")
        await settle(pilot)
        shown.take()
        assert "窗" in "".join(shown.screen.display) and looks(shown.screen) != before
        await pilot.press("x")
        await settle(pilot)
        shown.take()
        assert looks(shown.screen) == before


async def test_suspending_paints_everything_again() -> None:
    app = Sample()
    async with running(app) as (pilot, shown):
        with app.suspend():
            shown.take()
            shown.screen.reset()
        await settle(pilot)
        assert "plain words" in shown.take()
        assert looks(shown.screen) == looks(shown.wanted())


async def test_a_driver_that_starts_again_by_itself_is_painted_again() -> None:
    app = Sample()  # as after SIGTSTP and SIGCONT
    async with running(app) as (pilot, shown):
        app.recorder.suspend_application_mode()
        shown.take()
        shown.screen.reset()
        app.recorder.resume_application_mode()
        await settle(pilot)
        shown.take()
        assert looks(shown.screen) == looks(shown.wanted())


async def test_what_others_write_makes_it_forget_unless_it_is_harmless() -> None:
    app = Sample()
    async with running(app) as (pilot, shown):
        app.bell()
        app.copy_to_clipboard("找不到")
        app.recorder.write("\x1b[?2026$p\x1b[?2004h")
        app.screen.refresh(layout=True)
        await settle(pilot)
        assert "plain words" not in shown.take()
        app.recorder.write("\x1b[2J")
        app.screen.refresh(layout=True)
        await settle(pilot)
        assert "plain words" in shown.take()
        assert looks(shown.screen) == looks(shown.wanted())


@pytest.mark.parametrize(
    "data", ["\x1b[?1049h", "\x1b[?1047l", "\x1b[?1048h", "x", "\x1b[H", "\x1bc", "\x1b[?25", "\n"]
)
def test_what_moves_the_cursor_or_clears_is_not_harmless(data: str) -> None:
    assert not HARMLESS.fullmatch(data)


class Odd(Widget):
    """A widget that sends a control code of its own."""

    def render_line(self, y: int) -> Strip:
        return Strip([Segment("\x1b[31modd\x1b[m" if y == 0 else " ")], 3)


async def test_a_control_code_in_a_widget_is_written_as_it_is() -> None:
    app = Sample()
    async with running(app) as (pilot, shown):
        await app.mount(Odd(), before=0)
        await settle(pilot)
        assert app.fallbacks > 0 and "\x1b[31modd" in shown.take()
        before = app.fallbacks
        await app.query_one(Odd).remove()
        await settle(pilot)
        assert app.fallbacks == before and "plain words" in shown.take()  # everything was forgotten
        assert looks(shown.screen) == looks(shown.wanted())


async def plainly(app: Sample) -> str:
    """All that is written of one short session."""
    async with running(app) as (pilot, _):
        await pilot.press("down")
        await settle(pilot)
        return "".join(app.recorder.written)


async def test_another_textual_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fits(), "this Textual is one that the cell diff was written for"
    full = await plainly(Sample(full_redraw=True))
    monkeypatch.setattr(textual, "__version__", "99.0")
    assert not fits()
    assert await plainly(Sample()) == full


async def test_other_internals_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    full = await plainly(Sample(full_redraw=True))
    for owner, name in ((LayoutUpdate, "__init__"), (ChopsUpdate, "__init__")):
        real = getattr(owner, name)

        def renamed(self: Any, *args: Any, real: Any = real) -> None:
            real(self, *args)
            self.__class__ = type("Renamed", (type(self),), {})  # an update that is not known

        monkeypatch.setattr(owner, name, renamed)
    app = Sample()
    assert await plainly(app) == full
    assert app.fallbacks > 0
