"""No test of the screen may see or touch the journal of the person who runs it."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The journal of this test, and a folder for what it saves."""
    folder = tmp_path / "state"
    monkeypatch.setenv("TFTRIAGE_STATE", str(folder))
    monkeypatch.delenv("NO_COLOR", raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return folder
