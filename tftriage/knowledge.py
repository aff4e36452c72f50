"""The knowledge base: read, compiled, frozen.

Authors write YAML under ``knowledge/``. The wheel carries it compiled to one JSON (see ``hatch_build.py``);
a checkout compiles into the user's cache, keyed by content, because parsing the YAML would be half of the
start-up. Nothing here looks at the machine.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, Literal

import msgspec

from tftriage.symptoms import Symptom, Text
from tftriage.tables import Tables

Verdict = Literal["fault", "harmless", "not-tensorflow", "not-an-installation-fault", "healthy"]
LANGUAGES = ("en", "zh")
COMPILED = Path(__file__).with_name("_knowledge.json")
CHECKOUT = Path(__file__).resolve().parent.parent / "knowledge"
PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
OPTIONAL = re.compile(r"\[\[(.*?)\]\]", re.S)  # [[: {files}]] is left out where no probe on the way filled {files}


class KnowledgeError(Exception):
    """The knowledge base cannot be read; the message names the file and the field."""


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why we think so: measured (repeatable), documented (vendor page, source file) or reported (public thread)."""

    kind: Literal["measured", "documented", "reported", "tested", "derived"]
    ref: str


class Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="kebab"):
    """One question of a tree. ``probe`` answers it, or (``None``) the person.

    ``likely`` are the causes that mostly stand behind it when nothing could be seen, the commonest first;
    ``sources`` say why we think so.
    """

    ask: Text
    why: Text
    by_hand: Text
    probe: str | None = None
    choices: dict[str, Text] = {}
    answers: dict[str, str] = {}
    likely: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()


class Diagnosis(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A leaf: one cause. ``cause`` may hold placeholders that probes on the way fill."""

    id: str
    title: Text
    cause: Text
    explanation: Text
    hand: Text | None = None
    fixes: tuple[str, ...] = ()
    myths: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    verdict: Verdict = "fault"


class FixWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a person reads about a fix; the code is in ``tftriage.fixes``."""

    id: str
    title: Text
    what: Text
    undo: Text
    risk: Literal["safe", "moderate"]
    needs: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()


class Myth(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Advice found in the wild that breaks machines, with what refutes it."""

    id: str
    claim: Text
    truth: Text
    sources: tuple[Source, ...] = ()


class Knowledge(msgspec.Struct, frozen=True, kw_only=True):
    """Everything, frozen. ``nodes`` are keyed ``tree/node``. ``digest`` identifies the content."""

    symptoms: tuple[Symptom, ...]
    nodes: dict[str, Node]
    diagnoses: dict[str, Diagnosis]
    fixes: dict[str, FixWords]
    myths: dict[str, Myth]
    messages: dict[str, Text]
    evidence: dict[str, Text]
    tables: Tables
    digest: str = ""

    def symptom(self, symptom_id: str) -> Symptom:
        """The symptom of that id. ``KeyError`` when there is none."""
        return next((s for s in self.symptoms if s.id == symptom_id), None) or _missing(symptom_id)

    def say(self, key: str, lang: str, **params: object) -> str:
        """One of the interface's own sentences."""
        return fill(self.messages[key], lang, {name: str(value) for name, value in params.items()})


def _missing(key: str) -> Any:
    raise KeyError(key)


def fill(text: Text, lang: str, params: dict[str, str]) -> str:
    """A text in one language with its placeholders filled; one that nothing filled shows as ``?``.

    A part in double brackets, ``[[: {files}]]``, is left out when its placeholders are not filled.

    No ``str.format``: values come from the machine or from a case and must stay plain text.
    """

    def optional(part: re.Match[str]) -> str:
        return part.group(1) if all(params.get(name) for name in PLACEHOLDER.findall(part.group(1))) else ""

    return PLACEHOLDER.sub(lambda m: params.get(m.group(1), "?"), OPTIONAL.sub(optional, text[lang]))


# --- compile -----------------------------------------------------------------------------------------------


def load(folder: Path | None = None) -> Knowledge:
    """The knowledge base: the wheel's JSON, else the checkout's YAML (compiled into the cache when it changed).

    Raises ``KnowledgeError`` when a file cannot be read or does not fit the schema.
    """
    if folder is None and COMPILED.exists():
        return decode(COMPILED.read_bytes())
    folder = folder or CHECKOUT
    if not folder.is_dir():
        raise KnowledgeError(f"no knowledge base at {folder}")
    digest = digest_of(folder)
    cached = _cache_file(digest)
    try:
        return decode(cached.read_bytes())
    except (OSError, KnowledgeError):
        pass
    data = compile_folder(folder, digest)
    knowledge = decode(data)
    try:  # a read-only or full cache only costs time
        cached.parent.mkdir(parents=True, exist_ok=True)
        partial = cached.with_suffix(".part")
        partial.write_bytes(data)
        partial.replace(cached)
    except OSError:
        pass
    return knowledge


def decode(data: bytes) -> Knowledge:
    """Typed values from compiled JSON; ``KnowledgeError`` names the field that does not fit."""
    try:
        return msgspec.json.decode(data, type=Knowledge)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise KnowledgeError(str(error)) from error


def digest_of(folder: Path) -> str:
    """A digest of every file's name and content, so that an edited checkout is compiled again."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.yaml")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def compile_folder(folder: Path, digest: str | None = None) -> bytes:
    """All YAML files of ``knowledge/`` as one JSON document."""
    many = {
        kind: {path.stem: read_yaml(path) for path in sorted((folder / kind).glob("*.yaml"))}
        for kind in ("symptoms", "trees", "diagnoses", "fixes", "myths", "tables", "evidence", "messages")
    }
    tables: dict[str, Any] = {}
    for stem, table in many["tables"].items():
        tables.update({stem: table} if isinstance(table, list) else table)
    document = {
        "symptoms": list(many["symptoms"].values()),
        "nodes": {f"{tree}/{name}": node for tree, nodes in many["trees"].items() for name, node in nodes.items()},
        "diagnoses": _by_id(many["diagnoses"]),
        "fixes": _by_id(many["fixes"]),
        "myths": _by_id(many["myths"]),
        "messages": _merge(many["messages"]),
        "evidence": _merge(many["evidence"]),
        "tables": tables,
        "digest": digest or digest_of(folder),
    }
    return msgspec.json.encode(document)


def read_yaml(path: Path) -> Any:
    """One YAML file; ``KnowledgeError`` with its name and line when it is not well formed."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Refuses a key that stands twice: YAML would take the second and say nothing."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
            twice = {str(key) for key in keys if keys.count(key) > 1}
            if twice:
                raise yaml.YAMLError(f"twice: {', '.join(sorted(twice))}{node.start_mark}")
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise KnowledgeError(f"{path.name}: {error}") from error


def _by_id(files: dict[str, Any]) -> dict[str, Any]:
    for stem, content in files.items():
        if content.get("id") != stem:
            raise KnowledgeError(f"{stem}.yaml: its id is {content.get('id')!r}")
    return files


def _merge(files: dict[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for stem, content in files.items():
        twice = merged.keys() & content.keys()
        if twice:
            raise KnowledgeError(f"{stem}.yaml: {', '.join(sorted(twice))} stands in another file already")
        merged.update(content)
    return merged


def _cache_file(digest: str) -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("tftriage") / f"knowledge-{digest}.json"
