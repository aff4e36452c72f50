"""Where facts come from: a live machine (the collector, its own process) or a recorded case.

Both answer the same requests; nothing above this module can tell them apart.
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import msgspec

from tftriage.facts import Fact, Facts

GRACE = 20.0  # seconds beyond a request's own limit after which the collector itself is taken for hung
DEFAULT_LIMIT = 330.0  # the longest deadline a collector has (a cold import behind a virus scanner)

Request = tuple[str, dict[str, Any]]


class FactSource(Protocol):
    """Answers requests for facts, each as it arrives. A fact that it cannot know does not come at all."""

    live: bool
    elsewhere: bool  # another machine: what is changed here is not changed there

    def collect(self, requests: Sequence[Request]) -> Iterator[Fact]:
        """One fact per request, in the order in which they become known."""
        ...

    def close(self) -> None:
        """End what still runs."""
        ...


class CaseSource:
    """Recorded facts. A fact that is not in the case is unknown, never taken from the reader's machine."""

    live = False
    elsewhere = False

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def collect(self, requests: Sequence[Request]) -> Iterator[Fact]:
        """The recorded facts among those asked for."""
        for name, _ in requests:
            if name in self.facts:
                yield self.facts[name]

    def close(self) -> None:
        """Nothing runs."""


class LiveSource:
    """This machine, through ``python -m tftriage.collect``: a crash of a driver library must not take us along.

    A collector that dies in the middle leaves the facts it owed as errors and is started anew for the next request.
    """

    live = True
    elsewhere = False

    def __init__(self, command: Sequence[str] | None = None, first: bytes = b"") -> None:
        self.command = list(command or (sys.executable, "-m", "tftriage.collect"))
        self.first = first  # what the process has to be told before any request
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.Queue[bytes | None] = queue.Queue()

    def collect(self, requests: Sequence[Request]) -> Iterator[Fact]:
        """Facts as the collector reports them; its death and its silence are facts too."""
        owed = dict(requests)
        if not owed:
            return
        process = self._start()
        try:
            assert process.stdin is not None
            for name, args in owed.items():
                process.stdin.write(msgspec.json.encode({"collect": name, "args": args}) + b"\n")
            process.stdin.flush()
        except OSError:
            yield from self._lost(owed, process)
            return
        end = time.monotonic() + max(float(args.get("limit") or DEFAULT_LIMIT) for args in owed.values()) + GRACE
        while owed:
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                self.close()
                yield from (Fact(name, "timeout", note="the collector did not answer") for name in owed)
                return
            if line is None:
                yield from self._lost(owed, process)
                return
            fact = _decode(line)
            if fact is not None and owed.pop(fact.name, None) is not None:
                yield fact

    def close(self) -> None:
        """End the collector and with it every child that a probe started."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        try:
            process.wait(timeout=0.3)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.wait(timeout=2.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._lines = queue.Queue()
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            threading.Thread(target=_pump, args=(self._process, self._lines), daemon=True).start()
            if self.first:
                assert self._process.stdin is not None
                with contextlib.suppress(OSError):  # it is gone already: the first request will say so
                    self._process.stdin.write(self.first)
        return self._process

    def _lost(self, owed: dict[str, dict[str, Any]], process: subprocess.Popen[bytes]) -> Iterator[Fact]:
        self.close()
        code = process.poll()
        for name in owed:
            yield Fact(name, "error", note=f"the collector ended (exit {code}) while it looked")


def _pump(process: subprocess.Popen[bytes], lines: queue.Queue[bytes | None]) -> None:
    assert process.stdout is not None
    with process.stdout as stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


def _decode(line: bytes) -> Fact | None:
    """A fact from one line; ``None`` for one cut off by a death in the middle."""
    try:
        raw = msgspec.json.decode(line)
        return msgspec.convert({"name": raw.pop("fact"), **{k: v for k, v in raw.items() if v is not None}}, Fact)
    except (msgspec.MsgspecError, KeyError, AttributeError, TypeError):
        return None
