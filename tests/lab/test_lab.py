"""The lab proves itself: unmodified TensorFlow, real loaders and real registries react as they do in the field."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
PROBE = str(HERE / "tfprobe.py")
ADDED = "Adding visible gpu devices: 0"
SKIPPED = "Cannot dlopen some GPU libraries"
FOUND = "Found device 0 with properties"
# LoadLibraryExW(name, 0, 8), as TensorFlow opens its libraries; prints the error code, 0 for loaded
LOAD = """
import ctypes, sys
k = ctypes.WinDLL("kernel32", use_last_error=True)
k.LoadLibraryExW.restype = ctypes.c_void_p
k.LoadLibraryExW.argtypes = [ctypes.c_wchar_p, ctypes.c_void_p, ctypes.c_uint32]
k.SetErrorMode(0x8001)
print(0 if k.LoadLibraryExW(sys.argv[1], None, 8) else ctypes.get_last_error())
"""


# ---------------------------------------------------------------- Linux


def test_unpinned_tensorflow_210_installs_and_then_fails_at_import(linux_target):
    target = linux_target("tf210-unpinned")
    assert target.run("-m", "pip", "check").code == 0, "pip sees nothing wrong with it"
    ran = target.run("-c", "import tensorflow")
    assert ran.code == 1
    assert "TypeError: Descriptors cannot not be created directly." in ran.err


def test_pins_cure_it(linux_target):
    ran = linux_target("tf210").run(PROBE, "gpu")
    assert "RESULT 2.1.0 False" in ran.out, ran
    assert "failed call to cuInit: UNKNOWN ERROR (303)" in ran.err


def test_device_found_but_not_added_without_cuda(linux_target):
    ran = linux_target("tf210").run(PROBE, "gpu", libraries=["driver"])
    assert "RESULT 2.1.0 False" in ran.out, ran
    missing = "Could not load dynamic library 'libcudart.so.10.1'"
    assert ran.err.index(FOUND) < ran.err.index(missing) < ran.err.index(SKIPPED)
    assert ADDED not in ran.err


def test_device_added_with_cuda(linux_target):
    ran = linux_target("tf210").run(PROBE, "gpu", libraries=["driver", "cuda101"])
    assert "RESULT 2.1.0 True" in ran.out, ran
    assert ADDED in ran.err and SKIPPED not in ran.err


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"FAKE_CUDA_CC": "3.0"}, "Ignoring visible gpu device"),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, "failed call to cuInit: CUDA_ERROR_NO_DEVICE"),
        ({"FAKE_CUDA_INIT": "803"}, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        ({"FAKE_CUDART_FAIL": "35"}, "CUDA driver version is insufficient for CUDA runtime version"),
    ],
    ids=["old-card", "hidden", "driver-mismatch", "old-driver"],
)
def test_driver_faults_on_linux(linux_target, settings, line):
    ran = linux_target("tf210").run(PROBE, "gpu", libraries=["driver", "cuda101"], env=settings)
    assert line in ran.text, ran
    assert "RESULT 2.1.0 True" not in ran.out


def test_tensorflow_1_is_linked_against_cuda(linux_target, lab):
    target = linux_target("tf1131")
    bare = target.run("-c", "import tensorflow")
    assert bare.code == 1
    assert "ImportError: libcublas.so.10.0: cannot open shared object file" in bare.err
    path = target.libraries("driver") + f":{lab}/native/linux-cuda100"
    ran = target.run("-c", "import tensorflow as tf; print(tf.__version__)", env={"LD_LIBRARY_PATH": path})
    assert ran.out.strip() == "1.13.1", ran


def test_a_clone_is_an_environment_of_its_own(linux_target, clone_target):
    original, clone = linux_target("tf210"), clone_target("tf210")
    native = next(clone.site_packages.glob("tensorflow_core/python/_pywrap_tensorflow_internal.so"))
    native.unlink()
    where = clone.run("-c", "import sys; print(sys.prefix)")
    assert where.out.strip() == str(clone.folder)
    assert "No module named '_pywrap_tensorflow_internal'" in clone.run("-c", "import tensorflow").err
    assert original.run("-c", "import tensorflow").code == 0


def test_nvml_answers_on_linux(native):
    code = (
        "import pynvml as n; n.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(0);"
        "print(n.nvmlSystemGetDriverVersion(), n.nvmlDeviceGetName(h), n.nvmlDeviceGetCudaComputeCapability(h),"
        " n.nvmlDeviceGetUtilizationRates(h).gpu, n.nvmlDeviceGetPerformanceState(h),"
        " n.nvmlDeviceGetCurrPcieLinkWidth(h),"
        " [(p.pid, p.usedGpuMemory >> 20) for p in n.nvmlDeviceGetComputeRunningProcesses(h)])"
    )
    env = {
        "LD_LIBRARY_PATH": str(native / "linux" / "nvml"),
        "FAKE_NVML_PCIE": "1x4",
        "FAKE_NVML_PROCESSES": "42:512,7:3",
    }
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert run.stdout == "441.22 GeForce GTX 1060 6GB (6, 1) 37 2 4 [(42, 512), (7, 3)]\n", run


def test_the_jupyter_environment_has_no_tensorflow(linux_target):
    ran = linux_target("jupyter").run("-c", "import jupyter_client, ipykernel, nbclient; import tensorflow")
    assert "No module named 'tensorflow'" in ran.err


# ---------------------------------------------------------------- Windows


def test_tensorflow_finds_cuda_on_path_under_windows(windows, native):
    python, cuda = windows.python("3.8"), native / "windows" / "cuda101"
    windows.driver()
    without = windows.run(python, PROBE, "gpu")
    assert "RESULT 2.3.1 False" in without.out, without
    assert "Could not load dynamic library 'cudart64_101.dll'; dlerror: cudart64_101.dll not found" in without.err
    assert FOUND in without.err and SKIPPED in without.err and ADDED not in without.err
    found = windows.run(python, PROBE, "gpu", path=[cuda])
    assert "RESULT 2.3.1 True" in found.out, found
    assert "Successfully opened dynamic library cudart64_101.dll" in found.err
    assert ADDED in found.err and SKIPPED not in found.err


def test_the_driver_can_be_taken_away(windows, native):
    windows.driver()
    windows.driver(False)
    ran = windows.run(windows.python("3.8"), PROBE, "gpu", path=[native / "windows" / "cuda101"])
    assert "Could not load dynamic library 'nvcuda.dll'" in ran.err, ran
    assert "RESULT 2.3.1 False" in ran.out


def test_old_card_is_ignored_under_windows(windows, native):
    windows.driver()
    cuda = native / "windows" / "cuda101"
    ran = windows.run(windows.python("3.8"), PROBE, "gpu", path=[cuda], env={"FAKE_CUDA_CC": "3.0"})
    assert "Ignoring visible gpu device" in ran.err and "minimum required Cuda capability is 3.5" in ran.err, ran


def test_matmul_on_the_pretend_gpu_computes_nothing(windows, native):
    windows.driver()
    ran = windows.run(windows.python("3.8"), PROBE, "matmul", path=[native / "windows" / "cuda101"])
    assert "device:GPU:0 0.0" in ran.out, ran


@pytest.mark.parametrize(
    ("target", "folders", "code"),
    [
        ("only/tfuser.dll", [], 126),
        ("only/tfuser.dll", ["dep"], 0),
        ("ok/tfuser.dll", [], 0),
        ("目录 空格/tfuser.dll", [], 0),
        ("wrong/dll32.dll", [], 193),
        ("wrong/text.dll", [], 193),
        ("wrong/empty.dll", [], 193),
        ("wrong/cut.dll", [], 193),
        ("fail/dllfail.dll", [], 1114),
        ("faildep/tfuser.dll", [], 1114),
    ],
)
def test_loader_codes(windows, native, target, folders, code):
    trees = native / "windows" / "dlls"
    dll = "Z:" + str(trees / target).replace("/", "\\")
    ran = windows.run(windows.python("3.8"), "-c", LOAD, dll, path=[trees / f for f in folders])
    assert ran.out.strip() == str(code), ran


@pytest.mark.parametrize("version", ["3.8", "3.11"])
def test_dll_load_failed_is_real(windows, native, version):
    folder = native / "windows" / f"badext{version}"
    bare = windows.run(windows.python(version), "-c", "import badext", cwd=folder)
    assert bare.code == 1
    assert "ImportError: DLL load failed while importing badext:" in bare.err
    add = "import os, sys; os.add_dll_directory(sys.argv[1]); import badext; print(badext.__name__)"
    dep = "Z:" + str(native / "windows" / "dlls" / "dep").replace("/", "\\")
    assert windows.run(windows.python(version), "-c", add, dep, cwd=folder).out.strip() == "badext"


def test_user_path_reaches_new_programs(windows, native):
    shutil.copytree(native / "windows" / "cuda101", windows.drive_c / "CUDA" / "v10.1" / "bin")
    show = "import os; print(os.environ['PATH'])"
    windows.set_user_variable("Path", r"%SystemDrive%\CUDA\v10.1\bin")
    assert r"C:\CUDA\v10.1\bin" in windows.run(windows.python("3.11"), "-c", show).out
    windows.set_user_variable("Path", r"%SystemDrive%\CUDA\v10.1\bin", "REG_SZ")
    assert r"%SystemDrive%\CUDA\v10.1\bin" in windows.run(windows.python("3.11"), "-c", show).out


@pytest.mark.parametrize("turn", [1, 2])
def test_every_windows_is_new(windows, turn):
    show = "import os; print(os.environ.get('LEFT_BEHIND'))"
    assert windows.run(windows.python("3.11"), "-c", show).out.strip() == "None"
    assert not (windows.system32 / "nvcuda.dll").exists()
    windows.driver()
    windows.set_user_variable("LEFT_BEHIND", f"turn {turn}")
    assert windows.run(windows.python("3.11"), "-c", show).out.strip() == f"turn {turn}"


def test_chinese_windows(windows_zh):
    code = (
        "import ctypes, json, os, sys;"
        "print(json.dumps([ctypes.windll.kernel32.GetACP(), os.environ['USERPROFILE'], sys.stdout.encoding]))"
    )
    ran = windows_zh.run(windows_zh.python("3.11"), "-c", code, encoding="gbk")
    assert json.loads(ran.out) == [936, r"C:\users\张伟", "gbk"], ran
    mark = windows_zh.run(windows_zh.python("3.11"), "-c", "print('\\u2713')", encoding="gbk")
    assert "UnicodeEncodeError: 'gbk' codec" in mark.err


def test_a_python_of_ones_own_in_a_chinese_folder(windows_zh):
    python = windows_zh.clone_python("3.11", "users/张伟/Python311")
    ran = windows_zh.run(python, "-c", "import sys, textual; print(sys.prefix)", encoding="gbk")
    assert ran.out.strip() == r"C:\users\张伟\Python311", ran


def test_a_program_that_hangs_is_ended(windows):
    code = "import time; print('started', flush=True); time.sleep(600)"
    ran = windows.run(windows.python("3.11"), "-c", code, timeout=15)
    assert ran.code is None and "started" in ran.out
    assert ran.seconds < 40


def test_nvml_answers_under_windows(windows):
    code = "import pynvml as n; n.nvmlInit(); print(n.nvmlSystemGetDriverVersion(), n.nvmlDeviceGetCount())"
    missing = windows.run(windows.python("3.11"), "-c", code)
    assert "NVMLError_LibraryNotFound" in missing.err
    windows.driver()
    assert windows.run(windows.python("3.11"), "-c", code, env={"FAKE_NVML_COUNT": "2"}).out.split() == ["441.22", "2"]
