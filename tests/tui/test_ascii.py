"""Terminals that can draw little: ASCII frames and marks on every screen, and a meaning without colour."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from tests.pilot import KB, case_app, press, wait_for
from tftriage.tui import glyphs
from tftriage.tui.app import TriageApp


async def every_screen(pilot: Pilot[int], lang: str) -> list[str]:
    """What is shown on each screen of a walked case."""
    app = pilot.app
    assert isinstance(app, TriageApp)
    seen = [await wait_for(pilot, KB.say("walk.enter-diagnosis", lang))]
    for keys, words in (
        (["enter"], KB.say("diagnosis.fixes", lang)),
        (["enter"], KB.say("fix.recorded", lang)[:20]),
        (["h"], KB.say("help.heading", lang)),
        (["b", "b", "b", "b"], KB.say("start.looks-like", lang)),
        (["d"], KB.say("doctor.heading", lang)),
        (["d"], KB.say("dlls.heading", lang)),
        (["w"], KB.say("dlls.try", lang)[:10]),
        (["b", "b", "slash"], KB.say("search.heading", lang)),
        (["escape", "colon"], KB.say("palette.here", lang)),
        (["escape", "v"], KB.say("tour.1.title", lang)),
        (["b", "m"], KB.say("monitor.none-why", lang)[:10]),
        (["b", "enter"], KB.say("walk.enter-diagnosis", lang)),
        (["x"], KB.say("report.text", lang)),
    ):
        await press(pilot, *keys)
        seen.append(await wait_for(pilot, words))
    return seen


async def test_ascii_means_ascii_on_every_screen() -> None:
    async with case_app("protobuf", walked=True, ascii_only=True).run_test(size=(80, 24)) as pilot:
        for screen in await every_screen(pilot, "en"):
            assert screen.isascii(), [c for c in screen if not c.isascii()]
            assert "+" in screen or "x " in screen or "L zh" in screen


async def test_chinese_in_ascii_frames_has_no_character_of_doubtful_width() -> None:
    import unicodedata

    async with case_app("protobuf", "zh", walked=True, ascii_only=True).run_test(size=(80, 24)) as pilot:
        for screen in await every_screen(pilot, "zh"):
            doubtful = {c for c in screen if unicodedata.east_asian_width(c) == "A"}
            assert not doubtful


async def test_the_bar_is_reverse_video_not_a_colour() -> None:
    async with case_app("protobuf").run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Looks like")
        strips = pilot.app.screen._compositor.render_strips()
        reverse = [part.text for strip in strips for part in strip if part.style and part.style.reverse]
        assert any(KB.symptom("protobuf-descriptors").title["en"][:20] in text for text in reverse)


def test_sentences_become_ascii_where_ascii_has_the_like() -> None:
    assert (
        glyphs.sentence("“Reading” the text … h5py: 3.8.0 → 2.10.0") == '"Reading" the text ... h5py: 3.8.0 -> 2.10.0'
    )
    assert all(glyphs.ASCII[name].isascii() for name in glyphs.GLYPHS)


@pytest.mark.parametrize(("term", "needed"), [("xterm-256color", False), ("linux", True), ("vt100", True)])
def test_old_terminals_get_ascii_unasked(term: str, needed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    if sys.platform == "win32":
        pytest.skip("Windows goes by the code page")
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys, "__stderr__", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert glyphs.wanted() is needed
    monkeypatch.setattr(sys, "__stderr__", io.TextIOWrapper(io.BytesIO(), encoding="gbk"))
    assert glyphs.wanted()
