"""The commands around a case file: ``redact``, and ``collector`` which makes what writes one elsewhere."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from tftriage import cases
from tftriage.collector import program
from tftriage.headless import BLIND, OK, USAGE, Stop, out, out_json, write_case
from tftriage.knowledge import load
from tftriage.plain import one_line


def read_case(name: str) -> cases.Case:
    """The case in a file. Raises ``Stop`` with what is wrong with it."""
    try:
        return cases.read(Path(name))
    except cases.CaseError as error:
        raise Stop(USAGE, one_line(str(error))) from error


def redact(options: Namespace) -> int:
    """``tftriage redact CASE [-o FILE]``: take names and secrets out of a case; without ``-o`` in place."""
    kb = load()
    path = Path(options.output or options.case)
    write_case(read_case(options.case), path, kb, options.lang, users=options.name)
    if options.json:
        out_json({"case": str(path), "redacted": True})
    else:
        out(kb.say("redact.written", options.lang, path=path))
    return OK


def collector(options: Namespace) -> int:
    """``tftriage collector -o collect.pyz``: write the one-file collector."""
    kb = load()
    path = Path(options.output)
    try:
        path.write_text(program(cases.local_key()), encoding="ascii", newline="\n")
    except OSError as error:
        raise Stop(BLIND, f"{path}: {error.strerror or error}") from error
    if options.json:
        out_json({"collector": str(path), "bytes": path.stat().st_size})
    else:
        out(kb.say("collector.written", options.lang, path=path))
    return OK
