"""How long does everything take that is looked at before anything is tried? Prints ratios in one run.

    python benchmarks/bench_facts.py --torch PYTHON [--python TARGET] [--rounds N]

- every fact but the import attempts, the started kernel, the sample and the workload, from the start of the collector's
  process to its end, of the target environment (default: the lab's TensorFlow 2.1.0 on Linux; else this Python);
- ``python -m torch.utils.collect_env`` of an environment that has torch, from its start to its end: about a tenth of
  the facts. (``uv pip install torch`` into an environment of its own.)

The two take turns, so that another program's load falls on both; the medians are compared. The slowest facts follow.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tftriage.collect import registry, runner

ROOT = Path(__file__).resolve().parents[1]
TRIED = {
    "tf.import", "tf.gpus", "tf.operation", "jupyter.import", "names.ascii_import", "usage.sample", "usage.workload",
}  # fmt: skip
WANTED = 0.6  # of collect_env's time


def timed(command: list[str], given: bytes = b"") -> tuple[float, bytes]:
    """Wall time of a whole process and what it printed."""
    begun = time.perf_counter()
    done = subprocess.run(command, input=given, capture_output=True, cwd=ROOT, check=False)
    return time.perf_counter() - begun, done.stdout


def lab_target() -> str:
    """The lab's Linux environment with TensorFlow, or this Python where there is no lab."""
    given = os.environ.get("TFTRIAGE_LAB")
    folder = Path(given) if given else Path.home() / ".cache" / "tftriage-lab"
    found = folder / "linux" / "tf210" / "bin" / "python"
    return str(found) if found.exists() else sys.executable


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", required=True, metavar="PYTHON", help="an interpreter that has torch")
    parser.add_argument("--python", default=lab_target(), help="the target")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    runner.load()
    names = [name for name in registry.COLLECTORS if name not in TRIED]
    libraries = ["libcudart.so.10.1", "libcublas.so.10", "libcudnn.so.7"]
    args = {"python": options.python, "libraries": libraries}
    asked = "".join(json.dumps({"collect": name, "args": args}) + "\n" for name in names).encode()
    ours: list[float] = []
    theirs: list[float] = []
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(options.rounds + 1):
        theirs.append(timed([options.torch, "-m", "torch.utils.collect_env"])[0])
        took, printed = timed([sys.executable, "-m", "tftriage.collect"], asked)
        ours.append(took)
        for fact in map(json.loads, printed.splitlines()):
            seconds[fact["fact"]].append(fact["seconds"])
    mine, other = statistics.median(ours[1:]), statistics.median(theirs[1:])  # the first round warms the disk's cache
    verdict = "as wanted" if mine <= WANTED * other else f"more than the {WANTED} wanted"
    print(f"{len(names)} facts: {mine:.2f} s; collect_env: {other:.2f} s; ratio {mine / other:.2f}, {verdict}")
    slowest = sorted(names, key=lambda name: -statistics.median(seconds[name][1:] or [0.0]))[:8]
    for name in slowest:
        print(f"  {name:<22} {statistics.median(seconds[name][1:] or [0.0]):.2f} s")


if __name__ == "__main__":
    main()
