"""Finding things by typing: the search over symptoms, the palette of commands, recent cases, the tour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pilot import KB, Machine, app_on, case_app, case_of, paste, press, shown, until, wait_for
from tests.tui.places import TYPING, WAYS, go, on_a_machine
from tftriage import cases, recent
from tftriage.facts import Facts
from tftriage.fixes.journal import Journal
from tftriage.requests import Target
from tftriage.tui.base import TriageScreen
from tftriage.tui.commands import CHANGING, PALETTE
from tftriage.tui.screens.diagnosis import DiagnosisScreen
from tftriage.tui.screens.doctor import DoctorScreen
from tftriage.tui.screens.fix import FixScreen
from tftriage.tui.screens.help import HelpScreen
from tftriage.tui.screens.monitor import MonitorScreen
from tftriage.tui.screens.palette import PaletteScreen
from tftriage.tui.screens.picker import SearchScreen
from tftriage.tui.screens.start import StartScreen
from tftriage.tui.screens.walk import WalkScreen


@pytest.mark.parametrize(
    ("lang", "query", "symptom"),
    [
        ("en", "gpu idle", "gpu-util-low"),
        ("zh", "显卡不动", "gpu-not-listed"),
        ("en", "显卡不动", "gpu-not-listed"),
        ("zh", "descriptors cannot", "protobuf-descriptors"),
        ("en", "protobuf-desc", "protobuf-descriptors"),
    ],
)
async def test_a_symptom_is_found_in_own_words_in_either_language(lang: str, query: str, symptom: str) -> None:
    triage = case_app("protobuf", lang)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, KB.say("start.looks-like", lang))
        await press(pilot, "slash")
        await wait_for(pilot, KB.say("search.heading", lang), KB.say("search.hint", lang)[:10])
        for character in query:
            await pilot.press(character)
        await wait_for(pilot, KB.symptom(symptom).title[lang][:24])
        await press(pilot, "enter")
        await until(pilot, lambda: triage.session.walk is not None and triage.session.walk.symptom == symptom)


async def test_a_search_that_finds_nothing_says_so_and_esc_leaves() -> None:
    triage = case_app("protobuf")
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Looks like")
        await press(pilot, "w")
        await wait_for(pilot, f"{len(KB.symptoms)} symptoms")
        await paste(pilot, "zzqq xxyy")
        await wait_for(pilot, "Nothing is near that")
        await press(pilot, "enter", "down", "tab")
        assert isinstance(triage.screen, SearchScreen)
        await press(pilot, "escape")
        assert isinstance(triage.screen, StartScreen)


async def test_the_arrows_choose_among_what_was_found() -> None:
    triage = case_app("protobuf")
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Looks like")
        await press(pilot, "slash")
        await wait_for(pilot, KB.say("search.heading", "en"))
        await press(pilot, "down", "down", "enter")
        await until(pilot, lambda: isinstance(triage.screen, WalkScreen) and triage.session.walk is not None)
        complaints = sorted(KB.symptoms, key=lambda s: (not s.complaint, s.order))
        assert triage.session.walk is not None and triage.session.walk.symptom == complaints[2].id


# --- the palette -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("screen", [name for name in WAYS if name not in TYPING])
async def test_the_palette_lists_every_command_of_every_screen(screen: str, tmp_path: Path) -> None:
    with on_a_machine(tmp_path / "written.py") as triage:
        async with triage.run_test(size=(100, 50)) as pilot:
            await go(pilot, screen)
            below = triage.screen
            assert isinstance(below, TriageScreen)
            await press(pilot, "colon")
            await wait_for(pilot, KB.say("palette.hint", "en")[:30])
            text = shown(triage)
            for command in below.commands():
                if command != PALETTE:
                    assert KB.say(f"{command.message}.help", "en")[:30] in text, command
            await press(pilot, "escape")
            assert triage.screen is below


@pytest.mark.parametrize(
    ("lang", "query", "command", "expected"),
    [
        ("en", "monitor", "monitor", MonitorScreen),
        ("en", "监视", "monitor", MonitorScreen),
        ("zh", "check everything", "doctor", DoctorScreen),
        ("en", "keys of this", "help", HelpScreen),
        ("en", "own words", "search", SearchScreen),
        ("zh", "首屏", "start", StartScreen),
    ],
)
async def test_a_command_is_found_in_either_language_and_done(
    lang: str, query: str, command: str, expected: type[TriageScreen], tmp_path: Path
) -> None:
    with on_a_machine(tmp_path / "written.py") as triage:
        triage.lang = "en"
        async with triage.run_test(size=(80, 24)) as pilot:
            await go(pilot, "walk")
            if lang == "zh":
                await press(pilot, "l")
            await press(pilot, "p")
            await paste(pilot, query)
            others = KB.say("key.page_down.help", lang), KB.say("key.save.help", lang)[:12]
            await wait_for(pilot, KB.say(f"key.{command}.help", lang)[:20])
            await until(pilot, lambda: not any(other in shown(triage) for other in others))
            await press(pilot, "enter")
            await until(pilot, lambda: isinstance(triage.screen, expected))


async def test_commands_of_the_screen_below_work_from_the_palette(tmp_path: Path) -> None:
    with on_a_machine(tmp_path / "written.py") as triage:
        async with triage.run_test(size=(80, 24)) as pilot:
            await go(pilot, "walk")
            await press(pilot, "p")
            await paste(pilot, "what to do")
            await until(pilot, lambda: KB.say("key.save.help", "en")[:12] not in shown(triage))
            await press(pilot, "enter")
            await wait_for(pilot, "By hand", "Fixes")
            assert isinstance(triage.screen, DiagnosisScreen)
            await press(pilot, "p")
            await paste(pilot, "switch to Chinese")
            await until(pilot, lambda: KB.say("key.save.help", "en")[:12] not in shown(triage))
            await press(pilot, "enter")
            await wait_for(pilot, KB.say("diagnosis.fixes", "zh"))
            await press(pilot, "p")
            await paste(pilot, "立即退出")
            await until(pilot, lambda: KB.say("key.save.help", "zh")[:8] not in shown(triage))
            await press(pilot, "enter")
            await until(pilot, triage.leaving.is_set)
        assert triage.return_code == 0


async def test_what_changes_the_machine_is_never_done_from_the_palette(tmp_path: Path) -> None:
    written = tmp_path / "written.py"
    with on_a_machine(written) as triage:
        async with triage.run_test(size=(80, 24)) as pilot:
            await go(pilot, "fix")
            await pilot.pause(0.5)
            await press(pilot, "p", quiet=0.6)
            await paste(pilot, "then verify")
            await until(pilot, lambda: KB.say("key.copy.help", "en") not in shown(triage))
            await press(pilot, "enter", quiet=0.6)
            await wait_for(pilot, KB.say("palette.press", "en", keys="Y"))
            await pilot.pause(0.8)
            assert isinstance(triage.screen, FixScreen) and triage.screen.phase == "preview"
    assert not written.exists() and not Journal().entries()
    assert {command.action for command in CHANGING} == {"apply", "undo", "take_back", "finish"}


async def test_nothing_is_called_that() -> None:
    triage = case_app("protobuf")
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Looks like")
        await press(pilot, "colon")
        await paste(pilot, "zzzzz")
        await wait_for(pilot, "No command is called that")
        await press(pilot, "enter", "escape")
        assert isinstance(triage.screen, StartScreen)


async def test_it_opens_once(tmp_path: Path) -> None:
    triage = case_app("protobuf")
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Looks like")
        await press(pilot, "colon", "colon", "p")
        assert isinstance(triage.screen, PaletteScreen)
        await press(pilot, "escape")
        assert isinstance(triage.screen, StartScreen)


# --- recent cases ------------------------------------------------------------------------------------------


async def test_a_recent_case_is_opened_and_this_machine_comes_back() -> None:
    path = Path("seen.json")
    cases.write(case_of("notebook"), path)
    recent.remember(path)
    triage = app_on(Machine(Facts(case_of("protobuf").facts)), Target(python="/p"), "some text of mine")
    mine = triage.session
    async with triage.run_test(size=(80, 40)) as pilot:
        await wait_for(pilot, "Recent cases", "seen.json")
        await press(pilot, "end", "enter")
        await wait_for(pilot, "Enter shows what to do")
        assert isinstance(triage.screen, WalkScreen) and not triage.session.source.live
        await press(pilot, "b")
        await wait_for(pilot, "recorded case", "Back to this machine")
        line = KB.say("recent.this-machine", "en")
        await press(pilot, "end", "up")
        assert line in shown(triage)
        await press(pilot, "enter")
        await wait_for(pilot, "this machine", "some text of mine")
        assert triage.session is mine and "Back to this machine" not in shown(triage)


async def test_a_case_that_broke_meanwhile_is_said() -> None:
    path = Path("broken.json")
    path.write_text("{}garbage", encoding="utf-8")
    recent.remember(path)
    triage = case_app("protobuf")
    async with triage.run_test(size=(80, 40)) as pilot:
        await wait_for(pilot, "broken.json")
        await press(pilot, "end", "enter")
        await wait_for(pilot, "That case cannot be opened")


async def test_saving_remembers() -> None:
    triage = case_app("protobuf", walked=True)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        await press(pilot, "s")
        await wait_for(pilot, "Saved")
    assert [path.suffix for path in recent.cases()] == [".json"]


def test_the_list_is_short_without_doubles_and_survives_rubbish(own_state: Path) -> None:
    assert recent.cases() == []
    for number in range(8):
        Path(f"{number}.json").write_text("{}", encoding="utf-8")
        recent.remember(Path(f"{number}.json"))
    recent.remember(Path("5.json"))
    assert [path.stem for path in recent.cases()] == ["5", "7", "6", "4", "3"]
    Path("7.json").unlink()
    assert [path.stem for path in recent.cases()] == ["5", "6", "4", "3"]
    for rubbish in ('{"a": 1}', "[1, null]", "no json"):
        (own_state / "recent.json").write_text(rubbish, encoding="utf-8")
        assert recent.cases() == []


# --- the tour ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_the_tour_is_offered_once_and_leads_back(lang: str) -> None:
    triage = app_on(Machine(Facts()), Target(python="/p"), lang=lang)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, KB.say("start.first-run", lang))
        await press(pilot, "v")
        for number in range(1, 7):
            text = await wait_for(
                pilot, KB.say(f"tour.{number}.title", lang), KB.say("tour.page", lang, n=number, of=6)
            )
            assert KB.say("key.next_page", lang) in text.split("\n")[-1]
            await press(pilot, "enter")
        text = await wait_for(pilot, KB.say("start.choose", lang))
        assert KB.say("start.first-run", lang) not in text
        await press(pilot, "h", "v", "enter", "b", "b")
        assert isinstance(triage.screen, HelpScreen)
