"""Kernels: which Python, which path, what an import does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.probes.evidence_words import LINUX, WIN10, run
from tftriage.facts import Fact

TARGET = {
    "executable": "/home/alice/v37-210/bin/python",
    "prefix": "/home/alice/v37-210",
    "version": [3, 7, 16],
}
SERVER = {
    "python": "/home/alice/jl/bin/python",
    "jupyter_client": "8.10.0",
    "running": [],
    "found_by": "path",
}
INSTALLED = {"distributions": [{"name": "tensorflow-gpu", "version": "2.1.0"}], "version": "2.1.0"}


def kernel(name: str, interpreter: str | None, **more: Any) -> dict[str, Any]:
    argv = [interpreter or "python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    base = {
        "name": name,
        "display_name": f"Python ({name})",
        "folder": f"/home/alice/jp/kernels/{name}",
        "argv": argv,
    }
    rest = {
        "env": {},
        "interpreter": interpreter,
        "exists": True,
        "bare": False,
        "ipykernel": "6.16.2",
        "error": None,
    }
    return {**base, **rest, **more}


OURS = kernel("tf21", "/home/alice/v37-210/bin/python3.7")
WRONG = kernel("tf21-wrong", "/home/alice/jl/bin/python", display_name="Python 3")
GONE = kernel("deleted", "/home/alice/gone/bin/python", exists=False)
BARE = kernel("bare", None, bare=True, argv=["python", "-m", "ipykernel_launcher"], exists=False)
R = {**kernel("ir", "/usr/bin/R"), "argv": ["/usr/bin/R", "--slave", "-e", "IRkernel::main()"]}
BROKEN = kernel("badjson", None, argv=[], exists=False, error="Invalid \\escape: line 2 column 21 (char 173)")
ABSENT = "ModuleNotFoundError: No module named 'tensorflow'"


@pytest.mark.parametrize(
    ("kernels", "text", "answer", "name"),
    [
        ([OURS], "", "same", "tf21"),
        ([WRONG, OURS], "", "same", "tf21"),
        ([WRONG, OURS], ABSENT, "other-python", "tf21-wrong"),
        ([WRONG], "", "other-python", "tf21-wrong"),
        (
            [OURS, GONE],
            "FileNotFoundError: [Errno 2] No such file: '/home/alice/gone/bin/python'",
            "gone",
            "deleted",
        ),
        ([OURS, GONE], "Kernel started: 1f2a, name: deleted", "gone", "deleted"),
        ([GONE], "", "gone", "deleted"),
        ([GONE, WRONG], "", "other-python", "tf21-wrong"),
        ([BARE], "", "bare-python", "bare"),
        ([{**OURS, "ipykernel": None}], "", "no-ipykernel", "tf21"),
        ([OURS, WRONG], "Python (tf21) | Idle", "same", "tf21"),
        (
            [OURS, WRONG],
            'File "/home/alice/jl/lib/python3.11/site-packages/keras/x.py"',
            "other-python",
            "tf21-wrong",
        ),
        ([BROKEN], "", "unknown", "badjson"),
    ],
)
def test_kernel_python(kernels: list[dict[str, Any]], text: str, answer: str, name: str) -> None:
    finding = run(
        "kernel_python",
        jupyter__kernels=kernels,
        target__interpreter=TARGET,
        jupyter__server=SERVER,
        tf__package=INSTALLED,
        paste=text,
    )
    assert (finding.answer, finding.values["kernel"]) == (answer, name)


def test_the_servers_own_python_serves_a_bare_kernel() -> None:
    server = {**SERVER, "python": TARGET["executable"]}
    finding = run("kernel_python", jupyter__kernels=[BARE], target__interpreter=TARGET, jupyter__server=server)
    assert finding.answer == "same"


def test_no_python_kernel() -> None:
    assert run("kernel_python", jupyter__kernels=[R], target__interpreter=TARGET).answer == "no-kernels"
    assert run("kernel_python", jupyter__kernels=[], target__interpreter=TARGET).answer == "no-kernels"


def test_kernel_python_unknown() -> None:
    assert run("kernel_python", target__interpreter=TARGET).reason == "jupyter.kernels: not-recorded"
    assert run("kernel_python", jupyter__kernels=[OURS]).reason == "target.interpreter: not-recorded"
    assert (
        run("kernel_python", jupyter__kernels=[OURS], target__interpreter={"executable": ""}).answer == "other-python"
    )


def test_an_environment_nested_in_the_targets_prefix_is_another_one() -> None:
    base = {"executable": r"C:\Anaconda3\python.exe", "prefix": r"C:\Anaconda3"}
    nested = kernel("tf", r"C:\Anaconda3\envs\tf\python.exe")
    assert run("kernel_python", jupyter__kernels=[nested], target__interpreter=base).answer == "other-python"


BIN = r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v10.1\bin"
TOOLKITS = [
    {"version": "11.2", "folder": r"C:\CUDA\v11.2", "bin": r"C:\CUDA\v11.2\bin"},
    {"version": "10.1.243", "folder": "x", "bin": BIN},
]
WIN_TARGET = {"executable": r"C:\env\python.exe", "prefix": r"C:\env"}


def path_facts(kernel_env: dict[str, str], path: str = r"C:\Windows", client: str = "8.6.3") -> dict[str, Any]:
    return {
        "jupyter__kernels": [kernel("tf21", r"C:\env\python.exe", env=kernel_env)],
        "env__process": {"Path": path},
        "cuda__toolkits": TOOLKITS,
        "jupyter__server": {**SERVER, "jupyter_client": client},
        "target__interpreter": WIN_TARGET,
        "tf__package": INSTALLED,
        "system__os": WIN10,
    }


@pytest.mark.parametrize(
    ("env", "path", "answer"),
    [
        ({}, r"C:\Windows", "lacks-cuda"),
        ({}, "C:\\Windows;" + BIN.upper() + "\\", "has-cuda"),
        ({"PATH": BIN + ";${PATH}"}, r"C:\Windows", "has-cuda"),
        ({"PATH": r"D:\x;${PATH}"}, BIN, "has-cuda"),
        ({"PATH": r"D:\x"}, BIN, "lacks-cuda"),
        ({}, r"C:\CUDA\v11.2\bin", "lacks-cuda"),  # another version's folder does not help 2.1
    ],
)
def test_kernel_path(env: dict[str, str], path: str, answer: str) -> None:
    finding = run("kernel_path", **path_facts(env, path))
    assert (finding.answer, finding.values["folder"]) == (answer, BIN)


def test_an_old_client_takes_the_reference_literally() -> None:
    finding = run("kernel_path", **path_facts({"PATH": r"D:\x;${PATH}"}, BIN, "5.3.5"))
    assert finding.answer == "lacks-cuda"
    assert finding.evidence[1].key == "kernel_path.not-expanded"
    assert run("kernel_path", **path_facts({"PATH": BIN + ";${PATH}"}, "x", "5.3.5")).evidence[1].level == "bad"


def test_linux_looks_at_the_library_path() -> None:
    folder = "/home/alice/cuda-10.1/lib64"
    known = path_facts({"LD_LIBRARY_PATH": folder}) | {
        "system__os": LINUX,
        "jupyter__kernels": [kernel("tf21-ld", "/home/alice/v37-210/bin/python", env={"LD_LIBRARY_PATH": folder})],
        "cuda__toolkits": [{"version": "10.1", "bin": folder}],
        "target__interpreter": TARGET,
    }
    assert run("kernel_path", **known).answer == "has-cuda"


def test_kernel_path_unknown() -> None:
    known = path_facts({})
    assert run("kernel_path").reason == "jupyter.kernels: not-recorded"
    none = Fact("cuda.toolkits", "absent", note="no CUDA library in the usual folders")
    assert run("kernel_path", **known | {"cuda__toolkits": none}).reason.startswith("cuda.toolkits: absent")
    assert run("kernel_path", **known | {"cuda__toolkits": []}).answer == "unknown"
    assert run("kernel_path", **known | {"jupyter__kernels": []}).answer == "unknown"


def tried(**more: Any) -> dict[str, Any]:
    base = {
        "module": "tensorflow",
        "ok": False,
        "seconds": 60.2,
        "version": None,
        "error_type": None,
        "error": None,
    }
    return {
        **base,
        "exit": None,
        "signal": None,
        "timed_out": False,
        "context": {"kind": "kernel", "kernel": "tf21"},
        **more,
    }


@pytest.mark.parametrize(
    ("value", "answer", "error"),
    [
        (tried(ok=True, version="2.1.0"), "works", None),
        (
            tried(error_type="ImportError", error="DLL load failed\nmore"),
            "fails",
            "ImportError: DLL load failed",
        ),
        (tried(timed_out=True), "fails", "no answer within 60 s"),
        (tried(signal="SIGBUS"), "dies", "SIGBUS"),
        (tried(error_type="DeadKernelError", error="Kernel died"), "dies", "DeadKernelError: Kernel died"),
        (tried(exit=134), "dies", "exit 134"),
    ],
)
def test_kernel_import(value: dict[str, Any], answer: str, error: str | None) -> None:
    finding = run("kernel_import", jupyter__import=value)
    assert (finding.answer, finding.values.get("error")) == (answer, error)
    assert finding.values["kernel"] == "tf21"


def test_kernel_import_unknown() -> None:
    assert run("kernel_import").reason == "jupyter.import: not-recorded"
