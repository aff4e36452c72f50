"""The model of ld.so against the real one, on random trees that are opened with dlopen."""

from __future__ import annotations

import shutil
import sys

import pytest

from tests.loader import elf_trees

TREES = 120  # thousands by hand: python -m tests.loader.elf_trees


@pytest.mark.skipif(sys.platform != "linux", reason="ld.so is the loader of Linux")
def test_the_model_agrees_with_the_dynamic_loader(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    work = tmp_path.resolve()
    wrong = elf_trees.disagreements(1, range(TREES), work, elf_trees.Templates(work / "templates"))
    assert not wrong, "\n".join(wrong[:20])
