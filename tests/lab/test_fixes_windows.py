"""Fixes on a real Windows Python under Wine that no file of a test can stand in for."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import labtools

from tests.lab.test_scenarios_windows import EXTENSION, Triage, triage  # noqa: F401 - a fixture


def works(triage: Triage, python: Path, folder: Path) -> bool:  # noqa: F811
    code = f"import {EXTENSION}; print('it works')"
    return "it works" in triage.windows.run(python, "-c", code, cwd=folder).text


def compiled(python: Path, folder: Path, libraries: Path) -> None:
    """An extension module (mingw) in one folder, and the library that its import table names in another."""
    source = Path(__file__).parent / "native"
    command = ["x86_64-w64-mingw32-gcc", "-shared", "-O1", "-s"]
    library = libraries / "tfdep.dll"
    subprocess.run([*command, str(source / "dll_dep.c"), "-o", str(library)], check=True)
    module = ["-DPyInit_badext=PyInit_" + EXTENSION, str(source / "badext.c"), "-o", str(folder / f"{EXTENSION}.pyd")]
    subprocess.run([*command, *module, str(python.parent / "python38.dll"), str(library)], check=True)


def test_a_dll_directory_is_given_at_every_start_and_taken_away(triage: Triage) -> None:  # noqa: F811
    """Python 3.8 does not look at PATH for what an import table names: the folder is there, the import fails."""
    windows: Any = triage.windows
    python = windows.clone_python("3.8", "Python38")
    folder, libraries = windows.drive_c / "work", windows.drive_c / "库 lib"
    folder.mkdir()
    libraries.mkdir()
    compiled(python, folder, libraries)
    windows.set_user_variable("Path", triage.win(libraries), "REG_SZ")
    ran = windows.run(python, "-c", f"import {EXTENSION}", cwd=folder)
    assert "DLL load failed" in ran.text
    error = triage.tmp_path / "error.txt"
    error.write_text(ran.text, encoding="utf-8")
    target = (
        "--python", triage.win(python), "--module", EXTENSION, "--cwd", triage.win(folder),
        "--error", labtools.wine_path(error),
    )  # fmt: skip
    code, found = triage.command("diagnose", *target)
    assert code == 1, found
    assert found["diagnosis"] == "dll-directory-not-added", found["path"]

    code, applied = triage.command("fix", "apply", "dll-directory", *target, "--yes")
    assert code == 0, applied
    assert applied["verified"]["result"] == "cured", applied
    assert works(triage, python, folder)
    file = python.parent / "Lib" / "site-packages" / "tftriage-dll-directories.pth"
    assert file.read_bytes().isascii()

    code, undone = triage.command("undo")
    assert code == 0, undone
    assert not file.exists() and not works(triage, python, folder)
