"""A paste that arrives as key presses becomes a paste, wherever it lands.

Windows 10's console and ssh into it have no bracketed paste: a pasted error would press its letters as commands.
Keys that follow one another faster than fingers can are held back until the burst ends; a burst of printable
characters is text, anything shorter is passed on as the keys it was. What the parser has already seen as one read of
text (``Typed``) is held back with them, so a long paste in many reads is still one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from textual import events
from textual.timer import Timer

from tftriage.tui.pasting import BURST, DIFFERENT, Typed

GAP = 0.02  # seconds: key repeat sends every 30 ms, a paste several characters a millisecond
LONG_GAP = 0.15  # after a read full of text: the next read of the same paste may be late on a slow line


class Bursts:
    """Collects keys and typed text; hands on either the single keys or one ``Paste``."""

    def __init__(
        self,
        set_timer: Callable[[float, Callable[[], Awaitable[None]]], Timer],
        deliver: Callable[[events.Event], Awaitable[None]],
    ) -> None:
        self._set_timer = set_timer
        self._deliver = deliver
        self._held: list[events.Key | Typed] = []
        self._timer: Timer | None = None

    async def take(self, event: events.Key | Typed) -> None:
        """Take one key press, or one read of text."""
        inside = any(isinstance(held, Typed) for held in self._held)
        if isinstance(event, events.Key) and not _is_text(event):
            if inside:
                return  # a control character in the text
            await self.flush()
            await self._deliver(event)
            return
        self._held.append(event)
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._set_timer(LONG_GAP if inside or isinstance(event, Typed) else GAP, self.flush)

    async def flush(self) -> None:
        """The burst is over: deliver what was held."""
        held, self._held = self._held, []
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        text = "".join(_text(event) for event in held)
        if any(isinstance(event, Typed) for event in held) or (len(held) >= BURST and len(set(text)) >= DIFFERENT):
            await self._deliver(events.Paste(text))
            return
        for event in held:
            await self._deliver(event)


def _is_text(event: events.Key) -> bool:
    return event.is_printable or event.key in ("enter", "tab")


def _text(event: events.Key | Typed) -> str:
    if isinstance(event, Typed):
        return event.text
    return "\n" if event.key == "enter" else "\t" if event.key == "tab" else event.character or ""
