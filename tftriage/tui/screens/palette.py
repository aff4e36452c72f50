"""Every command of the screen below, and every other screen, by name in either language."""

from __future__ import annotations

from collections.abc import Callable

from tftriage.tui.base import TriageScreen
from tftriage.tui.commands import (
    CHANGING,
    CHECK,
    DLLS,
    ENVIRONMENT,
    HELP,
    LANGUAGE,
    MONITOR,
    PALETTE,
    QUIT,
    REPORT,
    REPRODUCE,
    SEARCH,
    TOUR,
    TYPED,
    Command,
)
from tftriage.tui.screens.picker import Line, PickerScreen
from tftriage.tui.screens.start import StartScreen

FIRST = Command("start", (), "")
FROM_START = (REPRODUCE, ENVIRONMENT, CHECK)  # commands of the first screen; it comes to the top for them
FROM_ANYWHERE = (SEARCH, MONITOR, DLLS, REPORT, HELP, TOUR)


class PaletteScreen(PickerScreen):
    """``below`` is the screen that the commands belong to."""

    NAME = "palette"

    def __init__(self, below: TriageScreen) -> None:
        super().__init__()
        self.below = below

    def here(self) -> list[Command]:
        """What can be done on the screen below, each once."""
        return [one for one in dict.fromkeys(self.below.commands()) if one not in (PALETTE, TYPED)]

    def elsewhere(self) -> list[Command]:
        """The screens that can be gone to from here and are not among the commands already."""
        offered = {command.action for command in self.here()}
        found = [one for one in (*FROM_ANYWHERE, *FROM_START) if one.action not in offered]
        if self.triage.session.walk is None:
            found = [one for one in found if one is not REPORT]
        if not self.triage.session.source.live:
            found = [one for one in found if one not in (REPRODUCE, ENVIRONMENT)]
        return found if isinstance(self.below, StartScreen) else [FIRST, *found]

    def lines(self, query: str) -> list[Line]:
        """Those whose name or explanation has every word of the query, in either language."""
        groups = (("palette.here", self.here()), ("palette.screens", self.elsewhere()))
        made: list[Line] = []
        for number, (heading, commands) in enumerate(groups):
            fitting = [one for one in commands if self._fits(one, query)]
            made += [Line("", self.say(heading))] if fitting else []
            for one in fitting:
                name = "palette.language" if one == LANGUAGE else one.message  # its label is in the other language
                label = self.say("doctor.line", what=self.say(name)) + self.say(one.message + ".help")
                made.append(Line(f"{number} {one.action} {one.message}", label, one.shown))
        return made

    def _fits(self, command: Command, query: str) -> bool:
        messages = self.triage.kb.messages
        texts = [messages[key][lang] for key in (command.message, command.message + ".help") for lang in ("en", "zh")]
        text = " ".join([*texts, command.shown]).lower()
        return all(word in text for word in query.lower().split())

    def picked(self, id: str) -> None:
        """Leave, then do it where it belongs."""
        number, action, message = id.split(" ")
        self.leave()
        self.app.pop_screen()
        command = next(one for one in (*self.here(), *self.elsewhere()) if one.message == message)
        if command in CHANGING:  # never by a letter that was typed into a box
            self.below.notice = self.say("palette.press", keys=command.shown)
            self.below.repaint()
        elif command in (LANGUAGE, QUIT):
            self.app.call_later(self.app.run_action, action)
        elif number == "0" or command in FROM_ANYWHERE:
            self._call(self.below, action)
        else:
            self.triage.to_start()
            if command is not FIRST:
                self._call(self.triage.screen, action)

    def _call(self, screen: object, action: str) -> None:
        """Run an action of a screen, unless that screen does not take it now."""
        check: Callable[[str, tuple[object, ...]], bool | None] | None = getattr(screen, "check_action", None)
        name = {"page_down": "page"}.get(action, action)
        if check is None or check(name, ()) is not False:
            self.app.call_later(getattr(screen, f"action_{name}"))
