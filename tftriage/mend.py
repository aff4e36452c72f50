"""From a diagnosis to a cured machine: which fixes apply, plan, apply, and the proof that it helped."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tftriage.facts import Facts
from tftriage.fixes import elevation
from tftriage.fixes.catalogue import FIXES
from tftriage.fixes.effects import Applied, StepResult, apply
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import Plan, Refused
from tftriage.fixes.preview import preview
from tftriage.knowledge import Knowledge, fill
from tftriage.plain import plain
from tftriage.probes import PROBES
from tftriage.probes.base import Evidence
from tftriage.requests import Target
from tftriage.session import Listener, Session, Verified, unheard
from tftriage.show import sentence
from tftriage.walk import Ask, Step, Walk


class Offer(msgspec.Struct, frozen=True):
    """A fix that the diagnosis names; ``refused`` says why it does not apply here (an evidence key), or is ``None``."""

    fix: str
    refused: str | None


def offers(session: Session) -> list[Offer]:
    """The fixes of the diagnosis reached, those that apply first."""
    diagnosis = session.diagnosis
    listed = [Offer(fix, _refusal(session, fix)) for fix in (diagnosis.fixes if diagnosis else ())]
    return sorted(listed, key=lambda offer: offer.refused is not None)


def _refusal(session: Session, fix: str) -> str | None:
    try:
        return FIXES[fix].refuses(session.facts, session.values)
    except Exception:  # a case may hold anything under a fact's name
        if session.source.live:
            raise
        return "fix.unreadable-case"


def shown(plan: Plan, facts: Facts, kb: Knowledge, lang: str) -> list[tuple[str, str]]:
    """The preview as (kind, text) lines in one language: what is done, then what it needs and what undo does."""
    words, seen = kb.fixes[plan.fix], preview(plan, facts)
    lines = [("what", text) for text in fill(words.what, lang, plan.title).strip().split("\n")] + [("what", "")]
    for line in seen.lines:
        text = sentence(kb, Evidence(line.text, line.params), lang) if line.kind == "note" else plain(line.text)
        lines.append((line.kind, text))
    lines += [("what", ""), ("what", kb.say("fix.undo-does", lang, undo=fill(words.undo, lang, plan.title).strip()))]
    if seen.needs:
        needs = ", ".join(kb.say(f"needs.{need}", lang) for need in seen.needs)
        lines.append(("what", kb.say("fix.needs", lang, needs=needs)))
    return lines


def by_hand(plan: Plan, facts: Facts) -> str:
    """The commands a person could type instead, by shell."""
    shells = preview(plan, facts).commands
    return "\n\n".join(f"# {shell}\n" + "\n".join(lines) for shell, lines in shells.items())


MARKS = {
    "diff+": "+ ", "diff-": "- ", "diff=": "  ", "path+": "+ ", "path-": "- ", "path=": "  ", "path~": "~ ",
    "command": "$ ", "note": "  ",
}  # fmt: skip


def plan(session: Session, fix: str, given: dict[str, str] | None = None) -> Plan:
    """What the fix would do, as plain data. ``given`` adds or replaces values. Raises ``Refused``."""
    values = {**session.values, **(given or {})}
    try:
        reason = FIXES[fix].refuses(session.facts, values)
        if reason is not None:
            raise Refused(reason)
        planned = FIXES[fix].plan(session.facts, values, session.knowledge.tables)
        if not session.source.live:
            preview(planned, session.facts)
        return planned
    except Refused:
        raise
    except Exception as error:
        if session.source.live:
            raise
        raise Refused("fix.unreadable-case") from error


def carry_out(
    session: Session, planned: Plan, journal: Journal, on_step: Callable[[StepResult], None] | None = None
) -> Applied:
    """Apply a plan, journalled. A recorded case has nothing to change: ``Refused``."""
    if not session.source.live or session.source.elsewhere:
        raise Refused("fix.other-machine" if session.source.live else "fix.recorded-case")
    if elevation.needed(planned):
        applied = elevation.carry_out(planned, journal)
        for result in applied.results:
            (on_step or (lambda _: None))(result)
        return applied
    return apply(planned, journal, on_step)


def verify(session: Session, planned: Plan, listener: Listener = unheard) -> Verified:
    """Ask the probe that failed again, in the context that failed, then walk on from the symptom.

    Every fact is observed anew by a new collector process; the session stands where the new walk ends.
    """
    before = session.walk
    name, is_good = _check(session, planned)
    session.close()
    session.forget()
    session.retarget(_context(session.target, planned))
    probe = PROBES[name]
    session.observe(probe.needs, listener)
    finding = probe(session.facts, session.knowledge.tables)
    if not is_good(finding.answer):
        return Verified("not-cured", finding, before.diagnosis if before else None)
    if before is None:
        return Verified("cured", finding, None)
    session.begin(before.symptom)
    end = session.advance(listener)
    if isinstance(end, Ask):
        return Verified("cured", finding, None, asks=end.node)
    if session.walk is not None and _works_now(before, session.walk):
        return Verified("cured", finding, None)
    diagnosis = session.knowledge.diagnoses[end.diagnosis]
    if diagnosis.verdict in ("healthy", "harmless"):
        return Verified("cured", finding, end.diagnosis)
    return Verified("not-cured" if end.diagnosis == before.diagnosis else "next-cause", finding, end.diagnosis)


def _check(session: Session, planned: Plan) -> tuple[str, Callable[[str], bool]]:
    """The probe to ask again, and whether its new answer is a good one.

    It is the last one on the way that saw a fault (one that could not look proves nothing). A fix in a kernel is
    proved by a cell in that kernel; a fix that was planned without a walk names its own probe.
    """
    check, walk = planned.verify, session.walk
    failed = next((s for s in reversed(walk.steps) if _saw_a_fault(s)), None) if walk else None
    probe = session.knowledge.nodes[failed.node].probe if failed else None
    if failed is None or probe is None or check.own or check.context.get("kernel"):
        return check.probe, check.good_answers.__contains__
    answer = failed.answer
    return probe, lambda now: now not in (answer, "unknown")


def _works_now(before: Walk, after: Walk) -> bool:
    """Whether the import failed here before the fix and works here now: nothing has to be looked for elsewhere."""
    failed = {done.node for done in before.steps if done.answer in ("fails", "hangs", "killed")}
    return any(done.answer == "works" and done.node in failed for done in after.steps)


def _saw_a_fault(step: Step) -> bool:
    return step.by == "probe" and step.finding is not None and any(e.level == "bad" for e in step.finding.evidence)


def _context(target: Target, planned: Plan) -> Target:
    context = planned.verify.context
    return msgspec.structs.replace(
        target,
        python=context.get("python") or target.python,
        fresh=bool(context.get("fresh")) or target.fresh,
        kernel=context.get("kernel") or target.kernel,
        env={**target.env, **context.get("env", {})},
    )
