"""Fixtures of the lab: a throw-away Windows, real TensorFlow environments, pretend NVIDIA libraries.

Everything under tests/lab carries the mark `lab`. The lab lies in $TFTRIAGE_LAB or a folder in the user's
cache and is made by tests/lab/build.py; where it is missing the tests skip and say so, and with
TFTRIAGE_LAB_REQUIRED=1 (as in CI) such a skip is a failure. No test changes the lab itself: Windows
prefixes are copies, and an environment to be broken or cured is cloned first.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

HERE = pathlib.Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

import labtools  # noqa: E402
from labtools import CHINESE_USER, Ran  # noqa: E402

if sys.platform == "win32":
    collect_ignore_glob = ["*"]  # the lab is built and driven from Linux


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "lab: needs the lab (tests/lab/build.py)")


@pytest.hookimpl(tryfirst=True)  # before pytest's own -m looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.lab)
    items.sort(key=lambda item: item.path.name == "test_lab.py")  # side by side, the long ones have to begin first


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("TFTRIAGE_LAB_REQUIRED") == "1":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"{reason} (TFTRIAGE_LAB_REQUIRED=1: a lab test must not be skipped)"
    return report


# ---------------------------------------------------------------- the lab and its parts


@pytest.fixture(scope="session")
def lab() -> pathlib.Path:
    """The lab's folder; skips where there is none."""
    folder = labtools.lab_folder()
    if not (folder / "stamps").is_dir():
        pytest.skip(f"no lab in {folder}: run tests/lab/build.py")
    return folder


@pytest.fixture(scope="session")
def part(lab: pathlib.Path) -> Callable[[str], pathlib.Path]:
    """part(name) -> the lab's folder if that part of build.py is there; skips with the reason if not."""

    def look(name: str) -> pathlib.Path:
        stamp = lab / "stamps" / f"{name}.json"
        if not stamp.is_file():
            pytest.skip(f"the lab has no {name}: run tests/lab/build.py")
        reason = json.loads(stamp.read_text(encoding="utf-8")).get("unavailable")
        if reason:
            pytest.skip(f"the lab has no {name}: {reason}")
        return lab

    return look


@pytest.fixture(scope="session")
def native(part: Callable[[str], pathlib.Path]) -> pathlib.Path:
    """native/linux/{driver,nvml,cuda101} and native/windows/{driver,nvml,cuda101,dlls,badext3.8,badext3.11}."""
    part("native-windows")
    return part("native-linux") / "native"


@pytest.fixture(scope="session")
def old_python() -> Callable[[str], pathlib.Path]:
    """old_python("3.6") -> that interpreter of this machine; skips where it is missing."""

    def look(version: str) -> pathlib.Path:
        found = labtools.find_python(version)
        if found is None:
            pytest.skip(f"Python {version} is not installed")
        return found

    return look


def copy_tree(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """A copy whose files are hard links where the file system allows it: 1.5 GB in about a second.

    Deleting or replacing a file of the copy leaves the original alone; writing *into* one would not,
    so change files with `replace_file`.
    """

    def link(a: str, b: str) -> str:
        try:
            os.link(a, b, follow_symlinks=False)
        except OSError:
            shutil.copy2(a, b, follow_symlinks=False)
        return b

    shutil.copytree(source, target, symlinks=True, copy_function=link)
    return target


def replace_file(path: pathlib.Path, content: bytes) -> None:
    """Write a file of a clone without touching the original that it is linked to."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


# ---------------------------------------------------------------- Linux


@dataclass(frozen=True)
class LinuxTarget:
    """A virtual environment with real packages, and the pretend libraries to run it with."""

    folder: pathlib.Path
    native: pathlib.Path

    @property
    def python(self) -> pathlib.Path:
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> pathlib.Path:
        return next((self.folder / "lib").glob("python3.*/site-packages"))

    def libraries(self, *names: str) -> str:
        """A value for LD_LIBRARY_PATH: libraries("driver", "cuda101", "nvml")."""
        return os.pathsep.join(str(self.native / "linux" / name) for name in names)

    def run(
        self,
        *arguments: str,
        libraries: Sequence[str] = (),
        env: Mapping[str, str | None] | None = None,
        timeout: float = 120,
        cwd: pathlib.Path | None = None,
        stdin: bytes = b"",
    ) -> Ran:
        """Run the target's interpreter with these folders of native/linux on the loader's path."""
        extra: dict[str, str | None] = {"LD_LIBRARY_PATH": self.libraries(*libraries) or None, "PYTHONPATH": None}
        command = [str(self.python), *arguments]
        return labtools.run_program(command, {**extra, **(env or {})}, timeout, cwd, stdin)


@pytest.fixture(scope="session")
def linux_target(part: Callable[[str], pathlib.Path], native: pathlib.Path) -> Callable[[str], LinuxTarget]:
    """linux_target("tf210" | "tf210-unpinned" | "tf1131" | "jupyter"); do not change it, see `clone_target`."""
    return lambda name: LinuxTarget(part(name) / "linux" / name, native)


@pytest.fixture
def clone_target(linux_target: Callable[[str], LinuxTarget], tmp_path: pathlib.Path) -> Callable[[str], LinuxTarget]:
    """clone_target(name) -> a copy that a test may break, cure, install into (see `copy_tree` on writing)."""

    def clone(name: str) -> LinuxTarget:
        original = linux_target(name)
        return LinuxTarget(copy_tree(original.folder, tmp_path / name), original.native)

    return clone


# ---------------------------------------------------------------- Windows


@dataclass(frozen=True)
class Windows:
    """A Windows of one's own: registry, C: drive and processes are thrown away after the test.

    Tests may switch the pretend driver, change the registry and kill programs. Z: is this machine's root.
    """

    prefix: pathlib.Path
    lab: pathlib.Path
    user: str
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def drive_c(self) -> pathlib.Path:
        return self.prefix / "drive_c"

    @property
    def home(self) -> pathlib.Path:
        return self.drive_c / "users" / self.user

    @property
    def system32(self) -> pathlib.Path:
        return self.drive_c / "windows" / "system32"

    def python(self, version: str) -> pathlib.Path:
        """The lab's Windows Python; 3.8 has TensorFlow 2.3.1 and ipykernel, 3.11 this project's requirements."""
        return self.lab / "win" / f"py{version}" / "python.exe"

    def clone_python(self, version: str, folder: str) -> pathlib.Path:
        r"""A Python of one's own at `folder` below C:, e.g. "users/张伟/Python38"; the new python.exe."""
        return copy_tree(self.python(version).parent, self.drive_c / folder) / "python.exe"

    def driver(self, on: bool = True) -> None:
        """Put the pretend driver (nvcuda.dll, nvml.dll) into System32, or take it away."""
        for source in ("driver/nvcuda.dll", "nvml/nvml.dll"):
            target = self.system32 / pathlib.Path(source).name
            target.unlink(missing_ok=True)
            if on:
                shutil.copy(self.lab / "native" / "windows" / source, target)

    def run(
        self,
        *arguments: str | os.PathLike[str],
        path: Sequence[pathlib.Path | str] = (),
        env: Mapping[str, str | None] | None = None,
        timeout: float = 120,
        cwd: pathlib.Path | str | None = None,
        stdin: bytes = b"",
        encoding: str = "utf-8",
    ) -> Ran:
        """Run a program; `path` are folders (of this machine, or spelled the Windows way) put first in PATH."""
        folders = [f if isinstance(f, str) else labtools.wine_path(f) for f in path]
        first = {"WINEPATH": ";".join(folders)} if folders else {}
        merged = {**self.env, **first, **(env or {})}
        return labtools.run_wine(self.prefix, arguments, merged, timeout, cwd, stdin, encoding)

    def set_user_variable(self, name: str, value: str, kind: str = "REG_EXPAND_SZ") -> None:
        r"""Write HKCU\Environment as the Control Panel does; programs started afterwards get it."""
        code = (
            "import sys, winreg as w; k = w.CreateKey(w.HKEY_CURRENT_USER, 'Environment');"
            "w.SetValueEx(k, sys.argv[1], 0, getattr(w, sys.argv[3]), sys.argv[2])"
        )
        ran = self.run(self.python("3.11"), "-c", code, name, value, kind)
        assert ran.code == 0, ran


def new_windows(lab: pathlib.Path, name: str, target: pathlib.Path, env: Mapping[str, str]) -> Iterator[Windows]:
    """A copy of the lab's prefix `name`, ended and removed afterwards."""
    shutil.copytree(lab / "win" / name, target, symlinks=True)
    users = [p.name for p in (target / "drive_c" / "users").iterdir() if p.name != "Public"]
    try:
        yield Windows(target, lab, users[0], env)
    finally:
        labtools.stop_wine(target)
        shutil.rmtree(target, ignore_errors=True)


UTF8_WINDOWS = {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
CHINESE_WINDOWS = {"LC_ALL": "zh_CN.UTF-8", "USER": CHINESE_USER, "LOGNAME": CHINESE_USER}


@pytest.fixture
def windows(part: Callable[[str], pathlib.Path], native: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[Windows]:
    """An English Windows without driver; its Pythons speak UTF-8."""
    for name in ("prefix", "py3.8", "py3.11", "py3.11-packages"):
        lab = part(name)
    yield from new_windows(lab, "prefix", tmp_path / "windows", UTF8_WINDOWS)


@pytest.fixture
def windows_zh(part: Callable[[str], pathlib.Path], native: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[Windows]:
    """A Chinese Windows: user 张伟, code page 936, programs speak GBK (run with encoding="gbk")."""
    for name in ("prefix-zh", "py3.8", "py3.11", "py3.11-packages"):
        lab = part(name)
    yield from new_windows(lab, "prefix-zh", tmp_path / "windows-zh", CHINESE_WINDOWS)


@pytest.fixture
def wine_python(windows: Windows) -> Callable[[str], pathlib.Path]:
    """wine_python("3.8") -> python.exe, to be run with `run_wine`."""
    return windows.python


@pytest.fixture
def run_wine(windows: Windows) -> Callable[..., Ran]:
    """run_wine([program, argument...], env=..., timeout=..., path=...) in this test's Windows."""
    return lambda arguments, **options: windows.run(*arguments, **options)
