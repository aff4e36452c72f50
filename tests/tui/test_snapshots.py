"""Pictures of the main screens in both languages at 80x24. After a wanted change: --snapshot-update, and look."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.pilot import KB, case_app, press, wait_for
from tftriage.tui.app import TriageApp

# screen: (case, as it was walked, keys, the message that is then shown)
SCREENS: dict[str, tuple[str, bool, tuple[str, ...], str]] = {
    "start": ("found-not-added", False, (), "start.looks-like"),
    "walk": ("found-not-added", True, (), "walk.enter-diagnosis"),
    "answer": ("protobuf", True, ("a",), "key.give"),
    "diagnosis": ("protobuf", True, ("enter",), "diagnosis.fixes"),
    "fix": ("protobuf", True, ("enter", "enter"), "fix.recorded"),
    "doctor": ("protobuf", False, ("d",), "doctor.heading"),
    "help": ("protobuf", True, ("h",), "help.heading"),
}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("screen", SCREENS)
def test_picture(screen: str, lang: str, snap_compare: Callable[..., bool]) -> None:
    case, walked, keys, words = SCREENS[screen]

    async def there(pilot: Pilot[Any]) -> None:
        assert isinstance(pilot.app, TriageApp)
        await wait_for(pilot, KB.say("walk.enter-diagnosis" if walked else "start.looks-like", lang))
        for key in keys:
            await press(pilot, key)
        await wait_for(pilot, KB.say(words, lang)[:20])
        await pilot.pause(0.5 if sys.platform != "win32" else 2.0)  # under Wine a repaint can come late

    run: Callable[[Pilot[Any]], Awaitable[None]] = there
    assert snap_compare(case_app(case, lang, walked=walked), run_before=run, terminal_size=(80, 24))
