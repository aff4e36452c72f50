"""tftriage as a user runs it in the scenarios: the command with ``--json``, and the screen in a pseudo-terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labtools import lab_folder, wine_path

from tftriage.knowledge import load

KB = load()
REPOSITORY = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Done:
    """A command's exit status, its JSON document, and what it told the person."""

    code: int
    document: dict[str, Any]
    err: str


def environment(state: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """A clean environment for tftriage: its own journal folder, English, nothing of the tests' virtual environment."""
    keep = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH", "CUDA_VISIBLE_DEVICES")}
    return {**keep, "TFTRIAGE_STATE": str(state), "LANG": "C.UTF-8", **(env or {})}


def tftriage(*arguments: str, env: Mapping[str, str], seconds: float = 400, cwd: Path | None = None) -> Done:
    """Run ``tftriage ARGUMENTS --json``."""
    command = [sys.executable, "-m", "tftriage", *arguments, "--json", "--lang", "en"]
    ran = subprocess.run(
        command, capture_output=True, env=dict(env), timeout=seconds, cwd=cwd, stdin=subprocess.DEVNULL
    )
    err = ran.stderr.decode("utf-8", "replace")
    try:
        document = json.loads(ran.stdout)
    except ValueError as error:
        raise AssertionError(f"exit {ran.returncode}, no JSON: {ran.stdout[:2000]!r}\n{err[-3000:]}") from error
    return Done(ran.returncode, document, err)


def title(diagnosis: str, lang: str = "en") -> str:
    """The first words of a diagnosis' title, as they fit on the title line."""
    return KB.diagnoses[diagnosis].title[lang][:30].rstrip()


def node_path(done: Done) -> list[tuple[str, str]]:
    """The walk as (node, answer)."""
    return [(step["node"], step["answer"]) for step in done.document["path"]]


def replays_alike(case: Path, found: dict[str, Any], env: Mapping[str, str], name: str) -> None:
    """The recorded case gives the same walk and diagnosis on this machine as it gave on its own.

    With TFTRIAGE_RECORD=FOLDER the case is kept there as NAME.json, with a student's folders instead of the lab's: the
    program's demonstration cases are made so.
    """
    _same_walk(case, found, env)
    folder = os.environ.get("TFTRIAGE_RECORD")
    if folder:
        recorded = _mapped(json.loads(case.read_text(encoding="utf-8")))
        recorded["title"] = {lang: KB.diagnoses[found["diagnosis"]].title[lang] for lang in ("en", "zh")}
        path = Path(folder) / f"{name}.json"
        path.write_text(json.dumps(recorded, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        _same_walk(path, found, env)


def _same_walk(case: Path, found: dict[str, Any], env: Mapping[str, str]) -> None:
    again = tftriage("diagnose", "--case", str(case), env=env)
    assert again.document["diagnosis"] == found["diagnosis"]
    walks = [[(step["node"], step["answer"]) for step in one["path"]] for one in (again.document, found)]
    assert walks[0] == walks[1]


def _mapped(value: Any) -> Any:
    """A recorded value with a student's folders; what the tests' own machine has on its PATH is left out."""
    if isinstance(value, dict):
        return {_mapped(key): _mapped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item) for item in value if not _ours(item)]
    if not isinstance(value, str):
        return value
    lab = str(lab_folder())
    for old, new in (
        (re.escape(wine_path(lab) + "\\win\\py3.8"), r"C:\\Python38"),
        (re.escape(f"{lab}/linux"), "/home/student/envs"),
        (re.escape(lab), "/home/student/lab"),
        (
            r"/[^ :\"]*/pytest-of-\w+/pytest-\d+/[^/ :\"]+",
            "/home/student",
        ),  # redaction has changed the user's name in it
        (r"/[^ :\"]*/[.]pyenv/versions", "/opt/python"),
        (re.escape(str(REPOSITORY)), "/home/student/project"),
        (re.escape(str(Path.home())), "/home/student"),
    ):
        value = re.sub(old, new, value)
    if value.count(":") > 2 and value.startswith("/"):  # a PATH
        return ":".join(part for part in value.split(":") if not _ours(part))
    return value


def _ours(item: Any) -> bool:
    """A folder of the machine that runs the tests: its home, the checkout, a version manager."""
    text = item.get("folder", "") if isinstance(item, dict) else item
    places = (str(Path.home()), ".pyenv", "/student/.")
    return isinstance(text, str) and any(place in text for place in places) and "\n" not in text
