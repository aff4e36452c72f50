"""``kb show`` says everything the knowledge base has of an id, ``kb graph`` draws what ``kb check`` walks."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from tftriage.cli import main
from tftriage.drawing import Arrow, Box, draw, wrap
from tftriage.kbcheck import next_nodes
from tftriage.kbshow import dot, edges, find, ids, lines, mermaid, svg
from tftriage.knowledge import CHECKOUT, load

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


SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("tree", ids(KB)["tree"])
def test_a_picture_has_every_box_and_arrow(tree: str, lang: str) -> None:
    root = ElementTree.fromstring(svg(KB, lang, tree))
    drawn = edges(KB, tree)
    groups = {group.get("id"): group for group in root.iter(f"{SVG}g")}
    assert set(groups) == {name for pair in drawn for name in pair} >= {n for n in KB.nodes if n.startswith(f"{tree}/")}
    for name, group in groups.items():
        box = group.find(f"{SVG}rect")
        assert box is not None and name is not None
        kind = "end" if name not in KB.nodes else "question" if name.startswith(f"{tree}/") else "elsewhere"
        assert box.get("class") == kind and (box.get("rx") != "0") == (kind == "end")
        said = "".join("".join(line.itertext()) for line in group.iter(f"{SVG}text"))
        title = (
            KB.nodes[name].ask[lang] if name in KB.nodes else KB.diagnoses[name.removeprefix("diagnosis:")].title[lang]
        )
        assert "".join(title.split()) in "".join(said.split())
    answers = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "answer"]
    assert sorted(answers, key=str) == sorted(", ".join(found) for found in drawn.values())
    assert len([path for path in root.iter(f"{SVG}path") if path.get("marker-end")]) == len(drawn)


@pytest.mark.parametrize("tree", ids(KB)["tree"])
def test_boxes_do_not_overlap(tree: str) -> None:
    root = ElementTree.fromstring(svg(KB, "en", tree))
    boxes = [
        tuple(float(box.attrib[key]) for key in ("x", "y", "width", "height"))
        for group in root.iter(f"{SVG}g")
        for box in group.iter(f"{SVG}rect")
    ]
    for n, (x, y, wide, high) in enumerate(boxes):
        assert (
            x >= 0 and y >= 30 and x + wide <= float(root.attrib["width"]) and y + high <= float(root.attrib["height"])
        )
        assert all(
            x + wide <= left or left + w <= x or y + high <= top or top + h <= y for left, top, w, h in boxes[n + 1 :]
        )


@pytest.mark.parametrize("tree", ids(KB)["tree"])
def test_the_documentation_shows_the_trees_of_today(tree: str) -> None:
    # To renew: tftriage kb graph TREE --format svg --lang en > docs/trees/TREE.svg
    shown = (CHECKOUT.parent / "docs" / "trees" / f"{tree}.svg").read_text(encoding="utf-8")
    assert shown == svg(KB, "en", tree) + "\n"
    assert len(shown.encode()) < 60_000


def test_one_picture_is_one_tree(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "graph", "--format", "svg"]) == 2
    assert "jupyter" in capsys.readouterr().err
    assert main(["kb", "graph", "jupyter", "--format", "svg", "--lang", "zh"]) == 0
    assert "notebook 的内核" in capsys.readouterr().out


def test_drawing_text_and_cycles() -> None:
    assert wrap("Is it a & b < c?", 9) == ["Is it a &", "b < c?"]
    assert wrap("显卡在用吗，还是没用？", 8) == ["显卡在用", "吗，还是", "没用？"]
    assert wrap("a" * 25, 10) == ["a" * 10, "a" * 10, "a" * 5]
    boxes = [Box("a", '<a> & "b"', "question"), Box("b", "b", "end")]
    root = ElementTree.fromstring(draw(boxes, [Arrow("a", "b", "x < y")], "t"))
    assert '<a> & "b"' in [text.text for text in root.iter(f"{SVG}text")]
    with pytest.raises(ValueError, match="cycle"):
        draw(boxes, [Arrow("a", "b", ""), Arrow("b", "a", "")], "t")
    assert ElementTree.fromstring(draw([], [], "nothing")).tag == f"{SVG}svg"
