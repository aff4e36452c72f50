"""A class of thirty: the recorded lab runs as thirty students would have sent them.

Each is one of the real runs under a student's own name, home and language, some with what else students do to their
machines (a variable, a cut file, a second TensorFlow); then redacted with the class's key, as the collector does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

import tftriage
from tftriage import cases

DEMOS = Path(tftriage.__file__).parent / "demos"
KEY = b"class key, thirty-two bytes long"
Facts = dict[str, Any]
Change = Callable[[Facts], None]


def hidden(facts: Facts) -> None:
    """A line of advice from a forum that was never taken back."""
    facts["env.process"]["CUDA_VISIBLE_DEVICES"] = "-1"


def chinese(facts: Facts) -> None:
    """A Chinese Windows or desktop."""
    spoken = {"acp": 936, "encoding": "cp936", "ui_language": "zh_CN"}
    facts["system.locale"] = {**spoken, "lc_all": None, "utf8_mode": False}


def other_card(facts: Facts) -> None:
    """Another graphics card that serves as well."""
    for device in facts.get("gpu.devices", {}).get("devices", []):
        device.update(name="GeForce RTX 2060", capability="7.5")


def busy(facts: Facts) -> None:
    """The same machine at another moment."""
    seen = {"total": 17179869184, "available": 123456789}
    facts["system.memory"] = {**seen, "commit_limit": None, "commit_available": None}


# file, recorded run, owner, changes
STUDENTS: tuple[tuple[str, str, str, tuple[Change, ...]], ...] = (
    ("01", "cudnn-renamed-gbk", "张伟", ()),
    ("02", "cudnn-renamed-gbk", "李娜", (busy,)),
    ("03", "cudnn-renamed-gbk", "欧阳修远", ()),
    ("04", "cudnn-renamed-utf-8", "alice", ()),
    ("05", "cudnn-renamed-utf-8", "Bob Miller", (busy,)),
    ("06", "cudnn-renamed-utf-8", "wangfang", (chinese,)),
    ("07", "cudnn-renamed-utf-8", "王芳", (chinese,)),
    ("08", "cudnn-renamed-utf-8", "dmitri", ()),
    ("09", "cuda-not-on-path", "erika", ()),
    ("10", "cuda-not-on-path", "刘洋", (chinese,)),
    ("11", "cuda-not-on-path", "farid", (other_card,)),
    ("12", "cuda-not-on-path", "Gina Lopez", (other_card, busy)),
    ("13", "cuda-not-on-path", "zhaolei", (chinese, hidden)),
    ("14", "damaged-install", "hiroshi", ()),
    ("15", "damaged-install", "陈静", (chinese,)),
    ("16", "damaged-install", "ivan", (hidden,)),
    ("17", "found-not-added", "jonas", ()),
    ("18", "found-not-added", "kumar", (busy,)),
    ("19", "found-not-added", "孙强", (chinese,)),
    ("20", "notebook", "lena", ()),
    ("21", "notebook", "周敏", (chinese,)),
    ("22", "notebook", "marco", (busy,)),
    ("23", "notebook", "nadia", ()),
    ("24", "notebook", "吴磊", (chinese, hidden)),
    ("25", "protobuf", "olga", ()),
    ("26", "protobuf", "pedro", (busy,)),
    ("27", "protobuf", "郑洁", (chinese,)),
    ("28", "protobuf", "quentin", (hidden,)),
    ("29", "protobuf", "rashid", ()),
    ("30", "protobuf", "alice", (chinese,)),
)
CAUSES = {
    "cudnn-renamed-gbk": "cudnn-dll-renamed",
    "cudnn-renamed-utf-8": "cudnn-dll-renamed",
    "cuda-not-on-path": "cuda-not-on-path",
    "damaged-install": "damaged-install",
    "found-not-added": "cuda-version-mismatch",
    "notebook": "notebook-kernel-wrong-env",
    "protobuf": "protobuf-too-new",
}


def case_of(run: str, owner: str, changes: tuple[Change, ...]) -> cases.Case:
    """One student's case before redaction."""
    text = (DEMOS / f"{run}.json").read_text(encoding="utf-8")
    text = re.sub(r"(?i)(users\\\\)(student|名名)", lambda match: match.group(1) + owner, text)
    text = text.replace("/home/student", f"/home/{owner}")
    text = text.replace('"student"', f'"{owner}"').replace('"名名"', f'"{owner}"')
    value = json.loads(text)
    recorded = {fact["name"]: fact for fact in value["facts"]}
    facts = {name: fact["value"] for name, fact in recorded.items() if "value" in fact}
    for change in changes:
        change(facts)
    for name, changed in facts.items():
        recorded.setdefault(name, {"name": name, "status": "ok"})["value"] = changed
    return msgspec.convert({**value, "facts": list(recorded.values()), "redacted": False}, cases.Case)


def write(folder: Path) -> None:
    """The thirty files."""
    for number, run, owner, changes in STUDENTS:
        cases.write(cases.redact(case_of(run, owner, changes), KEY), folder / f"{number}.json")
