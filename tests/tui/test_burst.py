"""Keys that come faster than fingers: text, wherever they land; real keys stay keys."""

from __future__ import annotations

import asyncio

from textual import events

from tests.pilot import Machine, app_on, press, wait_for
from tests.tui.test_start import ERROR
from tftriage.facts import Facts
from tftriage.requests import Target
from tftriage.tui.app import TriageApp
from tftriage.tui.pasting import PasteParser
from tftriage.tui.screens.start import StartScreen


def app() -> TriageApp:
    return app_on(Machine(Facts()), Target(python="/p"))


async def test_an_unbracketed_paste_presses_no_key() -> None:
    """One key event a character, all at once: what Textual's own parser makes of it."""
    async with app().run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "nothing pasted yet")
        for character in ERROR.replace("\n", "\r"):
            for event in PasteParser().feed(character):
                assert isinstance(event, events.Key)
                pilot.app.post_message(event)
        await wait_for(pilot, "Looks like", "(126)")
        assert isinstance(pilot.app.screen, StartScreen)
        assert pilot.app.lang == "en"  # type: ignore[attr-defined]


async def test_the_last_letters_of_a_long_one_belong_to_it() -> None:
    """The reads of a paste end anywhere: the last one may be a single q."""
    triage = app()
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "nothing pasted yet")
        parser = PasteParser()
        for read in ("DLL load failed: something is ", "q", "\r", "q"):
            for event in parser.feed(read):
                triage.post_message(event)
            await asyncio.sleep(0.03)
        await wait_for(pilot, "Looks like")
        assert triage.is_running and not triage.leaving.is_set()
        assert triage.session.text == "DLL load failed: something is q\nq"


async def test_a_held_down_arrow_key_is_no_paste() -> None:
    triage = app()
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "nothing pasted yet")
        for event in PasteParser().feed("jjjjjjjj"):
            triage.post_message(event)
        await pilot.pause(0.2)
        assert triage.session.text == ""
        await press(pilot, "enter")
        await wait_for(pilot, "question")


async def test_fast_fingers_are_keys() -> None:
    triage = app()
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Choose what you see")
        await press(pilot, "l", "l", "l", quiet=0.0)
        await wait_for(pilot, "选择你遇到的现象")
