"""Copies: to the terminal's clipboard, to that of Windows, and always to a file with a name of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.pilot import case_app
from tftriage.headless import new_file
from tftriage.tui import saving

TEXT = "set PATH=C:\\Users\\张伟\\bin;%PATH%\n第二行\n"


def test_a_name_is_never_taken_twice() -> None:
    names = set()
    for _ in range(5):
        path = new_file("report", "md")
        assert not path.exists()
        path.write_text("", encoding="utf-8")
        names.add(path.name)
    assert len(names) == 5 and all(name.startswith("tftriage-report-2") for name in names)


async def test_a_copy_is_in_the_terminals_clipboard_and_in_a_file() -> None:
    triage = case_app("protobuf")
    async with triage.run_test(size=(80, 24)):
        said = saving.copy(triage, TEXT)
        assert triage.clipboard == TEXT
    (path,) = Path().glob("tftriage-commands-*.txt")
    assert path.read_bytes().decode() == TEXT and path.name in said


@pytest.mark.skipif(sys.platform == "win32", reason="elsewhere there is no such clipboard")
def test_elsewhere_the_clipboard_of_windows_is_left_alone() -> None:
    assert saving.to_windows(TEXT) is False


@pytest.mark.skipif(sys.platform != "win32", reason="the clipboard of Windows")
def test_windows_gives_back_what_was_put_on_its_clipboard() -> None:
    import ctypes

    if not saving.to_windows(TEXT):
        pytest.skip("no clipboard in this session")
    user, kernel = ctypes.WinDLL("user32"), ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    user.GetClipboardData.restype = ctypes.c_void_p
    kernel.GlobalLock.restype, kernel.GlobalLock.argtypes = ctypes.c_wchar_p, [ctypes.c_void_p]
    assert user.OpenClipboard(None)
    try:
        assert kernel.GlobalLock(user.GetClipboardData(13)) == TEXT.replace("\n", "\r\n")
    finally:
        user.CloseClipboard()
