"""Letters outside ASCII in names and folders: are there any, and do they matter here."""

from __future__ import annotations

from tftriage.facts import Facts
from tftriage.probes.base import Evidence, Finding, probe, unknown
from tftriage.tables import Tables


def _nonascii(facts: Facts) -> list[dict[str, object]]:
    """The places with such letters; those that the code page cannot even spell come first."""
    places = [place for place in facts.value("names.nonascii") or [] if not str(place.get("path")).isascii()]
    return sorted(places, key=lambda place: place.get("ansi_ok") is not False)


@probe(
    "nonascii_names",
    answers=("ascii", "non-ascii"),
    needs=("names.nonascii",),
    fills=("what", "path"),
)
def nonascii_names(facts: Facts, tables: Tables) -> Finding:
    """Whether a name on the way (user, TEMP, environment, project, CUDA folder) has letters outside ASCII.

    Sample::

        {"what": "home", "path": "C:\\\\Users\\\\张伟", "ansi_ok": true}
    """
    if not facts.ok("names.nonascii"):
        return unknown(facts, "names.nonascii")
    places = _nonascii(facts)
    if not places:
        return Finding("ascii", (Evidence("nonascii_names.ascii", {}, "ok"),))
    shown = []
    for place in places:
        params = {"what": str(place.get("what")), "path": str(place.get("path"))}
        known = "nonascii_names.outside-codepage" if place.get("ansi_ok") is False else "nonascii_names.found"
        shown.append(Evidence(known, params, "bad" if place.get("ansi_ok") is False else "info"))
    kinds = ", ".join(dict.fromkeys(str(place.get("what")) for place in places))
    return Finding("non-ascii", tuple(shown), {"what": kinds, "path": str(places[0].get("path"))})


@probe(
    "nonascii_matters",
    answers=("cured-by-ascii", "same-error", "import-works"),
    needs=("tf.import", "names.ascii_import", "system.locale", "names.nonascii"),
    fills=("path",),
)
def nonascii_matters(facts: Facts, tables: Tables) -> Finding:
    """By experiment: does the same import work from an ASCII path and with a UTF-8 locale?

    A name outside ASCII is not a cause by itself: TensorFlow opens its libraries with wide paths.

    Sample (LC_ALL=C, environment below a folder named 张伟; cured by LC_ALL=C.UTF-8)::

        TypeError: Descriptors should not be created directly, but only retrieved from their parent.
    """
    tried = facts.value("tf.import")
    if not isinstance(tried, dict):
        return unknown(facts, "tf.import")
    places = _nonascii(facts)
    values = {"path": str(places[0].get("path"))} if places else {}
    locale = facts.value("system.locale") or {}
    encoding = str(locale.get("encoding") or locale.get("acp") or "?")
    if tried.get("ok"):
        return Finding("import-works", (Evidence("nonascii_matters.works", values, "ok"),), values)
    again = facts.value("names.ascii_import")
    if not isinstance(again, dict):
        return unknown(facts, "names.ascii_import", **values)
    if again.get("ok"):
        shown = Evidence("nonascii_matters.cured", {**values, "encoding": encoding}, "bad")
        return Finding("cured-by-ascii", (shown,), values)
    if again.get("same_error"):
        return Finding("same-error", (Evidence("nonascii_matters.same", values, "ok"),), values)
    reason = "names.ascii_import: from an ASCII path the import fails with another error"
    return Finding("unknown", (Evidence("nonascii_matters.another"),), values, reason)
