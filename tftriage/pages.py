"""A report as Markdown for a forum, as one HTML page that prints well, or as an SVG picture.

Text from a machine or a case is hostile until proven: every format escapes it, and none refers to anything outside
itself (no script, no font, no picture, no link that a machine's text could have made).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

import msgspec

from tftriage.drawing import wrap
from tftriage.knowledge import Knowledge
from tftriage.plain import one_line
from tftriage.report import Report

MARKS = {"ok": "✓", "bad": "✗", "info": "·"}


class Part(msgspec.Struct, frozen=True):
    """One paragraph: ``heading``, ``text``, ``strong`` (a line that counts), ``item`` of a list, ``seen`` (evidence
    below an item, with its level), ``step`` (a numbered line), ``code`` (several lines), ``row`` (name and value).
    """

    kind: str
    text: str
    level: str = ""


def parts(report: Report, kb: Knowledge) -> list[Part]:
    """The report as paragraphs, in the order in which a helper reads."""

    def say(key: str, **params: object) -> str:
        return kb.say(f"report.{key}", report.lang, **params)

    made = [Part("heading", say("symptom")), Part("strong", report.symptom)]
    if report.text:
        made += [Part("heading", say("text")), Part("code", "\n".join(report.text))]
    cause = report.cause
    made.append(Part("heading", say("cause")))
    if cause is None:
        made.append(Part("text", say("waits", question=report.waits) if report.waits else say("no-cause")))
    else:
        made += [Part("strong", cause.title), Part("text", cause.text), Part("text", cause.explanation)]
    if cause is not None and (cause.steps or cause.fixes):
        made += [Part("heading", say("do")), *(Part("step", line) for line in cause.steps)]
        if cause.fixes:
            made.append(Part("text", say("fixes")))
            made += [Part("item", f"{title} (tftriage fix apply {fix})") for fix, title in cause.fixes]
    if report.asked:
        made.append(Part("heading", say("asked")))
    for asked in report.asked:
        by = f" ({say('by-person')})" if asked.by_person else ""
        made.append(Part("item", f"{asked.question} {asked.answer}{by}"))
        made += [Part("seen", text, level) for level, text in asked.seen]
    if cause is not None and cause.myths:
        made.append(Part("heading", say("myths")))
        for claim, truth in cause.myths:
            made += [Part("item", claim), Part("seen", truth, "info")]
    if report.versions:
        made += [Part("heading", say("versions")), *(Part("row", value, name) for name, value in report.versions)]
    if cause is not None and cause.sources:
        made += [Part("heading", say("sources")), *(Part("item", f"{kind}: {ref}") for kind, ref in cause.sources)]
    return made


def footer(report: Report, kb: Knowledge) -> str:
    """What was left out, and who made it."""
    left_out = kb.say("report.redacted" if report.redacted else "report.not-redacted", report.lang)
    space = "" if report.lang == "zh" else " "
    return left_out + space + kb.say("report.made", report.lang, made=report.made)


# --- Markdown ----------------------------------------------------------------------------------------------

_SPECIAL = re.compile(r"\\(?=[!-/:-@\[-`{-~]|$)|[`*\[\]|~]|<(?=[A-Za-z/!?])|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")


def _markdown(text: str) -> str:
    """Text that Markdown shows as it is. What means nothing where it stands is left alone, for those who read the
    source: an underscore inside a word, a backslash before a letter, a lone "<"."""
    line = _SPECIAL.sub(lambda hit: "\\" + hit[0], one_line(text))
    return re.sub(r"^(#|>|\+|-|=|\d+(?=[.)](?:\s|$)))", _first, line)


def _first(hit: re.Match[str]) -> str:
    return hit[0] + "\\" if hit[0].isdigit() else "\\" + hit[0]


def _fence(text: str) -> str:
    """A fence longer than any in the text."""
    return "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))


def markdown(report: Report, kb: Knowledge) -> str:
    """Ready to paste in a forum, an issue or a mail; readable as it stands, too."""
    lines = [f"## {kb.say('report.title', report.lang)}"]
    before = ""
    for part in parts(report, kb):
        listed = part.kind in ("item", "seen", "row", "step")
        if not (listed and before in ("item", "seen", "row", "step")):
            lines.append("")
        lines += _as_markdown(part)
        before = part.kind
    return "\n".join([*lines, "", f"*{_markdown(footer(report, kb))}*", ""])


def _as_markdown(part: Part) -> list[str]:
    if part.kind == "heading":
        return [f"### {_markdown(part.text)}"]
    if part.kind == "code":
        fence = _fence(part.text)
        return [f"{fence}text", *part.text.split("\n"), fence]
    if part.kind == "step":
        number = re.match(r"\s*(\d{1,2}[.)])\s+(.*)", part.text)
        return [f"{number[1]} {_markdown(number[2])}" if number else f"   {_markdown(part.text)}"]
    said = _markdown(part.text)
    shapes = {
        "strong": f"**{said}**",
        "item": f"- {said}",
        "seen": f"  - {MARKS.get(part.level, '')} {said}",
        "row": f"- {_markdown(part.level)}: {said}",
    }
    return [shapes.get(part.kind, said)]


# --- HTML --------------------------------------------------------------------------------------------------

_CSS = """
:root{color-scheme:light}
body{font:15px/1.55 system-ui,"Segoe UI","Microsoft YaHei","Noto Sans CJK SC",sans-serif;color:#1b1f24;background:#fff;
max-width:46rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.35rem;border-bottom:2px solid #1b1f24;padding-bottom:.3rem}
h2{font-size:1.05rem;margin:1.6rem 0 .4rem;break-after:avoid}
p{margin:.4rem 0}.strong{font-weight:700}
pre{background:#f3f4f6;border:1px solid #d0d7de;padding:.6rem;overflow-x:auto;white-space:pre-wrap;
overflow-wrap:anywhere;font:12.5px/1.45 Consolas,Menlo,monospace}
ul,ol{margin:.3rem 0;padding-left:1.4rem}li{break-inside:avoid;overflow-wrap:anywhere}
.bad{font-weight:700}table{border-collapse:collapse}
th{text-align:left;font-weight:400;color:#57606a;padding:.1rem 1.2rem .1rem 0;vertical-align:top}
td{padding:.1rem 0;overflow-wrap:anywhere}footer{margin-top:2rem;color:#57606a;font-size:.85rem}
@media print{body{margin:0;max-width:none;font-size:11pt}pre{font-size:9pt}}
""".replace("\n", "")


def html(report: Report, kb: Knowledge) -> str:
    """One page, nothing outside it, made for the printer as well."""
    lang = {"zh": "zh-CN"}.get(report.lang, report.lang)
    title = kb.say("report.title", report.lang)
    body: list[str] = []
    opened: list[str] = []  # the lists that are open, innermost last

    def close(until: int = 0) -> None:
        while len(opened) > until:
            body.append({"ul": "</ul>", "ol": "</ol>", "table": "</table>"}[opened.pop()])

    for part in parts(report, kb):
        wanted = {"item": ["ul"], "seen": ["ul", "ul"], "row": ["table"], "step": []}.get(part.kind, [])
        while opened != wanted[: len(opened)]:
            close(len(opened) - 1)
        for tag in wanted[len(opened) :]:
            body.append(f"<{tag}>")
            opened.append(tag)
        body.append(_as_html(part, kb, report.lang))
    close()
    return (
        f'<!doctype html>\n<html lang="{lang}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}: {escape(report.symptom)}</title><style>{_CSS}</style></head><body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(body) + f"\n<footer>{escape(footer(report, kb))}</footer>"
        "</body></html>\n"
    )


def _as_html(part: Part, kb: Knowledge, lang: str) -> str:
    said = escape(part.text)
    if part.kind == "seen":
        level = escape(kb.say(f"report.level.{part.level}", lang))
        return f'<li class="{part.level}" title="{level}">{MARKS[part.level]} {said}</li>'
    shapes = {
        "heading": f"<h2>{said}</h2>",
        "strong": f'<p class="strong">{said}</p>',
        "item": f"<li>{said}</li>",
        "row": f"<tr><th>{escape(part.level)}</th><td>{said}</td></tr>",
        "code": f"<pre>{said}</pre>",
    }
    return shapes.get(part.kind, f"<p>{said}</p>")


# --- SVG ---------------------------------------------------------------------------------------------------

_WIDE, _CELL, _LINE = 96, 7.9, 20  # cells of a line, pixels of a cell at 13 px, pixels of a line
_STYLE = (
    'text{font:13px Consolas,Menlo,"Noto Sans Mono CJK SC","Microsoft YaHei",monospace;fill:#1b1f24;white-space:pre}'
    ".heading{font-weight:700;fill:#0550ae}.strong{font-weight:700}.code{fill:#57606a}.bad{font-weight:700}"
)


def svg(report: Report, kb: Knowledge) -> str:
    """A picture for a chat: the same words, line by line, no font or picture from elsewhere."""
    lines: list[tuple[str, str]] = [("heading", kb.say("report.title", report.lang)), ("", "")]
    for part in parts(report, kb):
        if part.kind == "heading":
            lines.append(("", ""))
        lines += _as_lines(part)
    lines += [("", ""), *(("code", line) for line in wrap(footer(report, kb), _WIDE))]
    width, height = int(_WIDE * _CELL) + 40, len(lines) * _LINE + 36
    made = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{escape(report.symptom)}</title><style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff" stroke="#8c959f"/>',
    ]
    for row, (kind, line) in enumerate(lines):
        if line:
            made.append(f'<text class="{kind}" x="20" y="{32 + row * _LINE}">{_visible(line)}</text>')
    return "\n".join([*made, "</svg>\n"])


def _visible(line: str) -> str:
    """Escaped; spaces stay spaces in every viewer, and characters that XML forbids are gone already."""
    return escape(line).replace("  ", "\u00a0\u00a0")


def _as_lines(part: Part) -> list[tuple[str, str]]:
    if part.kind == "code":
        return [("code", piece) for line in part.text.split("\n") for piece in _cut(line, _WIDE)]
    before = {"item": "• ", "seen": f"  {MARKS.get(part.level, '')} ", "row": f"{part.level}: "}.get(part.kind, "")
    kind = part.kind if part.kind in ("heading", "strong") else "bad" if part.level == "bad" else ""
    pieces = wrap(part.text, _WIDE - 4 - len(before))
    rest = " " * (len(before) if part.kind != "row" else 2)
    return [(kind, (before if number == 0 else rest) + piece) for number, piece in enumerate(pieces)]


def _cut(line: str, room: int) -> list[str]:
    """A line of a message keeps its spaces."""
    return [line[at : at + room] for at in range(0, max(1, len(line)), room)]


FORMATS: dict[str, Callable[[Report, Knowledge], str]] = {"md": markdown, "html": html, "svg": svg}
