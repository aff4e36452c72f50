"""Names outside ASCII on the way of an import: user, home, TEMP, environment, working folder, CUDA."""

import locale
import os
import shutil
import sys
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import cuda, interpreters, system, target
from .environment import context_environment
from .registry import Failed, Skipped, collector


def ansi_encoding() -> str:
    """The encoding of the narrow (char*) file functions: Windows' code page, elsewhere the locale's."""
    if sys.platform == "win32":
        return "cp{}".format(system.code_page())
    return locale.getpreferredencoding(False)


def encodable(text: str, encoding: str) -> bool:
    """Whether narrow functions can name it. Undecodable bytes of Linux names (surrogates) they cannot."""
    try:
        return text.encode(encoding).decode(encoding) == text
    except (UnicodeError, LookupError):
        return False


def outside_ascii(named: List[Tuple[str, Optional[str]]], encoding: str) -> List[Dict[str, Any]]:
    """The value of ``names.nonascii``: those (what, path) with a letter outside ASCII, each once."""
    found, seen = [], set()
    for what, path in named:
        if path and any(ord(letter) > 127 for letter in path) and (what, path) not in seen:
            seen.add((what, path))
            found.append({"what": what, "path": path, "ansi_ok": encodable(path, encoding)})
    return found


def named_places(args: Dict[str, Any], environment: Mapping[str, str]) -> List[Tuple[str, Optional[str]]]:
    """(what it is, path) of every place whose name an import can stumble over."""
    who = system.user(args)[0]
    temp = environment.get("TEMP") or environment.get("TMP") or environment.get("TMPDIR") or tempfile.gettempdir()
    named: List[Tuple[str, Optional[str]]] = [("user", who["name"]), ("home", who["home"]), ("temp", temp)]
    python = args.get("python")
    if python:
        named.append(("prefix", interpreters.prefix_of(str(python))))
        for folder in interpreters.site_packages(str(python), environment):
            for package in ("tensorflow", "tensorflow_core"):
                if os.path.isdir(os.path.join(folder, package)):
                    named.append(("package", os.path.join(folder, package)))
    try:
        named.append(("cwd", str(args.get("cwd") or os.getcwd())))
    except OSError:  # it was deleted
        pass
    named += [("cuda", value) for name, value in environment.items() if name.upper().startswith("CUDA_PATH")]
    named += [("cuda", folder) for folder in cuda.search_path(environment) if "cuda" in folder.lower()]
    named.append(("runtime", environment.get("JUPYTER_RUNTIME_DIR")))
    return named


@collector("names.nonascii", 15)
def nonascii(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Sample: ``{"what": "home", "path": "C:\\\\Users\\\\张伟", "ansi_ok": true}`` (code page 936)."""
    return outside_ascii(named_places(args, context_environment(args)), ansi_encoding()), "paths"


def ascii_folder(environment: Mapping[str, str]) -> str:
    """A new empty folder whose whole path is ASCII and in which this user may write. Failed when there is none."""
    if os.name == "nt":
        windows = environment.get("SYSTEMROOT") or "C:\\Windows"
        bases = [
            environment.get("TEMP"),
            environment.get("PUBLIC"),
            environment.get("PROGRAMDATA"),
            windows + "\\Temp",
            "C:\\",
        ]
    else:
        bases = ["/tmp", "/var/tmp", "/dev/shm"]
    for base in bases:
        if base and base.isprintable() and all(ord(letter) < 128 for letter in base):
            try:
                return tempfile.mkdtemp(prefix="tftriage-", dir=base)
            except OSError:  # not there, or not ours to write in
                continue
    raise Failed("no folder with an ASCII path can be written")


def ascii_changes(named: List[Dict[str, Any]], folder: str, windows: bool) -> Dict[str, Any]:
    """``env`` and ``cwd`` for the repeated import: only what holds other letters is replaced."""
    what = {entry["what"] for entry in named}
    env: Dict[str, Optional[str]] = {}
    if "temp" in what:
        env.update({name: folder for name in ("TEMP", "TMP", "TMPDIR")})
    if not windows:
        env.update(LC_ALL="C.UTF-8", PYTHONUTF8="1")
    return {"env": env, "cwd": folder if "cwd" in what else None}


@collector("names.ascii_import", 180)
def ascii_import(args: Dict[str, Any]) -> Tuple[Any, str]:
    """The import again with TEMP and working folder on an ASCII path and, on Linux, in a UTF-8 locale.

    ``same_error``: it fails as before, so names are not the cause.
    """
    environment = context_environment(args)
    named = outside_ascii(named_places(args, environment), ansi_encoding())
    if not named:
        raise Skipped("no name outside ASCII")
    half = dict(args, limit=float(args.get("limit") or 180) * 0.48)
    before = target.attempt(half)
    folder = ascii_folder(environment)
    try:
        changes = ascii_changes(named, folder, os.name == "nt")
        env = dict(args.get("env") or {}, **changes["env"])
        after = target.attempt(dict(half, env=env, cwd=changes["cwd"] or args.get("cwd")))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    same = not after["ok"] and all(after[key] == before[key] for key in ("error_type", "error"))
    return {
        "ok": after["ok"],
        "same_error": same,
        "log": after["log"],
        "error_type": after["error_type"],
        "error": after["error"],
        "before_ok": before["ok"],
        "changed": sorted(env) + (["cwd"] if changes["cwd"] else []),
    }, "import {}".format(after["module"])
