"""new-environment and ascii-environment: a fresh environment beside the broken one, which stays as it is.

``new-environment`` holds a set of versions that was tested together. ``ascii-environment`` holds what the old one
holds, at a path of ASCII characters, for tools that stumble over others. A junction (``mklink /J``) would do that
without installing anything, but Wine has none that Python follows, so it could not be tried and is not offered.
"""

# Paths here are texts of the machine they are of, kept byte for byte.
# ruff: noqa: PTH112, PTH118
from __future__ import annotations

import os
import shutil
from typing import Any

from packaging.version import InvalidVersion, Version

from tftriage.facts import Facts
from tftriage.fixes import kernelspecs, situation
from tftriage.fixes.pin_packages import normalised
from tftriage.fixes.plans import BuildFolder, Plan, Refused, Verify, WriteFile
from tftriage.fixes.register_kernel import kernels_folder
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import PinSet, Tables

LAST_WITH_GPU = "2.10.1"  # on native Windows
_SEEDS = ("pip", "setuptools", "wheel", "pkg-resources")


def refuses(facts: Facts, values: Values) -> str | None:
    if not situation.interpreter(facts):
        return "fix.refuse.no-interpreter"
    if not tensorflow(facts, values):
        return "fix.refuse.no-tf-version"
    return None


def tensorflow(facts: Facts, values: Values) -> str | None:
    """The TensorFlow for the new environment: the one asked for or broken here, 2.10.1 where a later one has no GPU."""
    text = values.get("tf_version") or (facts.value("tf.package") or {}).get("version")
    try:
        version = Version(text) if text else None
    except InvalidVersion:
        return None
    if version is not None and situation.windows(facts) and version >= Version("2.11"):
        return LAST_WITH_GPU
    return str(version) if version else None


def base(facts: Facts, values: Values, tables: Tables, version: str) -> tuple[str, PinSet]:
    """The Python to build on and the tested set for it: the target's own where one is known for it, else another
    that is installed here. Raises ``Refused``."""
    interpreter = situation.interpreter(facts)
    known = [(interpreter["executable"], situation.python_series(facts) or "")]
    for python in facts.value("pythons.list") or ():
        if python.get("version"):
            known.append((python["path"], ".".join(str(python["version"]).split(".")[:2])))
    for path, series in known:
        row = tables.pin_set(version, series)
        if row is not None and row.kind == "tested":
            return str(values.get("python") or path), row
    raise Refused("fix.refuse.no-python-for-it", version=version)


def plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(facts, values):
        raise Refused(reason)
    version = situation.need(tensorflow(facts, values), "fix.refuse.no-tf-version")
    python, row = base(facts, values, tables, version)
    name = "tensorflow-gpu" if Version(version) < Version("2.1") else "tensorflow"
    wanted = {normalised(pin): pinned for pin, pinned in row.pins.items()} | {name: version}
    path = situation.path_rules(facts)
    folder = values.get("folder") or path.join(_beside(facts), f"tf-{version}")
    notes = [Evidence("fix.note.old-one-stays", {"environment": situation.environment_name(facts)}, "info")]
    asked = values.get("tf_version") or (facts.value("tf.package") or {}).get("version")
    if asked and Version(str(asked)) >= Version("2.11") and situation.windows(facts):
        notes.append(Evidence("fix.note.wsl-instead", {"version": version, "asked": str(asked)}, "info"))
    return _built(facts, "new-environment", folder, python, wanted, (), notes)


def _beside(facts: Facts) -> str:
    """The folder that holds the broken environment, for a venv; the home folder for a Python of the system."""
    interpreter = situation.interpreter(facts)
    if interpreter.get("venv"):
        return str(situation.path_rules(facts).dirname(str(interpreter["prefix"]).rstrip("/\\")))
    return str(situation.path_rules(facts).join(situation.need(situation.home(facts), "fix.refuse.no-home"), "envs"))


def ascii_refuses(facts: Facts, values: Values) -> str | None:
    if not situation.interpreter(facts):
        return "fix.refuse.no-interpreter"
    if not facts.ok("target.packages"):
        return "fix.refuse.packages-unknown"
    if situation.interpreter(facts).get("conda"):
        return "fix.refuse.conda-clone"
    if str(situation.interpreter(facts).get("prefix", "")).isascii() and not values.get("folder"):
        return "fix.refuse.ascii-already"
    return None if _ascii_folder(facts, values).isascii() else "fix.refuse.no-ascii-folder"


def _ascii_folder(facts: Facts, values: Values) -> str:
    if values.get("folder"):
        return values["folder"]
    name = "".join(c for c in situation.environment_name(facts) if c.isascii() and (c.isalnum() or c in "._-"))
    if situation.windows(facts):
        drive = situation.variables(facts).get("SYSTEMDRIVE", "C:")
        return f"{drive}\\envs\\{name.strip('.-') or 'tf'}"
    return f"{situation.home(facts) or ''}/envs/{name.strip('.-') or 'tf'}"


def ascii_plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := ascii_refuses(facts, values):
        raise Refused(reason)
    installed: dict[str, Any] = facts.value("target.packages")
    wanted = {name: str(p["version"]) for name, p in installed.items() if name not in _SEEDS}
    interpreter = situation.interpreter(facts)
    kernels = [k for k in facts.value("jupyter.kernels") or () if _of(facts, k, str(interpreter["executable"]))]
    notes = [Evidence("fix.note.old-one-stays", {"environment": situation.environment_name(facts)}, "info")]
    python = str(values.get("python") or interpreter["executable"])
    flags = ("--no-deps",)  # exactly what is there, consistent or not
    folder = _ascii_folder(facts, values)
    return _built(facts, "ascii-environment", folder, python, wanted, flags, notes, kernels)


def _of(facts: Facts, kernel: dict[str, Any], python: str) -> bool:
    path = situation.path_rules(facts)
    return path.normcase(str(kernel.get("interpreter") or "")) == path.normcase(python) and not kernel.get("error")


def _built(
    facts: Facts,
    fix: str,
    folder: str,
    python: str,
    wanted: dict[str, str],
    flags: tuple[str, ...],
    notes: list[Evidence],
    kernels: list[dict[str, Any]] | None = None,
) -> Plan:
    path = situation.path_rules(facts)
    if situation.here(facts) and os.path.lexists(folder):
        raise Refused("fix.refuse.folder-there", folder=folder)
    new_python = path.join(folder, *(("Scripts", "python.exe") if situation.windows(facts) else ("bin", "python")))
    requirements = tuple(f"{name}=={version}" for name, version in sorted(wanted.items()))
    kernel_missing = () if "ipykernel" in wanted else ("ipykernel",)
    install = (new_python, "-m", "pip", "install", *flags, *requirements)
    commands = [_maker(facts, python, folder), install]
    if kernel_missing:
        commands.append((new_python, "-m", "pip", "install", *kernel_missing))
    notes += [
        Evidence("fix.note.step-shows", {"number": "1", "shows": new_python}, "info"),
        Evidence("fix.note.step-shows", {"number": "2", "shows": "Successfully installed"}, "info"),
    ]
    spec_folder, spec, expected = _kernel(facts, folder, new_python, kernels or [])
    notes.append(Evidence("fix.note.choose-kernel", {"display_name": spec["display_name"]}, "info"))
    versions: dict[str, str | None] = {**wanted, **dict.fromkeys(kernel_missing)}
    return Plan(
        fix=fix,
        title={"folder": folder, "packages": " ".join(requirements), "python": python},
        steps=(
            BuildFolder(
                path=folder,
                commands=tuple(commands),
                env=situation.pip_environment(facts),
                python=new_python,
                packages=versions,
            ),
            WriteFile(path=path.join(spec_folder, "kernel.json"), text=kernelspecs.created(spec), expected=expected),
        ),
        needs=("network", "restart-kernel", *situation.rights(facts, path.dirname(folder))),
        risk="safe",
        python=new_python,
        notes=tuple(notes),
        verify=Verify(
            facts=("tf.import",),
            probe="reproduce",
            good_answers=("works",),
            context={"fresh": False, "kernel": None, "env": {}, "python": new_python},
            own=True,
        ),
    )


def _maker(facts: Facts, python: str, folder: str) -> tuple[str, ...]:
    """Python's own venv; uv where this machine has it and the Python brings no venv (Debian splits it off)."""
    uv = shutil.which("uv") if situation.here(facts) else None
    if uv and python == situation.interpreter(facts)["executable"] and not _has_ensurepip(facts):
        return (uv, "venv", "--seed", "--python", python, folder)
    return (python, "-m", "venv", folder)


def _has_ensurepip(facts: Facts) -> bool:
    """Whether ``python -m venv`` can give an environment its pip."""
    base_prefix = situation.interpreter(facts).get("base_prefix")
    if not base_prefix:
        return True  # not known: tried as usual, and taken back if it fails
    series = situation.python_series(facts)
    folders = [("Lib",)] if situation.windows(facts) else [(lib, f"python{series}") for lib in ("lib", "lib64")]
    return any(os.path.isdir(os.path.join(base_prefix, *inner, "ensurepip")) for inner in folders)


def _kernel(
    facts: Facts, folder: str, python: str, kernels: list[dict[str, Any]]
) -> tuple[str, dict[str, Any], str | None]:
    """The kernelspec of the new environment: the old one's name where there was one, so that notebooks go on."""
    path = situation.path_rules(facts)
    name = kernels[0]["name"] if kernels else path.basename(folder).lower()
    spec_folder = kernels[0]["folder"] if kernels else path.join(kernels_folder(facts), name)
    spec: dict[str, Any] = {
        "argv": [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": kernels[0]["display_name"] if kernels else f"Python ({path.basename(folder)})",
        "language": "python",
    }
    if kernels and kernels[0].get("env"):
        spec["env"] = kernels[0]["env"]
    if not situation.here(facts):
        return spec_folder, spec, None
    return spec_folder, spec, situation.fingerprint(situation.read(path.join(spec_folder, "kernel.json")))


FIXES = (Fix("new-environment", refuses, plan), Fix("ascii-environment", ascii_refuses, ascii_plan))
