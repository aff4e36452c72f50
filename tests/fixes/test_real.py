"""Fixes on real things: pip in a real venv, real activate scripts in a real shell, real files of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tftriage.fixes import catalogue, effects, preview, running, scripts, undo
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import Plan, Refused, Run, WriteFile
from tftriage.tables import PinSet, Tables

from .conftest import make_facts
from .environments import Environment, shell
from .wheels import wheel

pytest.importorskip("venv", reason="the embeddable Windows Python has no venv")
posix = pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")


PINS = Tables(
    pins=(
        PinSet(
            tensorflow="2.1",
            pythons=(f"{sys.version_info[0]}.{sys.version_info[1]}",),
            rules=(),
            pins={"pbuf": "3.20.3", "hfive": "2.10.0"},
            source="test",
            kind="tested",
        ),
    )
)


def test_pins_are_installed_read_back_and_taken_back_exactly(env: Environment, journal: Journal) -> None:
    before = running.packages(env.python).versions
    plan = catalogue.FIXES["pin-packages"].plan(env.facts(), {}, PINS)
    lines: list[str] = []
    done = effects.apply(plan, journal, on_output=lines.append)
    assert done.ok and done.results[0].read_back and any("Successfully installed" in line for line in lines)
    assert env.versions() == {"pbuf": "3.20.3", "hfive": "2.10.0"}
    assert undo.undo(journal, "1").ok
    assert running.packages(env.python).versions == before


def test_a_set_that_cannot_be_had_changes_nothing(env: Environment, journal: Journal) -> None:
    plan = catalogue.FIXES["pin-packages"].plan(env.facts(), {"pins": "pbuf==3.20.3 hfive==9.9"}, Tables())
    done = effects.apply(plan, journal)
    assert (
        done.error is not None and done.error.key == "fix.error.command-failed" and "hfive" in done.error.params["tail"]
    )
    assert env.versions() == {"pbuf": "4.24.4"} and journal.entry("1").status == "failed"


def test_status_zero_proves_nothing(env: Environment, journal: Journal) -> None:
    """A package manager that says yes and installs nothing, or half of it."""
    nothing = Run(argv=(env.python, "-c", ""), python=env.python, packages={"pbuf": "3.20.3"})
    plan = catalogue.FIXES["pin-packages"].plan(env.facts(), {}, PINS)
    done = effects.apply(Plan(fix="x", steps=(nothing,), verify=plan.verify), journal)
    assert done.error is not None and done.error.key == "fix.error.not-as-written"
    half = Run(
        argv=(env.python, "-m", "pip", "install", "pbuf==3.20.3"),
        python=env.python,
        packages={"pbuf": "3.20.3", "hfive": "2.10.0"},
    )
    done = effects.apply(Plan(fix="x", steps=(half,), verify=plan.verify), journal)
    assert done.error is not None and done.error.params["found"] == "hfive -"
    assert env.versions() == {"pbuf": "4.24.4"}, "the half was taken back"


def test_packages_that_changed_since_are_a_conflict(env: Environment, journal: Journal) -> None:
    assert effects.apply(catalogue.FIXES["pin-packages"].plan(env.facts(), {}, PINS), journal).ok
    wheel(env.wheels, "pbuf", "5.0")
    env.pip("install", "pbuf==5.0")
    result = undo.undo(journal, "1")
    assert len(result.conflicts) == 1 and env.versions() == {"pbuf": "5.0", "hfive": "2.10.0"}
    assert undo.undo(journal, "1", {0: "restore"}).ok and env.versions() == {"pbuf": "4.24.4"}


def test_a_command_killed_in_the_middle_is_taken_back_by_what_is_there(env: Environment, journal: Journal) -> None:
    plan = catalogue.FIXES["pin-packages"].plan(env.facts(), {}, PINS)
    entry = journal.begin(plan)
    before = running.packages(env.python)
    step = plan.steps[0]
    journal.step_intent(entry, 0, before, effects.states.intended(step, before))
    env.pip("install", "pbuf==3.20.3")  # as far as pip had come
    assert undo.recover(journal)[entry].ok and env.versions() == {"pbuf": "4.24.4"}
    entry = journal.begin(plan)
    journal.step_intent(entry, 0, before, effects.states.intended(step, before))
    env.pip("install", "pbuf==3.20.3")
    assert undo.recover(journal, how="finish")[entry].ok
    assert env.versions() == {"pbuf": "3.20.3", "hfive": "2.10.0"}
    assert undo.undo(journal, entry).ok and env.versions() == {"pbuf": "4.24.4"}


def test_a_damaged_package_is_laid_down_again_and_counted(env: Environment, journal: Journal) -> None:
    module = next(env.prefix.glob("lib*/**/site-packages/pbuf.py"))
    module.write_text("")
    assert running.packages(env.python, ["pbuf"]).damaged == {"pbuf": 1}
    plan = catalogue.FIXES["reinstall-package"].plan(env.facts(), {"distribution": "pbuf 4.24.4"}, Tables())
    assert effects.apply(plan, journal).ok
    assert "4.24.4" in module.read_text() and running.packages(env.python, ["pbuf"]).damaged == {"pbuf": 0}
    assert not journal.entry("1").undoable


def test_registering_a_kernel_with_ipykernel_missing(env: Environment, journal: Journal, tmp_path: Path) -> None:
    facts = env.facts(**{"env.process": {"JUPYTER_DATA_DIR": str(tmp_path / "jupyter")}})
    plan = catalogue.FIXES["register-ipykernel"].plan(facts, {"name": "tf21"}, Tables())
    assert effects.apply(plan, journal).ok and env.versions()["ipykernel"] == "6.16.2"
    file = tmp_path / "jupyter" / "kernels" / "tf21" / "kernel.json"
    assert json.loads(file.read_text("utf-8"))["argv"][0] == env.python
    assert undo.undo(journal, "1").ok
    assert not (tmp_path / "jupyter").exists() and "ipykernel" not in env.versions()


def test_a_wrong_kernel_of_that_name_is_changed_and_comes_back(
    env: Environment, journal: Journal, tmp_path: Path
) -> None:
    env.pip("install", "ipykernel")
    file = tmp_path / "kernels" / "tf21" / "kernel.json"
    file.parent.mkdir(parents=True)
    raw = b'{\r\n  "argv": ["C:\\\\wrong\\\\python.exe"],\r\n  "env": {"KEEP": "me"}\r\n}'
    file.write_bytes(raw)
    facts = env.facts(**{"env.process": {"JUPYTER_DATA_DIR": str(tmp_path)}})
    plan = catalogue.FIXES["register-ipykernel"].plan(facts, {"name": "tf21"}, Tables())
    shown = preview.preview(plan, facts)
    assert any(line.kind == "diff-" and "wrong" in line.text for line in shown.lines)
    assert any(line.text == "fix.note.replaces-kernel" for line in shown.lines)
    assert effects.apply(plan, journal).ok
    spec = json.loads(file.read_bytes())
    assert spec["env"] == {"KEEP": "me"} and spec["argv"][0] == env.python
    assert undo.undo(journal, "1").ok and file.read_bytes() == raw


# --- shells -------------------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("name", ["bash", "dash"])
@pytest.mark.parametrize("before", ["/opt/lib:/x", ""])
def test_a_venv_gives_the_folder_on_activation_and_takes_it_away(
    shared: Environment, journal: Journal, tmp_path: Path, name: str, before: str
) -> None:
    folder = str(tmp_path / "cuda 10.1 'q' $HOME 库")
    activate = shared.prefix / "bin" / "activate"
    raw = activate.read_bytes()
    plan = catalogue.FIXES["path-environment"].plan(shared.facts(), {"folder": folder}, Tables())
    assert effects.apply(plan, journal).ok
    show = 'printf "%s\\n" "${LD_LIBRARY_PATH-unset}"'
    start = f". '{activate}'; {show}; deactivate; {show}; . '{activate}'; . '{activate}'; {show}; deactivate; {show}"
    variables = {"LD_LIBRARY_PATH": before} if before else {}
    on = f"{folder}:{before}" if before else folder
    assert shell(name, start, **variables) == [on, before or "unset", on, before or "unset"]
    with pytest.raises(Refused) as again:
        catalogue.FIXES["path-environment"].plan(shared.facts(), {"folder": folder}, Tables())
    assert again.value.key == "fix.refuse.already-first"
    assert undo.undo(journal, "1").ok and activate.read_bytes() == raw


@posix
@pytest.mark.parametrize("name", ["bash", "dash"])
@pytest.mark.parametrize(
    ("now", "left"),
    [
        ("/new:/a b:/c:/usr/bin", "/new:/usr/bin"),
        ("/a b:/c", "unset"),
        ("/usr/bin:/a b", "/usr/bin:/a b"),
        ("/x:/a b:/c", "/x"),
    ],
)
def test_leaving_removes_only_what_was_added(name: str, now: str, left: str) -> None:
    script = "\n".join([*scripts.sh_remove("V", ["/a b", "/c"]), 'printf "%s\\n" "${V-unset}"'])
    assert shell(name, script, V=now) == [left]


@posix
def test_the_scripts_of_a_conda_environment(journal: Journal, tmp_path: Path) -> None:
    prefix = tmp_path / "envs" / "tf"
    interpreter = {"executable": str(prefix / "bin/python"), "version": [3, 7, 9], "prefix": str(prefix), "conda": True}
    plan = catalogue.FIXES["path-environment"].plan(
        make_facts({"target.interpreter": interpreter}), {"folder": "/opt/cuda/lib64"}, Tables()
    )
    assert effects.apply(plan, journal).ok
    on, off = (prefix / f"etc/conda/{d}/tftriage-libraries.sh" for d in ("activate.d", "deactivate.d"))
    show = 'echo "${LD_LIBRARY_PATH-unset}"'
    assert shell("bash", f". {on}; {show}; . {off}; {show}") == ["/opt/cuda/lib64", "unset"]
    assert undo.undo(journal, "1").ok and not prefix.exists()


@posix
def test_the_launcher_starts_jupyter_with_the_folders_first(env: Environment, journal: Journal, tmp_path: Path) -> None:
    wheel(
        env.wheels,
        "notebook",
        "6.5",
        "import os, sys; print(os.environ['LD_LIBRARY_PATH'], sys.argv[1:], os.environ['PATH'])",
    )
    env.pip("install", "notebook")
    folder = str(tmp_path / "cuda 库")
    values = {"folder": folder, "destination": str(tmp_path)}
    plan = catalogue.FIXES["start-jupyter"].plan(env.facts(), values, Tables())
    assert effects.apply(plan, journal).ok
    (launcher,) = tmp_path.glob("jupyter-*.sh")
    assert launcher.stat().st_mode & 0o777 == 0o755
    done = subprocess.run(
        [launcher, "--port", "1"], capture_output=True, text=True, env={"PATH": "/usr/bin"}, check=True
    )
    assert done.stdout == f"{folder} ['--port', '1'] {env.prefix}/bin:/usr/bin\n"
    assert undo.undo(journal, "1").ok and not launcher.exists()


@posix
def test_the_commands_of_the_preview_do_the_same(env: Environment, tmp_path: Path) -> None:
    near = tmp_path / "库 x" / "cudnn64_7_v741.dll"
    near.parent.mkdir()
    near.write_bytes(b"MZ")
    facts = make_facts({})
    plan = catalogue.FIXES["restore-dll-name"].plan(facts, {"dll": "cudnn64_7.dll", "near": str(near)}, Tables())
    shell("bash", "\n".join(preview.preview(plan, facts).commands["bash"]))
    assert (near.parent / "cudnn64_7.dll").read_bytes() == b"MZ"
    values = {"folder": "/opt/it's", "destination": str(tmp_path)}
    wheel(env.wheels, "notebook", "6.5")
    env.pip("install", "notebook")
    launcher = catalogue.FIXES["start-jupyter"].plan(env.facts(), values, Tables())
    shell("bash", "\n".join(preview.preview(launcher, env.facts()).commands["bash"]))
    step = launcher.steps[0]
    assert isinstance(step, WriteFile) and Path(step.path).read_bytes() == step.data()


def test_preview_of_a_copy_says_size_and_rights(tmp_path: Path, journal: Journal) -> None:
    near = tmp_path / "cudnn64_7_v741.dll"
    near.write_bytes(b"x" * 1234)
    facts = make_facts({})
    plan = catalogue.FIXES["restore-dll-name"].plan(facts, {"dll": "cudnn64_7.dll", "near": str(near)}, Tables())
    lines = preview.preview(plan, facts).lines
    assert [line.kind for line in lines] == ["file", "note", "note"]
    assert lines[1].params["size"] == "1,234" and lines[2].text == "fix.note.may-write"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cudnn64_7_v741.dll"], "a preview writes nothing"
    assert effects.apply(plan, journal).ok
    with pytest.raises(Refused, match="already-there"):
        catalogue.FIXES["restore-dll-name"].plan(facts, {"dll": "cudnn64_7.dll", "near": str(near)}, Tables())
    assert undo.undo(journal, "1").ok and not (tmp_path / "cudnn64_7.dll").exists()


def test_a_record_under_another_name_is_no_damage(tmp_path: Path) -> None:
    """As tensorflow-gpu 2.3.1 for Windows lists its files; one of them is really gone."""
    info = tmp_path / "tensorflow_gpu-2.3.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: tensorflow-gpu\nVersion: 2.3.1\n", encoding="utf-8")
    rows = "tensorflow_gpu/a.py,sha256=x,1\ntensorflow_gpu/b.py,sha256=y,1\ntensorflow/a.py,,\ntensorflow/b.py,,\n"
    (info / "RECORD").write_text(rows, encoding="utf-8")
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "a.py").write_text("1", encoding="utf-8")
    code = "import sys; sys.path.insert(0, sys.argv.pop(1))\n" + running._SCAN
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path), "tensorflow-gpu"], capture_output=True, check=True)
    assert b'"damaged": {"tensorflow-gpu": 1}' in ran.stdout
