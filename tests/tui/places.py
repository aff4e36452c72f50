"""The way to every screen on a machine that answers from a case, with a fix that writes one harmless file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from tests.pilot import KB, Machine, case_of, press, wait_for
from tftriage import mend
from tftriage.facts import Fact, Facts
from tftriage.fixes.plans import Plan, Verify, WriteFile
from tftriage.session import Session
from tftriage.tui.app import TriageApp

PYTHONS = [
    {"path": "/opt/tf21/bin/python", "version": "3.7.9", "prefix": "/opt/tf21", "kind": "venv", "tensorflow": "2.1.0"}
]

# screen: the keys that lead there, and what is then shown
WAYS: dict[str, tuple[tuple[str, ...], str]] = {
    "start": ((), "Looks like"),
    "target": (("e",), "Which Python is it about?"),
    "walk": (("enter",), "Enter shows what to do"),
    "diagnosis": (("enter", "enter"), "Fixes"),
    "fix": (("enter", "enter", "enter"), "nothing done yet"),
    "doctor": (("d",), "Everything checked"),
    "help": (("f1",), "Everything works with the keyboard"),
    "report": (("enter", "x"), "C copies it as Markdown"),
    "dlls": (("enter", "d"), "7 not found"),
    "monitor": (("m",), "Why the GPU idles"),
    "search": (("slash",), "Say what you see"),
    "palette": (("colon",), "Type a part of a name"),
    "tour": (("v",), "What it is for"),
}
TYPING = ("search", "palette")  # letters are text there


@contextmanager
def on_a_machine(written: Path) -> Iterator[TriageApp]:
    """The app; its fix writes ``written`` and nothing else."""
    step = WriteFile(path=str(written), text="x = 1\n", expected="absent")
    verify = Verify(facts=("target.packages",), probe="dependencies_fit", good_answers=("fit",))
    plan = Plan(fix="pin-packages", steps=(step,), verify=verify)
    case = case_of("protobuf")
    sampled = {"seconds": 2.0, "cpu": [{"t": 0.5 * n, "total": 31.0, "max_core": 99.4} for n in range(4)]}
    known = [Fact("pythons.list", "ok", PYTHONS), Fact("usage.sample", "ok", sampled)]
    facts = Facts([*case.facts, *known])
    real = mend.plan
    mend.plan = lambda *_: plan  # the real one would call pip of an interpreter that is not here
    try:
        yield TriageApp(KB, Session(KB, Machine(facts), case.target, case.text), "en")
    finally:
        mend.plan = real


async def go(pilot: Pilot[Any], screen: str) -> None:
    """Walk there with keys alone."""
    await wait_for(pilot, "Looks like")
    keys, shown = WAYS[screen]
    for number, key in enumerate(keys):
        await press(pilot, key)
        if key == "enter":
            await wait_for(pilot, ("Enter shows what to do", "Fixes", "nothing done yet")[number])
    await wait_for(pilot, shown)
