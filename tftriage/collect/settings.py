"""Settings of Windows that matter, and the Visual C++ runtime: as the registry says it, and as the files are."""

import os
import re
import sys
from typing import Any, Dict, List, Optional, Tuple

from . import pe, places, winreg_reader
from .registry import Absent, collector

FILE_SYSTEM = r"SYSTEM\CurrentControlSet\Control\FileSystem"
GRAPHICS = r"SYSTEM\CurrentControlSet\Control\GraphicsDrivers"
RUNTIMES = r"SOFTWARE\Microsoft\VisualStudio\14.0\VC\Runtimes"
WOW64_64, WOW64_32 = 0x100, 0x200  # which half of the registry (KEY_WOW64_64KEY, KEY_WOW64_32KEY)
# What TensorFlow's native modules import from it, of any version.
RUNTIME_FILES = (
    "vcruntime140.dll", "vcruntime140_1.dll", "msvcp140.dll", "msvcp140_1.dll", "concrt140.dll", "vcomp140.dll",
)  # fmt: skip


def number_of(stored: Dict[str, Tuple[str, Any]], name: str) -> Optional[int]:
    """A REG_DWORD, or None where there is none of that name."""
    value = stored.get(name, ("", None))[1]
    return value if isinstance(value, int) else None


def settings_of(values: winreg_reader.Values) -> Dict[str, Any]:
    """The value of ``system.settings``. ``HwSchMode`` is 2 for on, 1 for off, and not there where Windows decides."""
    long_paths = number_of(values("HKLM", FILE_SYSTEM), "LongPathsEnabled")
    scheduling = number_of(values("HKLM", GRAPHICS), "HwSchMode")
    return {
        "long_paths": None if long_paths is None else long_paths == 1,
        "hags": {2: True, 1: False}.get(scheduling or 0),
        "hags_mode": scheduling,
    }


@collector("system.settings", 5)
def settings(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Sample: ``{"long_paths": false, "hags": true, "hags_mode": 2}`` (HAGS: the GPU schedules its own work)."""
    if sys.platform != "win32":
        raise Absent("windows-only")
    return settings_of(winreg_reader.values), "LongPathsEnabled, HwSchMode"


def registered_runtimes(values: Any) -> List[Dict[str, Any]]:
    """What the redistributable's installer wrote. Sample: ``Version`` = ``v14.29.30133.00``, ``Installed`` = 1."""
    found: Dict[str, Dict[str, Any]] = {}
    for view in (WOW64_64, WOW64_32):
        for arch in ("x64", "x86"):
            stored = values("HKLM", RUNTIMES + "\\" + arch, view)
            match = re.match(r"^v?(\d+\.\d+\.\d+)", str(stored.get("Version", ("", ""))[1]))
            if match and arch not in found:
                installed = number_of(stored, "Installed")
                found[arch] = {"arch": arch, "version": match.group(1), "installed": installed != 0}
    return list(found.values())


def runtime_files(folder: str) -> List[Dict[str, Any]]:
    """The runtime's files in one folder, with their versions; ``error`` of one that is broken."""
    present = {name.lower(): name for name in places.names_in(folder)}
    found = []
    for name in RUNTIME_FILES:
        if name in present:
            facts = pe.read(os.path.join(folder, present[name]))
            found.append({"name": name, "version": facts["file_version"], "machine": facts["machine"],
                          "error": facts["error"]})  # fmt: skip
    return found


@collector("system.vcruntime", 10)
def vcruntime(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Sample: ``{"registry": [{"arch": "x64", "version": "14.29.30133", "installed": true}], "files": [...]}``."""
    if sys.platform != "win32":
        raise Absent("windows-only")
    folder = places.windows_folders(os.environ)["system32"]
    value = {
        "registry": registered_runtimes(winreg_reader.values),
        "folder": folder,
        "files": runtime_files(folder),
    }
    return value, "{}, {}".format(RUNTIMES, folder)
