"""File names as words, the form of the answer, and which system a tree comes from."""

from __future__ import annotations

import json

import pytest

from tests.loader.machine import CUDA, PY37, PYD, SYSTEM32, pe, windows
from tftriage.loader import base, changes, describe, folder, is_elf, library, resolve


@pytest.mark.parametrize(
    ("name", "kind", "family", "version"),
    [
        ("nvcuda.dll", "driver", "cuda", ""),
        ("libcuda.so.1", "driver", "cuda", ""),
        ("cudart64_110.dll", "cuda", "cudart", "110"),
        ("C:\\CUDA\\bin\\CUBLAS64_10.DLL", "cuda", "cublas", "10"),
        ("cublasLt64_11.dll", "cuda", "cublaslt", "11"),
        ("libcublasLt.so.12", "cuda", "cublaslt", "12"),
        ("/usr/lib/libcudart.so.10.1", "cuda", "cudart", "10.1"),
        ("libcudart.so", "cuda", "cudart", ""),
        ("nvrtc64_101_0.dll", "cuda", "nvrtc", "101_0"),
        ("cudnn64_7.dll", "cudnn", "cudnn", "7"),
        ("cudnn_ops_infer64_8.dll", "cudnn", "cudnn_ops_infer", "8"),
        ("libcudnn.so.7.6.5", "cudnn", "cudnn", "7.6.5"),
        ("cudnn64_7_v741.dll", "other", "cudnn64_7_v741.dll", ""),
        ("MSVCP140.dll", "vc-runtime", "msvcp140", ""),
        ("vcruntime140_1.dll", "vc-runtime", "vcruntime140_1", ""),
        ("concrt140.dll", "vc-runtime", "concrt140", ""),
        ("nvinfer.dll", "optional", "nvinfer", ""),
        ("libnvinfer_plugin.so.6", "optional", "nvinfer_plugin", "6"),
        ("cupti64_101.dll", "optional", "cupti", "101"),
        ("cupti64_2020.1.1.dll", "optional", "cupti", "2020.1.1"),
        ("zlibwapi.dll", "other", "zlibwapi.dll", ""),
    ],
)
def test_what_a_file_name_says(name, kind, family, version):
    said = library(name)
    assert (said.kind, said.family, said.version) == (kind, family, version)


def test_names_and_folders_of_both_systems():
    assert (base("C:\\a\\b.dll"), folder("C:\\a\\b.dll")) == ("b.dll", "C:\\a")
    assert (base("/a/b.so"), folder("/a/b.so"), folder("b.so")) == ("b.so", "/a", "")


def test_the_description_is_json_and_tells_everything():
    tree = windows(
        {
            PYD: pe("cudnn64_7.dll", "MSVCP140.dll"),
            SYSTEM32 + "\\msvcp140.dll": pe(file_version="14.29.30139.0"),
            "D:\\b\\msvcp140.dll": pe(file_version="14.0.24215.1"),
            CUDA + "\\cudnn64_7.dll": pe(cudnn_version="7.4.1"),
        },
        path=("D:\\b", '"C:\\q"'),
    )
    said = json.loads(json.dumps(describe(resolve(tree))))
    assert (said["format"], said["complete"], said["missing"]) == ("pe", False, ["cudnn64_7.dll"])
    assert said["ignored_path_entries"] == [{"entry": '"C:\\q"', "reason": "quoted"}]
    assert said["not_looked_into"] == [] and said["incomplete"] is False
    (root,) = said["roots"]
    assert root["root"] == PYD
    assert root["search_order"][1] == {"rule": "system32", "folder": SYSTEM32}
    first, dnn, runtime = root["libraries"]
    assert (first["importer"], first["failure"]) == (None, "child-absent")
    assert dnn == {
        "name": "cudnn64_7.dll", "chain": [base(PYD)], "importer": base(PYD), "rule": "nowhere", "path": None,
        "version": None, "machine": None, "failure": "absent", "code": 126, "lacks": [], "lacked_by": None,
        "older_than": None, "optional": False, "shadowed": [],
        "not_searched": [
            {"path": CUDA + "\\cudnn64_7.dll", "rule": "nowhere", "version": "7.4.1", "machine": "x64"}
        ],
    }  # fmt: skip
    assert (runtime["path"], runtime["version"]) == (SYSTEM32 + "\\msvcp140.dll", "14.29.30139.0")
    assert root["initialisers"] == ["MSVCP140.dll", base(PYD)]
    assert runtime["shadowed"][0]["path"] == "D:\\b\\msvcp140.dll"


def test_what_a_change_would_change():
    tree = windows({PYD: pe("a.dll", "b.dll"), SYSTEM32 + "\\b.dll": pe(), CUDA + "\\a.dll": pe("c.dll", "b.dll")})
    before = resolve(tree)
    told = changes(before, resolve(tree, with_path=[CUDA]))
    assert [(was and was.failure, will and (will.rule, will.failure)) for was, will in told] == [
        ("absent", ("path", "child-absent")), (None, ("nowhere", "absent"))
    ]  # fmt: skip
    assert [will for _, will in changes(resolve(tree, with_path=[CUDA]), before)][1:] == [None]
    assert changes(before, before) == []


def test_the_system_is_known_by_its_paths():
    assert not is_elf({})
    assert not is_elf(windows({}))
    assert not is_elf({"context": {}, "files": {PY37 + "\\a.dll": {}}})
    assert is_elf({"files": {"/usr/lib/liba.so": {}}})
    assert is_elf({"context": {"python_folder": "/usr/bin"}})
