"""The real registry, cmd's own reading of our scripts, and Windows' rules for files. Windows only."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tftriage.fixes import catalogue, disk, effects, elevation, machine_settings, registry, undo
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import Plan, RegistryType, Variable, Verify, WriteFile
from tftriage.tables import Tables

from .conftest import make_facts

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="winreg and cmd")
CUDA = r"C:\CUDA\v10.1\bin"


@pytest.fixture
def real() -> Iterator[registry.WindowsRegistry]:
    """The user's own variables, put back afterwards."""
    book = registry.WindowsRegistry()
    kept = [book.read(name) for name in ("Path", "CUDA_VISIBLE_DEVICES")]
    yield book
    for variable in kept:
        if variable.value is None:
            book.delete(variable.name)
        else:
            book.write(variable)


def facts_of(variable: Variable) -> dict[str, object]:
    path = None if variable.value is None else {"type": variable.type, "value": variable.value}
    return {"env.user": {"Path": path, "variables": {}}, "env.machine": {"Path": None, "variables": {}}}


@pytest.mark.parametrize(
    "before",
    [
        Variable("Path", r"%SystemRoot%\x;;C:\git\cmd;", "REG_EXPAND_SZ"),
        Variable("Path", r"C:\学习\bin;%NOT_EXPANDED%", "REG_SZ"),
        Variable("Path"),
        Variable("Path", ";".join(rf"C:\folder{i:05}" for i in range(2000)), "REG_EXPAND_SZ"),
    ],
    ids=["expandable", "plain", "missing", "long"],
)
def test_path_user_in_the_real_registry(real: registry.WindowsRegistry, journal: Journal, before: Variable) -> None:
    real.delete("Path")
    if before.value is not None:
        real.write(before)
    plan = catalogue.FIXES["path-user"].plan(make_facts(facts_of(real.read("Path"))), {"folder": CUDA}, Tables())
    assert effects.apply(plan, journal).ok
    now = real.read("Path")
    assert now.value == (f"{CUDA};{before.value}" if before.value else CUDA)
    assert now.type == (before.type or "REG_EXPAND_SZ")
    assert undo.undo(journal, "1").ok
    assert real.read("Path") == before


def test_a_change_between_preview_and_apply_stops(real: registry.WindowsRegistry, journal: Journal) -> None:
    real.write(Variable("Path", "C:\\a", "REG_SZ"))
    plan = catalogue.FIXES["path-user"].plan(make_facts(facts_of(real.read("Path"))), {"folder": CUDA}, Tables())
    real.write(Variable("Path", "C:\\a", "REG_EXPAND_SZ"))  # the type alone is a change
    done = effects.apply(plan, journal)
    assert done.error is not None and done.error.key == "fix.error.changed-since"
    assert real.read("Path") == Variable("Path", "C:\\a", "REG_EXPAND_SZ")


def test_an_odd_type_is_left_alone(real: registry.WindowsRegistry, journal: Journal) -> None:
    import winreg

    with winreg.OpenKey(winreg.HKEY_CURRENT_USER, "Environment", 0, winreg.KEY_SET_VALUE) as key:
        winreg.SetValueEx(key, "Path", 0, winreg.REG_BINARY, b"\0")
    plan = catalogue.FIXES["path-user"].plan(make_facts(facts_of(Variable("Path"))), {"folder": CUDA}, Tables())
    done = effects.apply(plan, journal)
    assert done.error is not None and done.error.key == "fix.error.odd-type"
    real.delete("Path")


def test_unset_variable_and_back(real: registry.WindowsRegistry, journal: Journal) -> None:
    real.write(Variable("CUDA_VISIBLE_DEVICES", "-1", "REG_SZ"))
    user = {"Path": None, "variables": {"CUDA_VISIBLE_DEVICES": {"type": "REG_SZ", "value": "-1"}}}
    plan = catalogue.FIXES["unset-variable"].plan(make_facts({"env.user": user}), {"where": "user"}, Tables())
    assert effects.apply(plan, journal).ok and real.read("CUDA_VISIBLE_DEVICES").value is None
    assert undo.undo(journal, "1").ok
    assert real.read("CUDA_VISIBLE_DEVICES") == Variable("CUDA_VISIBLE_DEVICES", "-1", "REG_SZ")


def cmd(folder: Path, text: str, path: str) -> list[str]:
    file = folder / "test.bat"
    file.write_bytes(text.replace("\n", "\r\n").encode("ascii"))
    env = {**os.environ, "PATH": path}
    done = subprocess.run(["cmd", "/d", "/c", str(file)], capture_output=True, env=env, check=False, timeout=60)
    return [line for line in done.stdout.decode("ascii", "replace").split("\r\n") if not line.startswith("PATHEXT")]


def test_cmd_adds_on_activation_and_cuts_on_leaving(journal: Journal, tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    interpreter = {"executable": str(prefix / "python.exe"), "prefix": str(prefix), "conda": True, "version": [3, 8, 1]}
    facts = make_facts({"target.interpreter": interpreter})
    plan = catalogue.FIXES["path-environment"].plan(facts, {"folder": CUDA + r";C:\x (y) & z"}, Tables())
    assert effects.apply(plan, journal).ok
    on, off = (prefix / "etc/conda" / d / "tftriage-libraries.bat" for d in ("activate.d", "deactivate.d"))
    start = r"C:\windows\system32;C:\windows"
    added = CUDA + r";C:\x (y) & z"
    # "set PATH", because echo would run what stands behind the &
    lines = ["@echo off", f'call "{on}"', "set PATH", f'call "{off}"', "set PATH"]
    lines += [f'call "{on}"', 'set "PATH=C:\\first;%PATH%"', f'call "{off}"', "set PATH", ""]
    text = "\n".join(lines)
    assert cmd(tmp_path, text, start)[:3] == [f"PATH={added};{start}", f"PATH={start}", f"PATH=C:\\first;{start}"]
    assert undo.undo(journal, "1").ok and not prefix.exists()


def test_the_launcher_runs_under_cmd(journal: Journal, tmp_path: Path) -> None:
    interpreter = {"executable": sys.executable, "prefix": str(tmp_path / "env"), "venv": True, "version": [3, 11, 9]}
    packages = {"notebook": {"name": "notebook", "version": "6", "folder": str(tmp_path)}}
    facts = make_facts(
        {"target.interpreter": interpreter, "target.packages": packages, "system.user": {"home": str(tmp_path)}}
    )
    plan = catalogue.FIXES["start-jupyter"].plan(facts, {"folder": CUDA, "destination": str(tmp_path)}, Tables())
    assert effects.apply(plan, journal).ok
    (tmp_path / "notebook.py").write_text("import os, sys; print(os.environ['PATH'], sys.argv[1:])")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    (file,) = tmp_path.glob("jupyter-*.bat")
    done = subprocess.run(
        ["cmd", "/d", "/c", str(file), "--port=1"], capture_output=True, env=env, check=False, timeout=60
    )
    out = done.stdout.decode("utf-8", "replace")
    assert out.startswith(f"{CUDA};{tmp_path}\\env\\Scripts;") and "['--port=1']" in out, (out, done.stderr)


def test_an_open_file_is_left_as_it_was(journal: Journal, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"former")
    create = ctypes.WinDLL("kernel32", use_last_error=True).CreateFileW
    create.restype = ctypes.c_void_p
    handle = create(str(file), 0x80000000, 1, None, 3, 0, None)  # others may read; nobody may write or replace
    try:
        step = WriteFile(path=str(file), text="new")
        done = effects.apply(Plan(fix="t", steps=(step,), verify=Verify(facts=(), probe="p", good_answers=())), journal)
        assert done.error is not None and done.error.key in ("fix.error.in-use", "fix.error.no-permission")
        assert file.read_bytes() == b"former" and journal.entry("1").status == "failed"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "state"]
    finally:
        ctypes.WinDLL("kernel32").CloseHandle(ctypes.c_void_p(handle))


def test_rights_are_asked_without_writing(tmp_path: Path) -> None:
    assert disk.may_write(str(tmp_path)) is True
    assert list(tmp_path.iterdir()) == []


def test_attributes_of_a_changed_file_are_kept(journal: Journal, tmp_path: Path) -> None:
    file = tmp_path / "kernel.json"
    file.write_bytes(b"{}")
    kernel32 = ctypes.WinDLL("kernel32")
    kernel32.SetFileAttributesW(str(file), 0x2)
    step = WriteFile(path=str(file), text="new")
    assert effects.apply(Plan(fix="t", steps=(step,), verify=Verify(facts=(), probe="p", good_answers=())), journal).ok
    assert file.read_bytes() == b"new" and kernel32.GetFileAttributesW(str(file)) & 0x2


# --- the machine's own registry, and an elevated process -----------------------------------------------------------


@pytest.fixture(params=["long-paths", "gpu-scheduling"])
def setting(request: pytest.FixtureRequest) -> Iterator[machine_settings.Setting]:
    """A value of the machine, put back afterwards; its key is made where this Windows has none (Wine)."""
    import winreg

    found = next(s for s in (machine_settings.LONG_PATHS, machine_settings.SCHEDULING) if s.fix == request.param)
    winreg.CloseKey(winreg.CreateKeyEx(winreg.HKEY_LOCAL_MACHINE, found.key, 0, winreg.KEY_WRITE | 0x100))
    book = registry.WindowsRegistry()
    kept = book.read_machine(found.key, found.name)
    yield found
    book.write_machine(found.key, found.name, kept)


@pytest.mark.parametrize("before", [None, 0, 2])
def test_a_value_of_the_machine_and_back(
    setting: machine_settings.Setting, journal: Journal, before: int | None
) -> None:
    book = registry.WindowsRegistry()
    book.write_machine(setting.key, setting.name, before)
    plan = catalogue.FIXES[setting.fix].plan(make_facts({}), {}, Tables())
    assert effects.apply(plan, journal).ok
    assert book.read_machine(setting.key, setting.name) == 1
    assert undo.undo(journal, "1").ok
    assert book.read_machine(setting.key, setting.name) == before


def test_a_value_of_the_machine_that_changed_since_is_left(setting: machine_settings.Setting, journal: Journal) -> None:
    book = registry.WindowsRegistry()
    book.write_machine(setting.key, setting.name, None)
    plan = catalogue.FIXES[setting.fix].plan(make_facts({}), {}, Tables())
    book.write_machine(setting.key, setting.name, 7)
    done = effects.apply(plan, journal)
    assert done.error is not None and done.error.key == "fix.error.changed-since"
    assert book.read_machine(setting.key, setting.name) == 7


def test_windows_starts_the_elevated_side_and_undo_knows_it(
    setting: machine_settings.Setting, journal: Journal
) -> None:
    """A real ``ShellExecuteExW`` with ``runas``; under Wine everybody is an administrator and nobody is asked."""
    book = registry.WindowsRegistry()
    book.write_machine(setting.key, setting.name, None)
    plan = catalogue.FIXES[setting.fix].plan(make_facts({}), {}, Tables())
    applied = elevation.carry_out(plan, journal)
    assert applied.ok, applied
    assert book.read_machine(setting.key, setting.name) == 1
    assert journal.entry(applied.entry_id or "").plan == plan
    assert undo.undo(journal, applied.entry_id or "").ok
    assert book.read_machine(setting.key, setting.name) is None


# --- two at once, and any Path ---------------------------------------------------------------------------------------

ENTRY = st.one_of(
    st.sampled_from(
        ["", '"C:\\a;b"', r"%SystemRoot%\system32", r"C:\git\cmd", r"C:\GIT\cmd\\", "C:\\学习 x", "%NONE%"]
    ),
    st.text('abc \\:%"é中😀.', max_size=20),
)


@given(st.lists(ENTRY, max_size=30), st.sampled_from(["REG_SZ", "REG_EXPAND_SZ"]), st.booleans())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_path_comes_back_to_the_bit(
    real: registry.WindowsRegistry, tmp_path: Path, entries: list[str], kind: RegistryType, long: bool
) -> None:
    value = ";".join([*entries, *(f"C:\\folder{n:05}" for n in range(2000 if long else 0))])
    before = Variable("Path", value, kind)
    real.write(before)
    with tempfile.TemporaryDirectory(dir=tmp_path) as state:
        journal = Journal(state)
        plan = catalogue.FIXES["path-user"].plan(make_facts(facts_of(real.read("Path"))), {"folder": CUDA}, Tables())
        assert effects.apply(plan, journal).ok
        now = real.read("Path")
        assert now.type == kind and now.value is not None and now.value.split(";")[0] == CUDA
        assert undo.undo(journal, "1").ok
        assert real.read("Path") == before


def test_of_two_programs_at_once_the_second_is_told(journal: Journal, tmp_path: Path) -> None:
    """Another process holds the journal: nothing is begun, and its number is named."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(journal.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None and holder.stdout is not None
    assert holder.stdout.readline().strip() == b"held"
    plan = Plan(
        fix="t",
        steps=(WriteFile(path=str(tmp_path / "x"), text="x"),),
        verify=Verify(facts=(), probe="p", good_answers=("ok",)),
    )
    done = effects.apply(plan, journal)
    holder.stdin.close()
    holder.wait(30)
    assert done.error is not None and done.error.key == "fix.error.busy" and done.error.params["pid"].isdigit()
    assert not (tmp_path / "x").exists()
    assert effects.apply(plan, journal).ok, "the lock went with its holder"


HOLD = """
import sys
sys.path.insert(0, ROOT)
from tftriage.fixes.journal import Journal
with Journal(sys.argv[1]).locked():
    print("held", flush=True)
    sys.stdin.read()
""".replace("ROOT", ascii(str(Path(__file__).parents[2])))
