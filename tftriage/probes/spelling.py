"""Is the name of the package spelt right?"""

from __future__ import annotations

from tftriage.facts import Facts
from tftriage.probes.base import Evidence, Finding, probe, unknown
from tftriage.tables import Tables


@probe("package_name", answers=("typo", "fine"), needs=("paste.symptom", "paste.text"), fills=("name", "meant"))
def package_name(facts: Facts, tables: Tables) -> Finding:
    """Whether the text names a package that does not exist and is one slip away from one that does.

    Sample::

        ERROR: Could not find a version that satisfies the requirement tensorflow-gpuu (from versions: none)
    """
    captures = (facts.value("paste.symptom") or {}).get("captures") or {}
    if captures.get("meant") and captures.get("name"):
        values = {"name": str(captures["name"]), "meant": str(captures["meant"])}
        return Finding("typo", (Evidence("package_name.typo", values, "bad"),), values)
    if not str((facts.value("paste.text") or {}).get("text") or "").strip():
        return unknown(facts, "paste.text")
    return Finding("fine", (Evidence("package_name.fine", {}, "ok"),))
