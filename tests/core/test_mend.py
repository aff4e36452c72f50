"""What became of a fix: the probe that saw the fault decides, and an import that works here again is a cure."""

from __future__ import annotations

import pytest

from tests.core.test_session import session
from tftriage import mend
from tftriage.fixes.plans import Plan, Refused, Verify
from tftriage.probes.base import Evidence, Finding
from tftriage.walk import Step, Walk

BAD = Finding("missing", (Evidence("record.missing", {}, "bad"),))
BLIND = Finding("unknown")


def plan(**context: object) -> Plan:
    check = Verify(facts=("tf.import",), probe="kernel_import", good_answers=("works",), context=dict(context))
    return Plan(fix="reinstall-package", steps=(), verify=check)


def walked(*steps: Step) -> object:
    one = session()
    one.walk = Walk("import-fails", "diagnosis:damaged-install", steps)
    return one


def test_the_probe_that_saw_the_fault_is_asked_again_not_one_that_could_not_look() -> None:
    one = walked(
        Step("dll-import/package", "missing", "probe", BAD), Step("antivirus/removed", "unknown", "probe", BLIND)
    )
    probe, good = mend._check(one, plan())  # type: ignore[arg-type]
    assert probe == "package_whole"
    assert [good(answer) for answer in ("whole", "missing", "unknown")] == [True, False, False]


def test_a_fix_in_a_kernel_is_proved_in_that_kernel() -> None:
    one = walked(Step("dll-import/package", "missing", "probe", BAD))
    probe, good = mend._check(one, plan(kernel="tf"))  # type: ignore[arg-type]
    assert probe == "kernel_import"
    assert [good(answer) for answer in ("works", "fails")] == [True, False]


@pytest.mark.parametrize(("was", "now", "cured"), [("fails", "works", True), ("hangs", "works", True),
                                                  ("works", "works", False), ("fails", "fails", False)])  # fmt: skip
def test_an_import_that_failed_here_and_works_here_is_a_cure(was: str, now: str, cured: bool) -> None:
    before = Walk("s", "diagnosis:x", (Step("dll-import/reproduce", was, "probe"),))
    after = Walk("s", "diagnosis:y", (Step("dll-import/reproduce", now, "probe"),))
    assert mend._works_now(before, after) is cured


def test_a_recorded_case_is_never_changed() -> None:
    with pytest.raises(Refused):
        mend.carry_out(session(), plan(), None)  # type: ignore[arg-type]
