"""Builds do-nothing stand-ins of the CUDA libraries that a TensorFlow 1.x for Linux is linked against.

    python stubgen.py OUT consumer.so [consumer.so ...]

The consumers' undefined dynamic symbols (read with objdump) give one library for each CUDA library needed,
with the right soname and symbol version, so that such a TensorFlow can be imported without CUDA. Functions
of the runtime answer 0 (success), all others 1 (a failure). The driver is not made here: that is fake_cuda.c.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable

CUDA = re.compile(r"lib(cublas|cublasLt|cusolver|cudart|cudnn|cufft|curand|cusparse|cupti|nccl|nvinfer)\.so")
SPECIAL = {  # functions whose answer has a shape of its own
    "__cudaRegisterFatBinary": "static long cell[4]; void *{0}(void *p) {{ return cell; }}",
    "cudaGetErrorString": 'const char *{0}(int e) {{ return "stub"; }}',
    "cudnnGetErrorString": 'const char *{0}(int e) {{ return "CUDNN_STATUS_NOT_INITIALIZED"; }}',
    "cudnnGetVersion": "unsigned long {0}(void) {{ return 7402; }}",
    "cudaRuntimeGetVersion": "int {0}(int *v) {{ *v = 10000; return 0; }}",
    "cudaGetDevice": "int {0}(int *d) {{ *d = 0; return 0; }}",
}


def read(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()


def wanted(consumers: Iterable[str]) -> dict[str, set[str]]:
    """CUDA library -> names of the functions that the consumers take from it."""
    libraries: dict[str, set[str]] = {}
    for consumer in consumers:
        for line in read("objdump", "-p", consumer):
            if "NEEDED" in line and CUDA.match(line.split()[1]):
                libraries.setdefault(line.split()[1], set())
        for line in read("objdump", "-T", consumer):
            fields = line.split()
            if "*UND*" in fields and CUDA.match(fields[-2].strip("()")):
                libraries.setdefault(fields[-2].strip("()"), set()).add(fields[-1])
    return libraries


def source(names: Iterable[str]) -> str:
    def function(name: str) -> str:
        answer = 0 if name.startswith(("cuda", "__cuda")) else 1
        return SPECIAL.get(name, f"int {{0}}(void) {{{{ return {answer}; }}}}").format(name)

    return "\n".join(map(function, sorted(names))) + "\n"


def main(out: str, *consumers: str) -> None:
    folder = pathlib.Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for soname, names in wanted(consumers).items():
            code, versions = pathlib.Path(scratch, "stub.c"), pathlib.Path(scratch, "stub.map")
            code.write_text(source(names), encoding="utf-8")
            versions.write_text(f"{soname} {{ global: *; }};\n", encoding="utf-8")
            flags = ["-shared", "-fPIC", "-w", "-O1", f"-Wl,-soname,{soname}", f"-Wl,--version-script={versions}"]
            subprocess.run(["gcc", *flags, "-o", str(folder / soname), str(code)], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
