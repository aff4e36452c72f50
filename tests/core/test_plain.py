"""Foreign text is shown, never obeyed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tftriage.plain import one_line, plain


def test_terminal_sequences_go_whole() -> None:
    assert plain("\x1b[31mred\x1b[0m \x1b]0;title\x07x\x1b[2J\x9b5n") == "red x5n"


def test_text_stays() -> None:
    assert plain("导入失败：\tfoo\r\nbar\rbaz") == "导入失败：\tfoo\nbar\nbaz"


def test_reordering_and_invisible_characters_go() -> None:
    assert plain("a\u202egpj.exe\u200b\ufeff\x00b") == "agpj.exeb"


def test_one_line_is_cut_with_a_mark() -> None:
    assert one_line("a\nb   c", 4) == "a b…"
    assert one_line("abcd", 4) == "abcd"


@given(st.text())
def test_nothing_that_acts_survives(text: str) -> None:
    for character in plain(text):
        assert character in "\n\t" or ord(character) >= 32
        assert not 0x7F <= ord(character) <= 0x9F
    assert "\n" not in one_line(text)
