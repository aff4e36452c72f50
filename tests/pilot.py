"""The screen without a terminal (Textual's Pilot): press keys, wait for words, read what is shown.

Run as a script it plays one whole triage and prints what it saw, one JSON object: the lab starts it so on
Windows Python under Wine.  python -m tests.pilot JOB.json
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from textual import events
from textual.pilot import Pilot

from tftriage import cases
from tftriage.facts import Fact, Facts
from tftriage.knowledge import load
from tftriage.requests import Target
from tftriage.session import Session
from tftriage.sources import CaseSource, FactSource, LiveSource, Request
from tftriage.tui.app import TriageApp
from tftriage.tui.demos import DEMOS

KB = load()


class Machine(CaseSource):
    """A machine that answers from a case, live for everything above it. ``after`` replaces facts once ``done``."""

    live = True

    def __init__(self, facts: Facts, after: Facts | None = None, done: Callable[[], bool] = lambda: True) -> None:
        super().__init__(facts)
        self.after = after or Facts()
        self.done = done

    def collect(self, requests: Sequence[Request]) -> Iterator[Fact]:
        """What the machine says now."""
        for fact in super().collect(requests):
            yield self.after.get(fact.name, fact) if self.done() else fact


def case_of(name: str) -> cases.Case:
    """A recorded case, one of those that are shipped."""
    return cases.read(DEMOS / f"{name}.json")


def case_app(
    name: str, lang: str = "en", live: bool = False, walked: bool = False, ascii_only: bool = False
) -> TriageApp:
    """The app on a recorded case; ``live`` on a machine that answers as recorded; ``walked`` as it ended there."""
    case = case_of(name)
    facts = Facts(case.facts)
    if walked:
        session = cases.replay(case, KB)
    elif live:
        session = Session(KB, Machine(facts), case.target, case.text)
    else:
        session = Session(KB, CaseSource(facts), case.target, case.text, facts)
    return TriageApp(KB, session, lang, ascii_only)


def app_on(source: FactSource, target: Target, text: str = "", lang: str = "en", ascii_only: bool = False) -> TriageApp:
    """The app with a session on a source."""
    return TriageApp(KB, Session(KB, source, target, text), lang, ascii_only)


def shown(app: TriageApp) -> str:
    """What is on the screen, one line a row, wide characters once."""
    lines = ("".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips())
    return "\n".join(line.rstrip() for line in lines)


async def wait_for(pilot: Pilot[Any], *texts: str, seconds: float = 10.0) -> str:
    """Wait until all ``texts`` are shown; ``AssertionError`` with the screen when they do not come."""
    end = time.monotonic() + seconds
    app = pilot.app
    assert isinstance(app, TriageApp)
    while True:
        await pilot.pause(0.05)
        text = shown(app)
        if all(part in text for part in texts):
            return text
        if time.monotonic() > end:
            raise AssertionError(f"{texts} did not come within {seconds} s; the screen is:\n{text}")


async def press(pilot: Pilot[Any], *keys: str, quiet: float = 0.05) -> None:
    """Keys one by one, as fingers do."""
    for key in keys:
        await pilot.pause(quiet)
        await pilot.press(key)
        await pilot.pause(0.05)


async def paste(pilot: Pilot[Any], text: str) -> None:
    """A paste, as the terminal reports it."""
    pilot.app.post_message(events.Paste(text))
    await pilot.pause(0.05)


async def play(job: dict[str, Any]) -> dict[str, Any]:
    """One triage on this machine: paste, follow, diagnosis, preview, apply, verify, undo; every screen is returned."""
    seen: dict[str, Any] = {}
    target = Target(python=job["python"], module=job.get("module", "tensorflow"), cwd=job.get("cwd"))
    app = app_on(LiveSource(), target, lang=job.get("lang", "en"))
    async with app.run_test(size=(80, 24)) as pilot:
        if job.get("text"):
            await paste(pilot, job["text"])
        else:
            await press(pilot, "r")
        seen["start"] = await wait_for(pilot, app.kb.say("start.looks-like", app.lang), seconds=180)
        await press(pilot, "enter")
        seen["walk"] = await wait_for(pilot, app.kb.say("walk.enter-diagnosis", app.lang), seconds=240)
        seen["diagnosis"] = app.session.diagnosis.id if app.session.diagnosis else None
        seen["path"] = [(step.node, step.answer) for step in app.session.walk.steps] if app.session.walk else []
        seen["values"] = app.session.values
        await press(pilot, "enter")
        seen["cause"] = await wait_for(pilot, app.kb.say("diagnosis.fixes", app.lang))
        await press(pilot, "enter")
        seen["preview"] = await wait_for(pilot, app.kb.say("fix.phase-preview", app.lang))
        await press(pilot, "y", quiet=0.6)
        seen["verified"] = await wait_for(pilot, app.kb.say("fix.phase-verified", app.lang), seconds=600)
        if job.get("undo", True):
            await press(pilot, "u", quiet=0.6)
            seen["undone"] = await wait_for(pilot, app.kb.say("fix.phase-undone", app.lang), seconds=300)
        await press(pilot, "q")
    seen["exit"] = app.return_code
    return seen


if __name__ == "__main__":
    job_file = Path(sys.argv[1])
    result = asyncio.run(play(json.loads(job_file.read_text(encoding="utf-8"))))
    print("\nPILOT " + json.dumps(result))
