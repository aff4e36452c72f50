"""The collector without tftriage: look at this machine and write a redacted case. Started by boot.py, from one file.

The looking is done by a second process, exactly as when tftriage itself looks: a driver library that crashes takes
that process along, and what it owed is an error in the case.
"""

import argparse
import getpass
import json
import os
import pkgutil
import queue
import re
import socket
import subprocess
import sys
import threading
import time
from typing import Any, Dict, Iterable, List, Optional, Tuple

from . import whole
from .redaction import RedactionError, redact

# An interpreter that executes the first line of what it is told, and leaves the rest to that line.
LISTEN = "import sys;exec(sys.stdin.buffer.readline())"
LATE = ("tf.libraries", "dlls.tree")  # need to know which TensorFlow it is
MAX_TEXT = 2 * 1024 * 1024
Facts = Dict[str, Dict[str, Any]]


def main(argv: List[str], first_line: bytes) -> int:
    """Write the case; 0, or 4 when this machine could not be looked at or nothing may be written."""
    options = _options(argv)
    plan = json.loads((pkgutil.get_data("tftriage.portable", "plan.json") or b"{}").decode("utf-8"))
    text = _text(options.error)
    until = time.monotonic() + options.limit
    _say("tftriage: looking at this computer, up to {:.0f} s ... / 正在检查这台电脑，最多 {:.0f} 秒……", options.limit)
    collector = Collector(first_line)
    try:
        facts = collector.ask([("pythons.list", {}), ("env.process", {})], min(until, time.monotonic() + 40))
        python = options.python or choose(facts)
        _say("tftriage: Python {} / 检查的 Python：{}", python)
        args = {"python": python, "module": "tensorflow"}
        early = [name for name in plan["facts"] if name not in facts and name not in LATE]
        facts.update(collector.ask([(name, args) for name in early], until))
        late = [(name, dict(args, **late_arguments(name, facts, plan["builds"]))) for name in LATE]
        facts.update(collector.ask(late, max(until, time.monotonic() + 10)))
    finally:
        collector.close()
    case = {
        "format": "tftriage-case", "schema": plan["schema"], "tool": plan["tool"], "knowledge": plan["knowledge"],
        "created": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
        "target": {"python": python}, "text": text, "facts": list(facts.values()),
    }  # type: Dict[str, Any]  # fmt: skip
    return _finish(case, bytes.fromhex(plan["key"]), options)


def _finish(case: Dict[str, Any], key: bytes, options: argparse.Namespace) -> int:
    try:
        data = json.dumps(redact(case, key, *own_names()), ensure_ascii=True, indent=1).encode("ascii")
    except RedactionError as error:
        _say("tftriage: nothing was written: {} / 没有写入任何文件：脱敏没能完成", error)
        return _end(options, 4)
    if options.output == "-":
        sys.stdout.buffer.write(data + b"\n")
        sys.stdout.buffer.flush()
    else:
        try:
            whole.write(data + b"\n", options.output)
        except OSError as error:
            _say("tftriage: {} cannot be written: {} / 无法写入", options.output, error.strerror or error)
            return _end(options, 4)
        place = os.path.abspath(options.output)
        _say("tftriage: written: {}  Send this file. / 已写入：{}  请把这个文件发给助教。", place)
    seen = any(fact["status"] not in ("error", "timeout") for fact in case["facts"])
    return _end(options, 0 if seen else 4)


def _options(argv: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="collect.pyz", description="Look at this machine's TensorFlow and write a file for whoever helps you. "
        "Names, addresses and passwords are taken out of it. Nothing is installed, changed or sent.",
    )  # fmt: skip
    piped = not sys.argv[0] or sys.argv[0] in ("-", "-c")
    default = "-" if piped else "tftriage-case.json"
    parser.add_argument("-o", "--output", default=default, metavar="FILE", help="where to write (- is standard output)")
    parser.add_argument("--python", metavar="PATH", help="the Python in which TensorFlow fails")
    parser.add_argument("--error", metavar="FILE", help="a file with the error text")
    parser.add_argument("--limit", type=float, default=240.0, metavar="SECONDS", help="for everything together")
    return parser.parse_args(argv)


def _text(name: Optional[str]) -> str:
    if name is None:
        return ""
    with open(name, "rb") as stream:
        data = stream.read(MAX_TEXT)
    for encoding in ("utf-16",) if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeError:
            continue
    return data.decode("utf-8", "replace")


def choose(facts: Facts) -> str:
    """The Python to look at: the one that runs us if it has TensorFlow, else an active or the first one that has."""
    found = facts.get("pythons.list", {}).get("value") or []
    with_it = [python for python in found if python.get("tensorflow")]
    ours = _same(sys.executable or "")
    active = (facts.get("env.process", {}).get("value") or {}).get("CONDA_PREFIX")
    for python in with_it:
        if _same(python["path"]) == ours or _same(python.get("prefix") or "") == _same(sys.prefix):
            return str(python["path"])
    for python in with_it:
        if active and _same(python.get("prefix") or "") == _same(active):
            return str(python["path"])
    return str(with_it[0]["path"]) if with_it else sys.executable or "python"


def _same(path: str) -> str:
    return os.path.normcase(os.path.realpath(path)) if path else ""


def late_arguments(name: str, facts: Facts, builds: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Which libraries this TensorFlow opens by name, and for the tree what it starts from."""
    system = (facts.get("system.os", {}).get("value") or {}).get("system")
    package = facts.get("tf.package", {}).get("value") or {}
    names = libraries(package.get("version"), system, builds)
    args = {"libraries": names}  # type: Dict[str, Any]
    if name == "dlls.tree":
        native = package.get("main_native") or ""
        first = [native] if re.search(r"(?i)\.(pyd|dll|so)$", native) else []
        args["roots"] = first + names
    return args


def libraries(version: Optional[str], system: Optional[str], builds: List[Dict[str, Any]]) -> List[str]:
    """The row of exactly this version, else of its series ("2.1" stands for every 2.1.x without a row of its own)."""
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version or "")
    if not match:
        return []
    rows = dict((row["version"], row["libraries"]) for row in builds if row["system"] == system)
    series = ".".join(match.group(1, 2))
    found = rows.get("{}.{}".format(series, match.group(3) or 0), rows.get(series)) or []
    return list(found)


def own_names() -> Tuple[List[str], List[str]]:
    """This machine's names for its user and for itself: redaction looks for them wherever they stand."""
    users = [os.path.basename(os.path.expanduser("~"))]
    try:
        users.append(getpass.getuser())
    except Exception:  # no such account (a container)
        pass
    hosts = [socket.gethostname(), os.environ.get("COMPUTERNAME", ""), os.environ.get("HOSTNAME", "")]
    return users, [name for name in hosts if name]


class Collector:
    """The process that looks. It is started anew when it has died."""

    def __init__(self, first_line: bytes) -> None:
        self._first_line = first_line
        self._process = None  # type: Optional[subprocess.Popen[bytes]]
        self._lines = queue.Queue()  # type: queue.Queue[Optional[bytes]]

    def ask(self, requests: Iterable[Tuple[str, Dict[str, Any]]], until: float) -> Facts:
        """The facts asked for, whatever becomes of the process; what is not there at ``until`` is a timeout."""
        owed = dict(requests)
        found = {}  # type: Facts
        process = self._started()
        left = max(1.0, until - time.monotonic())
        status, note = "timeout", "no answer within {:.0f} s".format(left)
        try:
            assert process.stdin is not None
            for name, args in owed.items():
                process.stdin.write(json.dumps({"collect": name, "args": args}).encode("ascii") + b"\n")
            process.stdin.flush()
            while owed:
                line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
                if line is None:
                    status, note = "error", "the collector ended (exit {}) while it looked".format(process.wait())
                    break
                fact = _fact(line)
                if fact is not None and owed.pop(fact["name"], None) is not None:
                    found[fact["name"]] = fact
        except queue.Empty:
            pass
        except OSError:
            status, note = "error", "the collector ended while it was asked"
        if owed:
            self.close()
        found.update((name, {"name": name, "status": status, "note": note}) for name in owed)
        return found

    def close(self) -> None:
        """End the process and with it whatever it started."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            assert process.stdin is not None
            process.stdin.close()
        except OSError:
            pass
        for end in (None, process.terminate, process.kill):
            if end is not None:
                end()
            try:
                process.wait(timeout=2)
                return
            except subprocess.TimeoutExpired:
                continue

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            self._lines = queue.Queue()
            pipe = subprocess.PIPE
            command = [sys.executable, "-c", LISTEN]
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
            threading.Thread(target=_pump, args=(self._process, self._lines), daemon=True).start()
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(self._first_line)
            except OSError:
                pass
        return self._process


def _pump(process: "subprocess.Popen[bytes]", lines: "queue.Queue[Optional[bytes]]") -> None:
    assert process.stdout is not None
    with process.stdout as stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


def _fact(line: bytes) -> Optional[Dict[str, Any]]:
    try:
        raw = json.loads(line.decode("ascii"))
        kept = dict((key, value) for key, value in raw.items() if value not in (None, "") and key != "fact")
        return dict(kept, name=raw["fact"], status=raw["status"])
    except (ValueError, KeyError, AttributeError):
        return None


def _say(words: str, *values: Any) -> None:
    """To standard error, in both languages; a console that cannot show a letter shows a question mark."""
    text = words.format(*(values * 2 if words.count("{") > len(values) else values))
    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    sys.stderr.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    sys.stderr.flush()


def _end(options: argparse.Namespace, status: int) -> int:
    """After a double-click the window would close before anybody has read it."""
    if os.name == "nt" and options.output != "-" and sys.stdin is not None and sys.stdin.isatty():
        import ctypes

        windows = ctypes  # type: Any
        count = windows.windll.kernel32.GetConsoleProcessList((ctypes.c_ulong * 4)(), 4)
        if count <= 2:  # the launcher and us
            _say("Press Enter to close. / 按回车键关闭。")
            sys.stdin.readline()
    return status
