"""``loaded_copies``: the list of loaded files against the copies that the search order names."""

from __future__ import annotations

from typing import Any

import pytest

from tests.loader.machine import CUDA, PY37, PYD, pe, windows
from tests.probes.evidence_words import run
from tftriage.facts import Fact
from tftriage.tables import Tables

PYTHON = PY37 + "\\python.exe"
OLD = "D:\\old\\cudnn64_7.dll"
TREE = windows({PYD: pe("cudnn64_7.dll"), CUDA + "\\cudnn64_7.dll": pe(), OLD: pe()}, path=(CUDA, "D:\\old"))


def loaded(*modules: str, python: str = PYTHON) -> dict[str, Any]:
    return {"processes": [{"pid": 7, "python": python, "kernel": True, "modules": list(modules)}]}


def ask(running: Any, tree: Any = TREE, python: str = PYTHON) -> Any:
    facts = {"process__modules": running, "dlls__tree": tree, "target__interpreter": {"executable": python}}
    return run("loaded_copies", Tables(), **{name: fact for name, fact in facts.items() if fact is not None})


def test_the_copy_that_the_search_order_names():
    found = ask(loaded(CUDA.upper() + "\\CUDNN64_7.dll", "C:\\x\\cudart64_100.dll", PY37 + "\\vcruntime140.dll"))
    assert (found.answer, [line.key for line in found.evidence]) == ("as-expected", ["running.loaded"] * 2)


def test_another_copy_than_a_new_process_would_load():
    found = ask(loaded("C:\\x\\cudart64_100.dll", OLD))
    assert found.answer == "other-copy"
    assert found.values == {"dll": "cudnn64_7.dll", "folder": "D:\\old", "pid": "7"}
    assert (found.evidence[0].key, found.evidence[0].params["winner"]) == ("running.other", CUDA + "\\cudnn64_7.dll")


@pytest.mark.parametrize(
    "running", [{"processes": []}, loaded(OLD, python="C:\\other\\python.exe"), loaded("C:\\a.dll")]
)
def test_nothing_of_this_python_runs(running):
    assert ask(running).answer == "none"


def test_linux_names_the_file_behind_the_link():
    link, real = "/usr/local/cuda/lib64/libcudnn.so.7", "/usr/local/cuda-10.1/lib64/libcudnn.so.7.6.5"
    header = {"elf_class": 64, "needed": [], "rpath": [], "runpath": [], "error": None}
    tree = {
        "roots": ["libcudnn.so.7"], "files": {link: {**header, "real": real}}, "folders": {},
        "context": {"python_folder": "/env/bin", "path": ["/usr/local/cuda/lib64"], "cwd": "/w"},
    }  # fmt: skip
    python = "/env/bin/python"
    assert ask(loaded(real, python=python), tree, python).answer == "as-expected"
    other = real.replace("10.1", "10.0")
    assert ask(loaded(other, python=python), tree, python).answer == "other-copy"


def test_unknown_without_the_facts():
    assert ask(None).reason == "process.modules: not-recorded"
    assert ask(loaded(OLD), None).reason == "dlls.tree: not-recorded"
    alone = run("loaded_copies", Tables(), process__modules=loaded(OLD))
    assert alone.reason == "target.interpreter: not-recorded"
    refused = Fact("process.modules", "skipped", note="only on Windows and Linux")
    assert "only on Windows" in run("loaded_copies", Tables(), process__modules=refused).reason
