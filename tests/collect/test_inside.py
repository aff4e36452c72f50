"""Real interpreters with real faults: what the child of a target says, and how its death is told."""

import base64
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from tftriage.collect import inside, launch, target
from tftriage.collect.registry import Absent, Failed, Skipped

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX")


def keys(value):
    return " ".join(sorted(value))


class Environment:
    """A virtual environment made for one test, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        if importlib.util.find_spec("venv") is None:
            pytest.skip("this Python (the embeddable one of Windows) has no venv")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
        scheme = sysconfig.get_preferred_scheme("prefix") if os.name == "nt" else "posix_prefix"
        self.site = Path(
            sysconfig.get_path("purelib", scheme, {"base": str(folder / "env"), "platbase": str(folder / "env")})
        )
        self.python = str(folder / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
        self.cwd = folder / "work"
        self.cwd.mkdir()

    def write(self, name: str, text: str) -> Path:
        path = self.site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def args(self, **more):
        return {"python": self.python, "cwd": str(self.cwd), "limit": 30.0, **more}


@pytest.fixture
def env(tmp_path):
    return Environment(tmp_path)


def test_json_of_the_child_is_what_json_reads():
    value = {
        "none": None,
        "yes": [True, False],
        "number": -1.5,
        "nan": float("nan"),
        "张": 'a "quote"\\\n\t\x7f',
        "smile": "\U0001f600",
    }
    text = inside.text_of(value)
    assert text.isascii()
    assert json.loads(text) == {**value, "nan": None}
    assert json.loads(inside.text_of("\udcff")) == "\udcff"


def test_a_result_line_cut_short_is_no_result_and_the_rest_is_chatter():
    lines, chatter = launch.marked(b'hook says\n\nM:{"begin": [3]}\r\n\nxM:{"value": 1}\nM:{"val', "M:")
    assert lines == [{"begin": [3]}]
    assert chatter == b'hook says\nxM:{"value": 1}\n'


def test_the_interpreter_describes_itself(env):
    value, source = target.interpreter(env.args())
    assert source == env.python
    assert value["version"] == list(sys.version_info[:3])
    assert (value["venv"], value["conda"], value["start"], value["platform"]) == (True, False, "plain", sys.platform)
    assert os.path.samefile(value["prefix"], Path(env.python).parents[1])
    assert str(env.site) in value["path"]
    assert value["path"][0] == ""
    assert (value["ipykernel"], value["pip"]) == (None, None)
    assert keys(value) == (
        "activated base_prefix bits conda dll_directories executable fs_encoding implementation "
        "ipykernel no_user_site path pip platform preferred_encoding prefix site_packages start store "
        "user_site venv version"
    )


def test_activation_is_seen_from_the_environment(env):
    prefix = str(Path(env.python).parents[1])
    assert target.interpreter(env.args(env={"VIRTUAL_ENV": prefix}))[0]["activated"] is True
    assert target.interpreter(env.args(env={"VIRTUAL_ENV": None}))[0]["activated"] is False


def test_chatter_of_site_hooks_does_not_break_the_result(env):
    env.write(
        "chatty.pth",
        "import sys; sys.stdout.write('hello {\"value\": 1}\\nunfinished'); sys.stderr.write('and here\\n')\n",
    )
    assert target.interpreter(env.args())[0]["start"] == "plain"
    env.write("fine.py", "__version__ = '1'\n")
    value = target.attempt(env.args(module="fine"))
    assert value["ok"]
    assert "unfinished" in value["log"] and "and here" in value["log"]


def test_a_start_that_hangs_in_a_site_hook_is_told_and_gone_around(env):
    env.write("slow.pth", "import time; time.sleep(3600)\n")
    args = env.args(limit=12.0)
    value, _ = target.interpreter(args)
    assert value["start"] == "-I -S"
    assert value["site_packages"] == [str(env.site)]
    env.write("demo-1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.2\n\n")
    assert target.packages(args)[0]["demo"]["version"] == "1.2"
    imported = target.attempt(env.args(limit=12.0, module="anything"))
    assert (imported["ok"], imported["timed_out"], imported["error_type"]) == (False, True, "StartFailed")
    assert "site" in imported["stack"]


def test_a_library_that_is_hidden_by_pythonpath_is_gone_around(env, tmp_path):
    (tmp_path / "re.py").write_text("")
    args = env.args(env={"PYTHONPATH": str(tmp_path)})
    assert target.interpreter(args)[0]["start"] == "-I"
    env.write("uses_re.py", "import re\nre.compile\n")
    value = target.attempt({**args, "module": "uses_re"})
    assert value["error_type"] == "AttributeError"  # the person's own start, with the person's PYTHONPATH


@posix
def test_a_broken_pythonhome_is_told_and_gone_around(env):
    value, _ = target.interpreter(env.args(env={"PYTHONHOME": str(env.cwd)}))
    assert value["start"] == "-I"
    imported = target.attempt(env.args(env={"PYTHONHOME": str(env.cwd)}, module="json"))
    assert imported["error_type"] == "StartFailed"
    assert "encodings" in imported["log"]


def test_a_module_that_imports(env):
    env.write("good.py", "import os, sys\nprint('said')\nos.write(2, b'native line\\n')\n__version__ = '2.1.0'\n")
    value = target.attempt(env.args(module="good"))
    assert keys(value) == (
        "context error error_type exit file log module ok seconds signal stack timed_out traceback version"
    )
    assert (value["ok"], value["version"], value["file"]) == (True, "2.1.0", str(env.site / "good.py"))
    assert (value["exit"], value["signal"], value["timed_out"], value["error"], value["stack"]) == (
        0,
        None,
        False,
        None,
        "",
    )
    assert sorted(value["log"].split("\n")) == ["", "native line", "said"]
    assert value["context"] == {"kind": "here", "kernel": None, "env_changes": {}}


def test_a_failing_import_has_the_traceback_that_the_person_sees(env):
    env.write("tensorflow/__init__.py", "from . import inner\n")
    env.write("tensorflow/inner.py", "raise ImportError('DLL load failed: 找不到指定的模块。')\n")
    value = target.attempt(env.args())
    assert (value["ok"], value["error_type"], value["error"]) == (
        False,
        "ImportError",
        "DLL load failed: 找不到指定的模块。",
    )
    lines = value["traceback"].splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith(f'  File "{env.site / "tensorflow" / "__init__.py"}", line 1')
    assert lines[-1] == "ImportError: DLL load failed: 找不到指定的模块。"
    assert "<stdin>" not in value["traceback"]


def test_a_hanging_import_is_told_with_its_stack(env):
    env.write(
        "hangs.py", "import sys, time\nsys.stderr.write('so far\\n')\ndef culprit():\n    time.sleep(3600)\nculprit()\n"
    )
    value = target.attempt(env.args(module="hangs", limit=6.0))
    assert (value["ok"], value["timed_out"], value["exit"], value["error"]) == (False, True, None, "timeout")
    assert "hangs.py" in value["stack"] and "in culprit" in value["stack"]
    assert value["log"].startswith("so far")


@posix
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGBUS", "SIGABRT", "SIGKILL"])
def test_a_death_by_signal_is_evidence(env, name):
    env.write("dies.py", f"import os, signal\nos.write(2, b'last words\\n')\nos.kill(os.getpid(), signal.{name})\n")
    value = target.attempt(env.args(module="dies"))
    assert (value["ok"], value["signal"], value["error"]) == (False, name, f"killed: {name}")
    assert value["exit"] < 0
    assert value["log"].startswith("last words")


def test_an_import_that_ends_the_program(env):
    env.write("leaves.py", "import os\nos._exit(3)\n")
    value = target.attempt(env.args(module="leaves"))
    assert (value["ok"], value["exit"], value["timed_out"]) == (False, 3, False)
    assert value["error"] == ("killed: SIGABRT" if os.name == "nt" else "exit: 3")
    env.write("exits.py", "raise SystemExit('no licence')\n")
    value = target.attempt(env.args(module="exits"))
    assert (value["error_type"], value["error"]) == ("SystemExit", "no licence")


@pytest.mark.parametrize("name", ["random", "json", "traceback", "typing"])
def test_a_file_in_the_working_folder_hits_as_it_hits_the_person(env, name):
    env.write("tensorflow.py", f"import {name}\n")
    (env.cwd / f"{name}.py").write_text("raise ImportError('cannot import name SystemRandom')\n")
    value = target.attempt(env.args())
    assert (value["ok"], value["error"]) == (False, "cannot import name SystemRandom")
    shadow = target.package(env.args())[0]["shadow"]
    assert shadow == [str(env.cwd / f"{name}.py")]


def test_shadow_names_what_the_import_would_take_and_nothing_else(env):
    for name in ("os.py", "mine.py", "numpy.py", "notes.txt", "this.py", "random.pyd"):
        (env.cwd / name).write_text("")
    for name in ("tensorflow", "logging"):
        (env.cwd / name).mkdir()
    (env.cwd / "tensorflow" / "__init__.py").write_text("")
    shadow = [os.path.basename(path) for path in target.package(env.args())[0]["shadow"]]
    assert shadow == ["numpy.py", "random.pyd", "tensorflow"]


def test_the_environment_of_the_child_is_the_named_one(env):
    env.write(
        "told.py", "import os\n__version__ = os.environ['TOLD'] + os.environ['PATH'] + os.environ.get('HOME', '-')\n"
    )
    changes = {"TOLD": "张伟 ", "HOME": None}
    value = target.attempt(env.args(module="told", env=changes, with_path=["first", "second"]))
    assert value["version"].startswith("张伟 " + os.pathsep.join(["first", "second", ""]))
    assert value["version"].endswith("-")
    path = os.pathsep.join(["first", "second", "${PATH}"])
    assert value["context"] == {"kind": "here", "kernel": None, "env_changes": {**changes, "PATH": path}}


def elf(machine: int = 62) -> bytes:
    return b"\x7fELF\x02\x01\x01" + bytes(9) + (3).to_bytes(2, "little") + machine.to_bytes(2, "little") + bytes(100)


def pe(machine: int) -> bytes:
    return (
        b"MZ"
        + bytes(58)
        + (128).to_bytes(4, "little")
        + bytes(64)
        + b"PE\0\0"
        + machine.to_bytes(2, "little")
        + bytes(100)
    )


def install(env, version="2.1.0", name="tensorflow-gpu"):
    """Lay out a package as pip does, with a RECORD that fits."""
    files = {
        "tensorflow/__init__.py": b"from tensorflow_core import *\n",
        "tensorflow_core/__init__.py": b"__version__ = '2.1.0'\n",
        "tensorflow_core/python/_pywrap_tensorflow_internal.pyd": pe(0x8664),
        "tensorflow_core/python/_other.so": elf(),
        "tensorflow_core/lite/x86.dll": pe(0x14C),
        "tensorflow_core/python/platform/build_info.py": (
            b"is_cuda_build = True\ncuda_version_number = '10.1'\ncudnn_version_number = '7'\n"
            b"cudart_dll_name = 'cudart64_101.dll'\n"
        ),
        "tensorflow_core/include/tensorflow/core/public/version.h": (
            b"#define TF_MAJOR_VERSION 2\n#define TF_MINOR_VERSION 1\n"
            b'#define TF_PATCH_VERSION 0\n#define TF_VERSION_SUFFIX ""\n'
        ),
        "tensorflow_core/empty.py": b"",
    }
    record = []
    for path, data in files.items():
        (env.site / path).parent.mkdir(parents=True, exist_ok=True)
        (env.site / path).write_bytes(data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(data)}")
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    record += ["../../../bin/saved_model_cli,sha256=x,3", "tensorflow/__pycache__/__init__.pyc,,", f"{info}/RECORD,,"]
    env.write(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: no\n")
    env.write(f"{info}/INSTALLER", "pip\n")
    env.write(f"{info}/RECORD", "\n".join(record) + "\n")


def test_the_package_on_the_disk(env):
    install(env)
    value, _ = target.package(env.args())
    site = env.site
    assert value["distributions"] == [{"name": "tensorflow-gpu", "version": "2.1.0", "folder": str(site)}]
    assert (value["version"], value["folder"]) == ("2.1.0", str(site / "tensorflow"))
    assert value["module_file"] == str(site / "tensorflow" / "__init__.py")
    assert value["main_native"] == str(site / "tensorflow_core/python/_pywrap_tensorflow_internal.pyd")
    assert {os.path.basename(one["path"]): one["machine"] for one in value["native"]} == {
        "_pywrap_tensorflow_internal.pyd": "x64", "_other.so": "x64", "x86.dll": "x86",
    }  # fmt: skip
    assert value["build_info"] == {
        "is_cuda_build": True, "cuda_version": "10.1", "cudnn_version": "7", "cudart_dll_name": "cudart64_101.dll",
    }  # fmt: skip
    assert (value["shadow"], value["leftovers"]) == ([], False)


def test_newer_build_info_is_read_and_not_run(env):
    install(env)
    pairs = "[('cuda_version', '12.5.1'), ('is_cuda_build', True)]"
    text = f"import collections\nbuild_info = collections.OrderedDict({pairs})\n1/0\n"
    env.write("tensorflow_core/python/platform/build_info.py", text)
    assert target.package(env.args())[0]["build_info"] == {"cuda_version": "12.5.1", "is_cuda_build": True}


def test_two_packages_over_each_other(env):
    install(env, "2.3.1", "tensorflow")
    install(env)
    value, _ = target.package(env.args())
    assert sorted(one["name"] for one in value["distributions"]) == ["tensorflow", "tensorflow-gpu"]
    assert value["version"] == "2.1.0"  # the files' own version, not the first name's
    assert target.record(env.args())[0]["distribution"] == "tensorflow-gpu 2.1.0"


@pytest.mark.parametrize(
    "left",
    [["~ensorflow/x.py"], ["tensorflow/include/x.h"], ["tensorflow-2.3.1.dist-info/METADATA"]],
    ids=lambda left: left[0],
)
def test_leftovers(env, left):
    for name in left:
        env.write(name, "")
    value, _ = target.package(env.args())
    assert value["leftovers"] is True
    assert value["folder"] is None


def test_without_tensorflow(env):
    value, _ = target.package(env.args())
    assert (value["distributions"], value["module_file"], value["native"], value["leftovers"]) == ([], None, [], False)
    with pytest.raises(Absent, match="no-tensorflow"):
        target.record(env.args())
    with pytest.raises(Absent, match="no-tensorflow"):
        target.gpus(env.args())
    assert target.attempt(env.args())["error_type"] == "ModuleNotFoundError"
    with pytest.raises(Absent, match="no-tensorflow"):
        target.operation(env.args())


def test_packages_by_normalised_name(env):
    install(env)
    asks = "Requires-Dist: gast (==0.2.2)\nRequires-Dist: six>=1.12 ; python_version >= '3'\n\nRequires-Dist: no more\n"
    env.write("tensorflow_gpu-2.1.0.dist-info/METADATA", "Name: tensorflow-gpu\nVersion: 2.1.0\n" + asks)
    env.write("Keras_Applications-1.0.8.dist-info/METADATA", "Name: Keras_Applications\nVersion: 1.0.8\n")
    env.write("old-3.0-py3.7.egg-info", "Metadata-Version: 1.0\nName: old\nVersion: 3.0\n")
    env.write("older.egg-info/PKG-INFO", "Metadata-Version: 1.0\nName: older\nVersion: 0.1\n")
    env.write("~rotobuf-3.20.3.dist-info/METADATA", "Name: protobuf\nVersion: 3.20.3\n")
    value, _ = target.packages(env.args())
    record = str(env.site / "tensorflow_gpu-2.1.0.dist-info" / "RECORD")
    expected = {
        "name": "tensorflow-gpu",
        "version": "2.1.0",
        "folder": str(env.site),
        "record": record,
        "installer": "pip",
        "requires": ["gast (==0.2.2)", "six>=1.12 ; python_version >= '3'"],
    }
    assert value["tensorflow-gpu"] == expected
    assert {key: one["version"] for key, one in value.items()} == {
        "tensorflow-gpu": "2.1.0", "keras-applications": "1.0.8", "old": "3.0", "older": "0.1",
    }  # fmt: skip


def test_a_whole_package_fits_its_record(env):
    install(env)
    value, source = target.record(env.args())
    assert value == {
        "distribution": "tensorflow-gpu 2.1.0", "checked": 8, "missing": [], "empty": [], "altered": [],
        "native_missing": [], "others": [],
    }  # fmt: skip
    assert source == "RECORD of tensorflow-gpu 2.1.0"


def test_a_damaged_package_does_not(env):
    install(env)
    core = env.site / "tensorflow_core"
    (core / "python" / "_pywrap_tensorflow_internal.pyd").unlink()
    (core / "python" / "_other.so").write_bytes(b"")
    (core / "lite" / "x86.dll").write_bytes(pe(0x14C)[:-1] + b"!")  # the same size
    (core / "__init__.py").write_bytes(b"shorter\n")
    env.write("numpy-1.19.5.dist-info/METADATA", "Name: numpy\nVersion: 1.19.5\n")
    env.write("numpy-1.19.5.dist-info/RECORD", "numpy/core/umath.pyd,sha256=x,5\n")
    value, _ = target.record(env.args())
    native = ["tensorflow_core/python/_pywrap_tensorflow_internal.pyd", "tensorflow_core/python/_other.so"]
    assert (value["missing"], value["empty"], value["native_missing"]) == (native[:1], native[1:], native)
    assert sorted(value["altered"]) == ["tensorflow_core/__init__.py", "tensorflow_core/lite/x86.dll"]
    assert value["others"] == [{"distribution": "numpy 1.19.5", "missing": ["numpy/core/umath.pyd"]}]


def test_a_package_without_record_is_absent(env):
    install(env)
    (env.site / "tensorflow_gpu-2.1.0.dist-info" / "RECORD").unlink()
    with pytest.raises(Absent, match="no-record"):
        target.record(env.args())


def test_after_a_failed_import_nobody_is_asked_for_gpus(env):
    env.write("tensorflow.py", "raise TypeError('Descriptors cannot not be created directly.')\n")
    target.attempt(env.args())
    began = time.monotonic()
    for ask in (target.gpus, target.operation):
        with pytest.raises(Skipped, match="import-failed"):
            ask(env.args())
    assert time.monotonic() - began < 0.1  # known from the import, no child is started
    with pytest.raises(Skipped, match="import-failed"):
        target.gpus(env.args(env={"ANOTHER": "context"}))


DIES = """
import os
class test:
    is_built_with_cuda = staticmethod(lambda: True)
class config:
    @staticmethod
    def list_physical_devices(kind):
        os.write(2, b"F statusor.cc:34] no supported devices found for platform CUDA\\n")
        os.abort()
"""


@posix
def test_a_death_while_looking_for_gpus_keeps_the_answers_before_it(env):
    env.write("tensorflow.py", DIES)
    value, _ = target.gpus(env.args())
    assert (value["ok"], value["built_with_cuda"], value["physical"]) == (False, True, [])
    assert (value["signal"], value["error"]) == ("SIGABRT", "killed: SIGABRT")
    assert "no supported devices" in value["log"]
    assert keys(value) == "built_with_cuda error exit is_gpu_available log ok physical signal timed_out"


def test_libraries_by_name(env):
    known = "kernel32.dll" if os.name == "nt" else "libc.so.6"
    value, _ = target.libraries(env.args(libraries=[known, "cudart64_none.dll"]))
    found, missing = value["opened"]
    assert (found["name"], found["code"], found["error"]) == (known, 0, None)
    assert os.path.basename(found["path"]).lower().startswith(known.partition(".")[0].lower())
    assert missing["code"] == (126 if os.name == "nt" else None)
    assert missing["path"] is None and missing["error"]
    with pytest.raises(Skipped, match="no-names"):
        target.libraries(env.args())


@pytest.mark.skipif(os.name == "nt" or not shutil.which("gcc"), reason="needs gcc")
def test_a_library_that_kills_is_named_and_the_others_are_still_opened(env, tmp_path):
    source = tmp_path / "kills.c"
    source.write_text("#include <stdlib.h>\n__attribute__((constructor)) static void at_load(void) { abort(); }\n")
    library = str(tmp_path / "libkills.so")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, str(source)], check=True)
    value, _ = target.libraries(env.args(libraries=["libc.so.6", library, "libm.so.6"]))
    assert [one["code"] for one in value["opened"]] == [0, None, 0]
    assert value["opened"][1]["error"] == "killed: SIGABRT"


def test_what_is_no_interpreter_is_said_plainly(tmp_path):
    text = tmp_path / "python.txt"
    text.write_text("no program\n")
    for python, note in [(tmp_path / "nowhere" / "python", "gone: "), (tmp_path, "not-")]:
        with pytest.raises(Failed, match=note):
            target.interpreter({"python": str(python), "limit": 10.0})
    with pytest.raises(Failed, match="gone: the working folder"):
        target.interpreter({"python": sys.executable, "cwd": str(tmp_path / "nowhere"), "limit": 10.0})


def test_a_shell_is_not_fed_with_our_source(tmp_path):
    shell = os.environ["COMSPEC"] if os.name == "nt" else shutil.which("sh")
    (tmp_path / "import").write_text("would be run")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(Failed, match="not-python: "):
        target.interpreter({"python": shell, "cwd": str(tmp_path), "limit": 20.0})
    assert sorted(os.listdir(tmp_path)) == before


@posix
def test_an_interpreter_by_another_name_is_one(tmp_path, env):
    link = Path(env.python).with_name("snake")
    link.symlink_to(Path(env.python).name)
    assert target.interpreter(env.args(python=str(link)))[0]["start"] == "plain"


@posix
def test_other_programs_are_no_interpreters(tmp_path):
    plain, script, silent = tmp_path / "plain", tmp_path / "script", tmp_path / "silent"
    plain.write_text("text\n")
    script.write_text("#!/nowhere/bin/python\n")
    silent.write_bytes(b"\x7fELF nonsense")
    disguised = tmp_path / "python3"
    disguised.write_text("#!/bin/sh\nexit 9\n")
    for path in (script, silent, disguised):
        path.chmod(0o755)
    for path, note in [
        (plain, "not-executable: "),
        (script, "gone: what .* leads to"),
        (silent, "not-python: "),
        ("/bin/true", "not-python: .* ended with 0 and said: nothing"),
        ("/bin/cat", "not-python: "),
        ("/bin/sh", "not-python: "),
        (disguised, "not-python: "),
    ]:
        with pytest.raises(Failed, match=note):
            target.interpreter({"python": str(path), "limit": 10.0})


def test_a_record_that_names_another_folder_is_read_by_the_names_the_files_have(tmp_path: Path) -> None:
    """As in the wheel of tensorflow-gpu 2.3.1 for Windows."""
    rows = [
        ["tensorflow_gpu/a.pyd", "sha256=x", "9"], ["tensorflow_gpu/gone.pyd", "sha256=y", "8"],
        ["tensorflow_gpu/_tensorflow_gpu_x.pyd", "sha256=z", "7"], ["tensorflow/_tensorflow_x.pyd", "", ""],
        ["tensorflow/a.pyd", "", ""], ["tensorflow/gone.pyd", "", ""], ["tensorflow_gpu/only.h", "", "1"],
    ]  # fmt: skip
    assert inside.settled(rows, str(tmp_path)) == [
        ["tensorflow/_tensorflow_x.pyd", "sha256=z", "7"], ["tensorflow/a.pyd", "sha256=x", "9"],
        ["tensorflow/gone.pyd", "sha256=y", "8"], ["tensorflow_gpu/only.h", "", "1"],
    ]  # fmt: skip
    (tmp_path / "tensorflow_gpu").mkdir()
    assert inside.settled(rows, str(tmp_path)) == rows
