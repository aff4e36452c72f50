"""Whatever is pasted or typed, wherever: no fix is applied, and the screen still answers."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.pilot import press, shown
from tests.tui.places import WAYS, go, on_a_machine
from tftriage.fixes.journal import Journal
from tftriage.tui.base import TriageScreen
from tftriage.tui.pasting import END, START, PasteParser
from tftriage.tui.screens.start import StartScreen

ANYTHING = st.text(
    st.one_of(st.sampled_from("yYuUtTfFlLrRaAmMeE1\r\n\t\x1b\x03\x7f"), st.characters(codec="utf-8")),
    min_size=2,
    max_size=60,
)
LETTERS = st.text(st.sampled_from("yYuUtTfFlLrRaAmMeEcnbx19 "), min_size=2, max_size=12)  # no q: that one leaves


async def survive(screen: str, way: str, text: str, written: Path) -> None:
    """Bring ``text`` to a screen in one way, then see that nothing was changed and that keys still work."""
    with on_a_machine(written) as triage:
        async with triage.run_test(size=(80, 24)) as pilot:
            await go(pilot, screen)
            await pilot.pause(0.45)  # so that the first character comes after a quiet moment
            parser = PasteParser()
            reads = {"bracketed": [START + text.replace(END, "") + END], "unbracketed": [text], "typed": list(text)}[
                way
            ]
            for read in reads:
                for event in parser.feed(read):
                    triage.post_message(event)
                if way == "typed":
                    await asyncio.sleep(0.04)
            await pilot.pause(0.9)
            assert not written.exists() and not Journal().entries(), "a fix was applied"
            assert triage.is_running and isinstance(triage.screen, TriageScreen)
            for _ in range(8):
                if isinstance(triage.screen, StartScreen) and not triage.screen.typing:
                    break
                await press(pilot, "escape", quiet=0.02)
            assert isinstance(triage.screen, StartScreen)
            before = triage.lang
            await press(pilot, "l", quiet=0.05)
            await pilot.pause(0.1)
            assert triage.lang != before and shown(triage).strip()


def run(screen: str, way: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("TFTRIAGE_STATE")
        os.environ["TFTRIAGE_STATE"] = str(Path(folder) / "state")
        try:
            asyncio.run(survive(screen, way, text, Path(folder) / "written.py"))
        finally:
            os.environ["TFTRIAGE_STATE"] = before or ""


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(WAYS)), ANYTHING)
@example("fix", "y\x1b[200~y")
@example("fix", "y\r")
@example("walk", "\r\r\ry")
def test_a_paste_applies_nothing(screen: str, text: str) -> None:
    run(screen, "bracketed", text)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(WAYS)), LETTERS)
@example("fix", "yes please")
@example("fix", "yy")
@example("fix", "ny")
def test_typing_applies_nothing(screen: str, text: str) -> None:
    run(screen, "typed", text)


@pytest.mark.parametrize("screen", ["fix", "start", "walk"])
def test_a_paste_without_brackets_applies_nothing(screen: str) -> None:
    run(screen, "unbracketed", "yes, I tried that\ry\rimport tensorflow\rDLL load failed\ry")
