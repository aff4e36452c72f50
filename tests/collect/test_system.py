"""System, language, user, processor and memory."""

import os
import sys

import pytest

from tftriage.collect import system
from tftriage.collect.registry import COLLECTORS, Failed

CPUINFO = """processor\t: 0
model name\t: Intel(R) Core(TM) i5-8300H CPU @ 2.30GHz
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu sse4_2 {} fma

processor\t: 1
physical id\t: 0
core id\t\t: 0
processor\t: 2
physical id\t: 0
core id\t\t: 1
"""


@pytest.mark.parametrize(
    ("release", "wsl"),
    [
        ("4.4.0-19041-Microsoft", 1),
        ("5.15.90.1-microsoft-standard-WSL2", 2),
        ("4.19.128-microsoft-standard", 2),
        ("6.1.0-18-amd64", None),
    ],
)
def test_wsl(release, wsl):
    assert system.wsl_of(release) == wsl


@pytest.mark.parametrize(
    ("version", "name"),
    [((10, 0, 18362), "10"), ((10, 0, 22631), "11"), ((6, 1, 7601), "7"), ((6, 3, 9600), "8.1"), ((5, 1, 2600), "5.1")],
)
def test_windows_release(version, name):
    assert system.windows_release(*version) == name


def test_processor():
    found = system.processor_of(CPUINFO.format("avx avx2"))
    assert found == {"name": "Intel(R) Core(TM) i5-8300H CPU @ 2.30GHz", "avx": True, "cores": 2}
    assert system.processor_of(CPUINFO.format("avx2"))["avx"] is False
    assert system.processor_of("processor : 0\nFeatures : fp asimd\n")["avx"] is None


def test_memory():
    text = "MemTotal: 1000 kB\nMemAvailable: 400 kB\nCommitLimit: 900 kB\nCommitted_AS: 300 kB\n"
    assert system.memory_of(text, False) == {
        "total": 1024000, "available": 409600, "commit_limit": None, "commit_available": None,
    }  # fmt: skip
    assert system.memory_of(text, True)["commit_available"] == 600 * 1024
    with pytest.raises(Failed):
        system.memory_of("", False)


def test_distribution(tmp_path):
    path = tmp_path / "os-release"
    path.write_text('NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.4 LTS"\n')
    assert system.distribution(str(path)) == "Ubuntu 22.04.4 LTS"
    assert system.distribution(str(tmp_path / "gone")) is None


def test_this_machine():
    value = COLLECTORS["system.os"].function({})[0]
    assert value["system"] == {"win32": "Windows", "linux": "Linux", "darwin": "Darwin"}[sys.platform]
    assert value["machine"] in ("AMD64", "x86_64", "aarch64", "arm64", "ARM64", "x86")
    assert value["release"] and value["version"]
    value = COLLECTORS["system.cpu"].function({})[0]
    assert value["logical"] == os.cpu_count()
    if sys.platform == "linux" and os.uname().machine == "x86_64":
        assert value["avx"] in (True, False) and value["name"]
    value = COLLECTORS["system.user"].function({})[0]
    assert value["name"] and os.path.isdir(value["home"]) and os.path.isdir(value["temp"])
    if sys.platform != "darwin":
        value = COLLECTORS["system.memory"].function({})[0]
        assert 0 < value["available"] <= value["total"]
        assert (value["commit_limit"] is None) <= (sys.platform != "win32")


def test_language(monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    value = COLLECTORS["system.locale"].function({})[0]
    assert value["lc_all"] == "zh_CN.UTF-8"
    if sys.platform == "win32":
        assert value["encoding"] == f"cp{value['acp']}"
    else:
        assert (value["acp"], value["ui_language"]) == (None, "zh_CN")
    monkeypatch.setenv("LC_ALL", "C")
    if sys.platform != "win32":
        assert COLLECTORS["system.locale"].function({})[0]["ui_language"] is None


def test_user_without_password_entry(monkeypatch):
    def unknown():
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(system.getpass, "getuser", unknown)
    assert COLLECTORS["system.user"].function({})[0]["name"]
