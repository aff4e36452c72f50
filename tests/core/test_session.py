"""A session drives the walk on recorded facts: several answers, one source; what is not recorded stays unknown."""

from __future__ import annotations

from typing import Any

import pytest

from tftriage.facts import Fact, Facts
from tftriage.knowledge import load
from tftriage.requests import Target
from tftriage.session import Arrived, Entered, Judged, NoTarget, Session
from tftriage.sources import CaseSource
from tftriage.walk import Ask, Reached

KB = load()
ERROR = """  File "/home/a/v/lib/python3.7/site-packages/tensorflow/python/__init__.py", line 1, in <module>
TypeError: Descriptors cannot not be created directly.
If this call came from a _pb2.py file, your generated code is out of date and must be regenerated with protoc >= 3.19.0.
"""


def package(name: str, version: str) -> dict[str, Any]:
    return {"name": name, "version": version, "folder": "/s", "record": None, "installer": "pip"}


FACTS = Facts(
    [
        Fact("system.os", "ok", {"system": "Linux", "release": "6", "machine": "x86_64", "wsl": None, "wine": False}),
        Fact("target.interpreter", "ok", {
            "executable": "/home/a/v/bin/python", "version": [3, 7, 16], "bits": 64, "prefix": "/home/a/v",
            "base_prefix": "/usr", "venv": True, "conda": False, "store": False, "pip": "22.0.4", "path": [],
            "site_packages": ["/s"], "ipykernel": None, "platform": "linux",
        }),
        Fact("target.packages", "ok", {
            "protobuf": package("protobuf", "4.24.4"), "numpy": package("numpy", "1.21.6"),
            "h5py": package("h5py", "3.8.0"), "tensorflow-gpu": package("tensorflow-gpu", "2.1.0"),
        }),
        Fact("tf.package", "ok", {
            "distributions": [{"name": "tensorflow-gpu", "version": "2.1.0", "folder": "/s"}], "version": "2.1.0",
            "folder": "/s/tensorflow", "module_file": "/s/tensorflow/__init__.py", "native": [], "main_native": None,
            "build_info": None, "shadow": [], "leftovers": False,
        }),
        Fact("tf.record", "ok", {
            "distribution": "tensorflow-gpu 2.1.0", "checked": 9, "missing": [], "empty": [], "altered": [],
            "native_missing": [], "others": [],
        }),
        Fact("tf.import", "ok", {
            "module": "tensorflow", "ok": False, "seconds": 1.0, "version": None, "file": None,
            "error_type": "TypeError", "error": "Descriptors cannot not be created directly.", "traceback": ERROR,
            "log": "", "exit": 1, "signal": None, "timed_out": False, "stack": "",
            "context": {"kind": "here", "kernel": None, "env_changes": {}},
        }),
        Fact("tf.libraries", "ok", {"opened": []}),
    ]
)  # fmt: skip


def session(facts: Facts = FACTS, text: str = ERROR) -> Session:
    return Session(KB, CaseSource(facts), Target(python="/home/a/v/bin/python"), text, facts)


def test_from_text_to_cause_with_the_whole_pin_set() -> None:
    heard: list[object] = []
    one = session()
    assert one.best_match() == "protobuf-descriptors"
    one.begin("protobuf-descriptors")
    assert one.advance(heard.append) == Reached("protobuf-too-new")
    assert "protobuf==3.20.3" in one.values["pins"]
    assert "h5py" in one.values["wrong"]
    assert {type(event) for event in heard} >= {Entered, Judged}


def test_what_is_not_recorded_is_unknown_and_the_person_is_asked() -> None:
    one = session(Facts(), "")
    one.begin("import-fails")
    end = one.advance()
    assert isinstance(end, Ask)
    assert {done.answer for done in one.walk.steps} == {"unknown"}  # type: ignore[union-attr]


def test_an_answer_of_the_person_goes_on_from_there() -> None:
    one = session()
    one.begin("protobuf-descriptors")
    one.advance()
    first = one.walk.steps[0].node  # type: ignore[union-attr]
    one.answer(first, "hangs")
    assert one.advance() == Reached("import-hangs")


def test_facts_that_are_there_are_not_asked_for_again() -> None:
    heard: list[object] = []
    one = session()
    one.observe(("tf.import",), heard.append)
    assert not [event for event in heard if isinstance(event, Arrived)]


def test_forget_keeps_what_the_person_gave() -> None:
    one = session()
    one.begin("protobuf-descriptors")
    one.forget()
    assert set(one.facts) == {"paste.text", "paste.symptom", "case.recorded"}


class Live(CaseSource):
    live = True
    elsewhere = False


@pytest.mark.parametrize("kind", ["gone", "not-python", "not-executable", "too-old"])
def test_no_question_is_asked_about_an_interpreter_that_is_none(kind: str) -> None:
    facts = Facts([Fact("target.interpreter", "error", note=f"{kind}: /x/python")])
    one = Session(KB, Live(facts), Target(python="/x/python"), ERROR)
    one.begin("import-fails")
    with pytest.raises(NoTarget, match="/x/python"):
        one.advance()


def test_harmless_lines_are_no_fault() -> None:
    text = (
        "2020-01-01 00:00:00.1: I tensorflow/core/platform/cpu_feature_guard.cc:142] This TensorFlow binary is "
        "optimized with oneAPI Deep Neural Network Library (oneDNN) to use the following CPU instructions: AVX2"
    )
    one = session(text=text)
    assert one.best_match() is None
    assert one.matched is not None
    assert one.matched.verdict == "harmless"
