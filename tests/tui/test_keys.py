"""Keyboard only: every command of every screen by each of its keys, and no dead end anywhere."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

from tests.pilot import KB, press, wait_for
from tests.tui.places import TYPING, WAYS, go, on_a_machine
from tftriage.probes import PROBES
from tftriage.tui import commands, screens
from tftriage.tui.base import TriageScreen
from tftriage.tui.commands import BACK, HELP, LANGUAGE, LEAVE, QUIT, Command
from tftriage.tui.screens.picker import PickerScreen
from tftriage.tui.screens.start import StartScreen

DECLARED = [value for value in vars(commands).values() if isinstance(value, Command)]


@pytest.mark.parametrize("screen", WAYS)
async def test_every_key_of_every_screen_does_something_and_there_is_a_way_back(screen: str, tmp_path: Path) -> None:
    written = tmp_path / "written.py"
    with on_a_machine(written) as triage:
        async with triage.run_test(size=(80, 24)) as pilot:
            await go(pilot, screen)
            assert isinstance(triage.screen, TriageScreen)
            offered = [command for command in triage.screen.commands() if command.action not in ("quit", "apply")]
            keys = [key for command in offered for key in command.keys]
            assert len(keys) == len(set(keys)), "one key, two commands"
            name = type(triage.screen).__name__
            text = triage.session.text
            for key in [*keys, "down", "up", "j", "k", "pagedown", "pageup", "home", "end", "1", "9", "tab", "z"]:
                if type(triage.screen).__name__ != name:
                    triage.to_start()
                    await go(pilot, screen)
                await press(pilot, key, quiet=0.02)
                assert isinstance(triage.screen, TriageScreen), key
                typing = getattr(triage.screen, "typing", False)
                seen = await wait_for(pilot, " Esc ") if typing else await wait_for(pilot, " ? ", " Q ")
                footer = seen.split("\n")[-1]
                assert ("Esc" in footer) if typing else (" ? " in footer and " Q " in footer), f"after {key}: {footer}"
                if typing:
                    await press(pilot, "escape")
                if triage.lang == "zh":
                    await press(pilot, "l")
                if not triage.session.text:
                    triage.session.paste(text)
                    triage.to_start()
            for _ in range(8):
                if isinstance(triage.screen, StartScreen):
                    break
                await press(pilot, "escape" if screen in TYPING else "b")
            assert isinstance(triage.screen, StartScreen)
    assert not written.exists()


async def test_there_is_a_way_to_every_screen_that_exists(tmp_path: Path) -> None:
    for module in pkgutil.iter_modules(screens.__path__):
        importlib.import_module(f"{screens.__name__}.{module.name}")
    exist, left = set(), [TriageScreen]
    while left:
        known = left.pop().__subclasses__()
        left += known
        exist |= {one for one in known if one.__module__.startswith(screens.__name__)}
    exist -= {PickerScreen}  # what the two that are typed into have in common
    reached = set()
    for screen in WAYS:
        with on_a_machine(tmp_path / "written.py") as triage:
            async with triage.run_test(size=(80, 24)) as pilot:
                await go(pilot, screen)
                reached.add(type(triage.screen))
    assert {one.__name__ for one in exist} == {one.__name__ for one in reached}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("screen", WAYS)
async def test_the_footer_is_never_cut_off(screen: str, lang: str, tmp_path: Path) -> None:
    with on_a_machine(tmp_path / "written.py") as triage:
        async with triage.run_test(size=(60, 20)) as pilot:
            await go(pilot, screen)
            if lang == "zh":
                await press(pilot, "f2")
            footer = (await wait_for(pilot, KB.say("key.quit", lang))).split("\n")[-1]
            assert KB.say("key.quit", lang) in footer and "…" not in footer
            first = next(command for command in triage.screen.commands() if command.footer)  # type: ignore[attr-defined]
            assert f" {first.shown} {KB.say(first.message, lang)}" in footer


@pytest.mark.parametrize("key", QUIT.keys)
async def test_q_leaves_from_every_screen(key: str, tmp_path: Path) -> None:
    for screen in [name for name in WAYS if name not in TYPING] if key == "q" else ("walk", *TYPING):
        if screen in TYPING and key not in ("f10", "ctrl+c"):
            continue  # letters are text there
        with on_a_machine(tmp_path / "written.py") as triage:
            async with triage.run_test(size=(80, 24)) as pilot:
                await go(pilot, screen)
                await press(pilot, key)
            assert triage.return_code == 0


def test_every_command_has_two_keys_and_needs_neither_ctrl_nor_alt() -> None:
    assert len(DECLARED) > 20
    for command in DECLARED:
        if command.action == "typed":  # Esc ends typing; Enter is a new line there
            continue
        plain = [key for key in command.keys if not key.startswith(("ctrl+", "alt+", "shift+"))]
        assert len({key.lower() for key in plain}) >= 2, command
        no_letter = [key for key in plain if len(key) > 1]
        assert no_letter, f"{command}: an input method would catch every key of it"
        no_function_key = [key for key in plain if key not in {f"f{n}" for n in range(1, 13)}]
        assert no_function_key, command


def test_every_command_and_every_probe_has_its_words_in_both_languages() -> None:
    words = [command.message for command in DECLARED] + [f"{command.message}.help" for command in DECLARED]
    words += [
        f"key.{name}"
        for name in (
            "give",
            "diagnosis",
            "steps",
            "close",
            "next_cause",
            "other_fix",
            "fewer",
            "stop",
            "resume",
            "tree",
            "start",
        )
    ]
    words += [f"probe.{name}" for name in PROBES]
    assert [key for key in words if key not in KB.messages] == []
    assert all(KB.messages[key][lang] for key in words for lang in ("en", "zh"))


async def test_help_explains_every_command_of_the_screen(tmp_path: Path) -> None:
    for screen in WAYS:
        with on_a_machine(tmp_path / "written.py") as triage:
            async with triage.run_test(size=(100, 40)) as pilot:
                await go(pilot, screen)
                assert isinstance(triage.screen, TriageScreen)
                offered = triage.screen.commands()
                assert {HELP.action, LANGUAGE.action, QUIT.action} <= {command.action for command in offered}
                assert screen == "start" or {BACK, LEAVE} & set(offered)
                if screen == "help":
                    continue
                await press(pilot, "f1")
                text = await wait_for(pilot, KB.messages["help.promise"]["en"][:30])
                for command in offered:
                    assert KB.messages[f"{command.message}.help"]["en"][:40] in text
