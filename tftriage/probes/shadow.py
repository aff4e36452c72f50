"""Does a file of the user's stand in the way of TensorFlow, of a package it needs, or of the standard library?"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tftriage.facts import Facts
from tftriage.loader import base
from tftriage.probes.base import Evidence, Finding, probe, unknown
from tftriage.probes.logs import pasted
from tftriage.tables import Tables

# The file of a traceback's frame, and the file that a circular import names in brackets at the end.
_FILE = re.compile(r"""(?:File ["']|\()(?P<file>[^"'\n()<>]*?[^"'\n()<>\\/]+\.py)\b""")
# Python's own files and installed packages; a notebook server's, too.
_INSTALLED = re.compile(r"(?:site|dist)-packages|[\\/](?:lib(?:64)?|python\d[\d.]*)[\\/]", re.IGNORECASE)
_IMPORTS = re.compile(
    r"ImportError|ModuleNotFoundError|AttributeError|circular import|is not a package|^\s+(?:from|import) ",
    re.MULTILINE,
)
_NOT_PACKAGE = re.compile(r"'tensorflow' is not a package")
_NATIVE = re.compile(r"DLL load failed|cannot open shared object file|WinError", re.IGNORECASE)
# Gone from the newest standard library but still there in the Pythons that old TensorFlow runs on.
_OLD_STDLIB = frozenset({"imp", "distutils", "asyncore", "asynchat", "smtpd", "formatter", "parser", "symbol"})
# Module names of the library that nothing imports on the way, so that a script may bear them.
_HARMLESS = frozenset({"test", "this", "antigravity", "idlelib", "turtledemo", "turtle", "__main__", "__init__"})
# What TensorFlow and Keras import by these names.
_PACKAGES = frozenset(
    {"keras", "numpy", "h5py", "six", "wrapt", "absl", "google", "tensorboard", "termcolor", "gast", "scipy", "pandas"}
)


@probe(
    "shadowed",
    answers=("clear", "tensorflow-file", "package-file", "stdlib-file"),
    needs=("tf.package", "tf.import", "paste.text"),
    fills=("file",),
)
def shadowed(facts: Facts, tables: Tables) -> Finding:
    """Whether a file of the user's stands in the way of TensorFlow, of a package it needs or of the library.

    What lies in the folder is seen by the collector; where the error happened elsewhere, its traceback names the file.

    Sample of the traceback: ``File "/home/alice/shadow/tensorflow.py", line 2, in <module>``, after which
    ``AttributeError: module 'tensorflow' has no attribute '__version__'``.
    """
    package: Mapping[str, Any] | None = facts.value("tf.package")
    tried: Mapping[str, Any] = facts.value("tf.import") or {}
    own = list(_own(f"{tried.get('traceback') or ''}\n{tried.get('error') or ''}"))
    listed = [str(path) for path in (package or {}).get("shadow") or ()]
    if tried.get("ok"):
        lines = [Evidence("shadow.harmless", {"file": path}) for path in listed[:1]]
        return Finding("clear", (*lines, Evidence("shadow.import-works", {}, "ok")))
    for path in [*(p for p in own if _kind(p) == "tensorflow-file"), *listed]:
        return _found(path, _kind(path) or "package-file", "shadow.file")
    text = pasted(facts)
    if _IMPORTS.search(text) and not _NATIVE.search(text):
        for path in _own(text):
            if kind := _kind(path, text):
                return _found(path, kind, "shadow.pasted-file")
        if _NOT_PACKAGE.search(text):
            return _found("tensorflow.py", "tensorflow-file", "shadow.not-a-package")
    if package is None:
        return unknown(facts, "tf.package")
    return Finding("clear", (Evidence("shadow.clear", {}, "ok"),))


def _own(text: str) -> Iterator[str]:
    """The files of a traceback that are neither Python's own nor an installed package's."""
    for path in dict.fromkeys(hit["file"] for hit in _FILE.finditer(text.replace("\\\\", "\\"))):
        if not _INSTALLED.search(path):
            yield path


def _name(path: str) -> str:
    return re.sub(r"\.pyc?$|[\\/]+$", "", base(path.rstrip("\\/")))


def _kind(path: str, text: str = "") -> str | None:
    """Whose name a file bears; ``None`` when nobody's. A text may say itself that the name hides a package."""
    name = _name(path)
    if name == "tensorflow":
        return "tensorflow-file"
    told = (f"'{name}' is not a package", f"partially initialized module '{name}'")
    if name in _PACKAGES or any(words in text for words in told):
        return "package-file"
    library = name in sys.stdlib_module_names or name in _OLD_STDLIB
    return "stdlib-file" if library and name not in _HARMLESS else None


def _found(path: str, kind: str, key: str) -> Finding:
    return Finding(kind, (Evidence(key, {"file": path, "module": _name(path)}, "bad"),), {"file": path})
