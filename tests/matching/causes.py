"""How often the labelled cause of a report is reached, or is among the first two that remain, given its versions.

    python -m tests.matching.causes REPORTS.jsonl [--show]
    python -m tests.matching.causes tests/matching/causes.yaml

Each report is an object with ``id``, ``text``, ``os``, ``tf``, ``python``, ``cause`` and ``confidence``. The
walk starts at the best symptom and knows the text and the versions, nothing of the machine. Where it cannot go on, the
causes offered are those that the program itself shows as likely at this question; where it shows none, those to which
the person's answer leads, or that and the next one, in the order of the tree.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tftriage import knowledge
from tftriage.facts import Fact, Facts
from tftriage.knowledge import Knowledge
from tftriage.likely import likely
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
_VERSION = re.compile(r"\d+(?:\.\d+)+")


def facts_of(report: dict[str, Any], installed: bool) -> Facts:
    """What the versions in a report tell, as the collector would have seen it."""
    return Facts(_system(report["os"])).with_(*_python(report), *_tensorflow(report, installed))


def _system(told: str) -> Iterator[Fact]:
    system = next((name for name in ("Windows", "Linux", "Darwin") if name.lower() in told.lower()), None)
    if re.search(r"\bmac", told, re.IGNORECASE):
        system = "Darwin"
    if re.search(r"ubuntu|debian|centos|fedora|wsl|arch", told, re.IGNORECASE):
        system = "Linux"
    if system:
        wsl = 2 if "wsl" in told.lower() else None
        value = {"system": system, "release": "", "version": "", "machine": "", "wsl": wsl, "wine": False}
        yield Fact("system.os", "ok", value, "the report")


def _python(report: dict[str, Any]) -> Iterator[Fact]:
    """The interpreter. Its environment is the one in the traceback, where there is one."""
    told = str(report["python"] or "")
    number = _VERSION.search(told)
    if number:
        prefix = next((p for frame in frames(report["text"]) if (p := site_prefix(frame.path))), None)
        value: dict[str, Any] = {"version": [int(part) for part in number[0].split(".")], "prefix": prefix}
        if "store" in told.lower():
            value["store"] = True
        yield Fact("target.interpreter", "ok", value, "the report")


def _tensorflow(report: dict[str, Any], installed: bool) -> Iterator[Fact]:
    """The package. Of a TensorFlow before 2.1 that is not named more closely only the version is told: that it is a
    CPU build or a GPU build would be invented. "none" is told, too: then it is not installed."""
    told = str(report["tf"] or "")
    number = _VERSION.search(told)
    if told.lower().startswith("none"):
        yield Fact("tf.package", "absent", None, "the report", note="not-installed")
    if not installed or not number:
        return
    names = list(dict.fromkeys(re.findall(r"\b\w*-?tensorflow(?:-gpu|-cpu|-intel)?\b", told.lower())))
    value: dict[str, Any] = {"version": number[0], "folder": "tensorflow", "module_file": "__init__.py"}
    if not names and [int(part) for part in number[0].split(".")[:2]] >= [2, 1]:
        names = ["tensorflow"]
    if names:
        value["distributions"] = [{"name": n, "version": number[0], "folder": "site-packages"} for n in names]
    yield Fact("tf.package", "ok", value, "the report")


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
    shown = likely(kb, session.walk)
    return session.walk.at, list(dict.fromkeys([*shown, *remaining(kb, session.walk.at)]))


def read(path: Path) -> list[dict[str, Any]]:
    """The reports of a file whose cause is known: one JSON object a line, or a YAML list."""
    text = path.read_text(encoding="utf-8")
    rows = yaml.safe_load(text) if path.suffix == ".yaml" else map(json.loads, filter(str.strip, text.splitlines()))
    return [row for row in rows if row["confidence"] != "low" and row["cause"] != "unknown"]


def place_of(report: dict[str, Any], causes: list[str]) -> int | None:
    """At which place the labelled cause is offered; ``None`` when it is not."""
    right = ALSO.get(report["cause"], set()) | {report["cause"]}
    return next((n for n, cause in enumerate(causes) if cause in right), None)


def main(argv: list[str]) -> int:
    """Print the rates; with ``--show`` every report whose cause is not among the first two."""
    kb = knowledge.load(knowledge.CHECKOUT)
    reports = read(Path(argv[0]))
    count: Counter[str] = Counter()
    for report in reports:
        end, causes = offered(kb, report)
        place = place_of(report, causes)
        count["reached"] += end.startswith(DIAGNOSIS) and place == 0
        count["first two"] += place is not None and place < 2
        count["offered"] += place is not None
        count["reached another"] += end.startswith(DIAGNOSIS) and place is None
        if "--show" in argv and (place is None or place > 1):
            where = "not offered" if place is None else f"place {place + 1} of {len(causes)}"
            head = f"{report['id']} {report.get('symptom', '')}: {report['cause']} {where}"
            print(f"{head} at {end} ({', '.join(causes[:3])})")
    for name in ("reached", "first two", "offered", "reached another"):
        print(f"{name:16} {count[name]}/{len(reports)} = {count[name] / max(1, len(reports)):.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
