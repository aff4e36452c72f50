"""The recorded cases that the program ships: they replay to the cause that was found on the machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tftriage
from tftriage import cases
from tftriage.knowledge import load

KB = load()
DEMOS = {path.stem: path for path in sorted((Path(tftriage.__file__).parent / "demos").glob("*.json"))}
CAUSES = {
    "cuda-not-on-path": "cuda-not-on-path",
    "cudnn-renamed-gbk": "cudnn-dll-renamed",
    "cudnn-renamed-utf-8": "cudnn-dll-renamed",
    "damaged-install": "damaged-install",
    "found-not-added": "cuda-version-mismatch",
    "notebook": "notebook-kernel-wrong-env",
    "protobuf": "protobuf-too-new",
}


def test_each_is_listed_with_its_title() -> None:
    ran = subprocess.run([sys.executable, "-m", "tftriage", "demo", "--list", "--lang", "en"], capture_output=True)
    assert ran.returncode == 0
    assert [line.split()[0].decode() for line in ran.stdout.splitlines()] == list(CAUSES)


@pytest.mark.parametrize("name", CAUSES)
def test_it_replays_to_its_cause(name: str) -> None:
    case = cases.read(DEMOS[name])
    session = cases.replay(case, KB)
    assert session.diagnosis is not None
    assert session.diagnosis.id == CAUSES[name]
    assert case.title == session.diagnosis.title


@pytest.mark.parametrize("name", DEMOS)
def test_it_names_no_person_and_no_machine(name: str) -> None:
    text = DEMOS[name].read_text(encoding="utf-8")
    assert json.loads(text)["redacted"] is True
    assert not re.search(r"/root\b|/tmp/|pytest|\.pyenv|张伟|GPU-[0-9a-f]{8}-(?!0000)", text)
