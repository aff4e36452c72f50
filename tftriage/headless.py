"""The commands without a screen: each returns its exit status (see the table in README).

With ``--json`` one JSON document goes to standard output and nothing else; people's text goes there without it.
Progress and complaints go to standard error.
"""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from tftriage import cases, choose, show
from tftriage.facts import Facts
from tftriage.knowledge import Knowledge, load
from tftriage.likely import likely
from tftriage.plain import escaped, one_line, plain
from tftriage.probes import PROBES
from tftriage.reading import Unreadable, read_input
from tftriage.requests import SLOW, Target, facts_wanted
from tftriage.session import Arrived, Listener, Progress, Session, unheard
from tftriage.sources import CaseSource, LiveSource
from tftriage.walk import Ask, WalkError

OK, FAULT, USAGE, PERSON, BLIND = 0, 1, 2, 3, 4


class Stop(Exception):
    """Ends a command with a message for the person and an exit status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def out(text: str) -> None:
    """People's text."""
    print(text)


def complain(text: str) -> None:
    """Progress and complaints."""
    print(text, file=sys.stderr, flush=True)


def out_json(value: Any) -> None:
    """The one JSON document of a command (UTF-8 text, indented)."""
    data = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    print(escaped(data))


def text_of(options: Namespace) -> str:
    """The text that was handed in with FILE, ``-`` or ``--error``; empty when there is none."""
    name = getattr(options, "error", None) or getattr(options, "file", None)
    if name is None:
        return ""
    try:
        text = read_input(name)
    except Unreadable as error:
        raise Stop(USAGE, str(error)) from error
    if not text.strip():
        raise Stop(USAGE, load().say("error.empty-paste", options.lang))
    return text


def progress(options: Namespace) -> Listener:
    """Progress on standard error, unless ``--quiet``."""
    if options.quiet:
        return unheard

    def tell(step: Progress) -> None:
        if isinstance(step, Arrived):
            fact = step.fact
            complain(f"  {fact.name:<22} {fact.status:<8} {fact.seconds:6.2f} s  {one_line(fact.note, 60)}")

    return tell


def session_of(options: Namespace, text: str, kb: Knowledge) -> Session:
    """A session on the target of the options: a case, or this machine. Raises ``Stop``."""
    if getattr(options, "case", None):
        try:
            case = cases.read(Path(options.case))
        except cases.CaseError as error:
            raise Stop(USAGE, one_line(str(error))) from error
        facts = Facts(case.facts)
        return Session(kb, CaseSource(facts), case.target, text or case.text, facts)
    target = Target(
        python=options.python, module=options.module, cwd=options.cwd, kernel=options.kernel,
        fresh=options.fresh, search=tuple(options.search),
    )  # fmt: skip
    session = Session(kb, source_of(options, kb), target, text)
    if target.python is None:
        _choose_target(session, options)
    return session


def source_of(options: Namespace, kb: Knowledge) -> LiveSource:
    """This machine, or the one of ``--ssh``. Raises ``Stop`` when it cannot be reached."""
    host = getattr(options, "ssh", None)
    if not host:
        return LiveSource()
    from tftriage import remote

    complain(kb.say("remote.connecting", options.lang, host=one_line(host)))
    try:
        return remote.connect(host, options.ssh_python)
    except remote.Unreachable as error:
        reason = one_line(str(error))
        raise Stop(BLIND, kb.say("remote.unreachable", options.lang, host=one_line(host), reason=reason)) from error


def _choose_target(session: Session, options: Namespace) -> None:
    kb, lang = session.knowledge, options.lang
    session.observe(("pythons.list", "env.process"), progress(options))
    python, reason = choose.suggest(session.facts, session.text)
    if python is None:
        found = choose.candidates(session.facts)
        session.close()
        listing = "".join(f"\n  --python {p['path']}   {p.get('tensorflow') or '-'}" for p in found)
        raise Stop(PERSON, kb.say("error.which-target", lang) + plain(listing))
    complain(kb.say("target.chosen", lang, python=python, reason=kb.say(f"target.why-{reason}", lang)))
    session.retarget(msgspec.structs.replace(session.target, python=python))


# --- match -------------------------------------------------------------------------------------------------


def match(options: Namespace) -> int:
    """``tftriage match``: which symptoms a text shows."""
    from tftriage.matching import match as match_text

    kb = load()
    options.file = options.file or "-"
    result = match_text(text_of(options), kb.symptoms, kb.tables.loader_errors)
    if options.json:
        found = [
            {"id": m.id, "score": m.score, "lines": [list(span) for span in m.lines], "captures": m.captures}
            for m in result.matches
        ]
        out_json({"symptoms": found, "verdict": result.verdict})
    else:
        for m in result.matches:
            spans = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in m.lines)
            out(f"{m.score:5.2f}  {m.id:<32} {kb.symptom(m.id).title[options.lang]}  [{spans}]")
        out(kb.say(f"verdict.{result.verdict}", options.lang))
    return PERSON if result.verdict == "unrecognised" else OK


# --- diagnose ----------------------------------------------------------------------------------------------


def diagnose(options: Namespace) -> int:
    """``tftriage diagnose``: the walk without a person."""
    kb = load()
    session = session_of(options, text_of(options), kb)
    try:
        status = walk(session, options)
        report_diagnosis(session, options)
        if options.save:
            save_case(session, Path(options.save), options.lang, remote=options.ssh)
        return status
    finally:
        session.close()


def walk(session: Session, options: Namespace) -> int:
    """Begin at the recognised (or given) symptom and go as far as probes can; the exit status of ``diagnose``."""
    kb, tell = session.knowledge, progress(options)
    symptom = options.symptom or session.best_match()
    if symptom is None and session.matched is not None and session.matched.matches:
        symptom = session.matched.matches[0].id  # harmless lines: the walk says so
    if symptom is None and session.text:
        return PERSON
    if symptom is None:
        symptom = session.reproduce(tell)
        if symptom is None:
            return OK
    try:
        session.begin(symptom)
    except KeyError as error:
        raise Stop(USAGE, kb.say("error.no-such-symptom", options.lang, symptom=symptom)) from error
    given = dict(pair.split("=", 1) for pair in options.answer)
    end = session.advance(tell)
    while isinstance(end, Ask) and end.node in given:
        try:
            session.answer(end.node, given.pop(end.node))
        except WalkError as error:
            raise Stop(USAGE, str(error)) from error
        end = session.advance(tell)
    return exit_status(session)


def exit_status(session: Session) -> int:
    """0 nothing wrong, 1 a diagnosis, 3 a person has to answer, 4 the machine could not be looked at."""
    diagnosis = session.diagnosis
    if diagnosis is not None:
        return OK if diagnosis.verdict in ("healthy", "harmless") else FAULT
    seen = [fact for name, fact in session.facts.items() if not name.startswith("paste.")]
    return BLIND if seen and all(fact.status in ("error", "timeout") for fact in seen) else PERSON


def report_diagnosis(session: Session, options: Namespace) -> None:
    """What ``diagnose`` prints."""
    kb, lang = session.knowledge, options.lang
    request = session.request
    if options.json:
        out_json(diagnosis_json(session, lang))
        return
    if session.walk is None:
        key = "diagnose.unrecognised" if session.text else "diagnose.nothing-wrong"
        out(kb.say(key, lang))
        return
    out(kb.symptom(session.walk.symptom).title[lang] + "\n")
    out(show.walk_text(session, lang))
    if isinstance(request, Ask):
        node = kb.nodes[request.node]
        out(f"\n{node.ask[lang]}\n{node.by_hand[lang]}")
        if causes := show.likely_text(session, lang):
            out(causes)
        for choice in request.choices:
            out(f"  --answer {request.node}={choice}   {node.choices[choice][lang]}")


def diagnosis_json(session: Session, lang: str) -> dict[str, Any]:
    """The JSON document of ``diagnose``."""
    from tftriage import mend

    kb, walk, diagnosis = session.knowledge, session.walk, session.diagnosis
    asks: dict[str, Any] | None = None
    if isinstance(session.request, Ask):
        asks = {
            "node": session.request.node,
            "choices": list(session.request.choices),
            "reason": session.request.reason,
            "likely": list(likely(kb, walk)) if walk else [],
        }
    elif walk is None and session.text:
        asks = {"node": "symptom", "choices": [s.id for s in kb.symptoms if s.complaint], "reason": "unrecognised"}
    return {
        "symptom": walk.symptom if walk else None,
        "target": session.target.python,
        "path": show.path_of(kb, walk.steps if walk else (), lang),
        "diagnosis": diagnosis.id if diagnosis else None,
        "verdict": diagnosis.verdict if diagnosis else None,
        "cause": show.cause(diagnosis, session.values, lang) if diagnosis else None,
        "values": session.values,
        "fixes": [{"id": o.fix, "refused": o.refused} for o in mend.offers(session)] if diagnosis else [],
        "asks": asks,
    }


# --- doctor ------------------------------------------------------------------------------------------------

def doctor(options: Namespace) -> int:
    """``tftriage doctor``: every probe, what is wrong first."""
    kb = load()
    if options.list:
        return _doctor_list(kb, options)
    unknown = [name for name in options.probe if name not in PROBES]
    if unknown:
        raise Stop(USAGE, kb.say("error.no-such-probe", options.lang, probe=", ".join(unknown)))
    session = session_of(options, "", kb)
    try:
        return check_everything(session, options)
    finally:
        session.close()


def _doctor_list(kb: Knowledge, options: Namespace) -> int:
    """Every probe with its question, its answers, and how a person looks by hand."""
    rows: list[dict[str, Any]] = []
    for probe in PROBES.values():
        node = next(node for node in kb.nodes.values() if node.probe == probe.name)
        rows.append({
            "probe": probe.name, "answers": list(probe.answers), "needs": list(probe.needs),
            "on_request": any(name in SLOW for name in probe.needs),
            "ask": node.ask[options.lang], "by_hand": node.by_hand[options.lang],
        })  # fmt: skip
    if options.json:
        out_json(rows)
        return OK
    for row in rows:
        out(f"{row['probe']:<20} {' | '.join(row['answers'])}")
        out(f"{'':<20} {row['ask']}")
        out(f"{'':<20} > {' '.join(row['by_hand'].split())}")
    return OK


def check_everything(session: Session, options: Namespace) -> int:
    """Observe what the chosen probes (all of them by default) need, and say what they find."""
    kb, lang = session.knowledge, options.lang
    chosen = [PROBES[name] for name in options.probe] or list(PROBES.values())
    skip = set() if options.probe else SLOW
    session.observe(dict.fromkeys(n for p in chosen for n in p.needs if n not in skip), progress(options))
    findings = [(probe.name, probe(session.facts, kb.tables)) for probe in chosen]
    wrong = {name: any(e.level == "bad" for e in finding.evidence) for name, finding in findings}
    order = sorted(findings, key=lambda row: (not wrong[row[0]], row[1].answer == "unknown"))
    if options.json:
        rows = [
            {
                "probe": name, "answer": finding.answer, "wrong": wrong[name], "reason": finding.reason,
                "evidence": show.evidence_of(kb, finding, lang),
            }
            for name, finding in order
        ]  # fmt: skip
        out_json({"target": session.target.python, "probes": rows})
    else:
        for name, finding in order:
            mark = "x" if wrong[name] else "?" if finding.answer == "unknown" else "+"
            out(f"{mark} {name:<20} {finding.answer}")
            for e in finding.evidence:
                out(f"     {show.MARKS[e.level]} {show.sentence(kb, e, lang)}")
    if any(wrong.values()):
        return FAULT
    return BLIND if all(finding.answer == "unknown" for _, finding in findings) else OK


# --- cases -------------------------------------------------------------------------------------------------


DEMOS = Path(__file__).resolve().parent / "demos"


def demo(options: Namespace) -> Path | None:
    """The file of the recorded case that ``demo`` names (the first without a name); ``--list`` prints their titles."""
    found = {path.stem: path for path in sorted(DEMOS.glob("*.json"))}
    if options.list:
        for name, path in found.items():
            out(f"{name:<24} {cases.read(path).title.get(options.lang, '')}")
        return None
    name = options.name or next(iter(found), "")
    if name not in found:
        raise Stop(USAGE, load().say("error.no-such-demo", options.lang, names=", ".join(found)))
    return found[name]


def new_file(what: str, ending: str) -> Path:
    """A name in the current folder that is not taken, for what a person asks to be written."""
    from datetime import datetime

    stem = f"tftriage-{what + '-' if what else ''}{datetime.now():%Y%m%d-%H%M%S}"
    names = (Path(f"{stem}{'-' + str(n) if n else ''}.{ending}") for n in range(1000))
    return next(path for path in names if not path.exists())


def save_case(session: Session, path: Path, lang: str, redact: bool = True, remote: str | None = None) -> None:
    """Write the session as a case; ``remote`` is the ``--ssh`` it came from. Raises ``Stop`` when it cannot."""
    from datetime import datetime, timezone

    case = cases.of_session(session, datetime.now(timezone.utc).isoformat(timespec="seconds"))
    users, hosts = cases.own_names(session)
    hosts += [part for part in re.split(r"[@:/]", remote or "") if len(part) > 2]
    write_case(case, path, session.knowledge, lang, redact, users, hosts)


def write_case(
    case: cases.Case, path: Path, kb: Knowledge, lang: str, redact: bool = True,
    users: Iterable[str] = (), hosts: Iterable[str] = (),
) -> None:  # fmt: skip
    """Write a case, redacted unless told otherwise. Raises ``Stop``: then nothing was written."""
    try:
        cases.write(cases.redact(case, users=users, hosts=hosts) if redact else case, path)
    except cases.RedactionError as error:
        raise Stop(BLIND, kb.say("redact.refused", lang, reason=error)) from error
    except OSError as error:
        raise Stop(BLIND, f"{path}: {error.strerror or error}") from error


def collect(options: Namespace) -> int:
    """``tftriage collect``: observe everything and write a case."""
    kb = load()
    session = session_of(options, text_of(options), kb)
    try:
        session.observe(facts_wanted(), progress(options))
        symptom = options.symptom or session.best_match()
        if symptom is not None:
            session.begin(symptom)
            session.advance(progress(options))
        path = Path(options.output)
        save_case(session, path, options.lang, redact=not options.no_redact, remote=options.ssh)
        if options.json:
            out_json({"case": str(path), "facts": len(session.facts)})
        else:
            out(kb.say("collect.written", options.lang, path=path, facts=len(session.facts)))
        looked = [f for f in session.facts.values() if not f.name.startswith("paste.")]
        return BLIND if all(f.status in ("error", "timeout") for f in looked) else OK
    finally:
        session.close()


# --- kb ----------------------------------------------------------------------------------------------------


def kb_check(options: Namespace) -> int:
    """``tftriage kb check``: every hole in the knowledge base."""
    from tftriage.fixes.catalogue import FIXES
    from tftriage.kbcheck import check

    kb = load(Path(options.folder) if options.folder else None)
    problems = check(kb, PROBES, FIXES)
    if options.json:
        out_json({"problems": problems})
    else:
        for problem in problems:
            out(problem)
        counts = (len(kb.symptoms), len(kb.nodes), len(kb.diagnoses), len(kb.fixes), len(kb.myths))
        complain("symptoms {}, nodes {}, diagnoses {}, fixes {}, myths {}".format(*counts))
    return FAULT if problems else OK
