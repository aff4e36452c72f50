"""How dear is recognising? Prints ratios of two ways in one run, because seconds only say how fast a machine is.

    python benchmarks/bench_matching.py [--megabytes 50]

- 200 pasted lines: our matcher against a loop of every pattern over every line (``re``, nothing else), and against
  finding one literal in each line;
- a long log: our matcher against reading and splitting the file, and against ``grep -F`` where there is one;
- the knowledge base: the compiled JSON against the YAML it is made from.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tftriage import knowledge
from tftriage.knowledge import Knowledge
from tftriage.matching import match

NOTE = (
    "2021-03-02 10:11:12.{:06d}: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1555] step {} of 100000, loss 0.1\n"
)
ERROR = """Traceback (most recent call last):
  File "C:\\lab\\env\\lib\\site-packages\\tensorflow\\python\\pywrap_tensorflow.py", line 64, in <module>
    from tensorflow.python._pywrap_tensorflow_internal import *
ImportError: DLL load failed while importing _pywrap_tensorflow_internal: 找不到指定的模块。
"""
NEEDLE = "DLL load failed"


def best(work: Callable[[], object], repeat: int = 5) -> float:
    """The shortest CPU time of several runs, in seconds."""
    times = []
    for _ in range(repeat):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def paste(kb: Knowledge) -> None:
    """200 lines, as somebody pastes them."""
    text = "".join(NOTE.format(n, n) for n in range(196)) + ERROR
    patterns = [re.compile(rule.regex, re.IGNORECASE) for s in kb.symptoms for rule in s.recognise if rule.regex]
    literals = [rule.text.lower() for s in kb.symptoms for rule in s.recognise if rule.text]

    def plainly() -> int:
        found = 0
        for line in text.split("\n"):
            low = line.lower()
            found += sum(1 for pattern in patterns if pattern.search(line)) + sum(1 for one in literals if one in low)
        return found

    def ours() -> object:
        return match(text, kb.symptoms, kb.tables.loader_errors)

    ours()  # compiled patterns and anchors are kept for the life of a program
    mine, loop = best(ours), best(plainly, 3)
    print(f"200 lines: {mine * 1000:.1f} ms; a loop of {len(patterns)} patterns costs {loop / mine:.1f} times as much")


def log(kb: Knowledge, megabytes: int) -> None:
    """A long log with the error at its end."""
    line = NOTE.format(0, 0)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "log.txt")
        with path.open("w", encoding="utf-8") as handle:
            for n in range(megabytes * 1_000_000 // len(line)):
                handle.write(NOTE.format(n % 1_000_000, n))
            handle.write(ERROR)

        def read() -> object:
            return path.read_text(encoding="utf-8").split("\n")

        def ours() -> object:
            return match(path.read_text(encoding="utf-8"), kb.symptoms, kb.tables.loader_errors)

        reading, mine = best(read, 3), best(ours, 3)
        print(f"{megabytes} MB: {mine:.2f} s with reading; {mine / reading:.2f} times reading and splitting alone")
        text = path.read_text(encoding="utf-8")
        tracemalloc.start()
        match(text, kb.symptoms, kb.tables.loader_errors)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"{megabytes} MB: {peak / len(text):.2f} bytes of memory for each character, beside the text itself")
        grep = shutil.which("grep")
        if grep:
            begun = time.perf_counter()
            subprocess.run([grep, "-F", "-c", NEEDLE, str(path)], stdout=subprocess.DEVNULL, check=False)
            once = time.perf_counter() - begun
            print(f"{megabytes} MB: {mine / once:.0f} times grep -F for one literal ({once * 1000:.0f} ms)")


def load() -> None:
    """The knowledge base, as a user and as an author reads it."""
    data = knowledge.compile_folder(knowledge.CHECKOUT)
    compiled = best(lambda: knowledge.decode(data))
    authored = best(lambda: knowledge.compile_folder(knowledge.CHECKOUT), 2)
    size = f"{len(data) >> 10} KB"
    print(
        f"knowledge base: {compiled * 1000:.1f} ms from JSON ({size}); from YAML {authored / compiled:.0f} times that"
    )


def main(arguments: list[str]) -> None:
    """Print the three comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=50)
    options = parser.parse_args(arguments)
    kb = knowledge.load(knowledge.CHECKOUT)
    paste(kb)
    log(kb, options.megabytes)
    load()


if __name__ == "__main__":
    main(sys.argv[1:])
