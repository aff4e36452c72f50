"""Which cases were saved or opened lately: a short list of paths in the state folder, and whether the tour was seen."""

from __future__ import annotations

import json
from pathlib import Path

from tftriage.fixes.journal import state_folder

MOST = 5


def remember(path: Path) -> None:
    """Put a case at the head of the list. A list that cannot be written is no list: nothing else depends on it."""
    whole = str(path.absolute())
    names = [whole, *(name for name in _names() if name != whole)][:MOST]
    _write("recent.json", json.dumps(names))


def cases() -> list[Path]:
    """The latest first; those that are gone are left out."""
    return [path for name in _names() if (path := Path(name)).is_file()]


def toured() -> bool:
    """Whether the tour was seen on this machine."""
    return (state_folder() / "toured").exists()


def remember_tour() -> None:
    """It was."""
    _write("toured", "")


def _names() -> list[str]:
    try:
        found = json.loads((state_folder() / "recent.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _write(name: str, text: str) -> None:
    try:
        state_folder().mkdir(parents=True, exist_ok=True)
        (state_folder() / name).write_text(text, encoding="utf-8")
    except OSError:
        pass
