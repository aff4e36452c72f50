"""The tree of DLLs, built from small PE and ELF files in temporary folders."""

import os
import shutil
import subprocess
import sys

import pytest

from tests import pe_builder
from tftriage import loader
from tftriage.collect import dlls, pe, tree
from tftriage.collect.registry import COLLECTORS, Skipped

CRT = "api-ms-win-crt-runtime-l1-1-0.dll"


class Machine:
    """A Windows machine in a folder: Python, System32, PATH, a toolkit."""

    def __init__(self, base):
        self.base = base
        self.site = self.folder("Python37", "Lib", "site-packages", "tensorflow", "python")
        self.python = self.file("Python37", "python.exe", pe_builder.build(["python37.dll"]))
        self.file("Python37", "python37.dll", pe_builder.build(["KERNEL32.dll"], version=(3, 7, 9150, 1013)))
        self.file("Windows", "System32", "kernel32.dll", pe_builder.build(["ntdll.dll"], exports=["Sleep", "entry"]))
        self.file("Windows", "System32", "ntdll.dll", pe_builder.build())
        self.path = []

    def folder(self, *parts):
        path = os.path.join(str(self.base), *parts)
        os.makedirs(path, exist_ok=True)
        return path

    def file(self, *parts):
        *where, name, data = parts
        path = os.path.join(self.folder(*where), name)
        with open(path, "wb") as handle:
            handle.write(data)
        return path

    def tree(self, roots, elsewhere=(), **args):
        args = {"python": self.python, "cwd": self.folder("work"), **args}
        environment = {"PATH": os.pathsep.join(self.path), "SYSTEMROOT": self.folder("Windows")}
        context = dlls.windows_context(args, environment, roots)
        context["system32"] = self.folder("Windows", "System32")
        return dlls.windows_tree(args, roots, context, list(elsewhere))


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_closure_over_every_copy(machine):
    pyd = machine.file(
        "Python37", "Lib", "site-packages", "tensorflow", "python", "_pywrap_tensorflow_internal.pyd",
        pe_builder.build(["cudart64_100.dll", "KERNEL32.dll", "python37.dll", CRT], delay=["late.dll"]),
    )  # fmt: skip
    one = machine.file("one", "cudart64_100.dll", pe_builder.build(["helper.dll"], machine="x86"))
    two = machine.file("two", "CUDART64_100.DLL", pe_builder.build(["KERNEL32.dll"]))
    helper = machine.file("two", "helper.dll", pe_builder.build())
    toolkit = machine.file("CUDA", "v10.0", "bin", "cudart64_100.dll", pe_builder.build())
    machine.path = [machine.folder("one"), machine.folder("two"), os.path.join(str(machine.base), "gone")]
    found = machine.tree([pyd], [os.path.dirname(toolkit)])
    assert set(found["files"]) >= {pyd, one, two, helper, toolkit}
    assert found["files"][one]["machine"] == "x86"
    assert found["files"][pyd]["delay_imports"] == ["late.dll"]
    assert found["elsewhere"] == {"cudart64_100.dll": [toolkit]}
    assert found["apisets"] == [CRT]
    assert found["folders"][machine.folder("two")] == ["CUDART64_100.DLL", "helper.dll"]
    assert machine.path[2] not in found["folders"]  # nobody looked into a folder that is not there
    assert found["context"]["pyd_folder"] == machine.site
    assert found["context"]["python"] == [3, 7]
    assert found["context"]["bits"] == 64
    assert found["context"]["path"] == machine.path
    assert found["incomplete"] is False
    system = found["files"][os.path.join(machine.folder("Windows", "System32"), "kernel32.dll")]
    assert (system["followed"], system["imports"], system["machine"]) == (False, [], "x64")


def test_near_names_and_their_versions(machine):
    machine.path = [machine.folder("cudnn")]
    renamed = machine.file("cudnn", "cudnn64_7_v741.dll", pe_builder.cudnn(7401))
    backup = machine.file("cudnn", "cudnn64_7.dll.bak", pe_builder.cudnn(7605))
    other = machine.file("cudnn", "cudnn64_8.dll", pe_builder.build())
    found = machine.tree(["cudnn64_7.dll"])
    assert found["near"] == {"cudnn64_7.dll": [renamed, backup]} or found["near"] == {
        "cudnn64_7.dll": [backup, renamed]
    }
    assert found["files"][renamed]["cudnn_version"] == "7.4.1"
    assert found["files"][backup]["cudnn_version"] == "7.6.5"
    assert other not in found["files"]
    assert set(found["folders"][machine.path[0]]) == {"cudnn64_7_v741.dll", "cudnn64_7.dll.bak", "cudnn64_8.dll"}


@pytest.mark.parametrize(
    ("name", "wanted", "near"),
    [
        ("cudnn64_7_v741.dll", "cudnn64_7.dll", True), ("cudnn64_7 - Copy.dll", "cudnn64_7.dll", True),
        ("cudnn64_7 (1).dll", "cudnn64_7.dll", True), ("old_cudnn64_7.dll", "cudnn64_7.dll", True),
        ("CUDNN64_7.DLL.bak", "cudnn64_7.dll", True), ("cudnn64_7.dll", "cudnn64_7.dll", False),
        ("cudnn64_7.lib", "cudnn64_7.dll", False), ("cudnn64_8.dll", "cudnn64_7.dll", False),
        ("cublas64_100.dll", "cublas64_10.dll", False), ("cublasLt64_10.dll", "cublas64_10.dll", False),
        ("msvcp140_1.dll", "msvcp140.dll", False), ("msvcp140.dll.old", "msvcp140.dll", True),
        ("nvcuda_loader64.dll", "nvcuda.dll", False),
        ("libcudnn.so.7.6.5", "libcudnn.so.7", False), ("libcudnn.so.7.bak", "libcudnn.so.7", True),
        ("libcudnn.so", "libcudnn.so.7", False),
    ],
)  # fmt: skip
def test_looks_like(name, wanted, near):
    assert tree.looks_like(name, wanted) is near


def test_missing_exports(machine):
    root = machine.file("p", "user.pyd", pe_builder.build({"msvcp140.dll": ["old", "new"], "KERNEL32.dll": ["Sleep"]}))
    lacking = machine.file("a", "msvcp140.dll", pe_builder.build(exports=["old"]))
    machine.file("b", "msvcp140.dll", pe_builder.build(exports=["new", "old"]))
    machine.path = [machine.folder("a"), machine.folder("b")]
    found = machine.tree([root])
    assert found["missing_exports"] == [{"importer": root, "dll": lacking, "count": 1, "names": ["new"]}]


def test_missing_exports_of_a_library_with_very_many(machine, monkeypatch):
    root = machine.file("p", "user.pyd", pe_builder.build({"big.dll": ["old", "new"]}))
    lacking = machine.file("p", "big.dll", pe_builder.build(exports=["old", "other"]))
    monkeypatch.setattr(pe, "MANY_EXPORTS", 1)  # then names are looked up one by one
    assert [(one["dll"], one["names"]) for one in machine.tree([root])["missing_exports"]] == [(lacking, ["new"])]


def test_damaged_copies_are_recorded(machine):
    machine.path = [machine.folder("a")]
    machine.file("a", "cudart64_101.dll", b"")
    machine.file("a", "cudnn64_7.dll", pe_builder.build()[:700])
    found = machine.tree(["cudart64_101.dll", "cudnn64_7.dll", "nvcuda.dll"])
    errors = {os.path.basename(path): facts["error"] for path, facts in found["files"].items() if facts["error"]}
    assert errors == {"cudart64_101.dll": "empty", "cudnn64_7.dll": "truncated"}


def test_relative_path_entries_start_in_the_working_folder(machine):
    machine.path = ["libs"]
    copy = machine.file("work", "libs", "cudart64_101.dll", pe_builder.build())
    assert list(machine.tree(["cudart64_101.dll"])["files"]) == [copy]


def test_time_is_bounded(machine, monkeypatch):
    machine.path = [machine.folder("a")]
    machine.file("a", "cudart64_101.dll", pe_builder.build())
    monkeypatch.setattr(dlls, "BUDGET", -1.0)
    found = machine.tree(["cudart64_101.dll"])
    assert found["incomplete"] is True
    assert found["files"] == {}
    assert dlls.budget({"limit": 10}) == -1.0


def test_circular_imports_end(machine):
    machine.path = [machine.folder("a")]
    machine.file("a", "x.dll", pe_builder.build(["y.dll"]))
    machine.file("a", "y.dll", pe_builder.build(["x.dll", "Y.DLL"]))
    found = machine.tree(["x.dll"])
    assert sorted(os.path.basename(path) for path in found["files"]) == ["x.dll", "y.dll"]


def test_virtual_environment_runs_the_base_interpreter(machine):
    venv = machine.file("venv", "Scripts", "python.exe", pe_builder.build())
    machine.file("venv", "pyvenv.cfg", f"home = {machine.folder('Python37')}\nversion = 3.7.9\n".encode())
    context = dlls.windows_context({"python": venv}, {}, [])
    assert context["python_folder"] == machine.folder("Python37")
    machine.file("venv", "Scripts", "python37.dll", pe_builder.build())  # an old virtualenv copied it
    assert dlls.windows_context({"python": venv}, {}, [])["python_folder"] == os.path.dirname(venv)


def test_conda_folders_are_listed(machine):
    machine.file("Python37", "conda-meta", "python-3.8.5-h5fd99cc_1.json", b"{}")
    copy = machine.file("Python37", "Library", "bin", "cudart64_101.dll", pe_builder.build())
    found = machine.tree(["cudart64_101.dll"])
    assert found["context"]["conda"] is True
    assert found["context"]["conda_path_mode"] is False
    assert list(found["files"]) == [copy]
    mode = {"CONDA_DLL_SEARCH_MODIFICATION_ENABLE": "1"}
    assert dlls.windows_context({"python": machine.python}, mode, [])["conda_path_mode"] is True


@pytest.mark.skipif(os.name != "nt", reason="the model joins Windows paths with a backslash")
def test_the_loader_model_reads_the_tree(machine):
    machine.path = [machine.folder("one")]
    copy = machine.file("one", "cudart64_101.dll", pe_builder.build(["KERNEL32.dll"]))
    answer = loader.resolve(machine.tree(["cudart64_101.dll", "cudnn64_7.dll"]))
    assert {entry.name: entry.path for entry in answer.entries if entry.root == entry.name} == {
        "cudart64_101.dll": copy, "cudnn64_7.dll": None,
    }  # fmt: skip


def compile_shared(folder, name, *more):
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is not installed")
    os.makedirs(str(folder), exist_ok=True)
    source = os.path.join(str(folder), "a.c")
    with open(source, "w") as handle:
        handle.write("int f(void) { return 1; }\n")
    path = os.path.join(str(folder), name)
    arguments = [gcc, "-shared", "-fPIC", "-o", path, source, "-Wl,-soname," + name, "-Wl,--no-as-needed", *more]
    subprocess.run(arguments, check=True)
    return path


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the loader of Linux")
def test_linux_tree(tmp_path, monkeypatch):
    runtime = compile_shared(tmp_path / "nvidia", "libcudart.so.12")
    root = compile_shared(
        tmp_path / "tf",
        "_pywrap_tensorflow_internal.so",
        "-Wl,-rpath,$ORIGIN/../nvidia",
        "-Wl,--enable-new-dtags",
        runtime,
    )
    other = compile_shared(tmp_path / "cuda" / "lib64", "libcudnn.so.8")
    same = compile_shared(tmp_path / "ld", "libcudart.so.12")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "ld"))
    value, source = COLLECTORS["dlls.tree"].function(
        {"roots": [root, "libcudnn.so.8"], "search": [str(tmp_path / "cuda")], "cwd": str(tmp_path)}
    )
    assert source == "ELF headers"
    assert {root, runtime, same, other} <= set(value["files"])
    assert value["files"][root]["runpath"] == ["$ORIGIN/../nvidia"]
    assert value["elsewhere"]["libcudnn.so.8"] == [other]
    assert value["context"]["path"] == [str(tmp_path / "ld")]
    assert value["context"]["cache"]["libc.so.6"].endswith("libc.so.6")
    resolved = {entry.name: entry for entry in loader.resolve(value).entries}
    assert resolved["libcudart.so.12"].path == same  # LD_LIBRARY_PATH comes before RUNPATH
    assert resolved["libcudnn.so.8"].failure == "absent"
    assert [copy.path for copy in resolved["libcudnn.so.8"].unsearched] == [other]


def test_roots(tmp_path):
    python = tmp_path / "env" / "bin" / "python3"
    package = tmp_path / "env" / "lib" / "python3.7" / "site-packages" / "tensorflow_core" / "python"
    package.mkdir(parents=True)
    (package / "_pywrap_tensorflow_internal.so").write_bytes(b"")
    python.parent.mkdir(parents=True)
    python.write_text("")
    found = dlls.roots_of({"python": str(python), "libraries": ["libcuda.so.1"]}, {})
    assert found == [str(package / "_pywrap_tensorflow_internal.so"), "libcuda.so.1"]
    assert dlls.roots_of({"roots": ["a.dll"], "python": str(python)}, {}) == ["a.dll"]
    with pytest.raises(Skipped):
        COLLECTORS["dlls.tree"].function({})


@pytest.mark.parametrize(
    ("variable", "entries"),
    [
        (None, []),
        ("", []),
        ("/a", ["/a"]),
        ("/a:/b;/c", ["/a", "/b", "/c"]),
        ("/a::b", ["/a", ".", "b"]),
        (":", [".", "."]),
    ],
)
def test_entries_of_ld_library_path(variable, entries):
    """ld.so(8): colons or semicolons; an empty entry is the current folder, an empty variable is none."""
    environment = {} if variable is None else {"LD_LIBRARY_PATH": variable}
    context = dlls.linux_context({"cwd": "/w"}, environment, [])
    assert (context["path"], context["program"]) == (entries, None)
