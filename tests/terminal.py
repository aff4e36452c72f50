"""tftriage in a real pseudo-terminal, read through a terminal emulator: what a person would see at 80x24."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

import ptyprocess
import pyte

KEYS = {
    "enter": "\r",
    "esc": "\x1b",
    "down": "\x1b[B",
    "pagedown": "\x1b[6~",
    "up": "\x1b[A",
    "tab": "\t",
    "backspace": "\x7f",
}


class Terminal:
    """A program in a terminal. ``wait_for`` polls the picture; keys are sent one by one, as fingers do."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        rows: int = 24,
        columns: int = 80,
        term: str = "xterm-256color",
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._lock = threading.Lock()
        # Test runners set COLUMNS and LINES, and these would outrank the terminal's own size.
        ours = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        whole = {**ours, **(env or {}), "TERM": term}
        self.process = ptyprocess.PtyProcess.spawn(list(command), env=whole, cwd=cwd, dimensions=(rows, columns))
        self.raw = b""  # all that was written to the terminal
        self.last = time.monotonic()  # when the last of it came
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                data = self.process.read(65536)
            except (EOFError, OSError):
                return
            self.raw += data
            self.last = time.monotonic()
            # Kitty keyboard sequences are not known to the emulator and would be printed.
            clean = data.replace(b"\x1b[>1u", b"").replace(b"\x1b[<u", b"").replace(b"\x1b[>u", b"")
            with self._lock:
                self._stream.feed(clean)

    @property
    def text(self) -> str:
        """The picture, one line a row."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self.screen.display)

    def wait_for(self, *texts: str, seconds: float = 20.0) -> str:
        """Wait until all ``texts`` are on the screen; ``AssertionError`` with the picture when they do not come."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            shown = self.text
            if all(text in shown for text in texts):
                return shown
            if not self.process.isalive():
                break
            time.sleep(0.05)
        raise AssertionError(f"{texts} did not come within {seconds} s; the screen is:\n{self.text}")

    def settle(self, quiet: float = 0.4) -> int:
        """Wait until nothing comes any more; how many bytes came in all."""
        while True:
            before = len(self.raw)
            time.sleep(quiet)
            if len(self.raw) == before:
                return before

    def resize(self, rows: int, columns: int) -> None:
        """Another size; what was shown is gone."""
        with self._lock:
            self.screen.resize(rows, columns)
        self.clear()
        self.process.setwinsize(rows, columns)

    def clear(self) -> None:
        """Nothing is shown."""
        with self._lock:
            self.screen.erase_in_display(2)

    def press(self, *keys: str, pause: float = 0.15) -> None:
        """Keys by name (``enter``) or as characters, with a pause after each."""
        for key in keys:
            self.process.write(KEYS.get(key, key).encode())
            time.sleep(pause)

    def paste(self, text: str) -> None:
        """A bracketed paste."""
        self.process.write(b"\x1b[200~" + text.encode() + b"\x1b[201~")

    def close(self) -> int | None:
        """Press Q and wait for the end; the exit status."""
        end = time.monotonic() + 10
        if self.process.isalive():
            self.press("q")
        while self.process.isalive() and time.monotonic() < end:
            time.sleep(0.05)
        if self.process.isalive():
            self.process.kill(signal.SIGKILL)  # closing would wait for the thread that reads
        self.process.close(force=True)
        return self.process.exitstatus

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
