"""Who needs whom: the import chain as a tree, one library in detail, and what a folder on PATH would change."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from tftriage import chains, loader
from tftriage.facts import Facts
from tftriage.loader import Entry, Resolution
from tftriage.plain import one_line
from tftriage.session import Arrived, Progress
from tftriage.tui.base import Choices, Scroll, TriageScreen
from tftriage.tui.commands import (
    ALL,
    BACK,
    DIGITS,
    DLLS_SCREEN,
    EVERYWHERE,
    TOGGLE,
    WHAT_IF,
    Command,
    bindings,
    moves,
)
from tftriage.tui.wrapping import Page

NEEDS = ("system.os", "target.interpreter", "tf.package", "dlls.tree", "cuda.toolkits", "tf.libraries")
NAME = 34  # cells of a name with its branches
COPIES = 3  # losing copies that are listed


class DllsScreen(TriageScreen):
    """The tree above, below it the library under the bar; or the folders to try and what they would change."""

    COMMANDS_HERE = DLLS_SCREEN
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*DLLS_SCREEN), *moves(*DIGITS)]

    def __init__(self) -> None:
        super().__init__()
        self.running = True
        self.count = 0
        self.all = False
        self.trying = False  # the keys belong to the folders, not to the tree
        self.chosen: tuple[str, ...] = ()
        self.rows: list[chains.Row] = []
        self.resolution: Resolution | None = None
        self.changes: list[chains.Change] = []
        self.places: list[chains.Place] = []

    def body(self) -> ComposeResult:
        """Tree, folders, detail."""
        yield Static(id="hint", markup=False)
        yield Choices(id="tree", markup=False, classes="chosen")
        yield Choices(id="places", markup=False)
        with Scroll(id="detail"):
            yield Static(id="lines", markup=False)

    def commands(self) -> tuple[Command, ...]:
        """Folders only where there is a tree."""
        if self.running or not self.rows:
            return (BACK, *EVERYWHERE)
        if self.trying:
            return (*((TOGGLE,) if self.places else ()), WHAT_IF._replace(words="tree"), BACK, *EVERYWHERE)
        return (WHAT_IF, ALL._replace(words="fewer" if self.all else ""), BACK, *EVERYWHERE)

    def heading(self) -> str:
        """What is shown, and whether it is complete."""
        return self.say("dlls.heading")

    def progress(self) -> str:
        """How many are missing."""
        if self.resolution is None:
            return ""
        lost = {entry.name.lower() for entry in self.resolution.failed}
        return self.say("dlls.missing", n=len(lost)) if lost else self.say("dlls.complete")

    # --- looking -----------------------------------------------------------------------------------------------

    @property
    def facts(self) -> Facts:
        """What is known of the machine; the folders that are tried are in it."""
        return chains.what_if(self.triage.session.facts, self.chosen)

    def started(self) -> None:
        """Read import tables; a case has them already."""
        session = self.triage.session
        listen = self.from_thread(self.heard)
        self.in_thread(lambda: session.observe(NEEDS, listen), lambda _: self.looked())

    def heard(self, progress: Progress) -> None:
        """Count what arrived."""
        if isinstance(progress, Arrived):
            self.count += 1
            self.repaint()

    def looked(self) -> None:
        """The tree can be drawn."""
        self.running = False
        self.places = chains.places(self.triage.session.facts)
        self._resolve()
        self.repaint()

    def went_wrong(self, error: Exception) -> None:
        """Stay usable."""
        self.running = False
        super().went_wrong(error)

    def _resolve(self) -> None:
        tree = self.facts.value("dlls.tree")
        self.resolution = loader.resolve(tree) if tree else None
        self.rows = chains.rows(self.resolution, self.all) if self.resolution else []
        facts, tables = self.triage.session.facts, self.triage.kb.tables
        self.changes = chains.changes(facts, self.chosen, tables) if self.chosen else []

    # --- painting ----------------------------------------------------------------------------------------------

    def show(self) -> None:
        """Hint, tree, folders, detail."""
        self._hint()
        tree = self.query_one("#tree", Choices)
        before = tree.highlighted
        tree.clear_options()
        for number, row in enumerate(self.rows):
            tree.add(self._row(row), id=str(number))
        tree.display = bool(self.rows)
        tree.set_class(not self.trying, "chosen")
        if self.rows:
            tree.highlighted = min(before or 0, len(self.rows) - 1)
        self._places()
        detail = self.query_one("#detail", Scroll)
        detail.display = bool(self.rows)
        self._detail()

    def _hint(self) -> None:
        page = self.page()
        if self.notice:
            page.add(self.notice, "bold")
        elif self.running:
            page.add(self.say("dlls.looking", n=self.count), "dim")
        elif not self.rows:
            facts = self.triage.session.facts
            reason = facts.why_not("dlls.tree") if not facts.ok("dlls.tree") else self.say("report.nothing")
            page.add(self.say("dlls.none", reason=one_line(reason, 200)), "bold")
            page.gap()
            page.add(self.say("dlls.none-why"))
        elif self.trying or self.chosen:
            page.add(self.say("dlls.what-if", variable=chains.variable(self.facts)), "bold")
        elif self.resolution is not None and self.resolution.incomplete:
            page.add(self.say("dlls.incomplete"), "bold")
        hint = self.query_one("#hint", Static)
        hint.display = bool(page.lines)
        hint.update(page.text)

    def _row(self, row: chains.Row) -> Text:
        width = self.app.size.width
        rails = "".join("│ " if on else "  " for on in row.rails[1:])
        branch = ("└ " if row.last else "├ ") if row.depth else ""
        line = Text(f" {rails}{branch}", "dim", no_wrap=True, overflow="ellipsis")
        if row.entry is None:
            glyph, style = self.mark("ok")
            return line.append(f"{glyph} ", style).append(self.say("dlls.more", n=row.hidden), "not dim")
        entry = row.entry
        failed = entry.failure is not None and not entry.optional
        glyph, style = self.mark("bad" if failed and entry.failure != "child-absent" else "info" if failed else "ok")
        line.append(f"{glyph} ", f"not dim {style}")
        line.append(one_line(entry.name), "not dim bold" if failed else "not dim")
        line.truncate(max(NAME, width // 3), overflow="ellipsis", pad=True)
        room = max(8, width - line.cell_len - 3)
        if entry.failure:
            said, look = self.say(f"dlls.failure.{entry.failure}"), "bold not dim"
        else:
            where = loader.folder(entry.path or "") or self.say(f"dlls.rule.{entry.rule}")
            said, look = self.path(where, room), "dim"
        return line.append("  ").append(Text(said, look))

    def _places(self) -> None:
        places = self.query_one("#places", Choices)
        before = places.highlighted
        places.clear_options()
        places.display = self.trying and bool(self.places)
        places.set_class(self.trying, "chosen")
        for number, place in enumerate(self.places, 1):
            box = "[x]" if place.folder in self.chosen else "[ ]"
            line = Text(f" {number} " if number < 10 else "   ", no_wrap=True, overflow="ellipsis").append(f"{box} ")
            searched = "  " + self.say("dlls.searched") if place.searched else ""
            line.append(self.path(place.folder, self.app.size.width - 9 - len(searched) * 2)).append(searched, "dim")
            places.add(line, id=str(number))
        if self.places:
            places.highlighted = before or 0

    def _detail(self) -> None:
        page = self.page()
        if self.trying:
            self._effects(page)
        else:
            at = self.query_one("#tree", Choices).highlighted
            row = self.rows[at] if at is not None and at < len(self.rows) else None
            if row is not None and row.entry is not None:
                self._entry(page, row.entry)
            elif row is not None:
                page.add(self.say("dlls.more", n=row.hidden))
        self.query_one("#lines", Static).update(page.text)

    def _effects(self, page: Page) -> None:
        if not self.places:
            page.add(self.say("dlls.no-places"))
        elif not self.chosen:
            page.add(self.say("dlls.try"))
        elif not self.changes:
            page.add(self.say("dlls.changes-nothing"))
        for change in self.changes:
            before, after = (self.answer(change.probe, f.answer) for f in (change.before, change.after))
            probe = self.say("probe." + change.probe)
            bad = any(line.level == "bad" for line in change.after.evidence)
            unknown = change.after.answer == "unknown"
            mark = self.mark("bad" if bad else "unknown" if unknown else "ok")
            page.add(self.say("dlls.change", probe=probe, before=before, after=after), mark=mark)

    def _entry(self, page: Page, entry: Entry) -> None:
        page.add(one_line(entry.name), "bold")
        if entry.failure:
            page.add(self.say(f"dlls.failure.{entry.failure}"), "bold", self.mark("bad"))
        chain = " > ".join(one_line(name) for name in entry.chain)
        head = "dlls.root" if loader.folder(entry.root) else "dlls.root-name"
        page.add(self.say("dlls.needed-by", chain=chain) if chain else self.say(head))
        if entry.path and entry.rule != "nowhere":
            page.add(self.say("dlls.found", rule=self.say(f"dlls.rule.{entry.rule}")))
            page.add(self.say("dlls.at", path=one_line(entry.path)))
        facts = " ".join(part for part in (entry.version or "", entry.machine or "") if part)
        if facts:
            page.add(self.say("dlls.version", version=one_line(facts)))
        if entry.optional:
            page.add(self.say("dlls.optional"))
        tree = self.facts.value("dlls.tree") or {}
        for copy in entry.shadowed[:COPIES]:
            page.add(self.say("dlls.shadowed", path=one_line(copy.path)), mark=self.mark("info"))
        reached = {copy.path for copy in entry.unsearched}
        for path in [copy.path for copy in entry.unsearched] + self._of(tree, "elsewhere", entry, reached):
            page.add(self.say("dlls.unsearched", path=one_line(path)), mark=self.mark("info"))
        for path in self._of(tree, "near", entry, set()):
            page.add(self.say("dlls.near", path=one_line(path)), mark=self.mark("info"))

    @staticmethod
    def _of(tree: dict[str, dict[str, list[str]]], table: str, entry: Entry, known: set[str]) -> list[str]:
        """Files of that name that were seen somewhere; only where it is missing do they matter."""
        found = [
            p for name, paths in (tree.get(table) or {}).items() if name.lower() == entry.name.lower() for p in paths
        ]
        return [path for path in found if path not in known][:COPIES] if entry.failure == "absent" else []

    # --- keys --------------------------------------------------------------------------------------------------

    @property
    def _list(self) -> Choices:
        return self.query_one("#places" if self.trying and self.places else "#tree", Choices)

    def action_move(self, lines: int) -> None:
        """The bar; the detail follows."""
        self._list.move(lines)
        self._detail()

    def action_page(self, pages: int) -> None:
        """The detail, when there is more of it; else the bar, faster."""
        detail = self.query_one("#detail", Scroll)
        if pages > 0 and self.more_below():
            detail.scroll_relative(y=max(1, detail.size.height - 1), animate=False)
        else:
            detail.scroll_home(animate=False)
            self.action_move(pages * 8)

    def action_end(self, end: int) -> None:
        """The first or the last."""
        self.action_move(end * 10_000)

    def action_what_if(self) -> None:
        """To the folders, or back to the tree."""
        if not self.running and self.rows:
            self.trying = not self.trying
            self.query_one("#detail", Scroll).scroll_home(animate=False)
            self.repaint()

    def action_put_in(self) -> None:
        """The folder under the bar."""
        at = self.query_one("#places", Choices).highlighted
        if self.trying and at is not None:
            self.action_pick(at + 1)

    def action_pick(self, number: int) -> None:
        """A digit: this folder in front, or out again."""
        if not self.trying or number > len(self.places):
            return
        folder = self.places[number - 1].folder
        chosen = [path for path in self.chosen if path != folder]
        self.chosen = tuple(chosen) if folder in self.chosen else (folder, *chosen)
        self.query_one("#places", Choices).highlighted = number - 1
        self._resolve()
        self.repaint()

    def action_show_all(self) -> None:
        """Every library, or only those of concern."""
        self.all = not self.all
        self._resolve()
        self.repaint()

    def leave(self) -> None:
        """What still looks is ended."""
        super().leave()
        if self.running and self.triage.session.source.live:
            self.triage.stop_looking()
