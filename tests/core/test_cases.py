"""A case travels; one from somebody else is hostile until proven."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import msgspec
import pytest

from tftriage import cases
from tftriage.cases import Case, CaseError, PersonAnswer, files
from tftriage.facts import Fact
from tftriage.portable import whole
from tftriage.requests import Target

CASE = Case(
    text="ImportError at C:\\Users\\alice\\x, mail alice.b@example.org",
    target=Target(python="C:\\Users\\alice\\py\\python.exe"),
    symptom="dll-load-failed-126",
    answers=(PersonAnswer("a/b", "yes"),),
    facts=(
        Fact("system.user", "ok", {"name": "alice", "home": "C:\\Users\\alice"}),
        Fact("env.process", "ok", {"PATH": "C:\\USERS\\ALICE\\bin", "MY_TOKEN": "s3cret", "malice": "kept"}),
        Fact("gpu.devices", "ok", {"uuid": "GPU-12345678-1234-1234-1234-123456789abc"}),
        Fact("tf.gpus", "ok", {"log": "kernel driver does not appear to be running on this host (lab-pc-17): x"}),
    ),
)


def test_written_and_read_back_alike(tmp_path: Path) -> None:
    path = tmp_path / "案例.json"
    cases.write(CASE, path)
    assert cases.read(path) == CASE
    assert list(tmp_path.iterdir()) == [path]


def test_redaction_takes_what_names_a_person_and_keeps_the_shape() -> None:
    text = json.dumps(json.loads(msgspec.json.encode(cases.redact(CASE))))
    for secret in ("alice", "ALICE", "s3cret", "example.org", "12345678-1234", "lab-pc-17"):
        assert secret not in text.replace("malice", "")
    assert "malice" in text
    assert cases.redact(CASE).redacted


def test_a_non_ascii_name_stays_non_ascii_of_the_same_length() -> None:
    case = Case(facts=(Fact("system.user", "ok", {"name": "张伟", "home": "C:\\Users\\张伟"}),))
    home = cases.redact(case).facts[0].value["home"]
    assert "张伟" not in home
    assert len(home) == len("C:\\Users\\张伟")
    assert not home.isascii()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x01\x02" * 1000,
        b"[]",
        b'{"format": "other"}',
        b'{"format": "tftriage-case", "schema": 99}',
        b'{"format": "tftriage-case", "facts": [{"name": 1}]}',
        b"[" * 100_000,
        b'{"format": "tftriage-case", "text": ' + b'{"a":' * 1000 + b"1" + b"}" * 1000 + b"}",
        b'{"format": "tftriage-case", "facts": [{"name": "x", "value": ' + b"[" * 5000 + b"]" * 5000 + b"}]}",
    ],
    ids=range(9),
)
def test_what_is_no_case_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(CaseError):
        cases.decode(data)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CaseError):
        cases.read(tmp_path / "gone.json")


def test_a_huge_file_is_refused_before_it_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 100)
    path = tmp_path / "big.json"
    path.write_bytes(b" " * 101)
    with pytest.raises(CaseError, match="larger"):
        cases.read(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
@pytest.mark.parametrize("collector", [False, True])
def test_what_is_no_file_is_written_to_and_never_replaced(collector: bool, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    if collector:
        whole.write(b"{}", str(pipe))
    else:
        cases.write(CASE, pipe)
    reader.join(10)
    assert read and read[0].startswith(b"{")
    assert pipe.is_fifo() and [path.name for path in tmp_path.iterdir()] == ["pipe"]
