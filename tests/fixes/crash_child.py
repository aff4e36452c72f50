"""Applies or undoes a plan and dies at the n-th boundary, as by a power cut.

    crash_child.py STATE PLAN.json apply|undo|recover N

The boundaries are laid round the journal's and the disk's functions from here; the program itself knows none.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parents[2]))

from tftriage.fixes import disk, effects, journal, undo
from tftriage.fixes.plans import Plan


def main(state: str, plan_file: str, what: str, at: int) -> None:
    count = 0

    def boundary() -> None:
        nonlocal count
        count += 1
        if count == at:
            if sys.platform == "win32":
                os._exit(137)
            os.kill(os.getpid(), signal.SIGKILL)

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            boundary()
            result = function(*args, **kwargs)
            boundary()
            return result

        return wrapped

    append = journal.Journal._append

    def torn(self: journal.Journal, *args: Any, **kwargs: Any) -> None:
        boundary()
        if count + 1 == at:  # half of the line reaches the disk
            before = self.file.read_bytes() if self.file.exists() else b""
            append(self, *args, **kwargs)
            after = self.file.read_bytes()
            self.file.write_bytes(after[: len(before) + (len(after) - len(before)) // 2])
        boundary()
        append(self, *args, **kwargs)
        boundary()

    journal.Journal._append = torn  # type: ignore[method-assign]
    for name in ("write", "copy_new", "rename_new", "_publish"):
        setattr(disk, name, around(getattr(disk, name)))
    effects.os.unlink = around(os.unlink)  # type: ignore[attr-defined]
    book = journal.Journal(state)
    if what == "apply":
        plan = msgspec.json.decode(Path(plan_file).read_bytes(), type=Plan)
        done = effects.apply(plan, book)
        assert done.ok, done
    elif what == "undo":
        result = undo.undo(book, "1")
        assert result.ok, result
    else:
        results = undo.recover(book)
        assert all(result.ok for result in results.values()), results
    print(count)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
