"""A paste that arrives as key presses becomes a paste, wherever it lands.

Windows 10's console and ssh into it have no bracketed paste: a pasted error would press its letters as commands.
Keys that follow one another faster than fingers can are held back until the burst ends; a burst of printable
characters is text, anything shorter is passed on as the keys it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from textual import events
from textual.timer import Timer

GAP = 0.02  # seconds: key repeat sends every 30 ms, a paste several characters a millisecond
BURST = 6  # characters: two people do not type six keys within one gap of each other


class Bursts:
    """Collects key events; hands on either the single keys or one ``Paste``."""

    def __init__(
        self,
        set_timer: Callable[[float, Callable[[], Awaitable[None]]], Timer],
        deliver: Callable[[events.Event], Awaitable[None]],
    ) -> None:
        self._set_timer = set_timer
        self._deliver = deliver
        self._held: list[events.Key] = []
        self._timer: Timer | None = None

    async def key(self, event: events.Key) -> None:
        """Take one key press."""
        if not _is_text(event):
            await self.flush()
            await self._deliver(event)
            return
        self._held.append(event)
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._set_timer(GAP, self.flush)

    async def flush(self) -> None:
        """The burst is over: deliver what was held."""
        held, self._held = self._held, []
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if len(held) >= BURST:
            await self._deliver(events.Paste("".join(_character(event) for event in held)))
            return
        for event in held:
            await self._deliver(event)


def _is_text(event: events.Key) -> bool:
    return event.is_printable or event.key in ("enter", "tab")


def _character(event: events.Key) -> str:
    return "\n" if event.key == "enter" else "\t" if event.key == "tab" else event.character or ""
