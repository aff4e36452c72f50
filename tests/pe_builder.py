"""Write small PE files by hand: no compiler, any machine type, delay imports, versions, exports, damage.

The files are laid out as Windows' own linkers do (headers, then one section that holds every table), so that a
reader which accepts them and one that accepts real DLLs are the same reader. They are never run.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

MACHINES = {"x64": 0x8664, "x86": 0x14C, "arm64": 0xAA64}
BASE = 0x180000000
BASE_32 = 0x10000000
START = 0x1000  # RVA of the only section
RAW = 0x400  # its place in the file


class _Section:
    """Bytes that are placed one after the other; ``put`` returns the RVA."""

    def __init__(self) -> None:
        self.data = bytearray()

    def put(self, data: bytes, align: int = 8) -> int:
        self.data += bytes(-len(self.data) % align)
        at = START + len(self.data)
        self.data += data
        return at


def build(
    imports: Mapping[str, Sequence[str]] | Sequence[str] = (),
    *,
    machine: str = "x64",
    delay: Sequence[str] = (),
    delay_by_address: bool = False,
    exports: Mapping[str, bytes] | Sequence[str] = (),
    version: tuple[int, int, int, int] | None = None,
    linker: tuple[int, int] = (14, 24),
    name: str = "made.dll",
) -> bytes:
    """The bytes of a DLL.

    ``imports``: {DLL: names} or a list of DLLs. ``exports``: {name: code} or a list of names. ``delay_by_address``
    writes the old form of delay imports, with addresses instead of RVAs. ``version``: the fixed file version.
    """
    wide = machine != "x86"
    section = _Section()
    wanted = imports if isinstance(imports, Mapping) else dict.fromkeys(imports, ("entry",))
    given = exports if isinstance(exports, Mapping) else dict.fromkeys(exports, b"1\xc0\xc3")
    tables = {
        0: _exports(section, given, name),
        1: _imports(section, wanted, wide),
        2: _version(section, version),
        13: _delay(section, delay, delay_by_address, wide),
    }
    raw = bytes(section.data) + bytes(-len(section.data) % 0x200)
    head = bytearray(b"MZ" + bytes(58) + struct.pack("<I", 0x80) + bytes(0x40))
    optional = _optional(wide, linker, len(raw), tables)
    head += b"PE\0\0" + struct.pack(
        "<HHIIIHH", MACHINES[machine], 1, 0, 0, 0, len(optional), 0x2022 if wide else 0x2102
    )
    head += optional
    head += b".rdata\0\0" + struct.pack("<IIIIIIHHI", len(section.data), START, len(raw), RAW, 0, 0, 0, 0, 0x60000060)
    return bytes(head) + bytes(RAW - len(head)) + raw


def _optional(wide: bool, linker: tuple[int, int], size: int, tables: Mapping[int, tuple[int, int]]) -> bytes:
    image = START + (size + 0xFFF & ~0xFFF)
    out = struct.pack("<HBBIIII", 0x20B if wide else 0x10B, *linker, size, 0, 0, 0) + struct.pack("<I", START)
    out += struct.pack("<Q", BASE) if wide else struct.pack("<II", START, BASE_32)
    out += struct.pack("<IIHHHHHHIIIIHH", 0x1000, 0x200, 6, 0, 0, 0, 6, 0, 0, image, RAW, 0, 2, 0)
    out += struct.pack("<QQQQ" if wide else "<IIII", 0x100000, 0x1000, 0x100000, 0x1000)
    out += struct.pack("<II", 0, 16)
    for number in range(16):
        out += struct.pack("<II", *tables.get(number, (0, 0)))
    return out


def _imports(section: _Section, wanted: Mapping[str, Sequence[str]], wide: bool) -> tuple[int, int]:
    entries = b""
    for dll, names in wanted.items():
        at = section.put(dll.encode() + b"\0")
        hints = [section.put(b"\0\0" + one.encode() + b"\0", 2) for one in names]
        thunk = b"".join(struct.pack("<Q" if wide else "<I", hint) for hint in [*hints, 0])
        entries += struct.pack("<IIIII", section.put(thunk), 0, 0, at, section.put(thunk))
    return (section.put(entries + bytes(20)), len(entries) + 20) if entries else (0, 0)


def _delay(section: _Section, delay: Sequence[str], by_address: bool, wide: bool) -> tuple[int, int]:
    add, entries = ((BASE if wide else BASE_32) if by_address else 0), b""
    shape = "<QQ" if wide else "<II"
    for dll in delay:
        at, hint = section.put(dll.encode() + b"\0"), section.put(b"\0\0late\0", 2)
        module, calls = section.put(bytes(8)), section.put(struct.pack(shape, hint + add, 0))
        names = section.put(struct.pack(shape, hint + add, 0))
        fields = [value + add for value in (at, module, calls, names)]
        entries += struct.pack("<IIIIIIII", 0 if by_address else 1, *fields, 0, 0, 0)
    return (section.put(entries + bytes(32)), len(entries) + 32) if entries else (0, 0)


def _exports(section: _Section, given: Mapping[str, bytes], name: str) -> tuple[int, int]:
    if not given:
        return 0, 0
    ordered = sorted(given)
    code = [section.put(given[one], 16) for one in ordered]
    names = [section.put(one.encode() + b"\0", 1) for one in ordered]
    addresses = section.put(b"".join(struct.pack("<I", at) for at in code))
    pointers = section.put(b"".join(struct.pack("<I", at) for at in names))
    numbers = section.put(b"".join(struct.pack("<H", number) for number in range(len(ordered))))
    title = section.put(name.encode() + b"\0")
    count = len(ordered)
    table = struct.pack("<IIHHIIIIIII", 0, 0, 0, 0, title, 1, count, count, addresses, pointers, numbers)
    return section.put(table), len(table)


def _version(section: _Section, version: tuple[int, int, int, int] | None) -> tuple[int, int]:
    if version is None:
        return 0, 0
    high, low = version[0] << 16 | version[1], version[2] << 16 | version[3]
    fixed = struct.pack("<13I", 0xFEEF04BD, 0x10000, high, low, high, low, 0x3F, 0, 0x40004, 2, 0, 0, 0)
    key = "VS_VERSION_INFO\0".encode("utf-16-le")
    info = struct.pack("<HHH", 6 + len(key) + 2 + len(fixed), len(fixed), 0) + key
    info += bytes(-len(info) % 4) + fixed
    data = section.put(info, 4)
    at = section.put(bytes(88), 8)  # three directories of one entry each (24 bytes), then the data entry (16)
    tree = b""
    for level, identity in enumerate((16, 1, 0x409)):
        below = 24 * (level + 1)
        tree += struct.pack("<IIHHHH", 0, 0, 0, 0, 0, 1)
        tree += struct.pack("<II", identity, below | (0x80000000 if level < 2 else 0))
    tree += struct.pack("<IIII", data, len(info), 0, 0)
    section.data[at - START : at - START + len(tree)] = tree
    return at, len(tree)


def cudnn(version: int, **more: object) -> bytes:
    """A cuDNN 7: ``cudnnGetVersion`` is ``mov eax, version; ret``, as in NVIDIA's files."""
    code = b"\xb8" + struct.pack("<I", version) + b"\xc3"
    arguments: dict[str, object] = {
        "exports": {"cudnnCreate": b"\xc3", "cudnnGetVersion": code},
        "name": "cudnn64_7.dll",
    }
    arguments.update({"imports": ["KERNEL32.dll"], "version": (6, 14, 11, 10010)} | more)
    return build(**arguments)  # type: ignore[arg-type]
