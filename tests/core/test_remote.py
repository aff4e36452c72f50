"""Another machine through ssh: a real sshd of the test's own, and what goes wrong on the way."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tftriage
from tftriage import cases, mend, remote
from tftriage.cli import main
from tftriage.fixes.journal import Journal
from tftriage.fixes.plans import Refused
from tftriage.knowledge import load
from tftriage.requests import Target
from tftriage.session import Session

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin{os.pathsep}/usr/local/sbin")
pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the server of the test is a POSIX sshd"),
    pytest.mark.skipif(SSHD is None or not shutil.which("ssh-keygen"), reason="no sshd is installed (openssh-server)"),
]
KB = load()
DEMOS = Path(tftriage.__file__).parent / "demos"


def key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """An sshd with keys, configuration and port of its own; gives the ssh command that reaches it as ``laptop``."""
    assert SSHD
    folder = tmp_path_factory.mktemp("sshd")
    server, client, port = key(folder / "host"), key(folder / "client"), free_port()
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)  # sshd refuses to start without it
    (folder / "authorized").write_bytes((folder / "client.pub").read_bytes())
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {server}\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/authorized\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
        "SetEnv HOSTNAME=secret-lab-host\n"
    )
    (folder / "ssh_config").write_text(
        f"Host laptop\n HostName 127.0.0.1\n Port {port}\n IdentityFile {client}\n IdentitiesOnly yes\n"
        f" StrictHostKeyChecking no\n UserKnownHostsFile {folder}/known\n LogLevel ERROR\n"
    )
    log = (folder / "log").open("wb")
    process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log)
    command = ("ssh", "-F", str(folder / "ssh_config"))
    try:
        for _ in range(100):
            if process.poll() is not None:
                pytest.skip("sshd does not run here: " + (folder / "log").read_text(errors="replace")[-300:])
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        tried = subprocess.run([*command, "laptop", "echo hello"], capture_output=True, stdin=subprocess.DEVNULL)
        if b"hello" not in tried.stdout:
            pytest.skip("no login on the test's sshd: " + tried.stderr.decode(errors="replace")[-300:])
        yield command
    finally:
        process.terminate()
        process.wait()
        log.close()


@pytest.fixture
def path_to_it(host: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``ssh`` on PATH reaches the test's server, as a configuration in the home folder would."""
    folder = tmp_path / "bin"
    folder.mkdir()
    real = shutil.which("ssh")
    (folder / "ssh").write_text(f'#!/bin/sh\nexec {real} -F {host[2]} "$@"\n')
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TFTRIAGE_STATE", str(tmp_path / "state"))
    return tmp_path


def test_collect_writes_a_case_of_the_other_machine(path_to_it: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = path_to_it / "case.json"
    words = ["--ssh", "laptop", "--ssh-python", sys.executable, "--python", sys.executable, "--quiet", "--json"]
    assert main(["collect", *words, "--module", "json", "-o", str(output)]) == 0
    case = cases.read(output)
    assert case.redacted
    facts = {fact.name: fact for fact in case.facts}
    assert facts["tf.import"].value["ok"]
    assert facts["target.interpreter"].status == "ok"
    assert json.loads(capsys.readouterr().out)["case"] == str(output)
    assert "laptop" not in output.read_text(encoding="utf-8")


def test_diagnose_walks_live_on_the_other_machine(path_to_it: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--ssh", "laptop", "--python", sys.executable, "--symptom", "import-fails", "--quiet", "--json"]
    status = main(["diagnose", *words])
    document = json.loads(capsys.readouterr().out)
    assert status in (1, 3)
    assert document["path"][0]["by"] == "probe"
    assert document["target"] == sys.executable


def test_the_first_python_that_answers_is_taken(host: tuple[str, ...]) -> None:
    source = remote.connect("laptop", ssh=host)
    try:
        facts = {fact.name: fact for fact in source.collect([("system.os", {}), ("env.process", {})])}
        again = {fact.name: fact for fact in source.collect([("system.user", {})])}
    finally:
        source.close()
    assert facts["system.os"].value["system"] == "Linux"
    assert again["system.user"].status == "ok"


def test_a_fix_is_not_applied_here_for_a_fault_there(host: tuple[str, ...], tmp_path: Path) -> None:
    source = remote.connect("laptop", ssh=host)
    session = Session(KB, source, Target())
    recorded = cases.replay(cases.read(DEMOS / "cuda-not-on-path.json"), KB)
    plan = mend.plan(recorded, next(offer.fix for offer in mend.offers(recorded) if offer.refused is None))
    try:
        with pytest.raises(Refused) as refused:
            mend.carry_out(session, plan, Journal(tmp_path))
    finally:
        session.close()
    assert refused.value.key == "fix.other-machine"
    assert not list(tmp_path.iterdir())


def test_what_goes_wrong_is_said(path_to_it: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["collect", "--ssh", "nobody@127.0.0.1", "--python", "x", "--lang", "en", "-o", str(path_to_it / "x")])
        == 4
    )
    assert "cannot be looked at" in capsys.readouterr().err
    assert main(["collect", "--ssh=-oProxyCommand=touch owned", "--lang", "en", "-o", str(path_to_it / "x")]) == 4
    assert not (path_to_it / "x").exists()
    assert not Path("owned").exists()


def test_a_python_that_is_not_there_leaves_nothing_looked_at(
    path_to_it: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--ssh", "laptop", "--ssh-python", "no-such-python", "--python", "/x/python", "--symptom", "import-fails"]
    assert main(["diagnose", *words, "--quiet", "--json"]) in (3, 4)
    assert "Traceback" not in capsys.readouterr().err
