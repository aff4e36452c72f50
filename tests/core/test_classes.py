"""A class: what it reads, how it groups, what it tells each student, and what it costs the second time."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

import tftriage
from tftriage import cases
from tftriage.classes import ClassIndex, Row, groups
from tftriage.classview import cells, page, table
from tftriage.cli import main
from tftriage.knowledge import load
from tftriage.message import language_of, message
from tftriage.plain import plain

KB = load()
DEMOS = Path(tftriage.__file__).parent / "demos"
CAUSES = {
    "cuda-not-on-path": "cuda-not-on-path",
    "cudnn-renamed-gbk": "cudnn-dll-renamed",
    "cudnn-renamed-utf-8": "cudnn-dll-renamed",
    "damaged-install": "damaged-install",
    "found-not-added": "cuda-version-mismatch",
    "notebook": "notebook-kernel-wrong-env",
    "protobuf": "protobuf-too-new",
}


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the recorded cases, one file that is no case and one that says nothing."""
    monkeypatch.setenv("TFTRIAGE_STATE", str(tmp_path / "state"))
    folder = tmp_path / "class"
    shutil.copytree(DEMOS, folder)
    (folder / "broken.json").write_bytes(b'{"format": "tftriage-case", "facts": [\x1b[2J')
    (folder / "empty.json").write_text('{"format": "tftriage-case"}', encoding="utf-8")
    (folder / "notes.txt").write_text("not looked at", encoding="utf-8")
    return folder


def rows_of(folder: Path) -> dict[str, Row]:
    index = ClassIndex(folder, KB)
    try:
        index.update()
        return {row.file: row for row in index.rows()}
    finally:
        index.close()


def test_each_case_has_its_cause_and_what_is_no_case_says_why(room: Path) -> None:
    rows = rows_of(room)
    assert {name: rows[f"{name}.json"].cause for name in CAUSES} == CAUSES
    assert "not a tftriage case" in rows["broken.json"].error
    assert (rows["empty.json"].cause, rows["empty.json"].asks) == ("", "symptom")
    assert "notes.txt" not in rows
    first = rows["cuda-not-on-path.json"]
    assert (first.system, first.tensorflow, first.python, first.fix) == ("Windows 10", "2.3.1", "3.8.10", "path-user")
    assert first.gpu == "GeForce GTX 1060 6GB"
    assert rows["cudnn-renamed-gbk.json"].lang == "zh"


def test_who_shares_a_cause_stands_together_the_most_frequent_first(room: Path) -> None:
    found = groups(rows_of(room).values())
    assert (found[0].cause, found[0].files) == (
        "cudnn-dll-renamed",
        ("cudnn-renamed-gbk.json", "cudnn-renamed-utf-8.json"),
    )
    assert found[0].fixes == {"restore-dll-name": 2}
    assert sorted(file for group in found for file in group.files) == sorted(rows_of(room))


def test_who_has_several_is_seen(room: Path) -> None:
    case = json.loads((DEMOS / "protobuf.json").read_text(encoding="utf-8"))
    for fact in case["facts"]:
        if fact["name"] == "env.process":
            fact["value"]["CUDA_VISIBLE_DEVICES"] = "-1"
    (room / "two.json").write_text(json.dumps(case), encoding="utf-8")
    rows = rows_of(room)
    assert rows["two.json"].cause == "protobuf-too-new"
    assert rows["two.json"].also == ("cuda-visible-devices",)
    assert rows["cudnn-renamed-gbk.json"].also == ()


def test_only_what_changed_is_read_again_and_marks_stay(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = ClassIndex(room, KB)
    assert index.update() == 9
    assert index.update() == 0
    index.mark("notebook.json", True, "写过邮件")
    shutil.copy(room / "protobuf.json", room / "notebook.json")
    os.utime(room / "notebook.json", ns=(1, 1))
    (room / "broken.json").unlink()
    assert index.update() == 1
    rows = {row.file: row for row in index.rows()}
    assert (rows["notebook.json"].cause, rows["notebook.json"].handled) == ("protobuf-too-new", True)
    assert rows["notebook.json"].note == "写过邮件"
    assert "broken.json" not in rows
    index.close()
    again = ClassIndex(room, msgspec.structs.replace(KB, digest="another"))
    assert again.update(at_most=3) == 3
    again.close()


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main(words)
    return status, capsys.readouterr().out


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_command_as_text_csv_and_json(room: Path, lang: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["class", str(room), "--lang", lang, "--quiet"]
    status, text = run(words, capsys)
    assert status == 1
    assert KB.diagnoses["cudnn-dll-renamed"].title[lang] in text
    assert "2/2" in text or "2 of 2" in text
    assert "\x1b" not in text
    status, text = run([*words, "--csv"], capsys)
    written = list(csv.reader(io.StringIO(text)))
    assert len(written) == 10
    assert {len(line) for line in written} == {8}
    status, text = run([*words, "--json"], capsys)
    document = json.loads(text)
    assert len(document["cases"]) == 9
    assert document["groups"][0]["cause"] == "cudnn-dll-renamed"


def test_against_a_machine_that_works_names_the_questions(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["class", str(room), "--quiet", "--json", "--against", str(DEMOS / "found-not-added.json")]
    _, text = run(words, capsys)
    by_file = {row["file"]: row for row in json.loads(text)["cases"]}
    assert by_file["found-not-added.json"]["differs"] == []
    assert any("protobuf-too-new" in line for line in by_file["protobuf.json"]["differs"])


def test_a_folder_that_is_not_there_and_one_without_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["class", str(tmp_path / "gone"), "--lang", "en"]) == 4
    assert main(["class", str(tmp_path), "--lang", "en"]) == 0
    assert "no case" in capsys.readouterr().err


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_page_stands_alone_and_nothing_of_a_case_is_markup(room: Path) -> None:
    rows = list(rows_of(room).values())
    nasty = '<script>alert(1)</script><img src=x onerror=y>"\x1b[2J\u202e'
    rows.append(Row(file=nasty, owner=nasty, cause="protobuf-too-new", note=nasty, error=""))
    for lang in ("en", "zh"):
        made = page(rows, KB, lang, {nasty: [nasty]})
        reader = Reader()
        reader.feed(made)
        tags = {tag for tag, _ in reader.tags}
        assert tags <= {
            "html", "meta", "title", "style", "h1", "h2", "p", "section", "span", "table", "thead", "tbody", "tr", "th",
            "td", "br",
        }  # fmt: skip
        assert not any(name in attrs for _, attrs in reader.tags for name in ("src", "href", "onerror"))
        assert not re.search("https?://|@import|url\\(", made)
        assert "<script>alert(1)</script>" in reader.words
        assert plain(made) == made
        for diagnosis in set(CAUSES.values()):
            assert KB.diagnoses[diagnosis].title[lang] in reader.words
        assert [tag for tag, _ in reader.tags].count("tr") == len(rows) + len(groups(rows))


def test_the_command_writes_the_page(room: Path, tmp_path: Path) -> None:
    assert main(["class", str(room), "--quiet", "--html", str(tmp_path / "out" / "class.html")]) == 1
    assert (tmp_path / "out" / "class.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_cell_is_no_formula() -> None:
    rows = [Row(file="=cmd|' /C calc'!A0.json", note="@x", owner="+1")]
    line = table(rows, KB, "en").splitlines()[1]
    assert not re.search('(^|,)"?[=@+]', line)
    assert len(cells(rows[0], KB, "en")) == 8


# --- messages ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CAUSES)
def test_every_student_gets_a_message_in_their_language_that_can_be_sent(name: str) -> None:
    session = cases.replay(cases.read(DEMOS / f"{name}.json"), KB)
    for lang in ("en", "zh"):
        text = message(session, lang)
        assert KB.diagnoses[CAUSES[name]].title[lang] in text
        assert not re.search(r"\{\w+\}", text.replace("{connection_file}", ""))
        assert plain(text) == text
        assert KB.say("message.greeting", lang) in text
    assert language_of(session) == ("zh" if name == "cudnn-renamed-gbk" else "en")


def test_the_message_holds_the_commands_and_says_where_a_name_was_taken_out() -> None:
    case = cases.read(DEMOS / "protobuf.json")
    text = json.dumps(msgspec.to_builtins(case)).replace("/home/student", "/home/alice")
    redacted = cases.redact(msgspec.convert({**json.loads(text), "redacted": False}, cases.Case), b"k" * 32)
    made = message(cases.replay(redacted, KB), "en", redacted.tokens)
    assert "-m pip install" in made
    assert "protobuf==3.20.3" in made
    assert "alice" not in made
    told = next(line for line in made.splitlines() if "taken out" in line)
    assert re.search(r"user-[0-9a-f]{8}", told)


def test_an_open_question_is_asked_and_health_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    case = cases.read(DEMOS / "notebook.json")
    asked = msgspec.structs.replace(case, facts=tuple(f for f in case.facts if f.name.startswith("paste.")))
    session = cases.replay(asked, KB)
    assert session.diagnosis is None
    assert "?" in message(session, "en")
    path = tmp_path / "asked.json"
    cases.write(asked, path)
    assert main(["message", str(path), "--in", "zh"]) == 3
    assert "你好" in capsys.readouterr().out
    assert main(["message", str(DEMOS / "protobuf.json"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["fix"] == "pin-packages"
    assert main(["message", str(tmp_path / "gone")]) == 2


def test_messages_are_written_for_the_whole_class(room: Path, tmp_path: Path) -> None:
    assert main(["class", str(room), "--quiet", "--messages", str(tmp_path / "out")]) == 1
    written = {path.stem: path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir()}
    assert sorted(written) == sorted([*CAUSES, "empty"])
    assert "你好" in written["cudnn-renamed-gbk"]
    assert "Hello" in written["protobuf"]
