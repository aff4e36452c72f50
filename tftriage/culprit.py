"""Whose failure a line of a traceback is: TensorFlow's (with what it needs) or another package's.

The loader prints the same words for every extension module. What tells them apart is the module's name, a
path in the message, or the innermost frame above it that lies in a package.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

FAMILY = frozenset(
    [
        "tensorflow",
        "tensorflow_core",
        "tensorflow_cpu",
        "tensorflow_intel",
        "tensorflow_estimator",
        "tensorflow_hub",
        "tensorflow_text",
        "keras",
        "tf_keras",
        "keras_applications",
        "keras_preprocessing",
        "google",
        "h5py",
        "tensorboard",
        "ml_dtypes",
        "absl",
        "gast",
        "astunparse",
    ]
)
"""Packages that are TensorFlow or stand on its import path: their failure is ours to explain."""

NATIVE = frozenset(
    [
        "_pywrap_tensorflow_internal",
        "_pywrap_tensorflow",
        "_pywrap_tensorflow_common",
        "_pywrap_tfe",
        "_pywrap_tf2",
        "_message",
        "_errors",
        "_conv",
        "defs",
        "h5r",
        "h5",
        "_objects",
        "_proxy",
        "pywrap_tensorflow",
        "pywrap_tensorflow_internal",
        "tensorflow",
    ]
)
"""Extension modules of TensorFlow, protobuf and h5py."""

# Ours only when TensorFlow is importing them.
_SHARED = frozenset({"numpy", "scipy", "pandas", "sklearn", "PIL", "wrapt", "grpc", "grpcio"})
_HELPERS = frozenset(
    {"_pydev_bundle", "pydev", "debugpy", "IPython", "ipykernel", "six", "importlib_metadata", "spyder_kernels"}
)
_IMPORTING = re.compile(r"while importing ([\w.]+)")
_NO_MODULE = re.compile(r"No module named '?\"?([\w.]+)")
_CANNOT = re.compile(r"cannot import name '?\w+'? from (?:partially initialized module )?'?([\w.]+)", re.IGNORECASE)
_SOURCE = re.compile(r"^(?:import|from) ([A-Za-z_]\w*)")
_FRAME = re.compile(r'File "([^"]+)"?|^File (\S+\.py):\d+|^(\S+\.pyx?) in |^(\S+\.pyx?):\d+: in')
_PACKAGE = re.compile(r"(?:site|dist)-packages[\\/]+([\w]+)(?:[\\/]+(\w+))?")
_BARE = re.compile(
    r"(?:^|[\\/])(tensorflow|tensorflow_core|keras)[\\/]+(?:python|_api|lite|src|engine|contrib|core)[\\/]"
)
_SITE = re.compile(r'"?((?:[A-Za-z]:|~|/)[^"]*?)[\\/]+(?:[Ll]ib[\\/]+)?(?:python\d[\d.]*[\\/]+)?(?:site|dist)-packages')


class Culprit(msgspec.Struct, frozen=True):
    """``owner``: ``tensorflow``, ``other`` or, when the text does not say, empty."""

    owner: Literal["", "tensorflow", "other"] = ""
    module: str = ""
    package: str = ""
    python: str = ""

    def captures(self) -> dict[str, str]:
        """What is known, for the probes."""
        pairs = {"module": self.module, "package": self.package, "python": self.python}
        return {name: value for name, value in pairs.items() if value}


def culprit(lines: list[str], index: int, torn: str = "") -> Culprit:
    """Whose failure line ``index`` reports. ``lines`` are clean and without indentation.

    ``torn``: the line before, when ``index`` may be its rest.
    """
    line = lines[index]
    for rest in (torn + line, f"{torn} {line}") if torn else ():
        if any(pattern.search(rest) for pattern in (_IMPORTING, _NO_MODULE, _CANNOT)):
            line = rest
            break
    module = next((hit[1] for hit in (p.search(line) for p in (_IMPORTING, _NO_MODULE, _CANNOT)) if hit), "")
    package, python = _innermost(lines, index)
    source = _SOURCE.match(lines[index - 1]) if index > 1 and not module else None
    if source is not None and _FRAME.search(lines[index - 2]) and source[1] not in {*FAMILY, *_SHARED, *NATIVE}:
        return Culprit("other", source[1], source[1], python)
    where = " ".join(lines[max(0, index - 12) : index + 13]).lower()
    tensorflow_near = "tensorflow" in where
    if module:
        root = module.split(".")[0]
        if root.startswith("_pywrap_") or root in NATIVE or root in FAMILY:
            other = root in {"_message", "_errors", "_conv", "defs", "h5", "_objects"} and package not in ("", *FAMILY)
            return Culprit("other" if other else "tensorflow", module, package, python)
        if not _IMPORTING.search(line) or not package:
            package = package if package in FAMILY else root
            return Culprit("other", module, package, python)
    named = _PACKAGE.search(line)
    if named is not None and not _FRAME.search(line):
        package = named[1]
    if package in FAMILY:
        return Culprit("tensorflow", module, package, python)
    if package in _SHARED:
        return Culprit("tensorflow" if "tensorflow" in _traceback(lines, index) else "other", module, package, python)
    if package:
        return Culprit("other", module, package, python)
    if tensorflow_near:
        return Culprit("tensorflow", module, package, python)
    if re.search(r"\b(?:torch|pytorch|onnxruntime|cv2|paddle|mxnet|cupy|jax|win32api|pyqt\d?|_ssl)\b", where):
        return Culprit("other", module, package, python)
    return Culprit("", module, package, python)


def _innermost(lines: list[str], index: int) -> tuple[str, str]:
    """Package and interpreter folder of the nearest frame above, within the same traceback."""
    for at in range(index, max(-1, index - 80), -1):
        line = lines[at]
        if at < index and line.startswith(("Traceback (most recent", "During handling of", "ImportError", "OSError")):
            break
        hit = _FRAME.search(line)
        if hit is None:
            continue
        path = next(group for group in hit.groups() if group)
        package = _package(path)
        if package and package not in _HELPERS:
            site = _SITE.search(path)
            return package, site[1] if site else ""
    return "", ""


def _package(path: str) -> str:
    hit = _PACKAGE.search(path)
    if hit is not None:
        return hit[1]
    bare = _BARE.search(path)
    return bare[1] if bare else ""


def _traceback(lines: list[str], index: int) -> str:
    start = index
    while start > 0 and index - start < 80 and not lines[start].startswith("Traceback (most recent"):
        start -= 1
    return " ".join(lines[start : index + 1]).lower()
