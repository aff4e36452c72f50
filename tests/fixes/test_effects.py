"""Applying and undoing real files: content, rights, line ends, and every way in which it can fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from tftriage.fixes import disk, effects, undo
from tftriage.fixes.journal import Busy, Journal
from tftriage.fixes.plans import (
    ABSENT,
    CopyFile,
    EditKernelspec,
    MoveAside,
    Plan,
    RemoveFile,
    Run,
    SetUserVariable,
    Step,
    UnsetUserVariable,
    Variable,
    Verify,
    WriteFile,
)
from tftriage.fixes.registry import MemoryRegistry, NoRegistry

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX rights")
VERIFY = Verify(facts=(), probe="p", good_answers=("ok",))


def plan(*steps: Step, undoable: bool = True) -> Plan:
    return Plan(fix="test", steps=steps, verify=VERIFY, undoable=undoable)


def test_a_new_file_is_written_read_back_and_taken_back_with_its_folders(tmp_path: Path, journal: Journal) -> None:
    file = tmp_path / "深度" / "学习" / "start.bat"
    seen: list[effects.StepResult] = []
    done = effects.apply(
        plan(WriteFile(path=str(file), text="一\n", newline="\r\n", expected=ABSENT)), journal, seen.append
    )
    assert done.ok and done.entry_id == "1" and [r.read_back for r in seen] == [True]
    assert file.read_bytes() == "一\r\n".encode()
    assert undo.undo(journal, "1").ok
    assert not (tmp_path / "深度").exists()
    assert journal.entry("1").status == "undone"
    again = undo.undo(journal, "1")
    assert again.error is not None and again.error.key == "fix.error.nothing-to-undo"


@posix
def test_rights_links_and_bytes_of_a_changed_file_are_kept(tmp_path: Path, journal: Journal) -> None:
    real = tmp_path / "dotfiles" / "kernel.json"
    real.parent.mkdir()
    raw = b'\xef\xbb\xbf{\r\n\t"argv": ["python"],\r\n\t"env": {"A": "1", "CUDA_VISIBLE_DEVICES": "-1"}\r\n}'
    real.write_bytes(raw)
    real.chmod(0o640)
    link = tmp_path / "kernel.json"
    link.symlink_to(real)
    step = EditKernelspec(path=str(link), changes={"env": {"CUDA_VISIBLE_DEVICES": None, "PATH": "C:\\a"}})
    assert effects.apply(plan(step), journal).ok
    assert link.is_symlink() and real.stat().st_mode & 0o777 == 0o640
    new = real.read_bytes()
    assert new.startswith(b"\xef\xbb\xbf{\r\n\t") and b"\n" not in new.replace(b"\r\n", b"")
    assert json.loads(new.decode("utf-8-sig"))["env"] == {"A": "1", "PATH": "C:\\a"}
    assert undo.undo(journal, "1").ok
    assert real.read_bytes() == raw and real.stat().st_mode & 0o777 == 0o640


def test_a_file_that_changed_after_the_preview_stops_everything(tmp_path: Path, journal: Journal) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    two.write_bytes(b"before")
    expected = disk.sha256(two)
    two.write_bytes(b"someone else")
    steps = (WriteFile(path=str(one), text="x"), WriteFile(path=str(two), text="y", expected=expected))
    done = effects.apply(plan(*steps), journal)
    assert done.error is not None and done.error.key == "fix.error.changed-since"
    assert not one.exists() and two.read_bytes() == b"someone else" and journal.entries() == ()


def test_a_copy_never_replaces_a_file(tmp_path: Path, journal: Journal) -> None:
    source, target = tmp_path / "cudnn64_7_v741.dll", tmp_path / "cudnn64_7.dll"
    source.write_bytes(b"MZ")
    target.write_bytes(b"other")
    done = effects.apply(plan(CopyFile(source=str(source), target=str(target))), journal)
    assert done.error is not None and done.error.key == "fix.error.already-there"
    assert target.read_bytes() == b"other"
    with pytest.raises(FileExistsError):
        disk.copy_new(str(source), str(target))
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "state") == ["cudnn64_7.dll", "cudnn64_7_v741.dll"]


def test_undo_compares_first_and_asks(tmp_path: Path, journal: Journal) -> None:
    mine, changed = tmp_path / "mine", tmp_path / "changed"
    changed.write_bytes(b"before")
    assert effects.apply(plan(WriteFile(path=str(mine), text="1"), WriteFile(path=str(changed), text="2")), journal).ok
    changed.write_bytes(b"the user's later work")
    result = undo.undo(journal, "1")
    assert not result.ok and [c.step for c in result.conflicts] == [1]
    assert not mine.exists() and changed.read_bytes() == b"the user's later work"
    assert journal.entry("1").status == "partly-undone"
    assert undo.undo(journal, "1", {1: "keep"}).ok
    assert changed.read_bytes() == b"the user's later work" and journal.entry("1").status == "undone"


def test_what_a_later_fix_left_alike_is_not_ours_to_take_back_first(tmp_path: Path, journal: Journal) -> None:
    file = tmp_path / "activate"
    file.write_text("zero\n", encoding="utf-8")
    for text in ("one\n", "two\n", "one\n"):
        assert effects.apply(plan(WriteFile(path=str(file), text=text)), journal).ok
    early = undo.undo(journal, "1")
    assert not early.ok and [c.step for c in early.conflicts] == [0]
    assert file.read_text(encoding="utf-8") == "one\n"
    assert all(undo.undo(journal, entry).ok for entry in ("3", "2", "1"))
    assert file.read_text(encoding="utf-8") == "zero\n"


def test_a_conflict_can_be_forced_and_the_later_work_is_not_lost(tmp_path: Path, journal: Journal) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"before")
    assert effects.apply(plan(WriteFile(path=str(file), text="ours")), journal).ok
    file.write_bytes(b"later")
    key = disk.sha256(file)
    assert undo.undo(journal, "1", {0: "restore"}).ok
    assert file.read_bytes() == b"before" and journal.saved(key) == b"later"


def test_moving_aside_and_removing(tmp_path: Path, journal: Journal) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_bytes(b"a")
    b.write_bytes(b"b")
    assert effects.apply(plan(MoveAside(path=str(a), to=str(tmp_path / "a.old")), RemoveFile(path=str(b))), journal).ok
    assert not a.exists() and not b.exists() and (tmp_path / "a.old").read_bytes() == b"a"
    assert undo.undo(journal, "1").ok
    assert a.read_bytes() == b"a" and b.read_bytes() == b"b" and not (tmp_path / "a.old").exists()


def test_a_failing_later_step_takes_the_earlier_ones_back(tmp_path: Path, journal: Journal) -> None:
    blocker = tmp_path / "file"
    blocker.write_bytes(b"")
    steps = (
        WriteFile(path=str(tmp_path / "one"), text="x"),
        Run(argv=(sys.executable, "-c", "import sys; print('no such wheel'); sys.exit(3)")),
    )
    seen: list[effects.StepResult] = []
    done = effects.apply(plan(*steps), journal, seen.append)
    assert not done.ok and done.error is not None and done.error.key == "fix.error.command-failed"
    assert done.error.params["exit"] == "3" and "no such wheel" in done.error.params["tail"]
    assert [r.ok for r in seen] == [True, False] and not (tmp_path / "one").exists()
    assert journal.entry("1").status == "failed" and not journal.unfinished()


def test_a_command_past_its_limit_is_ended_with_its_children(tmp_path: Path, journal: Journal) -> None:
    sleep = "import time; time.sleep(60)"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {sleep!r}]); {sleep}"
    done = effects.apply(plan(Run(argv=(sys.executable, "-c", code), limit=1.0)), journal)
    assert done.error is not None and done.error.key == "fix.error.command-stopped"


def _as_nobody(code: str, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run code with the rights of another user (root may write anywhere)."""
    drop = "import os\nif os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
    root = str(Path(__file__).parents[2])
    program = f"import sys\nsys.path.insert(0, {root!r})\n" + _IMPORTS + drop + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", program, *argv], capture_output=True, text=True, check=False, timeout=60
    )


_IMPORTS = """
from tftriage.fixes import effects, undo, disk
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import *
V = Verify(facts=(), probe="p", good_answers=("ok",))
"""


@posix
def test_no_permission_is_said_and_nothing_has_changed(tmp_path: Path) -> None:
    locked, state = tmp_path / "locked", tmp_path / "state"
    locked.mkdir()
    state.mkdir()
    (locked / "kernel.json").write_text("{}")
    locked.chmod(0o555)
    for folder in [*tmp_path.parents][: len(tmp_path.parents) - 1]:
        if folder.stat().st_uid == os.getuid() and folder != Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o055)
    tmp_path.chmod(0o755)
    state.chmod(0o777)
    done = _as_nobody(
        """
        book = Journal(sys.argv[1])
        step = EditKernelspec(path=sys.argv[2] + "/kernel.json", changes={"a": 1})
        done = effects.apply(Plan(fix="t", steps=(step,), verify=V), book)
        print(done.ok, done.error.key, book.entry("1").status, disk.may_write(sys.argv[2]), open(step.path).read())
        """,
        str(state),
        str(locked),
    )
    assert done.stdout.split() == ["False", "fix.error.no-permission", "failed", "False", "{}"], done.stderr


@posix
def test_a_full_disk_keeps_the_former_state(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk: the write fails in the middle, with EFBIG."""
    (tmp_path / "file").write_text("former")
    code = """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500000, 1500000))
        new = WriteFile(path=sys.argv[1] + "/folder/new", text="x")
        big = WriteFile(path=sys.argv[1] + "/file", text="y" * 800000, encoding="utf-16")
        book = Journal(sys.argv[1] + "/state")
        plan = Plan(fix="t", steps=(new, big), verify=V)
        done = effects.apply(plan, book)
        print(done.ok, done.error.key, book.entry("1").status)
    """
    root = str(Path(__file__).parents[2])
    program = f"import sys\nsys.path.insert(0, {root!r})\n" + _IMPORTS + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.split() == ["False", "fix.error.disk-full", "failed"], done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "state"]
    assert (tmp_path / "file").read_text() == "former"


@posix
def test_a_journal_that_cannot_be_written_means_that_nothing_is_done(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_text("a file where the folder should be")
    done = effects.apply(plan(WriteFile(path=str(tmp_path / "new"), text="x")), Journal(state))
    assert not done.ok and done.entry_id is None and not (tmp_path / "new").exists()


def test_two_at_once_get_a_clear_message(tmp_path: Path, journal: Journal) -> None:
    code = """
        with Journal(sys.argv[1]).locked():
            print("held", flush=True)
            sys.stdin.readline()
    """
    root = str(Path(__file__).parents[2])
    program = f"import sys\nsys.path.insert(0, {root!r})\n" + _IMPORTS + textwrap.dedent(code)
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(journal.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        step = WriteFile(path=str(tmp_path / "new"), text="x")
        done = effects.apply(plan(step), journal)
        assert done.error is not None and done.error.key == "fix.error.busy"
        assert done.error.params["pid"] == str(other.pid) and not (tmp_path / "new").exists()
        undone = undo.undo(journal, "1")
        assert undone.error is not None and undone.error.key == "fix.error.busy"
        other.kill()  # its death frees the journal
        other.wait()
        assert effects.apply(plan(step), journal).ok
    finally:
        other.kill()
        other.communicate()


def test_the_lock_also_holds_between_threads(journal: Journal) -> None:
    caught: list[str] = []

    def second() -> None:
        try:
            with Journal(journal.path).locked():
                pass
        except Busy as busy:
            caught.append(busy.evidence.key)

    with journal.locked(), journal.locked():
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert caught == ["fix.error.busy"]


def test_interrupting_takes_back_what_was_done(tmp_path: Path, journal: Journal) -> None:
    def interrupt(result: effects.StepResult) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        effects.apply(plan(WriteFile(path=str(tmp_path / "new"), text="x")), journal, interrupt)
    assert not (tmp_path / "new").exists() and journal.entry("1").status == "failed"


def test_user_variables_keep_value_and_type_to_the_bit(journal: Journal) -> None:
    before = Variable("PATH", r"%SystemRoot%;;C:\x;", "REG_EXPAND_SZ")
    registry = MemoryRegistry(before, Variable("CUDA_VISIBLE_DEVICES", "-1", "REG_SZ"))
    steps = (
        SetUserVariable(name="Path", value="C:\\a;" + str(before.value), type="REG_EXPAND_SZ", expected=before),
        UnsetUserVariable(name="CUDA_VISIBLE_DEVICES", expected=Variable("CUDA_VISIBLE_DEVICES", "-1", "REG_SZ")),
    )
    assert effects.apply(plan(*steps), journal, registry=registry).ok
    assert registry.read("path").value == "C:\\a;" + str(before.value) and registry.broadcasts == 2
    assert registry.read("cuda_visible_devices").value is None
    assert undo.undo(journal, "1", registry=registry).ok
    assert registry.read("Path") == before
    assert registry.read("CUDA_VISIBLE_DEVICES") == Variable("CUDA_VISIBLE_DEVICES", "-1", "REG_SZ")


def test_a_variable_that_was_not_there_is_gone_after_undo(journal: Journal) -> None:
    registry = MemoryRegistry()
    step = SetUserVariable(name="Path", value="C:\\a", type="REG_EXPAND_SZ", expected=Variable("Path"))
    assert effects.apply(plan(step), journal, registry=registry).ok
    assert undo.undo(journal, "1", registry=registry).ok
    assert registry.read("Path") == Variable("Path")


def test_an_installer_that_adds_to_path_meanwhile_is_a_conflict(journal: Journal) -> None:
    registry = MemoryRegistry()
    step = SetUserVariable(name="Path", value="C:\\a", type="REG_EXPAND_SZ", expected=Variable("Path"))
    assert effects.apply(plan(step), journal, registry=registry).ok
    registry.write(Variable("Path", "C:\\a;C:\\Git", "REG_EXPAND_SZ"))
    result = undo.undo(journal, "1", registry=registry)
    assert [(c.saved, c.ours, c.now) for c in result.conflicts] == [
        ("-", "REG_EXPAND_SZ C:\\a", "REG_EXPAND_SZ C:\\a;C:\\Git")
    ]
    again = effects.apply(plan(step), journal, registry=registry)
    assert again.error is not None and again.error.key == "fix.error.changed-since"


def test_a_registry_that_says_yes_and_does_nothing_is_found_out(journal: Journal) -> None:
    """As setx does under some systems: exit status 0, nothing written."""

    class Deaf(MemoryRegistry):
        def write(self, variable: Variable) -> None:
            return

    step = SetUserVariable(name="Path", value="C:\\a", type="REG_SZ", expected=Variable("Path"))
    done = effects.apply(plan(step), journal, registry=Deaf())
    assert done.error is not None and done.error.key == "fix.error.not-as-written"
    assert journal.entry("1").status == "failed"


def test_there_is_no_registry_here(journal: Journal) -> None:
    step = UnsetUserVariable(name="X", expected=Variable("X"))
    done = effects.apply(plan(step), journal, registry=NoRegistry())
    assert done.error is not None and done.error.key == "fix.error.no-registry"


def test_a_plan_for_a_person_is_not_applied(journal: Journal) -> None:
    done = effects.apply(plan(), journal)
    assert done.error is not None and done.error.key == "fix.error.by-hand-only"


def test_what_cannot_be_undone_says_so(journal: Journal) -> None:
    done = effects.apply(plan(Run(argv=(sys.executable, "-c", "")), undoable=False), journal)
    assert done.ok and not journal.entry("1").undoable
    undone = undo.undo(journal, "1")
    assert undone.error is not None and undone.error.key == "fix.error.not-undoable"


def test_unknown_entries_and_foreign_lines_do_no_harm(tmp_path: Path, journal: Journal) -> None:
    assert effects.apply(plan(WriteFile(path=str(tmp_path / "a"), text="x")), journal).ok
    with open(journal.file, "ab") as file:
        file.write(
            b'not json\n{"entry": "9", "record": "begin", "at": "?", "plan": {"from": "the future"}}\n\xff\n{"cut'
        )
    assert [entry.id for entry in journal.entries()] == ["1"]
    assert effects.apply(plan(WriteFile(path=str(tmp_path / "b"), text="x")), journal).ok
    assert [entry.id for entry in journal.entries()] == ["1", "10"]
    missing = undo.undo(journal, "77")
    assert missing.error is not None and missing.error.key == "fix.error.no-such-entry"


def test_the_state_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFTRIAGE_STATE", str(tmp_path / "stick"))
    assert Journal().path == tmp_path / "stick"
    monkeypatch.delenv("TFTRIAGE_STATE")
    assert Journal().path.name == "tftriage"


@posix
def test_a_command_that_outlives_us_stops_recovery(tmp_path: Path, journal: Journal) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        from tftriage.fixes import running
        from tftriage.fixes.plans import Nothing

        entry = journal.begin(plan(Run(argv=("pip",))))
        journal.step_intent(entry, 0, Nothing(), Nothing())
        journal.step_started(entry, 0, sleeper.pid, running.started(sleeper.pid) or 0)
        result = undo.recover(journal)[entry]
        assert result.error is not None and result.error.key == "fix.error.still-running"
    finally:
        sleeper.kill()
        sleeper.wait()
    assert undo.recover(journal)[entry].ok
