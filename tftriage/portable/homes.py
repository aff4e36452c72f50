"""Paths below somebody's home: what the diagnosis needs stays, other folders and files become tokens."""

import re
from typing import Callable, Match, Set

_USERS = r"(?:Users|home|Documents\ and\ Settings|用户|Benutzer|Usuarios|Utilisateurs)"
_NAME = r"[^\\/:*?\"<>|\r\n;\t]"
# Windows: blanks may stand inside a folder's name, when another separator follows.
WINDOWS = re.compile(
    r"(?ix)(?P<root>(?:[A-Z]:|%SystemDrive%|\\\\\?\\[A-Z]:)[\\/]+" + _USERS + r"[\\/]+)"
    r"(?P<name>" + _NAME + r"+?(?=[\\/])|[^\\/:*?\"<>|\r\n;\t,'()\[\]]+?(?=\s*$|['\",;:)\]|\r\n]|\s{2,}|\s+[-=<(])"
    r"|[^\\/:*?\"<>|\s;,'()\[\]]+)"
    r"(?P<rest>(?:[\\/]+" + _NAME + r"+(?=[\\/]))*(?:[\\/]+[^\\/:*?\"<>|\s;,'()\[\]]*)?)"
)
POSIX = re.compile(
    r"(?P<root>/(?:home|Users)/+)"
    r"(?P<name>[^\s/:*?\"'<>|;,()\[\]]+)(?P<rest>(?:/+[^\s/:*?\"'<>|;,()\[\]]+)*/?)"
)
# The home itself is written short (IPython, shells) or belongs to root.
SHORT = re.compile(
    r"(?P<root>(?<![\w/\\])(?:~(?=[\\/])|/root(?=[/])|%USERPROFILE%|%HOMEPATH%|\$HOME|\$\{HOME\}|\$env:USERPROFILE))"
    r"(?P<rest>(?:[\\/]+[^\s\\/:*?\"'<>|;,()\[\]]+)*)",
    re.I,
)
_INSIDE = re.compile(  # below these lies an installation, whose names are public
    r"(?i)(?:site-packages|dist-packages|conda-meta|dlls|library|scripts|include|pkgs|lib64|python[\d.]+|share)$"
)
_WORDS = [
    "appdata",
    "local",
    "locallow",
    "roaming",
    "programs",
    "program",
    "files",
    "anaconda",
    "anaconda2",
    "anaconda3",
    "miniconda",
    "miniconda2",
    "miniconda3",
    "miniforge3",
    "mambaforge",
    "conda",
    "envs",
    ".conda",
    "continuum",
    "lib",
    "lib64",
    "libs",
    "bin",
    "scripts",
    "include",
    "share",
    "dlls",
    "library",
    "jupyter",
    "kernels",
    "runtime",
    ".jupyter",
    ".ipython",
    "profile_default",
    ".local",
    ".virtualenvs",
    "virtualenvs",
    ".venv",
    ".env",
    ".pyenv",
    "versions",
    "pyenv-win",
    ".cache",
    "cache",
    "temp",
    "tmp",
    "desktop",
    "documents",
    "downloads",
    "桌面",
    "文档",
    "下载",
    "我的文档",
    "onedrive",
    "microsoft",
    "windowsapps",
    "pip",
    "uv",
    ".keras",
    "nvidia",
    "corporation",
    "toolkit",
    "computing",
    "code",
    "projects",
    "project",
    "work",
    "src",
    "student",
    "users",
    "home",
    "public",
    "pycharmprojects",
    ".vscode",
    "nvidia",
    "gpu",
    "computing",
    "toolkit",
    "anaconda3-2019.10",
]
KNOWN = frozenset(_WORDS)
_GENERIC = re.compile(
    r"(?i)(?:(?:tensorflow|tf|python|pythonsoftwarefoundation|py|gpu|cpu|keras|dl|ml|base|venv|env|test|jupyter|notebook"
    r"|cuda|cudnn|nvidia|conda|lib|libs|site|packages|user|v|x|win|linux|lab|unpinned|rc|qbz5n2kfra8p0|\d+)[-_. +]*)+$"
)
_NATIVE = re.compile(r"(?i)\.(?:dll|pyd|exe|pth|whl|cfg|so(?:\.[\d.]+)?|dylib|lib|sys)$")
_SEPARATED = re.compile(r"([\\/]+)")


def below(rest: str, needed: Set[str], folder: Callable[[str], str]) -> str:
    """``rest`` (what follows the home) with every name that no diagnosis needs replaced by ``folder(name)``.

    ``needed``: stems of file names that hide a package (``tensorflow``, ``numpy``), in lower case.
    """
    parts = _SEPARATED.split(rest)
    names = [i for i in range(0, len(parts), 2) if parts[i]]
    inside = False
    for place in names:
        name = parts[place]
        if inside or _kept(name, needed, place == names[-1]):
            inside = inside or bool(_INSIDE.match(name))
            continue
        stem, dot, ending = name.rpartition(".")
        if place == names[-1] and dot and 0 < len(ending) <= 5 and ending.isalnum() and stem:
            parts[place] = folder(stem) + dot + ending
        else:
            parts[place] = folder(name)
    return "".join(parts)


def _kept(name: str, needed: Set[str], last: bool) -> bool:
    low = name.lower()
    if low in KNOWN or low in (".", "..") or _GENERIC.match(name) or _INSIDE.match(name):
        return True
    if not last:
        return low in needed
    return bool(_NATIVE.search(name)) or low.partition(".")[0] in needed or low == "kernel.json"


def root_and_name(match: Match[str]) -> str:
    """The name of the person in a match of WINDOWS or POSIX."""
    return match.group("name").strip()
