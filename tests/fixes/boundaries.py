"""Boundaries at which a process dies, as by a power cut; laid round the program's functions from outside.

A boundary is before and after each line of the journal (and in the middle of one) and each wrapped function.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from tftriage.fixes import disk, effects, journal


class Boundaries:
    """Counts boundaries and ends the process at number ``at`` (0: never). ``passed`` hears the count at each."""

    def __init__(self, at: int, passed: Callable[[int], object] = lambda count: None) -> None:
        self.at, self.count, self.passed = at, 0, passed

    def cross(self) -> None:
        """One boundary."""
        self.count += 1
        self.passed(self.count)
        if self.count == self.at:
            if sys.platform == "win32":
                os._exit(137)
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with a boundary before and one after it."""

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.cross()
            result = function(*args, **kwargs)
            self.cross()
            return result

        return wrapped

    def lay(self, *names: str) -> None:
        """Round the journal, these functions of ``disk``, and the removal of files."""
        append = journal.Journal._append

        def torn(book: journal.Journal, *args: Any, **kwargs: Any) -> None:
            self.cross()
            if self.count + 1 == self.at:  # half of the line reaches the disk
                before = book.file.read_bytes() if book.file.exists() else b""
                append(book, *args, **kwargs)
                after = book.file.read_bytes()
                book.file.write_bytes(after[: len(before) + (len(after) - len(before)) // 2])
            self.cross()
            append(book, *args, **kwargs)
            self.cross()

        journal.Journal._append = torn  # type: ignore[method-assign]
        for name in names:
            setattr(disk, name, self.around(getattr(disk, name)))
        effects.os.unlink = self.around(os.unlink)  # type: ignore[attr-defined]
