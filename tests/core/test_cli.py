"""The commands as a person runs them: exit status, one JSON document, messages in words. Real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CASE = str(Path(__file__).parents[2] / "tftriage" / "demos" / "protobuf.json")
MODULE = "_pywrap_tensorflow_internal"
ERROR = f"ImportError: DLL load failed while importing {MODULE}: The specified module could not be found.\n"


def tftriage(*arguments: str, stdin: bytes = b"", state: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
    if state is not None:
        env["TFTRIAGE_STATE"] = str(state)
    command = [sys.executable, "-m", "tftriage", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, env=env, timeout=120)


def test_match_recognised() -> None:
    ran = tftriage("match", "-", "--json", stdin=ERROR.encode())
    assert ran.returncode == 0
    document = json.loads(ran.stdout)
    assert document["symptoms"][0]["id"] == "dll-load-failed-126"
    assert document["symptoms"][0]["lines"] == [[1, 1]]
    assert document["verdict"] == "fault"


def test_match_unrecognised() -> None:
    ran = tftriage("match", "--json", stdin=b"the weather is fine\n")
    assert ran.returncode == 3
    assert json.loads(ran.stdout) == {"symptoms": [], "verdict": "unrecognised"}


@pytest.mark.parametrize("data", [b"", b"\n\n  \n"])
def test_an_empty_text_is_said_in_words(data: bytes) -> None:
    ran = tftriage("match", "-", stdin=data)
    assert ran.returncode == 2
    assert b"no text" in ran.stderr
    assert ran.stdout == b""


def test_the_language() -> None:
    assert "没有识别出来" in tftriage("match", "--lang", "zh", stdin=b"x\n").stdout.decode()


def test_a_target_that_is_gone() -> None:
    ran = tftriage("diagnose", "--python", "/nowhere/python", "--symptom", "import-fails", "--lang", "en")
    assert ran.returncode == 4
    assert b"no interpreter at that place" in ran.stderr or b"no Python" in ran.stderr


def test_an_interpreter_that_is_not_python(tmp_path: Path) -> None:
    path = tmp_path / "python"
    path.write_text("hello", encoding="utf-8")
    path.chmod(0o755)
    ran = tftriage("diagnose", "--python", str(path), "--symptom", "import-fails", "--lang", "en", "--json")
    assert ran.returncode == 4
    assert ran.stdout == b""


def test_a_case_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"\x00\x01")
    ran = tftriage("diagnose", "--case", str(path))
    assert ran.returncode == 2
    assert b"not a tftriage case" in ran.stderr


def test_a_symptom_or_fix_or_probe_that_is_not_there() -> None:
    for arguments in (("fix", "show", "magic"), ("doctor", "magic"), ("demo", "magic")):
        ran = tftriage(*arguments, "--lang", "en")
        assert ran.returncode == 2
        assert b"magic" in ran.stderr or b"no such" in ran.stderr


def test_usage() -> None:
    assert tftriage("diagnose", "--nonsense").returncode == 2


def test_doctor_lists_the_probes() -> None:
    rows = json.loads(tftriage("doctor", "--list", "--json").stdout)
    assert {"probe", "answers", "needs", "on_request", "ask", "by_hand"} == set(rows[0])
    assert {row["probe"] for row in rows if row["on_request"]} >= {"workload", "usage_low", "kernel_import"}
    listing = tftriage("doctor", "--list", "--lang", "zh").stdout.decode(errors="replace")
    assert all(row["probe"] in listing for row in rows) and "> " in listing
    assert all("unknown" in row["answers"] for row in rows)


def test_one_probe_by_name() -> None:
    ran = tftriage("doctor", "nonascii_names", "--python", sys.executable, "--json", "--quiet")
    assert ran.returncode in (0, 1)
    assert [row["probe"] for row in json.loads(ran.stdout)["probes"]] == ["nonascii_names"]


def test_fix_list_and_an_empty_journal(tmp_path: Path) -> None:
    assert len(json.loads(tftriage("fix", "list", "--json").stdout)) >= 9
    assert json.loads(tftriage("journal", "--json", state=tmp_path).stdout) == []
    assert tftriage("undo", "--lang", "en", state=tmp_path).returncode == 2


def test_run_copies_the_output_and_keeps_the_status() -> None:
    code = f"import sys; print('out'); sys.stderr.write({ERROR!r}); sys.exit(7)"
    ran = tftriage("run", "--lang", "en", "--", sys.executable, "-c", code)
    assert ran.returncode == 7
    assert ran.stdout.split() == [b"out"]
    assert ran.stderr.startswith(b"ImportError: DLL load failed")
    assert b"dll-load-failed-126" in ran.stderr


def test_run_says_nothing_when_the_command_succeeds() -> None:
    ran = tftriage("run", "--", sys.executable, "-c", "print(1)")
    assert (ran.returncode, ran.stdout.split(), ran.stderr) == (0, [b"1"], b"")


def test_kb_check_is_clean() -> None:
    ran = tftriage("kb", "check", "--json")
    assert json.loads(ran.stdout) == {"problems": []}
    assert ran.returncode == 0


@pytest.mark.parametrize(
    "verb",
    [
        ["match", "-", "--json"], ["doctor", "--list"], ["diagnose", "--case", CASE], ["fix", "list"], ["journal"],
        ["demo", "--list"], ["kb", "show"], ["undo"], ["dlls", "no-such-file"], ["--version"],
    ],
    ids=lambda verb: verb[0],
)  # fmt: skip
def test_a_verb_never_imports_textual(verb: list[str], tmp_path: Path) -> None:
    code = (
        "import sys\ntry:\n from tftriage.cli import main; main(sys.argv[1:])\n"
        "except SystemExit: pass\nprint('textual' in sys.modules)"
    )
    env = {**os.environ, "TFTRIAGE_STATE": str(tmp_path)}
    command = [sys.executable, "-c", code, *verb]
    ran = subprocess.run(command, input=ERROR.encode(), capture_output=True, timeout=60, env=env)
    assert ran.stdout.split()[-1] == b"False"
