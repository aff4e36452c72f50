"""A real environment with the real pip, wheels that lie beside it, and real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tftriage.facts import Facts
from tftriage.fixes import running

from .conftest import make_facts
from .wheels import wheel

BIN = "Scripts" if sys.platform == "win32" else "bin"


class Environment:
    def __init__(self, folder: Path) -> None:
        self.prefix = folder / "环境 $x"
        self.wheels = folder / "wheels"
        self.wheels.mkdir(parents=True)
        venv = pytest.importorskip("venv", reason="the embeddable Windows Python has no venv")
        venv.create(self.prefix, with_pip=True, symlinks=sys.platform != "win32")
        self.python = str(self.prefix / BIN / ("python.exe" if sys.platform == "win32" else "python"))
        for name, version in [("pbuf", "3.20.3"), ("pbuf", "4.24.4"), ("hfive", "2.10.0"), ("ipykernel", "6.16.2")]:
            wheel(self.wheels, name, version)

    def pip(self, *arguments: str) -> None:
        subprocess.run([self.python, "-m", "pip", "-q", *arguments], check=True, capture_output=True)

    def facts(self, **more: Any) -> Facts:
        found = running.packages(self.python)
        site = str(next(self.prefix.glob("lib*/**/site-packages")))
        return make_facts(
            {
                "target.interpreter": {
                    "executable": self.python,
                    "version": list(sys.version_info[:3]),
                    "prefix": str(self.prefix),
                    "venv": True,
                    "base_prefix": sys.base_prefix,
                    "conda": False,
                    "ipykernel": found.versions.get("ipykernel"),
                    "pip": found.versions.get("pip"),
                },
                "target.packages": {
                    name: {"name": name, "version": version, "folder": site, "installer": "pip"}
                    for name, version in found.versions.items()
                },
                "tf.package": {"version": "2.1.0"},
                **more,
            }
        )

    def versions(self) -> dict[str, str]:
        return {n: v for n, v in running.packages(self.python).versions.items() if n in ("pbuf", "hfive", "ipykernel")}


def shell(name: str, script: str, **variables: str) -> list[str]:
    path = shutil.which(name)
    if path is None:
        pytest.fail(f"{name} is not installed")
    keep = {"PATH": os.environ["PATH"], "HOME": "/tmp", **variables}
    done = subprocess.run([path, "-c", script], capture_output=True, text=True, env=keep, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
