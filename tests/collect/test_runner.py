"""The protocol: one line per fact, whatever collectors, libraries and callers do."""

import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from tftriage.collect import registry, runner

ROOT = str(Path(__file__).resolve().parents[2])
STAND_INS = """
import os, subprocess, sys, threading, time
from tftriage.collect import child, registry, runner

runner.ALONE = ("alone.a", "alone.b")
log = []

def stand_in(name, limit=10.0):
    return registry.collector(name, limit)

@stand_in("t.ok")
def ok(args):
    return {"args": args}, "nothing"

@stand_in("t.absent")
def absent(args):
    raise registry.Absent("not there")

@stand_in("t.skipped")
def skipped(args):
    raise registry.Skipped("not here")

@stand_in("t.failed")
def failed(args):
    raise registry.Failed("no right")

@stand_in("t.broken")
def broken(args):
    return 1 // 0, ""

@stand_in("t.exits")
def exits(args):
    sys.exit(3)

@stand_in("t.chatter")
def chatter(args):
    print("chatter of a library")
    os.write(1, b"native chatter\\n")
    subprocess.check_call([sys.executable, "-c", "print('a child on the inherited output')"])
    return 1, ""

@stand_in("t.hangs", 1.0)
def hangs(args):
    threading.Event().wait()

@stand_in("t.child", 1.5)
def with_child(args):
    code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
    child.run([sys.executable, "-c", code, args["file"]], 60)
    return "late", ""

@stand_in("t.sleeps")
def sleeps(args):
    began = time.time()
    time.sleep(1)
    return [began, time.time()], ""

@stand_in("alone.a")
def alone_a(args):
    return sleeps(args)

@stand_in("alone.b")
def alone_b(args):
    return sleeps(args)

@stand_in("t.unserialisable")
def unserialisable(args):
    return {"x": object()}, ""

@stand_in("t.nan")
def nan(args):
    return float("nan"), ""

@stand_in("t.surrogate")
def surrogate(args):
    return {"path": "/home/\\udcff/\\u5f20", "smile": "\\U0001f600"}, ""

runner.main()
"""


def collector(extra="", **options):
    source = STAND_INS.replace("runner.main()", textwrap.dedent(extra) + "\nrunner.main()")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", source], cwd=ROOT, **{**pipes, **options})


def ask(*lines, extra="", limit=60):
    process = collector(extra)
    data = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    out, err = process.communicate(data, limit)
    facts = [json.loads(line) for line in out.decode("ascii").splitlines()]
    return facts, process.returncode, err


def one(name, **args):
    facts, code, _ = ask({"collect": name, "args": args})
    assert code == 0
    assert [fact["fact"] for fact in facts] == [name]
    assert list(facts[0]) == ["fact", "status", "value", "source", "seconds", "note"]
    return facts[0]


def test_a_value_comes_back_with_its_source_and_the_limit_in_force():
    fact = one("t.ok", module="tensorflow")
    assert (fact["status"], fact["source"], fact["note"]) == ("ok", "nothing", "")
    assert fact["value"] == {"args": {"module": "tensorflow", "limit": 10.0}}


@pytest.mark.parametrize(
    ("name", "status", "note"),
    [
        ("t.absent", "absent", "not there"),
        ("t.skipped", "skipped", "not here"),
        ("t.failed", "error", "no right"),
        ("t.broken", "error", "ZeroDivisionError: integer division or modulo by zero"),
        ("t.exits", "error", "SystemExit: 3"),
        ("t.none", "error", "no such collector"),
    ],
)
def test_every_end_of_a_collector_is_a_fact(name, status, note):
    fact = one(name)
    assert (fact["status"], fact["value"], fact["note"]) == (status, None, note)


@pytest.mark.parametrize("name", ["t.unserialisable", "t.nan"])
def test_a_value_that_json_cannot_hold_is_an_error(name):
    fact = one(name)
    assert (fact["status"], fact["value"]) == ("error", None)
    assert fact["note"].startswith("a value that JSON cannot hold")


def test_undecodable_names_are_spelled_out_so_that_strict_readers_take_them():
    value = one("t.surrogate")["value"]
    assert value == {"path": "/home/\\udcff/张", "smile": "\U0001f600"}


def test_chatter_of_libraries_and_children_does_not_mix_with_facts():
    facts, code, err = ask({"collect": "t.chatter"})
    assert (code, [fact["value"] for fact in facts]) == (0, [1])
    for said in (b"chatter of a library", b"native chatter", b"a child on the inherited output"):
        assert said in err


def test_a_hung_collector_is_a_timeout_and_does_not_keep_the_process():
    began = time.monotonic()
    fact = one("t.hangs")
    assert (fact["status"], fact["note"]) == ("timeout", "no answer within 1 s")
    assert fact["seconds"] >= 1
    assert time.monotonic() - began < 15


def test_the_request_can_set_another_limit():
    assert one("t.hangs", limit=0.3)["note"] == "no answer within 0.3 s"


@pytest.mark.parametrize("limit", [0, -1, "60", True, None, 1e9])
def test_a_limit_that_is_no_number_of_seconds_is_refused(limit):
    assert one("t.ok", limit=limit)["status"] == "error"


def test_at_the_deadline_the_programs_of_the_fact_are_ended(tmp_path):
    file = tmp_path / "pid"
    assert one("t.child", file=str(file))["status"] == "timeout"
    assert not running(int(file.read_text()))


def running(pid):
    if os.name == "nt":
        return str(pid) in subprocess.run(["tasklist"], capture_output=True, text=True).stdout
    until = time.monotonic() + 3
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return False
        except FileNotFoundError:
            return False
        time.sleep(0.05)
    return True


GARBAGE = [
    b"\xff\xfe\x00garbage\n",
    b"{\n",
    b"[]\n",
    b"null\n",
    b'"collect"\n',
    b'{"collect": 3}\n',
    b'{"collect": "t.ok", "args": [1]}\n',
    b'{"args": {}}\n',
    b"[" * 100_000 + b"\n",
    b'{"collect": "' + b"x" * 3_000_000 + b'"}\n',
    b"\x00\n",
]


def test_garbage_is_answered_and_the_next_request_still_is():
    facts, code, _ = ask(*GARBAGE, b"\n", {"collect": "t.ok"})
    assert code == 0
    wrong = [fact for fact in facts if fact["fact"] == "protocol"]
    assert len(wrong) == len(GARBAGE)
    assert all(fact["status"] == "error" and fact["note"] for fact in wrong)
    assert [fact["status"] for fact in facts if fact["fact"] == "t.ok"] == ["ok"]


def test_a_request_cut_short_by_the_end_of_input_is_a_protocol_error():
    facts, code, _ = ask({"collect": "t.ok"}, b'{"collect": "t.o')
    assert code == 0
    assert sorted(fact["fact"] for fact in facts) == ["protocol", "t.ok"]


def test_quit_lets_what_runs_finish_and_hears_nothing_more():
    facts, code, _ = ask({"collect": "t.sleeps"}, {"quit": True}, {"collect": "t.ok"})
    assert (code, [fact["fact"] for fact in facts]) == (0, ["t.sleeps"])


def test_facts_are_collected_at_the_same_time_and_arrive_as_they_finish():
    facts, _, _ = ask({"collect": "t.sleeps"}, {"collect": "t.sleeps"}, {"collect": "t.ok"})
    assert [fact["fact"] for fact in facts] == ["t.ok", "t.sleeps", "t.sleeps"]
    first, second = (fact["value"] for fact in facts[1:])
    assert max(first[0], second[0]) < min(first[1], second[1])


def test_those_that_import_tensorflow_run_one_after_another_in_order():
    facts, _, _ = ask({"collect": "alone.b"}, {"collect": "alone.a"}, {"collect": "t.ok"})
    assert [fact["fact"] for fact in facts] == ["t.ok", "alone.b", "alone.a"]
    assert facts[1]["value"][1] <= facts[2]["value"][0]


def test_a_module_that_cannot_be_imported_answers_for_its_facts():
    break_it = """
    import types
    sys.modules["tftriage.collect.gpu"] = None
    """
    facts, code, _ = ask({"collect": "gpu.devices"}, {"collect": "t.ok"}, extra=break_it)
    by_name = {fact["fact"]: fact for fact in facts}
    assert code == 0
    assert by_name["gpu.devices"]["status"] == "error"
    assert by_name["gpu.devices"]["note"].startswith("collector module gpu failed: ")
    assert by_name["t.ok"]["status"] == "ok"


@pytest.mark.skipif(os.name == "nt", reason="a closed pipe shows at the next line there")
def test_when_the_reader_is_gone_everything_ends(tmp_path):
    file = tmp_path / "pid"
    process = collector(stderr=subprocess.DEVNULL)
    process.stdin.write(json.dumps({"collect": "t.child", "args": {"file": str(file), "limit": 60}}).encode() + b"\n")
    process.stdin.flush()
    until = time.monotonic() + 10
    while not (file.exists() and file.read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    process.stdout.close()
    assert process.wait(10) == 1
    assert not running(int(file.read_text()))
    process.stdin.close()


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_signal_ends_the_children_too(tmp_path):
    file = tmp_path / "pid"
    process = collector()
    process.stdin.write(json.dumps({"collect": "t.child", "args": {"file": str(file), "limit": 60}}).encode() + b"\n")
    process.stdin.flush()
    until = time.monotonic() + 10
    while not (file.exists() and file.read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    process.terminate()
    process.communicate(timeout=10)
    assert process.returncode == 128 + 15
    assert not running(int(file.read_text()))


def test_the_real_collector_answers_about_this_very_python():
    request = json.dumps({"collect": "target.interpreter", "args": {"python": sys.executable}}).encode()
    result = subprocess.run(
        [sys.executable, "-m", "tftriage.collect"], input=request, capture_output=True, cwd=ROOT, timeout=60
    )
    fact = json.loads(result.stdout)
    assert (result.returncode, fact["status"]) == (0, "ok")
    assert fact["value"]["version"] == list(sys.version_info[:3])


def test_every_registered_fact_has_one_module_that_answers_for_it():
    failed = runner.load()
    assert failed == {}
    for name, entry in registry.COLLECTORS.items():
        owners = [module for module, facts in runner.MODULES if any(runner._covers(one, name) for one in facts.split())]
        assert len(owners) == 1, name
        assert entry.limit > 0


def test_a_thread_that_is_left_behind_is_no_reason_to_wait():
    # serve() itself returns while the hung thread is still there; main() then ends the process.
    before = threading.active_count()
    registry.COLLECTORS["t.stays"] = registry.Collector(lambda args: threading.Event().wait(5) and ("", ""), 0.2)
    try:
        answer, seconds = runner.observe("t.stays", {}, {})
    finally:
        del registry.COLLECTORS["t.stays"]
    assert (answer[0], threading.active_count()) == ("timeout", before + 1)
    assert seconds < 3
