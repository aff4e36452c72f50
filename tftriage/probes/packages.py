"""Is the Python right, and are the packages whole, single, unobstructed and of versions that fit together?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tftriage.facts import Facts
from tftriage.loader import base
from tftriage.probes.base import UNKNOWN, Evidence, Finding, probe, unknown
from tftriage.slips import normal
from tftriage.tables import Build, Tables, parse, satisfies

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_TAG = re.compile(r"(?:\.|-)cp(?:ython-)?(\d)(\d+)")
_PYTHON_DLL = re.compile(r"^python(\d)(\d+)\.dll$", re.IGNORECASE)
_LIB = re.compile(r"/python(\d)\.(\d+)/(?:site|dist)-packages/")
_DISTRIBUTIONS = """
tensorflow tensorflow-gpu tensorflow-cpu tensorflow-intel tensorflow-rocm tensorflow-macos tensorflow-base
tf-nightly tf-nightly-gpu tf-nightly-cpu tf-nightly-intel intel-tensorflow
"""
DISTRIBUTIONS = frozenset(_DISTRIBUTIONS.split())


def _system(facts: Facts) -> str:
    platform = str((facts.value("target.interpreter") or {}).get("platform") or "")
    return "Linux" if platform.startswith("linux") else "Windows"


def _version(package: Mapping[str, Any]) -> str | None:
    """The version of TensorFlow that is installed: what the package says of itself, else its distribution."""
    listed = package.get("distributions") or [{}]
    version: str | None = package.get("version") or listed[0].get("version")
    return version


def _no_version(facts: Facts, **values: str) -> Finding:
    """Unknown, because nothing says which TensorFlow is installed."""
    if not facts.ok("tf.package"):
        return unknown(facts, "tf.package", **values)
    return Finding(UNKNOWN, (Evidence("tensorflow.no-version"),), values, "tf.package: its version is not recorded")


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" (+{len(names) - 3})" if len(names) > 3 else "")


def _rows(version: str, system: str, tables: Tables) -> list[Build]:
    """The row with CUDA of a version, else any row of that version or its series (CPU builds too)."""
    row = tables.build(version, system)
    parsed = parse(version)
    if row or parsed is None:
        return [row] if row else []
    series = f"{parsed.major}.{parsed.minor}"
    return [b for b in tables.builds if b.system == system and b.version in (version, series)]


@probe(
    "python_fits",
    answers=("fits", "python-32bit", "python-unsupported", "other-pythons-file"),
    needs=("target.interpreter", "tf.package", "dlls.tree"),
    fills=("python_version", "tf_version", "supported", "file"),
)
def python_fits(facts: Facts, tables: Tables) -> Finding:
    """Whether this interpreter can load this TensorFlow at all: bits, version, and whose files these are.

    Sample of ``target.interpreter``: ``{"executable": "C:\\\\Python38-32\\\\python.exe", "version": [3, 8,
    10], "bits": 32, …}``; a ``_message.cp38-win_amd64.pyd`` in the packages of Python 3.11 is another
    Python's file.
    """
    python = facts.value("target.interpreter")
    if python is None:
        return unknown(facts, "target.interpreter")
    numbers = python["version"]
    short = f"{numbers[0]}.{numbers[1]}"
    package: Mapping[str, Any] = facts.value("tf.package") or {}
    version = _version(package)
    values = {"python_version": ".".join(map(str, numbers)), "tf_version": version or "?"}
    if python.get("bits") == 32:
        return Finding("python-32bit", (Evidence("python.bits", {"bits": "32"}, "bad"),), values)
    foreign = _foreign(package, facts.value("dlls.tree") or {}, (numbers[0], numbers[1]))
    if foreign:
        line = Evidence("python.foreign-file", {"file": foreign[0], "theirs": foreign[1], "ours": short}, "bad")
        return Finding("other-pythons-file", (line,), {**values, "file": foreign[0]})
    if not version:
        return _no_version(facts, **values)
    rows = _rows(version, _system(facts), tables)
    if not rows:
        line = Evidence("python.no-row", {"tf_version": version})
        return Finding(UNKNOWN, (line,), values, f"builds: no row for TensorFlow {version}")
    known = {minor for row in rows for minor in row.pythons}
    supported = ", ".join(sorted(known, key=lambda text: [int(part) for part in text.split(".")]))
    values["supported"] = supported
    params = {"python": short, "tf_version": version, "supported": supported}
    if short not in known:
        return Finding("python-unsupported", (Evidence("python.unsupported", params, "bad"),), values)
    if python.get("bits") is None:
        reason = "target.interpreter: whether it is a 64-bit Python was not recorded"
        return Finding(UNKNOWN, (Evidence("python.fits", params, "ok"), Evidence("python.no-bits")), values, reason)
    return Finding("fits", (Evidence("python.fits", params, "ok"),), values)


def _foreign(package: Mapping[str, Any], tree: Mapping[str, Any], ours: tuple[int, int]) -> tuple[str, str] | None:
    """A native file that was built for another Python, and for which."""
    natives = [native["path"] for native in package.get("native") or ()]
    for path in natives:
        for pattern in (_TAG, _LIB):
            match = pattern.search(path if pattern is _LIB else base(path))
            if match and (int(match[1]), int(match[2])) != ours:
                return path, f"{match[1]}.{match[2]}"
    wanted = {path.lower() for path in natives}
    for path, header in (tree.get("files") or {}).items():
        for name in header.get("imports") or () if path.lower() in wanted else ():
            match = _PYTHON_DLL.match(name)
            if match and (int(match[1]), int(match[2])) != ours:
                return path, f"{match[1]}.{match[2]}"
    return None


@probe(
    "package_whole",
    answers=("whole", "missing", "altered"),
    needs=("tf.record", "tf.package"),
    fills=("files", "distribution"),
)
def package_whole(facts: Facts, tables: Tables) -> Finding:
    """Whether every file that the installer recorded is there and as it was.

    Sample of ``tf.record`` after a scanner took the library away: ``{"distribution": "tensorflow-gpu 2.1.0",
    "checked": 2946, "missing": ["tensorflow_core/python/_pywrap_tensorflow_internal.pyd"], "empty": [],
    "altered": [], "native_missing": ["tensorflow_core/python/_pywrap_tensorflow_internal.pyd"], "others":
    []}``.
    """
    record = facts.value("tf.record")
    if record is None:
        return unknown(facts, "tf.record")
    name = str(record["distribution"])
    native = record.get("native_missing") or []
    lost = [
        *native,
        *(f for f in (record.get("missing") or []) + (record.get("empty") or []) if f not in native),
    ]
    for other in record.get("others") or ():
        if not lost and other.get("missing"):
            name, lost = str(other["distribution"]), list(other["missing"])
    if lost:
        values = {"files": _few(lost), "distribution": name}
        line = Evidence("record.missing", {"count": str(len(lost)), **values}, "bad")
        return Finding("missing", (line,), values)
    altered = record.get("altered") or []
    if altered:
        values = {"files": _few(altered), "distribution": name}
        line = Evidence("record.altered", {"count": str(len(altered)), **values}, "bad")
        return Finding("altered", (line,), values)
    if not record.get("checked"):
        line = Evidence("record.nothing", {"distribution": name})
        return Finding(UNKNOWN, (line,), reason="tf.record: the record lists no file that could be checked")
    params = {"count": str(record["checked"]), "distribution": name}
    return Finding("whole", (Evidence("record.whole", params, "ok"),), {"distribution": name})


@probe(
    "antivirus_seen",
    answers=("detected", "other-product", "none"),
    needs=("security.antivirus", "tf.record"),
    fills=("product", "path"),
)
def antivirus_seen(facts: Facts, tables: Tables) -> Finding:
    """Whether a virus scanner took a file of ours, or one that keeps no open record could have.

    Sample of ``security.antivirus``: ``{"products": [{"name": "Windows Defender", "state": "on"}],
    "detections": [{"path":
    "file:_C:\\\\py37\\\\Lib\\\\site-packages\\\\tensorflow_core\\\\python\\\\_pywrap_tensorflow_internal.pyd",
    "threat": "Trojan:Win32/Wacatac.B!ml", "time": "2026-11-30T09:12:44", "action": "quarantine"}], …}``.
    """
    seen = facts.value("security.antivirus")
    if seen is None:
        return unknown(facts, "security.antivirus")
    record = facts.value("tf.record") or {}
    lost = [str(rel).lower().replace("/", "\\") for key in ("missing", "empty") for rel in record.get(key) or ()]
    for hit in seen.get("detections") or ():
        path = str(hit.get("path") or "")
        low = path.lower().replace("/", "\\")
        if any(low.endswith(rel) for rel in lost) or re.search(r"tensorflow|site-packages", low):
            product = str(hit.get("product") or "Microsoft Defender")
            params = {"path": path, "threat": str(hit.get("threat") or "?"), "product": product}
            values = {"product": product, "path": path}
            return Finding("detected", (Evidence("antivirus.detected", params, "bad"),), values)
    on = [str(one["name"]) for one in seen.get("products") or () if str(one.get("state")).lower() != "off"]
    foreign = [name for name in on if "defender" not in name.lower()]
    if foreign:
        values = {"product": ", ".join(foreign)}
        return Finding("other-product", (Evidence("antivirus.other", values),), values)
    return Finding("none", (Evidence("antivirus.none", {"products": ", ".join(on) or "-"}, "ok"),))


@probe(
    "one_tensorflow",
    answers=("one", "several", "leftovers", "cpu-build-over-gpu", "none"),
    needs=("tf.package", "target.packages"),
    fills=("distributions",),
)
def one_tensorflow(facts: Facts, tables: Tables) -> Finding:
    """Whether exactly one TensorFlow is installed, or several share one folder.

    Sample of ``tf.package`` (the CPU build went over the GPU build; pip said nothing): ``{"distributions":
    [{"name": "tensorflow", "version": "1.13.1", …}, {"name": "tensorflow-gpu", "version": "1.13.1", …}],
    "build_info": {"is_cuda_build": false}, …}``.
    """
    package = facts.value("tf.package")
    if package is None:
        absent = "tf.package" in facts and facts["tf.package"].status == "absent"
        listed = {normal(name) for name in facts.value("target.packages") or {}} & DISTRIBUTIONS
        if absent and facts.ok("target.packages") and not listed:
            return Finding("none", (Evidence("tensorflow.none", {}, "bad"),))
        return unknown(facts, "tf.package")
    if package.get("distributions") is None and package.get("version"):
        reason = "tf.package: which package brought it was not recorded"
        return Finding(UNKNOWN, (Evidence("tensorflow.no-distribution"),), {}, reason)
    found = [d for d in package.get("distributions") or () if normal(d["name"]) in DISTRIBUTIONS]
    names = ", ".join(f"{d['name']} {d['version']}" for d in found)
    values = {"distributions": names or "-"}
    if not found:
        if not package.get("leftovers") and not package.get("folder"):
            return Finding("none", (Evidence("tensorflow.none", {}, "bad"),), values)
        line = Evidence("tensorflow.leftovers", {"folder": str(package.get("folder") or "tensorflow")}, "bad")
        return Finding("leftovers", (line,), values)
    if len(_contents(found, facts.value("target.packages") or {})) > 1:
        info = package.get("build_info") or {}
        cuda = info.get("is_cuda_build", bool(info.get("cuda_version")))  # 1.12 and 1.13 name no CUDA version
        if {"gpu" in d["name"] for d in found} == {True, False} and info and not cuda:
            return Finding("cpu-build-over-gpu", (Evidence("tensorflow.cpu-over-gpu", values, "bad"),), values)
        return Finding("several", (Evidence("tensorflow.several", values, "bad"),), values)
    if package.get("leftovers") or not package.get("module_file"):
        folder = str(package.get("folder") or found[0].get("folder") or "tensorflow")
        return Finding("leftovers", (Evidence("tensorflow.leftovers", {"folder": folder}, "bad"),), values)
    return Finding("one", (Evidence("tensorflow.one", values, "ok"),), values)


def _contents(found: Sequence[Mapping[str, Any]], installed: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The distributions that bring files of their own.

    On Windows ``tensorflow`` may be a shell around tensorflow-intel; conda's packages of one version are
    parts of one TensorFlow.
    """
    names = {normal(d["name"]): d for d in found}
    shells = {"tensorflow-intel", "tensorflow-base", "tf-nightly-intel"}
    inner = [d for name, d in names.items() if name in shells]
    versions = {d["version"] for d in found}
    if len(versions) == 1 and (inner or all((installed.get(name) or {}).get("installer") == "conda" for name in names)):
        return list(found[:1])
    return list(found)


# What an error says about which dependency breaks the import, and in which direction.
_NAMED = (
    ("protobuf", "protobuf-too-new", re.compile(r"Descriptors cannot (?:not )?be created directly")),
    ("protobuf", "protobuf-too-old", re.compile(
        r"runtime_version' from 'google\.protobuf'|mismatched Protobuf Gencode")),
    ("numpy", "numpy-too-new", re.compile(
        r"_ARRAY_API not found|compiled using NumPy 1\.x"
        r"|numpy\.core\.(?:umath|_?multiarray\w*) failed to import|module 'numpy' has no attribute"
        r"|Unable to convert function return value to a Python type"
        r"|Cannot convert a symbolic Tensor .* to a numpy array")),
    ("h5py", "h5py-too-new", re.compile(r"'str' object has no attribute 'decode'")),
    ("keras", "keras-mismatch", re.compile(
        r"from 'keras[.\w]*'|module 'keras|tensorflow_estimator|from 'tensorflow\.keras")),
)  # fmt: skip
_KERAS = (
    "keras",
    "tensorflow-estimator",
    "tensorboard",
    "tf-keras",
    "keras-applications",
    "keras-preprocessing",
)


@probe(
    "dependencies_fit",
    answers=(
        "fit", "protobuf-too-new", "protobuf-too-old", "numpy-too-new", "h5py-too-new", "keras-mismatch",
        "several",
    ),
    needs=("target.packages", "tf.package", "tf.import", "target.interpreter", "paste.text"),
    fills=("tf_version", "wrong", "pins"),
)  # fmt: skip
def dependencies_fit(facts: Facts, tables: Tables) -> Finding:
    """Whether the packages beside TensorFlow have versions that this TensorFlow works with.

    Failures are stacked, so all wrong ones are listed and the pins come as a set; the answer is the one that
    the observed error names.

    Sample of ``target.packages`` after ``pip install tensorflow-gpu==2.1.0`` without pins: ``{"protobuf":
    {"version": "4.24.4", …}, "numpy": {"version": "1.21.6", …}, "h5py": {"version": "3.8.0", …}}``; the
    import ends with ``TypeError: Descriptors cannot not be created directly.``
    """
    package = facts.value("tf.package")
    installed: Mapping[str, Any] | None = facts.value("target.packages")
    python = facts.value("target.interpreter")
    version = _version(package) if package else None
    if not version:
        return _no_version(facts)
    if installed is None:
        return unknown(facts, "target.packages")
    values = {"tf_version": version}
    tried = facts.value("tf.import") or {}
    text = "\n".join(str(tried.get(key) or "") for key in ("error", "traceback", "log"))
    said = [pair for *pair, pattern in _NAMED if not tried.get("ok") and pattern.search(text)]
    said += [pair for *pair, pattern in _NAMED if pattern.search(str((facts.value("paste.text") or {}).get("text")))]
    rules = tables.pin_set(version, "{}.{}".format(*python["version"][:2])) if python else None
    if rules is None:
        for name, answer in said:
            params = {"package": f"{name} {(installed.get(name) or {}).get('version') or '?'}"}
            return Finding(answer, (Evidence("fit.by-error", params, "bad"),), {**values, "wrong": params["package"]})
        if python is None:
            return unknown(facts, "target.interpreter", **values)
        line = Evidence("fit.no-row", {"tf_version": version})
        return Finding(UNKNOWN, (line,), values, f"pins: no row for TensorFlow {version} on this Python")
    values["pins"] = " ".join(f"{name}=={pin}" for name, pin in rules.pins.items())
    wrong = _wrong(rules.rules, installed)
    if not wrong:
        return Finding("fit", (Evidence("fit.all", {"tf_version": version}, "ok"),), values)
    values["wrong"] = ", ".join(shown for shown, _ in wrong.values())
    lines = tuple(
        Evidence("fit.wrong", {"package": shown, "tf_version": version}, "bad") for shown, _ in wrong.values()
    )
    answers = {answer for _, answer in wrong.values()}
    named = next((answer for _, answer in said if answer in answers), None)
    return Finding(named or (answers.pop() if len(answers) == 1 else "several"), lines, values)


def _wrong(rules: Sequence[str], installed: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The installed packages that break a rule: how to show each, and its answer if it were the only one."""
    from packaging.requirements import InvalidRequirement, Requirement  # a tenth of every start, for one probe

    wrong: dict[str, tuple[str, str]] = {}
    for rule in rules:
        try:
            asked = Requirement(rule)
        except InvalidRequirement:
            continue
        name = normal(asked.name)
        version = (installed.get(name) or {}).get("version")
        if satisfies(version, str(asked.specifier)) is False:
            shown = f"{name} {version} (needs {asked.specifier})"
            wrong[name] = (shown, _category(name, str(version), asked))
    return wrong


def _category(name: str, version: str, asked: Requirement) -> str:
    floors = [s for s in asked.specifier if s.operator in (">=", ">", "~=", "==") and not s.version.endswith("*")]
    have = parse(version)
    low = any((floor := parse(s.version)) is not None and have is not None and have < floor for s in floors)
    if name == "protobuf":
        return "protobuf-too-old" if low else "protobuf-too-new"
    if name in ("numpy", "h5py") and not low:
        return f"{name}-too-new"
    return "keras-mismatch" if name in _KERAS else "several"
