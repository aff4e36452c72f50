"""Another machine through the system's ssh: the probes run there, the screen here, and fixes are a script to run there.

ssh's own configuration, keys and questions apply; nothing is installed or written on the other machine. The packed
collector goes through standard input, and so do the requests after it.
"""

from __future__ import annotations

import re
import shutil
import subprocess

from tftriage import cases
from tftriage.collector import first_line
from tftriage.plain import one_line
from tftriage.portable.standalone import LISTEN
from tftriage.sources import LiveSource

PYTHONS = ("python3", "python", "py -3")  # as a login finds them: Linux, Windows, Windows with the launcher only
GREETING = re.compile(rb"tftriage-(\d+)-(\d+)")
LIMIT = 60.0  # seconds for a connection and the start of a Python


class Unreachable(Exception):
    """No Python answers there; the message is ssh's or the shell's own."""


class RemoteSource(LiveSource):
    """Facts of another machine. Live, but nothing that is changed here is changed there."""

    elsewhere = True


def connect(host: str, python: str | None = None, ssh: tuple[str, ...] = ("ssh",)) -> RemoteSource:
    """A source on ``host`` (whatever ``ssh`` takes). Raises ``Unreachable``."""
    if host.startswith("-") or not host.strip():
        raise Unreachable(f"no name of a host: {host}")
    program = shutil.which(ssh[0])
    if program is None:
        raise Unreachable("ssh is not installed")
    base = [program, *ssh[1:], "-T", "-o", "ConnectTimeout=20", "--", host]
    name = python or _python(base)
    return RemoteSource([*base, f'{name} -c "{LISTEN}"'], first_line(cases.local_key()))


def _python(base: list[str]) -> str:
    """The first name under which a Python 3.6 or newer answers."""
    said = ""
    for name in PYTHONS:
        ask = f"{name} -c \"import sys;print('tftriage-%d-%d'%sys.version_info[:2])\""
        try:
            ran = subprocess.run([*base, ask], capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT)
        except subprocess.TimeoutExpired as error:
            raise Unreachable("no answer within a minute") from error
        found = GREETING.search(ran.stdout)
        if found and (int(found[1]), int(found[2])) >= (3, 6):
            return name
        said = said or one_line(ran.stderr.decode("utf-8", "replace"), 300)
        if ran.returncode == 255:  # ssh's own failure
            break
    raise Unreachable(said or "no Python 3.6 or newer is found there")
