"""What ``tftriage kb check`` refuses: a knowledge base with a hole in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tftriage.knowledge import LANGUAGES, PLACEHOLDER, Knowledge, Source
from tftriage.matching import GUESSED, match
from tftriage.probes.base import Probe
from tftriage.symptoms import Text
from tftriage.walk import ASK, DIAGNOSIS, absolute

_NOT_RE2 = re.compile(r"\(\?(?:[=!]|<[=!]|P=)|\\[1-9]")
_LOADER_ERROR = re.compile(r"loader-error:(\d+|any)$")


def check(kb: Knowledge, probes: Mapping[str, Probe], fixes: Iterable[str]) -> list[str]:
    """Every hole, one line each, in a stable order; empty when the knowledge base is whole."""
    symptoms = _symptoms(kb)
    return [
        *symptoms,
        *([] if symptoms else _texts(kb)),  # rules that cannot work are not tried
        *_nodes(kb, probes),
        *_reach(kb),
        *_harmless(kb),
        *_diagnoses(kb, probes, set(fixes)),
        *_words(kb),
    ]


def _two_languages(where: str, text: Text | None) -> list[str]:
    if text is None:
        return []
    found = [f"{where}: no {lang} text" for lang in LANGUAGES if not text.get(lang, "").strip()]
    if not found and set(PLACEHOLDER.findall(text["en"])) != set(PLACEHOLDER.findall(text["zh"])):
        found.append(f"{where}: the two languages have different placeholders")
    return found


def _symptoms(kb: Knowledge) -> list[str]:
    found: list[str] = []
    ids = [symptom.id for symptom in kb.symptoms]
    codes = {error.code for error in kb.tables.loader_errors}
    for symptom in kb.symptoms:
        where = f"symptom {symptom.id}"
        found += _two_languages(f"{where} title", symptom.title)
        found += _two_languages(f"{where} summary", symptom.summary or None)
        found += [
            f"{where}: no synonyms in {lang}"
            for lang in LANGUAGES
            if symptom.also and not any(symptom.also.get(lang, ()))
        ]
        if ids.count(symptom.id) > 1:
            found.append(f"{where}: the id stands twice")
        if not _exists(kb, symptom.start):
            found.append(f"{where}: starts at {symptom.start}, which does not exist")
        found += [f"{where}: outranks {other}, which does not exist" for other in symptom.outranks if other not in ids]
        for rule in symptom.recognise:
            if rule.regex:
                found += _regex(where, rule.regex)
            if rule.message:
                code = _LOADER_ERROR.match(rule.message)
                if code is None or (code.group(1) != "any" and int(code.group(1)) not in codes):
                    found.append(f"{where}: no loader error {rule.message}")
        if symptom.recognise and (len(symptom.examples) < 2 or len(symptom.near_misses) < 2):
            found.append(f"{where}: needs two examples and two near misses")
    return found


def _texts(kb: Knowledge) -> list[str]:
    """Examples that are not recognised first, near misses that are recognised."""
    found: list[str] = []
    for symptom in kb.symptoms:
        where = f"symptom {symptom.id}"
        for text in symptom.examples:
            hits = _recognised(kb, text)
            if hits[:1] != [symptom.id]:
                found.append(f"{where}: the example {text[:60]!r} shows {', '.join(hits[:2]) or 'nothing'} first")
        for text in symptom.near_misses:
            if symptom.id in _recognised(kb, text):
                found.append(f"{where}: the near miss {text[:60]!r} is recognised")
    return found


def _recognised(kb: Knowledge, text: str) -> list[str]:
    """What a text shows, best first; what it only may mean does not count."""
    return [hit.id for hit in match(text, kb.symptoms, kb.tables.loader_errors).matches if hit.score > GUESSED]


def _regex(where: str, pattern: str) -> list[str]:
    try:
        re.compile(pattern)
    except re.error as error:
        return [f"{where}: {pattern!r} is no regular expression ({error})"]
    return [f"{where}: {pattern!r} needs look-around or a backreference"] if _NOT_RE2.search(pattern) else []


def _exists(kb: Knowledge, target: str) -> bool:
    if target.startswith(DIAGNOSIS):
        return target[len(DIAGNOSIS) :] in kb.diagnoses
    return target in kb.nodes


def _nodes(kb: Knowledge, probes: Mapping[str, Probe]) -> list[str]:
    found: list[str] = []
    for name, node in kb.nodes.items():
        for part, text in (("ask", node.ask), ("why", node.why), ("by-hand", node.by_hand)):
            found += _two_languages(f"node {name} {part}", text)
        for answer, text in node.choices.items():
            found += _two_languages(f"node {name} choice {answer}", text)
        if node.probe is not None and node.probe not in probes:
            found.append(f"node {name}: no probe {node.probe}")
        probe = probes.get(node.probe or "")
        declared = set(probe.answers) if probe else set(node.answers)
        found += [f"node {name}: answer {a} is not mapped" for a in sorted(declared - node.answers.keys())]
        found += [f"node {name}: {node.probe} never answers {a}" for a in sorted(node.answers.keys() - declared)]
        found += [
            f"node {name}: no words for the choice {a}"
            for a, target in node.answers.items()
            if target != ASK and a not in node.choices
        ]
        for answer, target in node.answers.items():
            whole = absolute(target, name)
            if whole != ASK and not _exists(kb, whole):
                found.append(f"node {name}: {answer} leads to {whole}, which does not exist")
        found += [f"node {name}: likely {d}, which does not exist" for d in node.likely if d not in kb.diagnoses]
        if node.likely or node.sources:
            found += _sourced(f"node {name}", node.sources)
        if node.probe is None and all(target == ASK for target in node.answers.values()):
            found.append(f"node {name}: a dead end")
    return found


def next_nodes(kb: Knowledge, name: str) -> list[str]:
    """The targets of a node, absolute, ``ask`` left out."""
    targets = (absolute(target, name) for target in kb.nodes[name].answers.values())
    return [target for target in targets if target != ASK]


def _reach(kb: Knowledge) -> list[str]:
    """Cycles, and what no symptom leads to."""
    found: list[str] = []
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            found.append("cycle: " + " -> ".join((*path[path.index(name) :], name)))
            return
        if name in done or not _exists(kb, name):
            return
        if name in kb.nodes:
            for target in next_nodes(kb, name):
                visit(target, (*path, name))
        done.add(name)

    for symptom in kb.symptoms:
        visit(symptom.start, ())
    found += [f"node {name}: no symptom leads here" for name in kb.nodes if name not in done]
    found += [f"diagnosis {d}: no symptom leads here" for d in kb.diagnoses if DIAGNOSIS + d not in done]
    return found


def _harmless(kb: Knowledge) -> list[str]:
    """What is no fault of the installation must not end in a repair of it.

    A symptom with another verdict than ``fault`` reaches only diagnoses without fixes. Where a single rule has such a
    verdict, the first node must be able to say so: one of its answers is a diagnosis of that verdict, without fixes.
    """
    found: list[str] = []
    for symptom in kb.symptoms:
        where = f"symptom {symptom.id}"
        if symptom.verdict != "fault":
            mending = sorted(d for d in _ends(kb, symptom.start) if kb.diagnoses[d].fixes)
            found += [f"{where}: its verdict is {symptom.verdict}, and it may end in {d}, which mends" for d in mending]
            continue
        ends = [symptom.start, *(next_nodes(kb, symptom.start) if symptom.start in kb.nodes else ())]
        near = [kb.diagnoses[end[len(DIAGNOSIS) :]] for end in ends if end.startswith(DIAGNOSIS) and _exists(kb, end)]
        for verdict in {rule.verdict for rule in symptom.recognise if rule.verdict not in (None, "fault")}:
            if not any(one.verdict == verdict and not one.fixes for one in near):
                found.append(f"{where}: a rule says {verdict}, but {symptom.start} cannot")
    return found


def _ends(kb: Knowledge, start: str) -> set[str]:
    """The diagnoses that can be reached."""
    done, todo = set[str](), [start]
    while todo:
        name = todo.pop()
        if name not in done and _exists(kb, name):
            done.add(name)
            todo += next_nodes(kb, name) if name in kb.nodes else []
    return {name[len(DIAGNOSIS) :] for name in done if name.startswith(DIAGNOSIS)}


def _fills(kb: Knowledge, probes: Mapping[str, Probe]) -> dict[str, set[str]]:
    """For each diagnosis, the placeholders that some probe on some way to it fills."""
    filled: dict[str, set[str]] = {symptom.start: set() for symptom in kb.symptoms}
    todo = list(filled)
    while todo:
        name = todo.pop()
        if name not in kb.nodes:
            continue
        probe = probes.get(kb.nodes[name].probe or "")
        here = filled[name] | set(probe.fills if probe else ())
        for target in next_nodes(kb, name):
            if target not in filled or not here <= filled[target]:
                filled[target] = filled.get(target, set()) | here
                todo.append(target)
    return filled


def _diagnoses(kb: Knowledge, probes: Mapping[str, Probe], fixes: set[str]) -> list[str]:
    found: list[str] = []
    filled = _fills(kb, probes)
    for name, diagnosis in kb.diagnoses.items():
        where = f"diagnosis {name}"
        for part in ("title", "cause", "explanation", "hand"):
            text: Text | None = getattr(diagnosis, part)
            found += _two_languages(f"{where} {part}", text)
            used = {p for lang in (text or {}).values() for p in PLACEHOLDER.findall(lang)}
            missing = used - filled.get(DIAGNOSIS + name, set())
            found += [f"{where} {part}: no probe fills {{{p}}}" for p in sorted(missing)]
        if not diagnosis.fixes and diagnosis.hand is None:
            found.append(f"{where}: neither fix nor hand steps")
        found += [f"{where}: no code for the fix {f}" for f in diagnosis.fixes if f not in fixes]
        found += [f"{where}: no words for the fix {f}" for f in diagnosis.fixes if f not in kb.fixes]
        found += [f"{where}: no myth {m}" for m in diagnosis.myths if m not in kb.myths]
        if diagnosis.verdict not in ("fault", "healthy") and diagnosis.fixes:
            found.append(f"{where}: its verdict is {diagnosis.verdict}, so it may not offer a repair of the GPU stack")
        found += _sourced(where, diagnosis.sources)
    return found


def _sourced(where: str, sources: tuple[Source, ...]) -> list[str]:
    if not sources:
        return [f"{where}: a claim without source"]
    return [f"{where}: an empty source" for source in sources if not source.ref.strip()]


def _words(kb: Knowledge) -> list[str]:
    found: list[str] = []
    for name, fix in kb.fixes.items():
        for part in ("title", "what", "undo"):
            found += _two_languages(f"fix {name} {part}", getattr(fix, part))
    for name, myth in kb.myths.items():
        found += _two_languages(f"myth {name} claim", myth.claim) + _two_languages(f"myth {name} truth", myth.truth)
        found += _sourced(f"myth {name}", myth.sources)
    told = {myth for diagnosis in kb.diagnoses.values() for myth in diagnosis.myths}
    found += [f"myth {name}: no diagnosis tells it" for name in kb.myths if name not in told]
    for key, text in kb.messages.items():
        found += _two_languages(f"message {key}", text)
    for key, text in kb.evidence.items():
        found += _two_languages(f"evidence {key}", text)
    tables = kb.tables
    for rows in (tables.builds, tables.drivers, tables.gpus, tables.pins, tables.loader_errors, tables.toolkits):
        found += [f"table row {row}: no source" for row in rows if not row.source]
    return found
