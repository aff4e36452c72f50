"""The parser that keeps a paste together, fed as a terminal feeds it: any bytes, split anywhere."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from textual import events
from textual.message import Message

from tests.pilot import Machine, app_on, wait_for
from tftriage.facts import Facts
from tftriage.requests import Target
from tftriage.tui import pasting
from tftriage.tui.pasting import END, START, PasteParser, Typed, install

LINE = "2020-01-15 10:00:00.123456: W dso_loader.cc:55] Could not load dynamic library 'cudart64_101.dll'\r"


def fed(parts: Iterable[str], parser: PasteParser | None = None) -> list[Message]:
    parser = parser or PasteParser()
    return [message for part in parts for message in parser.feed(part)]


def keys(messages: Iterable[Message]) -> list[str]:
    return [message.key for message in messages if isinstance(message, events.Key)]


def split(text: str, cuts: list[int]) -> list[str]:
    at = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in pairwise(at)]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.lists(st.integers(0, 400), max_size=8))
@example("\x1b[31mred\x1b[0m\x1b", [])
@example("\x1b[201", [7, 9])
@example("y\ry\r", [6, 7])
def test_any_text_between_the_brackets_is_one_paste_however_it_is_split(text: str, cuts: list[int]) -> None:
    text = text.replace(END, "")
    messages = fed(split(START + text + END, cuts))
    assert [m.text for m in messages if isinstance(m, events.Paste)] == [text.replace("\x00", "")]
    assert keys(messages) == []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=6))
def test_keys_before_and_behind_a_paste_stay_keys(cuts: list[int]) -> None:
    messages = fed(split("j" + START + "a\x1bb" + END + "k", cuts))
    assert keys(messages) == ["j", "k"]
    assert [m.text for m in messages if isinstance(m, events.Paste)] == ["a\x1bb"]


def test_two_pastes_in_one_read_are_two() -> None:
    messages = fed([f"{START}one{END}{START}two{END}"])
    assert [m.text for m in messages if isinstance(m, events.Paste)] == ["one", "two"]


def test_a_paste_that_never_ends_is_taken_for_ended_and_keys_work_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(pasting, "get_time", lambda: now[0])
    parser = PasteParser()
    assert fed([START + "the text"], parser) == []
    now[0] += 3
    assert fed(["j"], parser) == [] and list(parser.tick()) == []
    now[0] += 2.5  # single keys do not keep it open
    assert [m.text for m in parser.tick() if isinstance(m, events.Paste)] == ["the textj"]
    assert keys(fed(["q"], parser)) == ["q"]


def test_the_end_of_input_hands_over_what_there_is() -> None:
    assert [m.text for m in fed([START + "half", ""]) if isinstance(m, events.Paste)] == ["half"]


@pytest.mark.parametrize(
    ("read", "pressed"),
    [
        ("q", ["q"]),
        ("\x1b[B", ["down"]),
        ("\x1b[B" * 8, ["down"] * 8),
        ("jjjjjjjjjj", ["j"] * 10),
        ("ab\r", ["a", "b", "enter"]),
    ],
)
def test_what_fingers_do_stays_keys(read: str, pressed: list[str]) -> None:
    assert keys(fed([read])) == pressed


@pytest.mark.parametrize(
    "text", ["pip list\r", LINE, "你好，世界！再见", "yes\x1b[31m, \x1b[0mplease\r", "[200~quit now[201~"]
)
def test_a_read_full_of_text_is_typed_not_pressed(text: str) -> None:
    messages = fed([text])
    assert keys(messages) == []
    (typed,) = [m for m in messages if isinstance(m, Typed)]
    assert "\x1b" not in typed.text and "[20" not in typed.text


def test_the_terminals_own_answers_are_no_text() -> None:
    messages = fed(["\x1b[?2026;2$y\x1b[I", "\x1b[24;80R", "\x1b[?2048;0$y"])
    assert not any(isinstance(m, events.Paste) for m in messages)


def test_five_megabytes_take_less_than_a_second() -> None:
    text = (LINE * (5_000_000 // len(LINE) + 1))[:5_000_000]
    whole = START + text + END
    parser = PasteParser()
    begun = time.process_time()
    messages = fed((whole[at : at + 4096] for at in range(0, len(whole), 4096)), parser)
    used = time.process_time() - begun
    assert [len(m.text) for m in messages if isinstance(m, events.Paste)] == [len(text)]
    print(f"5 MB: {used:.3f} s CPU")
    assert used < 1.0


async def test_100_kilobytes_without_brackets_are_one_paste_and_fast() -> None:
    """As Windows 10's console delivers them: reads of some hundred keys, one after the other."""
    text = LINE * (100_000 // len(LINE))
    triage = app_on(Machine(Facts()), Target(python="/p"))
    taken: list[str] = []
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "nothing pasted yet")
        triage.screen.pasted = taken.append  # type: ignore[attr-defined]
        parser = PasteParser()
        begun = time.process_time()
        for at in range(0, len(text), 1000):
            for message in parser.feed(text[at : at + 1000]):
                triage.post_message(message)
        while not taken:
            await pilot.pause(0.02)
        used = time.process_time() - begun
        await pilot.pause(0.3)
    assert [len(one) for one in taken] == [len(text)]
    print(f"100 KB unbracketed: {used:.3f} s CPU")
    assert used < 2.0


def test_it_is_installed_in_the_driver_of_this_system() -> None:
    import sys

    assert install(), "this Textual is one that the parser was not written for"
    if sys.platform == "win32":
        from textual.drivers import win32 as driver
    else:
        from textual.drivers import linux_driver as driver  # type: ignore[no-redef]
    assert driver.XTermParser is PasteParser


def test_a_byte_that_is_no_utf8_does_not_end_the_program() -> None:
    decode = pasting._lenient("utf-8")().decode
    assert decode("报错".encode("gbk"))
    assert decode(b"\xff\xfe q").endswith(" q")


def test_another_textual_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textual.__version__", "99.0")
    assert install() is False
