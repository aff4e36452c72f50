"""Does the cuDNN that is loaded fit the one that TensorFlow was compiled with?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tftriage import loader
from tftriage.facts import Facts
from tftriage.probes.base import UNKNOWN, Evidence, Finding, probe, unknown
from tftriage.tables import Tables, parse

_MISMATCH = re.compile(
    r"Loaded runtime CuDNN library: (?P<loaded>\d[\d.]*)(?: \(compatibility version \d+\))?,? "
    r"but source was compiled with:? (?P<compiled>\d[\d.]*)",
    re.IGNORECASE,
)
_ACCEPTED = re.compile(r"Loaded cuDNN version (?P<loaded>\d[\d.]*)")
MINOR_IS_A_FLOOR = 7  # from cuDNN 7 on a higher minor version will do; before, it had to be the same (cuda_dnn.cc)


@probe(
    "cudnn_version",
    answers=("fits", "too-old", "too-new", "two-copies"),
    needs=("paste.text", "tf.operation", "tf.package", "dlls.tree", "cuda.toolkits", "target.packages", "system.os"),
    fills=("loaded", "compiled", "dll", "other"),
)
def cudnn_version(facts: Facts, tables: Tables) -> Finding:
    """The loaded cuDNN against the compiled one: the same major version and, from 7 on, no lower minor version.

    Samples (the second is what TensorFlow prints when all is well)::

        Loaded runtime CuDNN library: 7.4.1 but source was compiled with: 7.6.0.  CuDNN library major and minor …
        I tensorflow/stream_executor/cuda/cuda_dnn.cc:369] Loaded cuDNN version 8100
    """
    text = _texts(facts)
    copies = _copies(facts)
    told = _MISMATCH.search(text)
    if told is not None:
        values = {"loaded": spoken(told["loaded"]), "compiled": spoken(told["compiled"])}
        line = Evidence("cudnn.told", values, "bad")
        return _judge(values["loaded"], values["compiled"], copies, (line,), values)
    accepted = _ACCEPTED.search(text)
    if accepted is not None:
        loaded = spoken(accepted["loaded"])
        return Finding("fits", (Evidence("cudnn.accepted", {"loaded": loaded}, "ok"),), {"loaded": loaded})
    compiled = _compiled(facts, tables)
    if not copies:
        return unknown(facts, "dlls.tree", "cuda.toolkits", "target.packages")
    if compiled is None:
        reason = "tf.package: the cuDNN that this build was compiled with is not in the tables"
        return Finding(UNKNOWN, (Evidence("cudnn.compiled-unknown"),), {"loaded": copies[0][1]}, reason)
    path, version = copies[0]
    seen = {"loaded": version, "compiled": compiled, "dll": path}
    line = Evidence("cudnn.seen", seen, "ok" if fits(version, compiled) else "bad")
    return _judge(version, compiled, copies, (line,), seen)


def spoken(number: str) -> str:
    """``7605`` is 7.6.5, ``90100`` is 9.1.0; a dotted version stays (without the full stop of its sentence)."""
    number = number.strip(".")
    if not number.isdigit() or len(number) < 4:
        return number
    unit = 10_000 if len(number) > 4 else 1_000
    return f"{int(number) // unit}.{int(number) % unit // 100}.{int(number) % 100}"


def fits(loaded: str, compiled: str) -> bool | None:
    """TensorFlow's own rule; ``None`` when a version cannot be read."""
    have, want = parse(loaded), parse(compiled)
    if have is None or want is None:
        return None
    if want.major < MINOR_IS_A_FLOOR:
        return (have.major, have.minor) == (want.major, want.minor)
    return have.major == want.major and have.minor >= want.minor


def _judge(
    loaded: str, compiled: str, copies: list[tuple[str, str]], lines: tuple[Evidence, ...], values: dict[str, str]
) -> Finding:
    if fits(loaded, compiled):
        return Finding("fits", lines, values)
    better = next(((path, v) for path, v in copies if v != loaded and fits(v, compiled)), None)
    if better is not None:
        line = Evidence("cudnn.two", {"other": better[0], "version": better[1]}, "bad")
        return Finding("two-copies", (*lines, line), {**values, "other": better[0]})
    have, want = parse(loaded), parse(compiled)
    if have is None or want is None:
        return Finding(UNKNOWN, lines, values, f"paste.text: {loaded} or {compiled} is no version")
    return Finding("too-old" if have < want else "too-new", lines, values)


def _texts(facts: Facts) -> str:
    operation: Mapping[str, Any] = facts.value("tf.operation") or {}
    parts = (operation.get("log"), operation.get("error"), (facts.value("paste.text") or {}).get("text"))
    return " ".join(" ".join(str(part).split()) for part in parts if part)


def _compiled(facts: Facts, tables: Tables) -> str | None:
    package: Mapping[str, Any] = facts.value("tf.package") or {}
    system = str((facts.value("system.os") or {}).get("system") or "Windows")
    build = tables.build(package.get("version"), system)
    recorded = (package.get("build_info") or {}).get("cudnn_version")
    return (build.cudnn if build else None) or (str(recorded).removeprefix("64_") if recorded else None)


def _copies(facts: Facts) -> list[tuple[str, str]]:
    """(path, version) of every cuDNN that could be loaded, the one that wins the search first."""
    tree: Mapping[str, Any] | None = facts.value("dlls.tree")
    found: dict[str, str] = {}
    if tree:
        for entry in loader.resolve(tree).entries:
            if loader.library(entry.name).family != "cudnn" or entry.path is None:
                continue
            for path, version in ((entry.path, entry.version), *((c.path, c.version) for c in entry.shadowed)):
                number = version if version and "cudnn_version" in _header(tree, path) else None
                known = number or _toolkit(path, facts)
                if known:
                    found.setdefault(path, known)
    wheel = next(
        (p for name, p in (facts.value("target.packages") or {}).items() if name.startswith("nvidia-cudnn")), None
    )
    if wheel is not None and not found:
        found[str(wheel.get("folder") or wheel.get("name"))] = ".".join(str(wheel["version"]).split(".")[:3])
    return list(found.items())


def _header(tree: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    files: Mapping[str, Mapping[str, Any]] = tree.get("files") or {}
    return next((h for p, h in files.items() if p.lower() == path.lower() and h.get("cudnn_version")), {})


def _toolkit(path: str, facts: Facts) -> str | None:
    """The cuDNN version of the toolkit folder that a file lies in."""
    at = loader.folder(path).lower()
    for kit in facts.value("cuda.toolkits") or ():
        if str(kit.get("bin") or kit.get("folder") or "").rstrip("\\/").lower() == at and kit.get("cudnn"):
            return str(kit["cudnn"])
    return None
