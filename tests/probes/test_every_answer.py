"""Every answer of every probe comes out of some test with facts, and every probe can be checked by a person."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tftriage.knowledge import load
from tftriage.probes import PROBES

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]


@pytest.mark.skipif(sys.platform == "win32", reason="probes are pure: what Linux's run says holds there too")
@pytest.mark.skipif("TFTRIAGE_ANSWERS" in os.environ, reason="this run is the one that is recorded")
def test_every_answer_is_given_in_a_test(tmp_path: Path) -> None:
    file = tmp_path / "answers"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider", str(HERE.parent)],
        cwd=ROOT, env={**os.environ, "TFTRIAGE_ANSWERS": str(file)}, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    given = set(file.read_text(encoding="utf-8").splitlines())
    declared = [f"{probe.name} {answer}" for probe in PROBES.values() for answer in probe.answers]
    missing = [answer for answer in declared if answer not in given]
    assert missing == [], f"no test has facts for: {', '.join(missing)}"


@pytest.mark.parametrize("name", sorted(PROBES))
def test_a_person_can_check_it_by_hand(name: str) -> None:
    kb = load()
    nodes = [node for node in kb.nodes.values() if node.probe == name]
    assert nodes, "no node asks this probe"
    for node in nodes:
        for text in (node.ask, node.by_hand):
            assert text["en"].strip() and text["zh"].strip()
        for answer in PROBES[name].answers:
            assert node.choices[answer]["zh"].strip(), f"no words for {answer}"
