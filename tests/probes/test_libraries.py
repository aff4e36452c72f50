"""gpu_libraries: every way in which a library that is opened by name fails, on Windows and Linux."""

from __future__ import annotations

import ntpath
import posixpath
from typing import Any

import pytest

from tests.probes.evidence_words import run
from tftriage.tables import Build, Tables

TABLES = Tables(
    builds=(
        Build(package="tensorflow-gpu", version="2.1", system="Windows", pythons=("3.7",), cuda="10.1", cudnn="7.6.5"),
    )
)
PATH = "C:\\on path"
KIT = "C:\\CUDA\\v10.1"
NAMES = ("cudart64_101.dll", "cublas64_10.dll", "cudnn64_7.dll")


def pe(*imports: str, machine: str = "x64", **more: Any) -> dict[str, Any]:
    return {"machine": machine, "imports": list(imports), "delay_imports": [], "error": None, **more}


def tree(files: dict[str, Any], roots: tuple[str, ...] = NAMES, **more: Any) -> Any:
    folders: dict[str, list[str]] = {"C:\\Windows\\System32": [], PATH: []}
    for file in files:
        folders.setdefault(ntpath.dirname(file), []).append(ntpath.basename(file))
    context = {"python": [3, 7], "python_folder": "C:\\py37", "path": [PATH], "cwd": "C:\\w"}
    return {"roots": list(roots), "context": context, "folders": folders, "files": files, "elsewhere": {},
            "near": {}, **more}  # fmt: skip


def have(*names: str) -> dict[str, Any]:
    return {f"{PATH}\\{name}": pe() for name in names}


def live(**codes: Any) -> dict[str, Any]:
    """What opening gave: ``cudart64_101=126``; all that is not named opens; a text is an error without a code."""
    names = dict.fromkeys((*NAMES, "nvcuda.dll", "nvinfer.dll"), 0) | {f"{key}.dll": c for key, c in codes.items()}
    return {"opened": [{"name": n, "code": c, "path": None, "error": None} for n, c in names.items()]}


def libs(recorded: Any = None, **more: Any) -> Any:
    facts = {"tf__package": {"version": "2.1.0"}, **more}
    return run("gpu_libraries", TABLES, **facts, **({"dlls__tree": recorded} if recorded else {}))


def test_all_found_whatever_the_optional_ones_and_the_driver_do():
    assert libs(tf__libraries=live(nvinfer=126)).answer == "all-found"
    found = libs(tf__libraries=live(nvcuda=126))
    assert found.answer == "all-found"
    assert [line.key for line in found.evidence] == ["lib.opened", "lib.driver"]
    assert libs(tree(have(*NAMES))).answer == "all-found"  # without a live attempt the model answers


def test_elsewhere():
    gone = {"cudart64_101.dll": [KIT + "\\bin\\cudart64_101.dll"], "cublas64_10.dll": [KIT + "\\bin\\cublas64_10.dll"]}
    found = libs(tree(have("cudnn64_7.dll"), elsewhere=gone), tf__libraries=live(cudart64_101=126, cublas64_10=126))
    assert found.answer == "cuda-elsewhere"
    assert found.values["folder"] == KIT + "\\bin"
    assert found.values["missing"] == "cudart64_101.dll, cublas64_10.dll"
    assert found.values["wanted_version"] == "10.1"
    dnn = libs(tree(have(*NAMES[:2]), elsewhere={"CUDNN64_7.dll": ["D:\\c\\cudnn64_7.dll"]}),
               tf__libraries=live(cudnn64_7=126))  # fmt: skip
    assert (dnn.answer, dnn.values["folders"]) == ("cudnn-elsewhere", "D:\\c")


def test_a_toolkit_is_enough_to_know_where_a_library_is():
    kit = [{"version": "10.1", "folder": KIT, "bin": KIT + "\\bin", "libraries": ["cudart64_101.dll"]}]
    found = libs(tf__libraries=live(cudart64_101=126), cuda__toolkits=kit)
    assert (found.answer, found.values["folder"]) == ("cuda-elsewhere", KIT + "\\bin")
    bare = [{"version": "11.0", "folder": "C:\\CUDA\\v11.0", "bin": None, "libraries": ["cudart64_110.dll"]}]
    other = libs(tf__libraries=live(cudart64_101=126), cuda__toolkits=bare)
    assert (other.answer, other.values["found_version"]) == ("cuda-other-version", "11.0")


def test_missing_is_not_claimed_when_nobody_looked_elsewhere():
    found = libs(tf__libraries=live(cudart64_101=126))
    assert (found.answer, found.reason) == ("unknown", "dlls.tree: not-recorded")
    assert found.values["missing"] == "cudart64_101.dll"


def test_other_version_missing_and_only_cudnn_missing():
    wrong = {"cudart64_110.dll": ["D:\\x\\cudart64_110.dll"]}
    found = libs(tree(have(*NAMES[1:]), elsewhere=wrong), tf__libraries=live(cudart64_101=126))
    assert (found.answer, found.values["found_version"]) == ("cuda-other-version", "11.0")
    assert (
        libs(tree(have("cudnn64_7.dll")), tf__libraries=live(cudart64_101=126, cublas64_10=126)).answer
        == "cuda-missing"
    )
    assert libs(tree({}), tf__libraries=live(cudart64_101=126, cudnn64_7=126)).answer == "cuda-missing"
    assert libs(tree(have(*NAMES[:2])), tf__libraries=live(cudnn64_7=126)).answer == "cudnn-missing"


def test_renamed():
    near = PATH + "\\cudnn64_7 (1).dll"
    recorded = tree({**have(*NAMES[:2]), near: pe()}, near={"cudnn64_7.dll": [near, near.upper()]})
    found = libs(recorded, tf__libraries=live(cudnn64_7=126))
    assert (found.answer, found.values["near"]) == ("cudnn-renamed", near)


def test_copies_of_the_wrong_machine_type_are_no_cure():
    small = "D:\\x86\\cudnn64_7.dll"
    recorded = tree({**have(*NAMES[:2]), small: pe(machine="x86")}, elsewhere={"cudnn64_7.dll": [small]})
    assert libs(recorded, tf__libraries=live(cudnn64_7=126)).answer == "cudnn-missing"
    recorded["context"]["bits"] = 32
    assert libs(recorded, tf__libraries=live(cudnn64_7=126)).answer == "cudnn-elsewhere"


@pytest.mark.parametrize("header", [pe(machine="x86"), {"error": "truncated"}])
def test_wrong_machine(header):
    recorded = tree({**have("cublas64_10.dll"), PATH + "\\cudnn64_7.dll": header, "C:\\py37\\cudart64_101.dll": pe()})
    found = libs(recorded, tf__libraries=live(cudnn64_7=193))
    assert (found.answer, found.values["dll"]) == ("wrong-machine", PATH + "\\cudnn64_7.dll")
    assert libs(recorded).answer == "wrong-machine"  # the model alone sees it too
    blind = libs(tf__libraries=live(cudnn64_7=193, cudart64_101=126))
    assert (blind.answer, blind.values["dll"]) == ("wrong-machine", "cudnn64_7.dll")


def test_a_child_is_missing_or_of_the_wrong_kind():
    files = {**have(*NAMES[:2]), PATH + "\\cudnn64_7.dll": pe("zlibwapi.dll")}
    found = libs(tree(files), tf__libraries=live(cudnn64_7=126))
    assert (found.answer, found.values["dll"], found.values["importer"]) == (
        "child-missing", "zlibwapi.dll", "cudnn64_7.dll",
    )  # fmt: skip
    files[PATH + "\\zlibwapi.dll"] = pe(machine="x86")
    wrong = libs(tree(files), tf__libraries=live(cudnn64_7=126))
    assert (wrong.answer, wrong.values["dll"]) == ("wrong-machine", PATH + "\\zlibwapi.dll")


def test_the_victim_of_another_missing_library_is_not_the_cause():
    files = {PATH + "\\cudnn64_7.dll": pe("cublas64_10.dll"), **have("cudart64_101.dll")}
    found = libs(tree(files), tf__libraries=live(cudnn64_7=126, cublas64_10=126))
    assert (found.answer, found.values["dll"]) == ("cuda-missing", "cublas64_10.dll")
    assert found.values["missing"] == "cublas64_10.dll"


def test_codes_that_files_explain_and_codes_that_they_do_not():
    exports = libs(tree(have(*NAMES)), tf__libraries=live(cublas64_10=127))
    assert (exports.answer, exports.values["dll"]) == ("cuda-other-version", "cublas64_10.dll")
    denied = libs(tree(have(*NAMES)), tf__libraries=live(cublas64_10=5))
    assert denied.answer == "unknown"
    assert "cublas64_10.dll does not open (5)" in denied.reason
    assert libs(tree(have(*NAMES)), tf__libraries=live(cublas64_10=126)).answer == "unknown"  # the model finds it
    assert libs(tf__libraries=live(cublas64_10=225)).answer == "unknown"


def test_without_a_live_attempt_the_log_names_the_missing():
    log = (
        "W dso_loader.cc:55] Could not load dynamic library 'nvinfer.dll'; dlerror: nvinfer.dll not found\n"
        "W dso_loader.cc:55] Could not load dynamic library 'cudnn64_7.dll'; dlerror: cudnn64_7.dll not found\n"
    )
    assert libs(tree(have(*NAMES[:2])), tf__gpus={"log": log}).answer == "cudnn-missing"
    old = "I dso_loader.cc:53] Could not dlopen library 'cudart64_100.dll'; dlerror: cudart64_100.dll not found"
    found = libs(tree({}), tf__gpus={"log": old}, tf__package=None)
    assert (found.answer, found.values["wanted_version"]) == ("cuda-missing", "10.0")
    dnn = libs(tree(have(*NAMES[:2])), tf__gpus={"log": log}, tf__package={"version": "9.9"})
    assert dnn.values["wanted_version"] == "7"


def test_unknown():
    assert libs().reason == "tf.libraries: not-recorded"
    assert libs(tf__gpus={"log": None}).answer == "unknown"
    none = libs(tf__libraries={"opened": []})
    assert none.reason == "tf.libraries: it is not known which libraries this build opens"


# ---------------------------------------------------------------- Linux

LIB = "/usr/lib/x86_64-linux-gnu"
LINUX = ("libcudart.so.10.1", "libcudnn.so.7")


def ltree(files: dict[str, Any], **more: Any) -> Any:
    folders: dict[str, list[str]] = {LIB: []}
    for file in files:
        folders.setdefault(posixpath.dirname(file), []).append(posixpath.basename(file))
    context = {"python_folder": "/usr/bin", "path": [], "cwd": "/"}
    return {"roots": list(LINUX), "context": context, "folders": folders, "files": files, **more}


def elf(bits: int = 64, *needed: str) -> dict[str, Any]:
    return {"elf_class": bits, "needed": list(needed), "rpath": [], "runpath": [], "error": None}


def opened(**errors: str | None) -> Any:
    names = {
        "libcudart.so.10.1": errors.get("cudart"),
        "libcudnn.so.7": errors.get("cudnn"),
        "libnvinfer.so.6": "x: no",
    }
    return {"opened": [{"name": n, "code": None, "path": None, "error": e} for n, e in names.items()]}


GONE = "{}: cannot open shared object file: No such file or directory"


def test_linux_found_elsewhere_other_version_missing():
    assert libs(tf__libraries=opened()).answer == "all-found"
    dnn = {LIB + "/libcudnn.so.7": elf()}
    failed = opened(cudart=GONE.format("libcudart.so.10.1"))
    away = libs(ltree(dnn, elsewhere={"libcudart.so.10.1": ["/opt/c/libcudart.so.10.1"]}), tf__libraries=failed)
    assert (away.answer, away.values["folder"], away.values["folders"]) == ("cuda-elsewhere", "/opt/c", "/opt/c")
    kit = [{"version": "11.0", "folder": "/usr/local/cuda-11.0", "bin": "/usr/local/cuda-11.0/lib64",
            "libraries": ["libcudart.so.11.0"]}]  # fmt: skip
    other = libs(ltree(dnn), tf__libraries=failed, cuda__toolkits=kit)
    assert (other.answer, other.values["found_version"]) == ("cuda-other-version", "11.0")
    assert libs(ltree(dnn), tf__libraries=failed).answer == "cuda-missing"
    both = opened(cudart=GONE.format("libcudart.so.10.1"), cudnn=GONE.format("libcudnn.so.7"))
    assert libs(ltree({}), tf__libraries=both).values["missing"] == "libcudart.so.10.1, libcudnn.so.7"


@pytest.mark.parametrize(
    "error", ["libcudart.so.10.1: wrong ELF class: ELFCLASS32", "/v/libcudart.so.10.1: file too short"]
)
def test_linux_wrong_machine(error):
    assert libs(tf__libraries=opened(cudart=error)).answer == "wrong-machine"


def test_linux_child_and_symbols():
    told = libs(tf__libraries=opened(cudnn=GONE.format("libz.so.1")))
    assert (told.answer, told.values["dll"], told.values["importer"]) == ("child-missing", "libz.so.1", "libcudnn.so.7")
    symbols = opened(cudart="/v/libcudart.so.10.1: undefined symbol: x")
    assert libs(tf__libraries=symbols).answer == "cuda-other-version"


def test_linux_32_bit_copy_elsewhere_is_no_cure():
    files = {"/opt/32/libcudart.so.10.1": elf(32), LIB + "/libcudnn.so.7": elf()}
    assert libs(ltree(files), tf__libraries=opened(cudart=GONE.format("libcudart.so.10.1"))).answer == "cuda-missing"


def test_a_library_that_lacks_functions_is_another_version_even_before_it_is_opened():
    files = have(*NAMES) | {f"{PATH}\\cudnn64_7.dll": pe("cudart64_101.dll")}
    lacks = [{"importer": f"{PATH}\\cudnn64_7.dll", "dll": f"{PATH}\\cudart64_101.dll", "count": 1, "names": ["f"]}]
    assert libs(tree(files, missing_exports=lacks)).answer == "cuda-other-version"
