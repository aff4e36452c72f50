"""The report on the screen: what leaves is seen first, and every format reaches a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pilot import KB, Machine, app_on, case_app, case_of, press, shown, wait_for
from tests.tui.places import go, on_a_machine
from tftriage.facts import Facts
from tftriage.tui import saving
from tftriage.tui.screens.report import ReportScreen


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_what_is_shown_is_what_is_written(lang: str) -> None:
    triage = case_app("protobuf", lang, walked=True)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, KB.say("walk.enter-diagnosis", lang))
        await press(pilot, "enter", "x")
        await wait_for(pilot, KB.say("report.heading", lang), KB.say("report.symptom", lang), "C ")
        await press(pilot, "c")
        await wait_for(pilot, KB.say("save.copied", lang, path="")[:4])
        await press(pilot, "w", "v")
        await pilot.pause(0.2)
        written = {path.suffix: path.read_text(encoding="utf-8") for path in Path().glob("tftriage-report-*")}
        assert set(written) == {".md", ".html", ".svg"}
        assert triage.clipboard == written[".md"]
        for text in written.values():
            assert KB.diagnoses["protobuf-too-new"].title[lang] in text
        await press(pilot, "b")
        await wait_for(pilot, KB.say("diagnosis.fixes", lang))


async def test_another_language_makes_another_report() -> None:
    triage = case_app("protobuf", walked=True)
    async with triage.run_test(size=(100, 30)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        await press(pilot, "x")
        await wait_for(pilot, KB.say("report.text", "en"))
        await press(pilot, "l")
        await wait_for(pilot, KB.say("report.text", "zh"), KB.say("report.heading", "zh"))
        assert isinstance(triage.screen, ReportScreen)
        assert triage.screen.report is not None and triage.screen.report.lang == "zh"


async def test_a_live_machine_is_asked_for_the_name_to_leave_out(tmp_path: Path) -> None:
    with on_a_machine(tmp_path / "written.py") as triage:
        async with triage.run_test(size=(80, 24)) as pilot:
            await go(pilot, "walk")
            triage.session.facts = triage.session.facts.without(["system.user"])
            await press(pilot, "x")
            await wait_for(pilot, KB.say("report.heading", "en"), KB.say("report.symptom", "en"))
            assert "system.user" in triage.session.facts


async def test_before_it_is_made_nothing_can_be_written() -> None:
    case = case_of("protobuf")
    triage = app_on(Machine(Facts(case.facts)), case.target, case.text)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Looks like")
        triage.push_screen(ReportScreen())
        screen = ReportScreen()
        triage.busy.acquire()
        triage.push_screen(screen)
        await wait_for(pilot, KB.say("report.writing", "en"))
        await press(pilot, "c", "w")
        assert not list(Path().glob("tftriage-report-*")) and "copy" not in shown(triage).split("\n")[-1]
        triage.busy.release()
        await wait_for(pilot, KB.say("key.copy_report", "en"))


async def test_a_folder_that_cannot_be_written_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    triage = case_app("protobuf", walked=True)
    monkeypatch.setattr(saving, "new_file", lambda what, ending: Path("nowhere") / f"{what}.{ending}")
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        await press(pilot, "x")
        await wait_for(pilot, KB.say("key.copy_report", "en"))
        await press(pilot, "c")
        await wait_for(pilot, "No such file")
        assert KB.messages["report.symptom"]["en"] in shown(triage)
