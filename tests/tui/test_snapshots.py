"""Pictures of the main screens in both languages at 80x24. After a wanted change: --snapshot-update, and look."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.core.test_monitor import facts, sample
from tests.pilot import KB, case_app, press, wait_for
from tftriage.requests import Target
from tftriage.session import Session
from tftriage.sources import CaseSource
from tftriage.tui.app import TriageApp
from tftriage.tui.screens.monitor import MonitorScreen

# screen: (case, as it was walked, keys, the message that is then shown)
SCREENS: dict[str, tuple[str, bool, tuple[str, ...], str]] = {
    "start": ("found-not-added", False, (), "start.looks-like"),
    "walk": ("found-not-added", True, (), "walk.enter-diagnosis"),
    "answer": ("protobuf", True, ("a",), "key.give"),
    "diagnosis": ("protobuf", True, ("enter",), "diagnosis.fixes"),
    "fix": ("protobuf", True, ("enter", "enter"), "fix.recorded"),
    "doctor": ("protobuf", False, ("d",), "doctor.heading"),
    "help": ("protobuf", True, ("h",), "help.heading"),
    "report": ("protobuf", True, ("x",), "key.copy_report"),
    "dlls": ("cudnn-renamed-utf-8", True, ("d", "down"), "dlls.failure.absent"),
    "what-if": ("cuda-not-on-path", True, ("d", "w", "1"), "dlls.complete"),
    "search": ("protobuf", False, ("slash",), "search.heading"),
    "palette": ("protobuf", True, ("enter", "colon"), "palette.here"),
    "tour": ("protobuf", False, ("v",), "tour.1.title"),
}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_picture_of_the_monitor(lang: str, snap_compare: Callable[..., bool]) -> None:
    load = [8.0, 60.0, 92.0, 85.0, 12.0, 4.0, 9.0, 77.0, 95.0, 30.0] * 4
    known = facts(sample(load, core=99.0, seconds=20.0))
    triage = TriageApp(KB, Session(KB, CaseSource(known), Target(), "", known), lang)
    triage.first = MonitorScreen

    async def there(pilot: Pilot[Any]) -> None:
        await wait_for(pilot, KB.say("monitor.verdict", lang), "python.exe")

    assert snap_compare(triage, run_before=there, terminal_size=(80, 24))


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
