"""Real broken Windows machines under Wine: from the error a student sees to a cured machine, and back.

tftriage itself runs on Windows Python 3.11, the target is Windows Python 3.8 with the real TensorFlow 2.3.1. Each
scenario runs through the command with ``--json`` and through the screen (Textual's Pilot, the same Windows Python).
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import labtools
import pytest

from tests.lab.triage import environment, replays_alike

REPOSITORY = Path(__file__).resolve().parent.parent.parent
TOOLKIT = "Program Files/NVIDIA GPU Computing Toolkit/CUDA/v10.1/bin"
EXTENSION = "_pywrap_tensorflow_internal"  # the name TensorFlow gives the module that carries its native code


class Triage:
    """tftriage on one throw-away Windows."""

    def __init__(self, windows: Any, tmp_path: Path) -> None:
        self.windows = windows
        self.tmp_path = tmp_path
        self.env = {"TFTRIAGE_STATE": "C:\\tftriage-state", "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}

    def command(self, *arguments: str, seconds: float = 500) -> tuple[int, dict[str, Any]]:
        """``tftriage ARGUMENTS --json`` on Windows Python 3.11."""
        command = ("-m", "tftriage", *arguments, "--json", "--lang", "en", "--quiet")
        ran = self.windows.run(self.windows.python("3.11"), *command, env=self.env, cwd=REPOSITORY, timeout=seconds)
        try:
            return ran.code, json.loads(ran.out[ran.out.index("{") :])
        except ValueError as error:
            raise AssertionError(f"exit {ran.code}: {ran.text[-4000:]}") from error

    def pilot(self, **job: Any) -> dict[str, Any]:
        """The same through the screen; every screen that was seen comes back."""
        file = self.tmp_path / "job.json"
        file.write_text(json.dumps(job), encoding="utf-8")
        python = self.windows.python("3.11")
        command = ("-m", "tests.pilot", labtools.wine_path(file))
        ran = self.windows.run(python, *command, env=self.env, cwd=REPOSITORY, timeout=900)
        assert "\nPILOT " in ran.out, f"exit {ran.code}: {ran.text[-6000:]}"
        seen: dict[str, Any] = json.loads(ran.out.split("\nPILOT ", 1)[1].strip())
        return seen

    def registry(self) -> tuple[str, int] | None:
        """The user's Path in the registry: value and type, as stored."""
        code = (
            "import json, winreg as w\n"
            "k = w.OpenKey(w.HKEY_CURRENT_USER, 'Environment')\n"
            "try: print(json.dumps(w.QueryValueEx(k, 'Path')))\n"
            "except FileNotFoundError: print('null')"
        )
        ran = self.windows.run(self.windows.python("3.11"), "-c", code)
        value = json.loads(ran.out)
        return tuple(value) if value else None

    def replays_alike(self, found: dict[str, Any], name: str) -> None:
        """The case written on Windows walks the same way on Linux."""
        replays_alike(self.windows.drive_c / "case.json", found, environment(self.tmp_path / "state"), name)

    def win(self, path: Path) -> str:
        """A path below this Windows' drive C, as Windows spells it."""
        return "C:\\" + str(path.relative_to(self.windows.drive_c)).replace("/", "\\")


@pytest.fixture
def triage(windows: Any, tmp_path: Path) -> Triage:
    return Triage(windows, tmp_path)


@pytest.fixture
def triage_zh(windows_zh: Any, tmp_path: Path) -> Triage:
    return Triage(windows_zh, tmp_path)


# --- W1: CUDA is installed, its folder is not on PATH ------------------------------------------------------------

USER_PATH = "%SystemDrive%\\Tools;C:\\Users\\Public\\bin"


@pytest.fixture
def cuda_beside_path(triage: Triage, native: Path) -> Triage:
    """A driver, CUDA 10.1 and cuDNN in their usual folder, and a user PATH that does not name it."""
    folder = triage.windows.drive_c / TOOLKIT
    folder.mkdir(parents=True)
    for library in (native / "windows" / "cuda101").glob("*.dll"):
        (folder / library.name).write_bytes(library.read_bytes())
    triage.windows.driver(True)
    triage.windows.set_user_variable("Path", USER_PATH, "REG_EXPAND_SZ")
    return triage


def opened(triage: Triage) -> str:
    """What TensorFlow prints in a newly started process."""
    code = "import tensorflow as tf; print(tf.config.list_physical_devices('GPU'))"
    return str(triage.windows.run(triage.windows.python("3.8"), "-c", code, timeout=180).text)


def test_w1_path_is_put_right_and_given_back_bit_for_bit(cuda_beside_path: Triage) -> None:
    triage = cuda_beside_path
    python = labtools.wine_path(triage.windows.python("3.8"))
    before = triage.registry()
    assert before == (USER_PATH, 2)
    assert "Successfully opened dynamic library cudart64_101.dll" not in opened(triage)

    code, found = triage.command("diagnose", "--python", python, "--save", "C:\\case.json")
    assert code == 1, found
    assert found["diagnosis"] == "cuda-not-on-path", found["path"]
    triage.replays_alike(found, "cuda-not-on-path")
    assert "CUDA\\v10.1\\bin" in found["cause"]

    code, applied = triage.command("fix", "apply", "path-user", "--python", python, "--yes")
    assert code == 0, applied
    assert applied["verified"]["result"] in ("cured", "next-cause"), applied
    after = triage.registry()
    assert after is not None
    assert after[1] == 2
    assert after[0].endswith(USER_PATH)
    assert "Successfully opened dynamic library cudart64_101.dll" in opened(triage)

    code, undone = triage.command("undo")
    assert code == 0, undone
    assert triage.registry() == before


def test_w1_on_the_screen(cuda_beside_path: Triage) -> None:
    triage = cuda_beside_path
    before = triage.registry()
    seen = triage.pilot(python=labtools.wine_path(triage.windows.python("3.8")))
    assert seen["diagnosis"] == "cuda-not-on-path", seen["path"]
    assert "v10.1" in seen["preview"]
    assert seen["exit"] == 0
    assert triage.registry() == before


# --- W2, W3: the import table names cudnn64_7.dll, the file is called cudnn64_7_v741.dll --------------------------


def renamed(windows: Any, native: Path, folder: Path) -> Path:
    """An extension module (mingw) that imports ``cudnn64_7.dll``, and that library under another name beside it."""
    folder.mkdir(parents=True)
    source = Path(__file__).parent / "native"
    compiler, shared = "x86_64-w64-mingw32-gcc", ["-shared", "-O1", "-s"]
    build = folder / "build"
    build.mkdir()
    dll = build / "cudnn64_7.dll"
    subprocess.run([compiler, *shared, str(source / "dll_dep.c"), "-o", str(dll)], check=True)
    python_dll = windows.python("3.8").parent / "python38.dll"
    define = f"-DPyInit_badext=PyInit_{EXTENSION}"
    module = folder / f"{EXTENSION}.pyd"
    subprocess.run(
        [compiler, *shared, define, str(source / "badext.c"), "-o", str(module), str(python_dll), str(dll)], check=True
    )
    dll.rename(folder / "cudnn64_7_v741.dll")
    build.rmdir()
    return folder


def failing_import(triage: Triage, folder: Path, encoding: str) -> str:
    """What the student's console shows."""
    python = triage.windows.python("3.8")
    ran = triage.windows.run(python, "-c", f"import {EXTENSION}", cwd=folder, encoding=encoding)
    assert ran.code == 1
    assert "DLL load failed" in ran.text
    return str(ran.text)


def works(triage: Triage, folder: Path) -> bool:
    ran = triage.windows.run(triage.windows.python("3.8"), "-c", f"import {EXTENSION}; print('it works')", cwd=folder)
    return "it works" in ran.text


def check_renamed(triage: Triage, folder: Path, encoding: str) -> None:
    text = failing_import(triage, folder, encoding)
    error = triage.tmp_path / "error.txt"
    error.write_text(text, encoding=encoding)
    target = (
        "--python", labtools.wine_path(triage.windows.python("3.8")), "--module", EXTENSION,
        "--cwd", triage.win(folder), "--error", labtools.wine_path(error),
    )  # fmt: skip
    code, found = triage.command("diagnose", *target, "--save", "C:\\case.json")
    assert code == 1, found
    assert found["diagnosis"] == "cudnn-dll-renamed", found["path"]
    triage.replays_alike(found, f"cudnn-renamed-{encoding}")
    assert "cudnn64_7.dll" in found["cause"]
    assert "cudnn64_7_v741.dll" in found["cause"]

    code, applied = triage.command("fix", "apply", "restore-dll-name", *target, "--yes")
    assert code == 0, applied
    assert works(triage, folder)
    assert (folder / "cudnn64_7_v741.dll").exists()

    code, undone = triage.command("undo")
    assert code == 0, undone
    assert not (folder / "cudnn64_7.dll").exists()
    assert not works(triage, folder)


def check_renamed_on_the_screen(triage: Triage, folder: Path, encoding: str, lang: str) -> None:
    text = failing_import(triage, folder, encoding)
    seen = triage.pilot(
        python=labtools.wine_path(triage.windows.python("3.8")), module=EXTENSION, cwd=triage.win(folder),
        text=text, lang=lang, undo=False,
    )  # fmt: skip
    assert seen["diagnosis"] == "cudnn-dll-renamed", seen["path"]
    assert works(triage, folder)


def test_w2_the_name_is_restored(triage: Triage, native: Path) -> None:
    check_renamed(triage, renamed(triage.windows, native, triage.windows.drive_c / "work" / "ext"), "utf-8")


def test_w2_on_the_screen(triage: Triage, native: Path) -> None:
    folder = renamed(triage.windows, native, triage.windows.drive_c / "work" / "ext")
    check_renamed_on_the_screen(triage, folder, "utf-8", "en")


def test_w3_the_same_for_a_chinese_user_on_code_page_936(triage_zh: Triage, native: Path) -> None:
    assert triage_zh.windows.user == labtools.CHINESE_USER
    check_renamed(triage_zh, renamed(triage_zh.windows, native, triage_zh.windows.home / "毕业设计"), "gbk")


def test_w3_on_the_screen_in_chinese(triage_zh: Triage, native: Path) -> None:
    folder = renamed(triage_zh.windows, native, triage_zh.windows.home / "毕业设计")
    check_renamed_on_the_screen(triage_zh, folder, "gbk", "zh")


# --- W4: a .pyd that was there after the installation is gone ------------------------------------------------------


@pytest.fixture
def quarantined(triage: Triage) -> tuple[Triage, Path, Path]:
    """TensorFlow 2.3.1 whose native module was removed afterwards; its RECORD still lists it."""
    python = triage.windows.clone_python("3.8", "Python38")
    gone = python.parent / "Lib" / "site-packages" / "tensorflow" / "python" / "_pywrap_tensorflow_internal.pyd"
    gone.unlink()
    triage.env["PIP_NO_COMPILE"] = "1"  # thousands of .pyc files, that nothing here looks at
    return triage, python, gone


def test_w4_the_damaged_package_is_reinstalled(quarantined: tuple[Triage, Path, Path], tmp_path: Path) -> None:
    triage, python, gone = quarantined
    ran = triage.windows.run(python, "-c", "import tensorflow", timeout=180)
    assert ran.code == 1
    error = tmp_path / "error.txt"
    error.write_text(ran.text, encoding="utf-8")
    target = ("--python", triage.win(python), "--error", labtools.wine_path(error))

    code, found = triage.command("diagnose", *target, "--save", "C:\\case.json")
    assert code == 1, found
    assert found["diagnosis"] == "damaged-install", found["path"]
    triage.replays_alike(found, "damaged-install")
    assert "_pywrap_tensorflow_internal.pyd" in found["cause"]

    code, applied = triage.command("fix", "apply", "reinstall-package", *target, "--yes", seconds=900)
    assert code == 0, applied
    assert gone.exists()
    ran = triage.windows.run(python, "-c", "import tensorflow as tf; print('version', tf.__version__)", timeout=180)
    assert "version 2.3.1" in ran.text


def test_w4_on_the_screen(quarantined: tuple[Triage, Path, Path]) -> None:
    triage, python, gone = quarantined
    seen = triage.pilot(python=triage.win(python), undo=False)
    assert seen["diagnosis"] == "damaged-install", seen["path"]
    assert gone.exists()
