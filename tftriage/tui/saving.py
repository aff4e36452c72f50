"""Files that the screen writes when asked: a case, a report, commands to copy."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tftriage.headless import Stop, save_case

if TYPE_CHECKING:
    from tftriage.tui.app import TriageApp


def save(app: TriageApp) -> str:
    """Write the case (redacted) into the current folder; returns the sentence to show."""
    path = Path(f"tftriage-{datetime.now():%Y%m%d-%H%M%S}.json")
    try:
        save_case(app.session, path, app.lang)
    except Stop as stop:
        return str(stop)
    return app.kb.say("save.done", app.lang, path=path.absolute())


def copy(app: TriageApp, text: str) -> str:
    """To the clipboard of the terminal (OSC 52, unacknowledged), and always to a file as well."""
    app.copy_to_clipboard(text)
    path = Path(f"tftriage-commands-{datetime.now():%Y%m%d-%H%M%S}.txt")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    return app.kb.say("save.copied", app.lang, path=path.absolute())
