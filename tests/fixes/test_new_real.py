"""The larger fixes on real things: pip and venv as they are, real shells, a kit that really installs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tftriage.fixes import catalogue, effects, preview, running, undo
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import Refused
from tftriage.tables import PinSet, Tables

from .conftest import make_facts
from .environments import Environment, shell
from .wheels import wheel

posix = pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
pytest.importorskip("venv", reason="the embeddable Windows Python has no venv")
SERIES = f"{sys.version_info[0]}.{sys.version_info[1]}"
SET = {"pbuf": "3.20.3", "hfive": "2.10.0"}
TABLES = Tables(pins=(PinSet(tensorflow="2.1.0", pythons=(SERIES,), rules=(), pins=SET, source="test", kind="tested"),))
GROWTH = "TF_FORCE_GPU_ALLOW_GROWTH"


def tensorflows(env: Environment, *names: str) -> Any:
    """Wheels of several TensorFlows over one module, installed in this order; the facts."""
    wheel(env.wheels, "tensorflow", "2.1.0", "GPU = False\n")
    wheel(env.wheels, "tensorflow_gpu", "2.1.0", "GPU = True\n", module="tensorflow")
    env.pip("uninstall", "-y", "tensorflow", "tensorflow-gpu")
    for name in names:
        env.pip("install", "--no-deps", f"{name}==2.1.0")
    versions = running.packages(env.python).versions
    listed = [{"name": n, "version": v, "folder": None} for n, v in versions.items() if n.startswith("tensorflow")]
    return env.facts(**{"tf.package": {"version": "2.1.0", "distributions": listed}})


def gpu(env: Environment) -> str:
    code = "import tensorflow; print(tensorflow.GPU)"
    return subprocess.run([env.python, "-c", code], capture_output=True, text=True, check=False).stdout.strip()


def test_one_tensorflow_stays_and_is_whole(env: Environment, journal: Journal) -> None:
    facts = tensorflows(env, "tensorflow-gpu", "tensorflow")
    before = running.packages(env.python).versions
    assert gpu(env) == "False", "the CPU build lies over the GPU build"
    plan = catalogue.FIXES["one-tensorflow"].plan(facts, {}, Tables())
    assert effects.apply(plan, journal).ok
    assert gpu(env) == "True" and "tensorflow" not in running.packages(env.python).versions
    assert running.packages(env.python, ["tensorflow-gpu"]).damaged == {"tensorflow-gpu": 0}
    assert undo.undo(journal, "1").ok and running.packages(env.python).versions == before
    env.pip("uninstall", "-y", "tensorflow", "tensorflow-gpu")


def test_one_tensorflow_that_cannot_be_had_changes_nothing(env: Environment, journal: Journal) -> None:
    facts = tensorflows(env, "tensorflow-gpu", "tensorflow")
    before = running.packages(env.python).versions
    plan = catalogue.FIXES["one-tensorflow"].plan(facts, {"keep": "tensorflow"}, Tables())
    gone = env.wheels / "tensorflow-2.1.0-py3-none-any.whl"
    kept = gone.read_bytes()
    gone.unlink()
    done = effects.apply(plan, journal)
    gone.write_bytes(kept)
    assert done.error is not None and done.error.key == "fix.error.command-failed"
    assert running.packages(env.python).versions == before, "the one that was uninstalled first is there again"
    env.pip("uninstall", "-y", "tensorflow", "tensorflow-gpu")


@posix
@pytest.mark.parametrize("name", ["bash", "dash"])
def test_a_variable_of_a_venv(shared: Environment, journal: Journal, name: str) -> None:
    activate = shared.prefix / "bin" / "activate"
    raw = activate.read_bytes()
    plan = catalogue.FIXES["allow-growth"].plan(shared.facts(), {}, Tables())
    assert effects.apply(plan, journal).ok
    show = f'echo "${{{GROWTH}-unset}}"'
    script = f". '{activate}'; {show}; deactivate; {show}; . '{activate}'; . '{activate}'; deactivate; {show}"
    assert shell(name, script) == ["true", "unset", "unset"]
    assert shell(name, f". '{activate}'; {show}; deactivate; {show}", **{GROWTH: "mine"}) == ["mine", "mine"]
    with pytest.raises(Refused) as again:
        catalogue.FIXES["allow-growth"].plan(shared.facts(), {}, Tables())
    assert again.value.key == "fix.refuse.set-already"
    assert undo.undo(journal, "1").ok and activate.read_bytes() == raw


@posix
def test_a_variable_and_a_folder_live_side_by_side(shared: Environment, journal: Journal) -> None:
    activate = shared.prefix / "bin" / "activate"
    raw = activate.read_bytes()
    for fix, values in (("allow-growth", {}), ("path-environment", {"folder": "/opt/cuda"})):
        assert effects.apply(catalogue.FIXES[fix].plan(shared.facts(), values, Tables()), journal).ok
    show = f'echo "${{{GROWTH}-unset}} ${{LD_LIBRARY_PATH-unset}}"'
    assert shell("dash", f". '{activate}'; {show}; deactivate; {show}") == ["true /opt/cuda", "unset unset"]
    assert undo.undo(journal, "2").ok
    assert shell("dash", f". '{activate}'; {show}; deactivate; {show}") == ["true unset", "unset unset"]
    assert undo.undo(journal, "1").ok and activate.read_bytes() == raw


@posix
def test_a_variable_of_a_conda_environment(journal: Journal, tmp_path: Path) -> None:
    prefix = tmp_path / "envs" / "tf"
    interpreter = {"executable": str(prefix / "bin/python"), "version": [3, 7, 9], "prefix": str(prefix), "conda": True}
    log = "Ignoring visible gpu device (device: 1, name: GeForce MX150, pci bus id: 0000:02:00.0, compute capability: "
    log += "6.1) with core count: 3. The minimum required count is 8."
    facts = make_facts({"target.interpreter": interpreter, "tf.gpus": {"log": log}})
    plan = catalogue.FIXES["include-small-gpu"].plan(facts, {}, Tables())
    assert effects.apply(plan, journal).ok
    on, off = (prefix / f"etc/conda/{d}/tftriage-include-small-gpu.sh" for d in ("activate.d", "deactivate.d"))
    show = 'echo "${TF_MIN_GPU_MULTIPROCESSOR_COUNT-unset}"'
    assert shell("bash", f". {on}; {show}; . {off}; {show}") == ["3", "unset"]
    assert undo.undo(journal, "1").ok and not prefix.exists()


def imported(env: Environment, folder: Path) -> str:
    argv = [env.python, "-c", "import pbuf; print(pbuf.__file__)"]
    return subprocess.run(argv, capture_output=True, text=True, encoding="utf-8", cwd=folder, check=True).stdout.strip()


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_stands_in_the_way_is_renamed_and_comes_back(
    env: Environment,
    journal: Journal,
    tmp_path: Path,
    kind: str,
) -> None:
    homework = tmp_path / "作业"
    homework.mkdir()
    file = homework / ("pbuf.py" if kind == "file" else "pbuf")
    inner = file if kind == "file" else file / "__init__.py"
    inner.parent.mkdir(exist_ok=True)
    inner.write_bytes(b"# mine\r\n")
    before = file.stat()
    assert Path(imported(env, homework)) == inner
    plan = catalogue.FIXES["rename-shadowing-file"].plan(env.facts(), {"file": str(inner)}, Tables())
    assert effects.apply(plan, journal).ok
    assert "site-packages" in imported(env, homework) and (homework / f"my_{file.name}").exists()
    assert undo.undo(journal, "1").ok
    assert Path(imported(env, homework)) == inner and inner.read_bytes() == b"# mine\r\n"
    assert file.stat().st_mode == before.st_mode and file.stat().st_ino == before.st_ino


def test_a_file_of_a_package_is_never_renamed(env: Environment) -> None:
    module = next(env.prefix.glob("lib*/**/site-packages/pbuf.py"))
    fix = catalogue.FIXES["rename-shadowing-file"]
    assert fix.refuses(env.facts(), {"file": str(module)}) == "fix.refuse.pythons-own-file"
    assert fix.refuses(env.facts(), {}) == "fix.refuse.no-shadowing-file"


def test_a_new_environment_works_and_goes_without_a_trace(
    env: Environment,
    journal: Journal,
    tmp_path: Path,
) -> None:
    wheel(env.wheels, "tensorflow", "2.1.0")
    facts = env.facts(**{"env.process": {"JUPYTER_DATA_DIR": str(tmp_path / "jupyter")}})
    folder = tmp_path / "new" / "tf"
    plan = catalogue.FIXES["new-environment"].plan(facts, {"folder": str(folder)}, TABLES)
    shown = preview.preview(plan, facts)
    assert next(line.text for line in shown.lines if line.kind == "command").endswith(str(folder))
    done = effects.apply(plan, journal)
    assert done.ok, done
    python = plan.python
    assert python is not None
    code = "import tensorflow, pbuf; print(tensorflow.VERSION, pbuf.VERSION)"
    ran = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["2.1.0", "3.20.3"]
    spec = json.loads((tmp_path / "jupyter" / "kernels" / "tf" / "kernel.json").read_text("utf-8"))
    assert spec["argv"][0] == python
    assert undo.undo(journal, "1").ok, "importing wrote __pycache__, and that is nobody's work"
    assert not (tmp_path / "new").exists() and not (tmp_path / "jupyter").exists()


def test_a_new_environment_with_somebodys_work_in_it_is_not_removed(
    env: Environment,
    journal: Journal,
    tmp_path: Path,
) -> None:
    wheel(env.wheels, "tensorflow", "2.1.0")
    facts = env.facts(**{"env.process": {"JUPYTER_DATA_DIR": str(tmp_path / "jupyter")}})
    folder = tmp_path / "tf"
    plan = catalogue.FIXES["new-environment"].plan(facts, {"folder": str(folder)}, TABLES)
    assert effects.apply(plan, journal).ok
    (folder / "thesis.ipynb").write_text("{}")
    result = undo.undo(journal, "1")
    assert [conflict.what for conflict in result.conflicts] == [str(folder)]
    assert (folder / "thesis.ipynb").exists()
    assert undo.undo(journal, "1", {0: "keep"}).ok and (folder / "thesis.ipynb").exists()


def test_a_folder_that_is_there_is_never_built_over(env: Environment, tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        catalogue.FIXES["new-environment"].plan(env.facts(), {"folder": str(tmp_path)}, TABLES)
    assert refused.value.key == "fix.refuse.folder-there"
    with pytest.raises(Refused) as refused:
        catalogue.FIXES["new-environment"].plan(env.facts(), {"folder": "x", "tf_version": "1.0"}, TABLES)
    assert refused.value.key == "fix.refuse.no-python-for-it"


def test_an_environment_is_copied_to_an_ascii_path(env: Environment, journal: Journal, tmp_path: Path) -> None:
    env.pip("install", "ipykernel")
    spec = tmp_path / "kernels" / "tf21" / "kernel.json"
    spec.parent.mkdir(parents=True)
    raw = json.dumps({"argv": [env.python], "env": {"A": "1"}}).encode()
    spec.write_bytes(raw)
    kernel = {
        "name": "tf21", "display_name": "TF", "folder": str(spec.parent), "interpreter": env.python, "env": {"A": "1"},
        "error": None,
    }  # fmt: skip
    facts = env.facts(**{"jupyter.kernels": [kernel]})
    folder = tmp_path / "envs" / "x"
    assert str(folder).isascii() and not str(env.prefix).isascii()
    plan = catalogue.FIXES["ascii-environment"].plan(facts, {"folder": str(folder)}, Tables())
    done = effects.apply(plan, journal)
    assert done.ok, done
    new, old = running.packages(str(plan.python)).versions, running.packages(env.python).versions
    assert {n: v for n, v in new.items() if n not in ("pip", "setuptools", "wheel")} == {
        n: v for n, v in old.items() if n not in ("pip", "setuptools", "wheel")
    }
    written = json.loads(spec.read_bytes())
    assert written["argv"][0] == plan.python and written["env"] == {"A": "1"}
    assert undo.undo(journal, "1").ok and spec.read_bytes() == raw and not folder.parent.exists()


@posix
def test_the_kit_installs_without_a_network(
    env: Environment,
    journal: Journal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wheel(env.wheels, "tensorflow", "2.1.0")
    kit = tmp_path / "kit 离线"
    plan = catalogue.FIXES["offline-kit"].plan(env.facts(), {"folder": str(kit)}, TABLES)
    done = effects.apply(plan, journal)
    assert done.ok, done
    moved = tmp_path / "stick"
    subprocess.run(["cp", "-r", kit, moved], check=True)
    monkeypatch.delenv("PIP_FIND_LINKS")
    ran = subprocess.run(["sh", moved / "install.sh", sys.executable], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    python = ran.stdout.splitlines()[-1]
    code = "import tensorflow, pbuf; print(tensorflow.VERSION, pbuf.VERSION)"
    shown = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["2.1.0", "3.20.3"]
    other = subprocess.run(["sh", moved / "install.sh", "/bin/false"], capture_output=True, check=False)
    assert other.returncode != 0
    assert undo.undo(journal, "1").ok and not kit.exists()


@posix
def test_copy_cudnn_takes_all_of_them_and_replaces_nothing(journal: Journal, tmp_path: Path) -> None:
    cuda, cudnn = tmp_path / "cuda" / "lib64", tmp_path / "cudnn 8"
    cuda.mkdir(parents=True)
    cudnn.mkdir()
    names = ["libcudnn.so.8", "libcudnn_ops_infer.so.8", "libcudnn_cnn_infer.so.8"]
    for name in names:
        (cudnn / f"{name}.1.1").write_bytes(name.encode())
        (cudnn / name).symlink_to(f"{name}.1.1")
    (cuda / names[1]).write_bytes(b"theirs")
    kit = {"version": "11.2", "folder": str(cuda.parent), "bin": str(cuda), "on_path": True}
    facts = make_facts({"cuda.toolkits": [kit]})
    plan = catalogue.FIXES["copy-cudnn"].plan(facts, {"folder": str(cudnn)}, Tables())
    assert effects.apply(plan, journal).ok
    assert {p.name: p.read_bytes() for p in cuda.iterdir()} == {
        names[0]: names[0].encode(), names[1]: b"theirs", names[2]: names[2].encode()
    }  # fmt: skip
    with pytest.raises(Refused):
        catalogue.FIXES["copy-cudnn"].plan(facts, {"folder": str(cudnn)}, Tables())
    assert undo.undo(journal, "1").ok and [p.name for p in cuda.iterdir()] == [names[1]]
