"""How dear is the import closure of a whole TensorFlow? Prints ratios of several ways in one run.

    uv run --with delvewheel python benchmarks/bench_closure.py [--packages SITE-PACKAGES] [--system32 FOLDER]

All ``.pyd`` of one Windows environment (default: the lab's tensorflow-gpu 2.3.1, 0.85 GB):

- ours: the closure as the collector takes it, over every copy in every folder that is searched;
- delvewheel's own analysis (``get_all_needed`` of each file, as its ``show`` does after unpacking);
- a full parse by pefile (without --full only of files below 1 MB), and its import tables alone;
- the floor: each file is opened, and its header and the pages that hold the import table and its names are read.
  Nothing that reads import tables can be faster, whatever its language.

Files are read once before, so that no way pays for a cold disk.
"""

from __future__ import annotations

import argparse
import os
import struct
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tftriage.collect import dlls, pe, tree

PAGE = 4096
LARGE = 1 << 20  # bytes; a full parse of more is asked for with --full


def best(work: Callable[[], object], repeat: int = 3) -> float:
    """The shortest processor time of several runs, in seconds: another program's load is not in it."""
    times = []
    for _ in range(repeat):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def lab() -> Path:
    """The lab's folder, as tests/lab/labtools.py finds it."""
    given = os.environ.get("TFTRIAGE_LAB")
    return Path(given) if given else Path.home() / ".cache" / "tftriage-lab"


def place(address: int, sections: list[tuple[int, ...]]) -> int:
    """The place in the file of an address in memory."""
    return next((raw + address - first for size, first, _, raw in sections if first <= address < first + size), 0)


def floor(files: list[str]) -> int:
    """Open every file and read its header and the pages of its import table, with no more thought than needed."""
    read = 0
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            head = os.pread(descriptor, PAGE, 0)
            start = struct.unpack_from("<I", head, 60)[0]
            count, size = struct.unpack_from("<H", head, start + 6)[0], struct.unpack_from("<H", head, start + 20)[0]
            wide = head[start + 24 : start + 26] == b"\x0b\x02"
            at, length = struct.unpack_from("<II", head, start + 24 + (112 if wide else 96) + 8)
            sections = [struct.unpack_from("<IIII", head, start + 24 + size + 40 * n + 8) for n in range(count)]
            offset = place(at, sections)
            table = os.pread(descriptor, length, offset)
            names = [struct.unpack_from("<I", table, n + 12)[0] for n in range(0, len(table) - 20, 20)]
            for page in {place(name, sections) // PAGE for name in names if name}:
                read += len(os.pread(descriptor, PAGE, page * PAGE))
        finally:
            os.close(descriptor)
    return read


def closure(files: list[str], search: list[str], system32: str) -> tree.Tree:
    """What the collector does, without the check of the exported names."""
    found = tree.Tree(True, 600.0)
    system = {os.path.normcase(os.path.normpath(system32))}
    tree.closure(found, files, lambda: search, [], system)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--packages", type=Path, default=lab() / "win" / "py3.8" / "Lib" / "site-packages")
    options.add_argument("--system32", type=Path, default=lab() / "win" / "prefix/drive_c/windows/system32")
    options.add_argument("--full", action="store_true", help="fully parse the largest files, too: many minutes")
    given = options.parse_args()
    tree.MAX_FILES, tree.MAX_NAMES = 5000, 5000  # the collector stops at 800: all of this environment is wanted
    files = sorted(str(path) for path in given.packages.rglob("*.pyd"))
    if not files:
        sys.exit(f"no .pyd below {given.packages}: build the lab, or name an environment with --packages")
    warnings.simplefilter("ignore")  # delvewheel warns of runtimes; only its time is asked for
    import pefile
    from delvewheel import _dll_utils

    folders = sorted({str(Path(path).parent) for path in files})
    search = [*folders, str(given.packages.parents[1]), str(given.system32)]
    os.environ["PATH"] = os.pathsep.join(search)
    here = {path.name.lower(): [str(path)] for folder in folders for path in Path(folder).iterdir()}

    def delvewheel() -> None:
        for path in files:
            _dll_utils.get_all_needed(path, set(), here, "ignore", False, False)

    def imports_only() -> None:
        for path in files:
            image = pefile.PE(path, fast_load=True)
            image.parse_data_directories([pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_IMPORT"]])
            image.close()

    small = [path for path in files if given.full or Path(path).stat().st_size < LARGE]

    def full() -> None:
        for path in small:
            pefile.PE(path, fast_load=False).close()

    found = closure(files, search, str(given.system32))
    read = list(found.files)
    mine = best(lambda: closure(files, search, str(given.system32)))
    least = best(lambda: floor(files))
    least_all = best(lambda: floor([path for path in read if not found.files[path]["error"]]))
    plain = best(lambda: [pe.read(path) for path in files])
    size = sum(Path(path).stat().st_size for path in files) / 1e6
    print(f"{len(files)} .pyd, {size:.0f} MB; closure of {len(read)} files: {mine * 1000:.0f} ms")
    print(f"  floor (headers and import pages): the .pyd {least * 1000:.1f} ms, the closure {least_all * 1000:.1f} ms")
    print(f"  ours is {mine / least_all:.1f} times its floor; header facts of the .pyd alone {plain * 1000:.0f} ms")
    ratio(mine, "delvewheel's analysis", best(delvewheel, 2))
    ratio(mine, "pefile, import tables only, no closure", best(imports_only, 2))
    ratio(mine, f"pefile, full parse of {len(small)} of the {len(files)}, no closure", best(full, 1))
    exports = best(lambda: dlls.missing_exports(closure(files, search, str(given.system32)), search, []), 1)
    print(f"  with the check of every imported name against every copy: {exports * 1000:.0f} ms")


def ratio(mine: float, name: str, other: float) -> None:
    """One line: what another way costs."""
    print(f"  {name}: {other * 1000:.0f} ms = {other / mine:.1f} times ours")


if __name__ == "__main__":
    main()
