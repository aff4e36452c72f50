"""The DLLs screen: the tree of a recorded case and of a live machine, one library in detail, and what-if."""

from __future__ import annotations

import pytest

from tests.pilot import KB, Machine, app_on, case_app, case_of, press, shown, wait_for
from tftriage.facts import Fact, Facts
from tftriage.requests import Target
from tftriage.tui.app import TriageApp
from tftriage.tui.screens.diagnosis import DiagnosisScreen
from tftriage.tui.screens.dlls import DllsScreen


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_the_missing_library_its_importer_and_the_renamed_file(lang: str) -> None:
    async with case_app("cudnn-renamed-utf-8", lang, walked=True).run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, KB.say("walk.enter-diagnosis", lang))
        await press(pilot, "d", "down")
        text = await wait_for(pilot, "cudnn64_7_v741.dll", KB.say("dlls.failure.absent", lang))
        assert KB.say("dlls.needed-by", lang, chain="_pywrap_tensorflow_internal.pyd") in text
        assert KB.say("dlls.missing", lang, n=1) in text.split("\n")[0]
        assert "└" in text and KB.say("key.what_if", lang) in text.split("\n")[-1]


async def test_it_opens_from_the_diagnosis_and_leads_back_there() -> None:
    triage = case_app("cuda-not-on-path", walked=True)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        await press(pilot, "enter", "f5")
        await wait_for(pilot, "Who needs whom", "7 not found")
        await press(pilot, "b")
        assert isinstance(triage.screen, DiagnosisScreen)


async def test_what_if_the_toolkit_were_on_path() -> None:
    triage = case_app("cuda-not-on-path", walked=True)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        before = triage.session.facts.value("dlls.tree")
        await press(pilot, "d", "w")
        await wait_for(pilot, "[ ]", KB.say("dlls.try", "en"))
        await press(pilot, "1")
        text = await wait_for(pilot, "[x]", "everything is found", "What if PATH began")
        assert "→" in text and "NOT FOUND" not in text
        assert triage.session.facts.value("dlls.tree") is before, "only in thought"
        await press(pilot, "enter")
        await wait_for(pilot, "[ ]", "7 not found")
        await press(pilot, "1", "w", "home")
        await wait_for(pilot, "everything is found", KB.say("key.what_if", "en"))


async def test_all_and_fewer() -> None:
    triage = case_app("cudnn-renamed-utf-8", walked=True)
    async with triage.run_test(size=(80, 60)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        await press(pilot, "d")
        await wait_for(pilot, "more, all found")
        await press(pilot, "e")
        text = await wait_for(pilot, KB.say("key.fewer", "en"))
        assert "more, all found" not in text
        await press(pilot, "end")
        await wait_for(pilot, "Needed by: ")
        await press(pilot, "e")
        await wait_for(pilot, "more, all found")


async def test_a_live_machine_is_asked() -> None:
    case = case_of("cuda-not-on-path")
    triage = app_on(Machine(Facts(case.facts)), case.target, case.text)
    async with triage.run_test(size=(100, 30)) as pilot:
        await wait_for(pilot, "Looks like")
        await press(pilot, "d")
        await wait_for(pilot, "Everything checked")
        await press(pilot, "d")
        await wait_for(pilot, "Who needs whom", "7 not found")
        assert triage.session.facts.ok("dlls.tree")


async def nothing(triage: TriageApp) -> str:
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Choose what you see")
        triage.push_screen(DllsScreen())
        text = await wait_for(pilot, "There is no import chain to show")
        await press(pilot, "w", "enter", "1", "down", "e", "space")
        assert "no import chain" in shown(triage)
        await press(pilot, "b")
        await wait_for(pilot, "Choose what you see")
    return text


async def test_without_a_tree_it_says_why_and_the_way_out() -> None:
    failed = Fact("dlls.tree", "timeout", note="30 s")
    assert "timeout: 30 s" in await nothing(app_on(Machine(Facts([failed])), Target(python="/p")))
    assert "not-recorded" in await nothing(app_on(Machine(Facts()), Target(python="/p")))
