"""The collector is another process: its death, chatter and silence are facts too (real processes)."""

from __future__ import annotations

import sys
from pathlib import Path

from tftriage.facts import Fact, Facts
from tftriage.sources import CaseSource, LiveSource

ANSWER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "collect" in request:
        {behave}
        fact = {{"fact": request["collect"], "status": "ok", "value": 1, "source": "t", "note": None}}
        print(json.dumps(fact), flush=True)
"""


def source(tmp_path: Path, behave: str) -> LiveSource:
    script = tmp_path / "collector.py"
    script.write_text(ANSWER.format(behave=behave), encoding="utf-8")
    return LiveSource([sys.executable, str(script)])


def test_facts_arrive(tmp_path: Path) -> None:
    live = source(tmp_path, "pass")
    assert [fact.name for fact in live.collect([("a", {}), ("b", {})])] == ["a", "b"]
    live.close()


def test_a_death_in_the_middle_leaves_errors_and_the_next_request_works(tmp_path: Path) -> None:
    cut = '(sys.stdout.write(\'{"fact": "b", "sta\'), sys.stdout.flush(), sys.exit(7))'
    behave = f"request['collect'] == 'b' and {cut}"
    live = source(tmp_path, behave)
    found = {fact.name: fact for fact in live.collect([("a", {}), ("b", {})])}
    assert found["a"].status == "ok"
    assert found["b"].status == "error"
    assert "exit 7" in found["b"].note
    assert [fact.status for fact in live.collect([("a", {})])] == ["ok"]
    live.close()


def test_chatter_is_not_a_fact(tmp_path: Path) -> None:
    live = source(tmp_path, "print('hello'), print('[1, 2]'), print('{\"fact\": 3}')")
    assert [fact.name for fact in live.collect([("a", {})])] == ["a"]
    live.close()


def test_silence_ends_at_the_limit(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("tftriage.sources.GRACE", 0.3)
    live = source(tmp_path, "import time; time.sleep(60)")
    found = list(live.collect([("a", {"limit": 0.2})]))
    assert [fact.status for fact in found] == ["timeout"]


def test_a_collector_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    live = LiveSource([sys.executable, str(tmp_path / "nowhere.py")])
    assert [fact.status for fact in live.collect([("a", {})])] == ["error"]


def test_a_case_knows_only_what_was_recorded() -> None:
    case = CaseSource(Facts([Fact("a", "ok", 1)]))
    assert [fact.name for fact in case.collect([("a", {}), ("b", {})])] == ["a"]
