"""Whatever a forum, a terminal or a code page does to a message, the clean lines and their numbers come back."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tftriage.repair import LIMIT, fold, repair

PATH = r"C:\lab\env\lib\site-packages\tensorflow\python\pywrap_tensorflow.py"
TRACE = f"""Traceback (most recent call last):
  File "{PATH}", line 64, in <module>
    from tensorflow.python._pywrap_tensorflow_internal import *
ImportError: DLL load failed: 找不到指定的模块。
"""


def clean(text: str) -> str:
    return repair(text).text


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("\x1b[1;31mImportError\x1b[0m: no", "ImportError: no"),
        ("\x1b]0;title\x07prompt> ", "prompt> "),
        ("[0;31mImportError[0m: no", "ImportError: no"),
        ("I\0m\0p\0o\0r\0t\0", "Import"),
        ("\ufeffabc\u200bdef", "abcdef"),
        ("one\r\ntwo", "one\ntwo"),
        ("abx\bc", "abc"),
        (r"File C:\\env\\lib", r"File C:\env\lib"),
        (r"找 \u627e\u4e0d\u5230", "找 找不到"),
        (r"D:\ubeef\x.py", r"D:\ubeef\x.py"),
        (r"C:\new\table", r"C:\new\table"),
        ("OSError: cannot open 'C:\\new\\x'", "OSError: cannot open 'C:\\new\\x'"),
        ("DLL load failed：找不到（126）", "DLL load failed:找不到(126)"),
        ("it isn’t “here”", 'it isn\'t "here"'),
        ("----> 3 import tensorflow", "import tensorflow"),
        ("50%|█████     | 1/2\r100%|██████████| 2/2", "50%|█████     | 1/2\n100%|██████████| 2/2"),
    ],
)
def test_damage_is_undone(raw: str, expected: str) -> None:
    assert clean(raw) == expected


@pytest.mark.parametrize(
    ("written", "read"),
    [("utf-8", "latin-1"), ("gbk", "latin-1"), ("utf-8", "gbk"), ("utf-8", "cp437"), ("utf-8", "cp850")],
)
def test_wrong_decoding_is_undone_without_knowing_the_phrase(written: str, read: str) -> None:
    right = "读取模型文件时发生错误"
    kept = right[:-1] if read == "gbk" else right  # an odd byte at the end is lost for good
    assert kept in clean(right.encode(written).decode(read, "replace"))


@pytest.mark.parametrize(
    "text", ["Le module spécifié est introuvable à côté", "größer als üblich", "目录 张伟 里有文件", "日本語のパス"]
)
def test_healthy_text_is_left_alone(text: str) -> None:
    assert clean(text) == text


def test_a_known_phrase_settles_the_code_page() -> None:
    phrase = "Не найден указанный модуль"
    broken = f"Error: {phrase}".encode("cp1251").decode("cp437")
    assert phrase not in clean(broken)
    assert phrase in repair(broken, [fold(phrase)]).text


def test_lines_broken_at_80_columns_are_joined_and_keep_their_numbers() -> None:
    line = '  File "C:\\lab\\' + "x" * 70 + '\\pywrap_tensorflow_internal.py", line 18, in swig_import_helper'
    broken = "Traceback (most recent call last):\n" + re.sub(r"(.{80})", r"\1\n", line) + "\nImportError: no"
    page = repair(broken)
    assert [(part.text, part.start, part.end) for part in page.lines] == [
        ("Traceback (most recent call last):", 1, 1),
        (line, 2, 3),
        ("ImportError: no", 4, 4),
    ]


def test_a_blank_lost_at_the_edge_comes_back() -> None:
    first = "x" * 71 + " is named"
    assert len(first) == 80
    assert clean(first + "\n" + "a" * 79 + "\nand more") == first + "a" * 79 + " and more"
    assert clean(first + "\nin your path") == first + "in your path"


def test_a_new_statement_is_no_continuation() -> None:
    text = "a" * 80 + "\nImportError: no\n" + "b" * 80 + "\n2021-01-01 00:00:00.0: I x.cc:1] y"
    assert len(repair(text).lines) == 4


@pytest.mark.parametrize("style", ["{n} {line}", "{n:3d}| {line}", "{n}. {line}", "{n}\t{line}"])
def test_forum_line_numbers_go(style: str) -> None:
    numbered = "\n".join(style.format(n=n, line=line) for n, line in enumerate(TRACE.splitlines(), 1))
    assert [line.text.strip() for line in repair(numbered).lines] == [
        line.strip() for line in clean(TRACE).splitlines()
    ]


def test_quoted_mail_is_read() -> None:
    quoted = "\n".join("> " + line for line in TRACE.splitlines())
    assert clean(quoted).splitlines() == clean(TRACE).splitlines()
    assert clean(">>> import tensorflow\n>>> x").startswith(">>> import")


def test_notebook_json_becomes_lines_of_one_line() -> None:
    page = repair(json.dumps({"traceback": [TRACE]}))
    assert any(line.text == "ImportError: DLL load failed: 找不到指定的模块。" for line in page.lines)
    assert {(line.start, line.end) for line in page.lines} == {(1, 1)}
    assert PATH in page.text


def test_binary_is_named() -> None:
    page = repair(bytes(range(256)).decode("latin-1") * 50)
    assert page.binary
    assert page.lines == ()


def test_long_text_keeps_head_telling_lines_and_tail() -> None:
    filler = "".join(f"step {n} of 9 went well\n" for n in range(20_000))
    text = f"first\n{filler}RuntimeError: in the middle 7\n{filler}last"
    assert len(text) > LIMIT
    page = repair(text)
    assert page.cut
    found = {line.text: line.start for line in page.lines}
    assert found["first"] == 1
    assert found["RuntimeError: in the middle 7"] == 20_002
    assert found["last"] == 40_003
    assert len(page.lines) < 8_000


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=400))
def test_any_text_is_survived(text: str) -> None:
    page = repair(text)
    last = text.count("\n") + 1
    assert all(1 <= line.start <= line.end <= last for line in page.lines)
    assert "\x1b[" not in page.text or "\x1b" in text
    assert "\0" not in page.text


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("2024-05-01 10:11:12,345 - train - ERROR - NameError: no", "NameError: no"),
        ("2024-05-01T10:11:12.345Z NameError: no", "NameError: no"),
        ("[2024-05-01 10:11:12] [ERROR] [app] NameError: no", "NameError: no"),
        ("May 01 10:11:12 lab-7 python3[2211]: NameError: no", "NameError: no"),
        ("[1,0]<stderr>:NameError: no", "NameError: no"),
        ("[rank0]: NameError: no", "NameError: no"),
        ("(train pid=77, ip=10.0.0.2) NameError: no", "NameError: no"),
        ("#9 1.821 NameError: no", "NameError: no"),
        ("\u2022 NameError: no", "NameError: no"),
        ("trainer_1  | a\ntrainer_1  | NameError: no", "a\nNameError: no"),
        ("* a\n* NameError: no", "a\nNameError: no"),
        ("\u256d\u2500\u256e\n\u2502 NameError: no \u2502\n\u2570\u2500\u256f", "\nNameError: no\n"),
    ],
)
def test_what_a_logger_or_a_frame_puts_before_a_line_goes(raw: str, expected: str) -> None:
    assert clean(raw) == expected


@pytest.mark.parametrize(
    "line",
    [
        "2021-05-05 10:11:12.345678: W tensorflow/core/x.cc:1] y",
        "I0000 00:00:1733000001.500000    8123 gpu_device.cc:2022] y",
        "[I 10:11:12.130 NotebookApp] Kernel started",
        "- tensorflow==1.15",
        "1. Downgrade the protobuf package",
        "a | b",
    ],
)
def test_what_belongs_to_the_message_stays(line: str) -> None:
    assert clean(line) == line


@pytest.mark.parametrize("width", [64, 72, 79, 80, 90, 100, 118, 132])
def test_a_path_that_any_window_broke_is_whole_again(width: int) -> None:
    broken = "\n".join(line[at : at + width] for line in TRACE.splitlines() for at in range(0, len(line), width))
    assert f'File "{PATH}", line 64' in clean(broken)


def test_a_line_that_may_go_on_is_marked() -> None:
    first, second = repair("a" * 60 + " it may:\nor not").lines
    assert first.loose and not second.loose
    assert not any(line.loose for line in repair("a" * 60 + "\nValueError: no").lines)
