"""The recorded cases that are shipped. Listing them needs no screen, so Textual is imported only to show one."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from tftriage import cases
from tftriage.headless import USAGE, Stop
from tftriage.knowledge import load

DEMOS = Path(__file__).resolve().parent.parent / "demos"


def demo(options: Namespace) -> int:
    """``tftriage demo [NAME]``: a recorded case; ``--list`` names them."""
    found = {path.stem: path for path in sorted(DEMOS.glob("*.json"))}
    if options.list:
        for name, path in found.items():
            title = cases.read(path).title.get(options.lang, "")
            print(f"{name:<24} {title}")
        return 0
    name = options.name or next(iter(found), "")
    if name not in found:
        raise Stop(USAGE, load().say("error.no-such-demo", options.lang, names=", ".join(found)))
    from tftriage.tui.app import show_case

    return show_case(str(found[name]), options)
