"""The walk: live evidence, the person's answers, overriding, looking back, and leaving while it runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from tests.pilot import KB, Machine, app_on, case_app, case_of, press, shown, wait_for
from tftriage.facts import Fact, Facts
from tftriage.requests import Target
from tftriage.session import Session
from tftriage.sources import Request
from tftriage.tui.app import TriageApp
from tftriage.tui.screens.diagnosis import DiagnosisScreen
from tftriage.tui.screens.start import StartScreen
from tftriage.tui.screens.walk import MOST_EVIDENCE, WalkScreen
from tftriage.walk import Ask, Walk


def title(diagnosis: str, lang: str = "en") -> str:
    return KB.diagnoses[diagnosis].title[lang]


async def test_it_walks_to_the_diagnosis_and_enter_shows_it() -> None:
    triage = case_app("protobuf", live=True)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Looks like")
        await press(pilot, "enter")
        text = await wait_for(pilot, title("protobuf-too-new"), "Enter shows what to do", "protobuf 4.24.4")
        assert "questions" in text.split("\n")[0] and "✗" in text
        await press(pilot, "enter")
        await wait_for(pilot, "Fixes")
        assert isinstance(triage.screen, DiagnosisScreen)


async def test_looking_back_shows_the_evidence_of_each_question() -> None:
    triage = case_app("protobuf", walked=True)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        steps = triage.session.walk.steps if triage.session.walk else ()
        await press(pilot, "home")
        await press(pilot, *(["up"] * len(steps)))
        await wait_for(pilot, f"│ {KB.nodes[steps[0].node].ask['en'][:25]}")
        await press(pilot, "j")
        await wait_for(pilot, f"│ {KB.nodes[steps[1].node].ask['en'][:25]}")
        await press(pilot, "m")
        await wait_for(pilot, "By hand")


async def test_many_lines_of_evidence_are_cut_and_e_shows_all() -> None:
    triage = case_app("found-not-added", walked=True)
    async with triage.run_test(size=(100, 50)) as pilot:
        text = await wait_for(pilot, "E shows all", "Enter shows what to do")
        finding = triage.session.walk.steps[-1].finding if triage.session.walk else None
        assert finding is not None
        hidden = len(finding.evidence) - MOST_EVIDENCE + 1
        assert f"{hidden} more" in text and "E all" in text
        await press(pilot, "e")
        await pilot.pause(0.1)
        assert "more, E" not in shown(triage)
        await press(pilot, "pagedown", "end")
        await wait_for(pilot, "Why this matters")


async def test_the_bad_lines_come_first() -> None:
    triage = case_app("found-not-added", walked=True)
    async with triage.run_test(size=(100, 60)) as pilot:
        await wait_for(pilot, "E shows all")
        await press(pilot, "e")
        text = await wait_for(pilot, "Why this matters")
        marks = [line.split("│ ")[1][0] for line in text.split("\n") if "│ ✗ " in line or "│ · " in line]
        assert marks == sorted(marks, key=lambda mark: mark != "✗")


async def test_an_answer_can_be_overridden_and_the_walk_goes_on_from_there() -> None:
    triage = case_app("protobuf", walked=True)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Enter shows what to do")
        await press(pilot, "a")
        await wait_for(pilot, "1 ", "Enter this answer")
        await press(pilot, "3")
        await wait_for(pilot, title("protobuf-too-old"), "You: ")
        assert triage.session.walk is not None and triage.session.walk.steps[-1].by == "person"


async def test_a_question_for_the_person_is_answered_with_arrows_too() -> None:
    """More answers than digits: the last one is reached with the arrows."""
    node = KB.nodes["install/message"]
    triage = app_on(Machine(Facts()), Target(python="/p"))
    answers = [a for a, target in node.answers.items() if target != "ask" and a in node.choices]
    assert len(answers) > 9
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Choose what you see")
        triage.session.walk = Walk("import-fails", "install/message", asking=True)
        triage.session.request = Ask("install/message", tuple(answers))
        triage.push_screen(WalkScreen())
        text = await wait_for(pilot, node.ask["en"][:30], "Enter this answer")
        assert "▶" in text
        await press(pilot, "end")
        await wait_for(pilot, node.choices[answers[-1]]["en"][:20])
        await press(pilot, "enter")
        await pilot.pause(0.3)
        assert triage.session.walk is not None and triage.session.walk.steps[0].answer == answers[-1]


class Slow(Machine):
    """A machine whose import hangs until it is let go."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.asked: list[str] = []
        self.ended = threading.Event()

    def collect(self, requests: Sequence[Request]) -> Iterator[Fact]:
        for name, _ in requests:
            self.asked.append(name)
            if not self.ended.wait(20):
                raise AssertionError("nobody ended it")
            yield Fact(name, "error", note="the collector ended")

    def close(self) -> None:
        self.ended.set()


async def test_b_leaves_a_walk_that_hangs_and_nothing_goes_on_looking() -> None:
    case = case_of("protobuf")
    source = Slow(Facts())
    triage = TriageApp(KB, Session(KB, source, case.target, case.text), "en")
    source.ended.set()
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Looks like")
        await pilot.pause(0.2)
        source.ended.clear()
        source.asked.clear()
        await press(pilot, "enter")
        await wait_for(pilot, "question 1")
        await pilot.pause(0.3)
        await press(pilot, "b")
        await wait_for(pilot, "Looks like")
        await pilot.pause(0.5)
        assert isinstance(triage.screen, StartScreen)
        assert len(source.asked) == 1  # the rest of the wave and of the walk was never asked for
        assert not triage.busy.locked()


async def test_an_interpreter_that_is_gone_leads_to_the_choice_of_another() -> None:
    gone = Facts([Fact("target.interpreter", "error", note="gone: /opt/gone/bin/python")])
    triage = app_on(Machine(gone), Target(python="/opt/gone/bin/python"))
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Choose what you see")
        await press(pilot, "1")
        await wait_for(pilot, "There is no interpreter at that place any more", "Here: E.")
        assert isinstance(triage.screen, StartScreen)


async def test_a_fault_of_ours_is_said_and_the_screen_stays_usable() -> None:
    class Broken(Machine):
        def collect(self, requests: Sequence[Request]) -> Iterator[Fact]:
            raise RuntimeError("kaputt")
            yield

    case = case_of("protobuf")
    triage = TriageApp(KB, Session(KB, Broken(Facts()), case.target, case.text), "en")
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "kaputt")
        await press(pilot, "1")
        await wait_for(pilot, "A fault of tftriage itself", "kaputt")
        await press(pilot, "b")
        await wait_for(pilot, "Looks like")
