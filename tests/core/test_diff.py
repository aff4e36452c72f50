"""Two machines side by side: what the tree would answer differently, before everything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import tftriage
from tftriage import cases
from tftriage.cases import Case
from tftriage.cli import main
from tftriage.diff import compare
from tftriage.knowledge import load

KB = load()
DEMOS = Path(tftriage.__file__).parent / "demos"


def demo(name: str) -> Case:
    return cases.read(DEMOS / f"{name}.json")


def changed(case: Case, fact: str, **values: Any) -> Case:
    facts = [msgspec.structs.replace(f, value={**f.value, **values}) if f.name == fact else f for f in case.facts]
    return msgspec.structs.replace(case, facts=tuple(facts))


def test_a_machine_does_not_differ_from_itself() -> None:
    for path in DEMOS.glob("*.json"):
        found = compare(cases.read(path), cases.read(path), KB)
        assert found.rows == ()
        assert found.noise == {}


def test_what_the_walk_came_by_comes_first_and_names_the_values() -> None:
    bad = demo("protobuf")
    packages = dict(next(f.value for f in bad.facts if f.name == "target.packages"))
    for name, version in (("protobuf", "3.20.3"), ("h5py", "2.10.0"), ("numpy", "1.18.5")):
        packages[name] = {**packages[name], "version": version}
    works = {"ok": True, "error": None, "error_type": None, "traceback": "", "log": ""}
    good = changed(changed(bad, "target.packages", **packages), "tf.import", **works)
    found = compare(good, bad, KB)
    assert found.bad == "protobuf-too-new"
    first = found.rows[0]
    assert (first.probe, first.good, first.bad, first.on_path) == ("dependencies_fit", "fit", "protobuf-too-new", True)
    assert ("target.packages", "3.20.3", "4.24.4") in {(c.fact, c.good, c.bad) for c in first.changes}
    assert any("protobuf 4.24.4" in line for line in first.evidence)
    assert [row.on_path for row in found.rows] == sorted((row.on_path for row in found.rows), reverse=True)


def test_what_no_answer_hangs_on_is_noise() -> None:
    good = demo("cuda-not-on-path")
    bad = changed(good, "system.os", release="11", version="10.0.22631")
    found = compare(good, bad, KB)
    assert found.rows == ()
    assert found.noise == {"system.os": 2}


def test_another_home_and_another_moment_are_no_difference() -> None:
    good = demo("cudnn-renamed-utf-8")
    text = msgspec.json.encode(good).decode()
    other = cases.decode(
        text.replace("users\\\\student", "users\\\\somebody").replace("Users\\\\student", "Users\\\\x").encode()
    )
    other = msgspec.structs.replace(other, facts=tuple(msgspec.structs.replace(f, seconds=9.0) for f in other.facts))
    assert compare(good, other, KB).rows == ()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_command_prints_both_forms(lang: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(DEMOS / "found-not-added.json"), str(DEMOS / "protobuf.json"), "--lang", lang]
    assert main(["diff", *words]) == 1
    text = capsys.readouterr().out
    assert text.startswith("x dependencies_fit")
    assert "protobuf 4.24.4" in text
    assert main(["diff", *words, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["rows"][0]["bad"] == "protobuf-too-new"
    assert main(["diff", words[0], words[0], "--lang", lang]) == 0
    assert main(["diff", words[0], "no-such-file"]) == 2
