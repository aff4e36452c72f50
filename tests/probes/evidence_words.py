"""Run a probe on hand-made facts and check that every line of its evidence has words in both languages."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tftriage.facts import Fact, Facts
from tftriage.probes.base import PROBES, Finding
from tftriage.tables import Build, DriverFloor, Gpu, Tables

FOLDER = Path(__file__).parents[2] / "knowledge" / "evidence"
WIN10 = {
    "system": "Windows",
    "release": "10",
    "version": "10.0.19045",
    "machine": "AMD64",
    "wsl": None,
    "wine": False,
}
LINUX = {"system": "Linux", "release": "6.1", "version": "1", "machine": "x86_64", "wsl": None, "wine": False}
WSL2 = {**LINUX, "wsl": 2}


def build(version: str, system: str, cuda: str, minimum: str, code: tuple[str, ...], ptx: tuple[str, ...]) -> Build:
    """A builds row with what the probes of the GPU read."""
    return Build(
        package="tensorflow-gpu",
        version=version,
        system=system,  # type: ignore[arg-type]
        pythons=("3.7",),
        cuda=cuda,
        capability_min=minimum,
        machine_code=code,
        ptx=ptx,
        source="test",
    )


OLD = ("3.5", "3.7", "5.2", "6.0", "6.1", "7.0")
TABLES = Tables(
    builds=(
        build("2.1", "Windows", "10.1", "3.5", OLD, OLD),
        build("2.1", "Linux", "10.1", "3.5", OLD, OLD),
        build(
            "2.3",
            "Windows",
            "10.1",
            "3.5",
            ("sm_35", "sm_37", "sm_52", "sm_60", "sm_61", "sm_70"),
            ("compute_70",),
        ),
        build("2.10", "Windows", "11.2", "3.5", ("3.5", "5.0", "6.0", "7.0", "7.5", "8.0"), ("8.0",)),
        build("2.10", "Linux", "11.2", "3.5", ("3.5", "5.0", "6.0", "7.0", "7.5", "8.0"), ("8.0",)),
        build("2.9", "Windows", "11.2", "3.5", (), ()),
        build("2.0", "Windows", "10.0", "3.5", ("7.0",), ()),
    ),
    drivers=(
        DriverFloor(cuda="10.1", system="Windows", driver="418.96", source="test"),
        DriverFloor(cuda="10.1", system="Linux", driver="418.39", source="test"),
        DriverFloor(cuda="11.2", system="Windows", driver="460.82", source="test"),
        DriverFloor(cuda="11.2", system="Linux", driver="460.27.03", source="test"),
        DriverFloor(cuda="11.x", system="Windows", driver="452.39", source="test"),
    ),
    gpus=(
        Gpu(names=("gtx 1650",), capability="7.5", source="test"),
        Gpu(names=("gtx 660",), capability="3.0", source="test"),
        Gpu(names=("rtx 3060",), capability="8.6", source="test"),
    ),
)


def fact(name: str, value: Any) -> Fact:
    """An observed fact; a ``Fact`` stays as it is."""
    return value if isinstance(value, Fact) else Fact(name, "ok", value)


def facts(**values: Any) -> Facts:
    """Facts by name, with ``__`` for the dot: ``tf__gpus={...}``. ``paste="..."`` is the pasted text."""
    named = {name.replace("__", "."): value for name, value in values.items()}
    if "paste" in named:
        named["paste.text"] = {"text": named.pop("paste")}
    return Facts(fact(name, value) for name, value in named.items())


@cache
def words() -> dict[str, dict[str, str]]:
    """Every evidence key of the knowledge base with its two texts."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        found |= yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    return found


def run(name: str, tables: Tables = TABLES, **values: Any) -> Finding:
    """The finding of a probe, after checking what every finding owes its readers."""
    finding = PROBES[name](facts(**values), tables)
    probe = PROBES[name]
    assert finding.evidence, "an answer without evidence"
    assert set(finding.values) <= set(probe.fills), f"{name} fills undeclared {set(finding.values) - set(probe.fills)}"
    assert bool(finding.reason) == (finding.answer == "unknown")
    for evidence in finding.evidence:
        texts = words()[evidence.key]
        assert set(texts) == {"en", "zh"}
        for text in texts.values():
            # An empty or missing part would show as a hole in the sentence.
            wanted = set(re.findall(r"\{([\w-]+)\}", text))
            assert wanted <= set(evidence.params), f"{evidence.key}: {wanted - set(evidence.params)} not given"
        assert all(isinstance(value, str) for value in evidence.params.values())
    return finding
