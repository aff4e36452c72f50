"""The loader model against a real loader, on random trees of DLLs and of shared objects."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Callable, Iterator

import agreement
import labtools
import pytest
from treedlls import Templates

TREES = 100  # thousands by hand: python -m tests.lab.agreement


@pytest.fixture(scope="module")
def stage(
    part: Callable[[str], pathlib.Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[pathlib.Path, pathlib.Path, Templates]]:
    """(work folder, Windows prefix, DLL templates)."""
    work = tmp_path_factory.mktemp("agreement")
    prefix = work / "windows"
    shutil.copytree(part("prefix") / "win" / "prefix", prefix, symlinks=True)
    try:
        yield work, prefix, Templates(work / "templates")
    finally:
        labtools.stop_wine(prefix)


@pytest.mark.parametrize("version", ["3.8", "3.11"])
def test_the_model_agrees_with_the_windows_loader(stage, part, version):
    work, prefix, templates = stage
    python = agreement.clone(part(f"py{version}"), prefix, version)
    loads, wrong = agreement.compare(prefix, python, version, templates, work, 1, range(TREES))
    assert loads == TREES * len(agreement.WAYS)
    assert not wrong, "\n".join(map(str, wrong[:20]))
