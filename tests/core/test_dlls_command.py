"""The command ``dlls``: on a recorded case, on a real extension module, its words and what-ifs."""

from __future__ import annotations

import _ctypes
import json
from pathlib import Path
from typing import Any

import pytest

from tests.loader.machine import CUDA, PYD, SYSTEM32, pe, windows
from tftriage.cli import main
from tftriage.knowledge import load
from tftriage.libraries import cells, report, wrapped
from tftriage.loader import resolve

DEMO = Path(__file__).resolve().parents[2] / "tftriage" / "demos" / "cudnn-renamed-utf-8.json"
EXTENSION = getattr(_ctypes, "__file__", None)


def dlls(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    status = main(["dlls", "--quiet", "--lang", "en", *words])
    text = capsys.readouterr().out
    return status, json.loads(text) if "--json" in words else text


def test_a_recorded_case_names_the_missing_library_and_what_looks_like_it(capsys):
    status, said = dlls(capsys, "--case", str(DEMO), "--json")
    assert (status, said["missing"]) == (1, ["cudnn64_7.dll"])
    assert [Path(path.replace("\\", "/")).name for path in said["near"]["cudnn64_7.dll"]] == ["cudnn64_7_v741.dll"]
    text = dlls(capsys, "--case", str(DEMO))[1]
    assert "x cudnn64_7.dll - MISSING (126)" in text
    assert "cudnn64_7_v741.dll" in text and "Does not load, because of: cudnn64_7.dll" in text


def test_what_if_the_renamed_library_had_its_name_back(capsys):
    case = ("--case", str(DEMO))
    (renamed,) = dlls(capsys, *case, "--json")[1]["near"]["cudnn64_7.dll"]
    root = dlls(capsys, *case, "--json")[1]["roots"][0]["root"]
    beside = f"{renamed}={root.rpartition(chr(92))[0]}{chr(92)}cudnn64_7.dll"
    status, said = dlls(capsys, *case, "--with-file", beside, "--json")
    assert (status, said["missing"], said["what_if"]["complete_without"]) == (0, [], False)
    (change,) = [one for one in said["what_if"]["changed"] if one["name"].lower() == "cudnn64_7.dll"]
    assert (change["before"]["failure"], change["after"]["failure"]) == ("absent", None)
    assert "cudnn64_7.dll: MISSING (126) -> found: beside the file" in dlls(capsys, *case, "--with-file", beside)[1]
    assert "Nothing would change." in dlls(capsys, *case, "--with-path", "Q:\\gone")[1]


@pytest.mark.skipif(EXTENSION is None, reason="ctypes is built into this Python")
def test_a_real_extension_module_loads_and_needs_its_files(capsys, tmp_path):
    status, said = dlls(capsys, str(EXTENSION), "--json")
    assert (status, said["complete"], said["missing"]) == (0, True, [])
    first = said["roots"][0]["libraries"][0]
    assert (Path(first["path"]).name, first["failure"]) == (Path(str(EXTENSION)).name, None)
    broken = tmp_path / Path(str(EXTENSION)).name
    broken.write_bytes(b"not a library")
    status, said = dlls(capsys, str(broken), "--json", "--with-path", str(tmp_path))
    assert (status, said["roots"][0]["libraries"][0]["failure"]) == (1, "not-a-pe")


@pytest.mark.parametrize("words", [["gone/x.pyd"], ["readme"], ["cudnn64_7.dll", "--with-file", "gone.dll"]])
def test_what_is_not_there_is_said(capsys, words):
    assert main(["dlls", "--quiet", "--lang", "en", *words]) == 2
    assert "no such file" in capsys.readouterr().err


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_line_fits_a_terminal(lang):
    deep = "D:\\" + "\\".join(["很长的文件夹名", "a folder", "x" * 90]) + "\\msvcp140.dll"
    tree = windows(
        {
            PYD: pe("cudnn64_7.dll", "MSVCP140.dll", "api-ms-win-x.dll", "a.dll", "b.dll", "c.dll", late=("l.dll",),
                    linker="14.29"),
            deep: pe(file_version="14.0.24215.1"), "D:\\b\\msvcp140.dll": pe(), SYSTEM32 + "\\a.dll": pe(machine="x86"),
            SYSTEM32 + "\\b.dll": {"error": "unreadable"}, SYSTEM32 + "\\c.dll": {"error": "empty"},
            CUDA + "\\cudnn64_7.dll": pe(cudnn_version="7.4.1"),
        },
        path=(deep.rpartition("\\")[0], "D:\\b", '"C:\\q"', "%CUDA%\\bin", "E:\\gone"),
    )  # fmt: skip
    tree["missing_exports"] = [{"importer": PYD, "dll": deep, "count": 1, "names": ["?" + "y" * 200]}]
    lines = list(report(resolve(tree), load(), lang, {"cudnn64_7.dll": ["C:\\cudnn64_7.dll.bak"]}))
    assert max(map(cells, lines)) <= 80
    joined = "".join(line.strip() for line in lines)
    for shown in ("msvcp140.dll", "14.29", "7.4.1", "cudnn64_7.dll.bak", "%CUDA%", "E:\\gone", "y" * 60, "x" * 60):
        assert shown in joined
    words = {"en": ("126", "193", "127", "(5)", "api-ms"), "zh": ("126", "193", "127", "（5）", "api-ms")}[lang]
    assert all(word in joined for word in words)


def test_lines_break_at_separators_and_hang():
    assert list(wrapped("short", 4)) == ["    short"]
    first, second = wrapped("C:\\" + "a" * 60 + "\\" + "b" * 30 + "\\c.dll", 2)
    assert first == "  C:\\" + "a" * 60 + "\\"
    assert second == "    " + "b" * 30 + "\\c.dll"
    assert [cells(line) for line in wrapped("中" * 60, 0)] == [80, 42]
