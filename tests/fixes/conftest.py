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


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from .environments import Environment

    return Environment(tmp_path_factory.mktemp("env"))


@pytest.fixture
def env(shared: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", shared.wheels.as_uri())
    monkeypatch.setenv("PYTHONPATH", "/nonsense")  # ours must not reach the target
    shared.pip("uninstall", "-y", "hfive", "ipykernel")
    shared.pip("install", "--force-reinstall", "pbuf==4.24.4")
    return shared
