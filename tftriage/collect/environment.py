"""The environment variables that matter: of this process, and as the registry gives them to new consoles."""

import ntpath
import os
import posixpath
import re
import sys
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import child, winreg_reader
from .registry import Absent, collector

USER_KEY = "Environment"  # below HKEY_CURRENT_USER
MACHINE_KEY = r"SYSTEM\CurrentControlSet\Control\Session Manager\Environment"  # below HKEY_LOCAL_MACHINE
RELEVANT = re.compile(
    # TF_CLI, TF_VAR and TF_LOG are Terraform's, and TF_VAR may hold its secrets.
    r"^(PATH|PATHEXT|CUDA.*|CUDNN.*|NVCUDASAMPLES.*|TF_(?!CLI|VAR|LOG|TOKEN|IN_AUTO).*|XLA_FLAGS"
    r"|PYTHON.*|CONDA.*|VIRTUAL_ENV|JUPYTER_.*|LD_LIBRARY_PATH|LD_PRELOAD|PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION|TEMP|TMP|TMPDIR|LANG|LANGUAGE|LC_.*)$",
    re.I,
)
Stored = Mapping[str, Tuple[str, Any]]


def relevant(environment: Mapping[str, str]) -> Dict[str, str]:
    """The variables that can matter to TensorFlow; nothing else is kept, since others may hold secrets."""
    return {name: value for name, value in environment.items() if RELEVANT.match(name)}


def expand(value: str, environment: Mapping[str, str]) -> str:
    """``%NAME%`` replaced as Windows does: names in any case, unknown ones left as they are."""
    known = {name.upper(): text for name, text in environment.items()}
    return re.sub(r"%([^%;]+)%", lambda match: known.get(match.group(1).upper(), match.group(0)), value)


def context_environment(args: Dict[str, Any]) -> Dict[str, str]:
    """The environment of the context that a request names: ``fresh``, then ``env`` changes, then ``with_path``."""
    environment = child.fresh_environment() if args.get("fresh") else dict(os.environ)
    for name, value in (args.get("env") or {}).items():
        name = name.upper() if os.name == "nt" else name
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = str(value)
    first = [str(folder) for folder in args.get("with_path") or []]
    if first:
        environment["PATH"] = os.pathsep.join(first + [part for part in [environment.get("PATH", "")] if part])
    return environment


def path_folders(environment: Mapping[str, str], separator: str = os.pathsep) -> List[str]:
    """The folders of PATH as the loader takes them: in order, empty entries left out, quotes and spaces kept."""
    return [entry for entry in environment.get("PATH", "").split(separator) if entry]


def same_folder(entry: str) -> str:
    """A form in which two spellings of one Windows folder are equal."""
    return ntpath.normcase(ntpath.normpath(entry.strip().strip('"'))).rstrip("\\") if entry.strip() else ""


def describe_path(
    entries: List[str], machine: Stored, user: Stored, environment: Mapping[str, str], windows: bool
) -> List[Dict[str, Any]]:
    """The value of ``env.path``: every entry, whether its folder is there, and which Path value holds it."""
    scopes: Dict[str, str] = {}
    for scope, stored in (
        ("user", user),
        ("machine", machine),
    ):  # an entry in both counts as the machine's: it is first
        for name, (kind, value) in stored.items():
            if name.upper() == "PATH":
                for part in str(value).split(";"):
                    scopes[same_folder(expand(part, environment) if kind == "REG_EXPAND_SZ" else part)] = scope
    found: List[Dict[str, Any]] = []
    for entry in entries:
        folder = entry if os.path.isabs(entry) or "%" in entry else os.path.abspath(entry)
        scope = scopes.get(same_folder(entry), "process") if windows else "process"
        here = {"entry": entry, "folder": folder, "exists": os.path.isdir(entry), "scope": scope}
        earlier = [one["entry"] for one in found]
        found.append(dict(here, **describe_entry(entry, earlier, windows)))
    return found


def describe_entry(entry: str, earlier: List[str], windows: bool) -> Dict[str, Any]:
    """What is the matter with one entry, and how it is written: by 8.3 names, with letters outside ASCII.

    ``state``: ok · missing · file · quoted (the loader takes the quotes for part of the name) · relative (depends on
    the working folder) · unexpanded (a ``%NAME%`` that nothing replaces) · denied · duplicate (of an earlier entry).
    """
    same = same_folder if windows else os.path.normpath
    if '"' in entry:
        state = "quoted"
    elif windows and "%" in entry and not os.path.isdir(entry):
        state = "unexpanded"
    elif not (ntpath if windows else posixpath).isabs(entry):
        state = "relative"
    elif same(entry) in [same(other) for other in earlier]:
        state = "duplicate"
    elif os.path.isdir(entry):
        state = "ok" if os.access(entry, os.R_OK | os.X_OK) else "denied"
    else:
        state = "file" if os.path.exists(entry) else "missing"
    return {
        "state": state,
        "short": windows and bool(re.search(r"(?:^|[\\/])[^\\/]{1,6}~\d", entry)),
        "ascii": all(ord(letter) < 128 for letter in entry),
    }


def describe_stored(stored: Stored, environment: Mapping[str, str]) -> Dict[str, Any]:
    """The value of ``env.user`` and ``env.machine``; each entry of Path as a new console would get it.

    Only a Path of type REG_EXPAND_SZ is expanded: ``%CUDA_PATH%\\bin`` in one of type REG_SZ stays as it is.
    """
    path: Optional[Dict[str, Any]] = None
    variables = {}
    for name, (kind, value) in stored.items():
        if name.upper() == "PATH":
            parts = [part for part in str(value).split(";") if part]
            folders = [expand(part, environment) if kind == "REG_EXPAND_SZ" else part for part in parts]
            entries = [dict(describe_entry(folder, folders[:at], True), entry=part, folder=folder)
                       for at, (part, folder) in enumerate(zip(parts, folders))]  # fmt: skip
            path = {"type": kind, "value": value, "entries": entries}
        elif RELEVANT.match(name):
            variables[name] = {"type": kind, "value": value}
    return {"Path": path, "variables": variables}


@collector("env.process", 5)
def process(args: Dict[str, Any]) -> Tuple[Any, str]:
    """The variables that matter. Sample: ``{"PATH": "C:\\\\Windows;...", "CUDA_VISIBLE_DEVICES": "-1"}``."""
    return relevant(context_environment(args)), "registry" if args.get("fresh") else "environment of the process"


@collector("env.path", 20)
def path(args: Dict[str, Any]) -> Tuple[Any, str]:
    """PATH of the context, entry by entry."""
    environment = context_environment(args)
    machine, user = winreg_reader.values("HKLM", MACHINE_KEY), winreg_reader.values("HKCU", USER_KEY)
    entries = environment.get("PATH", "").split(os.pathsep)
    return describe_path([entry for entry in entries if entry], machine, user, environment, os.name == "nt"), "PATH"


def _stored(hive: str, key: str) -> Tuple[Any, str]:
    if sys.platform != "win32":
        raise Absent("windows-only")
    return describe_stored(winreg_reader.values(hive, key), os.environ), "{}\\{}".format(hive, key)


@collector("env.user", 5)
def user(args: Dict[str, Any]) -> Tuple[Any, str]:
    """The user's stored variables. Sample: ``{"Path": {"type": "REG_EXPAND_SZ", "value": "%USERPROFILE%\\\\x"}}``."""
    return _stored("HKCU", USER_KEY)


@collector("env.machine", 5)
def machine(args: Dict[str, Any]) -> Tuple[Any, str]:
    """The machine's stored variables, readable without administrator rights."""
    return _stored("HKLM", MACHINE_KEY)
