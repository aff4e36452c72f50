"""What a symptom is: how it is recognised, and where its tree starts. Types only, no behaviour.

The values live in ``knowledge/symptoms/<id>.yaml``; ``tftriage.matching`` reads them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Text = dict[str, str]
"""One sentence in every language of the interface: ``{"en": ..., "zh": ...}``."""

Verdict = Literal["fault", "harmless", "not-tensorflow", "not-an-installation-fault"]
Owner = Literal["", "tensorflow", "other"]


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One way to recognise a symptom in a text. Exactly one of ``message``, ``text``, ``regex`` is set.

    ``message``  ``loader-error:126``: that code, by number or by its text in any language;
    ``text``     a literal; case, spacing and full-width forms do not count, and it may span a line break;
    ``regex``    RE2-compatible, searched without regard to case in each repaired line (spaces collapsed);
                 named groups become captures. Every match must hold a literal of three characters or more,
                 or one of several alternatives: only lines with that literal are searched.

    The hit counts only if: one of ``near`` stands within ``within`` lines of it, none of ``never`` does,
    and none of ``absent`` stands anywhere in the text. ``owner: tensorflow`` switches the rule off when the
    text shows that another package fails; ``owner: other`` switches it on only then.
    ``like``: the capture ``name`` must be a slip of one of these names and none of them (``meant`` is captured).
    ``weight``: 0.5 a hint, 1 names a kind of fault, 2 decides. ``verdict`` replaces the symptom's own.
    ``pause``: the hit counts only on a line with a time that comes at least so many seconds after the time before it.
    ``guess``: what may also be meant; it ranks below everything that was recognised and gives no verdict.
    ``settles``: a hit rules out every symptom that is a fault of ours (the text is about something else).
    """

    message: str = ""
    text: str = ""
    regex: str = ""
    near: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    within: int = 12
    owner: Owner = ""
    like: tuple[str, ...] = ()
    weight: float = 1.0
    verdict: Verdict | None = None
    settles: bool = False
    pause: int = 0
    guess: bool = False


class Symptom(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a person sees: pasted text, or (``complaint``) a line they pick from a list, by ``order``.

    ``outranks`` names the wrappers that this symptom explains: they rank below it in the same text.
    ``start`` is the first node, ``tree/node``, or ``diagnosis:<id>`` when nothing has to be asked.
    ``also`` is what people call it in their own words, by language; ``tftriage.freetext`` searches it.
    """

    id: str
    title: Text
    summary: Text = {}
    also: dict[str, tuple[str, ...]] = {}
    complaint: bool = False
    order: int = 0
    verdict: Verdict = "fault"
    recognise: tuple[Rule, ...]
    outranks: tuple[str, ...] = ()
    start: str
    examples: tuple[str, ...]
    near_misses: tuple[str, ...]
