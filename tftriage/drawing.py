"""A directed graph without cycles as SVG: layers from left to right, every answer on its own arrow.

Pure text to text, standard library only. Boxes stand in the layer of their longest way from a start. An arrow over
several layers goes through a lane of its own in each of them, so that it does not cross boxes. Lengths are pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Literal
from unicodedata import east_asian_width

import msgspec

WIDE = 216  # a box
LINE = 15
PORT = 16  # between two arrows that leave a box
APART = 14  # between two boxes of a layer
LANE = 6
TURN = 60  # the part of a gap in which arrows turn
LETTER = 6.3  # an average letter of the 12-pixel font
STYLE = (
    "text{font:12px sans-serif;fill:#1b1f24}.answer{font-size:11px;fill:#57606a}path{fill:none;stroke:#8c959f}"
    "rect{stroke:#57606a}.question{fill:#ddf4ff}.end{fill:#dafbe1}.elsewhere{fill:#fff;stroke-dasharray:4 3}"
)


class Box(msgspec.Struct, frozen=True):
    """``question``: square corners; ``end``: rounded; ``elsewhere``: dashed, a question of another graph."""

    id: str
    text: str
    kind: Literal["question", "end", "elsewhere"]


class Arrow(msgspec.Struct, frozen=True):
    """From a box to a box, with a label."""

    start: str
    end: str
    label: str


class _Place:
    """Where a box, or the lane of an arrow in one layer, stands."""

    def __init__(self, height: float) -> None:
        self.height = height
        self.y = 0.0
        self.before: list[_Place] = []
        self.after: list[_Place] = []

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def draw(boxes: Sequence[Box], arrows: Sequence[Arrow], title: str) -> str:
    """The picture as one SVG document. Every arrow's ends must be among the boxes; cycles are not allowed."""
    layer = _layers(boxes, arrows)
    texts = {box.id: wrap(box.text, int((WIDE - 16) / LETTER)) for box in boxes}
    leaving = {box.id: [n for n, arrow in enumerate(arrows) if arrow.start == box.id] for box in boxes}
    places = {box.id: _Place(max(len(texts[box.id]) * LINE + 12, len(leaving[box.id]) * PORT + 4)) for box in boxes}
    columns: list[list[_Place]] = [[] for _ in range(max(layer.values(), default=0) + 1)]
    for box in boxes:
        columns[layer[box.id]].append(places[box.id])
    ways = [_way(places, layer, columns, arrow) for arrow in arrows]
    _arrange(columns)
    gaps = [
        TURN + 12 + max((LETTER * _width(a.label) for a in arrows if layer[a.start] == n), default=0.0)
        for n in range(len(columns))
    ]
    lefts = [16.0 + sum(WIDE + gap for gap in gaps[:n]) for n in range(len(columns))]
    width = lefts[-1] + WIDE + 16
    height = 56 + max((place.y + place.height for column in columns for place in column), default=0.0)
    made = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0L8,4L0,8z" style="fill:#8c959f"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" style="fill:#fff;stroke:none"/>',
        f'<text x="16" y="26" style="font-weight:bold">{escape(title)}</text>',
    ]
    for box in boxes:
        place, left, top = places[box.id], lefts[layer[box.id]], 40 + places[box.id].y
        ports = sorted(leaving[box.id], key=lambda n: ways[n][1].middle)
        for row, n in enumerate(ports):
            y = top + place.height / 2 + (row - (len(ports) - 1) / 2) * PORT
            made += _arrow(arrows[n], ways[n], y, lefts, layer, gaps)
        corner = 14 if box.kind == "end" else 0
        made.append(
            f'<g id="{escape(box.id)}"><rect class="{box.kind}" x="{left:.0f}" y="{top:.0f}" width="{WIDE}" '
            f'height="{place.height:.0f}" rx="{corner}"/><title>{escape(box.id)}</title>'
        )
        first = top + (place.height - len(texts[box.id]) * LINE) / 2 + 11
        made += [
            f'<text x="{left + 8:.0f}" y="{first + row * LINE:.0f}">{escape(line)}</text>'
            for row, line in enumerate(texts[box.id])
        ]
        made.append("</g>")
    return "\n".join([*made, "</svg>"])


def wrap(text: str, room: int) -> list[str]:
    """Lines of at most ``room`` cells; Chinese breaks anywhere, English at spaces, a word too long is cut."""
    lines, line = [], ""
    for word in _pieces(text, room):
        if line and _width(line + word.rstrip()) > room:
            lines.append(line.rstrip())
            line = word.lstrip()
        else:
            line += word
    return [*lines, line.rstrip()]


def _pieces(text: str, room: int) -> list[str]:
    found: list[str] = []
    for char in " ".join(text.split()):
        joins = found and not found[-1].endswith(" ") and found[-1].isascii() and char.isascii()
        closes = found and char in "，。；：！？、）”…"  # never at the head of a line
        if (joins and len(found[-1]) < room) or closes or (found and char == " "):
            found[-1] += char
        else:
            found.append(char)
    return found


def _width(text: str) -> int:
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def _layers(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> dict[str, int]:
    layer = {box.id: 0 for box in boxes}
    for _ in boxes:
        moved = False
        for arrow in arrows:
            if layer[arrow.end] <= layer[arrow.start]:
                layer[arrow.end] = layer[arrow.start] + 1
                moved = True
        if not moved:
            return layer
    if any(layer[arrow.end] <= layer[arrow.start] for arrow in arrows):
        raise ValueError("the graph has a cycle")
    return layer


def _way(places: dict[str, _Place], layer: dict[str, int], columns: list[list[_Place]], arrow: Arrow) -> list[_Place]:
    """The places that an arrow goes through, a new lane in each layer between its ends."""
    lanes = [_Place(LANE) for _ in range(layer[arrow.start] + 1, layer[arrow.end])]
    for lane, column in zip(lanes, columns[layer[arrow.start] + 1 :], strict=False):
        column.append(lane)
    way = [places[arrow.start], *lanes, places[arrow.end]]
    for one, other in pairwise(way):
        one.after.append(other)
        other.before.append(one)
    return way


def _arrange(columns: list[list[_Place]]) -> None:
    """Order each layer by the middle of its neighbours, sweep after sweep, and pull everything straight."""
    for column in columns:
        _stack(column, [0.0] * len(column))
    for sweep in range(24):
        down = sweep % 2 == 0
        for column in columns if down else reversed(columns):
            wanted = {id(place): _pull(place, down) for place in column}
            if sweep < 20:
                column.sort(key=lambda place: wanted[id(place)])
            _stack(column, [wanted[id(place)] - place.height / 2 for place in column])
    top = min((place.y for column in columns for place in column), default=0.0)
    for column in columns:
        for place in column:
            place.y -= top


def _pull(place: _Place, down: bool) -> float:
    near = (place.before if down else place.after) or place.before or place.after
    return sum(other.middle for other in near) / len(near) if near else place.middle


def _stack(column: list[_Place], wanted: list[float]) -> None:
    """As near to where they want to be as boxes in this order can stand."""
    end = -1e9
    for place, y in zip(column, wanted, strict=True):
        place.y = max(y, end)
        end = place.y + place.height + (APART if place.height > LANE else LANE)
    shift = sum(place.y - y for place, y in zip(column, wanted, strict=True)) / max(1, len(column))
    for place in column:
        place.y -= shift


def _arrow(
    arrow: Arrow, way: list[_Place], y: float, lefts: list[float], layer: dict[str, int], gaps: list[float]
) -> list[str]:
    at = layer[arrow.start]
    x = lefts[at] + WIDE
    path, here = f"M{x:.0f},{y:.0f}H{x + gaps[at] - TURN:.0f}", (x + gaps[at] - TURN, y)
    for step, place in enumerate(way[1:], 1):
        there = (lefts[at + step], 40 + place.middle)
        bend = (here[0] + there[0]) / 2
        path += f"C{bend:.0f},{here[1]:.0f} {bend:.0f},{there[1]:.0f} {there[0]:.0f},{there[1]:.0f}"
        if step < len(way) - 1:
            here = (there[0] + WIDE + gaps[at + step] - TURN, there[1])
            path += f"H{here[0]:.0f}"
    return [
        f'<path d="{path}" marker-end="url(#head)"/>',
        f'<text class="answer" x="{x + 5:.0f}" y="{y - 3:.0f}">{escape(arrow.label)}</text>',
    ]
