"""python_fits, package_whole, antivirus_seen, one_tensorflow, shadowed, dependencies_fit: facts for every answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.probes.evidence_words import run
from tftriage.facts import Fact
from tftriage.tables import Build, PinSet, Tables


def build(version: str, pythons: str, cuda: str | None = None, system: Any = "Windows") -> Build:
    return Build(package="x", version=version, system=system, pythons=tuple(pythons.split()), cuda=cuda)


def pins(version: str, pythons: str, rules: str, exact: dict[str, str]) -> PinSet:
    return PinSet(
        tensorflow=version, pythons=tuple(pythons.split()), rules=tuple(rules.split()), pins=exact, source="test",
        kind="measured",
    )  # fmt: skip


PINS21 = {"protobuf": "3.20.3", "numpy": "1.19.5", "h5py": "2.10.0"}
TABLES = Tables(
    builds=(
        build("2.1", "3.5 3.6 3.7", "10.1"),
        build("2.10", "3.10 3.7 3.8 3.9", "11.2"),
        build("2.12", "3.8 3.9", None),
        build("2.12", "3.10 3.11", None),
        build("2.15", "3.9", "12.2", "Linux"),
    ),
    pins=(
        pins("2.1.0", "3.7", "protobuf<3.21 numpy<1.20 h5py<3 ???", PINS21),
        pins("2.6.0", "3.8", "protobuf<3.21 numpy>=1.19,<1.20 keras==2.6.* scipy<1.8", {"keras": "2.6.0"}),
        pins("2.21", "3.11", "protobuf>=6.31.1,<8", {"protobuf": "6.33.0"}),
    ),
)


def python(version: str = "3.7.16", bits: int = 64, platform: str = "win32") -> dict[str, Any]:
    return {"version": [int(part) for part in version.split(".")], "bits": bits, "platform": platform}


def package(version: str | None = "2.1.0", **more: Any) -> dict[str, Any]:
    one = [{"name": "tensorflow-gpu", "version": version, "folder": "C:\\s"}]
    return {"version": version, "distributions": one, "module_file": "C:\\s\\tensorflow\\__init__.py", **more}


def check(name: str, **facts: Any) -> Any:
    return run(name, TABLES, **facts)


# ---------------------------------------------------------------- python_fits


def test_python_fits_and_does_not():
    fits = check("python_fits", target__interpreter=python(), tf__package=package())
    assert fits.answer == "fits"
    assert fits.values == {"python_version": "3.7.16", "tf_version": "2.1.0", "supported": "3.5, 3.6, 3.7"}
    old = check("python_fits", target__interpreter=python("3.8.1"), tf__package=package())
    assert old.answer == "python-unsupported"
    new = check("python_fits", target__interpreter=python("3.11.1"), tf__package=package("2.10.1"))
    assert (new.answer, new.values["supported"]) == ("python-unsupported", "3.7, 3.8, 3.9, 3.10")
    linux = python("3.9.1", platform="linux")
    assert check("python_fits", target__interpreter=linux, tf__package=package("2.15.1")).answer == "fits"


def test_a_version_without_cuda_takes_all_rows_of_its_series():
    for version in ("3.8.0", "3.11.0"):
        assert check("python_fits", target__interpreter=python(version), tf__package=package("2.12.1")).answer == "fits"


def test_32_bit_is_told_even_without_a_package():
    found = check("python_fits", target__interpreter=python("3.8.10", bits=32))
    assert (found.answer, found.values["tf_version"]) == ("python-32bit", "?")


@pytest.mark.parametrize(
    ("path", "tree"),
    [
        ("C:\\s\\google\\protobuf\\pyext\\_message.cp38-win_amd64.pyd", {}),
        ("/e/lib/python3.7/site-packages/h5py/h5.cpython-38-x86_64-linux-gnu.so", {}),
        ("/e/lib/python3.8/site-packages/tensorflow/_pywrap.so", {}),
        ("C:\\s\\_pywrap.pyd", {"files": {"c:\\S\\_pywrap.pyd": {"imports": ["KERNEL32.dll", "Python38.dll"]}}}),
    ],
)
def test_a_file_of_another_python(path, tree):
    natives = [{"path": "C:\\s\\_fine.cp37-win_amd64.pyd"}, {"path": path}]
    found = check("python_fits", target__interpreter=python(), tf__package=package(native=natives), dlls__tree=tree)
    assert found.answer == "other-pythons-file"
    assert found.values["file"].lower() == path.lower()
    assert found.evidence[0].params["theirs"] == "3.8"


def test_files_of_this_python_or_of_nobody_in_particular():
    tree = {"files": {"C:\\s\\_pywrap.pyd": {"imports": ["python37.dll", "a.dll"]},
                      "C:\\other.pyd": {"imports": ["python38.dll"]}, "C:\\none.dll": {"error": "empty"}}}  # fmt: skip
    natives = [{"path": "C:\\s\\_pywrap.pyd"}, {"path": "/e/lib/python3.7/site-packages/x.so"}]
    found = check("python_fits", target__interpreter=python(), tf__package=package(native=natives), dlls__tree=tree)
    assert found.answer == "fits"


def test_python_fits_unknown():
    assert check("python_fits", tf__package=package()).reason == "target.interpreter: not-recorded"
    assert check("python_fits", target__interpreter=python()).reason == "tf.package: not-recorded"
    nameless = check("python_fits", target__interpreter=python(), tf__package={"version": None, "distributions": []})
    assert nameless.reason == "tf.package: its version is not recorded"
    for version in ("2.3.1", "not a version"):
        found = check("python_fits", target__interpreter=python(), tf__package=package(version))
        assert found.reason == f"builds: no row for TensorFlow {version}"


# ---------------------------------------------------------------- package_whole

NATIVE = "tensorflow_core/python/_pywrap_tensorflow_internal.pyd"


def record(**more: Any) -> dict[str, Any]:
    base = {"distribution": "tensorflow-gpu 2.1.0", "checked": 2946, "missing": [], "empty": [], "altered": [],
            "native_missing": [], "others": []}  # fmt: skip
    return {**base, **more}


def test_package_whole():
    assert check("package_whole", tf__record=record()).answer == "whole"
    lost = check("package_whole", tf__record=record(missing=["a.py", "b.py", "c.py", NATIVE], native_missing=[NATIVE]))
    assert lost.answer == "missing"
    assert lost.values["files"] == f"{NATIVE}, a.py, b.py (+1)"  # the native file first
    assert check("package_whole", tf__record=record(empty=[NATIVE])).values["files"] == NATIVE
    altered = check("package_whole", tf__record=record(altered=["x.py"], others=[{"distribution": "n", "missing": []}]))
    assert (altered.answer, altered.values["files"]) == ("altered", "x.py")
    others = [{"distribution": "numpy 1.19.5", "missing": ["a.pyd"]}, {"distribution": "h5py 2", "missing": ["b.pyd"]}]
    other = check("package_whole", tf__record=record(others=others))
    assert (other.answer, other.values) == ("missing", {"files": "a.pyd", "distribution": "numpy 1.19.5"})


def test_package_whole_unknown():
    assert check("package_whole", tf__record=record(checked=0)).answer == "unknown"
    assert check("package_whole", tf__record=Fact("tf.record", "absent", note="no RECORD")).reason == (
        "tf.record: absent: no RECORD"
    )


# ---------------------------------------------------------------- antivirus_seen


def scanner(*products: tuple[str, str], hits: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"products": [{"name": n, "state": s} for n, s in products], "detections": list(hits)}


DEFENDER = ("Windows Defender", "on")


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("file:_C:\\py37\\Lib\\" + NATIVE.replace("/", "\\"), "detected"),
        ("D:\\odd\\place\\_message.pyd", "detected"),
        ("C:\\py37\\Lib\\site-packages\\x.pyd", "detected"),
        ("C:\\Users\\alice\\Downloads\\game.exe", "none"),
        (None, "none"),
    ],
)
def test_only_detections_of_our_files_count(path, answer):
    lost = record(missing=["odd/place/_message.pyd"])
    found = check("antivirus_seen", tf__record=lost, security__antivirus=scanner(DEFENDER, hits=({"path": path},)))
    assert found.answer == answer
    if answer == "detected":
        assert found.values == {"product": "Microsoft Defender", "path": path}


def test_another_product_must_be_on():
    found = check("antivirus_seen", security__antivirus=scanner(DEFENDER, ("360 Total Security", "on")))
    assert (found.answer, found.values["product"]) == ("other-product", "360 Total Security")
    assert check("antivirus_seen", security__antivirus=scanner(("McAfee", "off"))).answer == "none"
    assert check("antivirus_seen", security__antivirus={"products": None, "detections": None}).answer == "none"
    assert check("antivirus_seen", tf__record=record()).answer == "unknown"


# ---------------------------------------------------------------- one_tensorflow


def several(*names: str, **more: Any) -> dict[str, Any]:
    listed = [dict(zip(("name", "version"), name.split(), strict=True)) for name in names]
    return {"distributions": listed, "module_file": "C:\\s\\tensorflow\\__init__.py", **more}


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (several("tensorflow-gpu 2.1.0", "tensorflow-estimator 2.1.0"), "one"),
        (several("tensorflow 2.12.0", "tensorflow-intel 2.12.0"), "one"),
        (several("tensorflow 2.1.0", "tensorflow-gpu 2.1.0"), "several"),
        (several("tensorflow-gpu 2.1.0", "tensorflow 2.3.1"), "several"),
        (several("tensorflow-gpu 2.1.0", "tensorflow-gpu 2.3.1", build_info={"cuda_version": None}), "several"),
        (several("tensorflow 1.13.1", "tensorflow-gpu 1.13.1", build_info={"cuda_version": "10.0"}), "several"),
        (
            several("tensorflow 1.13.1", "tensorflow-gpu 1.13.1", build_info={"cuda_version": None}),
            "cpu-build-over-gpu",
        ),
        (several("tensorflow_gpu 2.1.0", leftovers=True), "leftovers"),
        (several("tensorflow-gpu 2.1.0") | {"module_file": None}, "leftovers"),
        ({"distributions": [], "folder": "C:\\s\\tensorflow"}, "leftovers"),
        ({"distributions": [], "folder": None}, "none"),
    ],
)
def test_one_tensorflow(value, answer):
    assert check("one_tensorflow", tf__package=value).answer == answer


def test_condas_packages_of_one_version_are_one_tensorflow():
    both = several("tensorflow 2.1.0", "tensorflow-gpu 2.1.0")
    conda = {name: {"version": "2.1.0", "installer": "conda"} for name in ("tensorflow", "tensorflow-gpu")}
    assert check("one_tensorflow", tf__package=both, target__packages=conda).answer == "one"
    mixed = conda | {"tensorflow-gpu": {"version": "2.1.0", "installer": "pip"}}
    assert check("one_tensorflow", tf__package=both, target__packages=mixed).answer == "several"


def test_one_tensorflow_when_the_package_fact_is_absent():
    absent = Fact("tf.package", "absent")
    numpy = {"numpy": {"version": "1.19.5"}}
    assert check("one_tensorflow", tf__package=absent, target__packages=numpy).answer == "none"
    assert check("one_tensorflow", tf__package=absent).answer == "unknown"
    odd = check("one_tensorflow", tf__package=absent, target__packages={"tensorflow-gpu": {"version": "2.1.0"}})
    assert odd.answer == "unknown"
    assert check("one_tensorflow", target__packages=numpy).answer == "unknown"


# ---------------------------------------------------------------- shadowed

FRAME = 'Traceback\n  File "check.py", line 1\n  File "/home/alice/shadow/tensorflow.py", line 2, in <module>\n'
SITE = '  File "/e/lib/python3.7/site-packages/keras/tensorflow.py", line 2, in <module>\n'


@pytest.mark.parametrize(
    ("shadow", "answer"),
    [
        (["C:\\w\\tensorflow"], "tensorflow-file"),
        (["C:\\w\\tensorflow\\"], "tensorflow-file"),
        (["/w/tensorflow.py"], "tensorflow-file"),
        (["/w/numpy.py"], "package-file"),
        (["/w/random.py"], "stdlib-file"),
        (["C:\\w\\imp.pyc"], "stdlib-file"),
        ([], "clear"),
        (None, "clear"),
    ],
)
def test_shadowed_by_what_lies_in_the_folder(shadow, answer):
    found = check("shadowed", tf__package=package(shadow=shadow), tf__import={"ok": False, "error": "x"})
    assert found.answer == answer
    if answer != "clear":
        assert found.values["file"] == shadow[0]
    worked = check("shadowed", tf__package=package(shadow=shadow), tf__import={"ok": True})
    assert worked.answer == "clear"
    assert ("shadow.harmless" in [line.key for line in worked.evidence]) is bool(shadow)


def test_shadowed_by_what_the_traceback_shows():
    found = check("shadowed", tf__import={"ok": False, "traceback": SITE + FRAME})
    assert (found.answer, found.values["file"]) == ("tensorflow-file", "/home/alice/shadow/tensorflow.py")
    circular = "cannot import name 'keras' from partially initialized module 'tensorflow' (C:\\r\\tensorflow.py)"
    assert check("shadowed", tf__import={"ok": False, "error": circular}).values["file"] == "C:\\r\\tensorflow.py"
    assert check("shadowed", tf__import={"ok": False, "traceback": SITE}).answer == "unknown"
    assert check("shadowed").reason == "tf.package: not-recorded"


# ---------------------------------------------------------------- dependencies_fit

DESCRIPTORS = "TypeError: Descriptors cannot not be created directly."
GOOD = {"protobuf": "3.20.3", "numpy": "1.19.5", "h5py": "2.10.0", "keras": "2.6.0"}


def fit(version: str = "2.1.0", on: str = "3.7.16", error: str = "", **changed: str | None) -> Any:
    installed = {name: {"version": v} for name, v in {**GOOD, **changed}.items() if v}
    tried = {"ok": not error, "error": error, "traceback": None, "log": ""}
    return check("dependencies_fit", tf__package=package(version), target__packages=installed, tf__import=tried,
                 target__interpreter=python(on))  # fmt: skip


def test_everything_fits_also_what_is_not_installed():
    found = fit(h5py=None)
    assert found.answer == "fit"
    assert found.values == {"tf_version": "2.1.0", "pins": "protobuf==3.20.3 numpy==1.19.5 h5py==2.10.0"}


@pytest.mark.parametrize(
    ("changed", "answer", "wrong"),
    [
        ({"protobuf": "4.24.4"}, "protobuf-too-new", "protobuf 4.24.4 (needs <3.21)"),
        ({"numpy": "1.21.6"}, "numpy-too-new", "numpy 1.21.6 (needs <1.20)"),
        ({"h5py": "3.8.0"}, "h5py-too-new", "h5py 3.8.0 (needs <3)"),
    ],
)
def test_one_wrong_package(changed, answer, wrong):
    found = fit(**changed)
    assert (found.answer, found.values["wrong"]) == (answer, wrong)
    assert found.values["pins"] == "protobuf==3.20.3 numpy==1.19.5 h5py==2.10.0"


def test_several_wrong_the_error_names_the_first_to_fail():
    bad = {"protobuf": "4.24.4", "numpy": "1.21.6", "h5py": "3.8.0"}
    assert fit(**bad).answer == "several"
    named = fit(error=DESCRIPTORS, **bad)
    assert named.answer == "protobuf-too-new"
    assert named.values["wrong"] == ("protobuf 4.24.4 (needs <3.21), numpy 1.21.6 (needs <1.20), h5py 3.8.0 (needs <3)")
    assert len(named.evidence) == 3
    lstm = "NotImplementedError: Cannot convert a symbolic Tensor (lstm/strided_slice:0) to a numpy array."
    assert fit(error=lstm, **bad).answer == "numpy-too-new"
    assert fit(error="AttributeError: 'str' object has no attribute 'decode'", **bad).answer == "h5py-too-new"
    assert fit(error="another error", **bad).answer == "several"


def test_the_paste_names_it_too_when_the_import_works():
    found = check(
        "dependencies_fit", tf__package=package(), target__interpreter=python(),
        tf__import={"ok": True, "log": DESCRIPTORS},
        target__packages={"numpy": {"version": "1.21.6"}, "h5py": {"version": "3.8.0"}},
        paste="AttributeError: 'str' object has no attribute 'decode'",
    )  # fmt: skip
    assert found.answer == "h5py-too-new"


def test_an_error_that_names_a_package_that_is_fine_is_not_believed():
    assert fit(error=DESCRIPTORS, numpy="1.21.6").answer == "numpy-too-new"
    assert fit(error=DESCRIPTORS).answer == "fit"


@pytest.mark.parametrize(
    ("changed", "answer"),
    [
        ({"keras": "2.15.0"}, "keras-mismatch"),
        ({"keras": "2.4.0"}, "keras-mismatch"),
        ({"scipy": "1.9.0"}, "several"),
        ({"numpy": "1.18.5"}, "several"),  # too old: only the set of pins says what to do
        ({"numpy": "1.24.0"}, "numpy-too-new"),
        ({"protobuf": "not a version"}, "fit"),
    ],
)
def test_other_packages(changed, answer):
    assert fit("2.6.0", "3.8.1", **changed).answer == answer


def test_protobuf_too_old_for_a_new_tensorflow():
    assert fit("2.21.0", "3.11.1").answer == "protobuf-too-old"
    assert fit("2.21.0", "3.11.1", protobuf="8.1").answer == "protobuf-too-new"


def test_without_a_row_only_the_error_itself_is_proof():
    proved = fit("2.3.1", error=DESCRIPTORS, protobuf="5.29.6")
    assert (proved.answer, proved.values) == ("protobuf-too-new", {"tf_version": "2.3.1", "wrong": "protobuf 5.29.6"})
    bare = fit(
        "2.3.1", error="ImportError: cannot import name 'runtime_version' from 'google.protobuf' (x)", protobuf=None
    )
    assert (bare.answer, bare.values["wrong"]) == ("protobuf-too-old", "protobuf ?")
    assert fit("2.3.1").reason == "pins: no row for TensorFlow 2.3.1 on this Python"
    assert fit(on="3.6.1").answer == "unknown"  # pins belong to a Python, too


def test_dependencies_unknown():
    assert check("dependencies_fit", target__packages={}).reason == "tf.package: not-recorded"
    assert check("dependencies_fit", tf__package=package()).reason == "target.packages: not-recorded"
    nobody = check("dependencies_fit", tf__package=package(), target__packages={})
    assert nobody.reason == "target.interpreter: not-recorded"
    unnamed = check("dependencies_fit", tf__package={"version": None, "distributions": []}, target__packages={})
    assert unnamed.reason == "tf.package: its version is not recorded"
