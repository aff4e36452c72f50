"""A triage as something to hand to another person: symptom, what was asked and seen, cause, what to do, versions.

``of_session`` gathers it as plain values in one language, redacted; ``tftriage.pages`` writes them as Markdown, HTML
or SVG. Everything from the machine is plain text here; each format makes it harmless in its own way.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tftriage import __version__, cases, mend, show
from tftriage.facts import Fact, Facts
from tftriage.knowledge import Knowledge, fill
from tftriage.plain import one_line, plain
from tftriage.session import Session
from tftriage.walk import Ask

MOST_LINES = 30  # of the pasted text: those around the best match
SYSTEM = ("distribution", "system", "version")  # of system.os
PACKAGES = ("numpy", "protobuf", "h5py", "keras")


class Asked(msgspec.Struct, frozen=True, array_like=True):
    """One question of the walk: its answer, whether a person gave it, and what was seen (level, sentence)."""

    question: str
    answer: str
    by_person: bool
    seen: tuple[tuple[str, str], ...]


class Cause(msgspec.Struct, frozen=True, array_like=True):
    """The diagnosis. ``steps`` are the lines to follow by hand; ``fixes`` what tftriage can do (id, title)."""

    title: str
    text: str
    explanation: str
    steps: tuple[str, ...]
    fixes: tuple[tuple[str, str], ...]
    myths: tuple[tuple[str, str], ...]
    sources: tuple[tuple[str, str], ...]


class Report(msgspec.Struct, frozen=True, array_like=True):
    """What is handed over. ``waits`` is the question that nobody has answered yet, if the walk stopped there.

    Arrays, not objects, when written as JSON inside a case: redaction also cleans the keys of objects.
    """

    lang: str
    symptom: str
    text: tuple[str, ...]
    asked: tuple[Asked, ...]
    cause: Cause | None
    waits: str
    versions: tuple[tuple[str, str], ...]
    made: str
    redacted: bool


def of_session(session: Session, lang: str, redact: bool = True) -> Report:
    """The report of a session as it stands. On a live machine it asks for the user's name, to leave it out.

    Raises ``cases.RedactionError`` when a name would remain.
    """
    if redact and session.source.live:
        session.observe(("system.user",))
    kb, walk = session.knowledge, session.walk
    report = Report(
        lang=lang,
        symptom=kb.symptom(walk.symptom).title[lang] if walk else kb.say("report.no-symptom", lang),
        text=_excerpt(session),
        asked=_asked(session, lang),
        cause=_cause(session, lang),
        waits=kb.nodes[session.request.node].ask[lang] if isinstance(session.request, Ask) else "",
        versions=_versions(session.facts, kb, lang),
        made=f"tftriage {__version__}, knowledge {kb.digest}",
        redacted=redact,
    )
    return _redacted(report, session) if redact else report


def _redacted(report: Report, session: Session) -> Report:
    """The report as the redaction of cases leaves it: the same rules, whatever they are."""
    case = cases.of_session(session, "")
    carrier = Fact("report", "ok", msgspec.to_builtins(report))
    users, hosts = cases.own_names(session)
    redacted = cases.redact(msgspec.structs.replace(case, facts=(*case.facts, carrier)), users=users, hosts=hosts)
    return msgspec.convert(redacted.facts[-1].value, Report)


def document(report: Report) -> dict[str, Any]:
    """The report with names, for ``--format json``."""
    cause = report.cause
    return {
        "symptom": report.symptom,
        "text": report.text,
        "asked": [
            {"question": a.question, "answer": a.answer, "by_person": a.by_person,
             "seen": [{"level": level, "text": text} for level, text in a.seen]}
            for a in report.asked
        ],
        "cause": cause and {name: getattr(cause, name) for name in cause.__struct_fields__},
        "waits": report.waits or None,
        "versions": dict(report.versions),
        "made": report.made,
        "redacted": report.redacted,
    }  # fmt: skip


# --- its parts ---------------------------------------------------------------------------------------------


def _excerpt(session: Session) -> tuple[str, ...]:
    """The pasted lines that matter: all of a short text, of a long one those before and at the best match."""
    if not session.text.strip():
        return ()
    lines = plain(session.text).rstrip("\n").split("\n")
    matches = session.matched.matches if session.matched else ()
    last = max((end for _, end in matches[0].lines), default=len(lines)) if matches else len(lines)
    first = max(0, min(last + 3, len(lines)) - MOST_LINES)
    chosen = [line.replace("\t", "    ").rstrip()[:500] for line in lines[first : first + MOST_LINES]]
    return (*(["…"] if first else []), *chosen, *(["…"] if first + MOST_LINES < len(lines) else []))


def _asked(session: Session, lang: str) -> tuple[Asked, ...]:
    kb = session.knowledge
    found = []
    for step in session.walk.steps if session.walk else ():
        node = kb.nodes[step.node]
        answer = node.choices[step.answer][lang] if step.answer in node.choices else step.answer
        evidence = step.finding.evidence if step.finding else ()
        seen = tuple((line.level, show.sentence(kb, line, lang)) for line in evidence)
        found.append(Asked(node.ask[lang], answer, step.by == "person", seen))
    return tuple(found)


def _cause(session: Session, lang: str) -> Cause | None:
    kb, diagnosis = session.knowledge, session.diagnosis
    if diagnosis is None:
        return None
    values = {name: one_line(value) for name, value in session.values.items()}

    def filled(text: dict[str, str] | None) -> str:
        return plain(fill(text, lang, values)).strip() if text else ""

    return Cause(
        title=diagnosis.title[lang],
        text=filled(diagnosis.cause),
        explanation=filled(diagnosis.explanation),
        steps=tuple(line for line in filled(diagnosis.hand).split("\n") if line.strip()),
        fixes=tuple((o.fix, kb.fixes[o.fix].title[lang]) for o in mend.offers(session) if o.refused is None),
        myths=tuple((filled(kb.myths[m].claim), filled(kb.myths[m].truth)) for m in diagnosis.myths),
        sources=tuple((kb.say(f"source.{source.kind}", lang), source.ref) for source in diagnosis.sources),
    )


def _versions(facts: Facts, kb: Knowledge, lang: str) -> tuple[tuple[str, str], ...]:
    """What a helper asks first. A thing that was not looked at is left out; one that is not there says so."""
    nothing = kb.say("report.nothing", lang)
    system, python = facts.value("system.os") or {}, facts.value("target.interpreter") or {}
    package, packages = facts.value("tf.package") or {}, facts.value("target.packages") or {}
    rows: list[tuple[str, Any]] = [
        (kb.say("report.system", lang), " ".join(str(system.get(part) or "") for part in SYSTEM).strip()),
        ("Python", _python(python)),
        ("TensorFlow", [f"{d.get('name')} {d.get('version')}" for d in package.get("distributions") or []]),
        *((name, (packages.get(name) or {}).get("version")) for name in PACKAGES),
    ]
    if facts.ok("tf.package") and not package.get("distributions"):
        rows[2] = ("TensorFlow", nothing)
    gpu = facts.value("gpu.devices") or {}
    rows.append(("GPU", [f"{d.get('name')} ({d.get('capability')})" for d in gpu.get("devices") or []]))
    rows.append((kb.say("report.driver", lang), gpu.get("driver")))
    toolkits = facts.value("cuda.toolkits") or []
    rows.append(("CUDA", [str(t.get("version") or t.get("folder")) for t in toolkits]))
    rows.append(("cuDNN", [t["cudnn"] for t in toolkits if t.get("cudnn")]))
    if facts.ok("cuda.toolkits") and not toolkits:
        rows.append(("CUDA", nothing))
    return tuple((name, said) for name, value in rows if (said := _said(value)))


def _python(python: dict[str, Any]) -> str:
    if not python.get("version"):
        return ""
    kind = next((name for name in ("conda", "venv", "store") if python.get(name)), "")
    number = ".".join(str(part) for part in python["version"])
    return f"{number}, {python.get('bits')}-bit{', ' + kind if kind else ''}"


def _said(value: Any) -> str:
    parts = value if isinstance(value, list) else [value]
    return one_line(", ".join(dict.fromkeys(str(part) for part in parts if part)))
