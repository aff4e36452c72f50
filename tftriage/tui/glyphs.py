"""Marks and frames, and what becomes of them where a terminal cannot draw them.

Windows' own console draws box lines, arrows and quotation marks two cells wide in Chinese fonts and everybody counts
them as one; the Linux console and old terminals have no glyph for them. There everything around the text is ASCII.
"""

from __future__ import annotations

import os
import sys

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

GLYPHS = {"ok": "✓", "bad": "✗", "info": "·", "here": "▶", "unknown": "?"}
ASCII = {"ok": "+", "bad": "x", "info": "-", "here": ">", "unknown": "?"}
STYLES = {"ok": "green", "bad": "bold red", "info": "", "here": "bold", "unknown": "yellow"}

EAST_ASIAN = (932, 936, 949, 950)  # code pages whose console fonts draw ambiguous characters wide
PLAIN_TERMINALS = ("linux", "vt100", "vt102", "vt220", "ansi", "dumb")

_LONGER = {"…": "...", "→": "->", "←": "<-", "≥": ">=", "≤": "<=", "≠": "!="}  # in sentences, before they are laid out
_SAME = str.maketrans(
    {
        **dict.fromkeys("─━╌┄═▔▁", "-"),
        **dict.fromkeys("│┃║▏▕▌▐", "|"),
        **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝", "+"),
        **dict.fromkeys("“”„″", '"'),
        **dict.fromkeys("‘’‚′", "'"),
        **dict.fromkeys("–—−", "-"),
        **dict.fromkeys("▂▃▄▅▆▇█▀▉▊▋▍▎", "#"),
        "…": "~", "·": "-", "•": "*", "×": "x", "▶": ">", "◀": "<", "✓": "+", "✗": "x", "→": ">", "←": "<", "°": "*",
        "\u00a0": " ",
    }
)  # fmt: skip


def sentence(text: str) -> str:
    """A sentence of ours with ASCII punctuation where ASCII has the like; letters stay what they are."""
    for character, plain in _LONGER.items():
        text = text.replace(character, plain)
    return text.translate(_SAME)


class AsciiFrames(LineFilter):
    """The last look at every line: frames, bars and marks become ASCII, each of them one cell as before."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Translate what is not ASCII already."""
        return [
            segment
            if segment.text.isascii()
            else Segment(segment.text.translate(_SAME), segment.style, segment.control)
            for segment in segments
        ]


def wanted() -> bool:
    """Whether this terminal needs ASCII frames although nobody asked for them."""
    if sys.platform == "win32":
        import ctypes

        page = ctypes.windll.kernel32.GetConsoleOutputCP()
        return page in EAST_ASIAN and "WT_SESSION" not in os.environ
    encoding = (getattr(sys.__stderr__, "encoding", None) or "utf-8").lower().replace("-", "").replace("_", "")
    return encoding != "utf8" or os.environ.get("TERM", "") in PLAIN_TERMINALS
