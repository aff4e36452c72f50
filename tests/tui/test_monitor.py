"""The monitor on the screen: live in rounds, paused, a recorded sample, and nothing to sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.core.test_monitor import DEVICES, facts, sample
from tests.pilot import KB, Machine, app_on, press, shown, wait_for
from tftriage import cases
from tftriage.facts import Fact, Facts
from tftriage.requests import Target
from tftriage.session import Session
from tftriage.sources import CaseSource, Request
from tftriage.tui.app import TriageApp
from tftriage.tui.screens import monitor
from tftriage.tui.screens.help import HelpScreen
from tftriage.tui.screens.monitor import MonitorScreen


@pytest.fixture(autouse=True)
def quick_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "ROUND", 0.2)


class Busy(Machine):
    """A machine under load; every round takes a moment and is counted."""

    def __init__(self, known: Facts) -> None:
        super().__init__(known)
        self.rounds = 0

    def collect(self, requests: Sequence[Request]) -> Iterator[Fact]:
        if "usage.sample" in dict(requests):
            import time

            time.sleep(0.15)
            self.rounds += 1
        yield from super().collect(requests)


def live(known: Facts, lang: str = "en", ascii_only: bool = False) -> tuple[TriageApp, Busy]:
    machine = Busy(known)
    return app_on(machine, Target(python="/p"), lang=lang, ascii_only=ascii_only), machine


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_live_rows_verdict_and_processes(lang: str) -> None:
    triage, machine = live(facts(sample([12.0] * 4, core=99.0, seconds=2.0)), lang)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, KB.say("start.choose", lang))
        await press(pilot, "m")
        text = await wait_for(pilot, "GeForce RTX 2060", KB.say("monitor.core", lang), "▁", "12 %")
        assert KB.say("monitor.verdict", lang) in text
        seen = machine.rounds
        await pilot.pause(0.8)
        assert machine.rounds > seen
        readings = len(triage.session.facts.value("usage.sample")["gpu"])
        assert readings >= 8, "the rounds are joined"
        await press(pilot, "end")
        await wait_for(pilot, "python.exe", KB.say("monitor.on-gpu", lang))


async def test_pause_and_what_is_on_top_stops_the_sampling() -> None:
    triage, machine = live(facts(sample([90.0] * 4, seconds=2.0)))
    async with triage.run_test(size=(100, 30)) as pilot:
        await wait_for(pilot, "Choose what you see")
        await press(pilot, "f7")
        await wait_for(pilot, "90 %")
        await press(pilot, "enter")
        await wait_for(pilot, "paused", "Enter go on")
        await pilot.pause(0.4)
        rounds = machine.rounds
        await pilot.pause(0.6)
        assert machine.rounds == rounds
        await press(pilot, "enter")
        await pilot.pause(0.5)
        assert machine.rounds > rounds
        await press(pilot, "h")
        assert isinstance(triage.screen, HelpScreen)
        await pilot.pause(0.4)
        rounds = machine.rounds
        await pilot.pause(0.6)
        assert machine.rounds == rounds, "nobody looks"
        await press(pilot, "b")
        await pilot.pause(0.6)
        assert machine.rounds > rounds
        await press(pilot, "s")
        await wait_for(pilot, "Saved")
        saved = cases.read(next(Path().glob("tftriage-*.json")))
        assert Facts(saved.facts).ok("usage.sample")
        await press(pilot, "b")
        await wait_for(pilot, "Choose what you see")
        await pilot.pause(0.4)
        rounds = machine.rounds
        await pilot.pause(0.5)
        assert machine.rounds == rounds


async def test_a_recorded_sample_is_shown_as_it_was() -> None:
    known = facts(sample([12.0] * 10, core=99.0))
    triage = TriageApp(KB, Session(KB, CaseSource(known), Target(), "", known), "en")
    triage.first = MonitorScreen
    async with triage.run_test(size=(80, 24)) as pilot:
        text = await wait_for(pilot, "as recorded, 5 s", "GeForce RTX 2060")
        assert "pause" not in text.split("\n")[-1]
        await press(pilot, "enter", "s")
        assert not list(Path().glob("*.json"))
        await press(pilot, "b")
        await wait_for(pilot, "Choose what you see")


async def test_without_a_sample_or_a_card_it_says_why() -> None:
    nothing = Facts([Fact("usage.sample", "absent", note="no-library")])
    triage, _ = live(nothing)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Choose what you see")
        await press(pilot, "m")
        await wait_for(pilot, "Nothing could be sampled: no-library")
    no_card = {**sample([]), "cpu": [{"t": 0.5, "total": 20.0, "max_core": 80.0}]}
    known = Facts([Fact("usage.sample", "ok", no_card), Fact("gpu.devices", "absent", note="no-library")])
    triage, _ = live(known, ascii_only=True)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Choose what you see")
        await press(pilot, "m")
        await wait_for(pilot, "No GPU can be read: absent: no-library", "80 %")
        assert shown(triage).isascii()
    assert DEVICES["driver"]
