"""The ELF reader against pyelftools and the system's own files."""

import os
import shutil
import subprocess
import sys

import pytest

from tftriage.collect import elf

elftools = pytest.importorskip("elftools.elf.elffile")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ELF files of a Linux system")


def compiled(folder, name, *more, text="int f(void){return 1;}"):
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is not installed")
    (folder / "a.c").write_text(text)
    path = str(folder / name)
    subprocess.run([gcc, "-shared", "-fPIC", "-O1", "-o", path, "a.c", *more], cwd=folder, check=True)
    return path


def needed_by_elftools(path):
    with open(path, "rb") as handle:
        section = elftools.ELFFile(handle).get_section_by_name(".dynamic")
        return [tag.needed for tag in section.iter_tags() if tag.entry.d_tag == "DT_NEEDED"] if section else []


@linux
def test_system_files_agree_with_pyelftools():
    paths = [path for paths in elf.read_cache().values() for path in paths if os.path.isfile(path)][:60]
    assert len(paths) > 3
    for path in [*paths, os.path.realpath(sys.executable)]:
        found = elf.read(path)
        assert found["error"] is None, path
        assert found["needed"] == needed_by_elftools(path) == found["imports"]
        assert found["elf_class"] in (32, 64)
        assert found["size"] == os.path.getsize(path)


@linux
def test_rpath_runpath_soname(tmp_path):
    new = compiled(
        tmp_path, "new.so", "-Wl,-rpath,$ORIGIN/../lib:/opt/x", "-Wl,--enable-new-dtags", "-Wl,-soname,libq.so.7"
    )
    old = compiled(tmp_path, "old.so", "-Wl,-rpath,$ORIGIN/y", "-Wl,--disable-new-dtags")
    found = elf.read(new)
    assert (found["runpath"], found["rpath"], found["soname"]) == (["$ORIGIN/../lib", "/opt/x"], [], "libq.so.7")
    assert elf.read(old)["rpath"] == ["$ORIGIN/y"]
    assert elf.expand_origin("$ORIGIN/../lib", new) == str(tmp_path.parent / "lib")
    assert elf.expand_origin("${ORIGIN}", new) == str(tmp_path)


@linux
def test_cut_file(tmp_path):
    path = compiled(tmp_path, "whole.so")
    with open(path, "rb") as handle:
        whole = handle.read()
    for length in (1, 10, 40, 63, 64, 100, 500, len(whole) // 2):
        cut = tmp_path / "cut.so"
        cut.write_bytes(whole[:length])
        expected = "not-elf" if length < 4 else "truncated"
        assert elf.read(str(cut))["error"] == expected, length


@pytest.mark.parametrize(
    ("data", "error"),
    [(b"", "empty"), (b"/* GNU ld script */", "not-elf"), (b"\x7fELF\x02\x01" + bytes(20), "truncated")],
)
def test_no_elf(tmp_path, data, error):
    path = tmp_path / "a.so"
    path.write_bytes(data)
    assert elf.read(str(path))["error"] == error


def test_unreadable(tmp_path):
    assert elf.read(str(tmp_path / "gone.so"))["error"] == "unreadable"


@linux
def test_damage_never_raises(tmp_path):
    import random

    path = compiled(tmp_path, "whole.so")
    with open(path, "rb") as handle:
        whole = handle.read()
    made = random.Random(3)
    damaged = tmp_path / "damaged.so"
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(made.randint(1, 10)):
            data[made.randrange(min(len(data), 1200))] = made.choice((0, 1, 0x7F, 0x80, 0xFF))
        damaged.write_bytes(bytes(data))
        assert elf.read(str(damaged))["error"] in (None, "not-elf", "truncated")


@linux
def test_cache_agrees_with_ldconfig():
    ldconfig = shutil.which("ldconfig") or "/sbin/ldconfig"
    if not os.path.exists(ldconfig) or not os.path.exists("/etc/ld.so.cache"):
        pytest.skip("no ldconfig or no cache (musl)")
    lines = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    said = [(line.split(" (")[0].strip(), line.split(" => ")[1].strip()) for line in lines if " => " in line]
    found = [(name, path) for name, paths in elf.read_cache().items() for path in paths]
    assert sorted(found) == sorted(said)


def test_no_cache(tmp_path):
    assert elf.read_cache(str(tmp_path / "gone")) == {}
    other = tmp_path / "other"
    other.write_bytes(b"glibc-ld.so.cache1.1" + b"\xff" * 60)
    assert elf.read_cache(str(other)) == {}


def test_version_in_name():
    assert elf.version_in_name("/x/libcudnn.so.7.6.5") == "7.6.5"
    assert elf.version_in_name("/x/libcudnn.so.8") is None
