"""The command ``monitor`` without a screen: N seconds of GPU and CPU, and the verdict in four layers."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from tftriage import cases, show, watching
from tftriage.facts import Fact, Facts
from tftriage.headless import BLIND, FAULT, OK, USAGE, Stop, complain, out, out_json
from tftriage.knowledge import Knowledge, load
from tftriage.plain import plain
from tftriage.requests import Target
from tftriage.session import Session
from tftriage.sources import CaseSource, LiveSource

WIDTH = 40  # cells of a sparkline in a text


def session_of(options: Namespace, kb: Knowledge) -> Session:
    """A session without a target: nothing of a Python is looked at. A case is not walked."""
    if not options.case:
        return Session(kb, LiveSource(), Target(python=options.python))
    try:
        case = cases.read(Path(options.case))
    except cases.CaseError as error:
        raise Stop(USAGE, str(error)) from error
    facts = Facts(case.facts)
    return Session(kb, CaseSource(facts), case.target, case.text, facts)


def look(session: Session, seconds: float) -> Fact:
    """One sample of ``seconds`` (a case: the recorded one); the cards' temperature and the like are read anew."""
    session.observe(("system.os", "system.user"))  # the user's name, to leave it out of a case that is saved
    asked: list[tuple[str, dict[str, Any]]] = [("usage.sample", {"seconds": seconds}), ("gpu.devices", {})]
    found = {fact.name: fact for fact in session.source.collect(asked)}
    if "gpu.devices" in found:
        session.learn(found["gpu.devices"])
    return found.get("usage.sample", Fact("usage.sample", "absent", note="not-recorded"))


def monitor(options: Namespace) -> int:
    """``tftriage monitor --json``: 0 nothing wrong, 1 a layer is at fault, 4 nothing could be sampled."""
    kb = load()
    session = session_of(options, kb)
    try:
        if session.source.live and not options.quiet:
            complain(kb.say("monitor.counting", options.lang, seconds=f"{options.seconds:g}"))
        sampled = look(session, options.seconds)
    finally:
        session.close()
    session.learn(sampled)
    layers = watching.verdict(session.facts, kb.tables)
    sample = sampled.value if sampled.status == "ok" else None
    if options.json:
        out_json(document(session, layers, options.lang))
    elif sample is None:
        raise Stop(BLIND, kb.say("monitor.none", options.lang, reason=session.facts.why_not("usage.sample")))
    else:
        out("\n".join(lines(session, sample, options)))
    if sample is None:
        return BLIND
    return FAULT if any(e.level == "bad" for _, finding in layers for e in finding.evidence) else OK


def document(session: Session, layers: list[Any], lang: str) -> dict[str, Any]:
    """The one JSON document: readings, devices, and each layer's answer with its evidence."""
    kb, fact = session.knowledge, session.facts["usage.sample"]
    return {
        "status": fact.status,
        "note": fact.note or None,
        "sample": fact.value,
        "gpu": session.facts.value("gpu.devices"),
        "layers": [
            {"probe": name, "answer": found.answer, "reason": found.reason or None, "values": found.values,
             "evidence": show.evidence_of(kb, found, lang)}
            for name, found in layers
        ],
    }  # fmt: skip


def lines(session: Session, sample: dict[str, Any], options: Namespace) -> list[str]:
    """The same for people, on any terminal and in a log."""
    kb, lang, facts = session.knowledge, options.lang, session.facts
    encoding = (sys.stdout.encoding or "").lower()
    levels = watching.ASCII if options.ascii or "utf" not in encoding else watching.BLOCKS
    made = [watching.card_name(facts, sample)] if watching.card_name(facts, sample) else []
    if not sample.get("gpu"):
        made.append(kb.say("monitor.no-gpu", lang, reason=facts.why_not("gpu.devices")))
    for one in watching.series(sample, facts):
        drawn = watching.sparkline(one.values, WIDTH, one.top, levels)
        made.append(f"{drawn}  {one.now:>12}  {kb.say('monitor.' + one.name, lang)}")
    made += ["", kb.say("monitor.verdict", lang)]
    for name, finding in watching.verdict(facts, kb.tables):
        made.append(f"{kb.say('probe.' + name, lang)}: {show.answer(kb, name, finding.answer, lang)}")
        made += [f"  {show.MARKS[e.level]} {show.sentence(kb, e, lang)}" for e in finding.evidence]
    made += ["", kb.say("monitor.processes", lang)]
    for pid, name, cpu, memory, on_gpu in watching.top_processes(sample, 8):
        made.append(f"{pid:>7}  {name:<28} {cpu:>6} {memory:>9}  {kb.say('monitor.on-gpu', lang) if on_gpu else ''}")
    return [plain(line).rstrip() for line in made]
