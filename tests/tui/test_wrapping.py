"""Lines that fit, in two scripts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from tftriage.tui.wrapping import NEVER_FIRST, Page, middle, wrap

WORDS = st.text(st.sampled_from("ab的了，。（）“” /\\:c\n"), max_size=120)


@settings(max_examples=200, deadline=None)
@given(WORDS, st.integers(8, 30), st.integers(0, 3))
def test_no_line_is_wider_and_nothing_but_spaces_is_lost(text: str, width: int, indent: int) -> None:
    wrapped = wrap(Text(text), width, indent).plain
    assert all(cell_len(line) <= width for line in wrapped.split("\n"))
    assert "".join(wrapped.split()) == "".join(text.split())


def test_chinese_fills_its_lines_and_punctuation_never_begins_one() -> None:
    text = "老的 wheel 没写版本上限，pip 就装最新的，还说“Successfully installed”，一导入就报错。" * 3
    lines = wrap(Text(text), 45).plain.split("\n")
    assert all(cell_len(line) >= 36 for line in lines[:-1])
    assert not any(line[0] in NEVER_FIRST for line in lines)


def test_the_lines_of_a_marked_paragraph_hang_beside_the_mark() -> None:
    page = Page(24)
    page.add("protobuf 4.24.4 (needs <3.21), with TensorFlow", mark=("✗", "red"))
    assert page.text.plain.split("\n") == ["✗ protobuf 4.24.4 (needs", "  <3.21), with", "  TensorFlow"]


def test_styles_survive() -> None:
    wrapped = wrap(Text("one two ").append("three four", "bold"), 9)
    assert wrapped.plain == "one two\nthree\nfour"
    bold = [wrapped.plain[span.start : span.end].strip() for span in wrapped.spans if span.style == "bold"]
    assert bold == ["three", "four"]


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("ab目录/\\"), max_size=60), st.integers(5, 30))
def test_the_middle_goes_and_the_end_stays(text: str, width: int) -> None:
    cut = middle(text, width)
    assert cell_len(cut) <= width
    head, _, tail = cut.partition("…")
    assert cut == text or (text.startswith(head) and text.endswith(tail) and cell_len(tail) >= cell_len(head))
