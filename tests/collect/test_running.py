"""Running kernels and servers: command lines, and a real kernel with the environment that it was given."""

import importlib.util
import os
import subprocess
import sys
import time

import pytest

from tftriage.collect import running
from tftriage.collect.registry import COLLECTORS, Absent, Skipped


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["python", "-m", "ipykernel_launcher", "-f", "/run/kernel-1.json"], "kernel"),
        (["C:\\tf\\python.exe", "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "C:\\k.json"], "kernel"),
        (["python", "-m", "ipykernel", "--f=/run/kernel-1.json"], "kernel"),
        (["python", "-m", "notebook"], "server"),
        (["python", "-m", "ipykernel", "install", "--user"], None),
        (["tail", "-f", "/var/log/syslog"], None),
        (["python"], None),
        ([], None),
    ],
)
def test_kinds(words, kind):
    assert running.kind_of(words) == kind


def test_a_real_kernel(tmp_path):
    psutil = pytest.importorskip("psutil")
    if importlib.util.find_spec("ipykernel") is None:
        pytest.skip("ipykernel is not installed")
    env = dict(os.environ, CUDA_VISIBLE_DEVICES="-1", AWS_SECRET="x", IPYTHONDIR=str(tmp_path))
    file = str(tmp_path / "kernel-7.json")
    kernel = subprocess.Popen([sys.executable, "-m", "ipykernel_launcher", "-f", file], env=env, cwd=str(tmp_path))
    try:
        until = time.monotonic() + 60
        while not os.path.exists(file) and time.monotonic() < until:
            time.sleep(0.2)
        value = COLLECTORS["jupyter.running"].function({})[0]
        mine = next(one for one in value if one["pid"] == kernel.pid)
    finally:
        kernel.kill()
        kernel.wait()
    assert (mine["kind"], mine["connection"], mine["parent"]) == ("kernel", "kernel-7.json", os.getpid())
    assert os.path.normcase(mine["python"]) == os.path.normcase(sys.executable)
    if mine["env"] is None:
        assert os.name == "nt" and psutil  # Wine does not let psutil read it
    else:
        assert mine["env"]["CUDA_VISIBLE_DEVICES"] == "-1" and "AWS_SECRET" not in mine["env"]


def test_nothing_runs(monkeypatch):
    psutil = pytest.importorskip("psutil")
    monkeypatch.setattr(psutil, "process_iter", list)
    with pytest.raises(Absent):
        COLLECTORS["jupyter.running"].function({})
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(Skipped, match="no-psutil"):
        COLLECTORS["jupyter.running"].function({})


def test_libraries_that_matter():
    names = ["cudart64_101.dll", "libcudnn.so.7", "_pywrap_tensorflow_internal.pyd", "libm.so.6", "numpy.pyd"]
    assert [name for name in names if running._matters(name)] == names[:3]
