"""The command ``dlls``: the import chain of one library, as the loader of this system would follow it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from tftriage import headless
from tftriage.headless import FAULT, OK, USAGE, Stop, out, out_json
from tftriage.knowledge import load
from tftriage.plain import plain
from tftriage.requests import arguments


def dlls(options: Namespace) -> int:
    """``tftriage dlls FILE``: per library the importer, the rule that found it, winner, shadowed copies, failure."""
    from tftriage.loader import describe, resolve

    path = Path(options.file)
    if not path.is_file():
        raise Stop(USAGE, f"{path}: no such file")
    session = headless.session_of(options, "", load())
    try:
        session.observe(("system.os", "target.interpreter", "tf.package"), headless.progress(options))
        asked = arguments("dlls.tree", session.target, session.facts, session.knowledge.tables, {})
        asked["roots"] = [str(path.absolute())]
        facts = {fact.name: fact for fact in session.source.collect([("dlls.tree", asked)])}
    finally:
        session.close()
    tree = facts["dlls.tree"]
    if tree.status != "ok":
        raise Stop(headless.BLIND, f"dlls.tree: {tree.status} {tree.note}")
    described = describe(resolve(tree.value, with_path=options.with_path))
    if options.json:
        out_json(described)
    else:
        for row in described["libraries"]:
            where = row.get("winner") or row.get("failure") or ""
            out(plain(f"{'  ' * row.get('depth', 0)}{row['name']:<32} {row.get('rule') or '':<14} {where}"))
    return OK if described["complete"] else FAULT
