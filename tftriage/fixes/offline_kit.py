"""offline-kit: a folder with the wheels, the pins and a script that installs them where there is no network.

It is made on a machine that has a network, with a Python of the same series and system as the other machine's.
"""

# The lines of the scripts are as long as they are.
# ruff: noqa: E501
from __future__ import annotations

import os

from packaging.version import Version

from tftriage.facts import Facts
from tftriage.fixes import new_environment, situation
from tftriage.fixes.pin_packages import normalised
from tftriage.fixes.plans import BuildFolder, Plan, Refused, Verify, WriteFile
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import Tables

SH = """#!/bin/sh
# Makes an environment beside this file from the wheels beside it: sh install.sh [PYTHON]
set -e
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
"${1:-python3}" -c 'import sys; v = "%d.%d" % sys.version_info[:2]; sys.exit(v != "SERIES" and "Python SERIES is needed, this is " + v)'
"${1:-python3}" -m venv "$here/env"
"$here/env/bin/python" -m pip install --no-index --find-links "$here/wheels" -r "$here/requirements.txt"
echo "$here/env/bin/python"
"""
BAT = r"""@rem Makes an environment beside this file from the wheels beside it: install.bat [PYTHON]
@setlocal
@set "PY=%~1"
@if not defined PY set "PY=python"
@"%PY%" -c "import sys; v = '%%d.%%d' %% sys.version_info[:2]; sys.exit(v != 'SERIES' and 'Python SERIES is needed, this is ' + v)" || exit /b 1
@"%PY%" -m venv "%~dp0env" || exit /b 1
@"%~dp0env\Scripts\python.exe" -m pip install --no-index --find-links "%~dp0wheels" -r "%~dp0requirements.txt" || exit /b 1
@echo "%~dp0env\Scripts\python.exe"
"""


def refuses(facts: Facts, values: Values) -> str | None:
    if reason := new_environment.refuses(facts, values):
        return reason
    return None if situation.interpreter(facts).get("pip") else "fix.refuse.no-pip"


def plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(facts, values):
        raise Refused(reason)
    path = situation.path_rules(facts)
    version = situation.need(new_environment.tensorflow(facts, values), "fix.refuse.no-tf-version")
    series = situation.python_series(facts) or ""
    row = tables.pin_set(version, series)
    if row is None or row.kind != "tested":
        raise Refused("fix.refuse.no-pins")
    name = "tensorflow-gpu" if Version(version) < Version("2.1") else "tensorflow"
    wanted = {normalised(pin): pinned for pin, pinned in row.pins.items()} | {name: version}
    requirements = [f"{package}=={pinned}" for package, pinned in sorted(wanted.items())] + ["ipykernel"]
    home = values.get("folder") or path.join(
        situation.need(situation.home(facts), "fix.refuse.no-home"), f"tf-{version}-py{series}-offline"
    )
    if situation.here(facts) and os.path.lexists(home):
        raise Refused("fix.refuse.folder-there", folder=home)
    wheels = path.join(home, "wheels")
    python = situation.interpreter(facts)["executable"]
    windows = situation.windows(facts)
    script = (BAT if windows else SH).replace("SERIES", series)
    return Plan(
        fix="offline-kit",
        title={"folder": home, "packages": " ".join(requirements)},
        steps=(
            BuildFolder(
                path=wheels,
                commands=((python, "-m", "pip", "download", "--dest", wheels, *requirements),),
                env=situation.pip_environment(facts),
                files=tuple(f"{package.replace('-', '?')}-{pinned}-*" for package, pinned in sorted(wanted.items())),
            ),
            WriteFile(path=path.join(home, "requirements.txt"), text="\n".join(requirements) + "\n"),
            WriteFile(
                path=path.join(home, "install.bat" if windows else "install.sh"),
                text=script,
                newline="\r\n" if windows else "\n",
                mode=0o755,
            ),
        ),
        needs=("network",),
        risk="safe",
        python=python,
        notes=(Evidence("fix.note.same-machine-kind", {"series": series, "folder": home}, "info"),),
        verify=Verify(
            facts=("target.interpreter",),
            probe="python_fits",
            good_answers=("fits",),
            context={"fresh": False, "kernel": None, "env": {}},
        ),
    )


FIX = Fix("offline-kit", refuses, plan)
