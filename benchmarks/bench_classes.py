"""What a class costs: the first index and the table after it, at 50, 500 and 5,000 cases, as ratios in one run.

``python benchmarks/bench_classes.py [MOST]``. The cases are variants of the recorded ones. Memory is the peak of this
process, which grows monotonically, so the sizes are run from small to large.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import tftriage
from tftriage.classes import ClassIndex, groups
from tftriage.classview import lines
from tftriage.knowledge import load

KB = load()
DEMOS = [p.read_text(encoding="utf-8") for p in sorted((Path(tftriage.__file__).parent / "demos").glob("*.json"))]


def peak() -> int:
    """Megabytes; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def measured(count: int, folder: Path) -> tuple[float, float, int]:
    """Seconds for the first index, seconds for the table on a ready index, and the peak of memory."""
    (folder / "class").mkdir(parents=True)
    for number in range(count):
        case = json.loads(DEMOS[number % len(DEMOS)])
        case["created"] = f"2026-11-30T00:00:00+{number:05}"
        (folder / "class" / f"student-{number:05}.json").write_text(json.dumps(case), encoding="utf-8")
    began = time.perf_counter()
    index = ClassIndex(folder / "class", KB, folder / "state")
    index.update()
    first = time.perf_counter() - began
    index.close()
    began = time.perf_counter()
    index = ClassIndex(folder / "class", KB, folder / "state")
    index.update()
    rows = index.rows()
    assert len(rows) == count
    assert sum(len(group.files) for group in groups(rows)) == count
    text = "\n".join(lines(rows, KB, "en", {}))
    assert text
    index.close()
    return first, time.perf_counter() - began, peak()


def main() -> None:
    """Print a line for each size and the ratio to the one before."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    before: tuple[float, float, int] | None = None
    with tempfile.TemporaryDirectory() as scratch:
        for count in (size for size in (50, 500, 5000) if size <= most):
            now = measured(count, Path(scratch) / str(count))
            growth = f"   x{now[0] / before[0]:.1f}, x{now[1] / before[1]:.1f}" if before else ""
            print(f"{count:6} cases: index {now[0]:.2f} s, table {now[1]:.3f} s, peak {now[2]} MB{growth}", flush=True)
            before = now


if __name__ == "__main__":
    main()
