"""Refusals, odd files and every command a person could type."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tftriage.fixes import catalogue, commands, effects, kernelspecs, paths, preview, running, undo
from tftriage.fixes.journal import Journal
from tftriage.fixes.path_environment import decoded, with_blocks
from tftriage.fixes.plans import (
    EditKernelspec,
    MoveAside,
    Packages,
    Plan,
    Refused,
    RemoveFile,
    Run,
    SetUserVariable,
    Step,
    UnsetUserVariable,
    Variable,
    Verify,
    WriteFile,
)
from tftriage.fixes.register_kernel import kernels_folder
from tftriage.tables import Tables

from .conftest import make_facts
from .test_catalogue import CUDA, WINDOWS, refused

VERIFY = Verify(facts=(), probe="p", good_answers=("ok",))
elsewhere = pytest.mark.skipif(sys.platform == "win32", reason="facts of a Windows machine, looked at from elsewhere")
INTERPRETER = WINDOWS["target.interpreter"]
BARE = {**INTERPRETER, "venv": False}


def plan(*steps: Step) -> Plan:
    return Plan(fix="t", steps=steps, verify=VERIFY)


@elsewhere
@pytest.mark.parametrize(
    ("fix", "values", "changes", "key"),
    [
        ("register-ipykernel", {}, {"target.interpreter": {}}, "no-interpreter"),
        ("pin-packages", {}, {"target.interpreter": {}}, "no-interpreter"),
        ("pin-packages", {}, {"target.interpreter": {**INTERPRETER, "pip": None}}, "no-pip"),
        ("pin-packages", {"tf_version": "9"}, {}, "no-pins"),
        ("reinstall-package", {"distribution": "x 1"}, {"target.interpreter": {}}, "no-interpreter"),
        ("reinstall-package", {"distribution": "x 1"}, {"target.interpreter": {**INTERPRETER, "pip": None}}, "no-pip"),
        ("path-environment", {"folder": CUDA}, {"target.interpreter": {}}, "no-interpreter"),
        ("path-environment", {"folder": CUDA}, {"target.interpreter": BARE}, "not-an-environment"),
        ("path-environment", {}, {}, "no-folder"),
        ("path-environment", {"folder": '"C:\\a;b"'}, {}, "folder-name"),
        ("path-environment", {"folder": CUDA}, {}, "no-activate-script"),
        ("start-jupyter", {}, {"target.interpreter": {}}, "no-interpreter"),
        ("start-jupyter", {}, {"target.packages": {}}, "no-jupyter"),
        ("start-jupyter", {"folder": "C:\\a\nb"}, {}, "folder-name"),
        ("start-jupyter", {}, {"system.user": {}}, "no-home"),
        ("kernel-path", {"kernel": "tf21"}, {}, "no-folder"),
        ("kernel-path", {"folder": CUDA}, {"jupyter.kernels": []}, "no-kernel"),
    ],
)  # fmt: skip
def test_refusals(fix: str, values: dict[str, str], changes: dict[str, Any], key: str) -> None:
    assert refused(fix, values, changes) == f"fix.refuse.{key}"


@elsewhere
def test_kernel_path_refuses_what_it_cannot_write_out() -> None:
    old = {"jupyter.server": {"jupyter_client": "5.3"}}
    values = {"kernel": "tf21", "folder": CUDA}
    assert refused("kernel-path", values, {**old, "env.process": {}}) == "fix.refuse.path-unknown"
    long = {**old, "env.process": {"PATH": "x" * paths.LIMIT}}
    assert refused("kernel-path", values, long) == "fix.refuse.path-too-long"
    there = [{**WINDOWS["jupyter.kernels"][0], "env": {"PATH": CUDA + ";${PATH}"}}]
    assert refused("kernel-path", values, {"jupyter.kernels": there}) == "fix.refuse.already-first"


@elsewhere
def test_where_kernels_lie() -> None:
    home = {"system.user": {"home": r"C:\Users\x"}}
    assert kernels_folder(make_facts(home, "Windows")) == r"C:\Users\x\AppData\Roaming\jupyter\kernels"
    process = {"env.process": {"JUPYTER_DATA_DIR": r"D:\j"}}
    assert kernels_folder(make_facts({**home, **process}, "Windows")) == r"D:\j\kernels"
    assert (
        kernels_folder(make_facts({"system.user": {"home": "/Users/x"}}, "Darwin"))
        == "/Users/x/Library/Jupyter/kernels"
    )


def test_where_kernels_lie_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform == "win32":
        pytest.skip("this system's variables")
    monkeypatch.delenv("JUPYTER_DATA_DIR", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    facts = make_facts({"system.user": {"home": "/home/x"}})
    assert kernels_folder(facts) == "/home/x/.local/share/jupyter/kernels"
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert kernels_folder(facts) == "/data/jupyter/kernels"
    with pytest.raises(Refused, match="no-home"):
        kernels_folder(make_facts({}))


def test_kernel_path_on_this_machine_edits_the_real_file_and_back(tmp_path: Path, journal: Journal) -> None:
    file = tmp_path / "kernel.json"
    file.write_text(json.dumps({"argv": ["python"], "env": {}}))
    raw = file.read_bytes()
    kernel = {"name": "k", "folder": str(tmp_path), "env": {}, "error": None}
    facts = make_facts({"jupyter.kernels": [kernel], "jupyter.server": {"jupyter_client": "8.6.3"}})
    fix = catalogue.FIXES["kernel-path"]
    made = fix.plan(facts, {"kernel": "k", "folder": str(tmp_path / "cuda")}, Tables())
    assert effects.apply(made, journal).ok
    variable, separator = ("PATH", ";") if sys.platform == "win32" else ("LD_LIBRARY_PATH", ":")
    assert json.loads(file.read_text("utf-8"))["env"] == {variable: f"{tmp_path / 'cuda'}{separator}${{{variable}}}"}
    assert undo.undo(journal, "1").ok and file.read_bytes() == raw
    file.write_text('{"argv": ["C:\\Users"]}')
    with pytest.raises(Refused, match="kernelspec-broken"):
        fix.plan(facts, {"kernel": "k", "folder": "x"}, Tables())
    file.unlink()
    with pytest.raises(Refused, match="no-kernel"):
        fix.plan(facts, {"kernel": "k", "folder": "x"}, Tables())


def test_a_broken_kernel_of_that_name_is_written_anew(tmp_path: Path, journal: Journal) -> None:
    file = tmp_path / "kernels" / "tf" / "kernel.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(b'{"argv": ["C:\\Users"]}')
    interpreter = {"executable": sys.executable, "prefix": "x", "version": [3, 7], "ipykernel": "5.5.6"}
    facts = make_facts({"target.interpreter": interpreter, "env.process": {"JUPYTER_DATA_DIR": str(tmp_path)}})
    fix = catalogue.FIXES["register-ipykernel"]
    assert effects.apply(fix.plan(facts, {"name": "tf"}, Tables()), journal).ok
    spec = json.loads(file.read_text("utf-8"))
    assert spec["argv"][0] == sys.executable and spec["metadata"] == {}  # ipykernel 5 has no debugger
    with pytest.raises(Refused, match="kernel-there"):
        fix.plan(facts, {"name": "tf"}, Tables())
    assert undo.undo(journal, "1").ok and file.read_bytes() == b'{"argv": ["C:\\Users"]}'


def test_commands_for_every_step_and_shell(tmp_path: Path) -> None:
    steps: list[Step] = [
        MoveAside(path="a b", to="c"),
        RemoveFile(path="it's"),
        WriteFile(path="d/e", text="x\n", mode=0o755),
        UnsetUserVariable(name="N", expected=Variable("N", "1", "REG_SZ")),
        SetUserVariable(name="N", value="C:\\a\\", type="REG_SZ", expected=Variable("N")),
        Run(argv=("pip", "install", "numpy<2")),
        EditKernelspec(path=str(tmp_path / "none.json"), changes={"a": 1}),
    ]
    texts = {shell: [commands.for_step(step, shell) for step in steps] for shell in ("cmd", "powershell", "bash")}
    assert texts["cmd"] == [
        ['move "a b" c'],
        ['del "it\'s"'],
        ['notepad "d/e"'],
        ['reg delete "HKCU\\Environment" /v N /f'],
        ['reg add "HKCU\\Environment" /v N /t REG_SZ /d "C:\\a\\\\" /f'],
        ['pip install "numpy<2"'],
        [f'notepad "{tmp_path / "none.json"}"'],
    ]
    assert texts["bash"][:3] == [["mv -n 'a b' c"], ["rm 'it'\"'\"'s'"], texts["bash"][2]]
    assert texts["bash"][2][1:] == ["printf %s 'x\n' > d/e", "chmod 755 -- d/e"]
    assert texts["bash"][3:5] == [[], []] and texts["bash"][6] == []
    assert texts["powershell"][0] == ["Move-Item -LiteralPath 'a b' -Destination 'c'"]
    assert texts["powershell"][1] == ["Remove-Item -LiteralPath 'it''s'"]
    assert texts["powershell"][3] == ["[Environment]::SetEnvironmentVariable('N', $null, 'User')"]
    assert texts["powershell"][5] == ["& pip install 'numpy<2'"] and "WriteAllText" in texts["powershell"][2][1]


def test_previews_of_every_step(tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    changed.write_text("a\nb\n")
    steps: tuple[Step, ...] = (
        WriteFile(path=str(changed), text="a\nc\n", expected="0" * 64),
        MoveAside(path="a", to="b"),
        RemoveFile(path="a"),
        SetUserVariable(name="N", value="2", type="REG_SZ", expected=Variable("N", "1", "REG_SZ")),
        UnsetUserVariable(name="N", expected=Variable("N", "1", "REG_SZ")),
        Run(argv=("pip",), undo_argv=(("pip", "uninstall"),)),
        EditKernelspec(path=str(tmp_path / "none.json"), changes={"env": {"A": "1"}}),
        EditKernelspec(path=str(changed), changes={"env": {}}),
    )
    lines = [(line.kind, line.text) for line in preview.preview(plan(*steps), make_facts({})).lines]
    for expected in [
        ("note", "fix.error.changed-since"),
        ("diff=", "a"),
        ("diff-", "b"),
        ("diff+", "c"),
        ("note", "fix.note.move"),
        ("note", "fix.note.remove"),
        ("diff-", "N=1"),
        ("diff+", "N=2"),
        ("command", "pip"),
        ("note", "fix.note.undo-command"),
        ("diff+", "env: {'A': '1'}"),
        ("note", "fix.refuse.kernelspec-broken"),
    ]:
        assert expected in lines


def test_errors_of_the_system_have_their_own_words() -> None:
    for number, key in [
        (errno.ENOSPC, "disk-full"),
        (errno.EACCES, "no-permission"),
        (errno.EEXIST, "already-there"),
        (errno.EIO, "system"),
    ]:
        assert effects.explain(OSError(number, "words", "file")).key == f"fix.error.{key}"
    locked = OSError(errno.EINVAL, "used by another process", "file")
    locked.winerror = 32  # type: ignore[attr-defined,unused-ignore]
    assert effects.explain(locked).key == "fix.error.in-use"
    assert effects.explain(ValueError("x")).params == {"what": "ValueError", "error": "x"}
    assert effects.explain(running.CannotScan("x")).key == "fix.error.cannot-read-packages"


def test_an_interpreter_that_is_gone_or_silent(tmp_path: Path, journal: Journal) -> None:
    for python in (str(tmp_path / "gone"), sys.executable):
        step = Run(argv=(sys.executable, "-c", ""), python=python, packages={"no-such-thing": None})
        done = effects.apply(plan(step), journal)
        assert not done.ok and done.error is not None
    assert done.error.key == "fix.error.not-as-written"
    with pytest.raises(running.CannotScan):
        running.packages("/bin/true" if sys.platform != "win32" else str(tmp_path / "gone"))


def test_only_kernelspecs_are_kernelspecs() -> None:
    with pytest.raises(kernelspecs.Broken):
        kernelspecs.parse("[1]")
    assert kernelspecs.edited('{"a": "\\u4e2d"}', {"b": "文", "a": None}) == '{\n "b": "\\u6587"\n}'


def test_scripts_in_any_encoding_come_back_byte_for_byte() -> None:
    page = make_facts({"system.locale": {"acp": 936}})
    for raw in ("环境".encode(), "环境".encode("gbk"), b"\xff\xfe\x80\r\n"):
        text, encoding = decoded(raw, page)
        assert text.encode(encoding) == raw
    assert decoded(b"\xff", make_facts({})) == ("\xff", "latin-1")


def test_a_script_without_deactivate_is_refused_and_a_former_block_replaced() -> None:
    with pytest.raises(Refused, match="no-deactivate"):
        with_blocks("echo hi\n", "#", ["a"], ["b"])
    once = with_blocks("@echo off\r\nset X=1", "@rem", ["@set A=1"], [])
    assert with_blocks(once, "@rem", ["@set A=2"], []) == once.replace("A=1", "A=2")
    assert "\n" not in once.replace("\r\n", "")


def test_an_undo_whose_command_fails_says_so_and_can_be_called_again(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = {"pbuf": "4"}
    python = sys.executable
    monkeypatch.setattr(
        running, "packages", lambda python, names=(), limit=0: Packages(python=python, versions=dict(now))
    )
    step = Run(argv=(python, "-c", ""), python=python, packages={"pbuf": "4"})
    entry = journal.begin(plan(step))
    journal.step_intent(
        entry, 0, Packages(python=python, versions={"pbuf": "3"}), Packages(python=python, versions=now)
    )
    journal.step_done(entry, 0, Packages(python=python, versions=now), 0.0)
    journal.finish(entry, "applied")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(running, "restoring", lambda *a: ((python, "-c", "raise SystemExit(4)"),))
    failed = undo.undo(journal, entry)
    assert failed.error is not None and failed.error.params["exit"] == "4"
    assert [e.id for e in journal.unfinished()] == [entry] and journal.entry(entry).undoable
    now["pbuf"] = "3"  # the person did it
    monkeypatch.setattr(running, "restoring", lambda *a: ())
    assert undo.recover(journal)[entry].ok and journal.entry(entry).status == "undone"


def test_recovering_what_cannot_be_undone_closes_it_and_finishing_does_it_again(
    tmp_path: Path, journal: Journal
) -> None:
    from tftriage.fixes.plans import Nothing

    file = tmp_path / "ran"
    step = Run(argv=(sys.executable, "-c", f"open({str(file)!r}, 'w')"))
    made = Plan(fix="t", steps=(step,), verify=VERIFY, undoable=False)
    entry = journal.begin(made)
    journal.step_intent(entry, 0, Nothing(), Nothing())
    result = undo.recover(journal, entry)[entry]
    assert result.error is not None and result.error.key == "fix.error.not-undoable" and not journal.unfinished()
    entry = journal.begin(made)
    journal.step_intent(entry, 0, Nothing(), Nothing())
    assert undo.recover(journal, entry, "finish")[entry].ok


def test_finishing_over_someone_elses_change_takes_back_and_asks(tmp_path: Path, journal: Journal) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    two.write_text("before")
    made = plan(WriteFile(path=str(one), text="1"), WriteFile(path=str(two), text="2"))
    entry = journal.begin(made)
    for index, step in enumerate(made.steps):
        before = effects.keep(effects.states.look(step, undo.user_registry()), journal)
        journal.step_intent(entry, index, before, effects.states.intended(step, before))
    two.write_text("someone else")
    result = undo.recover(journal, how="finish")[entry]
    assert result.error is not None and result.error.key == "fix.error.changed-since"
    assert [c.step for c in result.conflicts] == [1] and not one.exists() and two.read_text() == "someone else"
