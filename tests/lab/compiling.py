"""Compiles native/*.c for both systems: pretend driver, NVML and CUDA libraries, and trees of broken DLLs."""

from __future__ import annotations

import pathlib
import shutil

from labtools import EMBEDDED, NATIVE, fresh, run

CUDA_101 = {  # the libraries that TensorFlow 2.1 to 2.3 opens by name: Windows, Linux
    "cudart64_101.dll": "libcudart.so.10.1",
    "cublas64_10.dll": "libcublas.so.10",
    "cudnn64_7.dll": "libcudnn.so.7",
    "cufft64_10.dll": "libcufft.so.10",
    "curand64_10.dll": "libcurand.so.10",
    "cusolver64_10.dll": "libcusolver.so.10",
    "cusparse64_10.dll": "libcusparse.so.10",
}


def native_linux(lab: pathlib.Path) -> None:
    out = fresh(lab / "native" / "linux")

    def build(source: str, folder: str, soname: str) -> None:
        (out / folder).mkdir(parents=True, exist_ok=True)
        flags = ("-shared", "-fPIC", "-O1", "-w", f"-Wl,-soname,{soname}")
        run("gcc", *flags, "-o", out / folder / soname, NATIVE / source)

    build("fake_cuda.c", "driver", "libcuda.so.1")
    build("fake_nvml.c", "nvml", "libnvidia-ml.so.1")
    for soname in CUDA_101.values():
        build("fake_cudart.c", "cuda101", soname)


def native_windows(lab: pathlib.Path) -> None:
    out = fresh(lab / "native" / "windows")
    for folder in ("driver", "nvml", "cuda101"):
        (out / folder).mkdir(parents=True)
    gcc = ("x86_64-w64-mingw32-gcc", "-shared", "-O1", "-s", "-w")
    run(*gcc, "-o", out / "driver" / "nvcuda.dll", NATIVE / "fake_cuda.c")
    run(*gcc, "-o", out / "nvml" / "nvml.dll", NATIVE / "fake_nvml.c")
    for name in CUDA_101:
        run(*gcc, "-o", out / "cuda101" / name, NATIVE / "fake_cudart.c")
    loader_trees(out / "dlls")


def loader_trees(out: pathlib.Path) -> None:
    """Small DLL trees, each of which provokes one of the Windows loader's errors."""
    bare = ("-shared", "-O1", "-s", "-nostdlib", "-Wl,--entry,DllMain")
    scratch = out / ".build"
    scratch.mkdir(parents=True)

    def dll(target: str, source: str, *more: str | pathlib.Path, flags: tuple[str, ...] = bare) -> pathlib.Path:
        (out / target).parent.mkdir(exist_ok=True)
        run("x86_64-w64-mingw32-gcc", *flags, "-o", out / target, NATIVE / source, *more)
        return out / target

    def copy(source: str, *targets: str) -> None:
        for target in targets:
            (out / target).parent.mkdir(exist_ok=True)
            shutil.copy(out / source, out / target)

    # a dependency in another folder (126 unless it is found), and both in one folder
    dll("dep/tfdep.dll", "dll_dep.c", f"-Wl,--out-implib,{scratch}/libtfdep.a")
    dll("only/tfuser.dll", "dll_user.c", f"-L{scratch}", "-ltfdep")
    copy("dep/tfdep.dll", "ok/tfdep.dll", "noexp/tfdep.dll", "目录 空格/tfdep.dll", "semi;colon/tfdep.dll")
    copy("only/tfuser.dll", "ok/tfuser.dll", "目录 空格/tfuser.dll", "semi;colon/tfuser.dll")
    # 193: a 32-bit DLL, as itself and as dependency; no DLL at all; an empty and a cut one
    (out / "wrong").mkdir()
    flags32 = ("-shared", "-O1", "-s", "-nostdlib", "-Wl,--entry,_DllMain@12")
    run("i686-w64-mingw32-gcc", *flags32, "-o", out / "wrong" / "dll32.dll", NATIVE / "dll_dep.c")
    copy("wrong/dll32.dll", "wrongdep/tfdep.dll")
    copy("only/tfuser.dll", "wrongdep/tfuser.dll")
    (out / "wrong" / "text.dll").write_bytes(b"not a dll\n")
    (out / "wrong" / "empty.dll").write_bytes(b"")
    (out / "wrong" / "cut.dll").write_bytes((out / "dep" / "tfdep.dll").read_bytes()[:700])
    # 127: an import that the dependency beside it does not export (Wine itself loads this one)
    dll(".build/tfdep.dll", "dll_dep.c", "-DEXTRA", f"-Wl,--out-implib,{scratch}/libtfdepx.a")
    dll("noexp/tfuserx.dll", "dll_user.c", "-DEXTRA", f"-L{scratch}", "-ltfdepx")
    # 1114: the start routine says no, of the DLL itself and of its dependency
    dll("fail/dllfail.dll", "dll_dep.c", "-DFAIL")
    dll("faildep/tfdep.dll", "dll_dep.c", "-DFAIL")
    copy("only/tfuser.dll", "faildep/tfuser.dll")
    # a cuDNN with a file version, an older one, and one that was renamed after download
    run("x86_64-w64-mingw32-windres", NATIVE / "dll_cudnn.rc", scratch / "version.o")
    for target, version in (("ren/cudnn64_7.dll", 7605), ("v741/cudnn64_7.dll", 7401)):
        dll(target, "dll_cudnn.c", f"-DVERSION={version}", scratch / "version.o")
    copy("v741/cudnn64_7.dll", "ren741/cudnn64_7_v741.dll")
    # delay-loaded dependency
    (scratch / "delay.def").write_text("LIBRARY tfdep.dll\nEXPORTS\ndep_value\n", encoding="ascii")
    run("x86_64-w64-mingw32-dlltool", "-d", scratch / "delay.def", "-y", scratch / "libdelay.a", "-D", "tfdep.dll")
    dll("delay/tfdelay.dll", "dll_user.c", "-DNO_MAIN", f"-L{scratch}", "-ldelay", flags=("-shared", "-O1", "-s"))
    shutil.rmtree(scratch)


def native_badext(lab: pathlib.Path) -> None:
    """badext.pyd for each Windows Python: an extension module that needs tfdep.dll."""
    dep = lab / "native" / "windows" / "dlls" / "dep" / "tfdep.dll"
    for version in EMBEDDED:
        folder = fresh(lab / "native" / "windows" / f"badext{version}")
        folder.mkdir(parents=True)
        dll = lab / "win" / f"py{version}" / f"python{version.replace('.', '')}.dll"
        flags = ("-shared", "-O1", "-s", "-o", folder / "badext.pyd")
        run("x86_64-w64-mingw32-gcc", *flags, NATIVE / "badext.c", dll, dep)
