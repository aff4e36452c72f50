"""How often the labelled cause of a report is reached, or is among the first two that remain, given its versions.

    python -m tests.matching.causes REPORTS.jsonl [--show]

Each line of the file is an object with ``id``, ``text``, ``os``, ``tf``, ``python``, ``cause`` and ``confidence``. The
walk starts at the best symptom and knows the text and the versions, nothing of the machine. Where it cannot go on, the
diagnoses that remain are those to which the person's answer leads, or that and the next one, in the order of the tree.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tftriage import knowledge
from tftriage.facts import Fact, Facts
from tftriage.knowledge import Knowledge
from tftriage.matching import match
from tftriage.probes.context import frames, site_prefix
from tftriage.requests import Target
from tftriage.session import Session
from tftriage.sources import CaseSource
from tftriage.walk import DIAGNOSIS, absolute

# Labels for which the knowledge base has another, or a more exact, word.
ALSO = {
    "no-fault": {"harmless-notice", "healthy", "no-fault"},
    "user-shape-mismatch": {"not-an-installation-fault"},
    "no-write-permission": {"file-in-use-or-no-write-permission"},
}


def facts_of(report: dict[str, Any], installed: bool) -> Facts:
    """What the versions in a report tell, as the collector would have seen it.

    The environment is the one in the traceback, where there is one. A TensorFlow before 2.1 whose package is not
    named is left out: that it is a CPU build or a GPU build would be invented.
    """
    found = []
    value: dict[str, Any]
    system = next((name for name in ("Windows", "Linux", "Darwin") if name.lower() in report["os"].lower()), None)
    if re.search(r"ubuntu|debian|centos|fedora|wsl|arch", report["os"], re.IGNORECASE):
        system = "Linux"
    if system:
        wsl = 2 if "wsl" in report["os"].lower() else None
        value = {"system": system, "release": "", "version": "", "machine": "", "wsl": wsl, "wine": False}
        found.append(Fact("system.os", "ok", value, "the report"))
    python = re.search(r"\d+(?:\.\d+)+", report["python"] or "")
    if python:
        version = [int(part) for part in python[0].split(".")]
        prefix = next((p for frame in frames(report["text"]) if (p := site_prefix(frame.path))), None)
        found.append(Fact("target.interpreter", "ok", {"version": version, "prefix": prefix}, "the report"))
    tensorflow = re.search(r"\d+(?:\.\d+)+", report["tf"] or "")
    named = re.search(r"tensorflow-\w+", report["tf"] or "")
    if installed and tensorflow and (named or [int(part) for part in tensorflow[0].split(".")[:2]] >= [2, 1]):
        name = {"name": named[0] if named else "tensorflow", "version": tensorflow[0], "folder": "site-packages"}
        value = {
            "version": tensorflow[0],
            "distributions": [name],
            "folder": "tensorflow",
            "module_file": "__init__.py",
        }
        found.append(Fact("tf.package", "ok", value, "the report"))
    return Facts(found)


def remaining(kb: Knowledge, node: str) -> list[str]:
    """The diagnoses to which one answer leads, or one and the next; in the order of the tree."""
    found = []
    for whole in (absolute(target, node) for target in kb.nodes[node].answers.values()):
        further = (absolute(target, whole) for target in kb.nodes[whole].answers.values()) if whole in kb.nodes else ()
        found += [name for name in (whole, *further) if name.startswith(DIAGNOSIS)]
    return [name.removeprefix(DIAGNOSIS) for name in dict.fromkeys(found)]


def offered(kb: Knowledge, report: dict[str, Any]) -> tuple[str, list[str]]:
    """Where the walk ended (a node, a diagnosis, or nothing) and the causes that it offers there, likeliest first."""
    matches = match(report["text"], kb.symptoms, kb.tables.loader_errors).matches
    if not matches:
        return "unrecognised", []
    # What cannot be installed, or is not found, has no version that could be looked at.
    installed = not matches[0].id.startswith(("pip-", "conda-", "notebook-module-"))
    session = Session(kb, CaseSource(facts_of(report, installed)), Target(), report["text"])
    session.begin(matches[0].id)
    session.advance()
    assert session.walk is not None
    if session.walk.diagnosis:
        return DIAGNOSIS + session.walk.diagnosis, [session.walk.diagnosis]
    return session.walk.at, remaining(kb, session.walk.at)


def main(argv: list[str]) -> int:
    """Print the rates; with ``--show`` every report whose cause is not among the first two."""
    kb = knowledge.load(knowledge.CHECKOUT)
    lines = Path(argv[0]).read_text(encoding="utf-8").splitlines()
    reports = [report for report in map(json.loads, filter(str.strip, lines)) if report["confidence"] != "low"]
    reports = [report for report in reports if report["cause"] != "unknown"]
    count: Counter[str] = Counter()
    for report in reports:
        end, causes = offered(kb, report)
        right = ALSO.get(report["cause"], set()) | {report["cause"]}
        place = next((n for n, cause in enumerate(causes) if cause in right), None)
        count["reached"] += end.startswith(DIAGNOSIS) and place == 0
        count["first two"] += place is not None and place < 2
        count["offered"] += place is not None
        count["reached another"] += end.startswith(DIAGNOSIS) and place is None
        if "--show" in argv and (place is None or place > 1):
            where = "not offered" if place is None else f"place {place + 1} of {len(causes)}"
            print(f"{report['id']} {report['symptom']}: {report['cause']} {where} at {end} ({', '.join(causes[:3])})")
    for name in ("reached", "first two", "offered", "reached another"):
        print(f"{name:16} {count[name]}/{len(reports)} = {count[name] / max(1, len(reports)):.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
