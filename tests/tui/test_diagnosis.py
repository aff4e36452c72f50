"""The diagnosis: the cause, what to do by hand, myths, sources, and fixes that apply or say why not."""

from __future__ import annotations

import pytest

from tests.pilot import KB, case_app, press, shown, wait_for
from tftriage.tui.screens.fix import FixScreen
from tftriage.tui.screens.start import StartScreen


async def test_everything_a_person_needs_is_on_it() -> None:
    diagnosis = KB.diagnoses["protobuf-too-new"]
    async with case_app("protobuf", walked=True).run_test(size=(80, 60)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        await press(pilot, "enter")
        text = await wait_for(pilot, "By hand", "Why we think so", "Fixes", "You may have read")
        assert "protobuf 4.24.4 (needs <3.21)" in text
        assert KB.fixes[diagnosis.fixes[0]].title["en"][:30] in text
        assert text.index("By hand") < text.index("You may have read")


async def test_myths_unfold_and_fold() -> None:
    truth = KB.myths[KB.diagnoses["protobuf-too-new"].myths[0]].truth["en"].split()[:5]
    triage = case_app("protobuf", walked=True)
    async with triage.run_test(size=(80, 60)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        await press(pilot, "enter", "m")
        await wait_for(pilot, " ".join(truth))
        await press(pilot, "f3")
        await wait_for(pilot, "M: why")


@pytest.mark.parametrize("keys", [["enter"], ["1"], ["right"]])
async def test_a_fix_is_previewed(keys: list[str]) -> None:
    triage = case_app("protobuf", walked=True)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        await press(pilot, "enter")
        await wait_for(pilot, "Fixes")
        await press(pilot, *keys)
        await wait_for(pilot, "nothing done yet")
        assert isinstance(triage.screen, FixScreen)


async def test_a_long_text_says_that_there_is_more_and_scrolls() -> None:
    triage = case_app("protobuf", walked=True)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        await press(pilot, "enter", "m")
        await wait_for(pilot, "Space more")
        top = shown(triage)
        await press(pilot, "space")
        assert shown(triage) != top
        await press(pilot, "end")
        await wait_for(pilot, "Why we think so")
        assert "Space" not in shown(triage).split("\n")[-1]
        await press(pilot, "home")
        await pilot.pause(0.1)
        assert shown(triage) == top


async def test_without_a_fix_enter_leads_to_the_start() -> None:
    triage = case_app("found-not-added", walked=True)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        await press(pilot, "enter")
        await wait_for(pilot, "No automatic fix", "Enter done")
        await press(pilot, "enter")
        await wait_for(pilot, "Looks like")
        assert isinstance(triage.screen, StartScreen)


async def test_saving_writes_a_case_that_opens_again() -> None:
    from pathlib import Path

    from tftriage import cases

    async with case_app("protobuf", walked=True).run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        await press(pilot, "enter", "s")
        await wait_for(pilot, "Saved:")
    (saved,) = Path().glob("tftriage-*.json")
    assert cases.read(saved).symptom == "protobuf-descriptors"
