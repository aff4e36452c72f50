"""What to tell the owner of a case: the cause, and what to do by hand, in their language. Nothing is applied here."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from tftriage import cases, mend, show
from tftriage.casework import read_case
from tftriage.fixes.plans import Refused
from tftriage.headless import FAULT, OK, PERSON, USAGE, Stop, out, out_json
from tftriage.knowledge import Knowledge, fill, load
from tftriage.plain import one_line, plain
from tftriage.session import Session
from tftriage.walk import Ask


def language_of(session: Session) -> str:
    """The owner's language: of their system, else of what they pasted."""
    locale = session.facts.value("system.locale")
    spoken = locale.get("ui_language") if isinstance(locale, dict) else None
    if isinstance(spoken, str) and spoken:
        return "zh" if spoken.lower().startswith("zh") else "en"
    page = locale.get("acp") if isinstance(locale, dict) else None
    chinese = sum("\u4e00" <= letter <= "\u9fff" for letter in session.text[:20000])
    return "zh" if page == 936 or chinese > 1 else "en"


def script(session: Session, lang: str) -> tuple[str | None, str]:
    """The first fix that can be planned from the case: its id, and its preview with the commands to run, by shell."""
    for offer in mend.offers(session):
        if offer.refused is not None:
            continue
        try:
            planned = mend.plan(session, offer.fix)
        except Refused:
            continue
        kb = session.knowledge
        shown = mend.shown(planned, session.facts, kb, lang)
        lines = [kb.fixes[offer.fix].title[lang], *(mend.MARKS.get(kind, "") + text for kind, text in shown)]
        return offer.fix, plain("\n".join([*lines, "", mend.by_hand(planned, session.facts)])).rstrip()
    return None, ""


def message(session: Session, lang: str, tokens: tuple[str, ...] = ()) -> str:
    """A text that can be sent as it is: what is wrong, why, what to do, which popular advice not to follow.

    ``tokens`` are the case's stand-ins for names: their owner has to put the names back into the commands.
    """
    kb, diagnosis = session.knowledge, session.diagnosis
    if diagnosis is None:
        return _open_question(session, kb, lang)
    values = {name: one_line(value) for name, value in session.values.items()}
    parts = [
        kb.say("message.greeting", lang),
        diagnosis.title[lang],
        show.cause(diagnosis, session.values, lang) + "\n" + fill(diagnosis.explanation, lang, values),
    ]
    fix, ready = script(session, lang)
    if fix is not None:
        stand_ins = [token for token in tokens if token in ready]
        if stand_ins:
            parts.append(kb.say("message.tokens", lang, tokens=", ".join(stand_ins)))
        parts.append(kb.say("message.fix", lang, fix=fix) + "\n" + ready)
    if diagnosis.hand is not None:
        parts.append(kb.say("diagnosis.by-hand", lang) + "\n" + fill(diagnosis.hand, lang, values))
    for myth in diagnosis.myths:
        claim, truth = kb.myths[myth].claim[lang], kb.myths[myth].truth[lang]
        parts.append(kb.say("diagnosis.myth", lang, claim=claim) + "\n" + truth)
    parts.append(kb.say("message.then", lang))
    return plain("\n\n".join(part.strip() for part in parts if part.strip())) + "\n"


def _open_question(session: Session, kb: Knowledge, lang: str) -> str:
    if isinstance(session.request, Ask):
        node = kb.nodes[session.request.node]
        return plain("\n\n".join([kb.say("message.question", lang), node.ask[lang], node.by_hand[lang].strip()])) + "\n"
    return plain(kb.say("message.nothing", lang)) + "\n"


def tell(options: Namespace) -> int:
    """``tftriage message CASE``: 1 with a diagnosis, 3 when the person has to be asked, 0 when nothing is wrong."""
    kb = load()
    case = read_case(options.case)
    try:
        session = cases.replay(case, kb)
    except cases.CaseError as error:
        raise Stop(USAGE, one_line(str(error))) from error
    lang = options.message_lang or language_of(session)
    text = message(session, lang, case.tokens)
    if options.json:
        document: dict[str, Any] = {"lang": lang, "text": text, "fix": script(session, lang)[0]}
        out_json(document)
    else:
        out(text.rstrip())
    if session.diagnosis is None:
        return PERSON if isinstance(session.request, Ask) else OK
    return OK if session.diagnosis.verdict in ("healthy", "harmless") else FAULT
