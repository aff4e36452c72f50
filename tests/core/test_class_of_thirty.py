"""Thirty broken laptops: the causes, the groups, the messages, and that nobody is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from class_of_thirty import CAUSES, STUDENTS, hidden, write

from tftriage import cases
from tftriage.classes import ClassIndex, Row, groups
from tftriage.classview import write_messages
from tftriage.knowledge import load

KB = load()


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Row]]:
    folder = tmp_path_factory.mktemp("class")
    write(folder)
    index = ClassIndex(folder, KB, tmp_path_factory.mktemp("state"))
    assert index.update() == 30
    rows = {row.file.partition(".")[0]: row for row in index.rows()}
    index.close()
    return folder, rows


def test_every_case_has_its_cause(room: tuple[Path, dict[str, Row]]) -> None:
    assert {number: room[1][number].cause for number, *_ in STUDENTS} == {n: CAUSES[run] for n, run, *_ in STUDENTS}


def test_the_groups_and_what_a_fix_would_cure(room: tuple[Path, dict[str, Row]]) -> None:
    found = {group.cause: group for group in groups(room[1].values())}
    sizes = {cause: len(group.files) for cause, group in found.items()}
    assert sizes == {
        "cudnn-dll-renamed": 8, "protobuf-too-new": 6, "cuda-not-on-path": 5, "notebook-kernel-wrong-env": 5,
        "cuda-version-mismatch": 3, "damaged-install": 3,
    }  # fmt: skip
    assert list(found)[:2] == ["cudnn-dll-renamed", "protobuf-too-new"]
    assert found["cudnn-dll-renamed"].fixes == {"restore-dll-name": 8}
    assert found["protobuf-too-new"].fixes == {"pin-packages": 6}
    assert found["damaged-install"].fixes == {"reinstall-package": 3}
    assert found["cuda-version-mismatch"].fixes == {}


def test_who_has_a_second_cause(room: tuple[Path, dict[str, Row]]) -> None:
    several = {number for number, row in room[1].items() if "cuda-visible-devices" in row.also}
    assert several == {number for number, _, _, changes in STUDENTS if hidden in changes}


def test_nobody_is_named_and_one_person_is_one_token(room: tuple[Path, dict[str, Row]]) -> None:
    folder, rows = room
    owners = {number: owner for number, _, owner, _ in STUDENTS}
    for number, owner in owners.items():
        text = str(cases.read(folder / f"{number}.json"))
        assert owner.lower() not in text.lower()
        if rows[number].owner:  # one of the runs did not ask who the user is
            assert rows[number].owner.isascii() == owner.isascii()
    assert rows["04"].owner == rows["30"].owner
    known = {number: row.owner for number, row in rows.items() if row.owner}
    assert len(set(known.values())) == len({owners[number] for number in known})


def test_every_student_gets_a_message_in_their_language(room: tuple[Path, dict[str, Row]], tmp_path: Path) -> None:
    folder, rows = room
    assert write_messages(folder, list(rows.values()), KB, tmp_path) == 30
    for number, run, owner, _ in STUDENTS:
        text = (tmp_path / f"{number}.txt").read_text(encoding="utf-8")
        lang = rows[number].lang
        assert KB.diagnoses[CAUSES[run]].title[lang] in text
        assert text.startswith(KB.say("message.greeting", lang))
        assert owner not in text
        assert not re.search("[\x00-\x08\x1b]", text)
    assert {n for n, row in rows.items() if row.lang == "zh"} == {
        "01", "02", "03", "06", "07", "10", "13", "15", "19", "21", "24", "27", "30"
    }  # fmt: skip
