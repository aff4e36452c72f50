"""Windows' settings and the Visual C++ runtime, from a registry as it is and from real PE files."""

import os
import sys

import pytest

from tests.pe_builder import build
from tftriage.collect import settings
from tftriage.collect.registry import COLLECTORS, Absent


def registry(**keys):
    """values(hive, key, view) of a registry in which only these keys are."""
    named = {"files": settings.FILE_SYSTEM, "graphics": settings.GRAPHICS}
    stored = {named.get(name, name): value for name, value in keys.items()}
    return lambda hive, key, view=0: stored.get(key, {}) if hive == "HKLM" else {}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, (None, None)),
        ({"files": {"LongPathsEnabled": ("REG_DWORD", 1)}}, (True, None)),
        ({"files": {"LongPathsEnabled": ("REG_DWORD", 0)}, "graphics": {"HwSchMode": ("REG_DWORD", 2)}}, (False, True)),
        ({"graphics": {"HwSchMode": ("REG_DWORD", 1)}}, (None, False)),
        ({"graphics": {"HwSchMode": ("REG_SZ", "2")}}, (None, None)),
    ],
)
def test_settings(keys, expected):
    found = settings.settings_of(registry(**keys))
    assert (found["long_paths"], found["hags"]) == expected


def test_registered_runtimes():
    stored = {
        settings.RUNTIMES + "\\x64": {"Version": ("REG_SZ", "v14.29.30133.00"), "Installed": ("REG_DWORD", 1)},
        settings.RUNTIMES + "\\x86": {"Version": ("REG_SZ", "v14.16.27033.00"), "Installed": ("REG_DWORD", 0)},
    }
    assert settings.registered_runtimes(registry(**stored)) == [
        {"arch": "x64", "version": "14.29.30133", "installed": True},
        {"arch": "x86", "version": "14.16.27033", "installed": False},
    ]
    assert settings.registered_runtimes(registry()) == []


def test_files(tmp_path):
    (tmp_path / "MSVCP140.dll").write_bytes(build(["KERNEL32.dll"], version=(14, 24, 28127, 4)))
    (tmp_path / "vcruntime140.dll").write_bytes(b"not a library")
    (tmp_path / "other.dll").write_bytes(b"")
    found = {one["name"]: one for one in settings.runtime_files(str(tmp_path))}
    assert set(found) == {"msvcp140.dll", "vcruntime140.dll"}
    assert (found["msvcp140.dll"]["version"], found["msvcp140.dll"]["error"]) == ("14.24.28127.4", None)
    assert found["vcruntime140.dll"]["error"]
    assert settings.runtime_files(str(tmp_path / "gone")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there it looks")
@pytest.mark.parametrize("name", ["system.settings", "system.vcruntime"])
def test_elsewhere(name):
    with pytest.raises(Absent) as none:
        COLLECTORS[name].function({})
    assert str(none.value) == "windows-only"


@pytest.mark.skipif(os.name != "nt", reason="Windows")
def test_this_windows():
    assert set(COLLECTORS["system.settings"].function({})[0]) == {"long_paths", "hags", "hags_mode"}
    value = COLLECTORS["system.vcruntime"].function({})[0]
    assert os.path.isdir(value["folder"]) and "msvcp140.dll" in [one["name"] for one in value["files"]]
