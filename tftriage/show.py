"""Words for values: evidence, causes and findings as sentences in one language. Plain text, no markup."""

from __future__ import annotations

from typing import Any

from tftriage.knowledge import Diagnosis, Knowledge, fill
from tftriage.likely import likely
from tftriage.plain import one_line, plain
from tftriage.probes.base import Evidence, Finding
from tftriage.session import Session
from tftriage.walk import Step

MARKS = {"ok": "+", "bad": "x", "info": "-"}  # ASCII: this goes to pipes and logs too


def sentence(kb: Knowledge, evidence: Evidence, lang: str) -> str:
    """One line of evidence. Values from the machine are shown as plain text on one line."""
    params = {name: one_line(value) for name, value in evidence.params.items()}
    text = kb.evidence.get(evidence.key)
    if text is None:  # a case made by a newer version may hold evidence we have no words for
        return " ".join([evidence.key, *(f"{k}={v}" for k, v in sorted(params.items()))])
    return fill(text, lang, params)


def answer(kb: Knowledge, probe: str, answer: str, lang: str) -> str:
    """A probe's answer in the words of a question of the tree that it answers."""
    if answer == "unknown":
        return kb.say("doctor.unknown", lang)
    nodes = (node for node in kb.nodes.values() if node.probe == probe and answer in node.choices)
    return next((node.choices[answer][lang] for node in nodes), answer)


def cause(diagnosis: Diagnosis, values: dict[str, str], lang: str) -> str:
    """The cause with what the probes found filled in."""
    return fill(diagnosis.cause, lang, {name: one_line(value) for name, value in values.items()})


def evidence_of(kb: Knowledge, finding: Finding | None, lang: str) -> list[dict[str, str]]:
    """A finding's evidence for ``--json``: level, key and the sentence."""
    lines = finding.evidence if finding else ()
    return [{"level": e.level, "key": e.key, "text": sentence(kb, e, lang)} for e in lines]


def path_of(kb: Knowledge, steps: tuple[Step, ...], lang: str) -> list[dict[str, Any]]:
    """The walk for ``--json``."""
    return [
        {
            "node": step.node,
            "probe": kb.nodes[step.node].probe,
            "answer": step.answer,
            "by": step.by,
            "evidence": evidence_of(kb, step.finding, lang),
        }
        for step in steps
    ]


def walk_text(session: Session, lang: str) -> str:
    """The whole walk as lines: each question, its answer, what was seen; then the diagnosis."""
    kb, walk = session.knowledge, session.walk
    lines: list[str] = []
    for step in walk.steps if walk else ():
        node = kb.nodes[step.node]
        label = node.choices.get(step.answer)
        lines.append(f"{node.ask[lang]}  {label[lang] if label else step.answer}")
        lines += [
            f"   {MARKS[e.level]} {sentence(kb, e, lang)}" for e in (step.finding.evidence if step.finding else ())
        ]
    diagnosis = session.diagnosis
    if diagnosis is not None:
        lines += ["", *diagnosis_text(session, diagnosis, lang)]
    return plain("\n".join(lines))


def likely_text(session: Session, lang: str) -> str:
    """The causes that mostly stand behind the question that waits, as one sentence; empty where none is known."""
    kb, walk = session.knowledge, session.walk
    titles = [kb.diagnoses[name].title[lang] for name in (likely(kb, walk) if walk else ())]
    return kb.say("ask.likely", lang, causes=kb.say("list.separator", lang).join(titles)) if titles else ""


def diagnosis_text(session: Session, diagnosis: Diagnosis, lang: str) -> list[str]:
    """The diagnosis, its hand steps, its fixes and the myths that belong to it."""
    kb = session.knowledge
    values = {name: one_line(value) for name, value in session.values.items()}
    lines = [diagnosis.title[lang], "", fill(diagnosis.cause, lang, values), fill(diagnosis.explanation, lang, values)]
    if diagnosis.hand is not None:
        lines += ["", kb.say("diagnosis.by-hand", lang), fill(diagnosis.hand, lang, values)]
    if diagnosis.fixes:
        lines += ["", kb.say("diagnosis.fixes", lang)]
        lines += [f"  {fix}  {kb.fixes[fix].title[lang]}" for fix in diagnosis.fixes]
    for myth in diagnosis.myths:
        lines += ["", kb.say("diagnosis.myth", lang, claim=kb.myths[myth].claim[lang]), kb.myths[myth].truth[lang]]
    return lines
