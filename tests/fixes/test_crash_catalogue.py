"""Every fix of the catalogue, killed at every boundary and met by a full disk: old or new, by choice, and nothing lost.

A boundary is before and after each line of the journal (and in the middle of one), each change of a file or of the
registry, and each command. The process that dies is a real one and dies by SIGKILL.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

resource = pytest.importorskip("resource", reason="fork and limits of Unix; test_crash kills on Windows")

from tftriage.fixes import catalogue, effects, running, undo  # noqa: E402

from . import worlds  # noqa: E402
from .boundaries import Boundaries  # noqa: E402
from .worlds import WORLDS, World  # noqa: E402

POINTS: dict[str, int] = {}


@pytest.fixture(scope="module", autouse=True)
def told() -> Iterator[None]:
    """The count, printed (``-rP`` or ``-s`` shows it)."""
    yield
    if POINTS:
        print(f"\nkilled at {sum(POINTS.values())} points of {len(POINTS)} fixes; lost: 0")


def in_child(work: Callable[[], object], at: int, counts: Path) -> int:
    """Run in a forked process that kills itself at boundary ``at`` (0: never); its exit status or -9."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            lay_boundaries(at, counts)
            work()
            status = 0
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    return -os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended)


def lay_boundaries(at: int, counts: Path) -> None:
    boundaries = Boundaries(at, passed=lambda count: at or counts.write_text(str(count)))
    boundaries.lay("write", "copy_new", "rename_new", "remove_tree", "_publish", "_publish_new", "_unlink_all")
    for name in ("write", "delete", "write_machine"):
        setattr(worlds.FileRegistry, name, boundaries.around(getattr(worlds.FileRegistry, name)))
    running.run = boundaries.around(running.run)


def recovered(world: World, how: Any) -> dict[str, undo.Undone]:
    """As the next start does; a command of the dead process is waited for, as the message asks."""
    for _ in range(600):
        result = undo.recover(world.journal(), how=how, registry=world.registry())
        if not any(one.error and one.error.key == "fix.error.still-running" for one in result.values()):
            return result
        time.sleep(0.05)
    pytest.fail("the command did not end")


@pytest.fixture(params=list(WORLDS))
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return worlds.make(request.param, tmp_path / "world", monkeypatch)


def test_every_fix_with_steps_has_a_world() -> None:
    by_hand = {"vc-runtime", "defender-exclusion"}
    assert {name.split()[0] for name in WORLDS} == set(catalogue.FIXES) - by_hand


def test_killed_anywhere_the_next_start_ends_old_or_new(
    world: World, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    plan, counts, keep = world.plan, tmp_path / "count", tmp_path / "keep"
    assert plan is not None
    old = world.look()

    def work() -> None:
        done = effects.apply(plan, world.journal(), registry=world.registry())
        assert done.ok, done

    assert in_child(work, 0, counts) == 0
    new, total = world.look(), int(counts.read_text())
    assert new != old and total >= 12
    for at in range(1, total + 1):
        world.reset()
        assert in_child(work, at, counts) == -signal.SIGKILL
        if world.journal().unfinished():
            recovered_both_ways(world, at, old, new, keep)
        elif world.journal().entries():
            assert world.look() == new, f"the journal says done at {at}"
        else:
            assert world.look() == old, f"nothing was announced at {at}"
    POINTS[request.node.callspec.params["world"]] = total


def recovered_both_ways(world: World, at: int, old: Any, new: Any, keep: Path) -> None:
    wait_for_commands(world)
    shutil.rmtree(keep, ignore_errors=True)
    shutil.copytree(world.work, keep / "work", symlinks=True)
    shutil.copytree(world.state, keep / "state")
    plan = world.plan
    assert plan is not None
    result = recovered(world, "take-back")
    assert not world.journal().unfinished(), result
    if plan.undoable:
        assert all(one.ok for one in result.values()), result
        assert world.look() == old, f"taken back after boundary {at}"
    world.put_back(keep / "work", keep / "state")
    if not world.journal().unfinished():
        return
    result = recovered(world, "finish")
    assert all(one.ok for one in result.values()), result
    assert world.look() == new, f"finished after boundary {at}"
    if plan.undoable:
        undone = undo.undo(world.journal(), "1", registry=world.registry())
        assert undone.ok, (at, undone)
        assert world.look() == old, f"undone after finishing after boundary {at}"


def wait_for_commands(world: World) -> None:
    """Wait until the command that outlived its master has ended, so that the copy is of a machine at rest."""
    for entry in world.journal().unfinished():
        for record in entry.steps:
            while record.pid is not None and running.started(record.pid) == record.started:
                time.sleep(0.02)


def test_a_full_disk_changes_nothing_or_is_taken_back(world: World, tmp_path: Path) -> None:
    """Every file may grow to a limit and no further (RLIMIT_FSIZE), at each size the journal passes through."""
    plan = world.plan
    assert plan is not None
    old = world.look()

    def work() -> None:
        done = effects.apply(plan, world.journal(), registry=world.registry())
        os._exit(0 if done.ok else 7 if done.error and done.error.key.endswith(("disk-full", "not-taken-back")) else 8)

    assert in_child(work, -1, tmp_path / "count") == 0
    sizes, at = [], 0
    for line in world.journal().file.read_bytes().splitlines(keepends=True):
        sizes += [at + 1, at + len(line) - 1]
        at += len(line)
    for limit in sizes:
        world.reset()

        def limited(limit: int = limit) -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            with contextlib.suppress(FileNotFoundError):
                world.journal().file.unlink()
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            work()

        status = in_child(limited, -1, tmp_path / "count")
        assert status in (0, 7, 8), status
        if world.journal().unfinished():
            result = recovered(world, "take-back")
            assert all(one.ok for one in result.values()) or not plan.undoable, (limit, result)
        if plan.undoable and not (world.journal().entries() and world.journal().entries()[-1].status == "applied"):
            assert world.look() == old, f"limit {limit}"


def test_undo_killed_anywhere_is_carried_to_its_end(world: World, tmp_path: Path) -> None:
    plan, counts = world.plan, tmp_path / "count"
    assert plan is not None
    if not plan.undoable:
        pytest.skip("the state before was the damage")
    old = world.look()
    assert effects.apply(plan, world.journal(), registry=world.registry()).ok
    shutil.copytree(world.work, tmp_path / "new", symlinks=True)
    shutil.copytree(world.state, tmp_path / "done")

    def work() -> None:
        undone = undo.undo(world.journal(), "1", registry=world.registry())
        assert undone.ok, undone

    assert in_child(work, 0, counts) == 0
    assert world.look() == old
    for at in range(1, int(counts.read_text()) + 1):
        world.put_back(tmp_path / "new", tmp_path / "done")
        assert in_child(work, at, counts) == -signal.SIGKILL
        wait_for_commands(world)
        if world.journal().entry("1").status == "applied":
            assert undo.undo(world.journal(), "1", registry=world.registry()).ok
        else:
            assert all(one.ok for one in recovered(world, "take-back").values())
        assert world.look() == old, f"boundary {at}"
        assert world.journal().entry("1").status == "undone"
