"""Names outside ASCII, and the import that is repeated without them."""

import os
import sys

import pytest

from tftriage.collect import names
from tftriage.collect.registry import COLLECTORS, Skipped


def test_what_an_encoding_can_name():
    assert names.encodable("C:\\Users\\张伟", "cp936")
    assert not names.encodable("C:\\Users\\张伟", "cp1252")
    assert names.encodable("José", "cp1252")
    assert not names.encodable("José \u4f1f", "cp1252")
    assert not names.encodable("x\udcff", "utf-8")  # a Linux name that is no UTF-8
    assert not names.encodable("x", "no-such-encoding")


def test_only_what_is_outside_ascii():
    given = [
        ("user", "张伟"),
        ("home", "/home/a"),
        ("temp", None),
        ("cuda", "D:\\CUDA 中文"),
        ("cuda", "D:\\CUDA 中文"),
    ]
    assert names.outside_ascii(given, "cp1252") == [
        {"what": "user", "path": "张伟", "ansi_ok": False},
        {"what": "cuda", "path": "D:\\CUDA 中文", "ansi_ok": False},
    ]


def test_places(tmp_path, monkeypatch):
    temp, work, prefix = tmp_path / "临时", tmp_path / "工作", tmp_path / "环境"
    site = prefix / ("Lib/site-packages" if os.name == "nt" else "lib/python3.7/site-packages")
    for folder in (temp, work, site / "tensorflow", prefix / "bin"):
        folder.mkdir(parents=True)
    for name in ("TEMP", "TMP", "TMPDIR"):
        monkeypatch.setenv(name, str(temp))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "显卡"))
    value, _ = COLLECTORS["names.nonascii"].function({"python": str(prefix / "bin" / "python"), "cwd": str(work)})
    found = {one["what"]: one["path"] for one in value}
    assert found["temp"] == str(temp) and found["cwd"] == str(work) and found["prefix"] == str(prefix)
    assert found["cuda"].endswith("显卡") and found["package"].endswith("tensorflow")


def test_only_what_is_needed_changes():
    named = [{"what": "temp"}, {"what": "cuda"}]
    assert names.ascii_changes(named, "T", True) == {"env": {"TEMP": "T", "TMP": "T", "TMPDIR": "T"}, "cwd": None}
    changes = names.ascii_changes([{"what": "cwd"}], "T", False)
    assert changes == {"env": {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}, "cwd": "T"}


def test_nothing_to_repeat(tmp_path, monkeypatch):
    monkeypatch.setattr(names, "named_places", lambda args, environment: [("home", "/home/a")])
    with pytest.raises(Skipped, match="no name outside ASCII"):
        COLLECTORS["names.ascii_import"].function({})


@pytest.mark.skipif(sys.platform == "win32", reason="a C locale is Linux' way to lose names")
@pytest.mark.parametrize("cured", [True, False])
def test_the_import_is_repeated(tmp_path, monkeypatch, cured):
    work = tmp_path / "工作"
    work.mkdir()
    (work / "fragile.py").write_text("raise ValueError('always')\n")
    if cured:
        text = "import os, tempfile\nif not tempfile.gettempdir().isascii():\n    raise ValueError(os.getcwd())\n"
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib" / "fragile.py").write_text(text)
    temp = tmp_path / "临时"
    temp.mkdir()
    monkeypatch.setenv("TMPDIR", str(temp))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib" if cured else work))
    args = {"python": sys.executable, "module": "fragile", "cwd": str(tmp_path if cured else work), "limit": 60}
    value, source = COLLECTORS["names.ascii_import"].function(args)
    assert source == "import fragile"
    assert (value["ok"], value["same_error"]) == ((True, False) if cured else (False, True))
    assert "TMPDIR" in value["changed"] and value["before_ok"] is False
    assert not [name for name in os.listdir("/tmp") if name.startswith("tftriage-") and not os.listdir("/tmp/" + name)]
