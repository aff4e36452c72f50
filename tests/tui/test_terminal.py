"""The program in a real terminal: start, paste, switch, leave, on several kinds of terminals."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

pytest.importorskip("ptyprocess", reason="a pseudo-terminal")
if sys.platform == "win32":
    pytest.skip("a pseudo-terminal", allow_module_level=True)

from tests.pilot import KB
from tests.terminal import Terminal
from tests.tui.test_start import ERROR

CASE = Path(__file__).parents[2] / "tftriage" / "demos" / "protobuf.json"
ROOT = Path(__file__).parents[2]
Start = Callable[..., Terminal]


def start(*arguments: str, term: str = "xterm-256color", **env: str) -> Terminal:
    """The program as a person starts it, in English."""
    command = [sys.executable, "-m", "tftriage", *arguments]
    return Terminal(command, {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", **env}, term=term)


@pytest.mark.parametrize("term", ["xterm-256color", "screen", "linux", "vt100"])
def test_it_starts_in_any_terminal_and_the_keys_are_visible(term: str) -> None:
    with start("open", str(CASE), "--lang", "en", term=term) as terminal:
        text = terminal.wait_for("Enter shows what to do", "Enter what to do", "Q quit")
        assert text.isascii() == (term in ("linux", "vt100"))
        terminal.press("enter")
        terminal.wait_for("By hand", "Fixes")
        assert terminal.close() == 0


def test_a_paste_with_escapes_inside_presses_no_key() -> None:
    with start("--python", sys.executable, "--lang", "en") as terminal:
        terminal.wait_for("Choose what you see")
        terminal.paste("\x1b[31mq\x1b[0mq\x1b\rq\x1bOQ\x1b[B" + ERROR)
        terminal.wait_for("Looks like", "(126)")
        assert "中文 L" in terminal.text  # F2 was in it
        assert terminal.process.isalive()
        assert terminal.close() == 0


def test_an_unbracketed_paste_presses_no_key() -> None:
    with start("--python", sys.executable, "--lang", "en") as terminal:
        terminal.wait_for("Choose what you see")
        terminal.process.write(ERROR.replace("\n", "\r").encode())
        terminal.wait_for("Looks like", "(126)")
        assert terminal.close() == 0


def test_bytes_that_are_no_utf8_are_survived() -> None:
    with start("--python", sys.executable, "--lang", "en") as terminal:
        terminal.wait_for("Choose what you see")
        terminal.process.write("找不到指定的模块".encode("gbk"))
        time.sleep(0.5)
        terminal.press("l")
        terminal.wait_for("English L")
        assert terminal.close() == 0


def test_the_language_switches_and_the_columns_stay_straight() -> None:
    with start("open", str(CASE), "--lang", "en") as terminal:
        terminal.wait_for("Enter shows what to do")
        terminal.press("l")
        text = terminal.wait_for(KB.say("walk.enter-diagnosis", "zh"), "English L")
        assert "│" in text
        column = {index for line in terminal.screen.display for index, cell in enumerate(cells(line)) if cell == "│"}
        assert len(column) == 1


def cells(line: str) -> list[str]:
    """A row of the emulator by cells (its display keeps an empty cell behind a wide character)."""
    found: list[str] = []
    for character in line:
        found.append(character)
        if ord(character) > 0x2E7F:
            found.append("")
    return found


def test_without_colour_no_colour_is_sent() -> None:
    with start("open", str(CASE), "--lang", "en", NO_COLOR="1") as terminal:
        terminal.wait_for("Enter shows what to do")
        terminal.press("enter")
        terminal.wait_for("Fixes")
        codes = {code for found in re.findall(rb"\x1b\[([\d;]*)m", terminal.raw) for code in found.split(b";")}
        assert not codes & {*(b"%d" % n for n in (*range(30, 39), *range(40, 49), *range(90, 98), *range(100, 108)))}
        assert b"7" in codes  # reverse video marks the keys


def test_leaving_while_an_import_hangs_waits_for_nothing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    package = tmp_path / "tensorflow"
    package.mkdir()
    (package / "__init__.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    with start("--python", sys.executable, "--cwd", str(tmp_path), "--lang", "en") as terminal:
        terminal.wait_for("Choose what you see")
        terminal.press("r")
        terminal.wait_for("Importing TensorFlow")
        family = children(terminal.process.pid, lambda found: any("import" in p.cmdline() for p in found))
        begun = time.monotonic()
        terminal.process.write(b"q")
        while terminal.process.isalive() and time.monotonic() - begun < 10:
            time.sleep(0.02)
        assert not terminal.process.isalive(), "the import would take 600 s; how soon it leaves is for benchmarks/"
        gone, alive = psutil.wait_procs(family, timeout=2)
        assert not alive and gone


def children(pid: int, enough: Callable[[list[psutil.Process]], bool]) -> list[psutil.Process]:
    """All that a process has started, once there is enough of it."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        found = psutil.Process(pid).children(recursive=True)
        try:
            if enough(found):
                return found
        except psutil.NoSuchProcess:
            pass
        time.sleep(0.05)
    raise AssertionError(f"only {found}")


def test_a_pipe_is_read_and_the_keys_come_from_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "error.txt").write_text(ERROR, encoding="utf-8")
    line = f"cat error.txt | {sys.executable} -m tftriage - --python {sys.executable} --lang en"
    with Terminal(["sh", "-c", line], {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}, cwd=str(tmp_path)) as terminal:
        terminal.wait_for("Looks like", "(126)")
        terminal.press("l")
        terminal.wait_for("English L")
        assert terminal.close() == 0


def test_without_a_terminal_it_says_what_to_use(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tftriage", "--lang", "en"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, cwd=ROOT, env={**os.environ},
    )  # fmt: skip
    assert done.returncode == 2 and "tftriage diagnose" in done.stderr
