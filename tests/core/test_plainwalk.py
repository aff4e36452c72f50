"""The triage line by line: in a pipe, at a dumb terminal, in both languages; a fix needs its typed word."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import pytest

from tests.pilot import KB, Machine, case_of
from tests.tui.places import on_a_machine
from tftriage import cases
from tftriage.facts import Fact, Facts
from tftriage.fixes.journal import Journal
from tftriage.lines import End, Lines
from tftriage.session import Session
from tftriage.talk import Talk

ROOT = Path(__file__).parents[2]
DEMOS = ROOT / "tftriage" / "demos"


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFTRIAGE_STATE", str(tmp_path / "state"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def converse(session: Session, *answers: str, lang: str = "en") -> str:
    """What is said to somebody who types ``answers``."""
    sink = io.StringIO()
    talk = Talk(session, Lines(io.StringIO("".join(f"{a}\n" for a in answers)), sink), Namespace(lang=lang))
    with pytest.raises(End):
        talk.hold()
    return sink.getvalue()


def replayed(name: str) -> Session:
    return cases.replay(case_of(name), KB)


def live(name: str) -> Session:
    case = case_of(name)
    return Session(KB, Machine(Facts(case.facts)), case.target)


@pytest.mark.parametrize(("lang", "quit"), [("en", "quit"), ("zh", "退出"), ("zh", "quit"), ("en", "q")])
def test_a_pasted_error_is_followed_to_its_cause(lang: str, quit: str) -> None:
    lines = [line for line in case_of("protobuf").text.split("\n") if line.strip()]
    said = converse(live("protobuf"), *lines, ".", "", quit, lang=lang)
    assert KB.say("plain.read", lang, lines=len(lines)) in said
    assert KB.diagnoses["protobuf-too-new"].title[lang] in said
    assert KB.say("plain.looking", lang, n=2, ask=KB.nodes["dll-import/python"].ask[lang]) in said
    assert "protobuf 4.24.4" in said and "{" not in said.replace("{numbers}", "")


def test_without_an_error_the_list_is_searched_by_words_and_chosen_by_number() -> None:
    said = converse(live("notebook"), "", "notebook does not find tensorflow", "1", "q")
    assert KB.say("start.choose", "en") in said and KB.say("plain.found", "en", query="notebook")[:9] in said
    assert KB.diagnoses["notebook-kernel-wrong-env"].title["en"] in said


def test_what_cannot_be_meant_is_said_and_asked_again() -> None:
    said = converse(live("notebook"), "", "999", "zzzz qqqq", "apply", "?", "q")
    assert "There is no number 999" in said and "Nothing found for" in said
    assert "Not understood" in said and KB.say("plain.help", "en") in said


def test_a_question_for_the_person_by_hand_back_and_answer() -> None:
    session = live("protobuf")
    session.facts = Facts()
    session.source = Machine(Facts([Fact("system.os", "ok", {"system": "Linux"})]))
    said = converse(session, "", "5", "hand", "77", "back", "q")
    assert KB.say("plain.give", "en") in said and "Not understood: “77”" in said
    shown = [node for node in KB.nodes.values() if node.ask["en"] in said and node.by_hand["en"].strip()[:40] in said]
    assert shown and all(node.why["en"].strip()[:30] in said for node in shown)


def test_a_recorded_case_is_told_again_and_changes_nothing() -> None:
    said = converse(replayed("cudnn-renamed-utf-8"), "1", "apply", "report html", "save", "back", "q")
    assert KB.diagnoses["cudnn-dll-renamed"].title["en"] in said
    assert KB.say("fix.recorded", "en") in said and "Not understood: “apply”" in said
    assert [path.suffix for path in sorted(Path().glob("tftriage-*"))] == [".json", ".html"]
    assert not Journal().entries()


def test_the_language_can_be_changed_in_the_middle() -> None:
    said = converse(replayed("protobuf"), "language", "返回", "退出")
    assert KB.say("plain.help", "zh") in said and KB.say("plain.give", "zh") in said


@pytest.mark.parametrize("word", ["yes", "y", "", "1", "undo"])
def test_only_the_typed_word_applies(word: str, tmp_path: Path) -> None:
    written = tmp_path / "written.py"
    with on_a_machine(written) as triage:
        said = converse(triage.session, "1", "1", word, "q")
        assert KB.say("plain.unchanged", "en") in said
    assert not written.exists() and not Journal().entries()


@pytest.mark.parametrize(("lang", "yes", "undo"), [("en", "apply", "undo"), ("zh", "应用", "撤销")])
def test_applied_verified_and_taken_back_by_typed_words(lang: str, yes: str, undo: str, tmp_path: Path) -> None:
    written = tmp_path / "written.py"
    with on_a_machine(written) as triage:
        said = converse(triage.session, "1", "1", yes, "", "q", lang=lang)
        assert written.exists()
        assert KB.say("verified.not-cured", lang) in said, "the machine answers as before"
    with on_a_machine(tmp_path / "second.py") as triage:
        said = converse(triage.session, "1", "1", yes, undo, "q", lang=lang)
        assert not (tmp_path / "second.py").exists()
        assert KB.say("undo.done", lang, entry=Journal().entries()[-1].id) in said
    assert [entry.status for entry in Journal().entries()] == ["applied", "undone"]


def test_control_characters_of_a_case_stay_text() -> None:
    session = live("protobuf")
    said = converse(session, "\x1b[2J\x1b]0;title\x07 DLL load failed \x00", ".", "\x1b[31mzz", "q")
    assert "\x1b" not in said and "\x07" not in said and "\x00" not in said


# --- as a program ------------------------------------------------------------------------------------------


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    return {
        **os.environ, "PYTHONUTF8": "1", "PYTHONPATH": str(ROOT), "TFTRIAGE_STATE": str(tmp_path / "state"), **more,
    }  # fmt: skip


def test_a_pipe_is_a_conversation_and_its_log(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tftriage", "open", str(DEMOS / "protobuf.json"), "--plain", "--lang", "zh"]
    ran = subprocess.run(command, input=b"1\n", capture_output=True, env=environment(tmp_path), timeout=120)
    text = ran.stdout.decode()
    assert ran.returncode == 1 and ran.stderr == b""
    assert KB.say("plain.cause", "zh", title=KB.diagnoses["protobuf-too-new"].title["zh"]) in text
    assert "protobuf==3.20.3" in text and KB.say("plain.end", "zh") in text
    assert ": 1\n" in text.replace("\r\n", "\n"), "the answer is echoed, so that a log can be read"


def test_the_screen_is_not_loaded_for_it(tmp_path: Path) -> None:
    code = (
        "import sys; from tftriage.cli import main; main(['demo', 'protobuf', '--plain']); "
        "sys.exit(any(name.split('.')[0] == 'textual' for name in sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, env=environment(tmp_path), timeout=60,
                         capture_output=True)  # fmt: skip
    assert ran.returncode == 0, ran.stderr


needs_pty = pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")


class Dumb:
    """The program at a terminal that cannot move its cursor."""

    def __init__(self, tmp_path: Path, *arguments: str, **more: str) -> None:
        import ptyprocess

        command = [sys.executable, "-m", "tftriage", *arguments]
        env = environment(tmp_path, LC_ALL="C.UTF-8", **more)
        self.process = ptyprocess.PtyProcess.spawn(command, env=env, dimensions=(24, 80))
        self.raw = b""

    def wait_for(self, text: str, seconds: float = 30.0) -> str:
        import select

        end = time.monotonic() + seconds
        while text not in self.raw.decode(errors="replace"):
            assert time.monotonic() < end, self.raw.decode(errors="replace")
            if select.select([self.process.fd], [], [], 0.2)[0]:
                try:
                    self.raw += os.read(self.process.fd, 65536)
                except OSError:
                    raise AssertionError(self.raw.decode(errors="replace")) from None
        return self.raw.decode(errors="replace")

    def type(self, text: str) -> None:
        self.process.write(text.encode())


@needs_pty
def test_a_dumb_terminal_gets_it_unasked_and_no_escape_is_ever_sent(tmp_path: Path) -> None:
    dumb = Dumb(tmp_path, "--case", str(DEMOS / "protobuf.json"), "--lang", "en", TERM="dumb")
    dumb.wait_for("What now?")
    dumb.type("1\n")
    dumb.wait_for(KB.say("fix.recorded", "en")[:40])
    dumb.type("quit\n")
    dumb.wait_for("End of the input")
    assert b"\x1b" not in dumb.raw
    assert dumb.process.wait() == 1


@needs_pty
def test_an_empty_line_inside_a_paste_does_not_end_it(tmp_path: Path) -> None:
    dumb = Dumb(tmp_path, "--plain", "--python", sys.executable, "--lang", "en", TERM="xterm-256color")
    dumb.wait_for("An empty line at once shows a list.")
    time.sleep(0.3)
    dumb.type("Traceback (most recent call last):\n\nImportError: DLL load failed while importing "
              "_pywrap_tensorflow_internal: The specified module could not be found.\n\n")  # fmt: skip
    said = dumb.wait_for("Which one?")
    assert "Read: 3 lines." in said and "Looks like" in said
    dumb.type("quit\n")
    dumb.wait_for("End of the input")
    assert b"\x1b" not in dumb.raw
