"""Makes DLLs for random trees: mingw links a few templates once, the names in them are then overwritten."""

from __future__ import annotations

import concurrent.futures
import pathlib
import struct
from collections.abc import Sequence

import pefile
from labtools import NATIVE, run

SLOTS = 3  # imports of one DLL at most
HOLDERS = [f"slot{number}".ljust(41, "_") + ".dll" for number in range(SLOTS)]
PYTHON = "python".ljust(41, "_") + ".dll"
LATE = "late".ljust(41, "_") + ".dll"
UNKNOWN_EXPORT = b"entryX"  # six letters as entry0: what no DLL of ours exports


class Templates:
    """The linked templates, and where in each the names stand that ``dll`` overwrites."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Link the templates, or take those that an earlier run left in ``folder``."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(SLOTS):
            self._library(f"slot{number}", HOLDERS[number], f"entry{number}")
        self._library("python", PYTHON, "PyModule_Create2")
        self._library("apiset", "api-ms-win-core-libraryloader-l1-2-0.dll", "GetModuleFileNameW")
        exports = "EXPORTS\nentry0=own0\nentry1=own1\nentry2=own2\nlate_table DATA\n"
        (folder / "own.def").write_text(exports, encoding="ascii")
        shapes = [(number, python) for number in range(SLOTS + 1) for python in (False, True)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            made = pool.map(lambda shape: self._link(*shape), shapes)
            self.raw: dict[tuple[int, bool], bytes] = dict(zip(shapes, made, strict=True))
        target = folder / "x86.dll"
        flags = ("-shared", "-O1", "-s", "-nostdlib", "-Wl,--entry,_DllMain@12")
        run("i686-w64-mingw32-gcc", *flags, "-o", target, NATIVE / "dll_dep.c")
        self.x86 = target.read_bytes()

    def _library(self, name: str, dll: str, export: str) -> None:
        definition = self.folder / f"{name}.def"
        definition.write_text(f"LIBRARY {dll}\nEXPORTS\n{export}\n", encoding="ascii")
        run("x86_64-w64-mingw32-dlltool", "-d", definition, "-l", self.folder / f"lib{name}.a")

    def _link(self, slots: int, python: bool) -> bytes:
        out = self.folder / f"template-{slots}{'p' * python}.dll"
        words = ["-shared", "-O1", "-s", "-nostdlib", "-Wl,--entry,DllMain", f"-DSLOTS={slots}"]
        words += ["-DPYTHON"] if python else []
        libraries = ["apiset", *(f"slot{number}" for number in range(slots)), *(["python"] if python else [])]
        linked = [f"-L{self.folder}", *(f"-l{name}" for name in libraries), "-lkernel32"]
        run("x86_64-w64-mingw32-gcc", *words, "-o", out, NATIVE / "tree_dll.c", self.folder / "own.def", *linked)
        return out.read_bytes()

    def dll(
        self,
        imports: Sequence[str] = (),
        *,
        late: str | None = None,
        fail: bool = False,
        python: str | None = None,
        lacking: int | None = None,
    ) -> bytes:
        """The bytes of a DLL that imports ``imports``.

        ``late`` is delay-loaded; ``fail``: its start fails; ``python`` ("python38.dll") makes it an extension
        module; ``lacking`` is the number of the import that asks for a function that nobody exports.
        """
        raw = self.raw[len(imports), python is not None]
        for holder, name in zip(HOLDERS, imports, strict=False):
            raw = _replace(raw, holder, name)
        if late is not None:
            raw = _point_at_late(_replace(raw, LATE, late))
        if fail:
            raw = raw.replace(b"@fail:0", b"@fail:1")
        if python is not None:
            raw = _replace(raw, PYTHON, python)
        if lacking is not None:
            raw = _spoil(raw, imports[lacking])
        return raw


def _replace(raw: bytes, holder: str, name: str) -> bytes:
    old, new = holder.encode(), name.encode("ascii")
    assert raw.count(old) == 1 and len(new) <= len(old), (holder, name, raw.count(old))
    return raw.replace(old, new + bytes(len(old) - len(new)))


def _point_at_late(raw: bytes) -> bytes:
    """Enter the table of delay-loaded libraries in the header: GNU ld leaves that directory empty."""
    image = pefile.PE(data=raw)
    table = next(symbol.address for symbol in image.DIRECTORY_ENTRY_EXPORT.symbols if symbol.name == b"late_table")
    at = image.OPTIONAL_HEADER.DATA_DIRECTORY[13].get_file_offset()
    return raw[:at] + struct.pack("<II", table, 64) + raw[at + 8 :]


def _spoil(raw: bytes, dll: str) -> bytes:
    """Make the import from ``dll`` ask for an unknown function."""
    image = pefile.PE(data=raw)
    table = next(entry for entry in image.DIRECTORY_ENTRY_IMPORT if entry.dll.decode() == dll)
    at = table.imports[0].name_offset
    return raw[:at] + UNKNOWN_EXPORT + raw[at + len(UNKNOWN_EXPORT) :]
