"""How often the right symptom comes first or among the first three, on labelled reports.

Not a test: run it by hand with the path of a file of JSON lines with ``id``, ``text``, ``symptom`` and ``cause``.

    python tests/matching/measure.py REPORTS.jsonl [--show] [--every N:K]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.matching.base import load_loader_errors, load_symptoms
from tftriage.matching import match

NEGATIVE = {
    "network-timeout",
    "no-fault",
    "not-tensorflow",
    "package-name-typo",
    "tls-certificate-problem",
    "user-shape-mismatch",
}
GPU_STACK = ("dll-import/", "gpu-")


def main(argv: list[str]) -> None:
    """Print the rates, and with ``--show`` every report that is not first."""
    reports = [json.loads(line) for line in Path(argv[0]).read_text(encoding="utf-8").splitlines()]
    for arg in argv[1:]:
        if arg.startswith("--every="):
            step, rest = map(int, arg.partition("=")[2].split(":"))
            reports = [report for index, report in enumerate(reports) if index % step == rest]
    symptoms, errors = load_symptoms(), load_loader_errors()
    starts = {symptom.id: symptom.start for symptom in symptoms}
    first = three = repaired = negatives = 0
    for report in reports:
        result = match(report["text"], symptoms, errors)
        found = [hit.id for hit in result.matches]
        first += found[:1] == [report["symptom"]]
        three += report["symptom"] in found[:3]
        if report["cause"] in NEGATIVE:
            negatives += 1
            if result.verdict == "fault" and starts[found[0]].startswith(GPU_STACK):
                repaired += 1
                print(f"FALSE POSITIVE {report['id']} {report['symptom']}: {found[:3]}")
        if "--show" in argv and found[:1] != [report["symptom"]]:
            print(f"{report['id']} {report['symptom']} ({report['cause']}): {found[:4]} {result.verdict}")
    total = len(reports)
    print(f"top 1: {first}/{total} = {first / total:.1%}   top 3: {three}/{total} = {three / total:.1%}")
    print(f"negatives sent to a tree of the GPU stack: {repaired}/{negatives}")


if __name__ == "__main__":
    main(sys.argv[1:])
