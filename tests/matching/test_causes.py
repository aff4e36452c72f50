"""Our own reports with known causes: the right one is among the first two, from the text and the versions alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.matching.causes import facts_of, main, offered, place_of, read
from tftriage.knowledge import load

KB = load()
FILE = Path(__file__).with_name("causes.yaml")
REPORTS = read(FILE)
OFFERED = {report["id"]: offered(KB, report) for report in REPORTS}
# Where the text and the versions cannot tell, or the text is not recognised as what it is.
OPEN = frozenset({
    "cuda8-base-missing", "cudnn-6-for-11", "dlopen-without-names", "estimator-contrib", "protobuf-field",
})  # fmt: skip


@pytest.mark.parametrize("report", [r for r in REPORTS if r["id"] not in OPEN], ids=lambda report: report["id"])
def test_the_cause_is_among_the_first_two(report):
    end, causes = OFFERED[report["id"]]
    place = place_of(report, causes)
    assert place is not None and place < 2, (end, causes[:4])


def test_nine_of_ten_are_right():
    places = [place_of(report, OFFERED[report["id"]][1]) for report in REPORTS]
    right = [place for place in places if place is not None and place < 2]
    assert len(right) >= 0.9 * len(REPORTS)
    assert len({report["id"] for report in REPORTS}) == len(REPORTS) >= 60


def test_the_rates_are_printed(capsys):
    assert main([str(FILE), "--show"]) == 0
    shown = capsys.readouterr().out
    assert f"/{len(REPORTS)} = " in shown and "first two" in shown
    assert "vc-22" not in shown  # only what is not among the first two


def test_the_versions_of_a_report_become_facts():
    report = {"text": "", "os": "Windows 10", "tf": "1.12 (tensorflow and tensorflow-gpu)", "python": "3.6 (Store)"}
    facts = facts_of(report, True)
    assert [d["name"] for d in facts.value("tf.package")["distributions"]] == ["tensorflow", "tensorflow-gpu"]
    assert facts.value("target.interpreter")["store"] is True
    assert facts.value("system.os")["system"] == "Windows"
    assert "distributions" not in facts_of({**report, "tf": "1.12"}, True).value("tf.package")
    assert facts_of({**report, "tf": "none (PyTorch)"}, True)["tf.package"].status == "absent"
    assert "tf.package" not in facts_of(report, False)
    assert facts_of({**report, "os": "macOS 12"}, True).value("system.os")["system"] == "Darwin"
