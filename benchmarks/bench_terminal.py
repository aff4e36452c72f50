"""What does the screen cost? A recorded terminal of 80x24, beside a bare Textual program in the same run.

    python benchmarks/bench_terminal.py [--repeat 5] [--only start,bytes,waiting,verbs]

Bytes are counted and repeat exactly; CPU times are the smallest of several runs. The bars are those that we set
ourselves; a figure above its bar is marked, and never fails anything. Linux only (``/proc``, pseudo-terminals).

- start: CPU time and memory until the first words are shown;
- bytes: first paint, arrow, page, typed character, with the cell diff and without it, in full and in 16 colours;
- waiting: bytes a second when nothing happens and while TensorFlow is being imported; key to last byte; leaving;
- verbs: CPU time of commands without a screen.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.terminal import Terminal  # noqa: E402

CASE = str(ROOT / "tftriage" / "demos" / "cuda-not-on-path.json")  # long enough for pages
BARE = """
from textual.app import App
from textual.widgets import Static
class Bare(App):
    BINDINGS = [("q", "quit", "")]
    def compose(self):
        yield Static("hello from Textual")
Bare().run(mouse=False)
"""
LIST = """
from textual.app import App
from textual.widgets import OptionList
class Listed(App):
    BINDINGS = [("q", "quit", "")]
    def compose(self):
        yield OptionList(*(f"option {n} of a list of a hundred" for n in range(100)))
Listed().run(mouse=False)
"""
KINDS = {
    "full colour": {"term": "xterm-256color", "COLORTERM": "truecolor"},
    "16 colours": {"term": "screen", "COLORTERM": ""},
}


# Bytecode is kept, as in an installation, whatever this environment says; the first run is not counted.
BYTECODE = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir(), "tftriage-bytecode"))}


class Recorded(Terminal):
    """A program in a terminal that answers as new ones do: it knows synchronized output."""

    def __init__(self, *command: str, term: str = "xterm-256color", cwd: str | None = None, **env: str) -> None:
        whole = {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "TEXTUAL_COLOR_SYSTEM": "auto", **BYTECODE, **env}
        super().__init__([sys.executable, *command], whole, cwd=cwd, term=term)

    def cpu(self) -> float:
        """Seconds of CPU time of all its threads."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def memory(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    changed = 0  # cells, by the last ``cost``

    def cost(self, key: str) -> int:
        """How many bytes one key makes it write."""
        before, picture = self.settle(), self.cells()
        self.process.write(key.encode())
        end = time.monotonic() + 1.5
        while len(self.raw) == before and time.monotonic() < end:
            time.sleep(0.02)
        sent = self.settle() - before
        self.changed = sum(a != b for a, b in zip(picture, self.cells(), strict=True))
        return sent

    def cells(self) -> list[object]:
        """Every cell that is shown."""
        rows = self.screen.buffer
        return [rows[y][x] for y in range(self.screen.lines) for x in range(self.screen.columns)]


def ours(*arguments: str, **more: str) -> Recorded:
    """tftriage, in English."""
    return Recorded("-m", "tftriage", *arguments, "--lang", "en", **more)


def line(what: str, figure: float, unit: str, bar: float | None = None, note: str = "") -> None:
    """One line of the report."""
    judged = "" if bar is None else f"   bar {bar:g}{'   ABOVE' if figure > bar else ''}"
    print(
        f"  {what:<52}{figure:>9.{0 if unit in ('B', 'B/s') else 2}f} {unit:<4}{judged}{'   ' if note else ''}{note}",
        flush=True,
    )


def start(repeat: int) -> None:
    """Until the first words."""
    print("start")
    wanted: dict[str, tuple[Callable[[], Recorded], str]] = {
        "bare": (lambda: Recorded("-c", BARE), "hello from Textual"),
        "start": (lambda: ours("--python", sys.executable), "Choose what you see"),
        "case": (lambda: ours("open", CASE), "Enter shows what to do"),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in wanted}
    for _ in range(repeat + 1):
        for name, (run, words) in wanted.items():
            with run() as terminal:
                terminal.wait_for(words)
                found[name].append((terminal.cpu(), terminal.memory()))
    cpu = {name: min(one[0] for one in runs[1:]) for name, runs in found.items()}
    memory = {name: min(one[1] for one in runs[1:]) for name, runs in found.items()}
    print(f"  bare Textual: {cpu['bare'] * 1000:.0f} ms CPU, {memory['bare']:.0f} MB")
    line("first screen: CPU, in bare Textual programs", cpu["start"] / cpu["bare"], "", 1.25)
    line("a recorded case: CPU, in bare Textual programs", cpu["case"] / cpu["bare"], "")
    line("first screen: memory", memory["start"], "MB", 45, f"{memory['start'] / memory['bare']:.2f} bare programs")


def sizes(repeat: int) -> None:
    """Bytes of what is done most."""
    for kind, where in KINDS.items():
        print(f"bytes, {kind}")
        with Recorded("-c", LIST, **where) as bare:
            bare.wait_for("option 0")
            bare_first, bare_down = bare.settle(), bare.cost("\x1b[B")
        print(f"  a list in bare Textual: first paint {bare_first} B, arrow {bare_down} B")
        bar = 5000 if kind == "16 colours" else 8000
        for mode, flags in {"": (), ", full redraw": ("--full-redraw",)}.items():
            strict = not mode
            with ours("--python", sys.executable, *flags, **where) as terminal:
                terminal.wait_for("Choose what you see")
                line(f"first screen{mode}: first paint", terminal.settle(), "B", bar if strict else None)
                terminal.cost("\x1b[B")
                arrow = statistics.median(terminal.cost("\x1b[B") for _ in range(5))
                line(f"first screen{mode}: arrow", arrow, "B", 400 if strict else None, f"bare {bare_down}")
                terminal.cost("i")
                typed = statistics.median(terminal.cost(letter) for letter in "DLL load")
                terminal.cost("\x1b")
                line(f"first screen{mode}: typed character", typed, "B", 120 if strict else None)
            with ours("open", CASE, *flags, **where) as terminal:
                terminal.wait_for("Not in any folder that is searched")
                line(f"recorded case{mode}: first paint", terminal.settle(), "B", bar if strict else None)
                page = terminal.cost(" ")
                note = f"{terminal.changed} cells changed"
                line(f"recorded case{mode}: page", page, "B", 1500 if strict else None, note)
                terminal.cost("\x1b[A")
                arrow = terminal.cost("\x1b[A")
                note = f"{terminal.changed} cells changed: the whole right side"
                line(f"recorded case{mode}: arrow", arrow, "B", 400 if strict else None, note)
                line(f"recorded case{mode}: next screen", terminal.cost("\r"), "B")
                page = terminal.cost(" ")
                line(f"cause{mode}: page", page, "B", 1500 if strict else None, f"{terminal.changed} cells changed")


def waiting(repeat: int) -> None:
    """When nothing happens, while an import hangs, and how soon a key is answered."""
    print("waiting")
    with ours("open", CASE) as terminal:
        terminal.wait_for("Not in any folder that is searched")
        before = terminal.settle()
        time.sleep(5)
        line("idle on a recorded case", (len(terminal.raw) - before) / 5, "B/s", 0)
    with ours("--python", sys.executable) as terminal:
        terminal.wait_for("Choose what you see")
        before = terminal.settle()
        time.sleep(5)
        line("idle on the first screen", (len(terminal.raw) - before) / 5, "B/s", 0)
        terminal.cost("i")
        before = terminal.settle()
        time.sleep(5)
        line("idle while the box waits for text", (len(terminal.raw) - before) / 5, "B/s", 0)
        terminal.cost("\x1b")
        line("first screen: key to last byte (median)", latency(terminal), "ms", 60)
    with Recorded("-c", LIST) as terminal:
        terminal.wait_for("option 0")
        line("a list in bare Textual: key to last byte", latency(terminal), "ms")
        bare = leave(terminal)
        line("a list in bare Textual: Q", bare, "ms")
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "tensorflow")
        package.mkdir()
        (package / "__init__.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
        with ours("--python", sys.executable, "--cwd", folder, cwd=folder) as terminal:
            terminal.wait_for("Choose what you see")
            terminal.process.write(b"r")
            terminal.wait_for("Importing TensorFlow")
            time.sleep(1.5)
            before = len(terminal.raw)
            time.sleep(8)
            line("while TensorFlow is being imported", (len(terminal.raw) - before) / 8, "B/s", 50)
            took = leave(terminal)
            line("Q while an import hangs", took, "ms", None, f"{took / bare:.1f} times a bare program")


def leave(terminal: Recorded) -> float:
    """Milliseconds from Q to the end of the program."""
    begun = time.monotonic()
    terminal.process.write(b"q")
    while terminal.process.isalive() and time.monotonic() - begun < 10:
        time.sleep(0.005)
    return (time.monotonic() - begun) * 1000


def latency(terminal: Recorded) -> float:
    """Milliseconds from a key to the last byte of its answer, median of many."""
    took = []
    for n in range(20):
        terminal.settle(0.15)
        begun = time.monotonic()
        terminal.process.write(b"\x1b[B" if n % 10 < 5 else b"\x1b[A")
        terminal.settle(0.15)
        took.append((terminal.last - begun) * 1000)
    return statistics.median(took)


def verbs(repeat: int) -> None:
    """Commands without a screen."""
    print("verbs")
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "error.txt")
        text.write_text("ImportError: DLL load failed: The specified module could not be found.\n", encoding="utf-8")
        commands = {
            "python -c pass": ["-c", "pass"],
            "--version": ["-m", "tftriage", "--version"],
            "match": ["-m", "tftriage", "match", str(text)],
            "diagnose --case": ["-m", "tftriage", "diagnose", "--case", CASE],
            "doctor --list": ["-m", "tftriage", "doctor", "--list"],
            "fix list": ["-m", "tftriage", "fix", "list"],
            "journal": ["-m", "tftriage", "journal"],
            "demo --list": ["-m", "tftriage", "demo", "--list"],
        }
        env = {**os.environ, **BYTECODE, "PYTHONPATH": str(ROOT), "TFTRIAGE_STATE": folder}
        for name, command in commands.items():
            used = min(children_cpu([sys.executable, *command], env) for _ in range(repeat + 1))
            line(name, used * 1000, "ms", None if name.startswith("python") else 80)


def children_cpu(command: list[str], env: dict[str, str]) -> float:
    """Seconds of CPU time of one command."""
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0  # it was waited for
    return usage.ru_utime + usage.ru_stime


PARTS = {"start": start, "bytes": sizes, "waiting": waiting, "verbs": verbs}


def main(arguments: list[str]) -> None:
    """Print the parts that are wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default=",".join(PARTS), metavar="PART,…")
    options = parser.parse_args(arguments)
    for name in options.only.split(","):
        PARTS[name](options.repeat)


if __name__ == "__main__":
    main(sys.argv[1:])
