"""Which Python environment is under suspicion, when the person did not say."""

from __future__ import annotations

import ntpath
import posixpath
import re
from typing import Any

from tftriage.facts import Facts

_FRAME = re.compile(r'File "([^"]+?)[\\/](?:lib|Lib|LIB)(?:[\\/]python\d\.\d+)?[\\/]')


def candidates(facts: Facts) -> list[dict[str, Any]]:
    """The Pythons of this machine, those with a TensorFlow first, otherwise in the order found."""
    found: list[dict[str, Any]] = facts.value("pythons.list", [])
    return sorted(found, key=lambda python: python.get("tensorflow") is None)


def suggest(facts: Facts, text: str) -> tuple[str | None, str]:
    """The likely target and why: the traceback's own prefix, the activated environment, the only one with TensorFlow.

    ``(None, "")`` when several are equally likely: then the person chooses.
    """
    found = candidates(facts)
    prefixes = {_same(prefix) for prefix in _FRAME.findall(text)}
    for python in found:
        if _same(python.get("prefix") or "") in prefixes:
            return python["path"], "traceback"
    variables = facts.value("env.process", {})
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        active = variables.get(name)
        for python in found:
            if active and _same(python.get("prefix") or "") == _same(active) and python.get("tensorflow"):
                return python["path"], "activated"
    with_tensorflow = [python for python in found if python.get("tensorflow")]
    if len(with_tensorflow) == 1:
        return with_tensorflow[0]["path"], "only-one"
    if len(found) == 1:
        return found[0]["path"], "only-one"
    return None, ""


def _same(path: str) -> str:
    """A path in a form that can be compared, whichever system it comes from."""
    windows = "\\" in path or path[1:2] == ":"
    return ntpath.normcase(ntpath.normpath(path)) if windows else posixpath.normpath(path)
