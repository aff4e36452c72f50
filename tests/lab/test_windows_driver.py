"""Textual's real driver for Windows, under Wine, with the cell diff: the picture in a terminal, and few bytes.

Wine's own console draws no terminal sequences, so standard output is a pipe (``| cat``); keys still come through the
Windows console. Only letters, Enter and Backspace arrive there.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import labtools
import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
CASE = "tftriage/demos/cuda-not-on-path.json"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_screen_through_windows_own_driver(windows: Any, lang: str) -> None:
    pytest.importorskip("ptyprocess", reason="a pseudo-terminal")
    from tests.pilot import KB
    from tests.terminal import Terminal

    env = {"COLUMNS": "80", "LINES": "24", "PYTHONUTF8": "1", "PYTHONPATH": labtools.wine_path(REPOSITORY)}
    command = ["wine", str(windows.python("3.11")), "-m", "tftriage", "open", CASE, "--lang", lang]
    whole = labtools.wine_environment(windows.prefix, env)
    with Terminal(["sh", "-c", f"{shlex.join(command)} 2>&1 | cat"], whole, cwd=str(REPOSITORY)) as terminal:
        enter = KB.say("walk.enter-diagnosis", lang)
        terminal.wait_for(enter, "cudnn64_7.dll", seconds=120)
        first = terminal.settle(1.0)
        assert first < 8000
        picture = terminal.text
        terminal.press("k", pause=1.0)
        assert 0 < terminal.settle(1.0) - first < 1500
        terminal.press("j", pause=1.0)
        terminal.settle(1.0)
        assert terminal.text == picture
        terminal.press("l", pause=1.0)
        terminal.wait_for(KB.say("walk.enter-diagnosis", "zh" if lang == "en" else "en"))
        terminal.press("l", pause=1.0)
        terminal.wait_for(enter)
        terminal.settle(1.0)
        assert terminal.text == picture
