"""Antivirus facts from PowerShell's answers, and products by their folders."""

import json
import os
import sys

import pytest

from tftriage.collect import security
from tftriage.collect.child import Result
from tftriage.collect.registry import COLLECTORS, Absent

PYD = r"C:\Users\张伟\Anaconda3\Lib\site-packages\tensorflow\python\_pywrap_tensorflow_internal.pyd"
ANSWER = {
    "answered": True,
    "status": {"enabled": True, "mode": "Normal", "realtime": True},
    "exclusions": ["D:\\work"],
    "detections": [
        {"resources": ["file:_" + PYD, r"file:_C:\Users\a\Documents\private.xlsx"],
         "threat": "Trojan:Win32/Wacatac.B!ml", "action": 2, "time": "2021-03-04T10:11:12"},
    ],
    "products": [{"name": "Windows Defender", "state": 397568}, {"name": "360杀毒", "state": 393472}],
}  # fmt: skip


def test_answer():
    found = security.parse("chatter\n" + json.dumps(ANSWER))
    assert found["detections"] == [
        {"path": PYD, "threat": "Trojan:Win32/Wacatac.B!ml", "time": "2021-03-04T10:11:12", "action": "quarantine"}
    ]
    assert found["products"] == [{"name": "Windows Defender", "state": "on"}, {"name": "360杀毒", "state": "off"}]
    assert found["administrator"] == []
    hidden = dict(ANSWER, exclusions="N/A: Must be an administrator to view exclusions")
    assert security.parse(json.dumps(hidden))["administrator"] == ["exclusions"]
    assert found["defender"] == {"enabled": True, "mode": "Normal", "realtime": True, "exclusions": ["D:\\work"]}


def test_single_things_that_powershell_does_not_list():
    answer = dict(ANSWER, detections=ANSWER["detections"][0], products=ANSWER["products"][0])
    answer["detections"] = dict(answer["detections"], resources="file:_" + PYD)
    found = security.parse(json.dumps(answer))
    assert len(found["detections"]) == len(found["products"]) == 1


def test_what_needs_rights_is_unknown():
    hidden = dict(ANSWER, exclusions=["N/A: Must be an administrator to view exclusions"])
    assert security.parse(json.dumps(hidden))["defender"]["exclusions"] is None
    assert security.parse(json.dumps(dict(ANSWER, status=None)))["defender"] is None
    assert security.parse(json.dumps(dict(ANSWER, exclusions=None)))["defender"]["exclusions"] == []


@pytest.mark.parametrize("text", ["", "Get-MpThreat : The term is not recognized", "{", "{}", '{"answered": false}'])
def test_no_answer(text):
    assert security.parse(text) is None


@pytest.mark.parametrize(
    ("number", "state"),
    [(397568, "on"), (397312, "on"), (393472, "off"), (266240, "on"), (262144, "off"), (None, None)],
)
def test_product_state(number, state):
    assert security.product_state(number) == state


def test_products_by_folder(tmp_path):
    (tmp_path / "360" / "360Safe").mkdir(parents=True)
    (tmp_path / "Huorong" / "Sysdiag").mkdir(parents=True)
    found = security.installed_products([str(tmp_path), str(tmp_path / "gone")])
    assert [one["name"] for one in found] == ["360 Total Security / 360 Safe", "Huorong"]
    assert {one["state"] for one in found} == {"installed"}


@pytest.mark.skipif(sys.platform == "win32", reason="there it looks")
def test_windows_only():
    with pytest.raises(Absent, match="windows-only"):
        COLLECTORS["security.antivirus"].function({})


def test_collector(monkeypatch, tmp_path):
    answers = {"out": json.dumps(ANSWER).encode()}
    monkeypatch.setattr(security.sys, "platform", "win32")
    monkeypatch.setattr(security.places, "drives", list)
    monkeypatch.setattr(security, "run", lambda argv, limit: Result(0, answers["out"], b"", False, 0.1))
    for name in ("PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432"):
        monkeypatch.setenv(name, str(tmp_path))
    (tmp_path / "360" / "360sd").mkdir(parents=True)
    (tmp_path / "Kaspersky Lab").mkdir()
    value, source = COLLECTORS["security.antivirus"].function({})
    # 360 is known by its own registration, so its folder says nothing new.
    assert [one["name"] for one in value["products"]] == ["Windows Defender", "360杀毒", "Kaspersky"]
    assert source.startswith("Get-MpThreatDetection")
    answers["out"] = b""  # a stub, as under Wine, or a policy that forbids PowerShell
    value, source = COLLECTORS["security.antivirus"].function({})
    assert (source, value["defender"], len(value["products"])) == ("folders", None, 2)
    for folder in (tmp_path / "360" / "360sd", tmp_path / "Kaspersky Lab"):
        os.rmdir(folder)
    with pytest.raises(Absent, match="PowerShell gave no answer"):
        COLLECTORS["security.antivirus"].function({})
