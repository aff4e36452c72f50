"""Everything checked: what is wrong first, in words; the way from there to the cause."""

from __future__ import annotations

import pytest

from tests.pilot import KB, case_app, press, wait_for
from tftriage.tui.screens.walk import WalkScreen


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_what_is_wrong_comes_first_in_words(lang: str) -> None:
    async with case_app("protobuf", lang).run_test(size=(80, 60)) as pilot:
        await wait_for(pilot, KB.say("start.looks-like", lang))
        await press(pilot, "d")
        text = await wait_for(pilot, KB.say("doctor.heading", lang), "protobuf 4.24.4")
        wrong, right = text.index(KB.say("probe.dependencies_fit", lang)), text.index(KB.say("probe.build_gpu", lang))
        assert wrong < right < text.index(KB.say("doctor.unknown", lang))
        assert "dependencies_fit" not in text and "protobuf-too-new" not in text


async def test_all_evidence_on_request() -> None:
    async with case_app("found-not-added").run_test(size=(80, 90)) as pilot:
        await wait_for(pilot, "Looks like")
        await press(pilot, "d")
        await wait_for(pilot, "E shows all", "E all")
        await press(pilot, "f4")
        text = await wait_for(pilot, "libcudnn.so.7 does not open", "E fewer")
        assert "E shows all" not in text


async def test_enter_goes_to_the_cause() -> None:
    triage = case_app("protobuf", live=True)
    async with triage.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "Looks like")
        await press(pilot, "d")
        await wait_for(pilot, "Everything checked")
        await press(pilot, "enter")
        await wait_for(pilot, "Enter shows what to do", KB.diagnoses["protobuf-too-new"].title["en"])
        assert isinstance(triage.screen, WalkScreen)
        await press(pilot, "b")
        await wait_for(pilot, "Everything checked")
        await press(pilot, "b")
        await wait_for(pilot, "Looks like")
