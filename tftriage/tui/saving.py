"""Files that the screen writes when asked: a case, a report, commands to copy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tftriage import recent
from tftriage.headless import Stop, new_file, save_case

if TYPE_CHECKING:
    from tftriage.tui.app import TriageApp


def save(app: TriageApp) -> str:
    """Write the case (redacted) into the current folder; returns the sentence to show."""
    path = new_file("", "json")
    try:
        save_case(app.session, path, app.lang)
    except Stop as stop:
        return str(stop)
    recent.remember(path)
    return app.kb.say("save.done", app.lang, path=path.absolute())


def copy(app: TriageApp, text: str, what: str = "commands", ending: str = "txt") -> str:
    """To the clipboard, and always to a file as well: the terminal's clipboard (OSC 52) acknowledges nothing."""
    app.copy_to_clipboard(text)
    to_windows(text)
    return _written(app, text, new_file(what, ending), "save.copied")


def write(app: TriageApp, text: str, what: str, ending: str) -> str:
    """Only to a file."""
    return _written(app, text, new_file(what, ending), "save.done")


def _written(app: TriageApp, text: str, path: Path, said: str) -> str:
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    return app.kb.say(said, app.lang, path=path.absolute())


def to_windows(text: str) -> bool:
    """Put a text on the clipboard of Windows; ``False`` elsewhere and when another program holds the clipboard.

    The console of Windows 10 ignores OSC 52, and so does a remote desktop's: this is the way that works there.
    """
    import sys

    if sys.platform != "win32":
        return False
    import ctypes
    from ctypes import wintypes

    user, kernel = ctypes.WinDLL("user32"), ctypes.WinDLL("kernel32")
    kernel.GlobalAlloc.restype, kernel.GlobalAlloc.argtypes = wintypes.HGLOBAL, [wintypes.UINT, ctypes.c_size_t]
    kernel.GlobalLock.restype, kernel.GlobalLock.argtypes = wintypes.LPVOID, [wintypes.HGLOBAL]
    kernel.GlobalUnlock.argtypes = kernel.GlobalFree.argtypes = [wintypes.HGLOBAL]
    user.SetClipboardData.restype, user.SetClipboardData.argtypes = (
        wintypes.HANDLE,
        [wintypes.UINT, wintypes.HANDLE],
    )
    data = text.replace("\0", "").replace("\r\n", "\n").replace("\n", "\r\n").encode("utf-16-le") + b"\0\0"
    if not user.OpenClipboard(None):
        return False
    try:
        user.EmptyClipboard()
        handle = kernel.GlobalAlloc(0x0002, len(data))  # GMEM_MOVEABLE, which the clipboard demands
        place = kernel.GlobalLock(handle) if handle else None
        if not place:
            return False
        ctypes.memmove(place, data, len(data))
        kernel.GlobalUnlock(handle)
        if user.SetClipboardData(13, handle):  # CF_UNICODETEXT; the memory is the clipboard's from now on
            return True
        kernel.GlobalFree(handle)
        return False
    finally:
        user.CloseClipboard()
