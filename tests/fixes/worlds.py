"""One small world for each fix of the catalogue: real files, a real environment, and the plan that changes them.

On POSIX. The registry of a Windows is a file there (``FileRegistry``); the suite on Windows Python has the real one.
"""

from __future__ import annotations

import json
import os
import posixpath
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tftriage.facts import Facts
from tftriage.fixes import catalogue, running, situation
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import Packages, Plan, Variable
from tftriage.fixes.registry import MemoryRegistry, Registry
from tftriage.tables import PinSet, Tables

from .conftest import make_facts
from .wheels import wheel

SERIES = f"{sys.version_info[0]}.{sys.version_info[1]}"
CUDA = r"C:\CUDA\v10.1\bin"
PINS = {"pbuf": "3.20.3", "hfive": "2.10.0"}
TABLES = Tables(
    pins=(PinSet(tensorflow="2.1.0", pythons=(SERIES,), rules=(), pins=PINS, source="test", kind="tested"),)
)


class FileRegistry(MemoryRegistry):
    """The registry's rules over a file, which outlives the process that is killed."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        stored = json.loads(file.read_text("utf-8")) if file.exists() else {"user": [], "machine": []}
        self._variables = {v["name"].upper(): msgspec.convert(v, Variable) for v in stored["user"]}
        self.machine = {(key, name): value for key, name, value in stored["machine"]}

    def keep(self) -> None:
        users = sorted(msgspec.to_builtins(v)["name"] for v in self._variables.values())
        value = {
            "user": [msgspec.to_builtins(self._variables[name.upper()]) for name in users],
            "machine": sorted([key, name, value] for (key, name), value in self.machine.items()),
        }
        part = self.file.parent.parent / "registry.part"  # one write to Windows: all or nothing
        part.write_text(json.dumps(value), encoding="utf-8")
        part.replace(self.file)

    def write(self, variable: Variable) -> None:
        super().write(variable)
        self.keep()

    def delete(self, name: str) -> None:
        super().delete(name)
        self.keep()

    def write_machine(self, key: str, name: str, value: int | None) -> None:
        super().write_machine(key, name, value)
        self.keep()


class World:
    """``folder/work`` is the machine, ``folder/state`` the journal; ``pristine`` is the machine before the fix."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work, self.state = folder, folder / "work", folder / "state"
        self.pristine, self.wheels = folder / "pristine", folder / "wheels"
        self.work.mkdir(parents=True)
        self.wheels.mkdir()
        for name, version in [("pbuf", "3.20.3"), ("pbuf", "4.24.4"), ("hfive", "2.10.0"), ("ipykernel", "6.16.2")]:
            wheel(self.wheels, name, version)
        wheel(self.wheels, "tensorflow", "2.1.0", module="tensorflow")
        wheel(self.wheels, "tensorflow_gpu", "2.1.0", "GPU = True\n", module="tensorflow")
        FileRegistry(self.work / "registry.json").keep()
        self.plan: Plan | None = None
        self.only_packages = False

    def planned(self, fix: str, facts: Facts, values: dict[str, str]) -> None:
        """Make the plan, and keep the machine as it is before it."""
        reason = catalogue.FIXES[fix].refuses(facts, values)
        assert reason is None, reason
        self.plan = catalogue.FIXES[fix].plan(facts, values, TABLES)
        assert self.plan.fix == fix and self.plan.steps
        shutil.copytree(self.work, self.pristine, symlinks=True)

    def reset(self) -> None:
        self.put_back(self.pristine, None)

    def put_back(self, work: Path, state: Path | None) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.rmtree(self.state, ignore_errors=True)
        shutil.copytree(work, self.work, symlinks=True)
        if state is not None and state.exists():
            shutil.copytree(state, self.state)

    def journal(self) -> Journal:
        return Journal(self.state)

    def registry(self) -> Registry:
        return FileRegistry(self.work / "registry.json")

    def look(self) -> dict[str, Any]:
        """Everything of the machine: names, rights, bytes; of environments with shared files only the versions."""
        if self.only_packages:
            return dict(scan(self.python).versions)
        found: dict[str, Any] = {}
        for path in sorted(self.work.rglob("*")):
            if "__pycache__" in path.parts:
                continue
            what: Any = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            found[str(path.relative_to(self.work))] = (path.lstat().st_mode, what)
        return found

    # --- parts of a machine

    @property
    def python(self) -> str:
        return str(self.work / "环境" / "bin" / "python")

    def environment(self, *packages: tuple[str, str]) -> dict[str, Any]:
        """A real environment with minipip for pip; its facts."""
        fast_venv(self.python, self.work / "环境", self.folder)
        for name, version in packages:
            argv = [self.python, "-m", "pip", "install", f"{name}=={version}"]
            subprocess.run(argv, check=True, env={**os.environ, "PIP_FIND_LINKS": self.wheels.as_uri()})
        site = str(next((self.work / "环境").glob("lib/*/site-packages")))
        versions = scan(self.python).versions
        return {
            "target.interpreter": {
                "executable": self.python, "version": list(sys.version_info[:3]), "prefix": str(self.work / "环境"),
                "base_prefix": sys.base_prefix, "venv": True, "conda": False, "pip": "1",
                "ipykernel": versions.get("ipykernel"), "site_packages": [site],
            },
            "target.packages": {
                name: {"name": name, "version": version, "folder": site, "installer": "pip"}
                for name, version in versions.items()
            },
            "tf.package": {
                "version": "2.1.0",
                "distributions": [
                    {"name": name, "version": version, "folder": site}
                    for name, version in versions.items() if name.startswith("tensorflow")
                ],
            },
            "system.user": {"home": str(self.work / "home")},
            "env.process": {"JUPYTER_DATA_DIR": str(self.work / "jupyter")},
            "jupyter.kernels": [],
        }  # fmt: skip

    def kernel(self, env: dict[str, str]) -> dict[str, Any]:
        """A kernelspec with Windows line ends and rights of its own; its facts."""
        folder = self.work / "jupyter" / "kernels" / "tf21"
        folder.mkdir(parents=True)
        text = json.dumps({"argv": ["x"], "display_name": "TF", "language": "python", "env": env}, indent=2)
        (folder / "kernel.json").write_bytes(text.replace("\n", "\r\n").encode())
        (folder / "kernel.json").chmod(0o640)
        found = {"name": "tf21", "display_name": "TF", "folder": str(folder), "scope": "user", "argv": ["x"]}
        return {**found, "env": env, "interpreter": self.python, "error": None}

    def variable(self, name: str, value: str, kind: Any) -> dict[str, Any]:
        self.registry().write(Variable(name, value, kind))
        return {"type": kind, "value": value}


def fast_venv(python: str, folder: Path, tools: Path) -> None:
    """``python -m venv`` without pip's own second; minipip stands in for it, and says so in its file."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next(folder.glob("lib/*/site-packages"))
    (tools / "tools" / "pip").mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).with_name("minipip.py"), tools / "tools" / "pip" / "__main__.py")
    (site / "minipip.pth").write_text(f"{tools / 'tools'}\n", encoding="utf-8")


def scan(python: str, names: Any = (), limit: float = 0.0) -> Packages:
    """``running.packages`` without starting the interpreter: the same folders, read here."""
    versions: dict[str, str] = {}
    damaged: dict[str, int] = {}
    for info in sorted((Path(python).parents[1]).glob("lib/*/site-packages/*.dist-info")):
        name, version = info.name.removesuffix(".dist-info").split("-")
        name = name.replace("_", "-").lower()
        try:
            rows = (info / "RECORD").read_text(encoding="utf-8").splitlines()
            assert (info / "METADATA").exists()
        except (OSError, AssertionError):
            rows = ["missing,,1"]
        versions[name] = version
        if name in names:
            damaged[name] = sum(
                not (info.parent / row.split(",")[0]).exists()
                or (
                    row.split(",")[2] != ""
                    and int(row.split(",")[2]) != (info.parent / row.split(",")[0]).stat().st_size
                )
                for row in rows
            )
    return Packages(python=python, versions=versions, damaged=damaged)


WINDOWS = "Windows"
Make = Callable[[World, pytest.MonkeyPatch], None]


def register(w: World, m: pytest.MonkeyPatch) -> None:
    w.planned("register-ipykernel", make_facts(w.environment()), {"name": "tf21"})


def kernel_path(w: World, m: pytest.MonkeyPatch) -> None:
    facts = {"jupyter.kernels": [w.kernel({"A": "1"})], "jupyter.server": {"jupyter_client": "8.6.3"}}
    w.planned("kernel-path", make_facts({**w.environment(), **facts}), {"kernel": "tf21", "folder": "/opt/cuda/lib"})


def path_user(w: World, m: pytest.MonkeyPatch) -> None:
    user = {"Path": w.variable("Path", r"%USERPROFILE%\bin;;C:\学习 x", "REG_EXPAND_SZ"), "variables": {}}
    facts = {"env.user": user, "env.machine": {"Path": None, "variables": {}}}
    w.planned("path-user", make_facts(facts, WINDOWS), {"folder": CUDA})


def path_environment(w: World, m: pytest.MonkeyPatch) -> None:
    w.planned("path-environment", make_facts(w.environment()), {"folder": "/opt/cuda/lib"})


def dll_directory(w: World, m: pytest.MonkeyPatch) -> None:
    m.setattr(situation, "path_rules", lambda facts: posixpath)
    m.setattr(catalogue.dll_directory, "helps", lambda tree, folders: True)
    facts = make_facts({**w.environment(), "dlls.tree": {"roots": []}}, WINDOWS)
    w.planned("dll-directory", facts, {"folder": CUDA})


def restore_dll(w: World, m: pytest.MonkeyPatch) -> None:
    near = w.work / "cudnn64_7_v741.dll"
    near.write_bytes(b"MZ" * 40_000)
    w.planned("restore-dll-name", make_facts({}), {"dll": "cudnn64_7.dll", "near": str(near)})


def copy_cudnn(w: World, m: pytest.MonkeyPatch) -> None:
    for folder in ("cuda/lib64", "cudnn"):
        (w.work / folder).mkdir(parents=True)
    for name in ("libcudnn.so.8", "libcudnn_ops_infer.so.8", "libcudnn_cnn_infer.so.8"):
        (w.work / "cudnn" / name).write_bytes(name.encode() * 3000)
    kit = {"version": "11.2", "folder": str(w.work / "cuda"), "bin": str(w.work / "cuda/lib64"), "on_path": True}
    w.planned("copy-cudnn", make_facts({"cuda.toolkits": [kit]}), {"folder": str(w.work / "cudnn")})


def pins(w: World, m: pytest.MonkeyPatch) -> None:
    w.planned("pin-packages", make_facts(w.environment(("pbuf", "4.24.4"))), {})


def reinstall(w: World, m: pytest.MonkeyPatch) -> None:
    facts = make_facts(w.environment(("pbuf", "4.24.4")))
    next(w.work.glob("环境/lib/*/site-packages/pbuf.py")).write_text("")
    w.planned("reinstall-package", facts, {"distribution": "pbuf 4.24.4"})


def one_tensorflow(w: World, m: pytest.MonkeyPatch) -> None:
    facts = make_facts(w.environment(("tensorflow", "2.1.0"), ("tensorflow_gpu", "2.1.0")))
    w.only_packages = True
    w.planned("one-tensorflow", facts, {})


def unset(w: World, m: pytest.MonkeyPatch) -> None:
    m.setattr(situation, "path_rules", lambda facts: posixpath)
    user = {"Path": None, "variables": {"CUDA_VISIBLE_DEVICES": w.variable("CUDA_VISIBLE_DEVICES", "-1", "REG_SZ")}}
    facts = {"env.user": user, "jupyter.kernels": [w.kernel({"CUDA_VISIBLE_DEVICES": "-1", "KEEP": "é"})]}
    w.planned("unset-variable", make_facts(facts, WINDOWS), {"where": "user"})


def growth(w: World, m: pytest.MonkeyPatch) -> None:
    facts = {**w.environment(), "jupyter.kernels": [w.kernel({})], "target.kernel": "tf21"}
    w.planned("allow-growth", make_facts(facts), {})


def small(w: World, m: pytest.MonkeyPatch) -> None:
    user = {"Path": None, "variables": {}}
    w.planned("include-small-gpu", make_facts({"env.user": user}, WINDOWS), {"count": "5"})


def shadow(w: World, m: pytest.MonkeyPatch) -> None:
    (w.work / "homework").mkdir()
    file = w.work / "homework" / "tensorflow.py"
    file.write_bytes(b"# -*- coding: gbk -*-\r\nprint('\xc4\xe3')\r\n")
    file.with_suffix(".pyc").write_bytes(b"old")
    file.chmod(0o600)
    w.planned("rename-shadowing-file", make_facts(w.environment()), {"file": str(file)})


def shadow_folder(w: World, m: pytest.MonkeyPatch) -> None:
    (w.work / "homework" / "tensorflow").mkdir(parents=True)
    file = w.work / "homework" / "tensorflow" / "__init__.py"
    file.write_text("x = 1\n")
    w.planned("rename-shadowing-file", make_facts(w.environment()), {"file": str(file)})


def long_paths(w: World, m: pytest.MonkeyPatch) -> None:
    w.planned("long-paths", make_facts({}, WINDOWS), {})


def scheduling(w: World, m: pytest.MonkeyPatch) -> None:
    w.planned("gpu-scheduling", make_facts({}, WINDOWS), {"scheduling": "on"})


def _maker(w: World) -> str:
    """A ``python`` whose ``-m venv FOLDER`` takes 0.2 s."""
    file = w.folder / "python-fast"
    code = "import sys; from pathlib import Path; from tests.fixes.worlds import fast_venv as v;"
    code += f"v('', Path(sys.argv[3]), Path({str(w.folder)!r}))"
    root = Path(__file__).parents[2]
    file.write_text(f'#!/bin/sh\nPYTHONPATH="{root}" exec "{sys.executable}" -c "{code}" "$@"\n', encoding="utf-8")
    file.chmod(0o755)
    return str(file)


def new_environment(w: World, m: pytest.MonkeyPatch) -> None:
    facts = make_facts(w.environment(("tensorflow", "2.1.0")))
    w.planned("new-environment", facts, {"python": _maker(w), "folder": str(w.work / "new" / "tf")})


def ascii_environment(w: World, m: pytest.MonkeyPatch) -> None:
    facts = {**w.environment(("pbuf", "4.24.4")), "jupyter.kernels": [w.kernel({"A": "1"})]}
    values = {"python": _maker(w), "folder": str(w.work / "new" / "tf")}
    w.planned("ascii-environment", make_facts(facts), values)


def offline_kit(w: World, m: pytest.MonkeyPatch) -> None:
    w.planned("offline-kit", make_facts(w.environment()), {"folder": str(w.work / "kit"), "tf_version": "2.1.0"})


def jupyter(w: World, m: pytest.MonkeyPatch) -> None:
    facts = w.environment()
    facts["target.packages"]["notebook"] = {"name": "notebook", "version": "6.5", "folder": "x", "installer": "pip"}
    w.planned("start-jupyter", make_facts(facts), {"folder": "/opt/cuda/lib", "destination": str(w.work)})


WORLDS: dict[str, Make] = {
    "register-ipykernel": register,
    "kernel-path": kernel_path,
    "path-user": path_user,
    "path-environment": path_environment,
    "dll-directory": dll_directory,
    "restore-dll-name": restore_dll,
    "copy-cudnn": copy_cudnn,
    "pin-packages": pins,
    "reinstall-package": reinstall,
    "one-tensorflow": one_tensorflow,
    "unset-variable": unset,
    "allow-growth": growth,
    "include-small-gpu": small,
    "rename-shadowing-file": shadow,
    "rename-shadowing-file folder": shadow_folder,
    "long-paths": long_paths,
    "gpu-scheduling": scheduling,
    "new-environment": new_environment,
    "ascii-environment": ascii_environment,
    "offline-kit": offline_kit,
    "start-jupyter": jupyter,
}


def make(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The world of a fix, with minipip's wheels and the fast scan in place."""
    monkeypatch.setattr(running, "packages", scan)
    world = World(folder)
    monkeypatch.setenv("PIP_FIND_LINKS", world.wheels.as_uri())
    WORLDS[name](world, monkeypatch)
    return world
