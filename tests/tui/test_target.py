"""Choosing the Python: the list, digits, arrows, a path typed or pasted, and nothing found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.pilot import Machine, app_on, paste, press, wait_for
from tests.tui.test_start import LINUX, PYTHONS
from tftriage.facts import Fact
from tftriage.requests import Target
from tftriage.tui.app import TriageApp
from tftriage.tui.screens.start import StartScreen
from tftriage.tui.screens.target import TargetScreen, interpreter


def app(found: list[dict[str, object]], lang: str = "en") -> TriageApp:
    return app_on(Machine(LINUX.with_(Fact("pythons.list", "ok", found))), Target(), lang=lang)


@pytest.mark.parametrize(
    ("keys", "name"), [(["enter"], "tf21"), (["j", "enter"], "tf23"), (["3"], "plain"), (["end", "right"], "plain")]
)
async def test_the_list_is_a_list(keys: list[str], name: str) -> None:
    triage = app(PYTHONS)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "no environment chosen")
        await press(pilot, "e")
        await wait_for(pilot, "Which Python is it about?", "tf23", "venv")
        await press(pilot, *keys)
        await wait_for(pilot, f"/opt/{name}/bin/python", "Choose what you see")
        assert triage.session.target.python == f"/opt/{name}/bin/python"


async def test_nothing_found_is_no_dead_end(tmp_path: Path) -> None:
    triage = app([])
    async with triage.run_test(size=(80, 24)) as pilot:
        await press(pilot, "f3")
        await wait_for(pilot, "No Python was found", "I type a path")
        await press(pilot, "i", *"/nope", "enter")
        await wait_for(pilot, "There is no Python at /nope")
        await press(pilot, "escape")
        await wait_for(pilot, "No Python was found")
        assert isinstance(triage.screen, TargetScreen)
        await paste(pilot, f"  {sys.executable}\n")
        await press(pilot, "enter")
        await wait_for(pilot, "Choose what you see")
        assert triage.session.target.python == str(Path(sys.executable).absolute())


async def test_a_long_path_is_cut_in_the_middle() -> None:
    path = "/home/student/" + "很长的目录/" * 12 + "envs/tf21/bin/python"
    found = [{**PYTHONS[1], "path": path}, PYTHONS[2]]
    async with app(found).run_test(size=(80, 24)) as pilot:
        await press(pilot, "e")
        text = await wait_for(pilot, "tensorflow-gpu 2.1.0")
        row = next(line for line in text.split("\n") if "2.1.0" in line)
        assert "/home/stud" in row and row.rstrip().endswith("tf21/bin/python") and "…" in row


async def test_b_leads_back_and_keeps_what_was() -> None:
    triage = app(PYTHONS)
    async with triage.run_test(size=(80, 24)) as pilot:
        await press(pilot, "e")
        await wait_for(pilot, "tf23")
        await press(pilot, "b")
        await wait_for(pilot, "Choose what you see")
        assert isinstance(triage.screen, StartScreen) and triage.session.target.python is None


def test_a_folder_of_an_environment_is_meant_as_its_python(tmp_path: Path) -> None:
    made = tmp_path / "Scripts" / "python.exe"
    made.parent.mkdir()
    made.touch()
    assert interpreter(f' "{tmp_path}" \n') == made
    assert interpreter(str(made)) == made
    assert interpreter("") is None
    assert interpreter("\x00") is None
    assert interpreter("x" * 5000) is None
