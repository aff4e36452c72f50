"""Commands of a fix, and what they did to an interpreter's packages.

Exit status 0 proves nothing: the packages are read by the interpreter itself before and afterwards.
"""

# Paths here are texts of the machine they are of, kept byte for byte.
# ruff: noqa: PTH120
from __future__ import annotations

import collections
import contextlib
import errno
import json
import locale
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from tftriage.fixes.plans import Packages

# Run by the target interpreter (3.6 and later, standard library only). First on sys.path wins, as at import.
# With names as arguments it also counts the files of their RECORD that are missing or of another size.
_SCAN = r"""
import csv, json, os, re, sys
def norm(n): return re.sub(r"[-_.]+", "-", n).lower()
found, damaged, want = {}, {}, set(sys.argv[1:])
for folder in sys.path:
    try: names = sorted(os.listdir(folder or "."))
    except OSError: continue
    for d in names:
        if d[:1] == "~" or not d.lower().endswith((".dist-info", ".egg-info")): continue
        path = os.path.join(folder, d)
        inner = "METADATA" if d.lower().endswith("dist-info") else "PKG-INFO"
        meta = path if os.path.isfile(path) else os.path.join(path, inner)
        name = version = None
        try:
            with open(meta, "rb") as f:
                for line in f.read().decode("utf-8", "replace").splitlines():
                    if not line.strip(): break
                    if line.lower().startswith("name:") and name is None: name = line[5:].strip()
                    if line.lower().startswith("version:") and version is None: version = line[8:].strip()
        except (IOError, OSError): continue
        if not name or not version or norm(name) in found: continue
        found[norm(name)] = version
        if norm(name) in want:
            bad = 0
            try:
                with open(os.path.join(path, "RECORD"), "rb") as f:
                    rows = list(csv.reader(f.read().decode("utf-8", "replace").splitlines()))
            except (IOError, OSError): rows, bad = [], 1
            known = set(row[0] for row in rows if row)
            for row in rows:
                # The installer's own notes are not what is imported; 2.3.1's METADATA differs from its RECORD, too.
                if len(row) < 3 or not row[0] or ".dist-info/" in row[0]: continue
                top = row[0].split("/")[0]
                # 2.3.1 for Windows lists its files under another name than they have, and again under their own.
                twin = top[:11] == "tensorflow_" and row[0].replace(top, "tensorflow") in known
                if twin and not os.path.exists(os.path.join(folder, top)): continue
                file = os.path.join(folder, *row[0].split("/"))
                if os.name == "nt" and len(file) > 240: file = "\\\\?\\" + os.path.abspath(file)
                try: size = os.stat(file).st_size
                except OSError: bad += 0 if row[0].endswith(".pyc") else 1; continue
                if row[2] and int(row[2]) != size: bad += 1
            damaged[norm(name)] = bad
print("\n<tftriage " + json.dumps({"versions": found, "damaged": damaged}) + " tftriage>")
"""
# A command is held back until the journal knows its process: if we die before, the pipe closes and nothing was done.
# On Windows, where exec would leave a new process behind, this one stays and waits for the command.
_GATE = r"""
import os, sys
if not os.read(0, 1): sys.exit(0)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.environ.pop("__PYVENV_LAUNCHER__", None)
if os.name == "nt":
    import subprocess
    sys.exit(subprocess.call(sys.argv[1:]))
os.execvp(sys.argv[1], sys.argv[1:])
"""
_MARKED = re.compile(rb"<tftriage (\{.*\}) tftriage>")
_TAIL = 60  # lines kept of a command's output


class CannotScan(Exception):
    """The interpreter did not tell its packages; the message is the end of what it said instead."""


class Result(msgspec.Struct, frozen=True):
    """A command's end: ``exit`` None when it was stopped at the limit; the last lines it wrote."""

    exit: int | None
    tail: str


def environment(
    changes: Mapping[str, str | None] | None = None, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of a command: ours, less what belongs to the interpreter that runs tftriage, with ``changes``."""
    child = dict(os.environ if base is None else base)
    for name in (
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "PYTHONWARNINGS",
        "__PYVENV_LAUNCHER__",
        "PIP_TARGET",
    ):
        child.pop(name, None)
    child.update({"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PYTHONIOENCODING": "utf-8"})
    for name, value in (changes or {}).items():
        if value is None:
            child.pop(name, None)
        else:
            child[name] = value
    return child


def decode(line: bytes) -> str:
    """A line of a tool: UTF-8, else the system's code page, undecodable bytes replaced."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode(locale.getpreferredencoding(False), "replace")


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str | None] | None = None,
    cwd: str | None = None,
    limit: float = 3600.0,
    on_output: Callable[[str], None] | None = None,
    on_start: Callable[[int, float], None] | None = None,
) -> Result:
    """Run a command to its end, without a shell and without a standard input.

    ``on_output`` gets each line as it comes, ``on_start`` the process's number and start time. At ``limit``
    seconds, or when anything is raised meanwhile, the whole process tree is ended. ``OSError`` when it cannot start.
    """
    if shutil.which(argv[0]) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _GATE, *argv],
        env=environment(env),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    tail: collections.deque[str] = collections.deque(maxlen=_TAIL)
    stopped = threading.Event()

    def stop() -> None:
        stopped.set()
        end_tree(process.pid)

    timer = threading.Timer(limit, stop)
    timer.daemon = True
    timer.start()
    try:
        if on_start is not None:
            on_start(process.pid, started(process.pid) or time.time())
        assert process.stdout is not None and process.stdin is not None
        with contextlib.suppress(OSError):  # it was ended at the limit already
            process.stdin.write(b"!")
            process.stdin.close()
        for raw in process.stdout:
            line = decode(raw.rstrip(b"\r\n"))
            tail.append(line)
            if on_output is not None:
                on_output(line)
        exit_status = process.wait()
    except BaseException:
        end_tree(process.pid)
        process.wait()
        raise
    finally:
        timer.cancel()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
    return Result(None if stopped.is_set() else exit_status, "\n".join(tail))


def started(pid: int) -> float | None:
    """When a process started (seconds since 1970), or None when there is none."""
    import psutil  # a tenth of the start-up of a screen that may never run anything

    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None


def end_tree(pid: int) -> None:
    """End a process that we started, and its children."""
    import psutil

    try:
        process = psutil.Process(pid)
        family = [*process.children(recursive=True), process]
    except psutil.Error:
        return
    for member in family:
        try:
            member.kill()
        except psutil.Error:
            continue


def packages(python: str, names: Sequence[str] = (), limit: float = 120.0) -> Packages:
    """What is installed for an interpreter, as it sees it; ``names``: also compare these with their RECORD.

    Nothing is imported. Raises ``CannotScan``.
    """
    cwd = os.path.dirname(python) or None
    try:
        done = subprocess.run(
            [python, "-c", _SCAN, *names],
            env=environment(), cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotScan(str(error)) from error
    marked = _MARKED.search(done.stdout)
    if marked is None:
        raise CannotScan(decode(done.stderr)[-500:])
    value = json.loads(marked.group(1))
    return Packages(python=python, versions=value["versions"], damaged=value["damaged"])


def restoring(python: str, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """The commands that bring back exactly the versions ``before``, from ``after``.

    Without dependencies: the former set need not have been a consistent one, and it is to be the former one.
    """
    added = sorted(name for name in after if name not in before)
    changed = sorted(f"{name}=={version}" for name, version in before.items() if after.get(name) != version)
    commands: list[tuple[str, ...]] = []
    if added:
        commands.append((python, "-m", "pip", "uninstall", "-y", *added))
    if changed:
        commands.append((python, "-m", "pip", "install", "--no-deps", *changed))
    return tuple(commands)


def utf8_safe(version: Sequence[int]) -> bool:
    """Whether PYTHONUTF8=1 may be set for pip: not on Windows, whose pip.ini may be in the system's code page."""
    return sys.platform != "win32" and tuple(version[:2]) >= (3, 7)
