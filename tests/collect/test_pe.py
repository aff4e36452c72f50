"""The PE reader against pefile, a compiler's DLLs, files made by hand, and damaged files."""

import random
import shutil
import struct
import subprocess
import time

import pytest

from tests import pe_builder
from tftriage.collect import pe

pefile = pytest.importorskip("pefile")
COMPILERS = {"x64": "x86_64-w64-mingw32-gcc", "x86": "i686-w64-mingw32-gcc"}
SOURCE = """
#include <windows.h>
__declspec(dllexport) unsigned long long cudnnGetVersion(void) { return 7605; }
__declspec(dllexport) int other(void) { return (int)GetTickCount() + MessageBoxA(0, "a", "b", 0); }
"""


def write(folder, data, name="made.dll"):
    path = folder / name
    path.write_bytes(data)
    return str(path)


def oracle(path):
    image = pefile.PE(path)
    return {
        "imports": [entry.dll.decode() for entry in getattr(image, "DIRECTORY_ENTRY_IMPORT", [])],
        "delay": [entry.dll.decode() for entry in getattr(image, "DIRECTORY_ENTRY_DELAY_IMPORT", [])],
        "names": {
            entry.dll.decode(): [one.name.decode() for one in entry.imports if one.name]
            for entry in getattr(image, "DIRECTORY_ENTRY_IMPORT", [])
        },
        "exports": [one.name.decode() for one in image.DIRECTORY_ENTRY_EXPORT.symbols],
        "linker": f"{image.OPTIONAL_HEADER.MajorLinkerVersion}.{image.OPTIONAL_HEADER.MinorLinkerVersion}",
        "machine": image.FILE_HEADER.Machine,
    }


def agrees(path):
    said, found = oracle(path), pe.read(path)
    assert found["error"] is None
    assert found["imports"] == said["imports"]
    assert found["delay_imports"] == said["delay"]
    assert found["linker"] == said["linker"]
    assert pe.imported_names(path) == said["names"]
    assert pe.missing_exports(path, [*said["exports"], "nowhere"]) == ["nowhere"]
    assert pe.exports(path) == set(said["exports"])
    return found


@pytest.mark.parametrize("machine", ["x64", "x86"])
def test_compiled_dll(tmp_path, machine):
    compiler = shutil.which(COMPILERS[machine])
    if compiler is None:
        pytest.skip(f"{COMPILERS[machine]} is not installed")
    source = tmp_path / "a.c"
    source.write_text(SOURCE)
    (tmp_path / "a.rc").write_text("1 VERSIONINFO FILEVERSION 6,14,11,10010\nBEGIN\nEND\n")
    resource = compiler.replace("gcc", "windres")
    subprocess.run([resource, "a.rc", "a.o"], cwd=tmp_path, check=True)
    path = str(tmp_path / "cudnn64_7.dll")
    subprocess.run(
        [compiler, "-shared", "-O1", "-s", "-o", path, str(source), "a.o", "-luser32"], cwd=tmp_path, check=True
    )
    found = agrees(path)
    assert found["machine"] == machine
    assert {"KERNEL32.dll", "USER32.dll"} <= set(found["imports"])
    assert found["file_version"] == "6.14.11.10010"
    if machine == "x64":  # 32-bit code returns the number in two registers
        assert found["cudnn_version"] == "7.6.5"


@pytest.mark.parametrize("machine", ["x64", "x86", "arm64"])
def test_made_dll(tmp_path, machine):
    data = pe_builder.build(
        {"cudart64_101.dll": ["cudaMalloc", "cudaFree"], "KERNEL32.dll": ["Sleep"]},
        machine=machine,
        delay=["late.dll", "later.dll"],
        exports=["alpha", "beta", "gamma"],
        version=(14, 24, 28127, 4),
    )
    path = write(tmp_path, data)
    found = agrees(path)
    assert (found["machine"], found["linker"], found["file_version"]) == (machine, "14.24", "14.24.28127.4")
    assert found["delay_imports"] == ["late.dll", "later.dll"]
    assert found["size"] == len(data)


def test_delay_imports_by_address(tmp_path):
    path = write(tmp_path, pe_builder.build(machine="x86", delay=["old.dll"], delay_by_address=True))
    assert pe.read(path)["delay_imports"] == ["old.dll"]


def test_nothing_imported(tmp_path):
    found = pe.read(write(tmp_path, pe_builder.build()))
    assert (found["imports"], found["delay_imports"], found["file_version"], found["error"]) == ([], [], None, None)


def test_has_export(tmp_path):
    path = write(tmp_path, pe_builder.build(exports=[f"name{number:03}" for number in range(300)]))
    assert all(pe.has_export(path, f"name{number:03}") for number in range(300))
    assert pe.has_export(path, "name300") is False
    assert pe.has_export(path, "") is False
    assert pe.has_export(str(tmp_path / "gone.dll"), "a") is None


def test_all_exports_at_one_go(tmp_path, monkeypatch):
    names = [f"name{number:03}" for number in range(300)]
    path = write(tmp_path, pe_builder.build(exports=names))
    assert pe.exports(path) == set(names)
    assert pe.exports(write(tmp_path, pe_builder.build())) == set()
    assert pe.exports(str(tmp_path / "gone.dll")) is None
    path = write(tmp_path, pe_builder.build(exports=names))
    monkeypatch.setattr(pe, "MAX_NAMES", 2000)  # the names lie too far apart to be read as one piece
    assert pe.exports(path) is None
    monkeypatch.setattr(pe, "MANY_EXPORTS", 299)
    assert pe.exports(path) is None


@pytest.mark.parametrize("cut", [0, 1, 2, 4])
def test_damaged_tables_of_exports_are_unknown_not_empty(tmp_path, cut):
    raw = pe_builder.build(exports=["first", "second"])
    path = write(tmp_path, raw)
    with open(path, "rb") as handle:
        image = pe.Image(handle, len(raw))
        names = image.offset(struct.unpack_from("<I", image.at(image.directory(pe.EXPORT)[0], 40), 32)[0])
    broken = bytearray(raw)
    struct.pack_into("<I", broken, names + 4, 0x7FFFFFFF >> cut)  # the second name lies far behind the file's end
    assert pe.exports(write(tmp_path, bytes(broken))) is None


@pytest.mark.parametrize(
    ("number", "text"), [(5105, "5.1.5"), (7605, "7.6.5"), (8904, "8.9.4"), (90100, "9.1.0"), (7, None), (10**9, None)]
)
def test_cudnn_text(number, text):
    assert pe.cudnn_text(number) == text


def test_cudnn_version_only_from_an_immediate(tmp_path):
    made = pe_builder.cudnn(7401)
    assert pe.read(write(tmp_path, made, "cudnn64_7_v741.dll"))["cudnn_version"] == "7.4.1"
    assert pe.read(write(tmp_path, made, "other.dll"))["cudnn_version"] is None  # asked of cuDNN alone
    forward = pe_builder.cudnn(7401, exports={"cudnnGetVersion": b"\xff\x25\0\0\0\0"})  # jmp, as in 8.x
    assert pe.read(write(tmp_path, forward, "cudnn64_8.dll"))["cudnn_version"] is None


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "empty"),
        (b"not a dll\n", "not-pe"),
        (b"\x7fELF" + bytes(100), "not-pe"),
        (b"MZ", "truncated"),
        (b"MZ" + bytes(58) + b"\xff\xff\xff\x7f", "truncated"),
        (b"MZ" + bytes(58) + b"\x40\0\0\0" + b"NE" + bytes(100), "not-pe"),
    ],
)
def test_no_pe(tmp_path, data, error):
    found = pe.read(write(tmp_path, data))
    assert (found["error"], found["imports"], found["size"]) == (error, [], len(data))


def test_every_cut_is_an_error(tmp_path):
    whole = pe_builder.build(["a.dll"], exports=["x"], version=(1, 2, 3, 4))
    for length in range(1, len(whole)):
        error = pe.read(write(tmp_path, whole[:length]))["error"]
        assert error in ("truncated", "not-pe"), length
        assert error == "truncated" or length < 2, length


def test_unreadable(tmp_path):
    assert pe.read(str(tmp_path / "gone.dll"))["error"] == "unreadable"
    assert pe.read(str(tmp_path))["error"] == "unreadable"  # a folder of that name


def test_damaged_bytes_never_raise(tmp_path):
    whole = pe_builder.build({"a.dll": ["x", "y"]}, delay=["b.dll"], exports=["cudnnGetVersion"], version=(1, 2, 3, 4))
    made = random.Random(7)
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(made.randint(1, 12)):
            data[made.randrange(len(data))] = made.choice((0, 1, 0x7F, 0x80, 0xFF))
        path = write(tmp_path, bytes(data), "cudnn64_7.dll")
        began = time.monotonic()
        found = pe.read(path)
        pe.imported_names(path)
        pe.has_export(path, "cudnnGetVersion")
        assert found["error"] in (None, "empty", "not-pe", "truncated")
        assert time.monotonic() - began < 5


def test_endless_tables_end(tmp_path):
    # An import table that never has its closing zero entry: one entry, and the file ends.
    data = bytearray(pe_builder.build([f"{number}.dll" for number in range(50)]))
    path = write(tmp_path, bytes(data))
    assert len(pe.read(path)["imports"]) == 50
    start = data.index(b"0.dll")
    data[start:] = bytes([1]) * (len(data) - start)
    assert pe.read(write(tmp_path, bytes(data)))["error"] in (None, "truncated")


def test_a_gigabyte_costs_little(tmp_path):
    whole = pe_builder.build(["nvcuda.dll"], exports=["x"])
    path = write(tmp_path, whole, "_pywrap_tensorflow_internal.pyd")
    with open(path, "r+b") as handle:
        handle.truncate(1 << 30)  # a sparse tail, as debug data or signatures would be
    began = time.monotonic()
    assert pe.read(path)["imports"] == ["nvcuda.dll"]
    assert time.monotonic() - began < 2  # a reader that took the whole file would need more


def test_api_sets():
    assert pe.is_api_set("api-ms-win-crt-runtime-l1-1-0.dll")
    assert pe.is_api_set("EXT-MS-Win-ntuser-x.dll")
    assert not pe.is_api_set("apiset.dll")
