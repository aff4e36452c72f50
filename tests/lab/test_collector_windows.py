"""The one-file collector on real Windows Pythons with nothing of ours installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Windows

from tftriage import cases, collector
from tftriage.knowledge import load

KB = load()


def placed(windows: Windows) -> Path:
    folder = windows.drive_c / "lab"
    folder.mkdir()
    (folder / "collect.pyz").write_text(collector.program(b"k" * 32), encoding="ascii", newline="\n")
    return folder


@pytest.mark.parametrize("version", ["3.8", "3.11"])
def test_it_writes_a_case(windows: Windows, version: str) -> None:
    folder = placed(windows)
    ran = windows.run(windows.python(version), "-I", "-S", "collect.pyz", "--limit", "400", cwd=folder, timeout=500)
    assert ran.code == 0, ran
    case = cases.read(folder / "tftriage-case.json")
    facts = {fact.name: fact for fact in case.facts}
    assert facts["system.os"].value["system"] == "Windows"
    assert facts["target.interpreter"].value["version"][:2] == [int(part) for part in version.split(".")]
    assert not [name for name, fact in facts.items() if fact.status == "timeout"]
    assert cases.replay(case, KB).walk is not None


def test_through_a_pipe_on_a_chinese_windows(windows_zh: Windows) -> None:
    program = collector.program(b"k" * 32).encode("ascii")
    python = windows_zh.python("3.8")
    ran = windows_zh.run(python, "-", "--limit", "400", stdin=program, timeout=500, encoding="gbk")
    assert ran.code == 0, ran
    case = cases.decode(ran.out.encode("ascii"))
    facts = {fact.name: fact for fact in case.facts}
    assert facts["system.user"].value["name"] != windows_zh.user
    assert not facts["system.user"].value["name"].isascii()
    assert windows_zh.user not in ran.out.encode("ascii").decode("unicode_escape")
    assert facts["tf.import"].value["ok"]
    assert facts["names.nonascii"].value
