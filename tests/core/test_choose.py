"""Which Python is meant: what the traceback names, what is activated, the only one that could be meant."""

from __future__ import annotations

from tftriage.choose import candidates, suggest
from tftriage.facts import Fact, Facts


def facts(*pythons: dict[str, object], **variables: str) -> Facts:
    return Facts([Fact("pythons.list", "ok", list(pythons)), Fact("env.process", "ok", variables)])


def python(prefix: str, tensorflow: str | None = None) -> dict[str, object]:
    return {"path": prefix + "/python", "prefix": prefix, "tensorflow": tensorflow}


def test_the_traceback_names_it() -> None:
    text = 'File "C:\\ProgramData\\Anaconda3\\envs\\tf21\\lib\\site-packages\\tensorflow\\__init__.py", line 1'
    found = facts(python("C:\\ProgramData\\anaconda3\\envs\\TF21"), python("C:\\Python38", "tensorflow 2.3.1"))
    assert suggest(found, text) == ("C:\\ProgramData\\anaconda3\\envs\\TF21/python", "traceback")


def test_the_traceback_on_linux() -> None:
    text = 'File "/home/a/venv/lib/python3.7/site-packages/tensorflow/__init__.py", line 1'
    assert suggest(facts(python("/usr"), python("/home/a/venv")), text) == ("/home/a/venv/python", "traceback")


def test_the_activated_one_if_it_has_a_tensorflow() -> None:
    found = facts(python("/a", "tensorflow 2"), python("/b", "tensorflow 1"), VIRTUAL_ENV="/b")
    assert suggest(found, "") == ("/b/python", "activated")


def test_the_only_one() -> None:
    assert suggest(facts(python("/a"), python("/b", "tensorflow 1")), "") == ("/b/python", "only-one")
    assert suggest(facts(python("/a")), "") == ("/a/python", "only-one")


def test_several_are_the_persons_choice() -> None:
    assert suggest(facts(python("/a", "x"), python("/b", "y")), "") == (None, "")
    assert suggest(Facts(), "") == (None, "")


def test_those_with_a_tensorflow_come_first() -> None:
    assert [p["path"] for p in candidates(facts(python("/a"), python("/b", "x")))] == ["/b/python", "/a/python"]
