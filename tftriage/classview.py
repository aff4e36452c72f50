"""The class without a screen: table, CSV, JSON, one HTML page, and a message for every student."""

from __future__ import annotations

import csv
import html
import io
import re
import sys
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from tftriage import cases
from tftriage.casework import read_case
from tftriage.classes import ClassIndex, Group, Row, groups
from tftriage.diff import compare
from tftriage.headless import BLIND, FAULT, OK, Stop, complain, out, out_json
from tftriage.knowledge import Knowledge, load
from tftriage.message import language_of, message
from tftriage.plain import one_line, plain

COLUMNS = ("file", "owner", "system", "tensorflow", "gpu", "cause", "fix", "note")


def show_class(options: Namespace) -> int:
    """``tftriage class DIR``: 0 when no case of it has a fault, else 1; 4 when the folder cannot be read."""
    kb, lang, folder = load(), options.lang, Path(options.folder)
    try:
        index = ClassIndex(folder, kb)
        try:
            index.update(None if options.quiet else _teller(kb, lang))
            rows = index.rows()
        finally:
            index.close()
    except OSError as error:
        raise Stop(BLIND, kb.say("class.unreadable", lang, folder=folder, reason=error.strerror or error)) from error
    if not rows:
        complain(kb.say("class.empty", lang, folder=folder))
    differs = _against(options.against, folder, rows, kb) if options.against else {}
    if options.messages:
        count = write_messages(folder, rows, kb, Path(options.messages))
        complain(kb.say("class.messages", lang, count=count, folder=options.messages))
    if options.html:
        _write(Path(options.html), page(rows, kb, lang, differs))
    if options.json:
        out_json(document(rows, kb, lang, differs))
    elif options.csv:
        sys.stdout.write(table(rows, kb, lang))
    elif not options.html:
        out("\n".join(lines(rows, kb, lang, differs)))
    faults = [row for row in rows if row.cause and kb.diagnoses[row.cause].verdict not in ("healthy", "harmless")]
    return FAULT if faults else OK


def _teller(kb: Knowledge, lang: str) -> Any:
    def tell(done: int, every: int) -> None:
        if done == every or done % 25 == 0:
            complain(kb.say("class.reading", lang, done=done, all=every))

    return tell


def title_of(cause: str, kb: Knowledge, lang: str) -> str:
    """The words of a group: its cause, the question that is open, or what else holds it together."""
    if cause in kb.diagnoses:
        return kb.diagnoses[cause].title[lang]
    kind, _, node = cause.partition(":")
    if kind == "asks":
        if node in kb.nodes:
            return kb.say("class.asks", lang, question=kb.nodes[node].ask[lang])
        return kb.say("class.asks-symptom", lang)
    return kb.say("class.error" if cause == "error" else "class.healthy", lang)


def titled(row: Row, kb: Knowledge, lang: str) -> str:
    """What a row says in the column of causes."""
    if row.error:
        return row.error
    return title_of(row.cause or (f"asks:{row.asks}" if row.asks else ""), kb, lang)


def cells(row: Row, kb: Knowledge, lang: str) -> tuple[str, ...]:
    """A row's texts, column by column."""
    fix = kb.fixes[row.fix].title[lang] if row.fix in kb.fixes else ""
    note = ", ".join(filter(None, (kb.say("class.handled", lang) if row.handled else "", row.note)))
    return row.file, row.owner, row.system, row.tensorflow, row.gpu, titled(row, kb, lang), fix, note


def lines(rows: list[Row], kb: Knowledge, lang: str, differs: dict[str, list[str]]) -> Iterable[str]:
    """The class as text: a block for each cause, its fixes and its cases."""
    found, by_file = groups(rows), {row.file: row for row in rows}
    yield kb.say("class.title", lang, cases=len(rows), causes=sum(group.cause in kb.diagnoses for group in found))
    for group in found:
        yield ""
        yield f"{len(group.files):4}  {title_of(group.cause, kb, lang)}"
        for text in _fixes(group, kb, lang):
            yield f"      -> {text}"
        for file in group.files:
            row = by_file[file]
            note = cells(row, kb, lang)[-1]
            extra = _also(row, kb, lang), note, row.error, ", ".join(differs.get(file, ()))
            parts = [file, row.owner, row.system, row.tensorflow, *filter(None, extra)]
            yield "      " + one_line("  ".join(filter(None, parts)))


def _fixes(group: Group, kb: Knowledge, lang: str) -> list[str]:
    every = len(group.files)
    counts = sorted(group.fixes.items(), key=lambda pair: -pair[1])
    known = [(kb.fixes[fix].title[lang], count) for fix, count in counts if fix in kb.fixes]
    return [kb.say("class.fix", lang, fix=title, count=count, all=every) for title, count in known]


def _also(row: Row, kb: Knowledge, lang: str) -> str:
    names = [kb.diagnoses[cause].title[lang] for cause in row.also if cause in kb.diagnoses]
    return kb.say("class.also", lang, causes=", ".join(names)) if names else ""


def _against(good: str, folder: Path, rows: list[Row], kb: Knowledge) -> dict[str, list[str]]:
    """For every case the questions that it answers otherwise than the machine that works."""
    works, found = read_case(good), {}
    for row in rows:
        if not row.error:
            compared = compare(works, cases.read(folder / row.file), kb)
            found[row.file] = [f"{r.probe}: {r.good} | {r.bad}" for r in compared.rows if r.evidence or r.on_path]
    return found


def table(rows: list[Row], kb: Knowledge, lang: str) -> str:
    """CSV with a header; a cell that a spreadsheet would take for a formula is made text."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([kb.say(f"class.column-{name}", lang) for name in COLUMNS])
    writer.writerows([_no_formula(one_line(cell)) for cell in cells(row, kb, lang)] for row in rows)
    return stream.getvalue()


def _no_formula(cell: str) -> str:
    return "'" + cell if cell[:1] in ("=", "+", "-", "@") else cell


def document(rows: list[Row], kb: Knowledge, lang: str, differs: dict[str, list[str]]) -> dict[str, Any]:
    """The JSON document of ``class``."""
    shown: list[dict[str, Any]] = [{**msgspec.to_builtins(row), "title": titled(row, kb, lang)} for row in rows]
    for row in shown:
        if row["file"] in differs:
            row["differs"] = differs[row["file"]]
    made = [{**msgspec.to_builtins(group), "title": title_of(group.cause, kb, lang)} for group in groups(rows)]
    return {"cases": shown, "groups": made}


def write_messages(folder: Path, rows: list[Row], kb: Knowledge, target: Path) -> int:
    """A text file for every case that can be read, named like it; the number of them. Raises ``Stop``."""
    count = 0
    for row in rows:
        if row.error:
            continue
        case = cases.read(folder / row.file)
        session = cases.replay(case, kb)
        name = re.sub(r"[^\w.-]", "_", Path(row.file).stem) + ".txt"
        _write(target / name, message(session, language_of(session), case.tokens))
        count += 1
    return count


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise Stop(BLIND, f"{path}: {error.strerror or error}") from error


STYLE = """
body { font: 15px/1.5 system-ui, "Segoe UI", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif; margin: 2em auto;
  max-width: 72em; padding: 0 1em; color: #1a1a1a; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.1em; margin: 1.6em 0 .3em }
.count { display: inline-block; min-width: 1.6em; padding: 0 .4em; margin-right: .5em; text-align: center;
  border: 1px solid #1a1a1a; border-radius: .3em }
p { margin: .2em 0 } table { border-collapse: collapse; width: 100%; margin: .5em 0 }
th, td { text-align: left; vertical-align: top; padding: .25em .6em .25em 0; border-bottom: 1px solid #bbb;
  overflow-wrap: anywhere } th { font-weight: 600 } .quiet { color: #555 }
@media print { body { font-size: 10pt; margin: 0; max-width: none } section { break-inside: avoid-page }
  thead { display: table-header-group } tr { break-inside: avoid } }
"""


def page(rows: list[Row], kb: Knowledge, lang: str, differs: dict[str, list[str]]) -> str:
    """One HTML page that needs nothing else: no script, no picture, no address; every text of a case is escaped."""

    def text(value: str) -> str:
        return html.escape(plain(value), quote=True)

    found, by_file = groups(rows), {row.file: row for row in rows}
    title = kb.say("class.title", lang, cases=len(rows), causes=sum(group.cause in kb.diagnoses for group in found))
    shown = [name for name in COLUMNS if name not in ("cause", "fix")]
    head = "".join(f"<th>{text(kb.say(f'class.column-{name}', lang))}</th>" for name in shown)
    parts = [
        f'<!doctype html>\n<html lang="{"zh-CN" if lang == "zh" else "en"}">\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n<h1>{text(title)}</h1>",
    ]
    for group in found:
        parts.append(f'<section><h2><span class="count">{len(group.files)}</span>')
        parts.append(f"{text(title_of(group.cause, kb, lang))}</h2>")
        parts += [f"<p>{text(line)}</p>" for line in _fixes(group, kb, lang)]
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>")
        for file in group.files:
            row = by_file[file]
            values = dict(zip(COLUMNS, cells(row, kb, lang), strict=True))
            extra = [_also(row, kb, lang), row.error, *differs.get(file, ())]
            values["note"] = "\n".join(filter(None, [values["note"], *extra]))
            row_text = "".join(f"<td>{text(values[name]).replace(chr(10), '<br>')}</td>" for name in shown)
            parts.append(f"<tr>{row_text}</tr>")
        parts.append("</tbody></table></section>")
    return "\n".join(parts) + "\n</html>\n"
