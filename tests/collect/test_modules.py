"""What running Pythons have loaded: texts of the system, and a real process with a library of a telling name."""

import os
import shutil
import subprocess
import sys
import sysconfig

import pytest

from tftriage.collect import modules
from tftriage.collect.registry import COLLECTORS, Skipped

MAPS = """55d0c0000000-55d0c0001000 r--p 00000000 08:01 11  /usr/bin/python3.10
7f0a1c000000-7f0a1c021000 r-xp 00000000 08:01 131   /opt/my libs/libcudnn.so.7.6.5
7f0a1c021000-7f0a1c022000 rw-p 00021000 08:01 131   /opt/my libs/libcudnn.so.7.6.5
7f0a1d000000-7f0a1d021000 r-xp 00000000 08:01 132   /opt/libcudart.so.10.1 (deleted)
7f0a1e000000-7f0a1e021000 rw-p 00000000 00:00 0
7ffd11111000-7ffd11132000 rw-p 00000000 00:00 0     [stack]
"""


def test_mapped_files():
    assert modules.mapped(MAPS) == [
        "/usr/bin/python3.10", "/opt/my libs/libcudnn.so.7.6.5", "/opt/libcudart.so.10.1"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "interesting"),
    [
        ("C:\\CUDA\\bin\\cudnn64_7.dll", True), ("C:\\Windows\\System32\\MSVCP140.dll", True),
        ("C:\\p\\_pywrap_tensorflow_internal.pyd", True), ("/p/libtensorflow_framework.so.2", True),
        ("/usr/lib/libcuda.so.1", True), ("C:\\py\\python37.dll", False), ("/usr/lib/libc.so.6", False),
    ],
)  # fmt: skip
def test_of_interest(path, interesting):
    assert modules.of_interest(path) is interesting


def test_a_process_in_words():
    words = ["/env/bin/python", "-m", "ipykernel_launcher", "-f", "x.json"]
    found = modules.described(4, "/usr/bin/python3.10", words, modules.mapped(MAPS))
    assert (found["python"], found["program"], found["kernel"]) == ("/env/bin/python", "/usr/bin/python3.10", True)
    assert found["modules"] == ["/opt/my libs/libcudnn.so.7.6.5", "/opt/libcudart.so.10.1"]
    assert modules.described(4, "/usr/bin/python3.10", [], []) is None
    assert modules.described(4, "C:\\p\\python.exe", [], ["C:\\nvcuda.dll"])["python"] == "C:\\p\\python.exe"


def test_a_system_without_such_a_list(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(Skipped):
        COLLECTORS["process.modules"].function({})


def library(folder):
    """A loadable file with the name of cuDNN."""
    if os.name == "nt":
        path = os.path.join(str(folder), "cudnn64_7.dll")
        shutil.copy(
            os.path.join(sysconfig.get_config_var("installed_base") or sys.base_prefix, "vcruntime140.dll"), path
        )
        return path
    if not sys.platform.startswith("linux") or shutil.which("gcc") is None:
        pytest.skip("needs Linux and gcc, or Windows")
    path = os.path.join(str(folder), "libcudnn.so.7")
    (folder / "a.c").write_text("int zero;")
    subprocess.check_call(["gcc", "-shared", "-nostdlib", "-o", path, str(folder / "a.c")])
    return path


def test_a_real_process_says_which_copy_it_loaded(tmp_path):
    path = library(tmp_path)
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print('loaded', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, path, "ipykernel_launcher"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdout.readline().strip() == b"loaded"
        value, source = COLLECTORS["process.modules"].function({})
        mine = [one for one in value["processes"] if path in one["modules"]]
        only = COLLECTORS["process.modules"].function({"pid": mine[0]["pid"] if mine else process.pid})[0]
        process.communicate(b"")
    assert len(mine) == 1, (source, value)
    assert only["processes"] == mine
    assert os.path.basename(mine[0]["python"]).lower().startswith("python")
    assert mine[0]["pid"] == process.pid or os.name == "nt"  # a virtual environment's python.exe starts another
    assert mine[0]["kernel"] is True or os.name == "nt"  # the command line may be hidden there
