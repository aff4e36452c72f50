"""Real broken Linux machines: from the error a student sees to a cured environment, and back.

Each scenario runs twice: through the command with ``--json`` and through the screen in a pseudo-terminal.
"""

from __future__ import annotations

import glob
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.triage import KB, environment, node_path, replays_alike, tftriage, title
from tests.terminal import Terminal

SCREEN = [sys.executable, "-m", "tftriage", "--lang", "en"]
# A machine with a CUDA of another version has another cause than one with none; both name the missing libraries.
NO_CUDA = "cuda-version-mismatch" if glob.glob("/usr/local/cuda*") else "cuda-toolkit-missing"
VERSIONS = "import pkg_resources as p; print(sorted((d.key, d.version) for d in p.working_set))"


def failing_import(python: Path, env: dict[str, str], folder: Path) -> Path:
    """What the student sees, in a file, as they would paste it."""
    ran = subprocess.run([str(python), "-c", "import tensorflow"], capture_output=True, env=env)
    assert ran.returncode != 0
    path = folder / "error.txt"
    path.write_bytes(ran.stderr)
    return path


def versions(python: Path) -> str:
    return subprocess.run([str(python), "-c", VERSIONS], capture_output=True, text=True, check=True).stdout


# --- L1: `pip install tensorflow-gpu==2.1.0` as it ends today -------------------------------------------------


def test_l1_protobuf_too_new_is_pinned_verified_and_taken_back(clone_target: Callable, tmp_path: Path) -> None:
    target = clone_target("tf210-unpinned")
    env = environment(tmp_path / "state")
    error = failing_import(target.python, env, tmp_path)
    before = versions(target.python)

    case = tmp_path / "case.json"
    found = tftriage("diagnose", "--error", str(error), "--python", str(target.python), "--save", str(case), env=env)
    assert found.code == 1, found.document
    assert found.document["diagnosis"] == "protobuf-too-new"
    replays_alike(case, found.document, env, "protobuf")
    assert "protobuf" in found.document["cause"]
    assert "pin-packages" in [fix["id"] for fix in found.document["fixes"] if not fix["refused"]]

    applied = tftriage(
        "fix", "apply", "pin-packages", "--error", str(error), "--python", str(target.python), "--yes", env=env
    )
    assert applied.code == 0, applied.document
    assert applied.document["verified"]["result"] == "cured"
    check = subprocess.run(
        [str(target.python), "-c", "import tensorflow as t; print(t.__version__)"], capture_output=True
    )
    assert check.stdout.split() == [b"2.1.0"]
    assert versions(target.python) != before

    undone = tftriage("undo", env=env)
    assert undone.code == 0, undone.document
    assert versions(target.python) == before


def test_l1_on_the_screen(clone_target: Callable, tmp_path: Path) -> None:
    target = clone_target("tf210-unpinned")
    env = environment(tmp_path / "state")
    error = failing_import(target.python, env, tmp_path)
    before = versions(target.python)
    with Terminal([*SCREEN, "--python", str(target.python)], env=env, cwd=str(tmp_path)) as terminal:
        terminal.wait_for("Paste the error here")
        terminal.paste(error.read_text())
        terminal.wait_for("Looks like", KB.symptom("protobuf-descriptors").title["en"][:40])
        terminal.press("enter")
        terminal.wait_for(title("protobuf-too-new"), "Enter", seconds=60)
        terminal.press("enter")
        terminal.wait_for("Fixes", KB.fixes["pin-packages"].title["en"][:30])
        terminal.press("enter")
        terminal.wait_for("nothing done yet", "protobuf")
        terminal.press("y", pause=0.5)
        terminal.wait_for("applied and verified", seconds=240)
        terminal.press("u", pause=0.5)
        terminal.wait_for("taken back", seconds=240)
        assert terminal.close() == 0
    assert versions(target.python) == before


# --- L2: a driver, and no CUDA; a card that is too old ----------------------------------------------------------


def test_l2_the_missing_libraries_are_named(linux_target: Callable, tmp_path: Path) -> None:
    target = linux_target("tf210")
    env = environment(tmp_path / "state", {"LD_LIBRARY_PATH": target.libraries("driver")})
    case = tmp_path / "case.json"
    found = tftriage("diagnose", "--python", str(target.python), "--save", str(case), env=env)
    assert found.code == 1, found.document
    assert found.document["diagnosis"] == NO_CUDA, node_path(found)
    replays_alike(case, found.document, env, "found-not-added")
    for library in ("libcudart.so.10.1", "libcublas.so.10", "libcudnn.so.7"):
        assert library in found.document["cause"]


def test_l2_an_old_card_is_named(linux_target: Callable, tmp_path: Path) -> None:
    target = linux_target("tf210")
    libraries = target.libraries("driver", "cuda101")
    env = environment(
        tmp_path / "state",
        {"LD_LIBRARY_PATH": libraries, "FAKE_CUDA_CC": "3.0", "FAKE_CUDA_NAME": "GeForce GTX 660"},
    )
    found = tftriage("diagnose", "--python", str(target.python), env=env)
    assert found.code == 1, found.document
    assert found.document["diagnosis"] == "gpu-too-old", node_path(found)
    assert "3.0" in found.document["cause"]
    assert "3.5" in found.document["cause"]


@pytest.mark.parametrize(
    ("extra", "parts", "diagnosis"),
    [
        ({}, ("driver",), NO_CUDA),
        ({"FAKE_CUDA_CC": "3.0", "FAKE_CUDA_NAME": "GeForce GTX 660"}, ("driver", "cuda101"), "gpu-too-old"),
    ],
)
def test_l2_on_the_screen(
    linux_target: Callable, tmp_path: Path, extra: dict[str, str], parts: tuple[str, ...], diagnosis: str
) -> None:
    target = linux_target("tf210")
    env = environment(tmp_path / "state", {"LD_LIBRARY_PATH": target.libraries(*parts), **extra})
    with Terminal([*SCREEN, "--python", str(target.python)], env=env, cwd=str(tmp_path)) as terminal:
        terminal.wait_for("Paste the error here")
        terminal.press("r")
        terminal.wait_for("Looks like", seconds=90)
        terminal.press("enter")
        terminal.wait_for(title(diagnosis), "Enter shows", seconds=90)
        terminal.press("enter")
        terminal.wait_for(title(diagnosis))
        assert terminal.close() == 0


# --- L3: the notebook runs another Python -----------------------------------------------------------------------

CELL = """
import json, sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name=sys.argv[1])
reply = client.execute_interactive(sys.argv[2], timeout=120, allow_stdin=False, output_hook=lambda m: print(
    "\\n".join(m["content"].get("traceback", [])) or m["content"].get("text", ""), end=""))
manager.shutdown_kernel(now=True)
"""


def run_cell(python: Path, kernel: str, code: str, env: dict[str, str]) -> str:
    """Run a cell in a kernel as a notebook does; what the notebook shows."""
    ran = subprocess.run([str(python), "-c", CELL, kernel, code], capture_output=True, text=True, env=env, timeout=180)
    return ran.stdout + ran.stderr


@pytest.fixture
def notebook(part: Callable, linux_target: Callable, tmp_path: Path) -> dict[str, object]:
    """A Jupyter whose kernel "tf21" starts another interpreter than the environment with TensorFlow."""
    server = part("jupyter") / "linux" / "jupyter" / "bin" / "python"
    data = tmp_path / "jupyter"
    spec = data / "kernels" / "tf21"
    spec.mkdir(parents=True)
    argv = [str(server), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel = {"argv": argv, "display_name": "Python (tf21)", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(kernel), encoding="utf-8")
    env = environment(tmp_path / "state", {"JUPYTER_DATA_DIR": str(data)})
    env["PATH"] = f"{server.parent}:{env['PATH']}"
    return {"server": server, "env": env, "spec": spec, "target": linux_target("tf210").python}


def test_l3_the_kernel_is_registered_and_proved_in_a_cell(notebook: dict, tmp_path: Path) -> None:
    env, server, target = notebook["env"], notebook["server"], notebook["target"]
    shown = run_cell(server, "tf21", "import tensorflow", env)
    assert "No module named 'tensorflow'" in shown
    error = tmp_path / "cell.txt"
    error.write_text(shown, encoding="utf-8")
    before = {p.relative_to(tmp_path): p.read_bytes() for p in (tmp_path / "jupyter").rglob("*") if p.is_file()}

    case = tmp_path / "case.json"
    found = tftriage("diagnose", "--error", str(error), "--python", str(target), "--save", str(case), env=env)
    assert found.code == 1, found.document
    assert found.document["diagnosis"] == "notebook-kernel-wrong-env", node_path(found)
    replays_alike(case, found.document, env, "notebook")

    command = ("fix", "apply", "register-ipykernel", "--error", str(error), "--python", str(target), "--yes")
    applied = tftriage(*command, env=env)
    assert applied.code == 0, applied.document
    entry = json.loads(
        subprocess.run(
            [sys.executable, "-m", "tftriage", "journal", "--json"], env=env, capture_output=True, check=True
        ).stdout
    )[-1]
    names = {Path(p).name for p in (tmp_path / "jupyter" / "kernels").iterdir()}
    working = [
        n for n in names if str(target) in run_cell(server, n, "import sys, tensorflow; print(sys.executable)", env)
    ]
    assert working, (names, entry)

    assert tftriage("undo", env=env).code == 0
    after = {p.relative_to(tmp_path): p.read_bytes() for p in (tmp_path / "jupyter").rglob("*") if p.is_file()}
    assert after == before


def test_l3_on_the_screen(notebook: dict, tmp_path: Path) -> None:
    env, server, target = notebook["env"], notebook["server"], notebook["target"]
    shown = run_cell(server, "tf21", "import tensorflow", env)
    with Terminal([*SCREEN, "--python", str(target)], env=env, cwd=str(tmp_path)) as terminal:
        terminal.wait_for("Paste the error here")
        terminal.paste(shown)
        terminal.wait_for("Looks like", KB.symptom("notebook-module-not-found").title["en"][:30])
        terminal.press("enter")
        terminal.wait_for(title("notebook-kernel-wrong-env"), "Enter shows", seconds=60)
        terminal.press("enter")
        terminal.wait_for("Fixes")
        terminal.press("enter")
        terminal.wait_for("nothing done yet")
        terminal.press("y", pause=0.5)
        terminal.wait_for("applied and verified", seconds=120)
        terminal.press("u", pause=0.5)
        terminal.wait_for("taken back", seconds=60)
        assert terminal.close() == 0
    assert shutil.which("bash")
