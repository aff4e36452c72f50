"""How well labelled reports are recognised, kind by kind.

    python -m tests.corpus REPORTS.jsonl

Each line of the file is an object with ``id``, ``text``, ``symptom`` and ``cause``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from tftriage import knowledge
from tftriage.facts import Facts
from tftriage.knowledge import Knowledge
from tftriage.requests import Target
from tftriage.session import Session
from tftriage.sources import CaseSource

# What is not a fault of the installation, and the verdict that says so.
VERDICTS = {
    "no-fault": ("harmless",),
    "not-tensorflow": ("not-tensorflow",),
    "network-timeout": ("not-an-installation-fault",),
    "tls-certificate-problem": ("not-an-installation-fault",),
    "package-name-typo": ("not-an-installation-fault",),
    "user-shape-mismatch": ("not-an-installation-fault",),
}


def stopped(kb: Knowledge, session: Session) -> str:
    """Where a walk ends that knows the text and nothing else: ``mends`` is a diagnosis with a fix.

    ``acquits``: a diagnosis without one, or a text that starts no walk. ``whose``: the person is asked first whose
    message it is, or whether TensorFlow fails at all. ``on``: the person is asked for something else.
    """
    best = session.best_match()
    if best is None:
        return "acquits"
    session.begin(best)
    session.advance()
    assert session.walk is not None
    if session.walk.diagnosis:
        return "mends" if kb.diagnoses[session.walk.diagnosis].fixes else "acquits"
    return "whose" if session.walk.at.partition("/")[2] in ("whose", "reproduce") else "on"


def main(argv: list[str]) -> int:
    """Print a line for each kind of symptom that is not always first, and the sums."""
    reports = [json.loads(line) for line in Path(argv[0]).read_text(encoding="utf-8").splitlines() if line.strip()]
    kb = knowledge.load(knowledge.CHECKOUT)
    total, first, three = Counter[str](), Counter[str](), Counter[str]()
    instead: dict[str, list[str]] = {}
    negative = right = 0
    ends, wrong = Counter[str](), []
    for report in reports:
        slug, session = report["symptom"], Session(kb, CaseSource(Facts()), Target(), report["text"])
        result = session.matched
        assert result is not None
        found = [hit.id for hit in result.matches]
        total[slug] += 1
        first[slug] += found[:1] == [slug]
        three[slug] += slug in found[:3]
        if found[:1] != [slug]:
            instead.setdefault(slug, []).append(f"{report['id']} {found[0] if found else 'nothing'}")
        wanted = VERDICTS.get(report["cause"])
        if wanted:
            negative += 1
            right += result.verdict in wanted
            end = stopped(kb, session)
            ends[end] += 1
            if result.verdict not in wanted or end in ("mends", "on"):
                wrong.append(f"{report['id']} {found[0] if found else 'nothing'}: {result.verdict}, {end}")
    for slug in sorted(instead):
        print(f"{slug:32} {first[slug]}/{total[slug]} first, {three[slug]} among three; {', '.join(instead[slug])}")
    count = len(reports)
    print(f"first {sum(first.values())}/{count} = {sum(first.values()) / count:.1%}, ", end="")
    print(f"among the first three {sum(three.values())}/{count} = {sum(three.values()) / count:.1%}")
    print(
        f"not a fault of ours: verdict right {right}/{negative}; with the text alone {ends['mends']} end in a repair,"
    )
    print(
        f"{ends['acquits']} without one, {ends['whose']} ask whose it is, {ends['on']} ask for something else; {wrong}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
