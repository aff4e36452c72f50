"""start-jupyter: a launcher that starts Jupyter with the environment's and CUDA's folders first on PATH.

The server's environment is what its kernels inherit, so this works for every kernel and needs no registry. The
system's PATH stays behind ours.
"""

# Paths here are texts of the machine they are of, kept byte for byte.
# ruff: noqa: PTH112
from __future__ import annotations

import ntpath
import os
import posixpath
import re

from tftriage.facts import Facts
from tftriage.fixes import quoting, scripts, situation
from tftriage.fixes.plans import Plan, Refused, Step, Verify, WriteFile
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import Tables

_CONDA_FOLDERS = ("", r"Library\mingw-w64\bin", r"Library\usr\bin", r"Library\bin", "Scripts", "bin")
_SERVERS = (("jupyterlab", "jupyterlab"), ("notebook", "notebook"))


def server_module(facts: Facts) -> str | None:
    """What to start: JupyterLab, else the classic notebook, as installed in the target."""
    packages = facts.value("target.packages") or {}
    return next((module for name, module in _SERVERS if name in packages), None)


def refuses(facts: Facts, values: Values) -> str | None:
    if not situation.interpreter(facts):
        return "fix.refuse.no-interpreter"
    if not facts.ok("target.packages"):
        return "fix.refuse.packages-unknown"
    if server_module(facts) is None:
        return "fix.refuse.no-jupyter"
    if any(set('"\n\r') & set(folder) for folder in situation.folders(facts, values)):
        return "fix.refuse.folder-name"
    return None


def environment_folders(facts: Facts) -> list[str]:
    """The folders that activating the target would put first."""
    interpreter = situation.interpreter(facts)
    prefix = str(interpreter["prefix"])
    if not situation.windows(facts):
        return [posixpath.join(prefix, "bin")]
    if interpreter.get("conda") and not interpreter.get("venv"):
        return [ntpath.join(prefix, folder) if folder else prefix for folder in _CONDA_FOLDERS]
    return [ntpath.join(prefix, "Scripts")] if interpreter.get("venv") else [prefix, ntpath.join(prefix, "Scripts")]


def destination(facts: Facts, values: Values) -> str:
    """The folder for the launcher: the one chosen, else the desktop, else the home folder."""
    path = situation.path_rules(facts)
    if values.get("destination"):
        return values["destination"]
    home: str = situation.need(situation.home(facts), "fix.refuse.no-home")
    desktop = path.join(home, "Desktop")
    return desktop if situation.here(facts) and os.path.isdir(desktop) else home


def bat_path(path: str, home: str | None) -> str:
    """A path for a batch file; one in a home folder with a Chinese name becomes ASCII by %USERPROFILE%."""
    if not path.isascii() and home and ntpath.normcase(path).startswith(ntpath.normcase(home).rstrip("\\") + "\\"):
        return "%USERPROFILE%" + quoting.bat(path[len(home.rstrip("\\")) :])
    return quoting.bat(path)


def bat_text(python: str, module: str, folders: list[str], home: str | None) -> str:
    path = ";".join(bat_path(folder, home) for folder in folders)
    lines = [f'@set "PATH={path};%PATH%"', f'@"{bat_path(python, home)}" -m {module} %*']
    head = ["@rem Written by tftriage: starts Jupyter with the GPU libraries on PATH.", "@setlocal"]
    tail = ["@if errorlevel 1 pause", "@endlocal"]
    encoded = scripts.bat_encoded(lines)
    if len(encoded) > len(lines):  # the status of Jupyter, not that of chcp
        encoded = [*encoded[:-2], '@set "_TFTRIAGE_STATUS=%ERRORLEVEL%"', *encoded[-2:]]
        tail = ['@if not "%_TFTRIAGE_STATUS%"=="0" pause', "@endlocal"]
    return "\n".join([*head, *encoded, *tail]) + "\n"


def ps_text(python: str, module: str, folders: list[str]) -> str:
    lines = [
        "# Written by tftriage: starts Jupyter with the GPU libraries on PATH.",
        "$tftriagePath = $env:PATH",
        "try {",
        *(f"    {line}" for line in scripts.ps_add(folders)),
        f"    & {quoting.ps_ascii(python)} -m {module} @args",
        "} finally { $env:PATH = $tftriagePath }",
    ]
    return "\n".join(lines) + "\n"


def sh_text(python: str, module: str, libraries: list[str], folders: list[str]) -> str:
    lines = ["#!/bin/sh", "# Written by tftriage: starts Jupyter with the GPU libraries in the search path."]
    if libraries:
        lines += scripts.sh_add("LD_LIBRARY_PATH", libraries)
    lines += scripts.sh_add("PATH", folders)
    return "\n".join([*lines, f'exec {quoting.sh(python)} -m {module} "$@"']) + "\n"


def plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(facts, values):
        raise Refused(reason)
    windows = situation.windows(facts)
    path = situation.path_rules(facts)
    python = situation.interpreter(facts)["executable"]
    module = situation.need(server_module(facts), "fix.refuse.no-jupyter")
    libraries = situation.folders(facts, values)
    folder = destination(facts, values)
    name = re.sub(r'[<>:"/\\|?*%\s]+', "-", situation.environment_name(facts)) or "tensorflow"
    base = path.join(folder, f"jupyter-{name}")
    steps: list[Step] = []
    if windows:
        folders = [*libraries, *environment_folders(facts)]
        texts = [
            (".bat", bat_text(python, module, folders, situation.home(facts))),
            (".ps1", ps_text(python, module, folders)),
        ]
    else:
        texts = [(".sh", sh_text(python, module, libraries, environment_folders(facts)))]
    for ending, text in texts:
        old = situation.read(base + ending) if situation.here(facts) else None
        expected = situation.fingerprint(old) if situation.here(facts) else None
        step = WriteFile(
            path=base + ending, text=text, newline="\r\n" if windows else "\n", mode=0o755, expected=expected
        )
        if old != step.data():
            steps.append(step)
    if not steps:
        raise Refused("fix.refuse.launcher-there", file=base + texts[0][0])
    return Plan(
        fix="start-jupyter",
        title={"file": base + texts[0][0], "python": python},
        steps=tuple(steps),
        needs=situation.rights(facts, folder),
        risk="safe",
        python=python,
        notes=(Evidence("fix.note.use-launcher", {"file": base + texts[0][0]}, "info"),),
        verify=Verify(
            facts=("jupyter.kernels", "jupyter.server", "env.process", "jupyter.import"),
            probe="kernel_import",
            good_answers=("works",),
            context={"fresh": True, "kernel": values.get("kernel"), "env": _launched(facts, libraries)},
        ),
    )


def _launched(facts: Facts, libraries: list[str]) -> dict[str, str]:
    """The environment that the launcher makes, for verifying without a server."""
    process = facts.value("env.process") or {}
    if situation.windows(facts):
        return {"PATH": ";".join([*libraries, *environment_folders(facts), *filter(None, [process.get("PATH")])])}
    env = {"PATH": ":".join([*environment_folders(facts), *filter(None, [process.get("PATH")])])}
    if libraries:
        env["LD_LIBRARY_PATH"] = ":".join([*libraries, *filter(None, [process.get("LD_LIBRARY_PATH")])])
    return env


FIX = Fix("start-jupyter", refuses, plan)
