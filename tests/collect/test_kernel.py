"""The import in a notebook's cell: a real kernel, started by a real jupyter_client.

Runs where ipykernel and jupyter_client are at hand: in this environment, or in the one that
TFTRIAGE_KERNEL_PYTHON names.
"""

import json
import os
import subprocess
import sys

import pytest

from tftriage.collect import target
from tftriage.collect.registry import Absent, Failed, Skipped


def keys(value):
    return " ".join(sorted(value))


def has_kernel(python):
    command = [python, "-c", "import ipykernel, jupyter_client"]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def server():
    for python in (os.environ.get("TFTRIAGE_KERNEL_PYTHON"), sys.executable):
        if python and has_kernel(python):
            return python
    pytest.skip("no Python with ipykernel and jupyter_client here")


@pytest.fixture
def kernel(server, tmp_path):
    """Arguments that lead to a kernel named ``triage``, and a function that adds a module it can import."""
    data, modules = tmp_path / "jupyter", tmp_path / "modules"
    modules.mkdir()

    def spec(name, argv, language="python"):
        folder = data / "kernels" / name
        folder.mkdir(parents=True)
        text = {"argv": argv, "display_name": name, "language": language, "env": {"OF_THE_KERNEL": "1"}}
        (folder / "kernel.json").write_text(json.dumps(text), encoding="utf-8")

    spec("triage", [server, "-m", "ipykernel_launcher", "-f", "{connection_file}"])
    spec("gone", [str(tmp_path / "gone" / "python"), "-f", "{connection_file}"])
    spec("lacks-ipykernel", [server, "-c", "import sys; sys.exit('No module named ipykernel_launcher')"])
    spec("other", ["R", "{connection_file}"], "R")
    changes = {
        "JUPYTER_PATH": str(data), "PYTHONPATH": str(modules), "IPYTHONDIR": str(tmp_path / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
    }  # fmt: skip

    def ask(name="triage", module=None, source="", limit=60.0):
        if module:
            (modules / f"{module}.py").write_text(source, encoding="utf-8")
        args = {"server_python": server, "kernel": name, "module": module, "env": changes, "limit": limit}
        return target.jupyter_import({**args, "cwd": str(tmp_path)})[0]

    return ask


def test_a_module_that_imports(kernel):
    source = "import os\nprint('said')\nos.write(2, b'native line\\n')\n__version__ = os.environ['OF_THE_KERNEL']\n"
    value = kernel(module="good", source=source)
    assert keys(value) == (
        "context error error_type exit file log module ok seconds signal stack timed_out traceback version"
    )
    assert (value["ok"], value["version"], value["module"], value["error"]) == (True, "1", "good", None)
    assert "said" in value["log"] and "native line" in value["log"]
    assert (value["context"]["kind"], value["context"]["kernel"]) == ("kernel", "triage")


def test_a_failing_import(kernel):
    value = kernel(module="fails", source="raise ImportError('DLL load failed: 找不到指定的模块。')\n")
    assert (value["ok"], value["error_type"], value["error"]) == (
        False,
        "ImportError",
        "DLL load failed: 找不到指定的模块。",
    )
    assert value["traceback"].startswith("Traceback (most recent call last):\n  File ")
    assert (value["exit"], value["signal"], value["timed_out"]) == (None, None, False)


def test_an_import_that_kills_the_kernel(kernel):
    value = kernel(module="dies", source="import os\nos.abort()\n")
    assert (value["ok"], value["error_type"], value["error"]) == (False, "DeadKernelError", "Kernel died")
    assert value["signal"] == "SIGABRT"


def test_an_import_that_hangs_the_kernel(kernel):
    hang = "import time\ndef culprit():\n    time.sleep(3600)\nculprit()\n"
    value = kernel(module="hangs", source=hang, limit=60.0 if os.name == "nt" else 20.0)
    assert (value["ok"], value["timed_out"], value["error_type"]) == (False, True, "CellTimeoutError")
    assert "in culprit" in value["stack"]


@pytest.mark.parametrize(
    ("name", "error_type", "said"),
    [
        ("unheard-of", "NoSuchKernel", "unheard-of"),
        ("gone", "FileNotFoundError", "WinError 2" if os.name == "nt" else "gone"),
        ("lacks-ipykernel", "RuntimeError", "Kernel died before replying to kernel_info"),
        ("other", "NotPython", "r"),
    ],
)
def test_a_kernel_that_does_not_start(kernel, name, error_type, said):
    value = kernel(name, "unneeded")
    assert (value["ok"], value["error_type"]) == (False, error_type)
    assert said in value["error"]
    if name == "lacks-ipykernel":
        assert "No module named ipykernel_launcher" in value["log"]
        assert value["exit"] == 1


def test_without_jupyter_client_it_is_absent(tmp_path):
    pytest.importorskip("venv", reason="the embeddable Windows Python has no venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    python = str(tmp_path / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    with pytest.raises(Absent, match="no-jupyter-client"):
        target.jupyter_import({"server_python": python, "kernel": "python3", "limit": 30.0})


def test_without_a_kernel_or_a_server_it_is_skipped():
    with pytest.raises(Skipped, match="no-kernel-named"):
        target.jupyter_import({"server_python": sys.executable})
    with pytest.raises(Skipped, match="no-server-python"):
        target.jupyter_import({"kernel": "python3"})
    with pytest.raises(Failed, match="gone: "):
        target.jupyter_import({"kernel": "python3", "server_python": os.path.join("nowhere", "python"), "limit": 10.0})
