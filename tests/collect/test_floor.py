"""The collector runs on Python 3.6 and newer with the standard library, and imports nothing else of the project."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "tftriage" / "collect"
ROOT = str(FOLDER.parents[1])
OPTIONAL = {"pefile", "pynvml", "psutil"}  # used when they are there, imported inside functions
OF_THE_SERVER = {"jupyter_client"}  # kernel_inside.py runs in the interpreter that has it
VERSIONS = ["3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13"]


def imports(path):
    """(module, whether at the top of the file) for every import in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = set(map(id, tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in top
        elif isinstance(node, ast.ImportFrom):
            base = "tftriage.collect" if node.level == 1 else "beyond" if node.level else ""
            yield ".".join(part for part in (base, node.module) if part), id(node) in top


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_imports(path):
    for module, at_top in imports(path):
        root = module.partition(".")[0]
        if root == "tftriage":
            assert module.startswith("tftriage.collect"), module
        elif root in OPTIONAL:
            assert not at_top, f"{module} is optional"
        elif root in OF_THE_SERVER:
            assert path.name == "kernel_inside.py" and not at_top
        else:
            assert root in sys.stdlib_module_names, module


def test_the_file_for_the_target_imports_only_what_every_start_has_loaded():
    """Anything more at its top would be loaded before, and so hide, a file of that name in the working folder."""
    top = {module for module, at_top in imports(FOLDER / "inside.py") if at_top}
    assert top == {"sys", "os", "time"}


def test_syntax_and_library_of_python_3_6():
    vermin = shutil.which("vermin", path=os.path.dirname(sys.executable)) or shutil.which("vermin")
    if not vermin:
        pytest.skip("vermin is not installed")
    command = [vermin, "-t=3.6-", "--no-tips", "--backport", "typing", str(FOLDER)]
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert result.returncode == 0, result.stdout


def interpreter(version):
    """A Python of that version: on PATH, as pyenv lays them out, or by Windows' launcher."""
    roots = [os.environ.get("PYENV_ROOT"), os.path.expanduser("~/.pyenv")]
    for root in filter(None, roots):
        for folder in sorted(Path(root, "versions").glob(version + ".*")):
            for name in ("bin/python", "python.exe"):
                if (folder / name).exists():
                    return str(folder / name)
    found = shutil.which("python" + version)
    if found:
        return found
    launcher = shutil.which("py")
    if launcher:
        ask = subprocess.run(
            [launcher, "-" + version, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True
        )
        if ask.returncode == 0:
            return ask.stdout.strip()
    return None


@pytest.fixture(params=VERSIONS)
def old(request):
    python = interpreter(request.param)
    if python is None:
        pytest.skip(f"no Python {request.param} here")
    return request.param, python


def test_the_file_for_the_target_runs(old, tmp_path):
    version, python = old
    (tmp_path / "good.py").write_text("__version__ = '张'\n", encoding="utf-8")
    (tmp_path / "numpy.py").write_text("")
    for task, argument in [("interpreter", ""), ("packages", ""), ("package", ""), ("record", "1"), ("import", "good")]:
        result = subprocess.run(
            [python, "-B", "-X", "faulthandler", "-", task, "MARK:", argument, "20"],
            input=(FOLDER / "inside.py").read_bytes(), capture_output=True, cwd=tmp_path, timeout=60,
        )  # fmt: skip
        lines = [
            json.loads(line[5:]) for line in result.stdout.decode("ascii").splitlines() if line.startswith("MARK:")
        ]
        assert ".".join(map(str, lines[0]["begin"])).startswith(version + ".")
        answer = lines[-1]
        if task == "record":
            assert "absent" in answer or answer["value"]["checked"]
        elif task == "import":
            assert (answer["value"]["ok"], answer["value"]["version"]) == (True, "张")
        elif task == "package":
            assert str(tmp_path / "numpy.py") in [
                os.path.join(tmp_path, os.path.basename(one)) for one in answer["value"]["shadow"]
            ]
        else:
            assert isinstance(answer["value"], dict)
        assert not (tmp_path / "__pycache__").exists()


def test_the_collector_runs_on_it(old, tmp_path):
    version, python = old
    requests = [
        {"collect": name, "args": {"module": "json"}} for name in ("target.interpreter", "tf.import", "system.os")
    ]
    result = subprocess.run(
        [python, "-B", "-m", "tftriage.collect"],
        input="".join(json.dumps(request) + "\n" for request in requests).encode(),
        capture_output=True, timeout=120, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ROOT},
    )  # fmt: skip
    facts = {fact["fact"]: fact for fact in map(json.loads, result.stdout.splitlines())}
    assert result.returncode == 0, result.stderr
    assert [facts[request["collect"]]["status"] for request in requests] == ["ok"] * 3, facts
    assert ".".join(map(str, facts["target.interpreter"]["value"]["version"])).startswith(version + ".")
    assert facts["tf.import"]["value"]["ok"]


def test_python_2_is_said_to_be_too_old():
    python = interpreter("2.7")
    if python is None:
        pytest.skip("no Python 2.7 here")
    request = json.dumps({"collect": "target.interpreter", "args": {"python": python}}).encode()
    result = subprocess.run(
        [sys.executable, "-m", "tftriage.collect"], input=request, capture_output=True, cwd=ROOT, timeout=60
    )
    fact = json.loads(result.stdout)
    assert (fact["status"], fact["note"].partition(" 2.7")[0]) == ("error", "too-old: Python")
