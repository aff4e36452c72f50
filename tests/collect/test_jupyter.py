"""Kernelspecs and servers, from files made for the purpose."""

import json
import os
import sys

import pytest

from tftriage.collect import jupyter
from tftriage.collect.registry import COLLECTORS, Absent

WINDOWS = os.name == "nt"


def kernel(base, name, content):
    folder = base / "kernels" / name
    folder.mkdir(parents=True)
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / "kernel.json").write_text(text, encoding="utf-8")
    return str(folder)


def spec(*argv, **more):
    return {"argv": [*argv, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "x", **more}


def environment_with(tmp_path, *packages):
    prefix = tmp_path / "envs" / "tf21"
    python = prefix / ("python.exe" if WINDOWS else "bin/python")
    site = prefix / ("Lib/site-packages" if WINDOWS else "lib/python3.7/site-packages")
    python.parent.mkdir(parents=True)
    python.write_text("")
    site.mkdir(parents=True)
    for package in packages:
        (site / (package + ".dist-info")).mkdir()
    return str(python)


def test_kernels(tmp_path):
    python = environment_with(tmp_path, "ipykernel-6.16.2")
    base = tmp_path / "jupyter"
    kernel(base, "TF21", spec(python, display_name="Python (张伟)", language="python", env={"PATH": "X;${PATH}"}))
    kernel(base, "bare", spec("python"))
    kernel(base, "gone", spec(str(tmp_path / "gone" / "python")))
    kernel(base, "broken", '{"argv": ["C:\\Users\\a\\python.exe"]}')  # single backslashes: a classic
    kernel(base, "empty", {"display_name": "x"})
    kernel(base, "list", "[]")
    (base / "kernels" / "no-spec").mkdir()
    found = {one["name"]: one for one in jupyter.kernels_in([(str(base), "user")], python, {"PATH": ""})}
    assert set(found) == {"tf21", "bare", "gone", "broken", "empty", "list"}
    good = found["tf21"]
    assert (good["interpreter"], good["exists"], good["bare"], good["ipykernel"]) == (python, True, False, "6.16.2")
    assert (good["display_name"], good["env"], good["scope"]) == ("Python (张伟)", {"PATH": "X;${PATH}"}, "user")
    assert good["error"] is None
    assert (found["bare"]["bare"], found["bare"]["interpreter"]) == (True, python)
    assert (found["gone"]["exists"], found["gone"]["ipykernel"]) == (False, None)
    assert found["broken"]["error"].startswith("JSONDecodeError: Invalid")
    assert found["empty"]["error"] == "no argv"
    assert found["list"]["error"] == "not a JSON object"


def test_bare_python_without_a_known_server(tmp_path):
    kernel(tmp_path, "a", spec("python3"))
    found = jupyter.kernels_in([(str(tmp_path), "env")], None, {})[0]
    assert (found["bare"], found["interpreter"], found["exists"]) == (True, None, False)


def test_no_bytes_that_are_not_utf8(tmp_path):
    folder = kernel(tmp_path, "a", "{}")
    with open(os.path.join(folder, "kernel.json"), "wb") as handle:
        handle.write('{"display_name": "张伟"}'.encode("gbk"))
    assert jupyter.kernels_in([(str(tmp_path), "user")], None, {})[0]["error"].startswith("UnicodeDecodeError")


@pytest.mark.parametrize("word", ["python", "python3", "python3.7"])
def test_words_that_jupyter_replaces(word):
    assert jupyter.BARE.match(word)


@pytest.mark.parametrize("word", ["python.exe", "pythonw", "/usr/bin/python", "bash", "python3.7m"])
def test_words_that_it_does_not(word):
    assert not jupyter.BARE.match(word)


def test_folders_in_jupyters_order(tmp_path):
    environment = {"JUPYTER_PATH": os.pathsep.join(["one", "two"]), "APPDATA": "roaming", "PROGRAMDATA": "data"}
    found = jupyter.data_folders(environment, "home", ["prefix"], True)
    assert found == [
        ("one", "user"), ("two", "user"), (os.path.join("roaming", "jupyter"), "user"),
        (os.path.join("prefix", "share", "jupyter"), "env"), (os.path.join("data", "jupyter"), "system"),
        (os.path.join("home", ".ipython"), "user"),
    ]  # fmt: skip
    own = jupyter.data_folders({"JUPYTER_DATA_DIR": "mine"}, "home", ["prefix", "prefix"], False)
    assert own[0] == ("mine", "user")
    assert len(own) == len(set(own))


@pytest.mark.parametrize(
    ("words", "server"),
    [
        (["python.exe", r"C:\ProgramData\Anaconda3\Scripts\jupyter-notebook-script.py"], True),
        ([r"C:\x\Scripts\jupyter-lab.exe"], True),
        (["/opt/conda/bin/python", "/opt/conda/bin/jupyter-lab", "--no-browser"], True),
        (["/usr/bin/python3", "/usr/bin/jupyter", "notebook"], True),
        (["python", "-m", "notebook"], True),
        (["python", "-m", "jupyterlab", "--port=1"], True),
        (["python", "-m", "ipykernel_launcher", "-f", "/x/jupyter/runtime/kernel-1.json"], False),
        (["python", "-m", "ipykernel", "install", "--user"], False),
        (["vim", "jupyter.md"], False),
        (["jupyter", "kernelspec", "list"], False),
        ([], False),
    ],
)
def test_server_processes(words, server):
    assert jupyter.is_server(words) is server


def test_launcher_and_its_interpreter(tmp_path):
    python = environment_with(tmp_path, "jupyter_client-7.4.9")
    folder = os.path.join(os.path.dirname(python), "Scripts") if WINDOWS else os.path.dirname(python)
    os.makedirs(folder, exist_ok=True)
    launcher = os.path.join(folder, "jupyter.exe" if WINDOWS else "jupyter")
    with open(launcher, "wb") as handle:
        handle.write(b"MZ" if WINDOWS else b"#!" + python.encode() + b"\nimport sys\n")
    os.chmod(launcher, 0o755)
    assert jupyter.beside(launcher) == python
    found = jupyter.find_server({}, {"PATH": folder, "PATHEXT": ".EXE"})
    if found[1] != "running":  # somebody may run Jupyter on this machine
        assert found[:2] == (python, "path")
    assert jupyter.resolve("jupyter", {"PATH": folder, "PATHEXT": ".EXE"}).lower() == launcher.lower()
    assert jupyter.resolve("nothing", {"PATH": folder}) == "nothing"


def test_collectors(monkeypatch, tmp_path):
    monkeypatch.setattr(jupyter, "running_servers", list)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    kernel(tmp_path / "data", "mine", spec("python"))
    python = environment_with(tmp_path)
    with pytest.raises(Absent, match="no Jupyter server"):
        COLLECTORS["jupyter.server"].function({"python": python})
    value, _ = COLLECTORS["jupyter.kernels"].function({"python": python})
    assert value[0]["name"] == "mine" and value[0]["interpreter"] is None
    pytest.importorskip("jupyter_client")
    value, _ = COLLECTORS["jupyter.server"].function({"python": sys.executable})  # the tests' own
    assert (value["python"], value["found_by"]) == (sys.executable, "target")
    assert value["jupyter_client"][0].isdigit()
    assert os.path.join(str(tmp_path / "data"), "kernels") in value["search_path"]
