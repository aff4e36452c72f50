"""Windows' own part: the Visual C++ runtime that is installed, and the limit of 260 characters."""

from __future__ import annotations

from typing import Any

from tftriage.facts import Facts
from tftriage.probes.base import UNKNOWN, Evidence, Finding, probe, unknown
from tftriage.probes.starting import linker_of
from tftriage.tables import Tables, parse

# Needed by every build; vcruntime140_1.dll by those that Visual Studio 2019 linked (14.20 and newer, TensorFlow 2.1).
ALWAYS = ("vcruntime140.dll", "msvcp140.dll")
SINCE_2019 = ("vcruntime140_1.dll",)
FIRST_2019 = "14.20"


@probe(
    "vc_runtime",
    answers=("current", "outdated", "missing"),
    needs=("system.vcruntime", "tf.package"),
    fills=("missing", "found_version", "wanted_version"),
)
def vc_runtime(facts: Facts, tables: Tables) -> Finding:
    """Whether the Visual C++ runtime in System32 is there and as new as the linker that built TensorFlow.

    Sample::

        {"registry": [{"arch": "x64", "version": "14.16.27033", "installed": true}],
         "files": [{"name": "msvcp140.dll", "version": "14.16.27033.0", "machine": "x64", "error": null}]}
    """
    seen: dict[str, Any] | None = facts.value("system.vcruntime")
    if seen is None:
        return unknown(facts, "system.vcruntime")
    version = str((facts.value("tf.package") or {}).get("version") or "")
    floor = linker_of(version, tables)
    files = {str(one["name"]).lower(): one for one in seen.get("files") or [] if not one.get("error")}
    newer = floor is not None and (parse(floor) or parse("0")) >= parse(FIRST_2019)  # type: ignore[operator]
    gone = [name for name in ALWAYS + (SINCE_2019 if newer else ()) if name not in files]
    if gone:
        values = {"missing": ", ".join(gone)}
        return Finding("missing", (Evidence("vc_runtime.missing", values, "bad"),), values)
    have = str(files["msvcp140.dll"].get("version") or "")
    found, needed = parse(".".join(have.split(".")[:2])), parse(floor)
    values = {"found_version": have, "wanted_version": floor or ""}
    if found is None or needed is None:
        reason = "system.vcruntime: which version this build needs, or which one is installed, is not known"
        return Finding(UNKNOWN, (Evidence("vc_runtime.unknown", {"found_version": have or "?"}),), values, reason)
    if found < needed:
        return Finding("outdated", (Evidence("vc_runtime.outdated", values, "bad"),), values)
    return Finding("current", (Evidence("vc_runtime.current", values, "ok"),), values)


@probe("long_paths", answers=("on", "off"), needs=("system.settings",))
def long_paths(facts: Facts, tables: Tables) -> Finding:
    """Whether Windows lets programs use paths of more than 260 characters.

    Sample: ``{"long_paths": false, "hags": null, "hags_mode": null}``. No value in the registry means off.
    """
    seen: dict[str, Any] | None = facts.value("system.settings")
    if seen is None:
        return unknown(facts, "system.settings")
    on = seen.get("long_paths") is True
    return Finding("on" if on else "off", (Evidence("long_paths.on" if on else "long_paths.off"),))
