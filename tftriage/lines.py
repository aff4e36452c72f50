"""Questions out, answers in, one line each: for screen readers, dumb terminals, pipes and logs.

Nothing here moves the cursor. What is not typed at a terminal is echoed, so that a log reads like a conversation.
"""

from __future__ import annotations

import sys
import time
import unicodedata
from typing import TextIO

from tftriage.plain import plain

PAUSE = 0.2  # seconds in which the next line of a paste arrives; a person is slower


class End(Exception):
    """The input has ended, or the person wants to leave."""


class Lines:
    """One conversation."""

    def __init__(self, source: TextIO, sink: TextIO) -> None:
        self.source = source
        self.sink = sink
        self.typed = source.isatty()

    def say(self, text: str = "") -> None:
        """A line or several; whatever they hold, they are only text."""
        print(plain(text), file=self.sink, flush=True)

    def ask(self, prompt: str, deliberate: bool = False) -> str:
        """The answer to a prompt, on one line and in plain characters. Raises ``End``.

        ``deliberate``: lines that were typed or pasted before the question was asked are thrown away.
        """
        while deliberate and self.typed and self.waiting(0.0):
            self._line()
        self.sink.write(f"{plain(prompt)}: ")
        self.sink.flush()
        line = self._line()
        if not self.typed:
            self.say(line)
        return line.strip()

    def paste(self) -> str:
        """Several lines, up to an empty one or a dot. Raises ``End`` when there is nothing more at all.

        At a terminal an empty line inside a paste does not end it: the next line is there already.
        """
        kept: list[str] = []
        while True:
            line = self.source.readline()
            if not line:
                if kept:
                    break
                raise End
            text = line.rstrip("\r\n")
            if text.strip() == "." or (not text.strip() and not (self.typed and self.waiting(PAUSE))):
                break
            kept.append(text)
        return "\n".join(kept) + "\n" if kept else ""

    def waiting(self, seconds: float) -> bool:
        """Whether another line is there, or comes within ``seconds``."""
        if sys.platform == "win32":
            import msvcrt

            end = time.monotonic() + seconds
            while not msvcrt.kbhit() and time.monotonic() < end:
                time.sleep(0.02)
            return bool(msvcrt.kbhit())
        import select

        return bool(select.select([self.source], [], [], seconds)[0])

    def _line(self) -> str:
        line = self.source.readline()
        if not line:
            raise End
        return plain(unicodedata.normalize("NFKC", line)).rstrip("\n")
