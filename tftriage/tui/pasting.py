"""A paste is text, whatever is in it.

Textual 8.2.8 reads a bracketed paste character by character and takes an ESC inside for the end of it: what follows
would be pressed as keys. Here everything between the brackets is found by searching for the end mark, so a paste
with terminal sequences stays one paste, and 5 MB take milliseconds instead of seconds.

Where a terminal has no brackets (Windows 10's own console, ssh into it) a paste is typed: many printable characters in
one read, which no fingers do. That becomes a ``Typed`` paste at once, not a thousand key events.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

import textual
from textual import events
from textual._time import get_time
from textual._xterm_parser import XTermParser
from textual.message import Message

KNOWN = ("8.2.8",)  # the releases whose parser this was written and tested for
START, END = "\x1b[200~", "\x1b[201~"
MARK = len(START)
PATIENCE = 5.0  # seconds without more than single keys, after which a paste that never ends is taken for ended
BURST = 6  # printable characters in one read: more than fingers do
DIFFERENT = 3  # of them, so that a held-down key on a slow line is still a key
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[ -~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_REMNANT = re.compile(r"\x1b?\[20[01]~")  # a console that does not know the brackets may type them


class Typed(events.Paste):
    """A part of a paste that arrived without brackets; more of it may follow at once."""


class PasteParser(XTermParser):
    """Textual's parser behind a look-out for pastes. A mark may be split between two reads."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._pasted: list[str] | None = None
        self._end = ""  # the last characters of the paste so far: the end mark may have begun in them
        self._before = ""  # the last characters that the other parser has seen: the start mark may have
        self._deadline = 0.0

    def feed(self, data: str) -> Iterable[Message]:
        """Messages of one read."""
        if not data:
            yield from self._finish()
            yield from super().feed(data)
            return
        while data:
            if self._pasted is not None:
                data, paste = self._inside(data)
                if paste is not None:
                    yield paste
                continue
            seen = self._before + data
            at = seen.find(START)
            if at < 0:
                self._before = seen[1 - MARK :]
                yield from self._keys(data)
                return
            begun = len(self._before) - at  # > 0: that much of the mark was read before
            if begun > 0:
                self._forget_sequence()
            else:
                yield from self._keys(data[:-begun] if begun else "")
            data = seen[at + MARK :]
            self._before, self._pasted, self._end = "", [], ""
            self._deadline = get_time() + PATIENCE

    def tick(self) -> Iterable[Message]:
        """Called several times a second: the end of patience."""
        if self._pasted is not None and get_time() >= self._deadline:
            yield from self._finish()
        yield from super().tick()

    def _inside(self, data: str) -> tuple[str, Message | None]:
        """Take what belongs to the paste; the rest of the read, and the paste when it is whole."""
        assert self._pasted is not None
        if len(data) > 1:
            self._deadline = get_time() + PATIENCE
        seen = self._end + data
        at = seen.find(END)
        if at < 0:
            keep = max(0, len(seen) - MARK + 1)
            self._pasted.append(seen[:keep])
            self._end = seen[keep:]
            return "", None
        self._pasted.append(seen[:at])
        self._end = ""
        return seen[at + MARK :], next(iter(self._finish()), None)

    def _finish(self) -> Iterable[Message]:
        if self._pasted is not None:
            text = "".join([*self._pasted, self._end])
            self._pasted, self._end = None, ""
            yield events.Paste(text.replace("\x00", ""))

    def _keys(self, data: str) -> Iterable[Message]:
        """What is not in brackets: a typed paste, or keys."""
        typed = _COLOUR.sub("", data)
        text = _SEQUENCE.sub("", typed)
        printable = [character for character in text[: 64 * BURST] if character.isprintable()]
        if len(printable) < BURST or len(set(printable)) < DIFFERENT:
            yield from super().feed(data) if data else ()
            return
        for sequence in _SEQUENCE.findall(typed):  # the terminal's own answers among it
            if sequence not in (START, END):
                yield from super().feed(sequence)
        yield Typed(_REMNANT.sub("", text).replace("\x00", "").replace("\x1b", ""))

    def _forget_sequence(self) -> None:
        """The other parser waits for the rest of what turned out to be our mark."""
        self._tokens.clear()
        self._gen = self.parse(self._tokens.append)
        self._awaiting = next(self._gen)
        self._timeout_time = None


def install() -> bool:
    """Give the driver of this system our parser; ``False`` when Textual is one that we do not know."""
    if textual.__version__ not in KNOWN:
        return False
    import sys

    if sys.platform == "win32":
        from textual.drivers import win32

        win32.XTermParser = PasteParser
        win32.EventMonitor.run = _restarting(win32.EventMonitor.run)  # type: ignore[method-assign]
    else:
        from textual.drivers import linux_driver

        linux_driver.XTermParser = PasteParser  # type: ignore[attr-defined]
        linux_driver.getincrementaldecoder = _lenient  # type: ignore[attr-defined]
    return True


def _lenient(encoding: str) -> Any:
    """A byte that is not UTF-8 (a terminal set to GBK) is a replacement character, not the end of the program."""
    from codecs import getincrementaldecoder

    return partial(getincrementaldecoder(encoding), errors="replace")


def _restarting(run: Any) -> Any:
    """The thread that reads keys on Windows ends at a surrogate pair split between two reads: start it again."""
    if getattr(run, "restarts", False):
        return run

    def again(monitor: Any) -> None:
        while not monitor.exit_event.is_set():
            run(monitor)

    again.restarts = True  # type: ignore[attr-defined]
    return again
