"""CUDA toolkits made of small PE files."""

import os

import pytest

from tests import pe_builder
from tftriage.collect import cuda
from tftriage.collect.registry import COLLECTORS


def toolkit(folder, *names, cudnn=None):
    bin_folder = folder / "bin"
    bin_folder.mkdir(parents=True)
    for name in names:
        (bin_folder / name).write_bytes(pe_builder.build(["KERNEL32.dll"]))
    if cudnn:
        (bin_folder / "cudnn64_7.dll").write_bytes(pe_builder.cudnn(cudnn))
    return str(folder)


def test_toolkit(tmp_path):
    folder = toolkit(tmp_path / "v10.1", "cudart64_101.dll", "cublas64_10.dll", "nvcc.exe", cudnn=7605)
    assert cuda.toolkit(folder, set()) == {
        "version": "10.1", "folder": folder, "bin": os.path.join(folder, "bin"), "cudnn": "7.6.5",
        "libraries": ["cublas64_10.dll", "cudart64_101.dll", "cudnn64_7.dll"], "on_path": False,
    }  # fmt: skip
    searched = {os.path.normcase(os.path.join(folder, "bin"))}
    assert cuda.toolkit(folder, searched)["on_path"] is True
    assert cuda.toolkit(str(tmp_path), set()) is None


@pytest.mark.parametrize(
    ("names", "version"),
    [
        (["cudart64_100.dll"], "10.0"), (["cudart64_90.dll"], "9.0"), (["cudart64_110.dll"], "11.x"),
        (["cudart64_12.dll"], "12"), (["libcudart.so.10.1.243", "libcudart.so"], "10.1"),
        (["libcudart.so.11.0"], "11.x"),
        (["cudnn64_7.dll"], None),
    ],
)  # fmt: skip
def test_version_of_runtime(names, version):
    assert cuda.version_of_runtime(names) == version


def test_version_is_what_the_toolkit_says(tmp_path):
    folder = tmp_path / "kit"
    toolkit(folder, "cudart64_110.dll")
    assert cuda.toolkit(str(folder), set())["version"] == "11.x"
    (folder / "version.txt").write_text("CUDA Version 11.0.228\n")
    assert cuda.toolkit(str(folder), set())["version"] == "11.0"
    (folder / "version.json").write_text('{"cuda": {"name": "CUDA SDK", "version": "11.2.20210301"}}')
    assert cuda.toolkit(str(folder), set())["version"] == "11.2"
    (folder / "version.json").write_text("{broken")
    assert cuda.toolkit(str(folder), set())["version"] == "11.0"


def test_cudnn_from_the_header_only_beside_a_library(tmp_path):
    folder = tmp_path / "v11.2"
    toolkit(folder, "cudart64_110.dll")
    (folder / "include").mkdir()
    (folder / "include" / "cudnn_version.h").write_text(
        "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 1\n#define CUDNN_PATCHLEVEL 0\n"
    )
    assert cuda.toolkit(str(folder), set())["cudnn"] is None
    (folder / "bin" / "cudnn64_8.dll").write_bytes(pe_builder.build())
    assert cuda.toolkit(str(folder), set())["cudnn"] == "8.1.0"


def test_collector(tmp_path, monkeypatch):
    first = toolkit(tmp_path / "v10.0", "cudart64_100.dll")
    second = toolkit(tmp_path / "v10.1", "cudart64_101.dll")
    loose = tmp_path / "dlls"
    loose.mkdir()
    (loose / "cudnn64_7.dll").write_bytes(pe_builder.cudnn(7401))
    variable = "PATH" if os.name == "nt" else "LD_LIBRARY_PATH"
    monkeypatch.setenv(variable, os.pathsep.join([os.path.join(first, "bin"), str(loose)]))
    value, _ = COLLECTORS["cuda.toolkits"].function({})
    found = {entry["folder"]: entry for entry in value}
    assert found[first]["on_path"] is True
    assert found[second]["on_path"] is False  # the sibling of what is on PATH
    assert found[str(loose)]["cudnn"] == "7.4.1"
    assert found[str(loose)]["version"] is None
