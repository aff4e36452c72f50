"""Nothing in a redacted case names a person or a machine, in whatever spelling; what a diagnosis needs stays."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

import tftriage
from tftriage import cases
from tftriage.cases import Case, RedactionError
from tftriage.cli import main
from tftriage.facts import Fact, Facts
from tftriage.knowledge import load
from tftriage.portable import redaction
from tftriage.portable.tokens import token
from tftriage.requests import Target

KEY, OTHER = b"k" * 32, b"o" * 32
KB = load()
DEMOS = sorted((Path(tftriage.__file__).parent / "demos").glob("*.json"))
NAMES = [
    "alice", "Alice Smith", "alexandersson", "bob.jones", "x_wang99", "张伟", "欧阳娜娜", "José", "Иван",
    "김민준", "さくら", "MÜLLER", "王x明", "zhang wei", "Nguyễn", "李雷",
]  # fmt: skip


def tried(*ways: Any) -> list[str]:
    found = []
    for way in ways:
        try:
            found.append(way())
        except UnicodeError:
            continue
    return found


def spelled(name: str) -> list[str]:
    """The name as logs, consoles, addresses and short paths show it (written here independently of the program)."""
    plain = [name, name.upper(), name.lower(), name.swapcase(), quote(name), quote(name).lower()]
    escapes = tried(
        lambda: quote(name.encode("gbk")),
        lambda: name.encode("gbk").decode("latin-1"),
        lambda: name.encode("utf-8").decode("latin-1"),
        lambda: name.encode("utf-8").decode("cp1252"),
        lambda: name.encode("utf-8").decode("gbk"),
        lambda: name.encode("utf-8").decode("gbk", "replace"),
        lambda: name.encode("gbk").decode("cp437"),
        lambda: repr(name.encode("utf-8"))[2:-1],
        lambda: repr(name.encode("gbk"))[2:-1],
        lambda: name.encode("unicode_escape").decode(),
        lambda: name.encode("ascii", "xmlcharrefreplace").decode(),
    )
    bare = name.replace(" ", "").replace(".", "")
    return list(dict.fromkeys([*plain, *escapes, bare[:6].upper() + "~1", name + "+"]))


PERSONAL = [
    "alice.b@example.org", "zhangwei%40example.com", "A.Long-Name+tag@mail.example.co.uk", "weizhang@lab.example.edu",
    "3C:5A:B4:11:22:33", "3c-5a-b4-44-55-66", "3c5a.b411.2277", "10.11.12.13", "192.168.1.77", "172.16.200.4",
    "203.0.113.99", "fe80::3e5a:b4ff:fe11:2233", "2400:3200:1:2:3:4:5:6",
    "GPU-6f1c2d3e-aaaa-bbbb-cccc-0123456789ab", "MIG-7a1c2d3e-aaaa-bbbb-cccc-0123456789ab",
    "8b1c2d3e-aaaa-bbbb-cccc-0123456789ab", "S-1-5-21-111111111-222222222-333333333-1001",
    "ghp_abcdefghijklmnopqrstuvwxyz0123", "hf_abcdefghijklmnopqrstuvwxyz", "sk-proj-abcdefghijklmnop1234",
    "AKIAABCDEFGHIJKLMNOP", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "glpat-abcdefghij0123456789",
    "0123456789abcdef0123456789abcdef0123456789abcdef",
]  # fmt: skip
FRAMED = {  # found by what stands before them
    "0324816001234": "Serial Number : 0324816001234", "PF2ABCDE": 'SerialNumber="PF2ABCDE"',
    "hunter2secret": "mysql --password hunter2secret", "tok9f8e7d": "http://localhost:8888/lab?token=tok9f8e7d",
    "p4ssw0rd": "http://proxyuser:p4ssw0rd@proxy.example.net:3128", "proxyuser": "https://proxyuser:x1@proxy.example.net/",
    "s3cr3tValue": "API_KEY = 's3cr3tValue'", "lab-pc-17": "kernel driver does not appear to be running on this host (lab-pc-17)",  # noqa: E501
    "FILESRV2": r"\\FILESRV2\share\cuda", "gpunode42": "carol99@gpunode42:~/work$ python", "carol99": "carol99@gpunode42:~$ ls",  # noqa: E501
    "jupyhost": "http://jupyhost:8888/lab", "DESKTOP-9X8Y7Z6": "Computer name: DESKTOP-9X8Y7Z6",
    "bearerabcdefghijklmnop": "Authorization: Bearer bearerabcdefghijklmnop",
}  # fmt: skip
VARIABLES = {
    "MY_TOKEN": "vartok1", "AWS_SECRET_ACCESS_KEY": "varkey2", "WANDB_API_KEY": "varkey3", "DB_PASSWORD": "varpass4",
    "GITHUB_PAT": "varpat5", "AZURE_AUTH": "varauth6", "SESSION_COOKIE": "varcookie7",
}  # fmt: skip


def personal_case(name: str, home: str) -> tuple[Case, list[str]]:
    text = "\n".join(f"line {i}: {one}, end" for i, one in enumerate(spelled(name)))
    variables = {"PATH": f"{home}\\bin;C:\\Windows", "USERNAME": name, **VARIABLES}
    facts = (
        Fact("system.user", "ok", {"name": name, "home": home, "temp": f"{home}\\AppData\\Local\\Temp"}),
        Fact("env.process", "ok", variables),
        Fact(
            "env.user",
            "ok",
            {"Path": None, "variables": {n: {"type": "REG_SZ", "value": v} for n, v in VARIABLES.items()}},
        ),
        Fact(
            "gpu.devices",
            "ok",
            {"devices": [{"serial": "0324816009999", "uuid": PERSONAL[13]}], "hostname": "labhost3"},
        ),
        Fact(f"x.{name}", "ok", {f"{home}\\{name}.txt": [text]}, f"read from {home}"),
    )
    return Case(text=text + "\n" + "\n".join([*PERSONAL, *FRAMED.values()]), target=Target(f"{home}\\p.exe"), facts=facts), [  # noqa: E501
        *spelled(name), *PERSONAL, *FRAMED, *VARIABLES.values(), "0324816009999",
    ]  # fmt: skip


def every_string(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [s for k, v in value.items() for s in (k, *every_string(v))]
    return [s for v in value for s in every_string(v)] if isinstance(value, (list, tuple)) else []


@pytest.mark.parametrize("name", NAMES)
def test_two_hundred_secrets_are_planted_and_none_is_found(name: str) -> None:
    case, planted = personal_case(name, f"C:\\Users\\{name}")
    redacted = cases.redact(case, KEY, hosts=["labhost3"])
    text = "\n".join(every_string(msgspec.to_builtins(redacted))).lower()
    left = [secret for secret in [*planted, "labhost3"] if secret.lower() in text]
    assert left == []
    before = "\n".join(every_string(msgspec.to_builtins(case)))
    assert [secret for secret in planted if secret not in before] == []


def test_the_secrets_planted_are_many() -> None:
    assert len({secret for name in NAMES for secret in personal_case(name, "C:\\Users\\" + name)[1]}) >= 200


@pytest.mark.parametrize(
    "home", ["/home/{}", "/Users/{}", "D:\\Users\\{}", "C:/Users/{}", "C:\\\\Users\\\\{}", "/mnt/c/Users/{}"]
)
@pytest.mark.parametrize("name", ["alice", "张伟", "test"])
def test_a_home_names_its_owner_even_where_no_account_was_recorded(home: str, name: str) -> None:
    place = home.format(name)
    case = Case(text=f'File "{place}/x/y.py", line 3\nPATH={place}/bin:{place}')
    text = cases.redact(case, KEY).text
    assert name not in text
    assert "line 3" in text


def test_the_shape_that_matters_stays() -> None:
    for name in ("张伟", "Иван", "José"):
        made = token(KEY, "user", name)
        assert made != name
        assert len(made) == len(name)
        assert not made.isascii()
    assert token(KEY, "user", "张伟").encode("gbk")
    assert token(KEY, "user", "alice").isascii()
    assert " " in token(KEY, "user", "Alice Smith")
    assert token(KEY, "user", "Alice") == token(KEY, "user", "ALICE") != token(OTHER, "user", "alice")


def test_versions_and_package_paths_are_no_addresses() -> None:
    kept = (
        "cuDNN 7.6.5.32, CUDA 10.1.243, version 14.24.28127.4, nvidia_cudnn_cu12-8.9.2.26.dist-info, cudnn==8.9.2.26, "
        "cudnn-10.1-windows10-x64-v7.6.5.32, 2026-11-30 17:23:40.100366: std::vector, 0000:01:00.0, 127.0.0.1, abc::def"
    )
    assert cases.redact(Case(text=kept), KEY).text == kept
    value = {"file_version": "6.14.11.1002", "version": "10.1.2.3"}
    assert cases.redact(Case(facts=(Fact("x", "ok", value),)), KEY).facts[0].value == value


@pytest.mark.parametrize("name", ["python", "tensorflow", "cuda", "load", "lib"])
def test_a_person_called_like_a_word_of_the_subject_leaves_the_sentences_alone(name: str) -> None:
    text = f'ImportError: DLL load failed, python tensorflow cuda lib\n  File "C:\\Users\\{name}\\a\\b.py"'
    made = cases.redact(
        Case(text=text, facts=(Fact("system.user", "ok", {"name": name, "home": f"C:\\Users\\{name}"}),)), KEY
    )
    assert made.text.startswith("ImportError: DLL load failed, python tensorflow cuda lib\n")
    assert f"Users\\{name}" not in made.text
    assert made.facts[0].value["name"] != name


def test_below_the_home_only_what_is_needed_keeps_its_name() -> None:
    home = "C:\\Users\\alice"
    kept = [
        "\\AppData\\Local\\Programs\\Python\\Python37\\lib\\site-packages\\tensorflow\\python\\x.py",
        "\\anaconda3\\envs\\tf-gpu\\python.exe", "\\AppData\\Roaming\\Python\\Python37\\site-packages", "\\cudart64_101.dll",  # noqa: E501
        "\\tensorflow.py",
    ]  # fmt: skip
    gone = [
        "\\Bewerbung Siemens\\code.py",
        "\\divorce\\x.dll",
        "\\Documents\\salary.xlsx",
        "\\My Private Notes\\venv\\python.exe",
    ]
    case = cases.redact(
        Case(facts=tuple(Fact(str(i), "ok", home + rest) for i, rest in enumerate([*kept, *gone]))), KEY
    )
    values = [fact.value for fact in case.facts]
    assert [value.split("\\", 3)[3] for value in values[: len(kept)]] == [rest[1:] for rest in kept]
    text = " ".join(values)
    assert not re.search("Bewerbung|Siemens|divorce|salary|Private|Notes", text)
    assert values[-1].endswith("\\venv\\python.exe")
    assert values[len(kept) + 1].endswith("\\x.dll")


def test_the_same_value_gives_the_same_token_across_cases_and_again() -> None:
    one, _ = personal_case("张伟", "C:\\Users\\张伟")
    first, second = cases.redact(one, KEY), cases.redact(Case(text="D:\\Users\\张伟\\x"), KEY)
    account = first.facts[0].value["name"]
    assert account in second.text
    again = cases.redact(first, KEY)
    assert again == cases.redact(again, OTHER) == first


def test_nothing_comes_out_when_a_name_would_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction._Redaction, "_stand_in", lambda self, match: match.group())
    with pytest.raises(RedactionError):
        cases.redact(Case(text="alice", facts=(Fact("system.user", "ok", {"name": "alice", "home": ""}),)), KEY)


def test_the_key_is_kept_and_only_ours(tmp_path: Path) -> None:
    key = cases.local_key(tmp_path / "state")
    assert cases.local_key(tmp_path / "state") == key != cases.local_key(tmp_path / "other")


def named(value: Any, name: str) -> Any:
    """A demonstration case as it was before its names were taken out."""
    text = json.dumps(value, ensure_ascii=False)
    text = re.sub(r"(?i)(users\\\\)(student|名名)", lambda m: m.group(1) + name, text)
    text = (
        text.replace("/home/student", f"/home/{name}").replace('"student"', f'"{name}"').replace('"名名"', f'"{name}"')
    )
    return msgspec.convert({**json.loads(text), "redacted": False}, Case)


def walked(case: Case) -> tuple[Any, list[tuple[str, str]], Any]:
    session = cases.replay(case, KB)
    steps = session.walk.steps if session.walk else ()
    keys = [(s.node, s.answer, tuple(e.key for e in s.finding.evidence) if s.finding else ()) for s in steps]
    return session.diagnosis and session.diagnosis.id, keys, [sorted(session.values)]


@pytest.mark.parametrize("name", ["alice", "张伟", "Alice Smith", "python"])
@pytest.mark.parametrize("path", DEMOS, ids=lambda path: path.stem)
def test_a_redacted_case_gives_the_same_walk(path: Path, name: str) -> None:
    case = named(json.loads(path.read_text(encoding="utf-8")), name)
    assert f"Users\\{name}".lower() in str(case).replace("\\\\", "\\").lower() or f"/home/{name}" in str(case)
    redacted = cases.redact(case, KEY)
    assert walked(redacted) == walked(case)
    assert Facts(redacted.facts).keys() == Facts(case.facts).keys()


def test_redact_takes_an_existing_case_in_place_or_to_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TFTRIAGE_STATE", str(tmp_path / "state"))
    path, other = tmp_path / "a.json", tmp_path / "b.json"
    cases.write(Case(text="C:\\Users\\alice\\x, written by Zoe"), path)
    assert main(["redact", str(path), "-o", str(other), "--name", "Zoe", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"case": str(other), "redacted": True}
    assert "alice" in cases.read(path).text
    assert not re.search("alice|Zoe", other.read_text(encoding="utf-8"))
    assert main(["redact", str(path)]) == 0
    assert cases.read(path).redacted


def test_a_case_that_cannot_be_redacted_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(redaction._Redaction, "_stand_in", lambda self, match: match.group())
    monkeypatch.setenv("TFTRIAGE_STATE", str(tmp_path / "state"))
    path = tmp_path / "a.json"
    cases.write(Case(text="it is alice at C:\\Users\\alice\\x"), path)
    before = path.read_bytes()
    assert main(["redact", str(path), "--lang", "en"]) == 4
    assert "Nothing was written" in capsys.readouterr().err
    assert path.read_bytes() == before
