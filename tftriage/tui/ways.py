"""The ways to screens that can be opened from several others. Each is imported only when it is opened (start-up)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from tftriage.tui.base import TriageScreen


class Ways:
    """Mixed into every screen; the commands that call these say on which screens they are offered."""

    def _push(self, screen: Any) -> None:
        cast("TriageScreen", self).app.push_screen(screen)

    def action_report(self) -> None:
        """What was found, to hand to another person."""
        from tftriage.tui.screens.report import ReportScreen

        self._push(ReportScreen())

    def action_dlls(self) -> None:
        """Who needs whom."""
        from tftriage.tui.screens.dlls import DllsScreen

        self._push(DllsScreen())

    def action_monitor(self) -> None:
        """GPU and CPU over time."""
        from tftriage.tui.screens.monitor import MonitorScreen

        self._push(MonitorScreen())

    def action_search(self) -> None:
        """All symptoms, by a person's own words."""
        from tftriage.tui.screens.picker import SearchScreen

        self._push(SearchScreen())

    def action_palette(self) -> None:
        """Every command, by name."""
        from tftriage.tui.screens.palette import PaletteScreen
        from tftriage.tui.screens.picker import PickerScreen

        if not isinstance(self, PickerScreen):
            self._push(PaletteScreen(cast("TriageScreen", self)))

    def action_tour(self) -> None:
        """What this program does."""
        from tftriage.tui.screens.tour import TourScreen

        self._push(TourScreen())

    def action_help(self) -> None:
        """The keys of this screen."""
        from tftriage.tui.screens.help import HelpScreen

        self._push(HelpScreen(tuple(dict.fromkeys(cast("TriageScreen", self).commands()))))
