"""Dying at any moment: what is left can always be taken back to the byte, or carried to its end."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tftriage.fixes import effects, undo
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import CopyFile, EditKernelspec, MoveAside, Plan, RemoveFile, Verify, WriteFile

CHILD = Path(__file__).with_name("crash_child.py")
ROOT = Path(__file__).parents[2]


def tree(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


class World:
    """A folder with the user's files, the plan that changes them, and the journal beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work, self.state = folder, folder / "work", folder / "state"
        self.plan_file = folder / "plan.json"
        self.lay()
        work = self.work
        self.plan = Plan(
            fix="test",
            steps=(
                WriteFile(path=str(work / "new" / "deep" / "launcher.bat"), text="a\nb\n", newline="\r\n"),
                EditKernelspec(path=str(work / "kernel.json"), changes={"env": {"PATH": "C:\\CUDA;${PATH}"}}),
                CopyFile(source=str(work / "cudnn64_7_v741.dll"), target=str(work / "cudnn64_7.dll")),
                MoveAside(path=str(work / "aside"), to=str(work / "aside.old")),
                RemoveFile(path=str(work / "useless")),
            ),
            verify=Verify(facts=(), probe="p", good_answers=("ok",)),
        )
        self.plan_file.write_bytes(msgspec.json.encode(self.plan))
        self.original = tree(self.work)

    def lay(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.rmtree(self.state, ignore_errors=True)
        self.work.mkdir(parents=True)
        (self.work / "kernel.json").write_text(json.dumps({"argv": ["x"], "env": {"A": "1"}}, indent=2))
        for name, data in {"cudnn64_7_v741.dll": b"MZ\0\1", "aside": b"\xff", "useless": b"u" * 5000}.items():
            (self.work / name).write_bytes(data)

    def child(self, what: str, at: int) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, str(CHILD), str(self.state), str(self.plan_file), what, str(at)]
        return subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)

    def journal(self) -> Journal:
        return Journal(self.state)

    def crashes(self, what: str) -> Iterator[int]:
        """Die at every boundary in turn; yields after each death, ends when the work comes to its end."""
        for at in range(1, 500, 6 if sys.platform == "win32" else 1):  # a process starts slowly there
            self.lay()
            if what != "apply":
                assert effects.apply(self.plan, self.journal()).ok
            done = self.child(what, at)
            if done.returncode == 0:
                assert at > 20, "the boundaries were not met"
                return
            assert done.returncode in (-9, 137), done.stderr
            yield at
        pytest.fail("no end")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_death_at_any_boundary_of_apply_can_be_taken_back_or_finished(world: World, tmp_path: Path) -> None:
    assert effects.apply(world.plan, world.journal()).ok
    final = tree(world.work)
    assert final != world.original
    keep = tmp_path / "keep"
    for at in world.crashes("apply"):
        complete = tree(world.work) == final and not world.journal().unfinished()
        if complete:  # died after the last line
            continue
        for name in ("work", "state"):
            if (world.folder / name).exists():
                shutil.copytree(world.folder / name, keep / name)
        undo.recover(world.journal())
        assert tree(world.work) == world.original, f"taken back after boundary {at}"
        assert not world.journal().unfinished()
        for name in ("work", "state"):
            shutil.rmtree(world.folder / name, ignore_errors=True)
            if (keep / name).exists():
                shutil.copytree(keep / name, world.folder / name)
        shutil.rmtree(keep)
        book = world.journal()
        if undo.recover(book, how="finish"):
            assert tree(world.work) == final, f"finished after boundary {at}"
            assert book.entry("1").status == "applied"
            assert undo.undo(book, "1").ok
        assert tree(world.work) == world.original, f"undone after finishing after boundary {at}"


def test_a_death_at_any_boundary_of_undo_is_carried_to_its_end(world: World) -> None:
    for at in world.crashes("undo"):
        book = world.journal()
        if book.entry("1").status == "applied":  # died before the first line
            assert undo.undo(book, "1").ok
        else:
            undo.recover(book)
        assert tree(world.work) == world.original, f"boundary {at}"
        assert book.entry("1").status == "undone"


def test_a_death_while_recovering_is_recovered(world: World) -> None:
    for at in (3, 8, 13, 18):
        world.lay()
        assert world.child("apply", 33).returncode in (-9, 137)
        assert world.child("recover", at).returncode in (-9, 137)
        undo.recover(world.journal())
        assert tree(world.work) == world.original, f"boundary {at}"


def test_nothing_new_is_begun_over_an_unfinished_entry(world: World) -> None:
    assert world.child("apply", 20).returncode in (-9, 137)
    before = tree(world.work)
    refused = effects.apply(world.plan, world.journal())
    assert refused.error is not None and refused.error.key == "fix.error.unfinished"
    assert tree(world.work) == before
