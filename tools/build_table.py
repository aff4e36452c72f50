"""Make ``knowledge/tables/builds.yaml`` from measurements of TensorFlow's Windows wheels.

    python tools/build_table.py WHEELS_JSON knowledge/tables/builds.yaml

``WHEELS_JSON`` is a list with one object a wheel: what was read from the file itself with pefile (import tables,
linker), from its code (names opened at run time), its CUDA containers (machine code, PTX) and its metadata.
The Linux rows have no such list: they are written here, each with where it comes from.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

Row = dict[str, Any]

# The cuDNN version a Windows wheel was compiled with: the numbers beside its version-mismatch message. By series.
CUDNN = {
    "1.0": "5.1.5", "1.4": "6.0.21", "1.6": "7.0.3", "1.12": "7.2.1", "1.13": "7.4.1", "1.14": "7.4.1",
    "1.15": "7.6.0", "2.0": "7.6.0", "2.1": "7.6.5", "2.2": "7.6.5", "2.3": "7.6.5", "2.4": "8.0.2", "2.5": "8.1.0",
    "2.6": "8.1.0", "2.8": "8.1.0", "2.10": "8.1.0",
}  # fmt: skip
# Not measured; the documentation's table of tested configurations.
CUDNN_DOCUMENTED = {
    "0.12": "5.1", "1.1": "5.1", "1.2": "5.1", "1.3": "6.0", "1.5": "7.0", "1.7": "7.0", "1.8": "7.0", "1.9": "7.0",
    "1.10": "7.0", "1.11": "7.0", "2.7": "8.1", "2.9": "8.1",
}  # fmt: skip
# Not part of "libraries": the driver has its own question, and CUPTI is only for profiling.
LEFT_OUT = ("nvcuda", "cupti")
# Windows builds without GPU code and the Pythons they have files for, read from the package listing; None: a series
# row is made from the wheels that were read.
WINDOWS_CPU = {
    "2.11": "3.7 3.8 3.9 3.10", "2.12": "3.8 3.9 3.10 3.11", "2.13": "3.8 3.9 3.10 3.11", "2.14": "3.9 3.10 3.11",
    "2.15": "3.9 3.10 3.11", "2.16": "3.9 3.10 3.11 3.12", "2.17": "3.9 3.10 3.11 3.12", "2.18": "3.9 3.10 3.11 3.12",
    "2.19": "3.9 3.10 3.11 3.12", "2.20": "3.9 3.10 3.11 3.12 3.13", "2.21": "3.10 3.11 3.12 3.13",
}  # fmt: skip

DOCS = "tensorflow/docs site/en/install/source.md, tested build configurations, Linux GPU"
ALL_10_0 = "cudart.so.10.0 cublas.so.10.0 cufft.so.10.0 curand.so.10.0 cusolver.so.10.0 cusparse.so.10.0 cudnn.so.7"
ALL_10_1 = "cudart.so.10.1 cublas.so.10 cufft.so.10 curand.so.10 cusolver.so.10 cusparse.so.10 cudnn.so.7"
ALL_11 = "cudart.so.11.0 cublas.so.11 cublasLt.so.11 cufft.so.10 curand.so.10 cusolver.so.{} cusparse.so.11 cudnn.so.8"
LIB_11_8 = "cudart.so.11.0 cublas.so.11 cublasLt.so.11 cufft.so.10 cusolver.so.11 cusparse.so.11 cudnn.so.8"
LIB_12 = "cudart.so.12 cublas.so.12 cublasLt.so.12 cufft.so.11 cusolver.so.11 cusparse.so.12 cudnn.so.{}"
OLD_CODE, NEW_CODE = "3.5 3.7 5.2 6.0 6.1 7.0", "3.5 5.0 6.0 7.0 7.5 8.0"
AS_LOGGED = "; library names as the unmodified wheel {} printed them on Debian 12 with an own driver stub"
AS_BEFORE = "; library names as in the neighbouring measured versions"

# version, Pythons, CUDA, cuDNN, libraries opened by name, machine code, PTX, kind, source
LINUX: tuple[tuple[str, str, str, str, str, str, str, str, str], ...] = (
    ("1.13.1", "3.5 3.6 3.7", "10.0", "7.3.0", "cufft.so.10.0 curand.so.10.0", OLD_CODE, OLD_CODE, "measured",
     "tensorflow_gpu-1.13.1-cp37 for Linux: NEEDED entries, CUDA containers, and its own message 'source was compiled "
     "with: 7.3.0'; run on Debian 12"),
    ("1.13", "3.5 3.6 3.7", "10.0", "7.4", "cufft.so.10.0 curand.so.10.0", OLD_CODE, OLD_CODE, "derived",
     DOCS + "; the rest as in 1.13.1"),
    ("1.14", "3.5 3.6 3.7", "10.0", "7.4", ALL_10_0, OLD_CODE, OLD_CODE, "derived",
     DOCS + "; tensorflow/tensorflow v1.14.0 dlopen_checker.cc; code as in the Windows wheel"),
    ("1.15", "3.5 3.6 3.7", "10.0", "7.4", ALL_10_0, OLD_CODE, OLD_CODE, "derived",
     DOCS + "; tensorflow/tensorflow v1.14.0 to r2.1 dlopen_checker.cc; code as in the Windows wheel"),
    ("2.0", "3.5 3.6 3.7", "10.0", "7.4", ALL_10_0, OLD_CODE, OLD_CODE, "derived",
     DOCS + "; tensorflow/tensorflow v1.14.0 to r2.1 dlopen_checker.cc; code as in the Windows wheel"),
    ("2.1.0", "3.5 3.6 3.7", "10.1", "7.6", ALL_10_1, OLD_CODE, OLD_CODE, "measured",
     "tensorflow_gpu-2.1.0-cp37 for Linux: CUDA containers read from the file" + AS_LOGGED.format("2.1.0")),
    ("2.1", "3.5 3.6 3.7", "10.1", "7.6", ALL_10_1, OLD_CODE, OLD_CODE, "derived", "as the measured 2.1.0; " + DOCS),
    ("2.2", "3.5 3.6 3.7 3.8", "10.1", "7.6", ALL_10_1, OLD_CODE, OLD_CODE, "derived",
     DOCS + AS_BEFORE + "; code as in the Windows wheel"),
    ("2.3", "3.5 3.6 3.7 3.8", "10.1", "7.6", ALL_10_1, OLD_CODE, "7.0", "measured",
     DOCS + AS_LOGGED.format("2.3.1") + "; code as in the Windows wheel"),
    ("2.4", "3.6 3.7 3.8", "11.0", "8.0", ALL_11.format(10), NEW_CODE, "8.0", "measured",
     DOCS + AS_LOGGED.format("2.4.4") + "; code as in the Windows wheel"),
    ("2.5", "3.6 3.7 3.8 3.9", "11.2", "8.1", ALL_11.format(11), NEW_CODE, "8.0", "measured",
     DOCS + AS_LOGGED.format("2.5.3") + "; code as in the Windows wheel"),
    ("2.6", "3.6 3.7 3.8 3.9", "11.2", "8.1", ALL_11.format(11), NEW_CODE, "8.0", "derived", DOCS + AS_BEFORE),
    ("2.7", "3.7 3.8 3.9", "11.2", "8.1", ALL_11.format(11), NEW_CODE, "8.0", "derived", DOCS + AS_BEFORE),
    ("2.8", "3.7 3.8 3.9 3.10", "11.2", "8.1", ALL_11.format(11), NEW_CODE, "8.0", "measured",
     DOCS + AS_LOGGED.format("2.8.0") + "; code as in the Windows wheel"),
    ("2.9", "3.7 3.8 3.9 3.10", "11.2", "8.1", ALL_11.format(11), NEW_CODE, "8.0", "derived", DOCS + AS_BEFORE),
    ("2.10", "3.7 3.8 3.9 3.10", "11.2", "8.1", ALL_11.format(11), NEW_CODE, "8.0", "measured",
     DOCS + AS_LOGGED.format("2.10.1") + "; code as in the Windows wheel"),
    ("2.11", "3.7 3.8 3.9 3.10", "11.2", "8.1", ALL_11.format(11), NEW_CODE, "8.0", "derived", DOCS + AS_BEFORE),
    ("2.12", "3.8 3.9 3.10 3.11", "11.8", "8.6", LIB_11_8, NEW_CODE, "8.0", "derived", DOCS + AS_BEFORE),
    ("2.13", "3.8 3.9 3.10 3.11", "11.8", "8.6", LIB_11_8, NEW_CODE, "8.0", "derived", DOCS + AS_BEFORE),
    ("2.14", "3.9 3.10 3.11", "11.8", "8.7", LIB_11_8, NEW_CODE, "8.0", "derived", DOCS + AS_BEFORE),
    ("2.15", "3.9 3.10 3.11", "12.2", "8.9", LIB_12.format(8), "5.0 6.0 7.0 7.5 8.0", "8.0", "derived",
     DOCS + AS_BEFORE + "; CUDA 12 has no capability below 5.0"),
    ("2.16", "3.9 3.10 3.11 3.12", "12.3", "8.9", LIB_12.format(8), "5.0 6.0 7.0 7.5 8.0", "8.0", "derived",
     DOCS + AS_BEFORE + "; CUDA 12 has no capability below 5.0"),
    ("2.17", "3.9 3.10 3.11 3.12", "12.3", "8.9", LIB_12.format(8), "6.0 7.0 8.0 8.9", "9.0", "derived",
     DOCS + AS_BEFORE + "; release notes of 2.17: capability 5.x removed, 8.9 added"),
    ("2.18", "3.9 3.10 3.11 3.12", "12.5", "9.3", LIB_12.format(9), "6.0 7.0 8.0 8.9", "9.0", "derived",
     DOCS + AS_BEFORE + "; release notes of 2.17: capability 5.x removed, 8.9 added"),
    ("2.19", "3.9 3.10 3.11 3.12", "12.5", "9.3", LIB_12.format(9), "6.0 7.0 8.0 8.9", "9.0", "derived",
     DOCS + AS_BEFORE),
    ("2.20", "3.9 3.10 3.11 3.12 3.13", "12.5", "9.3", LIB_12.format(9), "6.0 7.0 8.0 8.9", "9.0", "derived",
     DOCS + AS_BEFORE),
    ("2.21", "3.10 3.11 3.12 3.13", "12.5", "9", LIB_12.format(9), "6.0 7.0 8.0 8.9 9.0", "9.0", "measured",
     "tensorflow-2.21.0-cp311 for Linux: build_info (CUDA 12.5.1), CUDA containers" + AS_LOGGED.format("2.21.0")),
)  # fmt: skip
IMPORTS_LINUX = {
    "1.13": "cublas.so.10.0 cusolver.so.10.0 cudart.so.10.0 cudnn.so.7 cuda.so.1",
}

HEAD = """\
# What each TensorFlow build needs. Made by tools/build_table.py; change it there.
# libraries: opened by name at run time (the driver and CUPTI are left out); imports: in the import table, so the
# import fails without them. A row "2.1" stands for every 2.1.x without a row of its own. Rows without cuda hold no
# GPU code. Windows: read from the wheels with pefile, one file a version. build_info of 2.5 to 2.10 names
# cudart64_112.dll; the code opens cudart64_110.dll.
"""


def series(version: str) -> str:
    """``2.1`` for ``2.1.0``."""
    return ".".join(version.split(".")[:2])


def dotted(numbers: Iterable[int]) -> list[str]:
    """Capabilities as people write them: 35 is 3.5, 120 is 12.0."""
    return [f"{number // 10}.{number % 10}" for number in sorted(numbers)]


def windows_row(wheel: Row) -> Row:
    """One measured wheel as a row."""
    code = wheel["gpu_architectures"] or {}
    machine_code, ptx = dotted(code.get("machine_code_sm", ())), dotted(code.get("ptx_compute", ()))
    run_time = [n for n in wheel["gpu_dlls_at_run_time"] or () if not n.startswith(LEFT_OUT)]
    of = series(wheel["version"])
    linker = next(iter(sorted(wheel["linkers"], reverse=True)), None)
    return {
        "package": wheel["package"],
        "version": wheel["version"],
        "system": "Windows",
        "pythons": wheel["windows_pythons"],
        "cuda": wheel["cuda_version"],
        "cudnn": wheel["cuda_version"] and (CUDNN.get(of) or CUDNN_DOCUMENTED.get(of) or wheel["cudnn_version"]),
        "libraries": run_time,
        "imports": wheel["gpu_dlls_at_import"] or [],
        "vc_runtime": [name.lower() for name in wheel["msvc_runtime_dlls"] or ()],
        "vc_floor": linker,
        "capability_min": machine_code[0] if machine_code else None,
        "machine_code": machine_code,
        "ptx": ptx,
        "source": f"{wheel['file']}, read with pefile",
        "kind": "measured",
    }


def windows_series(rows: Sequence[Row]) -> list[Row]:
    """A row for each series, from its newest measured GPU build: versions between the measured ones."""
    made: list[Row] = []
    for of in dict.fromkeys(series(row["version"]) for row in rows if row["cuda"]):
        same = [row for row in rows if row["cuda"] and series(row["version"]) == of]
        pythons = sorted({p for row in same for p in row["pythons"]}, key=lambda p: int(p.split(".")[1]))
        seen = ", ".join(dict.fromkeys(row["version"] for row in same))
        row = {**same[-1], "package": "tensorflow-gpu", "version": of, "pythons": pythons}
        made.append({**row, "kind": "derived", "source": f"as the measured {seen}"})
    return made


def windows_cpu() -> list[Row]:
    """The series of Windows builds that hold no GPU code (2.11 and newer)."""
    return [
        {
            "package": "tensorflow", "version": version, "system": "Windows", "pythons": pythons.split(),
            "vc_runtime": ["msvcp140.dll", "vcruntime140.dll", "vcruntime140_1.dll"], "kind": "derived",
            "source": "files offered for win_amd64; 2.11.1, 2.18.1, 2.19.1 and 2.21.0 say is_cuda_build = False",
        }
        for version, pythons in WINDOWS_CPU.items()
    ]  # fmt: skip


def linux_rows() -> list[Row]:
    """The rows that are written above."""
    return [
        {
            "package": "tensorflow" if int(cuda.split(".")[0]) > 11 or cuda == "11.8" else "tensorflow-gpu",
            "version": version, "system": "Linux", "pythons": pythons.split(), "cuda": cuda, "cudnn": cudnn,
            "libraries": ["lib" + name for name in names.split()],
            "imports": ["lib" + name for name in IMPORTS_LINUX.get(series(version), "").split()],
            "capability_min": code.split()[0], "machine_code": code.split(), "ptx": ptx.split(),
            "source": source, "kind": kind,
        }
        for version, pythons, cuda, cudnn, names, code, ptx, kind, source in LINUX
    ]  # fmt: skip


def main(wheels: Path, target: Path) -> None:
    """Write the table. The order is that of the versions, Windows first."""
    measured = [windows_row(wheel) for wheel in json.loads(wheels.read_text(encoding="utf-8"))]
    once: dict[tuple[str, bool], Row] = {}
    for row in measured:  # tensorflow and tensorflow-gpu share a file from 2.1 on: one row
        once.setdefault((row["version"], bool(row["cuda"])), row)
    rows = [*once.values(), *windows_series(measured), *windows_cpu(), *linux_rows()]
    rows.sort(key=lambda row: (row["system"] != "Windows", [int(part) for part in row["version"].split(".")]))
    lines = [HEAD + "builds:"]
    for row in rows:
        kept = {key: value for key, value in row.items() if value}
        for number, (key, value) in enumerate(kept.items()):
            shown = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True).strip()
            shown = shown.removesuffix("\n...").strip()
            lines.append(f"{'- ' if number == 0 else '  '}{key}: {shown}")
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(rows)} rows")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
