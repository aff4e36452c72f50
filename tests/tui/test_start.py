"""The start screen: paste, recognise, choose, type, the language, what a crash left. Real keys through the pilot."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.pilot import KB, Machine, app_on, case_app, paste, press, wait_for
from tftriage.facts import Fact, Facts
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import Plan, Verify, WriteFile
from tftriage.fixes.registry import user_registry
from tftriage.fixes.states import look
from tftriage.requests import Target
from tftriage.sources import CaseSource
from tftriage.tui.app import TriageApp
from tftriage.tui.screens.start import StartScreen
from tftriage.tui.screens.target import TargetScreen
from tftriage.tui.screens.walk import WalkScreen

ERROR = """Traceback (most recent call last):
  File "C:\\tf\\lib\\site-packages\\tensorflow\\python\\pywrap_tensorflow.py", line 58, in <module>
    from tensorflow.python.pywrap_tensorflow_internal import *
ImportError: DLL load failed: 找不到指定的模块。

Failed to load the native TensorFlow runtime.
"""
LINUX = Facts([Fact("system.os", "ok", {"system": "Linux"}), Fact("env.process", "ok", {})])
PYTHONS = [
    {"path": f"/opt/{name}/bin/python", "version": "3.7.9", "prefix": f"/opt/{name}", "kind": "venv", "tensorflow": tf}
    for name, tf in (("plain", None), ("tf21", "tensorflow-gpu 2.1.0"), ("tf23", "tensorflow-gpu 2.3.1"))
]


def app(text: str = "", lang: str = "en") -> TriageApp:
    return app_on(CaseSource(Facts([Fact("system.os", "ok", {"system": "Windows"})])), Target(python="x"), text, lang)


def machine(*facts: Fact, python: str | None = None) -> TriageApp:
    return app_on(Machine(LINUX.with_(*facts)), Target(python=python))


async def test_a_paste_is_recognised_wherever_the_focus_is() -> None:
    async with app().run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "nothing pasted yet")
        await paste(pilot, ERROR)
        text = await wait_for(pilot, "Looks like", "(126)", "line 4")
        assert "DLL load failed: 找不到指定的模块。" in text
        assert text.index("(126)") < text.index("Or choose what you see")


async def test_the_language_switches_on_the_first_screen_and_back() -> None:
    async with app().run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Choose what you see")
        await press(pilot, "l")
        text = await wait_for(pilot, "选择你遇到的现象")
        assert "English L" in text
        await press(pilot, "L")
        await wait_for(pilot, "Choose what you see")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("size", [(80, 24), (100, 30), (60, 20)])
async def test_everything_fits(lang: str, size: tuple[int, int]) -> None:
    async with app(ERROR, lang).run_test(size=size) as pilot:
        text = await wait_for(pilot, "Looks like" if lang == "en" else "看起来是")
        lines = text.split("\n")
        assert len(lines) <= size[1]
        assert all(cell_len(line) <= size[0] for line in lines)
        assert "Enter" in lines[-1] and " ? " in lines[-1] and " Q " in lines[-1]
        assert ("60x20" in text) == (size == (60, 20))


async def test_digits_choose_and_the_walk_begins() -> None:
    async with app(ERROR).run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Looks like")
        await press(pilot, "1")
        await wait_for(pilot, "question ")
        assert isinstance(pilot.app.screen, WalkScreen)


async def test_the_last_complaint_is_reached_with_arrows_and_the_bar_does_not_wrap() -> None:
    last = sorted((s for s in KB.symptoms if s.complaint), key=lambda s: s.order)[-1]
    async with app().run_test(size=(60, 20)) as pilot:
        await wait_for(pilot, "Choose what you see")
        await press(pilot, "end", "down", "j", "enter")
        await wait_for(pilot, last.title["en"][:30], "question")
        assert isinstance(pilot.app.screen, WalkScreen) and pilot.app.screen.symptom == last.id


async def test_an_empty_paste_says_so() -> None:
    async with app().run_test(size=(80, 24)) as pilot:
        await paste(pilot, " \n\x00\n")
        await wait_for(pilot, "There is no text in it")


async def test_hostile_text_is_shown_as_text() -> None:
    async with app().run_test(size=(80, 24)) as pilot:
        await paste(pilot, "\x1b[2J[bold red]x[/]\x07\x9b5n\x00 DLL load failed: \x1b]0;t\x07done\n")
        text = await wait_for(pilot, "[bold red]x[/]")
        assert "\x1b" not in text


async def test_ten_megabytes_of_binary_leave_the_screen_alive() -> None:
    async with app().run_test(size=(80, 24)) as pilot:
        await paste(pilot, bytes(range(1, 256)).decode("latin-1") * 40_000)
        await wait_for(pilot, "Not recognised", seconds=60)
        await press(pilot, "l")
        await wait_for(pilot, "English L")


async def test_text_can_be_typed_and_corrected() -> None:
    triage = app()
    async with triage.run_test(size=(80, 24)) as pilot:
        await press(pilot, "i")
        await wait_for(pilot, "Esc when it is done")
        await press(pilot, *"x DLL lqad", quiet=0.03)
        await press(pilot, "escape")
        await wait_for(pilot, "Not recognised", "lqad")
        await press(pilot, "f6", "end", "backspace", "backspace", "backspace", *"oad failed", quiet=0.03)
        await press(pilot, "escape")
        await wait_for(pilot, "x DLL load failed")
        await wait_for(pilot, "Looks like")
        assert triage.session.text == "x DLL load failed"
        await press(pilot, "i", "escape")
        assert triage.session.text == "x DLL load failed"
        await press(pilot, "x")
        await wait_for(pilot, "nothing pasted yet")
        assert "paste.text" not in triage.session.facts


async def test_help_shows_the_keys_and_leads_back() -> None:
    async with app().run_test(size=(80, 24)) as pilot:
        await press(pilot, "question_mark")
        text = await wait_for(pilot, "Everything works with the keyboard")
        assert KB.messages["key.reproduce.help"]["en"] in text and "F5" in text
        await press(pilot, "escape")
        await wait_for(pilot, "nothing pasted yet")


async def test_quit_leaves_at_once() -> None:
    triage = app()
    async with triage.run_test(size=(80, 24)) as pilot:
        await press(pilot, "q")
    assert triage.return_code == 0


async def test_a_recorded_case_says_that_it_is_one() -> None:
    async with case_app("protobuf").run_test(size=(80, 24)) as pilot:
        text = await wait_for(pilot, "recorded case", "Looks like")
        assert KB.symptom("protobuf-descriptors").title["en"][:30] in text
        await press(pilot, "r")
        await wait_for(pilot, "only what was recorded")


# --- which Python ------------------------------------------------------------------------------------------


async def test_a_complaint_without_a_target_asks_for_it_and_goes_on() -> None:
    triage = machine(Fact("pythons.list", "ok", PYTHONS))
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "no environment chosen")
        await press(pilot, "3")
        text = await wait_for(pilot, "Which Python is it about?", "Then: TensorFlow lists no GPU", "tf21")
        assert text.index("tf21") < text.index("no TensorFlow")  # those with a TensorFlow first
        await press(pilot, "2")
        await wait_for(pilot, "TensorFlow lists no GPU", "question")
        assert isinstance(triage.screen, WalkScreen)
        assert triage.session.target.python == PYTHONS[2]["path"]


@pytest.mark.parametrize("key", ["r", "d"])
async def test_reproducing_and_checking_ask_for_it_too(key: str) -> None:
    triage = machine(Fact("pythons.list", "ok", PYTHONS))
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "no environment chosen")
        await press(pilot, key)
        await wait_for(pilot, "Which Python is it about?", "tf21")
        await press(pilot, "escape")
        await wait_for(pilot, "Choose what you see")  # nothing chosen: nothing begins
        assert isinstance(triage.screen, StartScreen)


async def test_the_only_one_with_a_tensorflow_is_chosen_by_itself() -> None:
    async with machine(Fact("pythons.list", "ok", PYTHONS[:2])).run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "/opt/tf21/bin/python")
        assert not isinstance(pilot.app.screen, TargetScreen)


# --- after a crash -----------------------------------------------------------------------------------------


def cut_off(folder: Path) -> tuple[Plan, Path, Path]:
    """A journal as a death between two steps leaves it: the first file is written, the second is not."""
    one, two = folder / "one.txt", folder / "two.txt"
    steps = tuple(WriteFile(path=str(path), text=path.stem, expected="absent") for path in (one, two))
    verify = Verify(facts=(), probe="reproduce", good_answers=("works",))
    plan = Plan(fix="path-environment", steps=steps, verify=verify)
    book, registry = Journal(), user_registry()
    entry = book.begin(plan)
    before = look(steps[0], registry)
    one.write_text("one", encoding="utf-8")
    ours = look(steps[0], registry)
    book.step_intent(entry, 0, before, ours)
    book.step_done(entry, 0, ours, 0.0)
    return plan, one, two


@pytest.mark.parametrize(("key", "left", "status"), [("t", set(), "undone"), ("f", {"one.txt", "two.txt"}, "applied")])
async def test_what_a_crash_left_is_taken_back_or_finished(
    key: str, left: set[str], status: str, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    cut_off(work)
    async with machine(Fact("pythons.list", "ok", []), python="/p").run_test(size=(80, 24)) as pilot:
        text = await wait_for(pilot, "cut off in the middle", KB.fixes["path-environment"].title["en"][:20])
        assert "T " in text.split("\n")[-1] and "F " in text.split("\n")[-1]
        await press(pilot, key, quiet=0.6)
        await wait_for(pilot, "(entry 1)")
        text = await wait_for(pilot, "Choose what you see")
    assert {path.name for path in work.iterdir()} == left
    assert Journal().entry("1").status == status
    assert "cut off" not in text


async def test_a_pasted_t_takes_nothing_back(tmp_path: Path) -> None:
    cut_off(tmp_path)
    async with machine(Fact("pythons.list", "ok", []), python="/p").run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "cut off in the middle")
        await press(pilot, "t", "x", quiet=0.05)
        await pilot.pause(0.6)
        assert Journal().entry("1").status == "interrupted"
