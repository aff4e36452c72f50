"""metadata_fits, vc_runtime, long_paths, kernel_running: every answer, and when there is none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.probes.evidence_words import LINUX, WIN10, run
from tftriage.facts import Fact
from tftriage.tables import Build, Tables

TABLES = Tables(
    builds=(
        Build(package="tensorflow-gpu", version="2.1.0", system="Windows", pythons=("3.7",), cuda="10.1",
              vc_floor="14.24", source="test"),
        Build(package="tensorflow-gpu", version="1.13.1", system="Windows", pythons=("3.7",), cuda="10.0",
              vc_floor="14.0", source="test"),
        Build(package="tensorflow-gpu", version="2.1.0", system="Linux", pythons=("3.7",), cuda="10.1", source="test"),
    )
)  # fmt: skip
PYTHON = {"version": [3, 7, 16], "platform": "win32", "implementation": "CPython", "executable": "D:\\tf\\python.exe",
          "prefix": "D:\\tf"}  # fmt: skip
REQUIRES = [
    "numpy (<2.0,>=1.16.0)", "six (>=1.12.0)", "scipy (==1.4.1) ; python_version >= '3'",
    "enum34 ; python_version < '3.4'",
    "absl-py", "this is no requirement", "fastapi ; extra == 'web'",
]  # fmt: skip


def packages(**versions: str) -> dict[str, Any]:
    found = {"numpy": "1.18.5", "six": "1.15.0", "scipy": "1.4.1", "absl-py": "0.10.0"} | versions
    tensorflow = {"name": "tensorflow-gpu", "version": "2.1.0", "requires": REQUIRES}
    return {"tensorflow-gpu": tensorflow} | {
        name: {"name": name, "version": version} for name, version in found.items() if version
    }


@pytest.mark.parametrize(
    ("installed", "answer", "wrong"),
    [
        (packages(), "fit", None),
        (packages(scipy=""), "missing", "scipy==1.4.1"),
        (packages(scipy="1.5.2"), "differs", "scipy 1.5.2 (==1.4.1)"),
        (packages(scipy="1.5.2", six=""), "missing", "six>=1.12.0"),
        ({"numpy": {"name": "numpy", "version": "1.18.5"}}, "unknown", None),
    ],
)
def test_metadata(installed: dict[str, Any], answer: str, wrong: str | None) -> None:
    finding = run("metadata_fits", target__packages=installed, target__interpreter=PYTHON, system__os=WIN10)
    assert (finding.answer, finding.values.get("wrong")) == (answer, wrong)


def test_metadata_is_read_for_the_target_and_not_for_us() -> None:
    old = PYTHON | {"version": [3, 3, 7]}
    finding = run("metadata_fits", target__packages=packages(), target__interpreter=old, system__os=WIN10)
    assert (finding.answer, finding.values["wrong"]) == ("missing", "enum34")
    assert run("metadata_fits", target__packages=packages()).reason == "target.interpreter: not-recorded"


def runtime(**versions: str) -> dict[str, Any]:
    files = {
        "vcruntime140.dll": "14.29.30133.0",
        "msvcp140.dll": "14.29.30133.0",
        "vcruntime140_1.dll": "14.29.30133.0",
    }
    files |= {name.replace("__", ".") + ".dll": version for name, version in versions.items()}
    shown = [{"name": n, "version": v, "machine": "x64", "error": None} for n, v in files.items() if v]
    return {"registry": [], "folder": "C:\\Windows\\System32", "files": shown}


@pytest.mark.parametrize(
    ("seen", "version", "answer"),
    [
        (runtime(), "2.1.0", "current"),
        (runtime(msvcp140="14.16.27033.0"), "2.1.0", "outdated"),
        (runtime(vcruntime140_1=""), "2.1.0", "missing"),
        (runtime(vcruntime140_1=""), "1.13.1", "current"),
        (runtime(msvcp140=""), None, "missing"),
        (runtime(), None, "unknown"),
        (Fact("system.vcruntime", "absent", note="windows-only"), "2.1.0", "unknown"),
    ],
)
def test_vc_runtime(seen: Any, version: str | None, answer: str) -> None:
    finding = run("vc_runtime", TABLES, system__vcruntime=seen, tf__package={"version": version})
    assert finding.answer == answer
    if answer == "missing":
        assert finding.values["missing"] in ("vcruntime140_1.dll", "msvcp140.dll")


def test_a_broken_file_is_a_missing_one() -> None:
    seen = runtime()
    seen["files"][1]["error"] = "not-pe"
    assert run("vc_runtime", TABLES, system__vcruntime=seen).values == {"missing": "msvcp140.dll"}


@pytest.mark.parametrize(
    ("seen", "answer"),
    [
        ({"long_paths": True}, "on"),
        ({"long_paths": False}, "off"),
        ({"long_paths": None}, "off"),
        (Fact("system.settings", "absent", note="windows-only"), "unknown"),
    ],
)
def test_long_paths(seen: Any, answer: str) -> None:
    assert run("long_paths", system__settings=seen).answer == answer


def kernel(**more: Any) -> dict[str, Any]:
    found = {"kind": "kernel", "pid": 4120, "python": "D:\\tf\\python.exe", "connection": "kernel-8d3f.json",
             "env": {"Path": "C:\\Windows;D:\\CUDA\\bin"}, "libraries": []}  # fmt: skip
    return found | more


KIT = [{"version": "10.1", "bin": "D:\\CUDA\\bin"}, {"version": "9.0", "bin": "D:\\old\\bin"}]


@pytest.mark.parametrize(
    ("seen", "answer"),
    [
        ([kernel()], "has-cuda"),
        ([kernel(env={"PATH": "C:\\Windows"})], "lacks-cuda"),
        ([kernel(env={"PATH": "D:\\old\\bin"})], "lacks-cuda"),
        ([kernel(env=None)], "unknown"),
        ([kernel(python="E:\\other\\python.exe")], "none"),
        ([kernel(kind="server")], "none"),
        (Fact("jupyter.running", "absent", note="none runs"), "none"),
        (Fact("jupyter.running", "error", note="no-psutil"), "unknown"),
    ],
)
def test_kernel_running(seen: Any, answer: str) -> None:
    finding = run(
        "kernel_running", TABLES, jupyter__running=seen, cuda__toolkits=KIT, target__interpreter=PYTHON,
        tf__package={"version": "2.1.0"}, system__os=WIN10,
    )  # fmt: skip
    assert finding.answer == answer


def test_the_copy_that_a_kernel_loaded_is_told() -> None:
    seen = [kernel(libraries=["D:\\wrong\\cudart64_101.dll", "D:\\tf\\msvcp140.dll"])]
    finding = run("kernel_running", TABLES, jupyter__running=seen, cuda__toolkits=KIT, target__interpreter=PYTHON,
                  tf__package={"version": "2.1.0"}, system__os=WIN10)  # fmt: skip
    assert [e.params["libraries"] for e in finding.evidence if e.key == "kernel_running.loaded"] == ["cudart64_101.dll"]


def test_on_linux_the_library_path_counts() -> None:
    python = {"executable": "/tf/bin/python", "prefix": "/tf", "version": [3, 7, 16]}
    seen = [kernel(python="/tf/bin/python", env={"PATH": "/cuda/lib64", "LD_LIBRARY_PATH": "/x:/cuda/lib64"})]
    kit = [{"version": "10.1", "bin": "/cuda/lib64"}]
    found = {"cuda__toolkits": kit, "target__interpreter": python, "system__os": LINUX}
    assert run("kernel_running", TABLES, jupyter__running=seen, **found).answer == "has-cuda"
    seen[0]["env"].pop("LD_LIBRARY_PATH")
    assert run("kernel_running", TABLES, jupyter__running=seen, **found).answer == "lacks-cuda"
