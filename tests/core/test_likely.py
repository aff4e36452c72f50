"""The causes that mostly stand behind a question: in the node's order, without those that were ruled out."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

import msgspec
import pytest

from tests.pilot import KB, Machine, app_on, press, shown, wait_for
from tftriage import headless, show
from tftriage.facts import Fact, Facts
from tftriage.kbcheck import _nodes
from tftriage.knowledge import Source
from tftriage.likely import likely, ruled_out
from tftriage.probes import PROBES
from tftriage.probes.base import Evidence, Finding
from tftriage.requests import Target
from tftriage.session import Session
from tftriage.sources import CaseSource
from tftriage.walk import DIAGNOSIS, Step, Walk, absolute

TEXT = "ImportError: DLL load failed: A dynamic link library (DLL) initialization routine failed."


def walked(*facts: Fact, text: str = TEXT) -> Session:
    session = Session(KB, CaseSource(Facts(facts)), Target(), text)
    session.begin(str(session.best_match()))
    session.advance()
    return session


def avx(value: bool) -> Fact:
    return Fact("system.cpu", "ok", {"name": "x", "avx": value})


def test_the_commonest_cause_comes_first_and_what_was_measured_rules_out() -> None:
    session = walked()
    assert session.walk is not None and session.walk.at == "error-words/init-by-hand"
    assert likely(KB, session.walk) == ("cpu-no-avx", "vcredist-outdated", "openmp-duplicate-runtime")
    measured = walked(avx(True))
    assert measured.walk is not None and "cpu-no-avx" in ruled_out(KB, measured.walk)
    assert likely(KB, measured.walk) == ("vcredist-outdated", "openmp-duplicate-runtime")


def test_the_words_of_an_error_rule_nothing_out() -> None:
    finding = Finding("half-api", (Evidence("said.pasted", {"fact": "paste.text"}),))
    by_words = Walk("s", "error-words/half-api", (Step("error-words/said", "half-api", "probe", finding),), asking=True)
    assert ruled_out(KB, by_words) == frozenset()
    person = Walk("s", "error-words/half-api", (Step("error-words/said", "half-api", "person"),), asking=True)
    assert "tf-estimator-mismatch" in ruled_out(KB, person)
    assert likely(KB, by_words)[0] == "tf-estimator-mismatch"
    open_answer = Walk("s", "error-words/half", (Step("error-words/said", "unknown", "probe", finding),), asking=True)
    assert ruled_out(KB, open_answer) == frozenset()


def test_nothing_is_likely_where_nobody_is_asked_or_nothing_is_known() -> None:
    assert likely(KB, Walk("s", "error-words/half")) == ()
    assert likely(KB, Walk("s", "diagnosis:healthy", asking=True)) == ()
    assert likely(KB, Walk("s", "dll-import/last", asking=True)) == ()


@pytest.mark.parametrize(("lang", "first"), [("en", "The processor has no AVX"), ("zh", "CPU")])
def test_headless_says_it_in_words_and_in_json(lang: str, first: str, capsys: Any) -> None:
    session = walked()
    assert first in show.likely_text(session, lang)
    headless.report_diagnosis(session, Namespace(json=False, lang=lang, answer=[]))
    assert show.likely_text(session, lang) in capsys.readouterr().out
    headless.report_diagnosis(session, Namespace(json=True, lang=lang, answer=[]))
    asks = json.loads(capsys.readouterr().out)["asks"]
    assert asks["likely"][:2] == ["cpu-no-avx", "vcredist-outdated"]


async def test_the_screen_shows_it_under_the_question() -> None:
    triage = app_on(Machine(Facts([avx(True)])), Target(python="/x/bin/python"), TEXT)
    async with triage.run_test(size=(80, 40)) as pilot:
        await wait_for(pilot, "Looks like")
        await press(pilot, "enter")
        await wait_for(pilot, "you answer this one")
        text = " ".join(shown(triage).split())
        assert "Mostly it is one of these" in text


def test_kb_check_wants_a_cause_that_exists_and_a_source() -> None:
    node = KB.nodes["error-words/half"]

    def problems(**changes: Any) -> list[str]:
        changed = {**KB.nodes, "error-words/half": msgspec.structs.replace(node, **changes)}
        return _nodes(msgspec.structs.replace(KB, nodes=changed), PROBES)

    assert any("likely moon, which does not exist" in p for p in problems(likely=("moon",)))
    assert any("error-words/half: a claim without source" in p for p in problems(sources=()))
    empty = (Source(kind="reported", ref=" "),)
    assert any("error-words/half: an empty source" in p for p in problems(sources=empty))


def test_every_question_with_likely_causes_offers_them_or_leads_to_them() -> None:
    def reach(start: str) -> set[str]:
        found, todo, seen = set[str](), [start], {start}
        while todo:
            name = todo.pop()
            for target in (absolute(target, name) for target in KB.nodes[name].answers.values()):
                if target.startswith(DIAGNOSIS):
                    found.add(target.removeprefix(DIAGNOSIS))
                elif target in KB.nodes and target not in seen:
                    seen.add(target)
                    todo.append(target)
        return found

    earlier = {"gpu-missing/try-it": {"cpu-only-build"}}  # asked before, and nobody could tell
    for name, node in KB.nodes.items():
        assert set(node.likely) <= reach(name) | earlier.get(name, set()), name
