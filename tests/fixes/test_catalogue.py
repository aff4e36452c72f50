"""Each fix: what it plans from facts, when it refuses, what it leaves alone."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tftriage.fixes import catalogue, preview, scripts
from tftriage.fixes.plans import (
    CopyFile,
    EditKernelspec,
    Plan,
    Refused,
    Run,
    SetUserVariable,
    UnsetUserVariable,
    WriteFile,
)
from tftriage.tables import Build, PinSet, Tables

from .conftest import make_facts

ROOT = Path(__file__).parents[2]
PREFIX = r"C:\Users\张伟\envs\tf21"
WINDOWS: dict[str, Any] = {
    "system.user": {"name": "张伟", "home": r"C:\Users\张伟", "temp": r"C:\Temp"},
    "target.interpreter": {
        "executable": PREFIX + r"\Scripts\python.exe",
        "version": [3, 7, 9],
        "prefix": PREFIX,
        "venv": True,
        "conda": False,
        "ipykernel": "6.16.2",
        "pip": "22.0.4",
    },
    "target.packages": {
        "protobuf": {
            "name": "protobuf",
            "version": "4.24.4",
            "folder": PREFIX + r"\Lib\site-packages",
            "installer": "pip",
        },
        "numpy": {"name": "numpy", "version": "1.21.6", "folder": PREFIX + r"\Lib\site-packages", "installer": "conda"},
        "notebook": {"name": "notebook", "version": "6.5.7", "folder": PREFIX, "installer": "pip"},
    },
    "tf.package": {"version": "2.1.0", "distributions": []},
    "env.process": {"PATH": r"C:\Windows\system32;C:\Windows"},
    "env.user": {"Path": {"type": "REG_EXPAND_SZ", "value": r"%USERPROFILE%\bin;C:\git\cmd;"}, "variables": {}},
    "env.machine": {"Path": {"type": "REG_EXPAND_SZ", "value": r"%SystemRoot%\system32"}, "variables": {}},
    "jupyter.server": {"python": r"C:\base\python.exe", "jupyter_client": "8.6.3"},
    "jupyter.kernels": [
        {
            "name": "tf21",
            "display_name": "TF",
            "folder": r"C:\k\tf21",
            "scope": "user",
            "argv": ["x"],
            "env": {},
            "error": None,
        }
    ],
}
CUDA = r"C:\CUDA\v10.1\bin"
PINS = PinSet(
    tensorflow="2.1",
    pythons=("3.7",),
    rules=("protobuf<3.21",),
    pins={"protobuf": "3.20.3", "h5py": "2.10.0"},
    source="run",
    kind="tested",
)
# Windows facts are planned as of another machine here, so that no file of this one is read.
other = pytest.mark.skipif(sys.platform == "win32", reason="facts of a Windows machine, looked at from elsewhere")


def make(fix: str, values: dict[str, str], changes: dict[str, Any] | None = None, tables: Tables | None = None) -> Plan:
    facts = make_facts({**WINDOWS, **(changes or {})}, "Windows")
    reason = catalogue.FIXES[fix].refuses(facts, values)
    if reason:
        raise Refused(reason)
    return catalogue.FIXES[fix].plan(facts, values, tables or Tables(pins=(PINS,)))


def refused(fix: str, values: dict[str, str], changes: dict[str, Any] | None = None) -> str:
    with pytest.raises(Refused) as caught:
        make(fix, values, changes)
    return caught.value.key


# --- the words ---------------------------------------------------------------------------------------------------


def test_every_fix_has_words_in_both_languages() -> None:
    files = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / "knowledge/fixes").glob("*.yaml")}
    assert set(files) == set(catalogue.FIXES)
    for name, words in files.items():
        assert words["id"] == name and words["risk"] in ("safe", "moderate") and words["sources"]
        assert set(words["needs"]) <= {"network", "admin", "restart-kernel", "new-console", "restart-windows"}
        for field in ("title", "what", "undo"):
            assert set(words[field]) == {"en", "zh"} and all(words[field].values())
            assert any("\u4e00" <= c <= "\u9fff" for c in words[field]["zh"])


def test_every_key_that_the_code_names_has_words() -> None:
    import re

    words = yaml.safe_load((ROOT / "knowledge/evidence/fixes.yaml").read_text("utf-8"))
    code = "".join(path.read_text("utf-8") for path in (ROOT / "tftriage/fixes").glob("*.py"))
    used = set(re.findall(r'"(fix\.(?:error|refuse|note|done)\.[a-z-]+)"', code))
    assert used == set(words)
    for key, text in words.items():
        holes = {lang: set(re.findall(r"\{(\w+)\}", text[lang])) for lang in ("en", "zh")}
        assert holes["en"] == holes["zh"], key


# --- path-user ----------------------------------------------------------------------------------------------------


@other
def test_path_user_puts_the_folder_first_and_keeps_the_type() -> None:
    plan = make("path-user", {"folder": CUDA})
    (step,) = plan.steps
    assert isinstance(step, SetUserVariable)
    assert (step.name, step.type) == ("Path", "REG_EXPAND_SZ")
    assert step.value == CUDA + r";%USERPROFILE%\bin;C:\git\cmd;" and step.expected.value == step.value[len(CUDA) + 1 :]
    assert plan.needs == ("new-console",) and plan.verify.context["fresh"] is True
    shown = preview.preview(plan, make_facts(WINDOWS, "Windows"))
    assert [(line.kind, line.text) for line in shown.lines if line.kind.startswith("path")] == [
        ("path+", CUDA),
        ("path=", r"%USERPROFILE%\bin"),
        ("path=", r"C:\git\cmd"),
        ("path=", ""),
    ]
    assert shown.commands["powershell"][0].endswith("-Value '" + step.value + "' -Type ExpandString")
    assert not any("setx" in text for texts in shown.commands.values() for text in texts)
    assert shown.commands["cmd"] == ["rem this window only", f'set "PATH={CUDA};%PATH%"']


@other
def test_path_user_moves_what_is_there_in_its_own_spelling() -> None:
    user = {"Path": {"type": "REG_EXPAND_SZ", "value": r"C:\x;%CUDA_PATH%\bin"}, "variables": {}}
    machine = {"Path": None, "variables": {"CUDA_PATH": {"type": "REG_SZ", "value": r"C:\CUDA\v10.1"}}}
    plan = make("path-user", {"folder": CUDA}, {"env.user": user, "env.machine": machine})
    assert isinstance(plan.steps[0], SetUserVariable) and plan.steps[0].value == r"%CUDA_PATH%\bin;C:\x"


@other
def test_path_user_makes_a_missing_value_expandable() -> None:
    plan = make("path-user", {"folder": CUDA + r";C:\cudnn\bin"}, {"env.user": {"Path": None, "variables": {}}})
    step = plan.steps[0]
    assert isinstance(step, SetUserVariable) and (step.value, step.type) == (CUDA + r";C:\cudnn\bin", "REG_EXPAND_SZ")
    assert step.expected.value is None


@other
def test_path_user_refuses_what_it_cannot_do_right() -> None:
    assert refused("path-user", {}) == "fix.refuse.no-folder"
    long = {"Path": {"type": "REG_SZ", "value": "x" * 32_760}, "variables": {}}
    assert refused("path-user", {"folder": CUDA}, {"env.user": long}) == "fix.refuse.path-too-long"
    there = {"Path": {"type": "REG_SZ", "value": CUDA + r";C:\x"}, "variables": {}}
    assert refused("path-user", {"folder": CUDA}, {"env.user": there}) == "fix.refuse.already-first"
    assert refused("path-user", {"folder": r"C:\%TEMP%\x"}) == "fix.refuse.folder-percent"
    facts = make_facts({}, "Linux")
    assert catalogue.FIXES["path-user"].refuses(facts, {"folder": "/x"}) == "fix.refuse.windows-only"
    assert (
        catalogue.FIXES["path-user"].refuses(make_facts({}, "Windows"), {"folder": CUDA})
        == "fix.refuse.user-path-unknown"
    )


@other
def test_verification_follows_the_build() -> None:
    table = Tables(
        builds=(
            Build(
                package="tensorflow-gpu",
                version="1.13.1",
                system="Windows",
                pythons=("3.7",),
                cuda="10.0",
                imports=("cudnn64_7.dll",),
            ),
            Build(package="tensorflow-gpu", version="2.1", system="Windows", pythons=("3.7",), cuda="10.1"),
        )
    )
    assert make("path-user", {"folder": CUDA}, tables=table).verify.probe == "gpu_libraries"
    old = make("path-user", {"folder": CUDA}, {"tf.package": {"version": "1.13.1"}}, tables=table)
    assert (old.verify.probe, old.verify.good_answers) == ("import_chain", ("complete",))


# --- kernels ------------------------------------------------------------------------------------------------------


@other
@pytest.mark.parametrize(
    ("client", "env", "expected"),
    [
        ("8.6.3", {}, {"PATH": CUDA + ";${PATH}"}),
        ("6.0.0", {"PATH": r"C:\x;${PATH}"}, {"PATH": CUDA + r";C:\x;${PATH}"}),
        ("7.0.6", {"Path": r"C:\x;%PATH%"}, {"Path": None, "PATH": CUDA + r";C:\x;${PATH}"}),
        ("5.3.5", {}, {"PATH": CUDA + r";C:\Windows\system32;C:\Windows"}),
    ],
)
def test_kernel_path_by_the_servers_jupyter_client(client: str, env: dict[str, str], expected: dict[str, str]) -> None:
    kernel = {**WINDOWS["jupyter.kernels"][0], "env": env}
    changes = {"jupyter.kernels": [kernel], "jupyter.server": {"jupyter_client": client}}
    plan = make("kernel-path", {"kernel": "tf21", "folder": CUDA}, changes)
    (step,) = plan.steps
    assert isinstance(step, EditKernelspec) and step.changes == {"env": expected}
    assert "restart-kernel" in plan.needs and step.path == r"C:\k\tf21\kernel.json"


@other
def test_kernel_path_doubles_the_dollar_only_where_it_is_read() -> None:
    new = make("kernel-path", {"kernel": "tf21", "folder": r"C:\a$PATH"}).steps[0]
    assert isinstance(new, EditKernelspec) and new.changes["env"]["PATH"] == r"C:\a$$PATH;${PATH}"
    old = make(
        "kernel-path", {"kernel": "tf21", "folder": r"C:\a$b"}, {"jupyter.server": {"jupyter_client": "5.2.3"}}
    ).steps[0]
    assert isinstance(old, EditKernelspec) and old.changes["env"]["PATH"].startswith(r"C:\a$b;")


@other
def test_kernel_path_refuses_an_unknown_server() -> None:
    values = {"kernel": "tf21", "folder": CUDA}
    assert (
        refused("kernel-path", values, {"jupyter.server": {"jupyter_client": None}})
        == "fix.refuse.jupyter-client-unknown"
    )
    assert refused("kernel-path", {**values, "kernel": "x"}) == "fix.refuse.no-kernel"
    broken = [{**WINDOWS["jupyter.kernels"][0], "error": "Invalid \\escape"}]
    assert refused("kernel-path", values, {"jupyter.kernels": broken}) == "fix.refuse.kernelspec-broken"


@other
def test_register_writes_an_absolute_interpreter_as_json() -> None:
    plan = make("register-ipykernel", {})
    (step,) = plan.steps
    assert isinstance(step, WriteFile) and step.path == r"C:\k\tf21\kernel.json"
    spec = json.loads(step.text)
    assert spec["argv"] == [PREFIX + r"\Scripts\python.exe", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    assert (
        spec["language"] == "python"
        and spec["display_name"] == "Python (tf21)"
        and spec["metadata"] == {"debugger": True}
    )
    assert plan.verify.context["kernel"] == "tf21" and plan.verify.probe == "kernel_import"


@other
def test_register_installs_ipykernel_first_where_it_is_missing() -> None:
    interpreter = {**WINDOWS["target.interpreter"], "ipykernel": None, "prefix": r"C:\深度学习"}
    plan = make("register-ipykernel", {}, {"target.interpreter": interpreter})
    run, write = plan.steps
    assert (
        isinstance(run, Run)
        and run.argv[1:] == ("-m", "pip", "install", "ipykernel")
        and run.packages == {"ipykernel": None}
    )
    assert isinstance(write, WriteFile) and write.path == r"C:\k\tensorflow\kernel.json"
    assert json.loads(write.text)["display_name"] == "Python (深度学习)"
    assert (
        refused("register-ipykernel", {}, {"target.interpreter": {**interpreter, "pip": None}}) == "fix.refuse.no-pip"
    )


# --- DLL name -----------------------------------------------------------------------------------------------------

DLLS = {"files": {}, "folders": {}, "near": {}, "elsewhere": {}}
NEAR = CUDA + r"\cudnn64_7_v741.dll"


@other
def test_restore_dll_name_copies_beside() -> None:
    plan = make("restore-dll-name", {"dll": "cudnn64_7.dll", "near": NEAR})
    assert plan.steps == (CopyFile(source=NEAR, target=CUDA + r"\cudnn64_7.dll"),)
    named = {**DLLS, "near": {"cudnn64_7.dll": [NEAR]}}
    assert (
        make("restore-dll-name", {"dll": "cudnn64_7.dll", "near": "cudnn64_7_v741.dll"}, {"dlls.tree": named}).steps
        == plan.steps
    )


@other
def test_restore_dll_name_refuses_the_wrong_file() -> None:
    values = {"dll": "cudnn64_7.dll", "near": NEAR}
    assert refused("restore-dll-name", {"dll": "cudnn64_7.dll"}) == "fix.refuse.no-renamed-file"
    for seen, key in [
        ({"machine": "x86"}, "fix.refuse.wrong-machine"),
        ({"machine": "x64", "cudnn_version": "8.1.0"}, "fix.refuse.other-version"),
    ]:
        assert refused("restore-dll-name", values, {"dlls.tree": {**DLLS, "files": {NEAR: seen}}}) == key
    there = {**DLLS, "folders": {CUDA: ["CUDNN64_7.dll"]}}
    assert refused("restore-dll-name", values, {"dlls.tree": there}) == "fix.refuse.already-there"


# --- packages -----------------------------------------------------------------------------------------------------


@other
def test_pins_are_one_command_and_know_the_way_back() -> None:
    plan = make("pin-packages", {"tf_version": "2.1.0"})
    (step,) = plan.steps
    assert isinstance(step, Run)
    assert step.argv[1:] == ("-m", "pip", "install", "h5py==2.10.0", "protobuf==3.20.3")
    assert step.undo_argv == (
        (step.argv[0], "-m", "pip", "uninstall", "-y", "h5py"),
        (step.argv[0], "-m", "pip", "install", "--no-deps", "protobuf==4.24.4"),
    )
    assert step.packages == {"protobuf": "3.20.3", "h5py": "2.10.0"} and step.python == step.argv[0]
    assert step.env == {}  # on Windows pip.ini may be in the code page: no PYTHONUTF8
    shown = preview.preview(plan, make_facts(WINDOWS, "Windows"))
    assert shown.commands["cmd"] == [step.argv[0] + ' -m pip install "h5py==2.10.0" "protobuf==3.20.3"']


@other
def test_pins_of_the_probe_serve_where_the_table_has_none() -> None:
    plan = make("pin-packages", {"tf_version": "9.9", "pins": "numpy==1.19.5, h5py==2.10.0"}, tables=Tables())
    assert isinstance(plan.steps[0], Run) and plan.steps[0].packages == {"numpy": "1.19.5", "h5py": "2.10.0"}
    assert any(note.key == "fix.note.conda-managed" and note.params["names"] == "numpy" for note in plan.notes)


@other
def test_a_pin_never_stands_without_its_tensorflow() -> None:
    assert (
        refused("pin-packages", {"pins": "numpy==1.19.5"}, {"tf.package": {"version": None}})
        == "fix.refuse.no-tf-version"
    )
    there = {name: {"version": version} for name, version in PINS.pins.items()}
    assert refused("pin-packages", {}, {"target.packages": there}) == "fix.refuse.pins-there"


@other
def test_reinstalling_cannot_be_undone_and_says_so() -> None:
    plan = make("reinstall-package", {"distribution": "protobuf 4.24.4"})
    (step,) = plan.steps
    assert isinstance(step, Run) and step.argv[-3:] == ("--force-reinstall", "--no-deps", "protobuf==4.24.4")
    assert not plan.undoable and step.undo_argv == () and step.whole == ("protobuf",)
    shown = preview.preview(plan, make_facts(WINDOWS, "Windows"))
    assert not shown.undoable and any(line.text == "fix.note.not-undoable" for line in shown.lines)
    assert refused("reinstall-package", {"distribution": "numpy"}) == "fix.refuse.conda-package"
    assert refused("reinstall-package", {"distribution": "unknown-thing"}) == "fix.refuse.no-distribution"


# --- unset-variable -----------------------------------------------------------------------------------------------

HIDDEN = {"Path": None, "variables": {"CUDA_VISIBLE_DEVICES": {"type": "REG_SZ", "value": "-1"}}}


@other
def test_unset_in_the_registry_and_in_the_kernel() -> None:
    kernel = {**WINDOWS["jupyter.kernels"][0], "env": {"CUDA_VISIBLE_DEVICES": "-1"}}
    plan = make("unset-variable", {"where": "user"}, {"env.user": HIDDEN, "jupyter.kernels": [kernel]})
    user, spec = plan.steps
    assert isinstance(user, UnsetUserVariable) and user.expected.value == "-1"
    assert isinstance(spec, EditKernelspec) and spec.changes == {"env": {"CUDA_VISIBLE_DEVICES": None}}
    assert plan.needs == ("new-console", "restart-kernel")


@other
def test_unset_in_a_running_shell_is_a_command_for_the_person() -> None:
    facts = {"env.process": {"CUDA_VISIBLE_DEVICES": "-1"}}
    plan = make("unset-variable", {"where": "process"}, facts)
    assert plan.steps == ()
    shown = preview.preview(plan, make_facts({**WINDOWS, **facts}, "Windows"))
    assert shown.commands == {
        "cmd": ['set "CUDA_VISIBLE_DEVICES="'],
        "powershell": ["Remove-Item Env:CUDA_VISIBLE_DEVICES"],
    }
    assert refused("unset-variable", {}) == "fix.refuse.not-set"


@other
def test_a_harmless_value_stays_and_the_machines_is_for_an_administrator() -> None:
    kernel = {**WINDOWS["jupyter.kernels"][0], "env": {"CUDA_VISIBLE_DEVICES": "-1"}}
    harmless = {"Path": None, "variables": {"CUDA_VISIBLE_DEVICES": {"type": "REG_SZ", "value": "0"}}}
    plan = make("unset-variable", {"where": "tf21"}, {"env.user": harmless, "jupyter.kernels": [kernel]})
    assert [type(step) for step in plan.steps] == [EditKernelspec]
    assert refused("unset-variable", {}, {"env.user": harmless}) == "fix.refuse.not-set"
    machine = make("unset-variable", {"where": "machine"}, {"env.machine": HIDDEN})
    assert machine.steps == () and machine.commands["powershell"][0].endswith("$null, 'Machine')")
    assert [note.key for note in machine.notes] == ["fix.note.machine-variable"]


@other
def test_all_folders_that_the_probe_found_are_used() -> None:
    plan = make("path-user", {"folder": CUDA, "folders": CUDA + r";C:\cudnn\bin"})
    assert isinstance(plan.steps[0], SetUserVariable) and plan.steps[0].value.startswith(CUDA + r";C:\cudnn\bin;")
    chosen = make("path-user", {"folder": r"D:\mine", "folders": CUDA + r";C:\cudnn\bin"}).steps[0]
    assert isinstance(chosen, SetUserVariable) and chosen.value.startswith(r"D:\mine;%USERPROFILE%")


# --- start-jupyter and the environment's scripts, Windows texts ---------------------------------------------------


@other
def test_the_launcher_is_ascii_for_a_chinese_user_name() -> None:
    plan = make("start-jupyter", {"folder": CUDA, "destination": r"D:\"".rstrip('"')})
    bat, ps1 = plan.steps
    assert isinstance(bat, WriteFile) and isinstance(ps1, WriteFile)
    text = bat.data().decode("ascii")
    assert rf'@set "PATH={CUDA};%USERPROFILE%\envs\tf21\Scripts;%PATH%"' + "\r\n" in text and "chcp" not in text
    assert r'@"%USERPROFILE%\envs\tf21\Scripts\python.exe" -m notebook %*' in text
    assert ps1.data().isascii() and b"[char]0x5F20 + [char]0x4F1F" in ps1.data()


@other
def test_a_launcher_that_needs_it_switches_the_code_page_and_back() -> None:
    plan = make("start-jupyter", {"folder": r"D:\显卡 100%\bin"})
    bat = plan.steps[0]
    assert isinstance(bat, WriteFile)
    lines = bat.data().decode("utf-8").split("\r\n")
    first = next(i for i, line in enumerate(lines) if "显卡" in line)
    assert any("65001" in line for line in lines[:first]) and all(line.isascii() for line in lines[:first])
    assert r"D:\显卡 100%%\bin;" in lines[first] and any("%_TFTRIAGE_CP%" in line for line in lines[first:])


@other
def test_conda_scripts_for_three_shells_and_the_warning_for_non_ascii_prefixes() -> None:
    interpreter = {**WINDOWS["target.interpreter"], "venv": False, "conda": True}
    plan = make("path-environment", {"folder": CUDA}, {"target.interpreter": interpreter})
    names = [step.path[len(PREFIX) + len(r"\etc\conda") + 1 :] for step in plan.steps if isinstance(step, WriteFile)]
    assert names == [
        rf"{folder}\tftriage-libraries.{ending}"
        for ending in ("bat", "ps1", "sh")
        for folder in ("activate.d", "deactivate.d")
    ]
    assert any(note.key == "fix.note.conda-non-ascii" for note in plan.notes)
    shell = plan.steps[4]
    assert isinstance(shell, WriteFile) and "/c/CUDA/v10.1/bin" in shell.text and b"\r" not in shell.data()


def test_blocks_are_found_again_and_removed_to_the_character() -> None:
    text = "first\nsecond"
    with_block = text + "\n" + "\n".join(scripts.block(["x=1"], "#")) + "\nlast\n"
    assert scripts.has_block(with_block, "#")
    assert scripts.without_block(with_block, "#") == "first\nsecond\nlast\n"


def test_a_plan_survives_json(tmp_path: Path) -> None:
    import msgspec

    if sys.platform == "win32" or os.name != "posix":
        pytest.skip("plans as of another machine")
    plan = make("pin-packages", {"tf_version": "2.1.0"})
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan
    assert len(plan.id) == 12 and plan.id == make("pin-packages", {"tf_version": "2.1.0"}).id
