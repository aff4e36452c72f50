"""cpu_avx, search_rule, export_owner, init_cause, cudnn_version, package_name: every answer, and when there is none."""

from __future__ import annotations

import ntpath
from typing import Any

import pytest

from tests.probes.evidence_words import LINUX, WIN10, run
from tftriage.facts import Fact
from tftriage.probes.cudnn import fits, spoken
from tftriage.tables import Build, Tables

PYD = "C:\\py\\Lib\\site-packages\\tensorflow\\python\\_pywrap.pyd"
LIB = "C:\\py\\Library\\bin"
KIT = "C:\\CUDA\\v10.1\\bin"
TABLES = Tables(
    builds=(
        Build(package="tensorflow-gpu", version="2.1.0", system="Windows", pythons=("3.7",), cuda="10.1",
              cudnn="7.6.5", vc_floor="14.24", source="test"),
        Build(package="tensorflow", version="2.18.1", system="Windows", pythons=("3.11",), vc_floor="14.38",
              source="test"),
        Build(package="tensorflow", version="2.21", system="Linux", pythons=("3.12",), cuda="12.5", cudnn="9.3",
              source="test"),
    )
)  # fmt: skip


def pe(*imports: str, **more: Any) -> dict[str, Any]:
    return {"machine": "x64", "imports": list(imports), "delay_imports": [], "error": None, **more}


def tree(files: dict[str, Any], roots: tuple[str, ...] = (PYD,), path: tuple[str, ...] = (KIT,), **more: Any) -> Any:
    folders: dict[str, list[str]] = {"C:\\Windows\\System32": [], "C:\\py": [], **{folder: [] for folder in path}}
    for file in files:
        folders.setdefault(ntpath.dirname(file), []).append(ntpath.basename(file))
    context = {"python": [3, 7], "python_folder": "C:\\py", "path": list(path), "cwd": "C:\\w", "prefix": "C:\\py"}
    context |= more.pop("context", {})
    return {"roots": list(roots), "context": context, "folders": folders, "files": files, "elsewhere": {}, "near": {},
            **more}  # fmt: skip


def python(version: tuple[int, ...] = (3, 7, 16), **more: Any) -> dict[str, Any]:
    found = {"version": list(version), "prefix": "C:\\py", "conda": False, "activated": None, "store": False}
    return found | more


# --- cpu_avx


def test_avx_is_what_the_processor_says() -> None:
    assert run("cpu_avx", system__cpu={"name": "Core i5", "avx": True}).answer == "yes"
    found = run("cpu_avx", system__cpu={"name": "Pentium G4560", "avx": False})
    assert (found.answer, found.values["cpu"]) == ("no", "Pentium G4560")
    assert run("cpu_avx", system__cpu={"name": None, "avx": None}).answer == "unknown"
    assert run("cpu_avx").answer == "unknown"


def test_tensorflow_s_own_words_count_more() -> None:
    text = "The TensorFlow library was compiled to use AVX2\ninstructions, but these aren't available on your machine."
    found = run("cpu_avx", paste=text, system__cpu={"name": "x", "avx": True})
    assert (found.answer, found.values["instructions"]) == ("no", "AVX2")
    harmless = "The TensorFlow library wasn't compiled to use AVX instructions, but these are available on your machine"
    assert run("cpu_avx", paste=harmless, system__cpu={"name": "x", "avx": True}).answer == "yes"


# --- search_rule


def lost(folder: str | None, **more: Any) -> Any:
    elsewhere = {"mkl.dll": [f"{folder}\\mkl.dll"]} if folder else {}
    return tree({PYD: pe("mkl.dll")}, elsewhere=elsewhere, **more)


def test_the_rule_that_keeps_a_file_from_being_found() -> None:
    inactive = run("search_rule", dlls__tree=lost(LIB), target__interpreter=python(conda=True, activated=False))
    assert (inactive.answer, inactive.values["folder"]) == ("conda-inactive", LIB)
    new = {"context": {"python": [3, 8]}}
    ignored = run("search_rule", dlls__tree=lost(KIT, **new), target__interpreter=python((3, 8, 18)))
    assert (ignored.answer, ignored.values["python_version"]) == ("not-searched", "3.8")
    assert ignored.evidence[-1].key == "search.path-ignored"
    other = run("search_rule", dlls__tree=lost("D:\\other", **new), target__interpreter=python((3, 8, 18)))
    assert (other.answer, other.evidence[-1].key) == ("not-searched", "search.not-added")
    shop = run("search_rule", dlls__tree=lost(KIT, **new), target__interpreter=python((3, 8, 10), store=True))
    assert shop.answer == "store"
    nowhere = run("search_rule", dlls__tree=lost(None), target__interpreter=python())
    assert (nowhere.answer, nowhere.values["dll"]) == ("nowhere", "mkl.dll")


def test_an_activated_environment_is_not_the_reason() -> None:
    found = run("search_rule", dlls__tree=lost("D:\\x"), target__interpreter=python(conda=True, activated=True))
    assert (found.answer, found.evidence[-1].key) == ("unknown", "search.not-on-path")


def test_the_rule_of_python_3_8_is_for_windows_only() -> None:
    so = "/e/lib/python3.9/site-packages/tensorflow/python/_pywrap.so"
    header = {"needed": ["libfoo.so.1"], "elf_class": 64, "error": None}
    recorded = {
        "roots": [so],
        "context": {"python": [3, 9], "path": [], "default": ["/lib64"], "cache": {"libc.so.6": "/lib64/libc.so.6"}},
        "folders": {"/lib64": []},
        "files": {so: header},
        "elsewhere": {"libfoo.so.1": ["/opt/foo/libfoo.so.1"]},
    }
    found = run("search_rule", dlls__tree=recorded, target__interpreter=python((3, 9, 18), prefix="/e"))
    assert (found.answer, found.evidence[-1].key) == ("unknown", "search.not-loaded-from")


def test_search_rule_does_not_guess() -> None:
    assert run("search_rule").answer == "unknown"
    assert run("search_rule", dlls__tree=tree({PYD: pe()}), target__interpreter=python()).answer == "unknown"
    half = run("search_rule", dlls__tree=lost(None, incomplete=True), target__interpreter=python())
    assert half.evidence[0].key == "search.not-everywhere"
    assert run("search_rule", dlls__tree=lost(LIB)).answer == "unknown"


# --- export_owner


@pytest.mark.parametrize(
    ("dll", "answer"),
    [
        ("cublas64_10.dll", "cuda"), ("cudnn64_7.dll", "cuda"), ("msvcp140.dll", "vc"), ("libiomp5md.dll", "openmp"),
        ("mkl_rt.dll", "openmp"), ("zlib.dll", "other"),
    ],
)  # fmt: skip
def test_the_owner_of_a_missing_function(dll: str, answer: str) -> None:
    path = f"{KIT}\\{dll}"
    files = {PYD: pe(dll), path: pe(file_version="1.2.3.4")}
    lacks = [{"importer": PYD, "dll": path, "count": 3, "names": ["f", "g"]}]
    found = run("export_owner", dlls__tree=tree(files, missing_exports=lacks))
    assert (found.answer, found.values["symbol"], found.values["found_version"]) == (answer, "f", "1.2.3.4")


def test_a_copy_that_is_not_loaded_harms_nobody() -> None:
    files = {PYD: pe("msvcp140.dll"), "C:\\Windows\\System32\\msvcp140.dll": pe(), f"{KIT}\\msvcp140.dll": pe()}
    lacks = [{"importer": PYD, "dll": f"{KIT}\\msvcp140.dll", "count": 1, "names": ["f"]}]
    assert run("export_owner", dlls__tree=tree(files, missing_exports=lacks)).evidence[0].key == "export.none"
    assert run("export_owner", dlls__tree=tree(files)).evidence[0].key == "export.not-recorded"
    assert run("export_owner").answer == "unknown"


# --- init_cause


def runtime(version: str) -> Any:
    files = {PYD: pe("MSVCP140.dll"), "C:\\py\\msvcp140.dll": pe(file_version=version)}
    return tree(files, context={"python": [3, 8]})


def test_a_runtime_older_than_the_linker() -> None:
    found = run("init_cause", TABLES, dlls__tree=runtime("14.16.27033.0"), tf__package={"version": "2.1.0"})
    assert found.answer == "old-runtime"
    assert (found.values["found_version"], found.values["wanted_version"]) == ("14.16.27033.0", "14.24")
    fit = run("init_cause", TABLES, dlls__tree=runtime("14.29.30133.0"), tf__package={"version": "2.1.0"})
    assert fit.answer == "none"
    cpu = run("init_cause", TABLES, dlls__tree=runtime("14.29.30133.0"), tf__package={"version": "2.18.0"})
    assert cpu.answer == "old-runtime"  # builds without GPU code need a runtime, too


def test_another_package_first() -> None:
    text = ">>> import torch\n>>> import tensorflow as tf\nImportError: DLL load failed"
    found = run("init_cause", TABLES, paste=text, tf__import={"ok": True})
    assert (found.answer, found.values["module"]) == ("import-order", "torch")
    turned = "import tensorflow\nimport torch\n"
    assert run("init_cause", TABLES, paste=turned, tf__import={"ok": True}).answer == "unknown"
    assert run("init_cause", TABLES, paste=text, tf__import={"ok": False}).answer == "unknown"


def test_init_cause_does_not_guess() -> None:
    assert (
        run("init_cause", TABLES, dlls__tree=runtime("14.16.1.0"), tf__package={"version": "9.9"}).answer == "unknown"
    )
    assert run("init_cause", TABLES, dlls__tree=tree({PYD: pe()}), tf__package={"version": "2.1.0"}).answer == "unknown"


# --- cudnn_version


@pytest.mark.parametrize(
    ("loaded", "compiled", "answer"),
    [
        ("7.4.1", "7.6.0", "too-old"), ("8.0.5", "8.1.0", "too-old"), ("7.6.5", "8.1.0", "too-old"),
        ("8.9.2", "7.6.0", "too-new"), ("6021", "5105", "too-new"), ("5103", "5105", "fits"),
        ("7.6.5", "7.4.1", "fits"), ("8.9.7", "8.1.0", "fits"), ("90100", "8900", "too-new"),
    ],
)  # fmt: skip
def test_the_two_versions_of_the_log(loaded: str, compiled: str, answer: str) -> None:
    text = f"Loaded runtime CuDNN library: {loaded} but source was compiled with: {compiled}.  CuDNN library major"
    assert run("cudnn_version", TABLES, paste=text).answer == answer
    old = (
        f"Loaded runtime CuDNN library: {loaded} (compatibility version 1) but source was compiled with {compiled} (x)"
    )
    assert run("cudnn_version", TABLES, tf__operation={"log": old}).answer == answer


def test_an_accepted_version_fits() -> None:
    found = run("cudnn_version", TABLES, paste="cuda_dnn.cc:369] Loaded cuDNN version 8100")
    assert (found.answer, found.values["loaded"]) == ("fits", "8.1.0")


def copies(first: str, second: str | None = None) -> Any:
    other = "D:\\other"
    files = {f"{KIT}\\cudnn64_7.dll": pe(cudnn_version=first)}
    if second:
        files[f"{other}\\cudnn64_7.dll"] = pe(cudnn_version=second)
    return tree(files, roots=("cudnn64_7.dll",), path=(KIT, other))


def test_the_files_tell_without_a_log() -> None:
    package = {"version": "2.1.0"}
    seen = {"tf__package": package, "system__os": WIN10}
    assert run("cudnn_version", TABLES, dlls__tree=copies("7.6.5"), **seen).answer == "fits"
    old = run("cudnn_version", TABLES, dlls__tree=copies("7.4.2"), **seen)
    assert (old.answer, old.values["dll"]) == ("too-old", f"{KIT}\\cudnn64_7.dll")
    two = run("cudnn_version", TABLES, dlls__tree=copies("7.4.2", "7.6.5"), **seen)
    assert (two.answer, two.values["other"]) == ("two-copies", "D:\\other\\cudnn64_7.dll")
    assert run("cudnn_version", TABLES, dlls__tree=copies("7.6.5", "7.4.2"), **seen).answer == "fits"
    unknown = run("cudnn_version", TABLES, dlls__tree=copies("7.6.5"), tf__package={"version": "9.9"}, system__os=WIN10)
    assert unknown.evidence[0].key == "cudnn.compiled-unknown"
    assert run("cudnn_version", TABLES).answer == "unknown"


def test_the_log_and_a_second_copy() -> None:
    text = "Loaded runtime CuDNN library: 7.4.2 but source was compiled with: 7.6.5."
    assert run("cudnn_version", TABLES, paste=text, dlls__tree=copies("7.4.2", "7.6.5")).answer == "two-copies"
    garbled = "Loaded runtime CuDNN library: 7..2 but source was compiled with: 7.6.5."
    assert run("cudnn_version", TABLES, paste=garbled).answer == "unknown"


def test_cudnn_8_says_its_version_through_its_toolkit() -> None:
    kit = [{"version": "10.1", "folder": "C:\\CUDA\\v10.1", "bin": KIT, "cudnn": "7.6.5", "libraries": []}]
    silent = tree({f"{KIT}\\cudnn64_7.dll": pe(file_version="6.14.11.10010")}, roots=("cudnn64_7.dll",))
    seen = {"dlls__tree": silent, "tf__package": {"version": "2.1.0"}, "system__os": WIN10}
    assert run("cudnn_version", TABLES, cuda__toolkits=kit, **seen).answer == "fits"
    assert run("cudnn_version", TABLES, **seen).answer == "unknown"


def test_the_wheels_of_nvidia() -> None:
    packages = {"nvidia-cudnn-cu12": {"name": "nvidia-cudnn-cu12", "version": "9.1.0.70", "folder": "/e/site-packages"}}
    seen = {"tf__package": {"version": "2.21.0"}, "system__os": LINUX}
    assert run("cudnn_version", TABLES, target__packages=packages, **seen).answer == "too-old"
    packages["nvidia-cudnn-cu12"]["version"] = "9.10.2.21"
    assert run("cudnn_version", TABLES, target__packages=packages, **seen).answer == "fits"


def test_numbers_as_people_write_them() -> None:
    assert [spoken(text) for text in ("7605", "90100", "8.1.0.", "8")] == ["7.6.5", "9.1.0", "8.1.0", "8"]
    assert fits("x", "7.6") is None


# --- package_name


def test_a_misspelt_name() -> None:
    captures = {"name": "tensorflow-gpuu", "meant": "tensorflow-gpu"}
    found = run("package_name", paste__symptom={"id": "x", "captures": captures}, paste="x")
    assert (found.answer, found.values) == ("typo", captures)
    assert run("package_name", paste="No matching distribution found for tensorflow==1.13").answer == "fine"
    assert run("package_name").answer == "unknown"
    assert run("package_name", paste__symptom=Fact("paste.symptom", "absent"), paste=" ").answer == "unknown"
