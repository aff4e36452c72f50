"""What ``celldiff`` compares: pens and cells, out of Rich's segments. Nothing of Textual but how it renders a style."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from rich.cells import get_character_cell_size, split_graphemes
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

# --- pens: how a cell looks -----------------------------------------------------------------------------------------

_KINDS = {
    "1": "bold", "2": "dim", "3": "italic", "4": "underline", "5": "blink", "6": "blink", "7": "reverse",
    "8": "conceal", "9": "strike",
}  # fmt: skip
_OFF = {
    "bold": "22", "dim": "22", "italic": "23", "underline": "24", "blink": "25", "reverse": "27", "conceal": "28",
    "strike": "29", "fg": "39", "bg": "49",
}  # fmt: skip
_INK = ("reverse", "underline", "strike", "other")  # with one of these the foreground of a space can be seen


class Pen(NamedTuple):
    """``look``: SGR codes by kind, sorted. ``link``: what stands between the ``8;`` and the end of an OSC 8."""

    look: tuple[tuple[str, str], ...] = ()
    link: str = ""


PLAIN = Pen()
Cell = tuple[str, Pen]
BLANK: Cell = (" ", PLAIN)


class Unexpected(Exception):
    """Something that cannot be taken apart into cells."""


@lru_cache(4096)
def pen(codes: str, link: str = "") -> Pen:
    """The pen for SGR codes, as in ``1;38;5;4``. Codes that are not known are kept, and only ended by a reset."""
    look: dict[str, str] = {}
    parts = iter(codes.split(";") if codes else ())
    for part in parts:
        if part in ("38", "48"):
            kind = next(parts, "")
            rest = [next(parts, "") for _ in range({"5": 1, "2": 3}.get(kind, 0))]
            look["fg" if part == "38" else "bg"] = ";".join([part, kind, *rest])
        elif part in ("39", "49"):
            look.pop("fg" if part == "39" else "bg", None)
        elif part in _KINDS:
            look[_KINDS[part]] = part
        elif len(part) > 1 and part[:-1] in ("3", "9", "4", "10"):
            look["fg" if part[:-1] in ("3", "9") else "bg"] = part
        else:
            look["other"] = f"{look['other']};{part}" if "other" in look else part
    return Pen(tuple(sorted(look.items())), link)


@lru_cache(4096)
def seen(pen: Pen) -> Pen:
    """What can be seen of a pen in a space."""
    kinds = dict(pen.look)
    keep = ("bg", "fg", *_INK) if any(kind in kinds for kind in _INK) else ("bg",)
    return Pen(tuple(item for item in pen.look if item[0] in keep), pen.link)


@lru_cache(4096)
def change(old: Pen, new: Pen) -> str:
    """The shortest sequence that makes one pen of another."""
    link = "" if old.link == new.link else f"\x1b]8;{new.link or ';'}\x1b\\"
    if old.look == new.look:
        return link
    codes = [code for _, code in new.look]
    reset = f"\x1b[{';'.join(['0', *codes]) if codes else ''}m"
    before, after = dict(old.look), dict(new.look)
    if "other" in before:
        return link + reset
    off = dict.fromkeys(_OFF[kind] for kind in before if kind not in after)
    on = [
        code for kind, code in new.look
        if before.get(kind) != code or ("22" in off and kind in ("bold", "dim"))
    ]  # fmt: skip
    return link + min(f"\x1b[{';'.join([*off, *on])}m", reset, key=len)


# --- cells: what stands where ---------------------------------------------------------------------------------------

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


@lru_cache(8192)
def sure(text: str) -> bool:
    """Whether every terminal draws this character as wide as Rich counts it."""
    if text.isascii():
        return True
    if len(text) != 1 or 0x1F000 <= ord(text) < 0x20000 or unicodedata.bidirectional(text) in ("R", "AL"):
        return False
    kind, width = unicodedata.category(text), unicodedata.east_asian_width(text)
    if kind[0] in "CMZ" and text not in "\u3000\xa0":
        return False
    if width == "A":
        return (kind[0] == "L" or "\u2500" <= text <= "\u259f") and get_character_cell_size(text) == 1
    if width in "WF":
        return kind != "So" and get_character_cell_size(text) == 2
    return get_character_cell_size(text) == 1


def cells(segments: Iterable[Segment], colours: ColorSystem) -> list[Cell]:
    """Segments as cells; ``Unexpected`` when there is a control code in them."""
    found: list[Cell] = []
    for text, style, control in segments:
        if control or _CONTROL.search(text):
            raise Unexpected(repr(control or text))
        ink = _pen_of(style, colours)
        blank = (" ", seen(ink))
        if text.isascii():
            found += [blank if character == " " else (character, ink) for character in text]
            continue
        for begin, end, width in split_graphemes(text)[0]:
            part = text[begin:end]
            if width:
                found.append(blank if part == " " else (part, ink))
                found += [("", ink)] * (width - 1)
            elif found:  # it belongs to the character before, which may stand in another segment
                at = len(found) - 1
                while at and not found[at][0]:
                    at -= 1
                found[at] = (found[at][0] + part, found[at][1])
    return found


def _pen_of(style: Style | None, colours: ColorSystem) -> Pen:
    if style is None:
        return PLAIN
    codes = style._ansi
    if codes is None:
        codes = Strip.render_ansi(style, colours)
    return pen(codes, f"id={style._link_id};{style._link}" if style._link else "")


def whole(row: list[Cell]) -> None:
    """Half a wide character cannot be shown: a space stands for it."""
    for x, (text, ink) in enumerate(row):
        if not text:
            if x == 0 or not wide(row[x - 1][0]):
                row[x] = (" ", seen(ink))
        elif wide(text) and (x + 1 == len(row) or row[x + 1][0]):
            row[x] = (" ", seen(ink))


@lru_cache(8192)
def wide(text: str) -> bool:
    """Whether it takes two cells."""
    return not text.isascii() and split_graphemes(text)[1] > 1
