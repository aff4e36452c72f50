"""Read the headers of a Windows PE file (.dll, .pyd, .exe): machine, imports, linker, versions, exports.

A reader of our own, because the machines that need triage rarely have pefile. It seeks and reads only headers
and the pages of the import, export and version tables, so a 1 GB ``.pyd`` costs milliseconds. It does not map
the file: a file that shrinks while it is mapped kills the process. Damaged files give ``error`` values, never
an exception.

Layout: Microsoft, "PE Format" (learn.microsoft.com/windows/win32/debug/pe-format).
"""

import os
import struct
from typing import Any, BinaryIO, Dict, FrozenSet, List, Optional, Tuple

MACHINES = {0x8664: "x64", 0x14C: "x86", 0xAA64: "arm64"}
MAX_TABLE = 4096  # entries of a table that are read; the largest real import table seen has fewer than 100
MAX_EXPORTS = 200000
MANY_EXPORTS = 20000  # with more, looking up single names is cheaper than reading all of them
MAX_NAMES = 4 << 20  # bytes of a table of names that is read at one go
EXPORT, IMPORT, RESOURCE, DELAY = 0, 1, 2, 13  # numbers of the data directories
VERSION_RESOURCE = 16
FIXED_INFO = 0xFEEF04BD


class Damaged(Exception):
    """The file cannot be read as a PE. The message is the ``error`` value: empty, not-pe, truncated."""


class Image:
    """An open PE file with its section table. Offsets are in the file, RVAs are addresses in memory."""

    def __init__(self, handle: BinaryIO, size: int) -> None:
        self.handle = handle
        self.size = size
        if size == 0:
            raise Damaged("empty")
        head = self.read(0, 64)
        if head[:2] != b"MZ":
            raise Damaged("not-pe")
        if len(head) < 64:
            raise Damaged("truncated")
        start = struct.unpack_from("<I", head, 60)[0]
        if start + 24 > size:
            raise Damaged("truncated")
        header = self.read(start, 24)
        if header[:4] != b"PE\0\0":
            raise Damaged("not-pe")
        machine, sections, _, _, _, optional_size = struct.unpack_from("<HHIIIH", header, 4)
        optional = self.read(start + 24, optional_size)
        self.machine = MACHINES.get(machine)
        self.wide = optional[:2] == b"\x0b\x02"
        if optional[:2] not in (b"\x0b\x01", b"\x0b\x02"):
            raise Damaged("truncated" if len(optional) < 2 else "not-pe")
        first = 112 if self.wide else 96  # where the data directories begin
        if len(optional) < first:
            raise Damaged("truncated")
        self.linker = "{}.{}".format(optional[2], optional[3])
        self.base = (
            struct.unpack_from("<Q", optional, 24)[0] if self.wide else struct.unpack_from("<I", optional, 28)[0]
        )
        self.headers = struct.unpack_from("<I", optional, 60)[0]
        count = min(struct.unpack_from("<I", optional, first - 4)[0], 16, (len(optional) - first) // 8)
        self.directories = [struct.unpack_from("<II", optional, first + 8 * n) for n in range(count)]
        self.sections = self._sections(start + 24 + optional_size, sections)

    def _sections(self, offset: int, count: int) -> List[Tuple[int, int, int, int]]:
        table = self.read(offset, 40 * min(count, 96))  # Windows loads no file with more than 96 sections
        if len(table) < 40 * min(count, 96):
            raise Damaged("truncated")
        return [struct.unpack_from("<IIII", table, at + 8) for at in range(0, len(table), 40)]

    @property
    def truncated(self) -> bool:
        """Whether a section's bytes lie behind the end of the file; Windows then answers error 193."""
        return any(raw and raw + raw_size > self.size for _, _, raw_size, raw in self.sections)

    def read(self, offset: int, count: int) -> bytes:
        """Up to ``count`` bytes at a file offset; fewer at the end of the file."""
        if offset < 0 or count <= 0 or offset >= self.size:
            return b""
        self.handle.seek(offset)
        return self.handle.read(min(count, self.size - offset))

    def offset(self, rva: int) -> Optional[int]:
        """The file offset of an RVA; None when no section holds it."""
        for size, address, raw_size, raw in self.sections:
            if address <= rva < address + max(size, raw_size):
                inside = rva - address
                return (raw & ~0x1FF) + inside if inside < raw_size else None
        return rva if rva < self.headers else None

    def at(self, rva: int, count: int) -> bytes:
        """``count`` bytes at an RVA; fewer, or none, when they are not in the file."""
        offset = self.offset(rva)
        return b"" if offset is None else self.read(offset, count)

    def text(self, rva: int, limit: int = 512) -> Optional[str]:
        """The zero-terminated string at an RVA; None when it is not there or has no end."""
        raw = self.at(rva, limit)
        end = raw.find(b"\0")
        return raw[:end].decode("ascii", "backslashreplace") if end >= 0 else None

    def directory(self, number: int) -> Tuple[int, int]:
        """RVA and size of a data directory; (0, 0) when there is none."""
        return self.directories[number] if number < len(self.directories) else (0, 0)


def read(path: str) -> Dict[str, Any]:
    """The header facts of one file: the value of ``files[path]`` in the fact ``dlls.tree``.

    ``error`` is None, ``empty``, ``not-pe``, ``truncated`` or ``unreadable`` (no right, gone, an input
    error); what could be read in spite of it is given.
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
    }
    try:
        with open(path, "rb") as handle:
            facts["size"] = size = os.fstat(handle.fileno()).st_size
            image = Image(handle, size)
            facts["machine"], facts["linker"] = image.machine, image.linker
            facts["error"] = "truncated" if image.truncated else None
            facts["imports"] = [name for name, _ in import_table(image)]
            facts["delay_imports"] = delay_imports(image)
            facts["file_version"] = file_version(image)
            if "cudnn" in os.path.basename(path).lower():
                facts["cudnn_version"] = cudnn_version(image)
    except Damaged as problem:
        facts["error"] = str(problem)
    except OSError:
        facts["error"] = "unreadable"
    except (struct.error, ValueError, IndexError, OverflowError):
        facts["error"] = "truncated"
    return facts


def is_api_set(name: str) -> bool:
    """Whether a DLL name is an API set: resolved by a table of Windows, so that no such file is needed."""
    return name.lower().startswith(("api-ms-", "ext-ms-"))


def import_table(image: Image) -> List[Tuple[str, int]]:
    """(DLL name, RVA of its list of names) for each DLL that must be there when the file is loaded."""
    rva = image.directory(IMPORT)[0]
    found: List[Tuple[str, int]] = []
    for number in range(MAX_TABLE if rva else 0):
        entry = image.at(rva + 20 * number, 20)
        if len(entry) < 20 or not any(entry):
            break
        lookup, _, _, name_rva, thunk = struct.unpack("<IIIII", entry)
        name = image.text(name_rva)
        if name:
            found.append((name, lookup or thunk))
    return found


def delay_imports(image: Image) -> List[str]:
    """Names of the DLLs that are loaded at the first call into them."""
    rva = image.directory(DELAY)[0]
    found: List[str] = []
    for number in range(MAX_TABLE if rva else 0):
        entry = image.at(rva + 32 * number, 32)
        if len(entry) < 32 or not any(entry):
            break
        attributes, name_rva = struct.unpack_from("<II", entry)
        # Before Visual C++ 7 the table held addresses, not RVAs; bit 0 tells.
        name = image.text(name_rva if attributes & 1 else name_rva - image.base)
        if name:
            found.append(name)
    return found


def imported_names(path: str) -> Dict[str, List[str]]:
    """{DLL name as written: [names imported from it]}; imports by number are left out. {} when unreadable."""
    try:
        with open(path, "rb") as handle:
            image = Image(handle, os.fstat(handle.fileno()).st_size)
            return {dll: _names_of(image, rva) for dll, rva in import_table(image)}
    except (Damaged, OSError, struct.error, ValueError, OverflowError):
        return {}


def _names_of(image: Image, rva: int) -> List[str]:
    width = 8 if image.wide else 4
    found: List[str] = []
    raw = image.at(rva, width * MAX_TABLE)
    by_number = 1 << (8 * width - 1)
    for at in range(0, len(raw) - width + 1, width):
        entry = int.from_bytes(raw[at : at + width], "little")
        if entry == 0:
            break
        name = None if entry & by_number else image.text((entry & 0x7FFFFFFF) + 2, 2048)  # 2: the hint
        if name:
            found.append(name)
    return found


def _exports(image: Image) -> Tuple[int, int, int, int]:
    """Number of names and RVAs of the tables of addresses, names and numbers; zeros when nothing is exported."""
    head = image.at(image.directory(EXPORT)[0], 40) if image.directory(EXPORT)[0] else b""
    if len(head) < 40:
        return 0, 0, 0, 0
    count, addresses, names, numbers = struct.unpack_from("<IIII", head, 24)
    return min(count, MAX_EXPORTS), addresses, names, numbers


def export_rva(image: Image, name: str) -> Optional[int]:
    """The RVA of an exported function; None when the file does not export it. Binary search, as Windows does."""
    count, addresses, names, numbers = _exports(image)
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        pointer = image.at(names + 4 * middle, 4)
        found = image.text(struct.unpack("<I", pointer)[0], 4096) if len(pointer) == 4 else None
        if found is None:
            return None
        if found == name:
            number = struct.unpack("<H", image.at(numbers + 2 * middle, 2))[0]
            return int(struct.unpack("<I", image.at(addresses + 4 * number, 4))[0])
        if found < name:
            low = middle + 1
        else:
            high = middle
    return None


def export_names(image: Image) -> Optional[FrozenSet[str]]:
    """All exported names, read at one go; None when there are too many for that, or the table is damaged."""
    count, _, names, _ = _exports(image)
    raw = image.at(names, 4 * count)
    if count > MANY_EXPORTS or len(raw) < 4 * count:
        return None
    pointers = struct.unpack("<{}I".format(count), raw)
    first = min(pointers) if pointers else 0
    span = max(pointers) - first + 4096 if pointers else 0
    if span > MAX_NAMES:
        return None
    text = image.at(first, span)
    found = []
    for pointer in pointers:
        end = text.find(b"\0", pointer - first)
        if end < 0:
            return None
        found.append(text[pointer - first : end].decode("ascii", "backslashreplace"))
    return frozenset(found)


def exports(path: str) -> Optional[FrozenSet[str]]:
    """The names that a DLL exports; None when it cannot be read or has too many to read them all."""
    try:
        with open(path, "rb") as handle:
            return export_names(Image(handle, os.fstat(handle.fileno()).st_size))
    except (Damaged, OSError, struct.error, ValueError, OverflowError):
        return None


def has_export(path: str, name: str) -> Optional[bool]:
    """Whether a DLL exports ``name``; None when the file cannot be read."""
    missing = missing_exports(path, [name])
    return None if missing is None else not missing


def missing_exports(path: str, names: List[str]) -> Optional[List[str]]:
    """Those of ``names`` that a DLL does not export (the cause of error 127); None when it cannot be read."""
    try:
        with open(path, "rb") as handle:
            image = Image(handle, os.fstat(handle.fileno()).st_size)
            return [name for name in names if export_rva(image, name) is None]
    except (Damaged, OSError, struct.error, ValueError, OverflowError):
        return None


def cudnn_version(image: Image) -> Optional[str]:
    """cuDNN's version from the code of ``cudnnGetVersion``, without running it.

    In cuDNN 5 to 7 the function is ``mov eax, imm32; ret``: B8 imm32 C3 (measured in cudnn64_7.dll 7.3.1,
    7.5.0 and 7.6.5). cuDNN 8 forwards the call, so nothing can be read: None. The file version of the
    resource is no help (6.14.11.10010 for 7.6.5).
    """
    rva = export_rva(image, "cudnnGetVersion")
    code = image.at(rva, 6) if rva is not None else b""
    if len(code) < 6 or code[0] != 0xB8 or code[5] != 0xC3:
        return None
    return cudnn_text(struct.unpack_from("<I", code, 1)[0])


def cudnn_text(number: int) -> Optional[str]:
    """7605 -> "7.6.5", 90100 -> "9.1.0" (five digits since 9.0); None for what cannot be a version."""
    if not 1000 <= number < 1000000:
        return None
    unit = 10000 if number >= 10000 else 1000
    return "{}.{}.{}".format(number // unit, number % unit // 100, number % 100)


def file_version(image: Image) -> Optional[str]:
    """The version of the VS_FIXEDFILEINFO resource, e.g. "14.28.29913.0"; None when there is none."""
    root = image.directory(RESOURCE)[0]
    if not root:
        return None
    at = root
    for level in range(3):  # type, name, language
        head = image.at(at, 16)
        if len(head) < 16:
            return None
        named, numbered = struct.unpack_from("<HH", head, 12)
        entries = image.at(at + 16, 8 * min(named + numbered, MAX_TABLE))
        wanted = [struct.unpack_from("<II", entries, n) for n in range(0, len(entries) - 7, 8)]
        if level == 0:
            wanted = [entry for entry in wanted if entry[0] == VERSION_RESOURCE]
        if not wanted:
            return None
        inner = wanted[0][1]
        if bool(inner & 0x80000000) != (level < 2):  # a directory, but on the last level data
            return None
        at = root + (inner & 0x7FFFFFFF)
    data = image.at(at, 16)
    if len(data) < 16:
        return None
    rva, size = struct.unpack_from("<II", data)
    raw = image.at(rva, min(size, 65536))
    start = raw.find(struct.pack("<I", FIXED_INFO))
    if start < 0 or len(raw) < start + 16:
        return None
    high, low = struct.unpack_from("<II", raw, start + 8)
    return "{}.{}.{}.{}".format(high >> 16, high & 0xFFFF, low >> 16, low & 0xFFFF)
