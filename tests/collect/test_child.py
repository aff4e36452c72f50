"""Programs that hang, flood, leave children or speak in code pages must not harm the collector."""

import os
import subprocess
import sys
import threading
import time

import pytest

from tftriage.collect import child

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX processes")


def python(source: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", source, *arguments]


def alive(pid: int) -> bool:
    if os.name == "nt":
        return str(pid) in subprocess.run(["tasklist"], capture_output=True, text=True).stdout
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int) -> bool:
    until = time.monotonic() + 5
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(pid)


def test_streams_exit_and_input_are_kept_apart():
    result = child.run(
        python("import sys; print(sys.stdin.read()[::-1]); print('e', file=sys.stderr); sys.exit(7)"), 20, stdin=b"abc"
    )
    assert (result.exit, result.out.strip(), result.err.strip(), result.timed_out) == (7, b"cba", b"e", False)


def test_environment_and_folder_are_the_given_ones(tmp_path):
    env = dict(os.environ, ONLY_HERE="x")
    result = child.run(python("import os; print(os.environ['ONLY_HERE'], os.getcwd())"), 20, env, str(tmp_path))
    assert child.decode(result.out).split() == ["x", str(tmp_path)]


def test_a_program_that_is_not_there_raises():
    with pytest.raises(OSError):
        child.run([os.path.join("nowhere", "no-such-program")], 5)


def test_a_hang_ends_at_the_limit_with_what_it_said_before():
    result = child.run(python("import time; print('before', flush=True); time.sleep(60)"), 1.5)
    assert result.timed_out
    assert result.out.strip() == b"before"
    assert result.seconds < 10


SPAWN = """
import subprocess, sys, time
options = {"start_new_session": True} if "session" in sys.argv else {}
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], **options)
print(other.pid, flush=True)
time.sleep(60 if "wait" in sys.argv else 0)
"""


@pytest.mark.parametrize("session", [(), pytest.param(("session",), marks=posix)])
def test_a_hang_takes_its_grandchildren_with_it(session):
    result = child.run(python(SPAWN, "wait", *session), 2)
    assert result.timed_out
    assert gone(int(result.out))


def test_a_grandchild_that_holds_the_pipe_delays_nothing_and_ends():
    result = child.run(python(SPAWN), 30)
    assert (result.exit, result.timed_out) == (0, False)
    assert result.seconds < 10
    assert gone(int(result.out))


def test_of_a_flood_the_beginning_and_the_end_are_kept():
    size = child.KEPT + 3_000_000
    middle = f"[w(b'x' * 1000) for _ in range({size // 1000})]"
    source = f"import sys; w = sys.stdout.buffer.write; w(b'first'); {middle}; w(b'last')"
    result = child.run(python(source), 60)
    assert result.out.startswith(b"firstxxx")
    assert result.out.endswith(b"xxxlast")
    assert b"bytes left out" in result.out
    assert len(result.out) < child.KEPT + 100


def test_input_that_is_not_read_is_no_error():
    assert child.run(python("pass"), 20, stdin=b"x" * 1_000_000).exit == 0


@posix
def test_a_hung_python_tells_its_stack():
    argv = [sys.executable, "-X", "faulthandler", "-c", "import time\ndef culprit():\n time.sleep(60)\nculprit()"]
    result = child.run(argv, 1.5, stack=True)
    assert result.timed_out
    assert b"in culprit" in result.err


def test_children_of_a_thread_end_with_its_fact_and_no_more_are_started():
    said = []

    def work():
        child.allow(threading.get_ident())
        said.append(child.run(python("import time; time.sleep(60)"), 50))
        try:
            child.run(python("pass"), 5)
        except child.Ended:
            said.append("refused")

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.5)
    child.end_children(thread.ident)
    thread.join(10)
    assert said[0].timed_out
    assert said[1] == "refused"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"plain\r\n", "plain\r\n"),
        ("DLL load failed: 找不到指定的模块。".encode(), "DLL load failed: 找不到指定的模块。"),
        (b"\xef\xbb\xbfwith a mark", "with a mark"),
        ("名称\r\n".encode("utf-16"), "名称\r\n"),
        ("Name  GeForce\r\n".encode("utf-16-le"), "Name  GeForce\r\n"),
        ("Name  GeForce\r\n".encode("utf-16-be"), "Name  GeForce\r\n"),
        ("找不到指定的模块。\n".encode("gbk"), "找不到指定的模块。\n"),
        ("张伟: ✓\n".encode() + "找不到\n".encode("gbk"), "张伟: ✓\n找不到\n"),
        (b"kept as such: \xff\x00\n", "kept as such: \\xff\x00\n"),
        (b"a\x00b", "a\x00b"),
    ],
)
def test_decode(monkeypatch, data, text):
    monkeypatch.setattr(child, "code_pages", lambda: ["cp936"])
    assert child.decode(data) == text


def test_a_new_console_gets_the_registry_and_not_this_process():
    machine = [
        ("Path", r"%SystemRoot%\system32;%CUDA_PATH%\bin", True),
        ("CUDA_PATH", r"C:\CUDA\v10.1", False),
        ("TEMP", r"%SystemRoot%\TEMP", True),
        ("ComSpec", r"%SystemRoot%\system32\cmd.exe", True),
    ]
    user = [("PATH", r"%USERPROFILE%\bin;%NOT_SET%", True), ("TEMP", r"%USERPROFILE%\Temp", True), ("Mine", "1", False)]
    present = {
        "SystemRoot": r"C:\Windows",
        "USERPROFILE": r"C:\Users\张伟",
        "PATH": r"C:\old",
        "VIRTUAL_ENV": "x",
        "WINEPREFIX": "w",
    }
    assert child.rebuilt(machine, user, present) == {
        "SYSTEMROOT": r"C:\Windows",
        "USERPROFILE": r"C:\Users\张伟",
        "WINEPREFIX": "w",
        "CUDA_PATH": r"C:\CUDA\v10.1",
        "PATH": r"C:\Windows\system32;C:\CUDA\v10.1\bin;C:\Users\张伟\bin;%NOT_SET%",
        "TEMP": r"C:\Users\张伟\Temp",
        "COMSPEC": r"C:\Windows\system32\cmd.exe",
        "MINE": "1",
    }


def test_a_path_of_the_plain_type_stays_unexpanded():
    user = [("Path", r"%SystemDrive%\CUDA\v10.1\bin", False)]
    assert child.rebuilt([], user, {"SYSTEMDRIVE": "C:"})["PATH"] == r"%SystemDrive%\CUDA\v10.1\bin"


@pytest.mark.skipif(os.name == "nt", reason="on Windows the registry decides")
def test_elsewhere_a_new_console_gets_a_copy():
    fresh = child.fresh_environment()
    assert fresh == dict(os.environ)
    fresh["PATH"] = ""
    assert os.environ["PATH"]
