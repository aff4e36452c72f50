"""One plan with an administrator's rights: the file is the one that was shown, or nothing happens."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import msgspec
import pytest

from tftriage.fixes import elevation, undo
from tftriage.fixes.effects import Applied
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import Plan, SetUserVariable, Step, Variable, Verify, WriteFile

VERIFY = Verify(facts=(), probe="p", good_answers=("ok",))


def plan_of(step: Step) -> Plan:
    return Plan(fix="test", steps=(step,), verify=VERIFY, needs=("admin",))


def handed_over(folder: Path, plan: Plan) -> list[str]:
    data = msgspec.json.encode(plan)
    file = folder / "plan.json"
    file.write_bytes(data)
    return [str(file), hashlib.sha256(data).hexdigest(), str(folder / "state"), str(folder / "answer")]


def test_the_elevated_side_carries_out_what_it_was_handed(tmp_path: Path) -> None:
    target = tmp_path / "file"
    arguments = handed_over(tmp_path, plan_of(WriteFile(path=str(target), text="x")))
    assert elevation.main(arguments) == 0
    assert target.read_text() == "x"
    answer = msgspec.json.decode((tmp_path / "answer").read_bytes(), type=Applied)
    assert answer.ok and answer.entry_id == "1"
    assert undo.undo(Journal(tmp_path / "state"), "1").ok and not target.exists()


def test_an_altered_plan_is_not_carried_out(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    arguments = handed_over(tmp_path, plan_of(WriteFile(path=str(good), text="x")))
    Path(arguments[0]).write_bytes(msgspec.json.encode(plan_of(WriteFile(path=str(bad), text="x"))))
    assert elevation.main(arguments) == elevation.ALTERED
    assert not good.exists() and not bad.exists() and not (tmp_path / "state").exists()


def test_the_users_own_variables_are_never_changed_as_somebody_else(tmp_path: Path) -> None:
    step = SetUserVariable(name="Path", value="x", type="REG_SZ", expected=Variable("Path"))
    assert not elevation.allowed(plan_of(step)) and not elevation.needed(plan_of(step))
    assert elevation.main(handed_over(tmp_path, plan_of(step))) == elevation.REFUSED


def test_a_plan_that_fails_says_so_to_the_one_that_asked(tmp_path: Path) -> None:
    file = tmp_path / "there"
    file.write_text("changed since")
    arguments = handed_over(tmp_path, plan_of(WriteFile(path=str(file), text="x", expected="absent")))
    assert elevation.main(arguments) == 1
    answer = msgspec.json.decode((tmp_path / "answer").read_bytes(), type=Applied)
    assert answer.error is not None and answer.error.key == "fix.error.changed-since"


@pytest.mark.parametrize(
    ("status", "key"),
    [(1223, "fix.error.not-allowed"), (3, "fix.error.plan-altered"), (5, "fix.error.system")],
)
def test_what_the_person_or_the_other_side_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, key: str
) -> None:
    monkeypatch.setattr(elevation, "_run_elevated", lambda arguments: status)
    book = Journal(tmp_path / "state")
    applied = elevation.carry_out(plan_of(WriteFile(path=str(tmp_path / "x"), text="x")), book)
    assert not applied.ok and applied.error is not None and applied.error.key == key
    assert not list((book.path / "elevated").iterdir()), "no plan is left lying about"


def test_the_answer_of_the_elevated_side_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elevation, "_run_elevated", lambda arguments: elevation.main(list(arguments)))
    book = Journal(tmp_path / "state")
    applied = elevation.carry_out(plan_of(WriteFile(path=str(tmp_path / "x"), text="x")), book)
    assert applied.ok and (tmp_path / "x").exists() and applied.results[0].read_back


def test_a_plan_swapped_while_windows_asks_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = msgspec.json.encode(plan_of(WriteFile(path=str(tmp_path / "evil"), text="x")))

    def swapped(arguments: tuple[str, ...]) -> int:
        Path(arguments[0]).write_bytes(other)
        return elevation.main(list(arguments))

    monkeypatch.setattr(elevation, "_run_elevated", swapped)
    applied = elevation.carry_out(plan_of(WriteFile(path=str(tmp_path / "x"), text="x")), Journal(tmp_path / "state"))
    assert applied.error is not None and applied.error.key == "fix.error.plan-altered"
    assert not (tmp_path / "evil").exists() and not (tmp_path / "x").exists()


def test_the_command_line_is_isolated_from_the_users_variables() -> None:
    executable, isolated, _, code, *rest = elevation.command(("a b", "c"))
    assert (executable, isolated, rest) == (sys.executable, "-I", ["a b", "c"])
    compile(code, "x", "exec")
