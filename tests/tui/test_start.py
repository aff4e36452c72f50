"""The start screen: paste, recognise, choose, type, switch the language. Real keys through the pilot."""

from __future__ import annotations

import pytest
from textual import events
from textual._xterm_parser import XTermParser

from tests.pilot import KB, app_on, paste, press, shown, wait_for
from tftriage.facts import Fact, Facts
from tftriage.requests import Target
from tftriage.sources import CaseSource
from tftriage.tui.app import TriageApp
from tftriage.tui.screens.start import StartScreen
from tftriage.tui.screens.walk import WalkScreen

ERROR = """Traceback (most recent call last):
  File "C:\\tf\\lib\\site-packages\\tensorflow\\python\\pywrap_tensorflow.py", line 58, in <module>
    from tensorflow.python.pywrap_tensorflow_internal import *
ImportError: DLL load failed: 找不到指定的模块。

Failed to load the native TensorFlow runtime.
"""


def app(text: str = "", lang: str = "en") -> TriageApp:
    return app_on(CaseSource(Facts([Fact("system.os", "ok", {"system": "Windows"})])), Target(python="x"), text, lang)


async def test_a_paste_is_recognised_wherever_the_focus_is() -> None:
    async with app().run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "nothing pasted yet")
        await paste(pilot, ERROR)
        text = await wait_for(pilot, "Looks like", "(126)", "line 4")
        assert "DLL load failed: 找不到指定的模块。" in text
        assert text.index("(126)") < text.index("Or choose what you see")


async def test_the_language_switches_on_the_first_screen_and_back() -> None:
    async with app().run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Or choose what you see")
        await press(pilot, "l")
        text = await wait_for(pilot, "或者直接选择你遇到的现象")
        assert "English L" in text
        await press(pilot, "L")
        await wait_for(pilot, "Or choose what you see")


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_everything_fits_80_by_24(lang: str) -> None:
    from rich.cells import cell_len

    async with app(ERROR, lang).run_test(size=(80, 24)) as pilot:
        text = await wait_for(pilot, "(126)" if lang == "en" else "（126）")
        lines = text.split("\n")
        assert len(lines) <= 24
        assert all(cell_len(line) <= 80 for line in lines)
        assert "Enter" in lines[-1]


async def test_digits_choose_and_the_walk_begins() -> None:
    async with app(ERROR).run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Looks like")
        await press(pilot, "1")
        await wait_for(pilot, KB.nodes[KB.symptom("dll-load-failed-126").start].ask["en"][:20])
        assert isinstance(pilot.app.screen, WalkScreen)


async def test_an_empty_paste_says_so() -> None:
    async with app().run_test(size=(80, 24)) as pilot:
        await paste(pilot, " \n\x00\n")
        await wait_for(pilot, "There is no text in it")


async def test_hostile_text_is_shown_as_text() -> None:
    async with app().run_test(size=(80, 24)) as pilot:
        await paste(pilot, "\x1b[2J[bold red]x[/]\x07\x9b5n\x00 DLL load failed: \x1b]0;t\x07done\n")
        text = await wait_for(pilot, "[bold red]x[/]")
        assert "\x1b" not in text


async def test_ten_megabytes_of_binary_leave_the_screen_alive() -> None:
    async with app().run_test(size=(80, 24)) as pilot:
        await paste(pilot, bytes(range(1, 256)).decode("latin-1") * 40_000)
        await wait_for(pilot, "Not recognised", seconds=30)
        await press(pilot, "l")
        await wait_for(pilot, "English L")


async def test_text_can_be_typed_and_corrected() -> None:
    async with app().run_test(size=(80, 24)) as pilot:
        await press(pilot, "i")
        await press(pilot, *"DLL load failed", quiet=0.03)
        await press(pilot, "escape")
        await wait_for(pilot, "DLL load failed")
        assert pilot.app.session.text == "DLL load failed"  # type: ignore[attr-defined]


async def test_an_unbracketed_paste_presses_no_key() -> None:
    """Windows 10's console delivers a paste as key presses: they arrive in one read."""
    async with app().run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "nothing pasted yet")
        for event in XTermParser().feed(ERROR.replace("\n", "\r")):
            assert isinstance(event, events.Key)
            pilot.app.post_message(event)
        await wait_for(pilot, "Looks like", "(126)")
        assert isinstance(pilot.app.screen, StartScreen)
        assert pilot.app.lang == "en"  # type: ignore[attr-defined]


async def test_help_shows_the_keys_and_leads_back() -> None:
    async with app().run_test(size=(80, 24)) as pilot:
        await press(pilot, "question_mark")
        text = await wait_for(pilot, "Everything works with the keyboard")
        assert "follow the tree" in text
        await press(pilot, "escape")
        await wait_for(pilot, "nothing pasted yet")


async def test_quit_leaves_at_once() -> None:
    triage = app()
    async with triage.run_test(size=(80, 24)) as pilot:
        await press(pilot, "q")
    assert triage.return_code == 0
    assert shown is not None
