"""The report: complete, redacted, and harmless in every format whatever the machine's text holds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tftriage import cases, pages, report
from tftriage.facts import Fact
from tftriage.knowledge import load
from tftriage.plain import one_line, plain

KB = load()
DEMOS = Path(__file__).parents[2] / "tftriage" / "demos"
NAMES = sorted(path.stem for path in DEMOS.glob("*.json"))
HOSTILE = (
    '</pre></text><script>alert(1)</script><img src=x onerror=y> & &lt; "quoted" \x1b[2J\x00\u202e'
    "![a](http://b) `c` ```` **d** _e_ [f]: g"
)


def made(name: str, lang: str = "en", redact: bool = True) -> report.Report:
    return report.of_session(cases.replay(cases.read(DEMOS / f"{name}.json"), KB), lang, redact)


def hostile() -> report.Report:
    """A report whose every text from the machine is an attack."""
    case = cases.read(DEMOS / "cudnn-renamed-utf-8.json")
    text = f"{case.text}\n{HOSTILE}\n1. no list\n# no heading\n````\nno fence"
    packages = {"numpy": {"name": "numpy", "version": HOSTILE}}
    facts = [fact for fact in case.facts if fact.name != "target.packages"]
    changed = msgspec.structs.replace(case, text=text, facts=(*facts, Fact("target.packages", "ok", packages)))
    return report.of_session(cases.replay(changed, KB), "en")


class Page(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", NAMES)
def test_it_holds_what_a_helper_asks_for(name: str, lang: str) -> None:
    session = cases.replay(cases.read(DEMOS / f"{name}.json"), KB)
    found = made(name, lang)
    assert session.walk is not None and session.diagnosis is not None
    assert found.symptom == KB.symptom(session.walk.symptom).title[lang]
    assert len(found.asked) == len(session.walk.steps) and found.cause is not None
    assert found.cause.title == session.diagnosis.title[lang]
    versions = dict(found.versions)
    assert versions["Python"].startswith(("3.7", "3.8"))
    assert "?" not in found.cause.text
    for write in pages.FORMATS.values():
        text = write(found, KB)
        assert found.cause.title in text.replace("&quot;", '"').replace("&#x27;", "'").replace("\\", "")


def test_a_walk_that_stopped_says_at_which_question() -> None:
    session = cases.replay(cases.read(DEMOS / "protobuf.json"), KB)
    assert session.walk is not None
    session.back()
    found = report.of_session(session, "en")
    assert found.cause is None
    assert found.waits in pages.markdown(found, KB) and found.waits.endswith("?")


def test_names_are_left_out_by_the_same_rules_as_in_cases() -> None:
    case = cases.read(DEMOS / "found-not-added.json")
    user = Fact("system.user", "ok", {"name": "student", "home": "/home/student", "temp": "/tmp"})
    raw = json.loads(json.dumps(msgspec.to_builtins(case)).replace("student", "zhangwei"))
    other = msgspec.convert(raw, cases.Case)
    facts = [fact for fact in other.facts if fact.name != "system.user"]
    named = msgspec.structs.replace(
        other, text="mail zhang@example.org\n" + other.text,
        facts=(*facts, msgspec.structs.replace(user, value={"name": "zhangwei"})),
    )  # fmt: skip
    session = cases.replay(named, KB)
    everything = json.dumps(msgspec.to_builtins(report.of_session(session, "en")))
    assert "zhangwei" not in everything and "zhang@example.org" not in everything
    assert re.search(r"/home/\w+", everything), "the shape of a path stays"
    assert "zhangwei" in json.dumps(msgspec.to_builtins(report.of_session(session, "en", redact=False)))


def test_html_is_one_page_and_nothing_in_it_acts() -> None:
    text = pages.html(hostile(), KB)
    page = Page(text)
    assert not page.open
    allowed = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "pre", "ul", "li", "table", "tr",
               "th", "td", "footer"}  # fmt: skip
    assert {tag for tag, _ in page.tags} <= allowed
    assert {name for _, attrs in page.tags for name in attrs} <= {
        "lang", "charset", "name", "content", "http-equiv", "class", "title"
    }  # fmt: skip
    assert "</pre></text><script>alert(1)</script>" in page.text
    assert not re.search(r"url\(|@import|https?://[^\s<]*\.(?:css|js|woff)", text)
    assert "\x1b" not in text and "\x00" not in text and "\u202e" not in text
    assert "@media print" in text


def test_svg_is_well_formed_and_refers_to_nothing() -> None:
    root = ElementTree.fromstring(pages.svg(hostile(), KB))
    space = "{http://www.w3.org/2000/svg}"
    assert {element.tag for element in root.iter()} == {space + t for t in ("svg", "title", "style", "rect", "text")}
    words = "".join("".join(element.itertext()) for element in root.iter(space + "text"))
    assert "<script>alert(1)</script>" in words.replace("\u00a0", " ")
    assert not any("href" in name for element in root.iter() for name in element.attrib)
    bottom = max(float(element.attrib["y"]) for element in root.iter(space + "text"))
    assert bottom < float(root.attrib["height"])


def test_markdown_shows_a_hostile_text_as_it_is() -> None:
    rendered = MarkdownIt("commonmark").render(pages.markdown(hostile(), KB))
    page = Page(rendered)
    assert {tag for tag, _ in page.tags} <= {"h2", "h3", "p", "strong", "em", "ul", "ol", "li", "pre", "code"}
    assert "no fence" in page.text and rendered.count("<pre>") == 1
    assert "![a](http://b)" in page.text and "**d** _e_" in page.text


@given(st.text(st.one_of(st.sampled_from("\\`*_<>[]#+-=|~&;!().1 a/"), st.characters(codec="utf-8")), max_size=40))
@example("C:\\Users\\_x_\\[1]")
@example("1. a")
@example("needs <3 and <b>")
@example("--- ===")
@example("a_b_c __init__ _pywrap_")
def test_any_line_survives_markdown(text: str) -> None:
    line = one_line(text)
    rendered = MarkdownIt("commonmark").render("- x " + pages._markdown(text) + "\n\n" + pages._markdown(text))
    page = Page(rendered)
    assert {tag for tag, _ in page.tags} <= {"ul", "li", "p"}
    assert plain(page.text).split("\n")[-2 if line else -3].strip() == line.strip() or not line


# --- the command -------------------------------------------------------------------------------------------


def run(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "PYTHONUTF8": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "tftriage", "report", *arguments]
    return subprocess.run(command, capture_output=True, env=env, timeout=120, cwd=folder)


@pytest.mark.parametrize(("form", "head"), [("md", "## "), ("html", "<!doctype html>"), ("svg", "<svg ")])
def test_the_command_writes_each_format(form: str, head: str, tmp_path: Path) -> None:
    case = str(DEMOS / "protobuf.json")
    ran = run(case, "--format", form, "-o", f"out.{form}", "--lang", "en", folder=tmp_path)
    assert ran.returncode == 0 and ran.stdout == b"" and b"out." + form.encode() in ran.stderr
    written = (tmp_path / f"out.{form}").read_text(encoding="utf-8")
    assert written.startswith(head)
    piped = run(case, "--format", form, "--lang", "en")
    assert piped.stdout.decode().replace("\r\n", "\n").strip() == written.strip()


def test_json_names_the_parts() -> None:
    ran = run(str(DEMOS / "protobuf.json"), "--json", "--lang", "zh")
    document = json.loads(ran.stdout)
    assert document["cause"]["title"] == KB.diagnoses["protobuf-too-new"].title["zh"]
    assert document["versions"]["TensorFlow"] == "tensorflow-gpu 2.1.0" and document["redacted"]


def test_an_error_text_on_a_recorded_machine() -> None:
    ran = run("--case", str(DEMOS / "notebook.json"), "--symptom", "notebook-module-not-found", "--lang", "en")
    assert ran.returncode == 0 and KB.diagnoses["notebook-kernel-wrong-env"].title["en"] in ran.stdout.decode()


def test_without_anything_it_says_what_to_give() -> None:
    ran = run("--lang", "en")
    assert ran.returncode == 2 and b"--error FILE" in ran.stderr
    assert run("nowhere.json").returncode == 2
