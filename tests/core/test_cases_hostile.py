"""A case is hostile until proven: whatever stands in it, no traceback, no control character, no cost without bound."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tftriage
from tftriage import cases, mend, show
from tftriage.cases import Case, CaseError, files, form
from tftriage.cli import main
from tftriage.facts import Fact
from tftriage.knowledge import load
from tftriage.plain import escaped

KB = load()
DEMOS = {path.stem: path for path in sorted((Path(tftriage.__file__).parent / "demos").glob("*.json"))}
HEAD = b'{"format": "tftriage-case", "text": '
STORED = Path(__file__).parent / "cases"
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def test_the_published_schema_is_the_form_we_read() -> None:
    """After a change of the form: ``python -m tftriage.cases.form``."""
    assert json.loads(form.PUBLISHED.read_text(encoding="utf-8")) == json.loads(msgspec.json.encode(form.json_schema()))


@pytest.mark.parametrize("name", DEMOS)
def test_what_is_written_fits_the_published_schema(name: str, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema does not load here", exc_type=ImportError)
    schema = json.loads(form.PUBLISHED.read_text(encoding="utf-8"))
    path = tmp_path / "case.json"
    cases.write(cases.redact(cases.read(DEMOS[name]), b"k" * 32), path)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(json.loads(path.read_text(encoding="utf-8")))
    assert not validator.is_valid({"format": "tftriage-case", "facts": [{"name": 1}]})


@pytest.mark.parametrize("path", sorted(STORED.glob("schema-*.json")), ids=lambda path: path.stem)
def test_every_version_opens_for_ever(path: Path) -> None:
    case = cases.read(path)
    assert case.schema == int(path.stem.partition("-")[2])
    session = cases.replay(case, KB)
    assert session.diagnosis is not None
    assert session.diagnosis.id == "notebook-kernel-wrong-env"


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"PK\x03\x04" + b"\0" * 100, "unpacked first"),
        (b"\x1f\x8b\x08" + b"\0" * 100, "unpacked first"),
        (HEAD + b"[" * 70 + b"]" * 70 + b"}", "too deeply"),
        (HEAD + b"[" + b"1," * 1_000_000 + b"1]}", "too many values"),
        (HEAD + b'"' + b"x" * (files.MAX_STRING + 1) + b'"}', "larger than"),
        (HEAD + b"1" * 5000 + b"}", "too many digits"),
        (HEAD + b'"a", "text": "b"}', "there twice"),
        (b'{"format": "tftriage-case", "facts": [{"name": "a", "status": "ok", "value": {"x": 1, "x": 2}}]}', "twice"),
        (
            b'{"format": "tftriage-case", "facts": [{"name": "a", "status": "ok"}, {"name": "a", "status": "ok"}]}',
            "twice",
        ),
        (HEAD + b'"\\ud800"}', "not a tftriage case"),
        (HEAD + b"NaN}", "not a tftriage case"),
        (HEAD + b'"\xff\xfe"}', "not a tftriage case"),
    ],
    ids=[
        "zip",
        "gzip",
        "deep",
        "million",
        "string",
        "digits",
        "twice",
        "value-twice",
        "fact-twice",
        "half",
        "nan",
        "utf8",
    ],
)
def test_what_would_cost_or_deceive_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(CaseError, match=complaint):
        cases.decode(data)


def test_a_string_full_of_brackets_is_no_depth() -> None:
    text = "[" * 1000 + '"\\' + "{" * 1000 + "1" * 100
    assert cases.decode(msgspec.json.encode(Case(text=text))).text == text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes in folders")
def test_a_pipe_is_no_case(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CaseError, match="no file"):
        cases.read(tmp_path / "pipe")


def test_a_document_for_programs_does_not_act_on_the_terminal_either() -> None:
    text = "a\x9b31m\u202eb\U000e0041"
    made = escaped(json.dumps({"x": text}, ensure_ascii=False))
    assert not ACTING.search(made)
    assert json.loads(made) == {"x": text}


NASTY = st.sampled_from(
    [
        *(
            "\x1b[2J",
            "\x1b]0;owned\x07",
            "\x9b31m",
            "\u202etxt.exe",
            "[bold]x[/bold]",
            "{missing}",
            "\r\rx",
            "%s%n",
            "\x00",
        ),
        *("../../etc/passwd", "C:\\Windows\\System32\\cmd.exe", "$(touch owned)", "张\u200b伟", "-1", "1e999"),
        *("a" * 5000, "&\u2028<script>"),
    ]
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | NASTY,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NASTY, inner, max_size=4),
    max_leaves=12,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


LOADED = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in DEMOS.items()}
PLACES = {name: [p for p in places(case["facts"]) if len(p) < 7] for name, case in LOADED.items()}


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """A real case in which some values are replaced by junk of any form, and texts by nasty ones."""
    name = draw(st.sampled_from(sorted(LOADED)))
    case = copy.deepcopy(LOADED[name])
    for path in draw(st.lists(st.sampled_from(PLACES[name]), min_size=1, max_size=6)):
        inner: Any = case["facts"]
        with contextlib.suppress(KeyError, IndexError, TypeError):  # an earlier one has replaced what was there
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = draw(JUNK)
    if draw(st.booleans()):
        case["text"] += "\n" + draw(NASTY)
    if draw(st.booleans()):
        case["target"] = {"python": draw(NASTY), "module": draw(st.sampled_from(["tensorflow", "\x1b[1m"]))}
    return case


def said(arguments: list[str]) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    return status, out.getvalue() + err.getvalue()


@given(case=damaged(), lang=st.sampled_from(["en", "zh"]), verb=st.sampled_from(["diagnose", "doctor", "json"]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_diagnose_never_crashes_and_never_acts_on_the_terminal(case: Any, lang: str, verb: str, tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(json.dumps(case, ensure_ascii=False), encoding="utf-8", errors="surrogatepass")
    words = ["diagnose", "--json"] if verb == "json" else [verb]
    status, text = said([*words, "--case", str(path), "--lang", lang])
    assert status in range(5)
    assert not ACTING.search(text)


@given(case=damaged())
@settings(max_examples=100, deadline=None)
def test_a_replay_shows_and_plans_without_a_crash(case: Any) -> None:
    try:
        session = cases.replay(cases.decode(json.dumps(case).encode()), KB)
    except CaseError:
        return
    for lang in ("en", "zh"):
        assert not ACTING.search(show.walk_text(session, lang))
    for offer in mend.offers(session):
        try:
            planned = mend.plan(session, offer.fix)
        except mend.Refused:
            continue
        for _, line in mend.shown(planned, session.facts, KB, "en"):
            assert not ACTING.search(line)


@given(data=st.binary(max_size=400) | st.text(max_size=200).map(lambda text: HEAD + text.encode("utf-8", "replace")))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_case_or_refused(data: bytes) -> None:
    with contextlib.suppress(CaseError):
        assert isinstance(cases.decode(data), Case)


def test_no_path_in_a_case_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaying and planning every stored case touches no file that the case names, and starts nothing."""
    touched: list[str] = []
    loaded = [cases.read(path) for path in DEMOS.values()]
    for one in loaded:
        cases.replay(one, KB)  # what is loaded late is loaded now

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event in (
            "open",
            "os.listdir",
            "os.scandir",
            "subprocess.Popen",
            "os.system",
            "socket.connect",
        ):
            touched.append(f"{event} {arguments[0]}")

    import sys

    watching = True
    sys.addaudithook(watch)
    try:
        for one in loaded:
            session = cases.replay(one, KB)
            for offer in mend.offers(session):
                if offer.refused is None:
                    planned = mend.plan(session, offer.fix)
                    mend.shown(planned, session.facts, KB, "en")
    finally:
        watching = False
    assert touched == []


def test_a_walk_of_another_version_is_said_to_be_one() -> None:
    with pytest.raises(CaseError, match="no-such"):
        cases.replay(Case(symptom="no-such"), KB)
    case = cases.read(DEMOS["protobuf"])
    odd = msgspec.structs.replace(
        case, answers=(cases.PersonAnswer("gone/node", "yes"),), facts=(*case.facts, Fact("new.fact", "ok", 1))
    )
    assert cases.replay(odd, KB).diagnosis is not None
