"""A case: one triage as a file that replays identically anywhere.

A case from somebody else is hostile until proven: its size and depth are bounded, its text is shown as plain text,
no path in it is opened and nothing in it is run.
"""

from __future__ import annotations

from tftriage.cases.files import decode, read, write
from tftriage.cases.form import SCHEMA, Case, CaseError, PersonAnswer
from tftriage.cases.redacting import RedactionError, local_key, own_names, redact
from tftriage.facts import Facts
from tftriage.knowledge import Knowledge
from tftriage.session import Session
from tftriage.sources import CaseSource
from tftriage.walk import WalkError

__all__ = [
    "SCHEMA", "Case", "CaseError", "PersonAnswer", "RedactionError", "decode", "local_key", "of_session",
    "own_names", "read", "redact", "replay", "write",
]  # fmt: skip


def of_session(session: Session, created: str) -> Case:
    """The case of a session as it stands."""
    walk = session.walk
    return Case(
        knowledge=session.knowledge.digest,
        created=created,
        target=session.target,
        text=session.text,
        symptom=walk.symptom if walk else None,
        answers=tuple(PersonAnswer(s.node, s.answer) for s in (walk.steps if walk else ()) if s.by == "person"),
        facts=tuple(session.facts.values()),
    )


def replay(case: Case, knowledge: Knowledge) -> Session:
    """A session on the recorded facts, walked as it was walked on the machine; one without a walk is walked now.

    Raises ``CaseError`` when the recorded walk does not fit the knowledge base.
    """
    facts = Facts(case.facts)
    session = Session(knowledge, CaseSource(facts), case.target, case.text, facts)
    symptom = case.symptom or session.best_match()
    if symptom is None and "tf.import" in facts and not case.text:
        symptom = session.reproduce()  # the packed collector looks and does not judge
    if symptom is None:
        return session
    try:
        session.begin(symptom)
    except KeyError as error:
        raise CaseError(f"no symptom {case.symptom!r} is known; was the case made by another version?") from error
    session.advance()
    for given in case.answers:
        try:
            session.answer(given.node, given.answer)
        except WalkError:  # the tree has changed since: the walk stands where a person is needed again
            break
        session.advance()
    return session
