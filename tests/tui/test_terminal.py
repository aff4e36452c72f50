"""The program in a real terminal: start, paste, switch, leave, on several kinds of terminals."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
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


PICTURE = ("data", "bg", "reverse", "underscore", "strikethrough")


def picture(terminal: Terminal) -> list[list[tuple[object, ...]]]:
    """Every cell as it is seen (what the emulator knows of it; a space has no foreground)."""
    terminal.settle(0.25)
    rows = terminal.screen.buffer
    return [
        [tuple(getattr(rows[y][x], name) for name in PICTURE) for x in range(terminal.screen.columns)]
        for y in range(terminal.screen.lines)
    ]


def same(one: Terminal, other: Terminal, seconds: float = 20.0) -> list[list[tuple[object, ...]]]:
    """Wait until both show the same."""
    end = time.monotonic() + seconds
    while picture(one) != picture(other):
        assert time.monotonic() < end, f"{one.text}\n---\n{other.text}"
    return picture(one)


@pytest.mark.parametrize(
    ("term", "lang"), [("xterm-256color", "zh"), ("screen", "en"), ("linux", "en"), ("vt100", "zh")]
)
def test_sending_what_changed_ends_in_the_same_picture(term: str, lang: str) -> None:
    keys = ("up", "up", "down", "enter", "?", "b", " ", "m", "b", "a", "l", "a", "l", "b")
    seen = []
    with (
        start("open", str(CASE), "--lang", lang, term=term) as diff,
        start("open", str(CASE), "--lang", lang, "--full-redraw", term=term) as full,
    ):
        for terminal in (diff, full):
            terminal.wait_for("7 ", "L")
        same(diff, full)
        for key in keys:
            for terminal in (diff, full):
                terminal.press(key, pause=0.0)
            seen.append(same(diff, full))
        assert len({repr(one) for one in seen}) > 5, "the keys did nothing"
        assert len(diff.raw) * 4 < len(full.raw)
        assert diff.close() == full.close() == 0


def test_a_new_size_is_painted_whole_and_so_is_the_old_one_again() -> None:
    with start("open", str(CASE), "--lang", "en") as terminal:
        terminal.wait_for("Why this matters")
        before = picture(terminal)
        for rows, columns in ((30, 100), (24, 80)):
            terminal.resize(rows, columns)
            end = time.monotonic() + 20.0
            while not terminal.text.split("\n")[rows - 1].endswith("Q quit"):
                assert time.monotonic() < end, terminal.text
                time.sleep(0.1)
        while picture(terminal) != before:
            assert time.monotonic() < end + 20.0, terminal.text
            time.sleep(0.1)
        assert terminal.close() == 0


def test_stopped_and_continued_it_paints_everything_again() -> None:
    with start("open", str(CASE), "--lang", "en") as terminal:
        terminal.wait_for("Why this matters")
        before = picture(terminal)
        os.kill(terminal.process.pid, signal.SIGTSTP)
        end = time.monotonic() + 10
        while psutil.Process(terminal.process.pid).status() != psutil.STATUS_STOPPED and time.monotonic() < end:
            time.sleep(0.02)
        terminal.settle()
        assert terminal.raw.rstrip().endswith(b"\x1b[?1004l")  # the shell has its terminal back
        terminal.clear()
        os.kill(terminal.process.pid, signal.SIGCONT)
        terminal.wait_for("Why this matters", "Q quit")
        assert picture(terminal) == before
        assert terminal.close() == 0


def test_an_arrow_and_a_letter_send_little_and_nothing_sends_nothing() -> None:
    with start("--python", sys.executable, "--lang", "en") as terminal:
        terminal.wait_for("Choose what you see", "Q quit")
        terminal.settle()
        assert len(terminal.raw) < 8000
        for key, most in (("down", 400), ("down", 400), ("pagedown", 1500), ("i", 2000), ("D", 120), ("L", 120)):
            before = len(terminal.raw)
            terminal.press(key)
            terminal.settle()
            assert 0 < len(terminal.raw) - before <= most, (key, terminal.raw[before:])
        before = len(terminal.raw)
        time.sleep(2.5)
        assert len(terminal.raw) == before, "idle, and yet it writes"
        terminal.press("esc")
        assert terminal.close() == 0


def tmux(*arguments: str) -> str:
    """A command to a tmux of our own."""
    command = ["tmux", "-L", f"tftriage-test-{os.getpid()}", "-f", os.devnull, *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=30, check=True).stdout


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux")
def test_inside_tmux() -> None:
    def until(*texts: str) -> str:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            shown = tmux("capture-pane", "-p")
            if all(text in shown for text in texts):
                return shown
            time.sleep(0.1)
        raise AssertionError(f"{texts} did not come; tmux shows:\n{shown}")

    line = shlex.join([sys.executable, "-m", "tftriage", "open", str(CASE), "--lang", "en"])
    env = ["-e", f"PYTHONPATH={ROOT}", "-e", "LC_ALL=C.UTF-8"]
    tmux("-u", "new-session", "-d", "-x", "80", "-y", "24", *env, f"{line}; echo left with $?; sleep 60")
    try:
        first = until("Why this matters", "Q quit")
        assert "│" in first
        tmux("send-keys", "Enter")
        until("By hand", "Fixes")
        tmux("send-keys", "l")
        until(KB.say("diagnosis.fixes", "zh"), "English L")
        tmux("send-keys", "l")
        until("By hand", "Fixes")
        tmux("send-keys", "Left")
        assert until("Why this matters", "Q quit").rstrip() == first.rstrip()
        tmux("send-keys", "q")
        until("left with 0")
    finally:
        tmux("kill-server")


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
