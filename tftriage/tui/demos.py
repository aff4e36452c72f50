"""The command ``demo``. Listing the cases needs no screen, so Textual is imported only to show one."""

from __future__ import annotations

from argparse import Namespace

from tftriage import headless


def demo(options: Namespace) -> int:
    """``tftriage demo [NAME]``: a recorded case; ``--list`` names them."""
    found = headless.demo(options)
    if found is None:
        return 0
    from tftriage.tui.app import show_case

    return show_case(str(found), options)
