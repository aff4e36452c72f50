"""Facts of machines, as the fixes get them, and a journal of its own for every test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tftriage.facts import Fact, Facts
from tftriage.fixes.journal import Journal

HERE = "Windows" if sys.platform == "win32" else "Linux"


def make_facts(values: dict[str, Any], system: str = HERE) -> Facts:
    """Facts with these values; the system is this one unless said otherwise."""
    base = {"system.os": {"system": system, "release": "10", "version": "10.0.19045", "machine": "AMD64"}}
    return Facts(Fact(name, "ok", value) for name, value in {**base, **values}.items())


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "state")


@pytest.fixture
def facts() -> Any:
    return make_facts
