"""Random sequences of fixes and undos: files, registry values (type and bytes) and package sets end as they began."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tftriage.fixes import catalogue, effects, running, undo
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import Plan, Refused
from tftriage.fixes.registry import Registry, WindowsRegistry
from tftriage.tables import Tables

from . import worlds
from .conftest import make_facts
from .worlds import FileRegistry, World

WINDOWS = sys.platform == "win32"
VARIABLES = ("Path", "CUDA_VISIBLE_DEVICES", "TF_FORCE_GPU_ALLOW_GROWTH", "TF_MIN_GPU_MULTIPROCESSOR_COUNT")
PATHS = [r"%SystemRoot%\x;;C:\git\cmd;", r"C:\学习\bin;%NOT_EXPANDED%", '"C:\\a;b";C:\\a;C:\\A', ""]
FOLDERS = [r"C:\CUDA\v10.1\bin", r"D:\库 x\bin", r"C:\git\cmd"]


class Machine(RuleBasedStateMachine):
    """A home folder, the user's variables and (elsewhere than on Windows Python) an environment with packages."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="tftriage-stateful-"))
        self.home = self.folder / "home"
        self.home.mkdir()
        self.kept = {n: WindowsRegistry().read(n) for n in VARIABLES} if WINDOWS else {}
        self.journal = Journal(self.folder / "state")
        self.world: World | None = None

    @property
    def registry(self) -> Registry:
        return WindowsRegistry() if WINDOWS else FileRegistry(self.home / "registry.json")

    @initialize(path=st.sampled_from(PATHS), kind=st.sampled_from(["REG_SZ", "REG_EXPAND_SZ"]))
    def lay(self, path: str, kind: Any) -> None:
        for name in VARIABLES:
            self.registry.delete(name)
        if path:
            self.registry.write(worlds.Variable("Path", path, kind))
        for name, data in {
            "cudnn64_7_v741.dll": b"MZ\0",
            "cudnn64_7_old.dll": b"MZ\1",
            "random.py": b"\xff\r\n",
        }.items():
            (self.home / name).write_bytes(data)
        (self.home / "random.py").chmod(0o640)
        if not WINDOWS:
            self.world = World(self.folder / "world")
            os.environ["PIP_FIND_LINKS"] = self.world.wheels.as_uri()
            self.facts = self.world.environment(("pbuf", "4.24.4"))
        self.original = self.look()

    def look(self) -> dict[str, Any]:
        found: dict[str, Any] = {name: self.registry.read(name) for name in VARIABLES}
        for root in [self.home] + ([self.world.work] if self.world else []):
            for path in sorted(root.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts and path.name != "registry.json":
                    found[str(path)] = (path.lstat().st_mode, path.read_bytes())
        return found

    def run(self, fix: str, facts: dict[str, Any], values: dict[str, str], system: str = worlds.WINDOWS) -> None:
        """Plan from what is there now, and apply. A fix that does not apply now says so and changes nothing."""
        before = self.look()
        made = make_facts(facts, system)
        tables = worlds.TABLES if fix == "pin-packages" else Tables()
        try:
            if catalogue.FIXES[fix].refuses(made, values):
                return
            plan: Plan = catalogue.FIXES[fix].plan(made, values, tables)
        except Refused:
            assert self.look() == before
            return
        done = effects.apply(plan, self.journal, registry=self.registry)
        assert done.ok, done

    def variables(self) -> dict[str, Any]:
        found = {name: self.registry.read(name) for name in VARIABLES}
        known = {n: {"type": v.type, "value": v.value} for n, v in found.items() if v.value is not None}
        path = known.pop("Path", None)
        return {"env.user": {"Path": path, "variables": known}, "env.machine": {"Path": None, "variables": {}}}

    @rule(folder=st.sampled_from(FOLDERS))
    def path_user(self, folder: str) -> None:
        self.run("path-user", self.variables(), {"folder": folder})

    @rule()
    def hide(self) -> None:
        """Somebody hides the card where nothing is set; it is part of the machine from then on."""
        if not self.journal.entries() and self.registry.read("CUDA_VISIBLE_DEVICES").value is None:
            self.registry.write(worlds.Variable("CUDA_VISIBLE_DEVICES", "-1", "REG_SZ"))
            self.original = self.look()

    @rule()
    def unset(self) -> None:
        self.run("unset-variable", self.variables(), {"where": "user"})

    @rule()
    def growth(self) -> None:
        self.run("allow-growth", self.variables(), {})

    @rule(count=st.sampled_from(["3", "5"]))
    def small(self, count: str) -> None:
        self.run("include-small-gpu", self.variables(), {"count": count})

    @rule(near=st.sampled_from(["cudnn64_7_v741.dll", "cudnn64_7_old.dll"]))
    def name(self, near: str) -> None:
        values = {"dll": "cudnn64_7.dll", "near": str(self.home / near)}
        self.run("restore-dll-name", {}, values, "Windows" if WINDOWS else "Linux")

    @rule()
    def shadow(self) -> None:
        if (self.home / "random.py").exists():
            interpreter = {"executable": sys.executable, "prefix": sys.prefix}
            facts = {"target.interpreter": interpreter}
            values = {"file": str(self.home / "random.py")}
            self.run("rename-shadowing-file", facts, values, "Windows" if WINDOWS else "Linux")

    @rule(folder=st.sampled_from(["/opt/cuda/lib64", "/opt/学习"]))
    def environment(self, folder: str) -> None:
        if self.world is not None:
            self.run("path-environment", self.facts, {"folder": folder}, "Linux")

    @rule()
    def pins(self) -> None:
        if self.world is not None:
            versions = worlds.scan(self.world.python).versions
            packages = {n: {"name": n, "version": v, "folder": "x", "installer": "pip"} for n, v in versions.items()}
            self.run("pin-packages", {**self.facts, "target.packages": packages}, {}, "Linux")

    @rule()
    def undo_last(self) -> None:
        entries = [entry for entry in self.journal.entries() if entry.undoable]
        if entries:
            undone = undo.undo(self.journal, entries[-1].id, registry=self.registry)
            assert undone.ok, undone

    @rule(number=st.integers(0, 20))
    def undo_any(self, number: int) -> None:
        """Out of order: what a later fix stands on is a conflict, and then that thing stays as it is."""
        entries = [entry for entry in self.journal.entries() if entry.undoable]
        if entries:
            before = self.look()
            undone = undo.undo(self.journal, entries[number % len(entries)].id, registry=self.registry)
            assert undone.error is None, undone
            if undone.conflicts and len(entries[number % len(entries)].steps) == 1:
                assert self.look() == before

    def teardown(self) -> None:
        try:
            for entry in reversed(self.journal.entries()):
                if self.journal.entry(entry.id).undoable:
                    undone = undo.undo(self.journal, entry.id, registry=self.registry)
                    assert undone.ok, undone
            if hasattr(self, "original"):
                assert self.look() == self.original
        finally:
            for name, variable in self.kept.items():
                WindowsRegistry().delete(name)
                if variable.value is not None:
                    WindowsRegistry().write(variable)
            shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def fast_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "packages", worlds.scan)
    monkeypatch.setenv("PIP_FIND_LINKS", "")


Machine.TestCase.settings = settings(
    max_examples=8 if WINDOWS else 12,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestSequences = Machine.TestCase


def test_the_fast_scan_says_what_the_real_one_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in of these tests and of the crash tests against the scan that the program uses."""
    if WINDOWS:
        pytest.skip("a POSIX environment")
    monkeypatch.undo()
    world = World(tmp_path / "world")
    monkeypatch.setenv("PIP_FIND_LINKS", world.wheels.as_uri())
    world.environment(("pbuf", "4.24.4"), ("hfive", "2.10.0"))
    assert worlds.scan(world.python, ["pbuf"]) == running.packages(world.python, ["pbuf"])
    next(world.work.glob("环境/lib/*/site-packages/pbuf.py")).write_text("")
    assert worlds.scan(world.python, ["pbuf"]) == running.packages(world.python, ["pbuf"])
    subprocess.run([world.python, "-m", "pip", "uninstall", "-y", "pbuf"], check=True)
    assert worlds.scan(world.python) == running.packages(world.python)
