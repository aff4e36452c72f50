"""When is the first evidence on the screen? In a real pseudo-terminal; ratios to the program's own start in one run.

    python benchmarks/bench_screen.py [--python TARGET] [--rounds N]

- a pasted text (``tftriage FILE``): from the first frame to the symptom that it shows;
- everything checked (key D): from that screen's first frame to the first fact of this machine.

Wanted is 300 ms. Seconds only say how fast and how busy a machine is, so the start of the program, from nothing to its
first frame, is measured in the same run and the load is printed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.terminal import Terminal

ROOT = Path(__file__).resolve().parents[1]
WANTED = 0.3
TEXT = """Traceback (most recent call last):
  File "/env/lib/python3.7/site-packages/tensorflow/python/pywrap_tensorflow.py", line 64, in <module>
ImportError: libcudart.so.10.1: cannot open shared object file: No such file or directory
"""


def until(terminal: Terminal, *texts: str, limit: float = 60.0) -> float:
    """The moment at which one of ``texts`` is on the screen."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        shown = terminal.text
        if any(text in shown for text in texts):
            return time.monotonic()
        time.sleep(0.002)
    raise SystemExit(f"none of {texts} came within {limit} s:\n{terminal.text}")


def measured(python: str, file: str) -> tuple[float, float, float]:
    """Seconds from nothing to the first frame, to the symptom after it, and to the first fact after D's frame."""
    environment = {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
    command = [sys.executable, "-m", "tftriage", "triage", file, "--python", python, "--lang", "en"]
    begun = time.monotonic()
    with Terminal(command, environment, str(ROOT)) as terminal:
        frame = until(terminal, "tftriage")
        symptom = until(terminal, "Looks like")
        time.sleep(0.3)  # a key that is pressed while the text comes in belongs to the text
        terminal.process.write(b"d")
        doctor = until(terminal, "Checking everything")
        fact = until(terminal, *(f"everything: {count} facts" for count in range(1, 40)))
    return frame - begun, symptom - frame, fact - doctor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the target")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "error.txt")
        path.write_text(TEXT, encoding="utf-8")
        rounds = [measured(options.python, str(path)) for _ in range(options.rounds + 1)][1:]  # the first one warms
    start, symptom, fact = (statistics.median(column) for column in zip(*rounds, strict=True))
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; start to first frame {start * 1000:.0f} ms")
    for name, took in (("a text's symptom", symptom), ("the first fact", fact)):
        verdict = "as wanted" if took <= WANTED else f"more than the {WANTED * 1000:.0f} ms wanted"
        print(f"  {name}: {took * 1000:.0f} ms after the frame ({took / start:.2f} of the start), {verdict}")


if __name__ == "__main__":
    main()
