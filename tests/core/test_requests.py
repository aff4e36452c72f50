"""Facts are asked for in an order that lets each request know what it needs."""

from __future__ import annotations

from tftriage.facts import Fact, Facts
from tftriage.requests import Target, arguments, libraries, roots, waves
from tftriage.tables import Build, Tables

TABLES = Tables(
    builds=(
        Build(package="tensorflow-gpu", version="2.3", system="Windows", pythons=("3.8",), cuda="10.1",
              libraries=("cudart64_101.dll", "cudnn64_7.dll")),
    )
)  # fmt: skip
FACTS = Facts(
    [
        Fact("system.os", "ok", {"system": "Windows"}),
        Fact("tf.package", "ok", {"version": "2.3.1", "main_native": "C:\\tf\\_pywrap.pyd", "module_file": "x.py"}),
    ]
)


def test_prerequisites_come_first() -> None:
    groups = waves(["dlls.tree", "tf.import", "paste.text"], Facts())
    assert groups[-1] == ["dlls.tree"]
    assert set(groups[0]) == {"system.os", "tf.package", "target.interpreter", "tf.import"}


def test_known_facts_are_not_asked_for_again() -> None:
    assert waves(["system.os", "tf.package"], FACTS) == []


def test_the_builds_table_says_which_libraries_to_try() -> None:
    assert libraries(Target(), FACTS, TABLES) == ["cudart64_101.dll", "cudnn64_7.dll"]
    assert roots(Target(), FACTS, TABLES)[0] == "C:\\tf\\_pywrap.pyd"


def test_another_module_is_its_own_root() -> None:
    facts = FACTS.with_(Fact("tf.package", "ok", {"module_file": "C:\\p\\badext.pyd"}))
    assert roots(Target(module="badext"), facts, TABLES) == ["C:\\p\\badext.pyd"]


def test_the_folders_that_hooks_add_are_searched_for_libraries() -> None:
    added = {"dll_directories": ["C:\\p\\numpy.libs"]}
    facts = Facts([Fact("target.interpreter", "ok", added)])
    assert arguments("dlls.tree", Target(), facts, TABLES, {})["dll_directories"] == ["C:\\p\\numpy.libs"]
    assert "dll_directories" not in arguments("tf.libraries", Target(), facts, TABLES, {})


def test_arguments_leave_out_what_is_not_known() -> None:
    given = arguments("tf.import", Target(python="p"), FACTS, TABLES, {})
    assert given == {"python": "p", "module": "tensorflow"}
    given = arguments("jupyter.import", Target(python="p"), FACTS, TABLES, {"kernel": "tf"})
    assert given["kernel"] == "tf"
