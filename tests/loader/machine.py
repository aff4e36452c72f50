"""Small machines to resolve on: a ``dlls.tree`` from a list of files."""

from __future__ import annotations

import ntpath
from typing import Any

SYSTEM32 = "C:\\Windows\\System32"
PY37 = "C:\\py37"
PYD = PY37 + "\\Lib\\site-packages\\tensorflow\\python\\_pywrap_tensorflow_internal.pyd"
CUDA = "C:\\CUDA\\v10.0\\bin"


def pe(*imports: str, late: tuple[str, ...] = (), machine: str | None = "x64", **more: Any) -> dict[str, Any]:
    """A PE header."""
    return {"machine": machine, "imports": list(imports), "delay_imports": list(late), "error": None, **more}


def windows(
    files: dict[str, dict[str, Any] | None],
    *,
    roots: list[str] | None = None,
    python: tuple[int, int] = (3, 7),
    path: tuple[str, ...] = (),
    folders: tuple[str, ...] = (),
    **context: Any,
) -> dict[str, Any]:
    """A tree in which ``files`` exist (``None``: listed, header not read) and ``folders`` are there and empty."""
    listing: dict[str, list[str]] = {SYSTEM32: [], "C:\\Windows": [], PY37: [], **{folder: [] for folder in folders}}
    for file in files:
        listing.setdefault(ntpath.dirname(file), []).append(ntpath.basename(file))
    return {
        "roots": roots or [PYD],
        "context": {
            "python": list(python),
            "python_folder": PY37,
            "system32": SYSTEM32,
            "windows": "C:\\Windows",
            "cwd": "C:\\work",
            "path": list(path),
            **context,
        },
        "folders": listing,
        "files": {file: header for file, header in files.items() if header is not None},
        "elsewhere": {},
        "near": {},
        "apisets": [],
    }
