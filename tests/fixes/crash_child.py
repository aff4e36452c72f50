"""Applies or undoes a plan and dies at the n-th boundary, as by a power cut.

    crash_child.py STATE PLAN.json apply|undo|recover N

The boundaries are laid round the journal's and the disk's functions from outside; the program itself knows none.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.fixes.boundaries import Boundaries
from tftriage.fixes import effects, journal, undo
from tftriage.fixes.plans import Plan


def main(state: str, plan_file: str, what: str, at: int) -> None:
    boundaries = Boundaries(at)
    boundaries.lay("write", "copy_new", "rename_new", "_publish")
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
    print(boundaries.count)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
