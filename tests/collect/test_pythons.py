"""Finding interpreters in folder trees and registry values made for the purpose; nothing is started."""

import os
import sys

import pytest

from tests import pe_builder
from tftriage.collect import interpreters, pythons
from tftriage.collect.registry import COLLECTORS

WINDOWS = os.name == "nt"


def file(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def interpreter(prefix, version="3.7"):
    """An environment's folder as venv and conda make it on this system; returns (interpreter, site-packages)."""
    if WINDOWS:
        python = prefix / "Scripts" / "python.exe" if (prefix / "pyvenv.cfg").exists() else prefix / "python.exe"
        site = prefix / "Lib" / "site-packages"
    else:
        python, site = prefix / "bin" / "python", prefix / "lib" / f"python{version}" / "site-packages"
    site.mkdir(parents=True, exist_ok=True)
    file(python, "\x7fELF")
    python.chmod(0o755)
    return str(python), site


def test_prefix():
    join = os.path.join
    assert interpreters.prefix_of(join("e", "Scripts", "python.exe")) == "e"
    assert interpreters.prefix_of(join("e", "bin", "python3")) == "e"
    assert interpreters.prefix_of(join("e", "python.exe")) == "e"


def test_versions(tmp_path):
    venv = tmp_path / "venv"
    file(venv / "pyvenv.cfg", "home = /usr/bin\nversion_info = 3.7.16.final.0\n")
    assert interpreters.version_of(interpreter(venv)[0]) == "3.7.16"
    file(venv / "pyvenv.cfg", "HOME = C:\\Python38\r\nVersion = 3.8.10\r\n")
    assert interpreters.version_of(interpreter(venv)[0]) == "3.8.10"
    conda = tmp_path / "conda"
    file(conda / "conda-meta" / "python-3.6.13-h3758d61_0.json", "{}")
    file(conda / "conda-meta" / "python-dateutil-2.8.2-py_0.json", "{}")
    assert interpreters.version_of(interpreter(conda)[0]) == "3.6.13"
    official = tmp_path / "Python37"
    file(official / "python3.dll", pe_builder.build(version=(3, 7, 9150, 1013)))
    file(official / "python37.dll", pe_builder.build(version=(3, 7, 9150, 1013)))
    assert interpreters.version_of(file(official / "python.exe")) == "3.7.9"
    file(official / "python37.dll", b"")
    assert interpreters.version_of(str(official / "python.exe")) == "3.7"
    assert interpreters.version_of(file(tmp_path / "nothing" / "python.exe")) is None


@pytest.mark.skipif(WINDOWS, reason="the layout of other systems")
def test_version_from_header_and_library(tmp_path):
    python, _ = interpreter(tmp_path, "3.9")
    assert interpreters.version_of(python) == "3.9"
    file(tmp_path / "include" / "python3.9" / "patchlevel.h", '#define PY_VERSION              "3.9.18"\n')
    assert interpreters.version_of(python) == "3.9.18"


def test_own_version():
    assert interpreters.version_of(sys.executable) in (
        sys.version.split()[0],
        "{}.{}".format(*sys.version_info[:2]),
    )


def test_packages(tmp_path):
    file(tmp_path / "pyvenv.cfg", "version = 3.7.16\n")
    python, site = interpreter(tmp_path)
    for name in ("tensorflow_gpu-2.1.0.dist-info", "Keras_Applications-1.0.8.dist-info", "ipykernel-6.16.2.dist-info"):
        (site / name).mkdir()
    (site / "gast-0.2.2-py3.7.egg-info").write_text("")
    (site / "~ensorflow_gpu-2.1.0.dist-info").mkdir()  # what an interrupted uninstallation leaves
    found = {name: version for name, version, _ in interpreters.distributions([str(site)])}
    assert found["tensorflow-gpu"] == "2.1.0"
    assert found["keras-applications"] == "1.0.8"
    assert found["gast"] == "0.2.2"
    assert interpreters.tensorflow_of(python) == "tensorflow-gpu 2.1.0"
    assert interpreters.version_of_package(python, "ipykernel") == "6.16.2"
    assert interpreters.version_of_package(python, "numpy") is None
    (site / "tensorflow-2.3.1.dist-info").mkdir()
    (site / "tensorflow_intel-2.3.1.dist-info").mkdir()
    assert interpreters.tensorflow_of(python) == "tensorflow 2.3.1, tensorflow-gpu 2.1.0"


def test_user_site_is_not_a_venvs(tmp_path):
    python, site = interpreter(tmp_path / "base", "3.7")
    file(tmp_path / "base" / "conda-meta" / "python-3.7.16-h1_0.json", "{}")
    user = tmp_path / "roaming" / "Python" / "Python37" / "site-packages"
    user.mkdir(parents=True)
    environment = {"APPDATA": str(tmp_path / "roaming")}
    assert interpreters.site_packages(python, environment)[:2] == [str(site), str(user)]
    file(tmp_path / "base" / "pyvenv.cfg", "version = 3.7.16\n")
    assert str(user) not in interpreters.site_packages(interpreter(tmp_path / "base", "3.7")[0], environment)


def test_registry(tmp_path):
    official = file(tmp_path / "Python37" / "python.exe")
    conda = file(tmp_path / "Anaconda3" / "python.exe")
    tree = {
        r"Software\Python": ["PythonCore", "ContinuumAnalytics", "PyLauncher"],
        r"Software\Python\PythonCore": ["3.7", "3.8"],
        r"Software\Python\ContinuumAnalytics": ["Anaconda39-64"],
    }
    stored = {
        r"Software\Python\PythonCore\3.7\InstallPath": {"": ("REG_SZ", str(tmp_path / "Python37"))},
        r"Software\Python\PythonCore\3.8\InstallPath": {"": ("REG_SZ", str(tmp_path / "gone"))},
        r"Software\Python\ContinuumAnalytics\Anaconda39-64\InstallPath": {"ExecutablePath": ("REG_SZ", conda)},
    }
    found = pythons.from_registry(
        lambda hive, key: tree.get(key, []) if hive == "HKCU" else [], lambda hive, key: stored.get(key, {})
    )
    assert list(found) == [(official, "registry"), (conda, "registry")]


def test_virtual_environments(tmp_path):
    work, home = tmp_path / "home" / "work", tmp_path / "home"
    made = [work / ".venv", home / ".virtualenvs" / "tf", home / "projects" / "demo" / "venv", tmp_path / "other"]
    for folder in made:
        file(folder / "pyvenv.cfg", "version = 3.8.10\n")
    (home / "Documents").mkdir()
    found = set(pythons.virtual_environments({"VIRTUAL_ENV": str(made[3])}, str(home), str(work)))
    assert found == {str(folder) for folder in made}


def test_gathered_once_with_every_way(tmp_path):
    file(tmp_path / "tf21" / "conda-meta" / "python-3.7.16-h1_0.json", "{}")
    python, _ = interpreter(tmp_path / "tf21")
    found = pythons.gather(iter([(python, "kernelspec"), (python, "path"), (python, "kernelspec")]))
    assert found == [
        {
            "path": python, "version": "3.7.16", "prefix": str(tmp_path / "tf21"), "kind": "conda", "name": "tf21",
            "tensorflow": None, "found_by": ["kernelspec", "path"],
        }
    ]  # fmt: skip


@pytest.mark.skipif(WINDOWS, reason="symbolic links need a right on Windows")
def test_links(tmp_path):
    python, _ = interpreter(tmp_path / "base")
    os.symlink("python", tmp_path / "base" / "bin" / "python3")
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    os.symlink(python, venv / "bin" / "python")
    file(venv / "pyvenv.cfg", "version = 3.7.16\n")
    found = pythons.gather(
        iter(
            [
                (python, "path"),
                (str(tmp_path / "base" / "bin" / "python3"), "path"),
                (str(venv / "bin" / "python"), "venv"),
            ]
        )
    )
    assert [one["kind"] for one in found] == ["system", "venv"]


def test_path(tmp_path):
    real = tmp_path / "real"
    name = "python.exe" if WINDOWS else "python3"
    file(real / name, "MZ")
    file(real / "pythonw.exe", "MZ")
    shim = tmp_path / "shims"
    file(shim / name, "#!/bin/sh\n")
    store = tmp_path / "WindowsApps"
    file(store / name, "")
    for folder in (real, shim, store):
        os.chmod(folder / name, 0o755)
    environment = {"PATH": os.pathsep.join(map(str, (shim, store, real)))}
    assert list(pythons.from_path(environment)) == [(str(real / name), "path")]


@pytest.mark.parametrize(
    ("python", "found_by", "kind"),
    [
        (
            r"C:\Users\a\AppData\Local\Microsoft\WindowsApps\PythonSoftwareFoundation.Python.3.8_x\python.exe",
            ["store"],
            "store",
        ),
        (r"C:\Users\a\.pyenv\pyenv-win\versions\3.7.9\python.exe", ["pyenv"], "pyenv"),
        (r"C:\Users\a\AppData\Local\Programs\Python\Python37\python.exe", ["path"], "python.org"),
        ("/usr/bin/python3", ["path"], "system"),
        ("/weird/python", ["given"], "given"),
    ],
)
def test_kind(python, found_by, kind):
    assert pythons.kind_of(python, found_by) == kind


def test_collector_finds_this_interpreter():
    value, _ = COLLECTORS["pythons.list"].function({"python": sys.executable})
    assert value[0]["path"] == sys.executable
    assert "given" in value[0]["found_by"]
    assert len({one["path"] for one in value}) == len(value)
