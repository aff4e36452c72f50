"""Measure one TensorFlow wheel for Windows: what a row of ``knowledge/tables/builds.yaml`` says of it.

    python tools/measure_wheel.py tensorflow_gpu-1.2.1-cp36-cp36m-win_amd64.whl

Nothing is installed or run. Each native file is unpacked on its own, its headers are read (imports, linker), its
text is searched for the names of libraries that it opens at run time, and its CUDA containers tell the GPU code.
"""

from __future__ import annotations

import json
import mmap
import re
import shutil
import struct
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tftriage.collect import pe

FAMILIES = ("cudart", "cublas", "cublasLt", "cudnn", "cufft", "curand", "cusolver", "cusparse", "cupti")
_GPU = re.compile(r"^(?:nvcuda|cu(?:dart|blas|blaslt|dnn|fft|rand|solver|sparse|pti)64_\d+)\.dll$", re.IGNORECASE)
_RUNTIME = re.compile(r"^(?:msvcp|vcruntime|concrt|vcomp)140(?:_\d)?\.dll$", re.IGNORECASE)
_STEM = re.compile(rb"\0(" + b"|".join(name.encode() for name in FAMILIES) + rb")\0")
_NUMBER = re.compile(rb"\0(64_\d{1,3})\0")
_WHOLE = re.compile(rb"\0((?:nvcuda|cu[a-zA-Z]{3,7}64_\d{1,3})\.dll)\0")
# A container of GPU code: magic, version 1, header size 16; then entries (kind 1 is PTX, 2 machine code).
_CONTAINER = b"\x50\xed\x55\xba\x01\x00\x10\x00"
PTX, MACHINE_CODE = 1, 2


def measure(wheel: Path) -> dict[str, Any]:
    """The measured fields of a row. Raises ``zipfile.BadZipFile`` or ``OSError``."""
    imports: set[str] = set()
    names: set[str] = set()
    runtime: set[str] = set()
    linkers: set[str] = set()
    code: dict[int, set[int]] = {PTX: set(), MACHINE_CODE: set()}
    self_check = False
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as scratch:
        for member in archive.infolist():
            self_check |= member.filename.endswith("python/platform/self_check.py")
            if not member.filename.lower().endswith((".pyd", ".dll")):
                continue
            target = Path(scratch, "native.dll")
            with archive.open(member) as packed, target.open("wb") as plain:
                shutil.copyfileobj(packed, plain, 1 << 20)
            header = pe.read(str(target))
            imports |= {name for name in header["imports"] if _GPU.match(name)}
            runtime |= {name.lower() for name in header["imports"] if _RUNTIME.match(name)}
            if header["linker"]:
                linkers.add("{}.{:02}".format(*map(int, header["linker"].split("."))))
            with target.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
                names |= run_time_names(data)
                for kind, capability in gpu_code(data):
                    code[kind].add(capability)
    package, version, tag = wheel.name.split("-")[:3]
    opened = sorted(names - imports)
    return {
        "package": package.replace("_", "-"),
        "version": version,
        "system": "Windows",
        "python": f"{tag[2]}.{tag[3:]}",
        "libraries": opened,
        "imports": sorted(imports),
        "vc_runtime": sorted(runtime),
        "vc_floor": max(linkers, key=_parts, default=None),
        "machine_code": [f"{number // 10}.{number % 10}" for number in sorted(code[MACHINE_CODE])],
        "ptx": [f"{number // 10}.{number % 10}" for number in sorted(code[PTX])],
        "self_check": self_check,
    }


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def run_time_names(data: mmap.mmap | bytes) -> set[str]:
    """Names of libraries that the code opens: written out, or made of a stem and the text ``64_80``.

    A number below 10 is cuDNN's major version. Where several others stand (10.1 has ``64_10`` and ``64_101``), only
    cudart and CUPTI are sure to bear the toolkit's own, the largest; the rest is left out, for nothing pairs it.
    """
    found = {hit[1].decode() for hit in _WHOLE.finditer(data)}
    numbers = sorted({int(hit[1][3:]) for hit in _NUMBER.finditer(data)})
    cudnn, cuda = [n for n in numbers if n < 10], [n for n in numbers if n >= 10]
    for stem in {hit[1].decode() for hit in _STEM.finditer(data)}:
        fitting = cudnn if stem == "cudnn" else cuda[-1:] if stem in ("cudart", "cupti") else cuda
        if len(fitting) == 1:
            found.add(f"{stem}64_{fitting[0]}.dll")
    return found


def gpu_code(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """(kind, compute capability times ten) of every entry in every container of a file."""
    at = data.find(_CONTAINER)
    while at >= 0:
        (size,) = struct.unpack_from("<Q", data, at + 8)
        inner, end = at + 16, min(at + 16 + size, len(data))
        while inner + 32 <= end:
            kind, _, head, payload = struct.unpack_from("<HHIQ", data, inner)
            (capability,) = struct.unpack_from("<I", data, inner + 28)
            if kind not in (PTX, MACHINE_CODE) or head < 32 or not 10 <= capability < 200:
                break
            yield kind, capability
            inner += head + payload
        at = data.find(_CONTAINER, at + 16)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(json.dumps(measure(Path(name)), indent=2))
