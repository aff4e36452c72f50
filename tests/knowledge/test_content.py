"""What the words and numbers of the knowledge base promise: two languages, sources, tables that hold together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from packaging.requirements import Requirement

from tftriage.tables import Tables, satisfies

KNOWLEDGE = Path(__file__).resolve().parents[2] / "knowledge"
CJK = "[\u4e00-\u9fff]"
HALF_WIDTH = re.compile(f"{CJK}[,;:?!()]|[,;:?!()]{CJK}")
WORDS = [*KNOWLEDGE.glob("trees/*.yaml"), *KNOWLEDGE.glob("diagnoses/*.yaml"), *KNOWLEDGE.glob("myths/*.yaml")]
RELIED_ON = {
    "dll-import/whose", "dll-import/target", "dll-import/reproduce", "dll-import/chain",
    "gpu-missing/build", "gpu-missing/libraries", "gpu-missing/driver", "gpu-found-not-added/reason",
    "gpu-fails-in-use/memory", "gpu-fails-in-use/cudnn", "non-ascii/what", "antivirus/record",
    "low-utilisation/low", "jupyter/kernel", "install/python",
}  # fmt: skip


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def texts(value: Any) -> Iterator[dict[str, str]]:
    """Every text in two languages inside a file."""
    if isinstance(value, dict):
        if value.keys() == {"en", "zh"}:
            yield value
        else:
            for inner in value.values():
                yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


@pytest.fixture(scope="module")
def tables() -> Tables:
    merged: dict[str, Any] = {}
    for path in KNOWLEDGE.glob("tables/*.yaml"):
        content = read(path)
        merged.update(content if isinstance(content, dict) else {path.stem: content})
    return msgspec.convert(merged, Tables)


def test_the_check_sees_half_width_punctuation() -> None:
    assert HALF_WIDTH.search("找不到,指定的模块")
    assert HALF_WIDTH.search("版本号:指定")
    assert not HALF_WIDTH.search("用 %pip，不要用 !pip：import sys; print(sys.path)，看第一行（或 os.getcwd()）。")


@pytest.mark.parametrize("path", WORDS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_both_languages_are_written(path: Path) -> None:
    found = list(texts(read(path)))
    assert found
    for text in found:
        assert re.search(CJK, text["zh"]), text
        assert not re.search(CJK, text["en"]), text
        assert not HALF_WIDTH.search(text["zh"]), text["zh"]
        assert text["en"].count("\n") == text["zh"].count("\n"), text  # the same steps in both


@pytest.mark.parametrize("path", sorted(KNOWLEDGE.glob("diagnoses/*.yaml")), ids=lambda path: path.stem)
def test_a_diagnosis_says_what_to_do_and_why_we_think_so(path: Path) -> None:
    diagnosis = read(path)
    assert diagnosis["sources"] and all(source["ref"].strip() for source in diagnosis["sources"])
    assert diagnosis["hand"]["en"].startswith("1. ") and diagnosis["hand"]["zh"].startswith("1. ")
    if diagnosis.get("verdict", "fault") != "fault":
        assert not diagnosis["fixes"]


@pytest.mark.parametrize("path", sorted(KNOWLEDGE.glob("myths/*.yaml")), ids=lambda path: path.stem)
def test_a_myth_is_refuted_by_more_than_hearsay(path: Path) -> None:
    assert {source["kind"] for source in read(path)["sources"]} & {"measured", "documented"}


def test_the_entry_points_of_the_trees_exist() -> None:
    nodes = {f"{path.stem}/{name}" for path in KNOWLEDGE.glob("trees/*.yaml") for name in read(path)}
    assert nodes >= RELIED_ON


@pytest.mark.parametrize("path", sorted(KNOWLEDGE.glob("trees/*.yaml")), ids=lambda path: path.stem)
def test_every_answer_has_words_and_a_person_may_always_not_know(path: Path) -> None:
    for name, node in read(path).items():
        assert node["choices"].keys() == node["answers"].keys(), name
        assert "unknown" in node["answers"], name
        if node["probe"] is None:
            assert "ask" not in node["answers"].values(), name  # asking again would be a loop


def test_windows_builds_carry_what_was_read_from_the_wheels(tables: Tables) -> None:
    old, new, last = (tables.build(version, "Windows") for version in ("1.13.1", "2.1.0", "2.10.1"))
    assert old and {"cudnn64_7.dll", "nvcuda.dll", "cudart64_100.dll"} <= set(old.imports)
    assert old.machine_code == ("3.5", "3.7", "5.2", "6.0", "6.1", "7.0")
    assert new and not new.imports and {"cudart64_101.dll", "cublas64_10.dll", "cudnn64_7.dll"} <= set(new.libraries)
    assert new.cudnn == "7.6.5" and "vcruntime140_1.dll" in new.vc_runtime and new.vc_floor == "14.24"
    assert last and "cudart64_110.dll" in last.libraries and "cudart64_112.dll" not in last.libraries
    between = tables.build("2.1.2", "Windows")
    assert between and between.version == "2.1" and between.libraries == new.libraries
    assert tables.build("2.11.0", "Windows") is None  # no GPU code there


def test_no_build_asks_for_driver_or_profiler(tables: Tables) -> None:
    names = {name.lower() for build in tables.builds for name in build.libraries}
    assert not [name for name in names if name.startswith(("nvcuda", "libcuda.", "cupti", "libcupti"))]


def test_every_gpu_build_has_a_driver_floor_and_knows_its_cards(tables: Tables) -> None:
    for build in tables.builds:
        if build.cuda is None:
            assert not build.machine_code and not build.libraries, build
            continue
        assert tables.driver_floor(build.cuda, build.system), build
        assert build.machine_code and build.capability_min == build.machine_code[0], build
        assert build.pythons and build.source, build


def test_the_driver_floors_of_windows_are_not_those_of_linux(tables: Tables) -> None:
    floors = [tables.driver_floor(cuda, "Windows") for cuda in ("10.0", "10.1")]
    assert [floor.driver for floor in floors if floor] == ["411.31", "418.96"]
    for row in tables.drivers:
        other = tables.driver_floor(row.cuda, "Linux")
        assert row.system == "Linux" or other is not None, row


def test_toolkits_ship_what_the_builds_open(tables: Tables) -> None:
    assert tables.toolkits_with("cublas64_10.dll", "Windows") == ("10.1", "10.2")
    assert "10.2" not in tables.toolkits_with("cudart64_101.dll", "Windows")
    for build in tables.builds:
        for name in (*build.libraries, *build.imports):
            if build.cuda and "cudnn" not in name.lower() and not name.lower().startswith(("nvcuda", "libcuda.")):
                assert build.cuda in tables.toolkits_with(name, build.system), (build.version, name)


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("NVIDIA GeForce RTX 3060 Laptop GPU", "8.6"),
        ("NVIDIA A100-SXM4-40GB", "8.0"),
        ("GeForce GTX TITAN X", "5.2"),
        ("NVIDIA TITAN X (Pascal)", "6.1"),
        ("GeForce GTX 660 Ti", "3.0"),
        ("NVIDIA GeForce GTX 1650 Ti", "7.5"),
        ("Quadro K2200", "5.0"),
        ("Quadro K2000", "3.0"),
    ],
)
def test_a_card_is_known_by_its_name(tables: Tables, name: str, capability: str) -> None:
    card = tables.gpu(name)
    assert card is not None and card.capability == capability


def test_pins_keep_their_own_rules_and_cure_only_their_own_version(tables: Tables) -> None:
    for row in tables.pins:
        for rule in map(Requirement, row.rules):
            pin = row.pins.get(rule.name)
            assert pin is None or satisfies(pin, str(rule.specifier)), (row.tensorflow, str(rule))
    old, new = tables.pin_set("2.1.0", "3.7"), tables.pin_set("2.21.0", "3.12")
    assert old and old.kind == "tested" and old.pins["protobuf"] == "3.20.3"
    assert new and all(
        not satisfies("3.20.3", str(Requirement(rule).specifier)) for rule in new.rules if "protobuf" in rule
    )
    assert tables.pin_set("2.1.0", "3.8") is None  # there is no 2.1 for Python 3.8
