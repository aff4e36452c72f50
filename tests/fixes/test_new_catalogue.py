"""The larger fixes, planned from facts of a Windows machine: what they would do, when they refuse."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tftriage.fixes import by_hand, catalogue, commands, dll_directory, new_environment, preview
from tftriage.fixes.plans import BuildFolder, CopyFile, MoveAside, SetMachineValue, SetUserVariable, WriteFile
from tftriage.tables import Build, PinSet, Tables

from .conftest import make_facts
from .test_catalogue import CUDA, PREFIX, WINDOWS, make, other, refused

pytestmark = other
INTERPRETER = {
    **WINDOWS["target.interpreter"],
    "version": [3, 8, 10],
    "site_packages": [PREFIX + r"\Lib\site-packages"],
}
NO_SITE = {**INTERPRETER, "site_packages": []}
PYD = r"C:\x\badext.pyd"


def tree(*, lies_in: str = r"D:\lib") -> dict[str, Any]:
    """An extension that needs tfdep.dll, which lies in a folder that Python 3.8 does not search."""
    header = {"machine": "x64", "imports": [], "delay_imports": [], "error": None}
    return {
        "roots": [PYD],
        "context": {
            "python": [3, 8], "python_folder": r"C:\py", "pyd_folder": r"C:\x", "conda": False, "store": False,
            "dll_directories": [], "system32": r"C:\Windows\system32", "windows": r"C:\Windows", "cwd": r"C:\x",
            "path": [lies_in],
        },
        "folders": {r"C:\x": ["badext.pyd"], r"C:\py": [], r"C:\Windows\system32": [], lies_in: ["tfdep.dll"]},
        "files": {PYD: {**header, "imports": ["tfdep.dll"]}, lies_in + r"\tfdep.dll": header},
        "elsewhere": {}, "near": {}, "apisets": [],
    }  # fmt: skip


def test_a_dll_directory_only_where_the_loaders_rules_say_that_it_helps() -> None:
    facts = {"target.interpreter": INTERPRETER, "dlls.tree": tree()}
    plan = make("dll-directory", {"folder": r"D:\lib"}, facts)
    (step,) = plan.steps
    assert isinstance(step, WriteFile) and step.path == PREFIX + r"\Lib\site-packages" + "\\" + dll_directory.NAME
    assert step.text == "import os; os.path.isdir('D:\\\\lib') and os.add_dll_directory('D:\\\\lib')\n"
    assert plan.verify.own and plan.verify.probe == "import_chain"
    assert refused("dll-directory", {"folder": r"C:\py"}, facts) == "fix.refuse.loader-says-no"
    old = {**INTERPRETER, "version": [3, 7, 9]}
    assert (
        refused("dll-directory", {"folder": "D:\\x"}, {"target.interpreter": old}) == "fix.refuse.python-searches-path"
    )


def test_the_line_of_a_pth_file_is_ascii_and_runs() -> None:
    line = dll_directory.line("D:\\库 it's\\bin")
    assert line.isascii() and line.startswith("import ")
    exec(line, {})  # the folder is not there, so nothing is added, and nothing is raised


@pytest.mark.parametrize(
    ("fix", "values", "changes", "key"),
    [
        ("dll-directory", {"folder": "D:\\x"}, {"target.interpreter": {}}, "no-interpreter"),
        ("dll-directory", {"folder": "D:\\x"}, {"target.interpreter": NO_SITE}, "no-site-packages"),
        ("dll-directory", {}, {"target.interpreter": INTERPRETER}, "no-folder"),
        ("dll-directory", {"folder": "D:\\x"}, {"target.interpreter": INTERPRETER}, "import-table-unknown"),
        ("copy-cudnn", {}, {}, "no-folder"),
        ("copy-cudnn", {"folder": "D:\\cudnn"}, {}, "no-cudnn-there"),
        ("one-tensorflow", {}, {"target.interpreter": {}}, "no-interpreter"),
        ("one-tensorflow", {}, {}, "one-already"),
        ("rename-shadowing-file", {"file": "tensorflow.py"}, {}, "no-shadowing-file"),
        ("rename-shadowing-file", {"file": PREFIX + "\\Lib\\random.py"}, {}, "pythons-own-file"),
        ("include-small-gpu", {}, {}, "no-count"),
        ("vc-runtime", {}, {"system.os": {"system": "Linux"}}, "windows-only"),
        ("defender-exclusion", {}, {}, "no-defender"),
        ("gpu-scheduling", {"scheduling": "maybe"}, {}, "on-or-off"),
        ("long-paths", {}, {"system.os": {"system": "Windows", "version": "10.0.10240"}}, "windows-too-old"),
        ("new-environment", {}, {"target.interpreter": {}}, "no-interpreter"),
        ("new-environment", {}, {"tf.package": {"version": None}}, "no-tf-version"),
        ("new-environment", {"tf_version": "not a version"}, {}, "no-tf-version"),
        ("new-environment", {"tf_version": "1.4"}, {}, "no-python-for-it"),
        ("ascii-environment", {}, {"target.interpreter": {**INTERPRETER, "prefix": "C:\\e"}}, "ascii-already"),
        ("ascii-environment", {}, {"target.interpreter": {**INTERPRETER, "conda": True}}, "conda-clone"),
        ("ascii-environment", {"folder": "C:\\环境"}, {}, "no-ascii-folder"),
        ("offline-kit", {}, {"target.interpreter": {**INTERPRETER, "pip": None}}, "no-pip"),
        ("offline-kit", {"tf_version": "1.4"}, {}, "no-pins"),
    ],
)  # fmt: skip
def test_refusals(fix: str, values: dict[str, str], changes: dict[str, Any], key: str) -> None:
    assert refused(fix, values, changes) == f"fix.refuse.{key}"


def cudnn_facts(**more: Any) -> dict[str, Any]:
    kit = {"version": "10.1", "folder": r"C:\CUDA\v10.1", "bin": CUDA, "on_path": True}
    other_kit = {"version": "9.0", "folder": r"C:\CUDA\v9.0", "bin": r"C:\CUDA\v9.0\bin", "on_path": True}
    listed = {r"D:\cudnn\bin": ["cudnn64_7.dll", "notes.txt", "zlibwapi.dll"], CUDA: ["cudart64_101.dll"]}
    return {
        "cuda.toolkits": [other_kit, kit],
        "env.path": [{"entry": CUDA, "folder": CUDA}, {"entry": "x", "folder": r"C:\CUDA\v9.0\bin"}],
        "dlls.tree": {"folders": {**listed, **more}},
    }


BUILD = Build(package="tensorflow-gpu", version="2.1", system="Windows", pythons=("3.7",), cuda="10.1", cudnn="7.6.5")


def test_cudnn_goes_into_the_toolkit_that_is_searched_first() -> None:
    plan = make("copy-cudnn", {"folder": r"D:\cudnn\bin"}, cudnn_facts(), Tables(builds=(BUILD,)))
    assert plan.steps == tuple(
        CopyFile(source="D:\\cudnn\\bin\\" + name, target=f"{CUDA}\\{name}")
        for name in ("cudnn64_7.dll", "zlibwapi.dll")
    )


@pytest.mark.parametrize(
    ("there", "build", "key"),
    [
        (["cudnn64_8.dll"], BUILD, "cudnn-of-another"),
        (["CUDNN64_7.dll"], BUILD, "already-there"),
        (
            [],
            Build(package="x", version="2.1", system="Windows", pythons=(), cuda="11.2", cudnn="8.1"),
            "other-toolkit",
        ),
        (
            [],
            Build(package="x", version="2.1", system="Windows", pythons=(), cuda="10.1", cudnn="8.1"),
            "other-version",
        ),
    ],
)
def test_cudnn_is_not_mixed(there: list[str], build: Build, key: str) -> None:
    from tftriage.fixes.plans import Refused

    with pytest.raises(Refused) as caught:
        make("copy-cudnn", {"folder": r"D:\cudnn\bin"}, cudnn_facts(**{CUDA: there}), Tables(builds=(build,)))
    assert caught.value.key == f"fix.refuse.{key}"


def test_a_variable_of_the_user_on_windows_and_of_the_kernel_it_failed_in() -> None:
    plan = make("allow-growth", {}, {"target.kernel": "tf21"})
    user, kernel = plan.steps
    assert isinstance(user, SetUserVariable) and (user.value, user.type) == ("true", "REG_SZ")
    assert kernel.changes == {"env": {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}}  # type: ignore[union-attr]
    there = {"Path": None, "variables": {"TF_FORCE_GPU_ALLOW_GROWTH": {"type": "REG_SZ", "value": "true"}}}
    assert refused("allow-growth", {}, {"env.user": there}) == "fix.refuse.set-already"


def test_values_of_the_machine_as_commands_too() -> None:
    plan = make("gpu-scheduling", {"scheduling": "off"})
    assert isinstance(plan.steps[0], SetMachineValue) and plan.steps[0].value == 1
    assert "restart-windows" in plan.needs and "admin" in plan.needs
    shown = preview.preview(plan, make_facts(WINDOWS, "Windows"))
    assert (
        shown.commands["cmd"][0].startswith("reg add HKLM\\SYSTEM\\")
        and "/t REG_DWORD /d 1 /f" in shown.commands["cmd"][0]
    )
    assert commands.for_step(plan.steps[0], "bash") == []


def test_the_runtime_and_the_exception_are_for_the_person_to_run() -> None:
    conda = {"target.interpreter": {**INTERPRETER, "conda": True}}
    plan = make("vc-runtime", {}, conda)
    assert (
        plan.steps == ()
        and plan.commands["powershell"][0] == "winget install '--exact' '--id' 'Microsoft.VCRedist.2015+.x64'"
    )
    assert "conda update" in plan.commands["cmd"][1]
    taken = PREFIX + r"\Lib\site-packages\tensorflow\x.pyd"
    seen = {"defender": {"enabled": True}, "detections": [{"path": taken}, {"path": r"C:\other.exe"}]}
    plan = make("defender-exclusion", {}, {"security.antivirus": seen})
    add, restore = plan.commands["powershell"]
    assert add == f"Add-MpPreference -ExclusionPath '{PREFIX}'" and taken in restore and "-Restore" in restore
    assert any("Remove-MpPreference" in note.params.get("command", "") for note in plan.notes)
    wide = {"security.antivirus": seen, "target.interpreter": {**INTERPRETER, "prefix": "C:\\Python"}}
    assert refused("defender-exclusion", {}, wide) == "fix.refuse.too-wide"
    assert by_hand.WINGET[0] == "winget"


def test_a_new_environment_for_a_tensorflow_without_gpu_on_windows() -> None:
    row = PinSet(tensorflow="2.10", pythons=("3.7",), rules=(), pins={"numpy": "1.21.6"}, source="x", kind="tested")
    plan = make("new-environment", {}, {"tf.package": {"version": "2.15.0"}}, Tables(pins=(row,)))
    build = plan.steps[0]
    assert isinstance(build, BuildFolder)
    assert build.path == r"C:\Users\张伟\envs\tf-2.10.1" and build.packages["tensorflow"] == "2.10.1"
    assert any(note.key == "fix.note.wsl-instead" for note in plan.notes)
    assert plan.verify.context["python"] == r"C:\Users\张伟\envs\tf-2.10.1\Scripts\python.exe"


def test_another_python_of_the_machine_serves_where_the_targets_does_not() -> None:
    row = PinSet(tensorflow="2.10", pythons=("3.10",), rules=(), pins={}, source="x", kind="tested")
    pythons = [{"path": r"C:\Python310\python.exe", "version": "3.10.11"}, {"path": "x", "version": None}]
    changes = {"pythons.list": pythons, "target.interpreter": {**INTERPRETER, "venv": False}}
    plan = make("new-environment", {"tf_version": "2.10.1"}, changes, Tables(pins=(row,)))
    assert isinstance(plan.steps[0], BuildFolder) and plan.steps[0].commands[0][0] == r"C:\Python310\python.exe"


def test_an_ascii_path_and_the_kernel_of_old() -> None:
    kernel = {**WINDOWS["jupyter.kernels"][0], "interpreter": PREFIX + r"\Scripts\python.exe", "env": {"A": "1"}}
    plan = make("ascii-environment", {}, {"jupyter.kernels": [kernel]})
    build, spec = plan.steps
    assert isinstance(build, BuildFolder) and build.path == r"C:\envs\tf21" and "--no-deps" in build.commands[1]
    assert isinstance(spec, WriteFile) and spec.path == r"C:\k\tf21\kernel.json" and '"A": "1"' in spec.text


def test_a_kit_for_windows() -> None:
    row = PinSet(tensorflow="2.1.0", pythons=("3.7",), rules=(), pins={"numpy": "1.19.5"}, source="x", kind="tested")
    plan = make("offline-kit", {}, {}, Tables(pins=(row,)))
    script = plan.steps[2]
    assert isinstance(script, WriteFile) and script.path.endswith(r"\install.bat") and script.data().isascii()
    assert b"3.7" in script.data() and b"\r\n" in script.data() and b"%~dp0env\\Scripts\\python.exe" in script.data()


def test_uv_makes_what_a_python_without_ensurepip_cannot(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(new_environment.shutil, "which", lambda name: "/usr/bin/uv")
    version = list(sys.version_info[:3])
    bare = {"executable": "/p/bin/python", "version": version, "prefix": str(tmp_path), "base_prefix": str(tmp_path)}
    assert new_environment._maker(make_facts({"target.interpreter": bare}), "/p/bin/python", "/new")[:3] == (
        "/usr/bin/uv", "venv", "--seed",
    )  # fmt: skip
    full = {**bare, "base_prefix": sys.base_prefix}
    assert new_environment._maker(make_facts({"target.interpreter": full}), "/p/bin/python", "/new")[1] == "-m"


def test_a_folder_that_shadows_is_moved_whole() -> None:
    plan = make("rename-shadowing-file", {"file": r"D:\作业\tensorflow\__init__.py"})
    assert plan.steps == (MoveAside(path=r"D:\作业\tensorflow", to=r"D:\作业\my_tensorflow"),)
    assert catalogue.FIXES["rename-shadowing-file"].id == plan.fix
