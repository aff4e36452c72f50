"""The import chain as a tree, and what-if: nothing is lost, and the model's answer agrees with the probes'."""

from __future__ import annotations

from pathlib import Path

import pytest

from tftriage import cases, chains
from tftriage.facts import Fact, Facts
from tftriage.knowledge import load
from tftriage.loader import resolve

KB = load()
DEMOS = Path(__file__).parents[2] / "tftriage" / "demos"
NAMES = ("cuda-not-on-path", "cudnn-renamed-utf-8", "damaged-install", "found-not-added", "protobuf")
TOOLKIT = "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v10.1\\bin"


def facts_of(name: str) -> Facts:
    return Facts(cases.read(DEMOS / f"{name}.json").facts)


@pytest.mark.parametrize("name", NAMES)
def test_every_library_is_in_the_tree_or_counted(name: str) -> None:
    resolution = resolve(facts_of(name).value("dlls.tree"))
    every = chains.rows(resolution, every=True)
    assert len(every) == len(resolution.entries) and not any(row.hidden for row in every)
    few = chains.rows(resolution)
    assert {id(e) for e in resolution.failed} <= {id(row.entry) for row in few}
    assert len(few) < 24 or name == "found-not-added"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("every", [True, False])
def test_the_branches_join_each_row_to_its_parent(name: str, every: bool) -> None:
    rows = chains.rows(resolve(facts_of(name).value("dlls.tree")), every)
    for number, row in enumerate(rows):
        if row.depth:
            parent = next(above for above in reversed(rows[:number]) if above.depth == row.depth - 1)
            assert parent.entry is not None
            if row.entry is not None:
                assert row.entry.importer == parent.entry.name
            assert row.rails[:-1] == parent.rails and row.rails[-1] is not parent.last
        below = rows[number + 1 :]
        until = next((n for n, r in enumerate(below) if r.depth < row.depth), len(below))
        assert row.last == (not any(r.depth == row.depth for r in below[:until]))


def test_what_fails_comes_first() -> None:
    rows = chains.rows(resolve(facts_of("cuda-not-on-path").value("dlls.tree")))
    failing = [row.entry.failure is not None for row in rows if row.entry is not None and row.depth == 0]
    assert failing == sorted(failing, reverse=True) and any(failing) and not all(failing)


def test_a_folder_on_path_changes_what_the_probes_say() -> None:
    facts = facts_of("cuda-not-on-path")
    assert chains.places(facts) == [chains.Place(TOOLKIT, False)] and chains.variable(facts) == "PATH"
    found = {change.probe: (change.before.answer, change.after.answer) for change in
             chains.changes(facts, [TOOLKIT], KB.tables)}  # fmt: skip
    assert found["gpu_libraries"] == ("cuda-elsewhere", "all-found")
    assert found["loader_code"] == ("126", "none")
    after = chains.what_if(facts, [TOOLKIT])
    assert resolve(after.value("dlls.tree")).complete
    assert not resolve(facts.value("dlls.tree")).complete, "the facts themselves stay as they are"


def test_a_folder_that_helps_nothing_changes_nothing() -> None:
    facts = facts_of("cuda-not-on-path")
    assert chains.changes(facts, ["C:\\empty"], KB.tables) == []
    assert chains.changes(facts, [], KB.tables) == [] and chains.what_if(facts, []) is facts
    opened = chains.what_if(facts, ["C:\\empty"]).value("tf.libraries")["opened"]
    assert opened == facts.value("tf.libraries")["opened"]


def test_folders_are_named_once_and_known_ones_are_marked() -> None:
    facts = facts_of("cuda-not-on-path")
    tree = facts.value("dlls.tree")
    path = [*tree["context"]["path"], TOOLKIT.upper() + "\\"]
    known = facts.with_(Fact("dlls.tree", "ok", {**tree, "context": {**tree["context"], "path": path}}))
    assert chains.places(known) == [chains.Place(TOOLKIT, True)]
    linux = facts_of("found-not-added")
    assert chains.variable(linux) == "LD_LIBRARY_PATH" and len(chains.places(linux)) == 2


def test_without_a_tree_there_is_nothing_to_say() -> None:
    assert chains.places(Facts()) == [] and chains.changes(Facts(), ["/x"], KB.tables) == []
