"""``kb show`` says everything the knowledge base has of an id, ``kb graph`` draws what ``kb check`` walks."""

from __future__ import annotations

import json
import re

import pytest

from tftriage.cli import main
from tftriage.kbcheck import next_nodes
from tftriage.kbshow import dot, edges, find, ids, lines, mermaid
from tftriage.knowledge import load

KB = load()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_id_has_a_plain_text(lang: str) -> None:
    for kind, names in ids(KB).items():
        assert names
        for name in names:
            found = [one for one in find(KB, name) if one.kind == kind]
            assert len(found) == 1, (kind, name)
            text = "\n".join(lines(KB, found[0], lang))
            assert text.startswith(f"{kind} {name}") and len(text.splitlines()) > 1
            assert "{'en'" not in text


def test_an_id_may_name_several_things() -> None:
    assert [one.kind for one in find(KB, "zlibwapi-missing")] == ["symptom", "diagnosis"]
    assert [one.kind for one in find(KB, "diagnosis:zlibwapi-missing")] == ["diagnosis"]
    assert [one.kind for one in find(KB, "gpu-found-not-added/reason")] == ["node"]
    assert find(KB, "loader-errors") == find(KB, "loader_errors") != []
    assert find(KB, "nothing-like-this") == []


def test_a_diagnosis_is_told_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "show", "vcredist-outdated", "--lang", "en"]) == 0
    told = capsys.readouterr().out
    diagnosis = KB.diagnoses["vcredist-outdated"]
    assert diagnosis.title["en"] in told and diagnosis.cause["en"] in told
    assert all(source.ref in told for source in diagnosis.sources)
    assert all(f"myth {myth}" in told for myth in diagnosis.myths)
    assert main(["kb", "show", "vcredist-outdated", "--lang", "zh"]) == 0
    assert diagnosis.title["zh"] in capsys.readouterr().out


def test_tables_are_readable(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "show", "pins", "--lang", "en"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"2\.1\.0 .* protobuf==3\.20\.3 .* tested", shown)
    assert main(["kb", "show", "builds", "--lang", "en"]) == 0
    assert re.search(r"Windows +2\.10\.1 .* 11\.2 ", capsys.readouterr().out)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "show", "zlibwapi-missing", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["kind"] for one in document] == ["symptom", "diagnosis"]
    assert set(document[1]["value"]["title"]) == {"en", "zh"}
    assert main(["kb", "show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == ids(KB)
    assert main(["kb", "graph", "jupyter", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["graph"].startswith("flowchart")


def test_what_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "show", "nothing"]) == 2
    assert main(["kb", "graph", "nothing"]) == 2
    assert "nothing" in capsys.readouterr().err


def test_the_graph_has_every_edge_that_is_walked() -> None:
    drawn = edges(KB)
    assert {name for name, _ in drawn} == set(KB.nodes)
    for name in KB.nodes:
        assert {target for left, target in drawn if left == name} == set(next_nodes(KB, name))
    assert {name.split("/")[0] for name, _ in edges(KB, "jupyter")} == {"jupyter"}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_pictures_are_well_formed(lang: str) -> None:
    chart = mermaid(KB, lang).splitlines()
    box = re.compile(r'  n_\w+(?:\{"[^"]+"\}|\(\["[^"]+"\]\))$')
    arrow = re.compile(r"  n_\w+ -->\|[\w,. -]+\| n_\w+$")
    assert chart[0] == "flowchart TD"
    assert all(box.match(line) or arrow.match(line) for line in chart[1:])
    assert sum(1 for line in chart if arrow.match(line)) == len(edges(KB))
    drawn = dot(KB, lang)
    assert drawn.count("{") == drawn.count("}") or "{" in drawn.split("\n", 1)[1]
    strings = re.findall(r'"((?:[^"\\]|\\.)*)"', drawn)
    assert len(strings) == 2 * len({n for pair in edges(KB) for n in pair}) + 3 * len(edges(KB))
