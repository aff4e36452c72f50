"""A pip that starts in 50 ms: installs, uninstalls and downloads pure wheels of one folder. For the crash tests only.

What is proved there is that the journal copes with a command that changes packages and is cut off; with the real pip
there would be an hour of it. The real pip is what ``test_real`` and the lab use.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
import zipfile
from pathlib import Path
from urllib.parse import unquote, urlparse


def site() -> Path:
    return Path(sysconfig.get_path("purelib"))


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def wheel(requirement: str) -> Path:
    """The wheel in PIP_FIND_LINKS for ``name==version``, or the newest by name."""
    name, _, version = requirement.partition("==")
    folder = Path(unquote(urlparse(os.environ["PIP_FIND_LINKS"]).path))
    found = []
    for file in sorted(folder.glob("*.whl")):
        parts = file.name.split("-")
        if normalised(parts[0]) == normalised(name) and version in ("", parts[1]):
            found.append(file)
    if not found:
        sys.exit(f"ERROR: No matching distribution found for {requirement}")
    return found[-1]


def uninstall(name: str) -> None:
    for info in site().glob("*.dist-info"):
        if normalised(info.name.split("-")[0]) != normalised(name):
            continue
        for line in (info / "RECORD").read_text(encoding="utf-8").splitlines():
            (site() / line.split(",")[0]).unlink(missing_ok=True)
        shutil.rmtree(info)


def main(arguments: list[str]) -> None:
    verb, *rest = arguments
    folder = Path(rest[rest.index("--dest") + 1]) if "--dest" in rest else None
    names = [word for word in rest if not word.startswith("-") and word != str(folder)]
    if verb == "uninstall":
        for name in names:
            uninstall(name)
    for file in [wheel(name) for name in names] if verb != "uninstall" else []:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder)
            continue
        uninstall(file.name.split("-")[0])
        with zipfile.ZipFile(file) as archive:
            archive.extractall(site())


if __name__ == "__main__":
    main(sys.argv[1:])
