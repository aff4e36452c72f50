"""Names outside ASCII: seen, and whether they matter."""

from __future__ import annotations

from typing import Any

from tests.probes.evidence_words import run
from tftriage.facts import Fact

HOME = {"what": "home", "path": "C:\\Users\\张伟", "ansi_ok": True}
TEMP = {"what": "temp", "path": "C:\\Users\\Łukasz\\Temp", "ansi_ok": False}
PLAIN = {"what": "prefix", "path": "C:\\env", "ansi_ok": True}
FAILED = {"module": "tensorflow", "ok": False, "error": "Descriptors should not be created directly"}
LOCALE = {"acp": 936, "encoding": "cp936"}


def test_ascii() -> None:
    assert run("nonascii_names", names__nonascii=[]).answer == "ascii"
    assert run("nonascii_names", names__nonascii=[PLAIN]).answer == "ascii"


def test_non_ascii_names_what_the_code_page_cannot_spell_first() -> None:
    finding = run("nonascii_names", names__nonascii=[HOME, PLAIN, TEMP])
    assert (finding.answer, finding.values["path"], finding.values["what"]) == (
        "non-ascii",
        TEMP["path"],
        "temp, home",
    )
    assert [e.level for e in finding.evidence] == ["bad", "info"]


def test_names_unknown() -> None:
    assert run("nonascii_names").reason == "names.nonascii: not-recorded"


def matters(**more: Any) -> Any:
    return run(
        "nonascii_matters",
        **{"names__nonascii": [HOME], "system__locale": LOCALE, "tf__import": FAILED} | more,
    )


def test_cured() -> None:
    finding = matters(names__ascii_import={"ok": True, "same_error": False, "log": ""})
    assert (finding.answer, finding.values["path"]) == ("cured-by-ascii", HOME["path"])
    assert finding.evidence[0].params["encoding"] == "cp936"


def test_not_the_cause() -> None:
    assert matters(names__ascii_import={"ok": False, "same_error": True, "log": ""}).answer == "same-error"
    assert matters(tf__import={"module": "tensorflow", "ok": True}).answer == "import-works"


def test_matters_unknown() -> None:
    assert matters(names__ascii_import={"ok": False, "same_error": False}).answer == "unknown"
    assert matters().reason == "names.ascii_import: not-recorded"
    skipped = Fact("names.ascii_import", "skipped", note="every path is ASCII")
    assert matters(names__ascii_import=skipped).reason == "names.ascii_import: skipped: every path is ASCII"
    assert run("nonascii_matters").reason == "tf.import: not-recorded"
