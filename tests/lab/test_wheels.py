"""The builds table against the wheels themselves: two small ones are fetched and measured again."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tftriage import knowledge
from tftriage.tables import parse

ROOT = Path(__file__).resolve().parents[2]
# One that opens its libraries by name and one that imports them; 43 and 51 MB, the smallest of their kind.
WHEELS = [("1.0.1", "3.5"), ("1.2.1", "3.6")]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/measure_wheel.py, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("measure_wheel", ROOT / "tools" / "measure_wheel.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.lab
@pytest.mark.parametrize(("version", "python"), WHEELS)
def test_a_row_says_what_the_wheel_holds(
    version: str, python: str, tool: ModuleType, part: Callable[[str], Path], tmp_path: Path
) -> None:
    short = python.replace(".", "")
    with_pip = part("jupyter") / "linux" / "jupyter" / "bin" / "python"  # an environment made by uv has none
    command = [
        with_pip, "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir", "--only-binary", ":all:",
        "--platform", "win_amd64", "--python-version", short, "--implementation", "cp", "--abi", f"cp{short}m",
        f"tensorflow-gpu=={version}", "-d", tmp_path,
    ]  # fmt: skip
    subprocess.run(list(map(str, command)), check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    measured = tool.measure(wheel)
    wheel.unlink()
    row = knowledge.load(knowledge.CHECKOUT).tables.build(version, "Windows")
    assert row is not None and row.version == version and row.kind == "measured"
    assert measured["package"] == row.package
    assert measured["python"] in row.pythons
    left_out = ("nvcuda", "cupti")  # the table leaves the driver and the profiler to questions of their own
    assert {name for name in measured["libraries"] if not name.startswith(left_out)} == set(row.libraries)
    assert set(measured["imports"]) == set(row.imports)
    assert set(measured["vc_runtime"]) == set(row.vc_runtime)
    assert parse(measured["vc_floor"]) == parse(row.vc_floor)
    assert tuple(measured["machine_code"]) == row.machine_code
    assert tuple(measured["ptx"]) == row.ptx
    assert row.cuda and any(row.cuda.replace(".", "") in name for name in (*row.libraries, *row.imports))


def test_a_number_that_fits_two_names_proves_none(tool: ModuleType) -> None:
    text = b"\0cublas\0..\0cudart\0..\0" + b"64_10\0..\0" + b"64_101\0..\0cudnn\0.\0" + b"64_7\0.\0nvcuda.dll\0"
    assert tool.run_time_names(text) == {"cudart64_101.dll", "cudnn64_7.dll", "nvcuda.dll"}
