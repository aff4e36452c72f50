"""A fix on the screen: preview, a deliberate yes, what was proved, what comes next, and undo."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from textual import events

from tests.pilot import KB, Machine, case_app, case_of, press, shown, wait_for
from tftriage.facts import Fact, Facts
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import Plan, Verify, WriteFile
from tftriage.session import Session
from tftriage.tui.app import TriageApp
from tftriage.tui.screens.diagnosis import DiagnosisScreen
from tftriage.tui.screens.fix import FixScreen
from tftriage.tui.screens.start import StartScreen
from tftriage.tui.screens.walk import WalkScreen

FACTS = Facts(case_of("protobuf").facts)


def with_value(name: str, **changes: object) -> Fact:
    """A recorded fact with some entries of its value replaced."""
    return msgspec.structs.replace(FACTS[name], value={**FACTS[name].value, **changes})


def good_packages() -> Fact:
    """The packages after the fix."""
    value = {name: dict(package) for name, package in FACTS["target.packages"].value.items()}
    for name, version in (("protobuf", "3.20.3"), ("h5py", "2.10.0"), ("numpy", "1.19.5")):
        value[name]["version"] = version
    return msgspec.structs.replace(FACTS["target.packages"], value=value)


CURED = Facts([good_packages(), with_value("tf.import", ok=True, error=None, error_type=None, traceback="", log="")])
BEHIND = Facts(
    [
        good_packages(),
        with_value("tf.record", missing=["tensorflow/__init__.py"], native_missing=[]),
    ]
)


def on_machine(folder: Path, after: Facts) -> tuple[TriageApp, Plan, Path]:
    """The app before a diagnosis on a machine whose facts change once the fix has written its file."""
    written = folder / "sitecustomize.py"
    case = case_of("protobuf")
    session = Session(KB, Machine(FACTS, after, written.exists), case.target, case.text)
    session.begin("import-fails")
    session.advance()
    assert session.diagnosis is not None and session.diagnosis.id == "protobuf-too-new"
    step = WriteFile(path=str(written), text="x = 1\n", expected="absent")
    verify = Verify(facts=("target.packages",), probe="dependencies_fit", good_answers=("fit",))
    plan = Plan(fix="path-environment", steps=(step,), verify=verify, needs=("new-console",))
    return TriageApp(KB, session, "en"), plan, written


async def to_preview(pilot, plan: Plan) -> None:  # type: ignore[no-untyped-def]
    await wait_for(pilot, "Enter shows what to do")
    await press(pilot, "enter")
    await wait_for(pilot, "Fixes")
    pilot.app.push_screen(FixScreen(plan))
    await wait_for(pilot, "nothing done yet", "Y apply", "sitecustomize.py")


async def test_cured_says_what_was_proved_what_is_left_to_do_and_leads_to_the_start(tmp_path: Path) -> None:
    triage, plan, written = on_machine(tmp_path, CURED)
    async with triage.run_test(size=(80, 40)) as pilot:
        await to_preview(pilot, plan)
        await press(pilot, "y", quiet=0.6)
        text = await wait_for(pilot, "Fix applied", "U undo", seconds=20)
        assert "Verified" in text or "This cause is gone" in text
        assert "Does the import fail here" in text  # the walk that was walked again
        assert "Still yours to do" in text and "U takes it back" in text
        assert written.exists()
        await press(pilot, "enter")
        await pilot.pause(0.3)
        assert not isinstance(triage.screen, (FixScreen, DiagnosisScreen))


async def test_the_next_cause_is_one_enter_away(tmp_path: Path) -> None:
    triage, plan, _ = on_machine(tmp_path, BEHIND)
    async with triage.run_test(size=(80, 40)) as pilot:
        await to_preview(pilot, plan)
        await press(pilot, "f9", quiet=0.6)
        await wait_for(pilot, "This cause is gone", "Enter next cause", seconds=20)
        behind = triage.session.diagnosis
        assert behind is not None and behind.id != "protobuf-too-new"
        await press(pilot, "enter")
        await wait_for(pilot, behind.title["en"][:30], "Enter shows what to do")
        assert isinstance(triage.screen, WalkScreen)
        await press(pilot, "enter")
        await wait_for(pilot, behind.title["en"][:30], "By hand")
        await press(pilot, "b", "b")
        await wait_for(pilot, "Looks like")


async def test_not_cured_is_not_called_cured_and_leads_back_to_the_fixes(tmp_path: Path) -> None:
    triage, plan, written = on_machine(tmp_path, Facts())
    async with triage.run_test(size=(80, 40)) as pilot:
        await to_preview(pilot, plan)
        await press(pilot, "y", quiet=0.6)
        text = await wait_for(pilot, "Not cured", "U undo", seconds=20)
        assert "not cured" in text.split("\n")[0] and "Verified" not in text
        await press(pilot, "u", quiet=0.6)
        await wait_for(pilot, "Taken back (entry 1)")
        assert not written.exists() and Journal().entry("1").status == "undone"
        await press(pilot, "enter")
        await wait_for(pilot, "Taken back (entry 1)", "Looks like")
        assert isinstance(triage.screen, StartScreen)


BEHIND_IT = {"x": events.Key("x", "x"), "paste": events.Paste("es please"), "enter": events.Key("enter", None)}


@pytest.mark.parametrize("after", BEHIND_IT)
async def test_a_yes_counts_only_when_it_stands_alone(
    after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = 2.0  # so that a loaded machine still presses the second key in time
    monkeypatch.setattr("tftriage.tui.base.QUIET", quiet)
    triage, plan, written = on_machine(tmp_path, CURED)
    async with triage.run_test(size=(80, 24)) as pilot:
        await to_preview(pilot, plan)
        await press(pilot, "x")
        await press(pilot, "y", quiet=0.1)
        await wait_for(pilot, "too quickly")  # something stood before it
        await pilot.pause(quiet + 0.2)
        triage.post_message(events.Key("y", "y"))  # something stands behind it, at once
        triage.post_message(BEHIND_IT[after])
        await pilot.pause(quiet + 0.4)
        assert not written.exists() and not Journal().entries()
        assert "nothing done yet" in shown(triage)
        await press(pilot, "y", quiet=quiet + 0.2)
        await wait_for(pilot, "Fix applied", seconds=20)
        assert written.exists()


async def test_n_and_b_change_nothing(tmp_path: Path) -> None:
    triage, plan, written = on_machine(tmp_path, CURED)
    async with triage.run_test(size=(80, 24)) as pilot:
        await to_preview(pilot, plan)
        await press(pilot, "n")
        await wait_for(pilot, "Fixes")
        triage.push_screen(FixScreen(plan))
        await wait_for(pilot, "nothing done yet")
        await press(pilot, "left")
        await wait_for(pilot, "Fixes")
    assert not written.exists() and not Journal().entries()


async def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    triage, plan, written = on_machine(tmp_path, CURED)
    written.write_text("somebody's", encoding="utf-8")
    async with triage.run_test(size=(80, 40)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        await press(pilot, "enter")
        triage.push_screen(FixScreen(plan))
        await wait_for(pilot, "nothing done yet")
        await press(pilot, "y", quiet=0.6)
        await wait_for(pilot, "Fix not applied", "Not applied:")
        await press(pilot, "enter")
        await wait_for(pilot, "Fixes")
    assert written.read_text(encoding="utf-8") == "somebody's"


async def test_a_recorded_case_stops_at_the_preview() -> None:
    triage = case_app("protobuf", walked=True)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        await press(pilot, "enter", "enter")
        text = await wait_for(pilot, "nothing done yet", "A recorded case")
        assert "Y apply" not in text
        await press(pilot, "y", quiet=0.6)
        await pilot.pause(0.6)
        assert "nothing done yet" in shown(triage) and not Journal().entries()


async def test_the_commands_are_written_to_a_file() -> None:
    async with case_app("protobuf", walked=True).run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        await press(pilot, "enter", "enter")
        await wait_for(pilot, "nothing done yet")
        await press(pilot, "c")
        await wait_for(pilot, "Copied, and written to")
    (saved,) = Path().glob("tftriage-commands-*.txt")
    assert "pip install" in saved.read_text(encoding="utf-8")


async def test_while_something_is_written_one_q_is_not_enough(tmp_path: Path) -> None:
    triage, plan, _ = on_machine(tmp_path, CURED)
    async with triage.run_test(size=(80, 24)) as pilot:
        await to_preview(pilot, plan)
        screen = triage.screen
        assert isinstance(screen, FixScreen)
        screen.phase = "applying"
        await press(pilot, "q")
        await wait_for(pilot, "being written right now")
        assert triage.is_running and not triage.leaving.is_set()
        await press(pilot, "q")
        await pilot.pause(0.2)
        assert triage.leaving.is_set()
