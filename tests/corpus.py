"""How well labelled reports are recognised, kind by kind.

    python -m tests.corpus REPORTS.jsonl

Each line of the file is an object with ``id``, ``text``, ``symptom`` and ``cause``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from tests.matching.base import load_loader_errors, load_symptoms
from tests.matching.measure import GPU_STACK
from tftriage.matching import match

# What is not a fault of the installation, and the verdict that says so.
VERDICTS = {
    "no-fault": ("harmless",),
    "not-tensorflow": ("not-tensorflow",),
    "network-timeout": ("not-an-installation-fault",),
    "tls-certificate-problem": ("not-an-installation-fault",),
    "package-name-typo": ("not-an-installation-fault",),
    "user-shape-mismatch": ("not-an-installation-fault",),
}


def main(argv: list[str]) -> int:
    """Print a line for each kind of symptom that is not always first, and the sums."""
    reports = [json.loads(line) for line in Path(argv[0]).read_text(encoding="utf-8").splitlines() if line.strip()]
    symptoms, errors = load_symptoms(), load_loader_errors()
    starts = {symptom.id: symptom.start for symptom in symptoms}
    total, first, three = Counter[str](), Counter[str](), Counter[str]()
    instead: dict[str, list[str]] = {}
    negative = right = repaired = 0
    for report in reports:
        result, slug = match(report["text"], symptoms, errors), report["symptom"]
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
            repaired += result.verdict == "fault" and starts[found[0]].startswith(GPU_STACK)
    for slug in sorted(instead):
        print(f"{slug:32} {first[slug]}/{total[slug]} first, {three[slug]} among three; {', '.join(instead[slug])}")
    count = len(reports)
    print(f"first {sum(first.values())}/{count} = {sum(first.values()) / count:.1%}, ", end="")
    print(f"among the first three {sum(three.values())}/{count} = {sum(three.values()) / count:.1%}")
    print(
        f"not a fault of ours: verdict right {right}/{negative}, sent to a tree of the GPU stack {repaired}/{negative}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
