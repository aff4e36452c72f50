"""Environment, PATH and the registry's values."""

import os
import sys

import pytest

from tftriage.collect import environment, winreg_reader
from tftriage.collect.registry import COLLECTORS, Absent

MACHINE = {
    "Path": ("REG_EXPAND_SZ", r"%SystemRoot%\system32;C:\CUDA\v10.1\bin;C:\both"),
    "CUDA_PATH": ("REG_SZ", r"C:\CUDA\v10.1"),
    "SECRET_TOKEN": ("REG_SZ", "x"),
}
USER = {"Path": ("REG_SZ", r"%CUDA_PATH%\bin;D:\mine;C:\both"), "CUDA_VISIBLE_DEVICES": ("REG_SZ", "-1")}
PROCESS = {"SYSTEMROOT": r"C:\Windows", "CUDA_PATH": r"C:\CUDA\v10.1"}


def test_only_what_matters_is_kept():
    given = {
        "PATH": "a",
        "CUDA_PATH_V10_1": "b",
        "TF_CPP_MIN_LOG_LEVEL": "0",
        "LC_ALL": "C",
        "AWS_SECRET_ACCESS_KEY": "s",
    }
    assert environment.relevant(given) == {name: given[name] for name in given if name != "AWS_SECRET_ACCESS_KEY"}


def test_expand():
    assert environment.expand(r"%systemroot%\x;%GONE%\y", PROCESS) == r"C:\Windows\x;%GONE%\y"
    assert environment.expand("100%", PROCESS) == "100%"


def test_scopes_of_path_entries():
    entries = [
        r"C:\Windows\system32",
        "c:\\cuda\\V10.1\\bin\\",
        r"%CUDA_PATH%\bin",
        r"D:\mine",
        r"C:\both",
        r"E:\conda",
    ]
    found = environment.describe_path(entries, MACHINE, USER, PROCESS, True)
    assert [one["scope"] for one in found] == ["machine", "machine", "user", "user", "machine", "process"]
    assert [one["entry"] for one in found] == entries
    assert not any(one["exists"] for one in found if "%" in one["entry"])


def test_exists_as_the_loader_sees_it(tmp_path):
    (tmp_path / "file").write_text("x")
    entries = [str(tmp_path), f'"{tmp_path}"', str(tmp_path / "file"), str(tmp_path / "gone")]
    found = environment.describe_path(entries, {}, {}, {}, False)
    assert [one["exists"] for one in found] == [True, False, False, False]
    assert {one["scope"] for one in found} == {"process"}


def test_stored_values_keep_type_and_leave_secrets():
    found = environment.describe_stored(MACHINE, PROCESS)
    assert (found["Path"]["type"], found["Path"]["value"]) == MACHINE["Path"]
    folders = [r"C:\Windows\system32", r"C:\CUDA\v10.1\bin", r"C:\both"]
    assert [one["folder"] for one in found["Path"]["entries"]] == folders
    assert [one["entry"] for one in found["Path"]["entries"]] == MACHINE["Path"][1].split(";")
    assert found["variables"] == {"CUDA_PATH": {"type": "REG_SZ", "value": r"C:\CUDA\v10.1"}}
    assert environment.describe_stored({}, {})["Path"] is None
    plain = environment.describe_stored(USER, PROCESS)["Path"]["entries"]  # REG_SZ: nothing is replaced
    assert (plain[0]["folder"], plain[0]["state"]) == (r"%CUDA_PATH%\bin", "unexpanded")


@pytest.mark.parametrize(
    ("entry", "state", "short", "ascii_only"),
    [
        (r"C:\gone", "missing", False, True),
        (r"C:\PROGRA~1\NVIDIA~2\bin", "missing", True, True),
        ("C:\\Users\\张伟\\bin", "missing", False, False),
        (r'"C:\with space\bin"', "quoted", False, True),
        (r"%CUDA_PATH%\bin", "unexpanded", False, True),
        (r"bin\x64", "relative", False, True),
        ("c:\\Both\\", "duplicate", False, True),
        (r"C:\not~here", "missing", False, True),
    ],
)
def test_the_state_of_an_entry(entry, state, short, ascii_only):
    found = environment.describe_entry(entry, [r"C:\both"], True)
    assert found == {"state": state, "short": short, "ascii": ascii_only}


def test_the_state_of_real_folders(tmp_path):
    (tmp_path / "file").write_text("x")
    windows = os.name == "nt"
    states = [environment.describe_entry(str(tmp_path / name), [], windows)["state"] for name in ("", "file", "gone")]
    assert states == ["ok", "file", "missing"]


def test_context_environment(monkeypatch):
    monkeypatch.setenv("PATH", "old")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    found = environment.context_environment(
        {"env": {"CUDA_VISIBLE_DEVICES": None, "TF_X": 1}, "with_path": ["one", "two"]}
    )
    assert found["PATH"] == os.pathsep.join(["one", "two", "old"])
    assert "CUDA_VISIBLE_DEVICES" not in found
    assert found["TF_X"] == "1"
    assert environment.path_folders(found) == ["one", "two", "old"]


def test_collectors(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    value, _ = COLLECTORS["env.process"].function({})
    assert value.get("CUDA_VISIBLE_DEVICES", "") == ""  # Windows drops empty variables
    value, _ = COLLECTORS["env.path"].function({})
    assert any(one["exists"] for one in value)


@pytest.mark.skipif(sys.platform == "win32", reason="there it has an answer")
def test_registry_facts_are_absent_elsewhere():
    for name in ("env.user", "env.machine"):
        with pytest.raises(Absent, match="windows-only"):
            COLLECTORS[name].function({})
    assert winreg_reader.values("HKLM", environment.MACHINE_KEY) == {}
    assert winreg_reader.keys("HKLM", "SOFTWARE") == []


@pytest.mark.skipif(sys.platform != "win32", reason="the registry of Windows")
def test_registry_of_windows():
    value, _ = COLLECTORS["env.machine"].function({})
    assert value["Path"]["type"] in ("REG_SZ", "REG_EXPAND_SZ")
    assert "microsoft" in {name.lower() for name in winreg_reader.keys("HKLM", "SOFTWARE")}


def test_variables_of_terraform_are_none_of_ours():
    """They begin with TF_ as well, and TF_VAR_* may hold passwords."""
    seen = environment.relevant(
        {"TF_VAR_db_password": "x", "TF_CLI_ARGS": "x", "TF_TOKEN_app": "x", "TF_ENABLE_ONEDNN_OPTS": "0"}
    )
    assert seen == {"TF_ENABLE_ONEDNN_OPTS": "0"}
