"""``tftriage kb show`` and ``kb graph``: what the knowledge base says of an id, and its trees as a picture to draw."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tftriage.drawing import Arrow, Box, draw
from tftriage.headless import OK, USAGE, Stop, out, out_json
from tftriage.knowledge import Knowledge, Source, load
from tftriage.symptoms import Text
from tftriage.walk import ASK, DIAGNOSIS, absolute

# The columns of each table, as a person wants to see them.
TABLES: dict[str, tuple[str, ...]] = {
    "builds": ("system", "version", "pythons", "cuda", "cudnn", "capability_min", "machine_code", "vc_floor", "kind"),
    "drivers": ("system", "cuda", "driver", "kind", "source"),
    "gpus": ("capability", "first_cuda", "last_cuda", "names"),
    "pins": ("tensorflow", "pythons", "pins", "kind"),
    "loader_errors": ("code", "symbol", "texts"),
    "toolkits": ("system", "cuda", "libraries"),
}


class Found(msgspec.Struct, frozen=True):
    """One thing that an id names: its ``kind`` (symptom, node, tree, diagnosis, fix, myth, table) and the value."""

    kind: str
    id: str
    value: Any


def find(kb: Knowledge, name: str) -> list[Found]:
    """Everything of that id: a symptom and its diagnosis often share one. ``diagnosis:x`` names only the diagnosis."""
    bare = name.removeprefix(DIAGNOSIS)
    found: list[Found] = []
    if bare == name:
        found += [Found("symptom", name, symptom) for symptom in kb.symptoms if symptom.id == name]
        if name in kb.nodes:
            found.append(Found("node", name, kb.nodes[name]))
        tree = {node: value for node, value in kb.nodes.items() if node.split("/")[0] == name}
        if tree:
            found.append(Found("tree", name, tree))
    if bare in kb.diagnoses:
        found.append(Found("diagnosis", bare, kb.diagnoses[bare]))
    if bare == name:
        found += [Found("fix", name, kb.fixes[name])] if name in kb.fixes else []
        found += [Found("myth", name, kb.myths[name])] if name in kb.myths else []
        table = name.replace("-", "_")
        found += [Found("table", table, getattr(kb.tables, table))] if table in TABLES else []
    return found


def ids(kb: Knowledge) -> dict[str, list[str]]:
    """Every id that ``find`` knows, by kind."""
    return {
        "symptom": sorted(symptom.id for symptom in kb.symptoms),
        "tree": sorted({node.split("/")[0] for node in kb.nodes}),
        "node": sorted(kb.nodes),
        "diagnosis": sorted(kb.diagnoses),
        "fix": sorted(kb.fixes),
        "myth": sorted(kb.myths),
        "table": sorted(TABLES),
    }


def show(options: Namespace) -> int:
    """``tftriage kb show [ID]``: the text in one language, or ``--json``; without an id the list of all."""
    kb = load(Path(options.folder) if options.folder else None)
    if options.id is None:
        listing = ids(kb)
        if options.json:
            out_json(listing)
        else:
            out("\n".join("\n  ".join([f"{kind}:", *names]) for kind, names in listing.items()))
        return OK
    found = find(kb, options.id)
    if not found:
        raise Stop(USAGE, f"the knowledge base has no {options.id} (tftriage kb show lists what it has)")
    if options.json:
        out_json([{"kind": one.kind, "id": one.id, "value": one.value} for one in found])
    else:
        out("\n\n".join("\n".join(lines(kb, one, options.lang)) for one in found))
    return OK


def lines(kb: Knowledge, found: Found, lang: str) -> Iterator[str]:
    """The plain text of one thing."""
    yield f"{found.kind} {found.id}"
    yield from _WRITERS[found.kind](kb, found.value, lang)


def _part(name: str, text: Text | None, lang: str) -> Iterator[str]:
    if text and text.get(lang):
        first, *rest = text[lang].split("\n")
        yield f"  {name}: {first}"
        yield from (f"    {line}" for line in rest)


def _sources(sources: Sequence[Source]) -> Iterator[str]:
    yield from (f"  source ({source.kind}): {source.ref}" for source in sources)


def _symptom(kb: Knowledge, symptom: Any, lang: str) -> Iterator[str]:
    yield from _part("title", symptom.title, lang)
    yield from _part("summary", symptom.summary, lang)
    yield f"  verdict: {symptom.verdict}"
    yield f"  start: {symptom.start}"
    if symptom.outranks:
        yield f"  outranks: {', '.join(symptom.outranks)}"
    for example in symptom.examples:
        yield from _part("example", {lang: example.rstrip("\n")}, lang)


def _node(kb: Knowledge, node: Any, lang: str) -> Iterator[str]:
    yield from _part("ask", node.ask, lang)
    yield from _part("why", node.why, lang)
    yield from _part("by hand", node.by_hand, lang)
    yield f"  answered by: {node.probe or 'the person'}"
    for answer, target in node.answers.items():
        words = node.choices.get(answer, {}).get(lang, "")
        yield f"  {answer} -> {target}{f'   ({words})' if words else ''}"


def _tree(kb: Knowledge, nodes: dict[str, Any], lang: str) -> Iterator[str]:
    for name, node in nodes.items():
        yield f"  {name} [{node.probe or '-'}] {node.ask[lang]}"


def _diagnosis(kb: Knowledge, diagnosis: Any, lang: str) -> Iterator[str]:
    for part in ("title", "cause", "explanation", "hand"):
        yield from _part(part, getattr(diagnosis, part), lang)
    yield f"  verdict: {diagnosis.verdict}"
    for fix in diagnosis.fixes:
        yield f"  fix {fix}: {kb.fixes[fix].title[lang] if fix in kb.fixes else '?'}"
    for myth in diagnosis.myths:
        yield f"  myth {myth}: {kb.myths[myth].claim[lang] if myth in kb.myths else '?'}"
    yield from _sources(diagnosis.sources)


def _fix(kb: Knowledge, fix: Any, lang: str) -> Iterator[str]:
    for part in ("title", "what", "undo"):
        yield from _part(part, getattr(fix, part), lang)
    yield f"  risk: {fix.risk}"
    if fix.needs:
        yield f"  needs: {', '.join(fix.needs)}"
    yield from _sources(fix.sources)


def _myth(kb: Knowledge, myth: Any, lang: str) -> Iterator[str]:
    yield from _part("claim", myth.claim, lang)
    yield from _part("truth", myth.truth, lang)
    yield f"  told by: {', '.join(d for d, diagnosis in kb.diagnoses.items() if myth.id in diagnosis.myths) or '-'}"
    yield from _sources(myth.sources)


def _table(kb: Knowledge, rows: Sequence[Any], lang: str) -> Iterator[str]:
    name = next(name for name in TABLES if getattr(kb.tables, name) is rows)
    columns = TABLES[name]
    cells = [columns, *([_cell(getattr(row, column), lang) for column in columns] for row in rows)]
    widths = [max(len(line[n]) for line in cells) for n in range(len(columns) - 1)]
    for line in cells:
        yield "  " + "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]])


def _cell(value: Any, lang: str) -> str:
    if value is None or value == () or value == {}:
        return "-"
    if isinstance(value, dict):
        chosen = value.get(lang) or value.get("en")
        return _cell(chosen, lang) if chosen else " ".join(f"{key}=={inner}" for key, inner in value.items())
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


_WRITERS: dict[str, Callable[[Knowledge, Any, str], Iterator[str]]] = {
    "symptom": _symptom,
    "node": _node,
    "tree": _tree,
    "diagnosis": _diagnosis,
    "fix": _fix,
    "myth": _myth,
    "table": _table,
}

# --- graph -------------------------------------------------------------------------------------------------


def graph(options: Namespace) -> int:
    """``tftriage kb graph [TREE]``: the trees as Mermaid (the default) or DOT, one tree as SVG."""
    kb = load(Path(options.folder) if options.folder else None)
    if options.tree is not None and options.tree not in ids(kb)["tree"]:
        raise Stop(USAGE, f"the knowledge base has no tree {options.tree} ({', '.join(ids(kb)['tree'])})")
    if options.format == "svg" and options.tree is None:
        raise Stop(USAGE, f"one picture shows one tree: name it ({', '.join(ids(kb)['tree'])})")
    picture = {"dot": dot, "svg": svg, "mermaid": mermaid}[options.format](kb, options.lang, options.tree)
    if options.json:
        out_json({"format": options.format, "graph": picture})
    else:
        out(picture)
    return OK


def edges(kb: Knowledge, tree: str | None = None) -> dict[tuple[str, str], list[str]]:
    """(node, target) -> the answers that lead there; targets are absolute, what the person is asked is left out."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, node in kb.nodes.items():
        if tree is None or name.split("/")[0] == tree:
            for answer, target in node.answers.items():
                whole = absolute(target, name)
                if whole != ASK:
                    found.setdefault((name, whole), []).append(answer)
    return found


def mermaid(kb: Knowledge, lang: str, tree: str | None = None) -> str:
    """A Mermaid flow chart: questions as rhombs, diagnoses as rounded boxes."""
    found = edges(kb, tree)
    made = ["flowchart TD"]
    for name in _names(found):
        text = _label(kb, name, lang).replace('"', "#quot;")
        made.append(f'  {_key(name)}{{"{text}"}}' if name in kb.nodes else f'  {_key(name)}(["{text}"])')
    made += [f"  {_key(a)} -->|{', '.join(answers)}| {_key(b)}" for (a, b), answers in found.items()]
    return "\n".join(made)


def dot(kb: Knowledge, lang: str, tree: str | None = None) -> str:
    """The same for Graphviz."""
    found = edges(kb, tree)
    made = ["digraph trees {", "  rankdir=LR; node [fontname=sans]; edge [fontname=sans, fontsize=10];"]
    for name in _names(found):
        shape = "diamond" if name in kb.nodes else "box, style=rounded"
        made.append(f"  {_quoted(name)} [label={_quoted(_label(kb, name, lang))}, shape={shape}];")
    made += [
        f"  {_quoted(a)} -> {_quoted(b)} [label={_quoted(', '.join(answers))}];" for (a, b), answers in found.items()
    ]
    return "\n".join([*made, "}"])


def svg(kb: Knowledge, lang: str, tree: str | None = None) -> str:
    """A finished picture, for readers who have neither: what leads into another tree ends in a dashed box."""
    found = edges(kb, tree)
    asked = {name for name, _ in found}
    boxes = [
        Box(name, _label(kb, name, lang), "question" if name in asked else "elsewhere" if name in kb.nodes else "end")
        for name in _names(found)
    ]
    arrows = [Arrow(a, b, ", ".join(answers)) for (a, b), answers in found.items()]
    return draw(boxes, arrows, f"tftriage kb graph {tree or ''}".strip())


def _names(found: dict[tuple[str, str], list[str]]) -> list[str]:
    return list(dict.fromkeys(name for pair in found for name in pair))


def _label(kb: Knowledge, name: str, lang: str) -> str:
    if name in kb.nodes:
        return f"{name}: {kb.nodes[name].ask[lang]}"
    diagnosis = kb.diagnoses.get(name.removeprefix(DIAGNOSIS))
    return diagnosis.title[lang] if diagnosis else name


def _key(name: str) -> str:
    """An identifier for Mermaid, which has words of its own (``end``)."""
    return "n_" + "".join(char if char.isalnum() else "_" for char in name)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
