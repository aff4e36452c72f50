"""The collector as one file: on real old Pythons with nothing installed, by name, by pipe, and when things go wrong."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tftriage import cases, collector
from tftriage.cli import main
from tftriage.knowledge import load
from tftriage.portable import standalone
from tftriage.requests import facts_wanted

KB = load()
KEY = b"k" * 32
LIMIT = "40" if sys.platform == "win32" else "6"  # seconds; a process takes long to start under Wine


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "collect.pyz"
    path.write_text(collector.program(KEY), encoding="ascii", newline="\n")
    return path


def python(version: str) -> str:
    """That interpreter of this machine (pyenv's, or the one on PATH); skips where it is missing."""
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    found = sorted(Path(root, "versions").glob(f"{version}.*/bin/python{version}"))
    named = str(found[-1]) if found else shutil.which(f"python{version}")
    if sys.platform == "win32" or not named:
        pytest.skip(f"Python {version} is not installed")
    return named


def run(command: list[str], folder: Path, stdin: bytes | None = None, **env: str) -> subprocess.CompletedProcess[bytes]:
    """In a folder of its own and without anything of ours on its module path."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")}
    given: dict[str, Any] = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run(command, capture_output=True, cwd=folder, env={**kept, **env}, timeout=170, **given)


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.8", "3.13"])
def test_it_writes_a_redacted_case_with_nothing_installed(version: str, packed: Path, tmp_path: Path) -> None:
    interpreter = python(version)
    ran = run([interpreter, "-I", "-S", str(packed)], tmp_path, HOSTNAME="lab-host-99")
    assert ran.returncode == 0, ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["tftriage-case.json"]
    case = cases.read(tmp_path / "tftriage-case.json")
    facts = {fact.name: fact for fact in case.facts}
    assert set(facts) == set(facts_wanted())
    assert case.redacted
    assert facts["target.interpreter"].status == "ok"
    assert not [name for name, fact in facts.items() if fact.status in ("error", "timeout")]
    assert cases.replay(case, KB).walk is not None
    text = (tmp_path / "tftriage-case.json").read_text(encoding="utf-8")
    assert "lab-host-99" not in text
    name = os.path.basename(os.path.expanduser("~"))
    if name not in ("root", "user", "student"):
        assert name not in text


@pytest.mark.parametrize("version", ["3.6", "3.11"])
def test_through_a_pipe_the_case_is_what_it_prints(version: str, packed: Path, tmp_path: Path) -> None:
    ran = run([python(version), "-"], tmp_path, packed.read_bytes())
    assert ran.returncode == 0, ran.stderr
    assert cases.decode(ran.stdout).redacted
    assert list(tmp_path.iterdir()) == []


def test_an_error_text_travels_with_the_case_and_leads_to_its_symptom(packed: Path, tmp_path: Path) -> None:
    words = "ImportError: DLL load failed while importing _pywrap_tensorflow_internal: 找不到指定的模块。"
    (tmp_path / "error.txt").write_bytes(words.encode("gbk"))
    made = run([sys.executable, str(packed), "--error", "error.txt", "-o", "out.json"], tmp_path)
    assert made.returncode == 0, made.stderr
    session = cases.replay(cases.read(tmp_path / "out.json"), KB)
    assert session.walk is not None
    assert session.walk.symptom == "dll-load-failed-126"


def test_an_old_python_is_told_what_is_wrong(packed: Path, tmp_path: Path) -> None:
    ran = run([python("2.7"), str(packed)], tmp_path)
    assert ran.returncode == 1
    assert b"needs Python 3.6" in ran.stderr
    assert b"Traceback" not in ran.stderr


def test_time_that_runs_out_is_a_fact(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("import time; time.sleep(150)\n", encoding="utf-8")
    ran = run(
        [sys.executable, str(packed), "--python", sys.executable, "--limit", LIMIT], tmp_path, PYTHONPATH=str(tmp_path)
    )
    assert ran.returncode == 0, ran.stderr
    facts = {fact.name: fact for fact in cases.read(tmp_path / "tftriage-case.json").facts}
    assert facts["tf.import"].status == "timeout"
    assert facts["system.os"].status == "ok"


def test_where_nothing_can_be_written_it_says_so(packed: Path, tmp_path: Path) -> None:
    ran = run([sys.executable, str(packed), "-o", str(tmp_path / "no" / "such" / "x.json"), "--limit", "60"], tmp_path)
    assert ran.returncode == 4
    assert b"cannot be written" in ran.stderr
    assert b"Traceback" not in ran.stderr


def test_a_collector_that_dies_leaves_errors(tmp_path: Path) -> None:
    dying = standalone.Collector(b"import os; os._exit(3)\n")
    try:
        facts = dying.ask([("system.os", {}), ("tf.import", {})], standalone.time.monotonic() + 20)
    finally:
        dying.close()
    assert {fact["status"] for fact in facts.values()} == {"error"}


def test_it_chooses_the_python_that_has_tensorflow() -> None:
    here = {"path": sys.executable, "prefix": sys.prefix, "tensorflow": None}
    there = {"path": "/x/bin/python", "prefix": "/x", "tensorflow": "tensorflow-gpu 2.1.0"}
    active = {"path": "/y/bin/python", "prefix": "/y", "tensorflow": "tensorflow 2.3.0"}
    facts: dict[str, Any] = {
        "pythons.list": {"value": [here, there, active]},
        "env.process": {"value": {"CONDA_PREFIX": "/y"}},
    }
    assert standalone.choose(facts) == "/y/bin/python"
    facts["env.process"] = {"value": {}}
    assert standalone.choose(facts) == "/x/bin/python"
    facts["pythons.list"] = {"value": [dict(here, tensorflow="tensorflow 2.1.0"), active]}
    assert standalone.choose(facts) == sys.executable
    assert standalone.choose({"pythons.list": {"value": [here]}}) == sys.executable


@pytest.mark.parametrize(
    "version", ["1.14.0", "1.15.0", "2.1.0", "2.1.3", "2.3.1", "2.10.1", "2.16.1", "2.99.0", None, "x"]
)
@pytest.mark.parametrize("system", ["Windows", "Linux"])
def test_it_opens_the_libraries_that_we_would_open(version: str | None, system: str) -> None:
    rows = json.loads(collector.plan(KB, KEY))["builds"]
    row = KB.tables.build(version, system)
    assert standalone.libraries(version, system, rows) == list(row.libraries if row else ())


def test_what_it_holds() -> None:
    text = collector.program(KEY)
    payload = re.search(r'PAYLOAD = """\n(.*?)"""', text, re.S)
    assert payload
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(payload.group(1)))) as packed:
        names = set(packed.namelist())
        licence = packed.read("licenses/nvidia-ml-py.txt").decode()
    assert {"pynvml.py", "tftriage/collect/inside.py", "tftriage/portable/plan.json", "licenses/tftriage.txt"} <= names
    assert "NVIDIA" in licence
    assert "Redistribution" in licence
    assert text == collector.program.__wrapped__(KEY)
    assert text.isascii()


def test_the_command_writes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFTRIAGE_STATE", str(tmp_path))
    assert main(["collector", "-o", str(tmp_path / "c.pyz"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == (tmp_path / "c.pyz").stat().st_size < 400_000
    assert main(["collector", "-o", str(tmp_path / "no" / "c.pyz")]) == 4
