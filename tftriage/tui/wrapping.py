"""Lines that fit: wrapped between Chinese characters as well as between words, with a hanging indent.

Rich and Textual break lines at spaces only; a Chinese sentence has none, so its lines would end anywhere.
"""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text

NEVER_FIRST = set("，。；：、！？）】》」』”’…)]}>,.;:!?%")
NEVER_LAST = set("（【《「『“‘([{<")


def _may_break(line: str, at: int) -> bool:
    before, after = line[at - 1], line[at]
    if before == " ":
        return True
    if after in NEVER_FIRST or before in NEVER_LAST:
        return False
    return cell_len(before) == 2 or cell_len(after) == 2


def _cut(line: str, start: int, end: int) -> int:
    """Where to break when ``line[start:end]`` fits: at a good place, else behind a path separator, else at the end."""
    if line[end] == " ":
        return end
    for at in range(end, start, -1):
        if _may_break(line, at):
            return at
    for at in range(end, start + (end - start) // 2, -1):
        if line[at - 1] in "/\\":
            return at
    return end


def pieces(line: str, width: int, indent: int = 0) -> list[tuple[int, int]]:
    """Start and end of the pieces of one line; all but the first have ``indent`` cells less room."""
    found: list[tuple[int, int]] = []
    start = 0
    while True:
        room = max(2, width - (indent if found else 0))
        end, used = start, 0
        while end < len(line) and used + cell_len(line[end]) <= room:
            used += cell_len(line[end])
            end += 1
        if end >= len(line):
            found.append((start, len(line)))
            return found
        cut = max(_cut(line, start, end), start + 1)
        found.append((start, cut))
        start = cut
        while start < len(line) and line[start] == " ":
            start += 1


def wrap(text: Text, width: int, indent: int = 0) -> Text:
    """``text`` with line breaks so that no line is wider than ``width`` cells."""
    lines: list[Text] = []
    for line in text.split("\n", allow_blank=True):
        for number, (start, end) in enumerate(pieces(line.plain, width, indent)):
            piece = line[start:end]
            piece.rstrip()
            lines.append(Text(" " * indent).append_text(piece) if number else piece)
    return Text("\n", no_wrap=True, overflow="ellipsis").join(lines)


class Page:
    """A text that grows by wrapped paragraphs."""

    def __init__(self, width: int) -> None:
        self.width = max(8, width)
        self.lines: list[Text] = []

    def add(self, text: str | Text = "", style: str = "", mark: tuple[str, str] | None = None, indent: int = 0) -> None:
        """A paragraph. ``mark`` is a glyph in front of it, beside which its lines hang; ``indent`` moves it right."""
        body = text.copy() if isinstance(text, Text) else Text(text, style)
        hang = indent
        if mark is not None:
            body = Text().append(f"{mark[0]} ", mark[1]).append_text(body)
            hang += cell_len(mark[0]) + 1
        if indent:
            body = Text(" " * indent).append_text(body)
        self.lines.append(wrap(body, self.width, hang))

    def gap(self) -> None:
        """An empty line, never two and never at the top."""
        if self.lines and self.lines[-1].plain:
            self.lines.append(Text())

    @property
    def text(self) -> Text:
        """The whole page."""
        while self.lines and not self.lines[-1].plain:
            self.lines.pop()
        return Text("\n", no_wrap=True, overflow="ellipsis").join(self.lines)


def middle(text: str, width: int) -> str:
    """``text`` cut in the middle to ``width`` cells: the beginning and, above all, the end of a path tell which."""
    if cell_len(text) <= width:
        return text
    if width < 4:
        return text[: max(0, width)]
    first = (width - 1) // 3
    head, tail = "", ""
    for character in text:
        if cell_len(head + character) > first:
            break
        head += character
    for character in reversed(text):
        if cell_len(character + tail) > width - 1 - cell_len(head):
            break
        tail = character + tail
    return f"{head}…{tail}"
