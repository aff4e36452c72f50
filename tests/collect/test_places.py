"""Where CUDA, conda and Python are put: folder trees made for the purpose."""

import os

from tftriage.collect import places


def folder(base, *parts):
    path = os.path.join(str(base), *parts)
    os.makedirs(path, exist_ok=True)
    return path


def conda(base, *parts):
    path = folder(base, *parts)
    folder(path, "conda-meta")
    return path


def test_library_names():
    for name in (
        "nvcuda.dll", "cudart64_101.dll", "CUDNN64_7.dll", "cudnn_ops_infer64_8.dll", "cublasLt64_11.dll",
        "zlibwapi.dll",
        "msvcp140_1.dll", "VCRUNTIME140_1.dll", "python38.dll", "libcuda.so.1", "libcudnn.so.7.6.5",
        "libcublasLt.so.11",
    ):  # fmt: skip
        assert places.is_library(name), name
    for name in ("kernel32.dll", "cudart.txt", "libm.so.6", "cudnn64_7.dll.bak", "cudart64_101.lib"):
        assert not places.is_library(name), name


def test_windows_toolkits(tmp_path):
    made = [
        folder(tmp_path, "Program Files", "NVIDIA GPU Computing Toolkit", "CUDA", "v10.0"),
        folder(tmp_path, "Program Files", "NVIDIA GPU Computing Toolkit", "CUDA", "v10.1"),
        folder(tmp_path, "CUDA 中文", "v11.2"),
        folder(tmp_path, "tools", "cuda"),
    ]
    named = folder(tmp_path, "elsewhere", "kit")
    found = places.toolkit_folders({"CUDA_PATH_V10_1": named, "CUDA_PATH": "gone"}, [str(tmp_path)], windows=True)
    assert found[0] == named
    assert set(made) <= set(found)
    assert os.path.join(str(tmp_path), "CUDA 中文") in found  # it may hold bin itself


def test_linux_toolkits(tmp_path):
    made = [folder(tmp_path, "usr", "local", "cuda-11.2"), folder(tmp_path, "opt", "cuda")]
    assert set(made) <= set(places.toolkit_folders({}, [str(tmp_path)], windows=False))


def test_siblings_of_what_is_on_path(tmp_path):
    on_path = folder(tmp_path, "CUDA", "v10.0", "bin")
    other = folder(tmp_path, "CUDA", "v10.1")
    assert other in places.version_siblings([on_path])
    assert places.version_siblings([folder(tmp_path, "bin")]) == []


def test_library_folders(tmp_path):
    kit = folder(tmp_path, "v13.0")
    deep = folder(kit, "bin", "x64")
    assert places.library_folders(kit) == [os.path.join(kit, "bin"), deep, kit]


def test_conda_environments(tmp_path):
    home, drive = folder(tmp_path, "home"), folder(tmp_path, "drive")
    root = conda(drive, "Anaconda3")
    inside = conda(root, "envs", "tf21")
    listed = conda(tmp_path, "listed", "here")
    moved = conda(tmp_path, "moved envs", "tf23")
    named = conda(tmp_path, "path", "miniconda3")
    folder(root, "envs", "no-environment")
    folder(home, ".conda")
    with open(os.path.join(home, ".conda", "environments.txt"), "w", encoding="utf-8") as handle:
        handle.write(listed + "\n" + os.path.join(str(tmp_path), "gone") + "\n")
    with open(os.path.join(home, ".condarc"), "w", encoding="utf-8") as handle:
        handle.write('channels:\n  - defaults\nenvs_dirs:\n  - "' + os.path.dirname(moved) + '"\nshow: yes\n')
    environment = {"PATH": os.path.join(named, "Scripts")}
    folder(named, "Scripts")
    found = places.conda_environments(environment, home, [drive])
    assert set(found) == {root, inside, listed, moved, named}
    assert places.conda_roots({"CONDA_EXE": os.path.join(root, "Scripts", "conda.exe")}, home, []) == [root]


def test_conda_packages(tmp_path):
    root = conda(tmp_path, "miniconda3")
    wanted = folder(root, "pkgs", "cudatoolkit-10.1.243-h74a9793_0", "Library", "bin")
    folder(root, "pkgs", "numpy-1.19", "Library", "bin")
    assert places.conda_package_folders({}, str(tmp_path / "home"), [str(tmp_path)]) == [wanted]


def test_bad_folders_are_empty(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (str(tmp_path / "gone"), str(tmp_path / "file"), "a\0b", ""):
        assert places.names_in(path) == [] or path == ""
    assert places.text_of(str(tmp_path / "gone")) == ""
    assert places.json_of(str(tmp_path / "file")) is None
    assert places.unique([str(tmp_path), str(tmp_path) + os.sep, "", str(tmp_path / "gone")]) == [str(tmp_path)]


def test_known_dlls():
    stored = {"kernel32": ("REG_SZ", "KERNEL32.dll"), "DllDirectory": ("REG_EXPAND_SZ", "%SystemRoot%\\system32")}
    assert places.known_dlls(lambda hive, key: stored) == ["kernel32.dll"]
