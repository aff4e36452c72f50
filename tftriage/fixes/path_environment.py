"""path-environment: the folders are put first whenever this one environment is activated, and only then.

A conda environment runs the scripts in ``etc/conda/activate.d`` and ``deactivate.d``. A venv has no such place: a
marked block is appended to its activate scripts. The venv itself restores PATH when it is left; LD_LIBRARY_PATH,
which it does not know, is restored by a second block at the start of its ``deactivate`` function.
"""

from __future__ import annotations

import ntpath
from typing import Any

from tftriage.facts import Facts
from tftriage.fixes import scripts, situation
from tftriage.fixes.plans import Plan, Refused, WriteFile
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import Tables

_DEACTIVATE = ("deactivate () {", "deactivate() {")
_SIGNATURE = "# SIG # Begin signature block"


def refuses(facts: Facts, values: Values) -> str | None:
    interpreter = situation.interpreter(facts)
    if not interpreter:
        return "fix.refuse.no-interpreter"
    if not interpreter.get("conda") and not interpreter.get("venv"):
        return "fix.refuse.not-an-environment"
    folders = situation.folders(facts, values)
    if not folders:
        return "fix.refuse.no-folder"
    if any(set(';"\n\r') & set(folder) for folder in folders):
        return "fix.refuse.folder-name"
    return None


def plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(facts, values):
        raise Refused(reason)
    interpreter = situation.interpreter(facts)
    prefix = str(interpreter["prefix"])
    folders = situation.folders(facts, values)
    notes: list[Evidence] = []
    # An environment of venv on a conda base is a venv: its own activate scripts are what runs.
    steps = (
        _conda(facts, prefix, folders, notes) if not interpreter.get("venv") else _venv(facts, prefix, folders, notes)
    )
    if not steps:
        raise Refused("fix.refuse.already-first", folder=situation.separator(facts).join(folders))
    return Plan(
        fix="path-environment",
        title={"folder": situation.separator(facts).join(folders), "environment": prefix},
        steps=tuple(steps),
        needs=("new-console", *situation.rights(facts, prefix)),
        risk="safe",
        python=interpreter["executable"],
        notes=tuple(notes),
        verify=situation.libraries_verify(facts, tables),
    )


def _conda(facts: Facts, prefix: str, folders: list[str], notes: list[Evidence]) -> list[WriteFile]:
    windows = situation.windows(facts)
    path = situation.path_rules(facts)
    variable = situation.libraries_variable(facts)
    if not prefix.isascii():
        notes.append(Evidence("fix.note.conda-non-ascii", {"prefix": prefix}, "bad"))
    texts: list[tuple[str, str, list[str]]] = []
    if windows:
        texts += [
            ("activate.d", "bat", scripts.bat_add(folders)),
            ("deactivate.d", "bat", scripts.bat_remove(folders)),
        ]
        texts += [
            ("activate.d", "ps1", scripts.ps_add(folders)),
            ("deactivate.d", "ps1", scripts.ps_remove(folders)),
        ]
    shell = [_bash_path(folder) for folder in folders] if windows else folders
    texts += [
        ("activate.d", "sh", scripts.sh_add(variable, shell)),
        ("deactivate.d", "sh", scripts.sh_remove(variable, shell)),
    ]
    steps = []
    for folder, ending, lines in texts:
        file = path.join(prefix, "etc", "conda", folder, f"tftriage-libraries.{ending}")
        old = situation.read(file) if situation.here(facts) else None
        text = "\n".join(lines) + "\n"
        step = WriteFile(
            path=file,
            text=text,
            newline="\n" if ending == "sh" else "\r\n",
            expected=situation.fingerprint(old) if situation.here(facts) else None,
        )
        if old != step.data():
            steps.append(step)
    return steps


def _venv(facts: Facts, prefix: str, folders: list[str], notes: list[Evidence]) -> list[WriteFile]:
    windows = situation.windows(facts)
    path = situation.path_rules(facts)
    scripts_folder = path.join(prefix, "Scripts" if windows else "bin")
    variable = situation.libraries_variable(facts)
    shell = [_bash_path(folder) for folder in folders] if windows else folders
    wanted: list[tuple[str, str, list[str], list[str]]] = [
        (
            "activate",
            "#",
            scripts.sh_add(variable, shell),
            [] if windows else scripts.sh_remove(variable, shell),
        )
    ]
    if windows:
        wanted += [
            ("activate.bat", "@rem", scripts.bat_add(folders), []),
            ("Activate.ps1", "#", scripts.ps_add(folders), []),
        ]
    steps = []
    for name, comment, add, remove in wanted:
        file = path.join(scripts_folder, name)
        raw = situation.read(file) if situation.here(facts) else None
        if raw is None:
            continue
        text, encoding = decoded(raw, facts)
        if _SIGNATURE in text:
            notes.append(Evidence("fix.note.signature", {"file": file}, "info"))
        new = with_blocks(text, comment, add, remove)
        if new != text:
            steps.append(WriteFile(path=file, text=new, encoding=encoding, expected=situation.fingerprint(raw)))
    if not steps and not any(situation.read(path.join(scripts_folder, name)) for name, *_ in wanted):
        raise Refused("fix.refuse.no-activate-script", folder=scripts_folder)
    return steps


def with_blocks(text: str, comment: str, add: list[str], remove: list[str], name: str = "gpu libraries") -> str:
    """The script's text with our block at the end, and the one that restores at the start of ``deactivate``.

    A former block of ours is replaced. Raises ``Refused`` when the script has no ``deactivate`` to restore in.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    back = "restore" if name == "gpu libraries" else f"{name} restore"
    flag = "_TFTRIAGE_ON" if name == "gpu libraries" else "_TFTRIAGE_" + name.upper().replace(" ", "_")
    text = scripts.without_block(scripts.without_block(text, comment, name), comment, back)
    if remove:
        start = next((line for line in _DEACTIVATE if line + newline in text), None)
        if start is None:
            raise Refused("fix.refuse.no-deactivate")
        inner = newline.join(
            scripts.block(
                [f'if [ -n "${{{flag}:-}}" ]; then', *remove, f"unset {flag}", "fi"],
                comment,
                back,
            )
        )
        text = text.replace(start + newline, start + newline + inner + newline, 1)
        add = [*add, f"{flag}=1"]
    end = "" if not text or text.endswith(newline) else newline
    return text + end + newline.join(scripts.block(add, comment, name)) + newline


def decoded(raw: bytes, facts: Facts) -> tuple[str, str]:
    """A script's text and the encoding that gives the same bytes back."""
    page: Any = (facts.value("system.locale") or {}).get("acp")
    for encoding in ("utf-8", f"cp{page}" if page else "utf-8"):
        try:
            text = raw.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
        if text.encode(encoding) == raw:
            return text, encoding
    return raw.decode("latin-1"), "latin-1"


def _bash_path(folder: str) -> str:
    """A Windows folder as Git Bash and MSYS write it: ``C:\\CUDA`` is ``/c/CUDA``."""
    drive, rest = ntpath.splitdrive(folder)
    return f"/{drive[0].lower()}{rest}".replace("\\", "/") if drive.endswith(":") else folder.replace("\\", "/")


FIX = Fix("path-environment", refuses, plan)
