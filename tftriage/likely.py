"""What mostly stands behind a question that only the person can answer: the causes, the commonest first.

A prior and no finding: it helps to choose an answer and is never taken for one. It comes from the node (``likely``,
with its sources); what an answered question on the way ruled out is left out.
"""

from __future__ import annotations

from tftriage.knowledge import Knowledge
from tftriage.walk import DIAGNOSIS, Walk, absolute

UNKNOWN = "unknown"


def likely(kb: Knowledge, walk: Walk) -> tuple[str, ...]:
    """The diagnoses that mostly stand behind the question a walk waits at; empty where nothing is known of them."""
    if not walk.asking or walk.at not in kb.nodes:
        return ()
    out = ruled_out(kb, walk)
    return tuple(name for name in kb.nodes[walk.at].likely if name not in out)


def ruled_out(kb: Knowledge, walk: Walk) -> frozenset[str]:
    """The diagnoses that another answer to a question on the way would have given.

    The words of an error rule nothing out: they name one thing and are silent on the others.
    """
    found = set[str]()
    for done in walk.steps:
        words = done.finding is not None and any(line.key.startswith("said.") for line in done.finding.evidence)
        if done.answer != UNKNOWN and done.node in kb.nodes and not words:
            found |= {
                absolute(target, done.node)
                for answer, target in kb.nodes[done.node].answers.items()
                if answer not in (done.answer, UNKNOWN)
            }
    return frozenset(target.removeprefix(DIAGNOSIS) for target in found if target.startswith(DIAGNOSIS))
