"""The ld.so model: RPATH, LD_LIBRARY_PATH, RUNPATH, cache and default folders; wrong classes are passed over."""

from __future__ import annotations

import posixpath
from typing import Any

import pytest

from tftriage.loader import Entry, resolve

SITE = "/home/alice/env/lib/python3.7/site-packages"
PYWRAP = SITE + "/tensorflow/python/_pywrap_tensorflow_internal.so"
FRAMEWORK = SITE + "/tensorflow/libtensorflow_framework.so.2"
LIB = "/usr/lib/x86_64-linux-gnu"


def elf(*needed: str, bits: int = 64, **more: Any) -> dict[str, Any]:
    return {"elf_class": bits, "needed": list(needed), "rpath": [], "runpath": [], "error": None, **more}


def linux(files: dict[str, dict[str, Any] | None], roots: list[str] | None = None, **context: Any) -> dict[str, Any]:
    listing: dict[str, list[str]] = {LIB: []}
    for file in files:
        listing.setdefault(posixpath.dirname(file), []).append(posixpath.basename(file))
    return {
        "roots": roots or [PYWRAP],
        "context": {"python_folder": "/home/alice/env/bin", "path": [], "cwd": "/home/alice", **context},
        "folders": listing,
        "files": {file: header for file, header in files.items() if header is not None},
    }


def entry(tree: dict[str, Any], name: str, **how: Any) -> Entry:
    return next(one for one in resolve(tree, **how).entries if one.name == name)


def test_the_order_of_places():
    """Each step takes away the winner."""
    name = "libcublas.so.10.0"
    places = {
        "rpath": SITE + "/tensorflow/_solib/" + name,
        "ld-library-path": "/opt/cuda/lib64/" + name,
        "cache": "/usr/local/cuda/lib/" + name,
        "default": LIB + "/" + name,
    }
    seen = []
    while places:
        tree = linux(
            {PYWRAP: elf(name, rpath=["$ORIGIN/../_solib"]), **{path: elf() for path in places.values()}},
            path=["/opt/cuda/lib64"], cache={name: places["cache"]} if "cache" in places else {},
        )  # fmt: skip
        found = entry(tree, name)
        assert found.path == places[found.rule]
        assert len(found.shadowed) == len(places) - 1
        seen.append(found.rule)
        del places[found.rule]
    assert seen == ["rpath", "ld-library-path", "cache", "default"]


def test_runpath_comes_after_the_variable_and_switches_rpath_off():
    files = {
        PYWRAP: elf("liba.so", "libb.so", rpath="/r1:/r2", runpath=["${ORIGIN}/lib"]),
        posixpath.dirname(PYWRAP) + "/lib/liba.so": elf("libc2.so"),
        posixpath.dirname(PYWRAP) + "/lib/libc2.so": elf(),  # RUNPATH does not serve the libraries below
        "/r1/libb.so": elf(),
        "/v/liba.so": elf(),
    }
    assert entry(linux(files), "liba.so").rule == "runpath"
    assert entry(linux(files, path=["/v"]), "liba.so").rule == "ld-library-path"
    assert entry(linux(files), "libb.so").failure == "absent"
    assert entry(linux(files), "libc2.so").failure == "absent"
    assert [copy.path for copy in entry(linux(files), "libb.so").unsearched] == ["/r1/libb.so"]


def test_rpath_serves_the_libraries_below_too():
    files = {PYWRAP: elf("liba.so", rpath="/r1:/r2"), "/r1/liba.so": elf("libb.so"), "/r2/libb.so": elf()}
    assert entry(linux(files), "libb.so").rule == "rpath"
    files["/r1/liba.so"] = elf("libb.so", runpath=["/else"])
    assert entry(linux(files), "libb.so").failure == "absent"


def test_a_name_opened_at_run_time_is_searched_for_the_file_that_opens_it():
    """TensorFlow 2.21: libtensorflow_framework's RUNPATH names the wheels of CUDA, but not the one of cusolver."""
    blas, solver = SITE + "/nvidia/cublas/lib/libcublas.so.12", SITE + "/nvidia/cusolver/lib/libcusolver.so.11"
    files = {
        FRAMEWORK: elf(runpath=["$ORIGIN/../nvidia/cublas/lib"]), blas: elf(), solver: elf("libcublas.so.12"),
    }  # fmt: skip
    tree = linux(files, roots=["libcublas.so.12", "libcusolver.so.11"])
    assert entry(tree, "libcublas.so.12").rule == "runpath"
    assert entry(tree, "libcusolver.so.11").failure == "absent"
    cured = resolve(tree, with_path=[posixpath.dirname(solver)])
    assert cured.complete
    assert [one.rule for one in cured.entries] == ["runpath", "ld-library-path", "loaded"]
    assert resolve(linux({solver: elf()}, roots=["libcusolver.so.11"])).entries[0].failure == "absent"
    told = linux(files, roots=["libcublas.so.12"], caller=PYWRAP)
    assert entry(told, "libcublas.so.12").failure == "absent"


def test_another_class_is_passed_over_but_named_when_alone():
    files = {PYWRAP: elf("liba.so"), "/v/liba.so": elf(bits=32), LIB + "/liba.so": elf()}
    assert entry(linux(files, path=["/v"]), "liba.so").path == LIB + "/liba.so"
    del files[LIB + "/liba.so"]
    alone = entry(linux(files, path=["/v"]), "liba.so")
    assert (alone.failure, alone.machine) == ("wrong-machine", "x86")
    assert entry(linux(files, path=["/v"], bits=32), PYWRAP.rsplit("/", 1)[1]).failure == "wrong-machine"


@pytest.mark.parametrize(("error", "failure"), [("not-elf", "not-a-pe"), ("unreadable", "unreadable")])
def test_a_file_that_is_no_library_ends_the_search(error, failure):
    files = {PYWRAP: elf("liba.so"), "/v/liba.so": {"error": error}, LIB + "/liba.so": elf()}
    found = entry(linux(files, path=["/v"]), "liba.so")
    assert (found.path, found.failure) == ("/v/liba.so", failure)
    assert [copy.path for copy in found.shadowed] == [LIB + "/liba.so"]


def test_glibc_is_there_names_keep_their_case_and_a_header_may_be_missing():
    tree = linux({PYWRAP: elf("libc.so.6", "libpthread.so.0", "LibA.so"), LIB + "/liba.so": None})
    assert [one.rule for one in resolve(tree).entries[1:]] == ["known-dll", "known-dll", "nowhere"]
    assert entry(linux({PYWRAP: elf("liba.so"), LIB + "/liba.so": None}), "liba.so").failure is None


def test_absent_roots_relative_roots_and_what_nobody_looked_into():
    tree = linux({"/home/alice/x.so": elf()}, roots=["/gone/y.so", "./x.so"])
    assert [one.failure for one in resolve(tree).entries] == ["absent", None]
    assert resolve(tree).unlisted == ()
    del tree["folders"][LIB]
    assert resolve(tree).unlisted == ("ld.so.cache",)
    assert resolve({**tree, "incomplete": True}).incomplete


def test_what_if_a_file_were_there():
    tree = linux({PYWRAP: elf("libcudnn.so.7")})
    tree["near"] = {"libcudnn.so.7": ["/opt/libcudnn.so.7.bak"]}
    tree["elsewhere"] = {"libcudnn.so.7": ["/opt/cudnn/libcudnn.so.7"]}
    assert [copy.path for copy in entry(tree, "libcudnn.so.7").unsearched] == ["/opt/cudnn/libcudnn.so.7"]
    assert resolve(tree, with_files={LIB + "/libcudnn.so.7": elf()}).complete


def test_the_rpath_of_the_program_serves_all_that_have_no_runpath():
    """conda's python has the RPATH $ORIGIN/../lib: its libraries are found without LD_LIBRARY_PATH."""
    python, lib = "/opt/conda/bin/python3.10", "/opt/conda/bin/../lib/libcudart.so.11.0"
    files = {PYWRAP: elf("libcudart.so.11.0"), python: elf(rpath=["$ORIGIN/../lib"]), lib: elf()}
    assert entry(linux(files), "libcudart.so.11.0").failure == "absent"
    found = entry(linux(files, program=python), "libcudart.so.11.0")
    assert (found.rule, posixpath.normpath(found.path or "")) == ("rpath", "/opt/conda/lib/libcudart.so.11.0")
    files[PYWRAP] = elf("libcudart.so.11.0", runpath=["/else"])
    assert entry(linux(files, program=python), "libcudart.so.11.0").failure == "absent"
    files |= {PYWRAP: elf("libcudart.so.11.0"), python: elf(rpath=["$ORIGIN/../lib"], runpath=["/else"])}
    assert entry(linux(files, program=python), "libcudart.so.11.0").failure == "absent"


def test_a_file_that_calls_itself_what_is_asked_for_is_taken():
    files = {
        PYWRAP: elf("libblas.so", "libuser.so"), "/v/libblas.so": elf(soname="libblas.so.3"),
        "/v/libuser.so": elf("libblas.so.3"), "/v/broken.so": elf("libblas.so", "gone.so"),
    }  # fmt: skip
    found = entry(linux(files, path=["/v"]), "libblas.so.3")
    assert (found.rule, found.path) == ("loaded", "/v/libblas.so")
    opened = resolve(linux(files, roots=[PYWRAP, "libblas.so.3"], path=["/v"]))
    assert opened.of("libblas.so.3")[0].rule == "loaded"
    failed = resolve(linux(files, roots=["/v/broken.so", "libblas.so.3"], path=["/v"]))
    assert failed.of("libblas.so.3")[0].failure == "absent"  # what failed to load left nothing behind


def test_two_paths_of_one_file_do_not_hide_each_other():
    real = LIB + "/liba.so.1.2"
    files = {PYWRAP: elf("liba.so.1"), "/lib/liba.so.1": elf(real=real), LIB + "/liba.so.1": elf(real=real)}
    tree = linux(files, path=["/lib", LIB])
    assert entry(tree, "liba.so.1").shadowed == ()
    tree["files"][LIB + "/liba.so.1"] = elf()
    assert [copy.path for copy in entry(tree, "liba.so.1").shadowed] == [LIB + "/liba.so.1"]
