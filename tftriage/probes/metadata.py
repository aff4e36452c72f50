"""What TensorFlow's METADATA asks for against what is installed."""

from __future__ import annotations

import re
from typing import Any

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement

from tftriage.facts import Facts
from tftriage.probes.base import Evidence, Finding, probe, unknown
from tftriage.tables import Tables, parse

SHOWN = 8  # requirements named in one sentence
_PLATFORMS = {"Windows": "win32", "Linux": "linux", "Darwin": "darwin"}


def environment(facts: Facts) -> dict[str, str]:
    """The target's values for markers such as ``python_version < "3.8"``; never those of our own interpreter."""
    target, system = facts.value("target.interpreter") or {}, facts.value("system.os") or {}
    version = [str(part) for part in target.get("version") or []]
    name = str(system.get("system") or "")
    return {
        "python_version": ".".join(version[:2]),
        "python_full_version": ".".join(version[:3]),
        "sys_platform": str(target.get("platform") or _PLATFORMS.get(name, "")),
        "platform_system": name,
        "platform_machine": str(system.get("machine") or ""),
        "platform_python_implementation": str(target.get("implementation") or "CPython"),
        "implementation_name": str(target.get("implementation") or "CPython").lower(),
        "os_name": "nt" if name == "Windows" else "posix",
        "extra": "",
    }


def wanted(lines: list[str], marks: dict[str, str]) -> list[Requirement]:
    """The requirements that hold for this interpreter; a line that is none is left out."""
    found = []
    for line in lines:
        try:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate(dict(marks)):
                found.append(requirement)
        except (InvalidRequirement, UndefinedEnvironmentName):
            continue
    return found


@probe(
    "metadata_fits",
    answers=("fit", "missing", "differs"),
    needs=("target.packages", "target.interpreter", "system.os"),
    fills=("tf_version", "wrong", "pins"),
)
def metadata_fits(facts: Facts, tables: Tables) -> Finding:
    """Whether what TensorFlow says that it needs is installed: missing at all, or in another version.

    A missing package breaks the import; another version often works (TensorFlow 2.1 asks for scipy 1.4.1 exactly and
    never imports it).

    Sample (METADATA of tensorflow-gpu 2.3.1)::

        Requires-Dist: gast (==0.3.3)
        Requires-Dist: protobuf (>=3.9.2)
    """
    packages: dict[str, Any] | None = facts.value("target.packages")
    if packages is None or not facts.ok("target.interpreter"):
        return unknown(facts, "target.packages", "target.interpreter")
    ours = next((one for one in packages.values() if one.get("requires")), None)
    if ours is None:
        reason = "target.packages: no TensorFlow whose METADATA could be read"
        return Finding("unknown", (Evidence("metadata.none"),), {}, reason)
    missing, other = [], []
    for requirement in wanted(list(ours["requires"]), environment(facts)):
        have = packages.get(re.sub(r"[-_.]+", "-", requirement.name).lower())
        asked = f"{requirement.name}{requirement.specifier}"
        if have is None:
            missing.append(asked)
        elif (version := parse(have.get("version"))) and not requirement.specifier.contains(version, prereleases=True):
            other.append(f"{requirement.name} {have['version']} ({requirement.specifier})")
    values = {"tf_version": str(ours.get("version") or "?")}
    if not missing and not other:
        return Finding("fit", (Evidence("metadata.fit", values, "ok"),), values)
    values |= {"wrong": ", ".join((missing or other)[:SHOWN]), "pins": " ".join((missing or other)[:SHOWN])}
    answer = "missing" if missing else "differs"
    return Finding(answer, (Evidence(f"metadata.{answer}", values, "bad" if missing else "info"),), values)
