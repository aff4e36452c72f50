"""Read the headers of an ELF file (.so): machine, class, needed libraries, RPATH and RUNPATH.

A reader of our own for the same reasons as in ``pe``: no dependency, only headers and the dynamic section are
read, and damaged files give ``error`` values. Layout: System V ABI, "Object Files" and "Dynamic Linking".
"""

import os
import re
import struct
from typing import Any, BinaryIO, Dict, List, Optional, Tuple

MACHINES = {3: "x86", 62: "x64", 183: "arm64"}
LOAD, DYNAMIC = 1, 2
NEEDED, STRTAB, SONAME, RPATH, RUNPATH = 1, 5, 14, 15, 29
MAX_READ = 1 << 20  # bytes of one table
MAX_DYNAMIC = 65536  # bytes of the dynamic section that are read; real ones have fewer than 2,000
CACHE_MAGIC = b"glibc-ld.so.cache1.1"
# The loader's built-in folders, and those of Debian's and Red Hat's 64-bit layouts.
DEFAULT_FOLDERS = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
]


class Damaged(Exception):
    """The file cannot be read as an ELF. The message is the ``error`` value: empty, not-elf, truncated."""


def read(path: str) -> Dict[str, Any]:
    """The header facts of one file: ``files[path]`` of the fact ``dlls.tree`` on Linux.

    ``imports`` and ``needed`` hold the same list, so that readers of PE facts need not ask which kind it is.
    ``real`` is the file behind a link. ``error`` is None, ``empty``, ``not-elf``, ``truncated`` or ``unreadable``.
    """
    facts: Dict[str, Any] = {
        "size": None,
        "machine": None,
        "imports": [],
        "delay_imports": [],
        "linker": None,
        "file_version": None,
        "cudnn_version": None,
        "error": None,
        "needed": [],
        "rpath": [],
        "runpath": [],
        "elf_class": None,
        "soname": None,
        "real": None,
    }
    try:
        with open(path, "rb") as handle:
            facts["size"] = size = os.fstat(handle.fileno()).st_size
            real = os.path.realpath(path)
            facts["real"] = real if real != path else None
            _fill(facts, handle, size)
            if "cudnn" in os.path.basename(path):
                facts["cudnn_version"] = version_in_name(os.path.realpath(path))
    except Damaged as problem:
        facts["error"] = str(problem)
    except OSError:
        facts["error"] = "unreadable"
    except (struct.error, ValueError, OverflowError):
        facts["error"] = "truncated"
    return facts


def _fill(facts: Dict[str, Any], handle: BinaryIO, size: int) -> None:
    if size == 0:
        raise Damaged("empty")
    head = handle.read(64)
    if head[:4] != b"\x7fELF":
        raise Damaged("not-elf")
    if len(head) < 52:
        raise Damaged("truncated")
    wide, order = head[4] == 2, ("<" if head[5] == 1 else ">")
    facts["elf_class"] = 64 if wide else 32
    facts["machine"] = MACHINES.get(struct.unpack_from(order + "H", head, 18)[0])
    if wide:
        start = struct.unpack_from(order + "Q", head, 32)[0]
        entry, count = struct.unpack_from(order + "HH", head, 54)
    else:
        start = struct.unpack_from(order + "I", head, 28)[0]
        entry, count = struct.unpack_from(order + "HH", head, 42)
    table = _at(handle, start, entry * count)
    if len(table) < entry * count or entry < (56 if wide else 32):
        raise Damaged("truncated")
    loads: List[Tuple[int, int, int]] = []
    dynamic: Optional[Tuple[int, int]] = None
    for number in range(count):
        if wide:
            kind, _, offset, address, _, length = struct.unpack_from(order + "IIQQQQ", table, number * entry)
        else:
            kind, offset, address, _, length = struct.unpack_from(order + "IIIII", table, number * entry)
        if kind == LOAD:
            loads.append((address, offset, length))
        elif kind == DYNAMIC:
            dynamic = (offset, length)
    if any(offset + length > size for _, offset, length in loads):
        facts["error"] = "truncated"  # the loader maps it all the same; the first touch of a missing page is SIGBUS
    if dynamic:
        _dynamic(facts, handle, _at(handle, dynamic[0], min(dynamic[1], MAX_DYNAMIC)), loads, order, wide)


def _at(handle: BinaryIO, offset: int, count: int) -> bytes:
    # A damaged header names places that no file has: seeking there is an error of the system, not an empty answer.
    if not 0 <= offset < os.fstat(handle.fileno()).st_size:
        return b""
    handle.seek(offset)
    return handle.read(min(count, MAX_READ))


def _dynamic(
    facts: Dict[str, Any],
    handle: BinaryIO,
    raw: bytes,
    loads: List[Tuple[int, int, int]],
    order: str,
    wide: bool,
) -> None:
    step, shape = (16, order + "qQ") if wide else (8, order + "iI")
    entries = []
    for at in range(0, len(raw) - step + 1, step):
        tag, value = struct.unpack_from(shape, raw, at)
        if tag == 0:
            break
        entries.append((tag, value))
    strings = next((value for tag, value in entries if tag == STRTAB), None)
    base = (
        None
        if strings is None
        else next(
            (offset + strings - address for address, offset, length in loads if address <= strings < address + length),
            None,
        )
    )
    if base is None:
        return

    def text(value: int) -> Optional[str]:
        found = _at(handle, base + value, 8192)
        end = found.find(b"\0")
        return found[:end].decode("utf-8", "backslashreplace") if end >= 0 else None

    needed = [text(value) for tag, value in entries if tag == NEEDED]
    if None in needed:
        facts["error"] = "truncated"
    facts["needed"] = [name for name in needed if name]
    facts["imports"] = list(facts["needed"])
    for tag, value in entries:
        if tag in (RPATH, RUNPATH):
            folders = text(value) or ""
            parts = [part or "." for part in folders.split(":")]  # an empty one is the current folder
            facts["rpath" if tag == RPATH else "runpath"] = parts if folders else []
        elif tag == SONAME:
            facts["soname"] = text(value)


def version_in_name(path: str) -> Optional[str]:
    """libcudnn.so.7.6.5 -> "7.6.5"; None when the name carries no full version."""
    match = re.search(r"\.so\.(\d+\.\d+(?:\.\d+)*)$", path)
    return match.group(1) if match else None


def expand_origin(entry: str, path: str) -> str:
    """An RPATH entry with ``$ORIGIN`` (the folder of the file itself) and ``$LIB``-free, normalised."""
    origin = os.path.dirname(os.path.abspath(path))
    return os.path.normpath(entry.replace("${ORIGIN}", origin).replace("$ORIGIN", origin))


def read_cache(path: str = "/etc/ld.so.cache") -> Dict[str, List[str]]:
    """{library name: paths} of the loader's cache, in its order; {} when there is none (musl, containers).

    Format "glibc-ld.so.cache1.1" (glibc, sysdeps/generic/dl-cache.h), which may follow an older one in the
    same file. ``ldconfig -p`` shows the same, but is not on the PATH of ordinary users everywhere.
    """
    try:
        with open(path, "rb") as handle:
            raw = handle.read(16 << 20)
    except OSError:
        return {}
    base = raw.find(CACHE_MAGIC)
    if base < 0 or len(raw) < base + 48:
        return {}
    count = struct.unpack_from("<I", raw, base + 20)[0]
    found: Dict[str, List[str]] = {}
    for at in range(base + 48, min(base + 48 + 24 * count, len(raw) - 23), 24):
        _, key, value = struct.unpack_from("<iII", raw, at)
        name, target = _cached(raw, base + key), _cached(raw, base + value)
        if name and target:
            found.setdefault(name, []).append(target)
    return found


def _cached(raw: bytes, start: int) -> str:
    end = raw.find(b"\0", start, start + 4096)
    return raw[start:end].decode("utf-8", "backslashreplace") if 0 <= start < end else ""
