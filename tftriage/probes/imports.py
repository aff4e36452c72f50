"""Why does the native module not load? ``loader_code`` names the loader's code, ``import_chain`` the file.

The message never names the missing library; the import tables do.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from tftriage import loader
from tftriage.facts import Facts
from tftriage.probes.base import UNKNOWN, Evidence, Finding, probe, unknown
from tftriage.probes.libraries import Lack, lack, lack_evidence, lack_values, sort_out
from tftriage.tables import LoaderError, Tables

CODES = ("126", "127", "182", "193", "1114", "5", "225", "1455")
# Codes that say the same elsewhere: NTSTATUS values and the delay-load helper's exceptions, signed and
# unsigned. An illegal instruction while a DLL starts (no AVX) is a failure of its initialisation.
_ALIASES = {
    0xC0000135: "126", 0xC06D007E: "126", 0xC0000139: "127", 0xC06D007F: "127", 0xC000007B: "193",
    0xC0000142: "1114", 0xC000001D: "1114",
}  # fmt: skip
_NUMBER = re.compile(
    r"(?:WinError\s*|error\s*code\s*[:：]?\s*|failed\s*with\s*error\s*[:：]?\s*|错误代码\s*[:：]?\s*)"
    r"(0x[0-9a-f]+|-?\d+)",
    re.IGNORECASE,
)
# ctypes and TensorFlow's own check say 126 in words of their own, in English everywhere.
_NO_MODULE = re.compile(
    r"Could not find (?:module|the DLL\(s\))?\s*'(?P<library>[^']+\.(?:dll|pyd)[^']*)'", re.IGNORECASE
)
_LIBRARY = re.compile(r"Could not (?:load library|locate)\s+'?(?P<library>[\w.\-+]+\.(?:dll|so[\d.]*))", re.IGNORECASE)
_SYMBOL = re.compile(r"(?P<library>[^\s:'\"]*):?\s*undefined symbol:\s*(?P<symbol>[^\s,;]*)")
_ELF_CLASS = re.compile(r"(?P<library>[^\s:'\"]+): (?:wrong ELF class|invalid ELF header|file too short)")
_SHARED = re.compile(r"(?P<library>[^\s:'\"]+): cannot open shared object file")
_ELF = (("undefined-symbol", _SYMBOL), ("wrong-elf-class", _ELF_CLASS), ("so-missing", _SHARED))
_MODULE = re.compile(r"while\s+importing\s+([\w.]+)")
_LOADED = re.compile(r"from\s+[\w.]+\s+import\s+(\w+)|load_module\(\s*'(\w+)'|import\s+(\w+)")
_ESCAPED = re.compile(r"\\{1,2}(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")
# (how the system wrote it, how somebody read it): what wrong code pages make of a message.
_MISREAD = (
    ("gbk", "latin-1"), ("gbk", "cp1252"), ("gbk", "cp437"), ("gbk", "utf-8"), ("utf-8", "latin-1"),
    ("utf-8", "cp1252"), ("utf-8", "gbk"), ("big5", "latin-1"), ("big5", "cp1252"), ("big5", "gbk"),
    ("cp932", "latin-1"), ("cp932", "cp1252"), ("cp949", "latin-1"), ("cp949", "cp1252"),
    ("cp1251", "latin-1"), ("cp1251", "cp1252"), ("cp1251", "cp866"), ("cp1252", "utf-8"),
    ("cp1252", "cp850"), ("cp1252", "cp437"), ("cp1252", "gbk"),
)  # fmt: skip


@probe(
    "loader_code",
    answers=(*CODES, "undefined-symbol", "wrong-elf-class", "so-missing", "none"),
    needs=("paste.text", "tf.import", "tf.libraries"),
    fills=("code", "module", "library"),
)
def loader_code(facts: Facts, tables: Tables) -> Finding:
    """The system loader's code: by number where there is one, else by its text in any language or damage.

    Our own import counts more than the pasted text, and both more than the libraries tried by name.

    Samples: ``Could not load library cudnn_cnn_infer64_8.dll. Error code 127``,
    ``ImportError: libcublas.so.10.0: wrong ELF class: ELFCLASS32`` and (126)
    ``ImportError: DLL load failed while importing _pywrap_tensorflow_internal: 找不到指定的模块。``
    """
    tried = facts.value("tf.import")
    texts: list[tuple[str, str]] = []
    if tried is not None and not tried.get("ok"):
        texts.append(("tf.import", f"{tried.get('error') or ''}\n{tried.get('traceback') or ''}"))
    texts.append(("paste.text", str((facts.value("paste.text") or {}).get("text") or "")))
    for source, text in texts:
        found = _read(text, tables)
        if found:
            answer, values = found
            return Finding(answer, (Evidence(f"code.{source}", {"code": values["code"]}, "bad"),), values)
    for one in (facts.value("tf.libraries") or {}).get("opened") or ():
        code = str(one.get("code") or "")
        if code in CODES and loader.library(one["name"]).kind != "optional":
            values = {"code": code, "library": one["name"]}
            return Finding(code, (Evidence("code.library", values, "bad"),), values)
    if not any(facts.ok(name) for name in ("paste.text", "tf.import", "tf.libraries")):
        return unknown(facts, "tf.import")
    return Finding("none", (Evidence("code.none", {}, "info"),))


def _read(text: str, tables: Tables) -> tuple[str, dict[str, str]] | None:
    """The code that a text shows, with the placeholders it fills."""
    for match in _NUMBER.finditer(text):
        number = int(match[1], 0) & 0xFFFFFFFF
        code = str(number) if str(number) in CODES else _ALIASES.get(number)
        if code:
            return code, {"code": match[1], **_names(text, match.start())}
    told = _NO_MODULE.search(text)
    if told:
        return "126", {"code": "126", **_names(text, told.start()), "library": told["library"]}
    for answer, pattern in _ELF:
        for match in pattern.finditer(text):
            if loader.library(match["library"]).kind != "optional":
                return answer, {"code": answer, **_names(text, match.start()), "library": match["library"]}
    code = _by_text(text, tables.loader_errors)
    return (code, {"code": code, **_names(text, len(text))}) if code else None


def _names(text: str, at: int) -> dict[str, str]:
    """Module and library named around the message; before Python 3.8 only the traceback has the module."""
    module = _MODULE.search(text)
    earlier = [next(filter(None, found)) for found in _LOADED.findall(text[:at])]
    library = _LIBRARY.search(text) or _NO_MODULE.search(text)
    names = {"module": module[1] if module else earlier[-1] if earlier else ""}
    return {key: name for key, name in {**names, "library": library["library"] if library else ""}.items() if name}


def _by_text(text: str, rows: Sequence[LoaderError]) -> str | None:
    """The code whose system text, in any language, comes first; the longest text where two begin together."""
    if not text.strip():
        return None
    squashed = _squash(html.unescape(text))
    readings = {squashed, _squash(_unescape(text))}
    best: tuple[int, int, str] | None = None
    for row in rows:
        for phrase in {phrase for phrases in row.texts.values() for phrase in phrases}:
            for needle in _forms(phrase):
                for reading in readings:
                    at = _position(needle, reading)
                    if at >= 0 and (best is None or (at, -len(needle)) < best[:2]):
                        best = (at, -len(needle), str(row.code))
    return best[2] if best else None


def _position(needle: str, reading: str) -> int:
    """Where a squashed phrase stands, or -1.

    A short English one counts only as a whole message (``…: Module not found.``), for "ModuleNotFoundError" is
    another thing.
    """
    at = reading.find(needle)
    while at >= 0:
        if len(needle) >= 20 or not needle.isascii():
            return at
        before, after = reading[at - 1 : at], reading[at + len(needle) :][:1]
        if before in (":", "]") and after in ("", ".", ":", "%"):
            return at
        at = reading.find(needle, at + 1)
    return -1


def _squash(text: str) -> str:
    """Without case, white space (consoles break lines anywhere), curly quotes, runs of lost characters."""
    return re.sub("\ufffd+", "\ufffd", re.sub(r"\s+", "", text.replace("’", "'")).casefold())


def _unescape(text: str) -> str:
    r"""``\u627e`` and ``\xd5\xd2``, also with doubled backslashes, as the characters they stand for."""
    return _ESCAPED.sub(lambda match: chr(int(match[1] or match[2], 16)), text)


@lru_cache(maxsize=512)
def _forms(phrase: str) -> tuple[str, ...]:
    """A system text as it may stand in a paste: itself and what wrong code pages make of it, squashed.

    Of a text with ``%1`` only the longest piece counts, because some programs fill in the name.
    """
    piece = max(phrase.split("%1"), key=len).strip()
    bare = piece.strip(".。、,;'\" ")
    forms = {_squash(bare): None}
    for wrote, read in _MISREAD:
        for text in (bare, piece):  # a wrong code page may swallow the last letter together with the full stop
            try:
                damaged = text.encode(wrote).decode(read, errors="replace")
            except UnicodeEncodeError:
                continue
            form = _squash(damaged).strip("\ufffd")
            kept = form.replace("\ufffd", "")
            if damaged != text and len(form) > 4 and len(kept) > 2:  # fewer letters would match by chance
                forms[form] = None
    return tuple(forms)


@probe(
    "import_chain",
    answers=(
        "complete", "driver-missing", "cudnn-renamed", "cudnn-missing", "cuda-elsewhere", "cudnn-elsewhere",
        "cuda-other-version", "cuda-missing", "vc-runtime-missing", "wrong-machine", "other-missing",
    ),
    needs=("dlls.tree", "cuda.toolkits", "tf.package"),
    fills=("dll", "importer", "near", "folder", "folders", "missing", "found_version", "wanted_version"),
)  # fmt: skip
def import_chain(facts: Facts, tables: Tables) -> Finding:
    """Which library the native module really misses, by the loader model over its import table.

    Sample of ``dlls.tree`` (TensorFlow 1.13.1 on Python 3.7, cuDNN renamed as a popular article advises)::

        {"roots": ["C:\\\\py37\\\\Lib\\\\site-packages\\\\…\\\\python\\\\_pywrap_tensorflow_internal.pyd"],
         "files": {"…\\\\_pywrap_tensorflow_internal.pyd": {"machine": "x64", "imports": ["cublas64_100.dll",
                   "cudnn64_7.dll", "nvcuda.dll", "MSVCP140.dll", "VCRUNTIME140.dll", …]}},
         "near": {"cudnn64_7.dll": ["C:\\\\CUDA\\\\v10.0\\\\bin\\\\cudnn64_7_v741.dll"]}, …}
    """
    tree: Mapping[str, Any] | None = facts.value("dlls.tree")
    if tree is None:
        return unknown(facts, "dlls.tree")
    resolution = loader.resolve(tree)
    roots = [root for root in resolution.places if loader.folder(root)]
    if not roots:
        return Finding(UNKNOWN, (Evidence("chain.no-root"),), reason="dlls.tree: no native module was recorded")
    entries = [entry for root in roots for entry in resolution.of(root)]
    lines = [Evidence("chain.root", {"file": loader.base(roots[0]), "count": str(len(entries))})]
    lines += _side_notes(entries, resolution)
    lacking = [entry for entry in resolution.failed if entry in entries and entry.failure == "export-missing"]
    failed = [entry for entry in resolution.failed if entry in entries and entry not in lacking]
    lines += _lacking_evidence(lacking)  # error 127: ``export_owner`` says whose fault that is
    if not failed:
        return Finding("complete", (*lines, Evidence("chain.complete", {"count": str(len(entries))}, "ok")))
    if resolution.unlisted:
        folder = resolution.unlisted[0]
        lines.append(Evidence("chain.unlisted", {"folder": folder}))
        return Finding(UNKNOWN, tuple(lines), reason=f"dlls.tree: nobody looked into {folder}")
    if resolution.incomplete:
        reason = "dlls.tree: looking into the folders took too long and was cut short"
        return Finding(UNKNOWN, (*lines, Evidence("chain.incomplete")), reason=reason)
    broken = [entry for entry in failed if entry.failure != "absent"]
    lacks = [lack(e.name, e.importer, facts, e.unsearched) for e in _once(failed) if e.failure == "absent"]
    lines += lack_evidence(lacks) + _broken_evidence(broken)
    missing = {"missing": ", ".join(one.name for one in lacks)} if lacks else {}
    answer, chosen, guilty = _judge(lacks, broken)
    if guilty is not None:
        values = {"dll": guilty.path or guilty.name, "importer": guilty.importer or guilty.name, **missing}
        reason = f"dlls.tree: {guilty.path} cannot be read" if answer == UNKNOWN else ""
        return Finding(answer, tuple(lines), values, reason)
    return Finding(answer, tuple(lines), lack_values(lacks, chosen, facts, tables))


def _once(entries: Iterable[loader.Entry]) -> list[loader.Entry]:
    """One entry a name: several roots may miss the same library."""
    first: dict[str, loader.Entry] = {}
    for entry in entries:
        first.setdefault(entry.name.lower(), entry)
    return list(first.values())


def _judge(lacks: Sequence[Lack], broken: Sequence[loader.Entry]) -> tuple[str, list[Lack], loader.Entry | None]:
    """Which of several faults to name first: the driver, files of the wrong kind, then what is not there."""
    driver = [one for one in lacks if one.kind == "driver"]
    if driver:
        return "driver-missing", driver, None
    wrong = [entry for entry in broken if entry.failure != "unreadable"]
    if wrong:
        return "wrong-machine", [], wrong[0]
    answer, chosen = sort_out(lacks)
    if answer:
        return answer, chosen, None
    runtime = [one for one in lacks if one.kind == "vc-runtime"]
    if runtime:
        return "vc-runtime-missing", runtime, None
    if lacks:
        return "other-missing", list(lacks), None
    return UNKNOWN, [], broken[0]


def _lacking_evidence(lacking: Iterable[loader.Entry]) -> list[Evidence]:
    return [
        Evidence("export.lacks", {"dll": e.path or e.name, "importer": e.lacked_by, "symbol": e.symbols[0],
                                  "count": str(len(e.symbols))}, "bad")
        for e in lacking
    ]  # fmt: skip


def _broken_evidence(broken: Iterable[loader.Entry]) -> list[Evidence]:
    keys = {
        "wrong-machine": "dll.wrong-machine",
        "not-a-pe": "dll.not-a-library",
        "unreadable": "dll.unreadable",
    }
    return [Evidence(keys[e.failure or "unreadable"], {"path": e.path or e.name}, "bad") for e in broken]


def _side_notes(entries: Sequence[loader.Entry], resolution: loader.Resolution) -> list[Evidence]:
    """What does not decide but explains: hidden copies, useless PATH entries, absent optional libraries."""
    lines = [
        Evidence("chain.shadowed", {"dll": e.name, "path": e.path or "", "other": e.shadowed[0].path})
        for e in entries
        if e.shadowed and loader.library(e.name).kind in ("cuda", "cudnn", "vc-runtime", "driver")
    ]
    lines += [
        Evidence(f"chain.path-{item.reason}", {"entry": item.entry})
        for item in resolution.ignored
        if item.reason in ("quoted", "unexpanded")
    ]
    late = sorted({e.name for e in entries if e.optional and e.failure == "absent"})
    return lines + ([Evidence("chain.optional", {"names": ", ".join(late)})] if late else [])
