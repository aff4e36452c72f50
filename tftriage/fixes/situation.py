"""What several fixes ask of the facts: which system, which interpreter, which folders, how to verify."""

from __future__ import annotations

import hashlib
import ntpath
import os
import posixpath
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tftriage.facts import Facts
from tftriage.fixes import disk, paths, running
from tftriage.fixes.plans import ABSENT, Plan, Refused, Verify
from tftriage.tables import Tables

Values = Mapping[str, str]


class Fix(msgspec.Struct, frozen=True):
    """A repair. ``refuses`` gives the key of the reason why it cannot be offered here, or None.

    ``plan`` makes it out; it reads the machine where it must (the file that it would change), writes nothing, and
    raises ``Refused`` with the same kind of key.
    """

    id: str
    refuses: Callable[[Facts, Values], str | None]
    plan: Callable[[Facts, Values, Tables], Plan]


def windows(facts: Facts) -> bool:
    """Whether the facts are of a Windows machine."""
    return bool(facts.value("system.os", {}).get("system") == "Windows")


def path_rules(facts: Facts) -> Any:
    """The module with the path rules of the machine the facts are of: ``ntpath`` or ``posixpath``."""
    return ntpath if windows(facts) else posixpath


def here(facts: Facts) -> bool:
    """Whether the facts are of this machine: only then may its files and variables add to them."""
    return not facts.ok("case.recorded") and windows(facts) == (sys.platform == "win32")


def interpreter(facts: Facts) -> dict[str, Any]:
    """The target's interpreter, empty when unknown."""
    value = facts.value("target.interpreter")
    return value if isinstance(value, dict) and value.get("executable") else {}


def python_series(facts: Facts) -> str | None:
    """The target's Python as tables name it, ``"3.7"``."""
    version = interpreter(facts).get("version")
    return f"{version[0]}.{version[1]}" if version else None


def environment_name(facts: Facts) -> str:
    """What people call the target's environment: the last part of its prefix."""
    prefix = str(interpreter(facts).get("prefix", "")).rstrip("/\\")
    return re.split(r"[/\\]", prefix)[-1] if prefix else ""


def home(facts: Facts) -> str | None:
    """The user's folder."""
    found: str | None = facts.value("system.user", {}).get("home")
    return found


def folders(facts: Facts, values: Values) -> list[str]:
    """The folders to add: those of ``folders`` (all that hold a missing library), else those of ``folder``.

    A ``folder`` that is none of ``folders`` was chosen by the person and counts alone.
    """
    found, all_found = (_split(facts, values.get(name, "")) for name in ("folder", "folders"))
    return all_found if all_found and set(found) <= set(all_found) else found


def _split(facts: Facts, text: str) -> list[str]:
    if windows(facts):
        return [entry.strip().strip('"') for entry in paths.split(text) if entry.strip()]
    return [entry for entry in re.split("[:;]", text) if entry]


def variables(facts: Facts) -> dict[str, str]:
    """The variables that expand a Path entry, upper-case names: the machine's, the user's, the process's."""
    known: dict[str, str] = {}
    for fact in ("env.machine", "env.user"):
        for name, value in (facts.value(fact) or {}).get("variables", {}).items():
            known[name.upper()] = value["value"]
    for name, value in (facts.value("env.process") or {}).items():
        known[name.upper()] = value
    user = home(facts)
    if user:
        known.setdefault("USERPROFILE", user)
    if windows(facts) and here(facts):
        for name in (
            "SYSTEMROOT",
            "SYSTEMDRIVE",
            "WINDIR",
            "PROGRAMFILES",
            "LOCALAPPDATA",
            "APPDATA",
            "PROGRAMDATA",
        ):
            if name in os.environ:
                known.setdefault(name, os.environ[name])
    return known


def libraries_variable(facts: Facts) -> str:
    """The variable by which the system finds GPU libraries."""
    return "PATH" if windows(facts) else "LD_LIBRARY_PATH"


def separator(facts: Facts) -> str:
    return ";" if windows(facts) else ":"


def read(path: str) -> bytes | None:
    """A file's content, None when there is none. Other errors are ``OSError``."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def fingerprint(data: bytes | None) -> str:
    """The ``expected`` of a step, for the content the plan was made from."""
    return ABSENT if data is None else hashlib.sha256(data).hexdigest()


def rights(facts: Facts, folder: str) -> tuple[str, ...]:
    """``("admin",)`` when this user may not write to a folder of this machine."""
    return ("admin",) if here(facts) and disk.may_write(folder) is False else ()


def libraries_verify(facts: Facts, tables: Tables, *, kernel: str | None = None, fresh: bool = True) -> Verify:
    """See whether the GPU libraries are found now: by the import table where the build has them there (1.1 to 1.14),
    else by opening them by name."""
    version = (facts.value("tf.package") or {}).get("version")
    build = tables.build(version, "Windows" if windows(facts) else "Linux")
    context: dict[str, Any] = {"fresh": fresh, "kernel": kernel, "env": {}}
    if build is not None and any(name.lower().startswith("cud") for name in build.imports):
        return Verify(facts=("env.process", "env.user", "env.path", "dlls.tree"), probe="import_chain",
                      good_answers=("complete",), context=context)  # fmt: skip
    needs = (
        "env.process",
        "env.user",
        "env.path",
        "tf.libraries",
        "dlls.tree",
        "cuda.toolkits",
        "tf.gpus",
        "tf.package",
    )
    return Verify(facts=needs, probe="gpu_libraries", good_answers=("all-found",), context=context)


def need(value: Any, key: str, **params: str) -> Any:
    """The value, or ``Refused`` with ``key`` when there is none."""
    if not value:
        raise Refused(key, **params)
    return value


def pip_environment(facts: Facts) -> dict[str, str | None]:
    """What pip's process gets besides the rules of ``running.environment``."""
    version = interpreter(facts).get("version") or (3, 6)
    return {"PYTHONUTF8": "1"} if not windows(facts) and running.utf8_safe(version) else {}
