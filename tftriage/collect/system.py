"""The operating system, its language, the user, the processor and the memory."""

import ctypes
import getpass
import locale
import os
import platform
import re
import sys
import tempfile
from typing import Any, Dict, Optional, Tuple

from . import winreg_reader
from .registry import Failed, collector

AVX_STATE = 4  # bit of GetEnabledXStateFeatures: the processor has AVX and Windows saves its registers
AVX_FEATURE = 39  # PF_AVX_INSTRUCTIONS_AVAILABLE
PROCESSOR_KEY = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"


def _library(name: str) -> Any:
    return getattr(ctypes, "WinDLL")(name)


def code_page() -> int:
    """Windows' ANSI code page: 936 in China, 1252 in western Europe, 65001 where UTF-8 was switched on."""
    return int(_library("kernel32").GetACP())


def wsl_of(release: str) -> Optional[int]:
    """1 or 2 from the kernel's release text, None outside WSL.

    Samples: ``4.4.0-19041-Microsoft`` (1), ``5.15.90.1-microsoft-standard-WSL2`` (2).
    """
    if "microsoft" not in release.lower():
        return None
    return 2 if "wsl2" in release.lower() or "microsoft-standard" in release.lower() else 1


def windows_release(major: int, minor: int, build: int) -> str:
    """The name people use: 10.0.18362 -> "10", 10.0.22631 -> "11", 6.1 -> "7"."""
    if major == 10:
        return "11" if build >= 22000 else "10"
    return {(6, 1): "7", (6, 2): "8", (6, 3): "8.1"}.get((major, minor), "{}.{}".format(major, minor))


class _VersionInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("build", ctypes.c_uint32),
        ("platform", ctypes.c_uint32),
        ("pack", ctypes.c_wchar * 128),
    ]


def _windows() -> Dict[str, Any]:
    # platform.uname() asks WMI since Python 3.12, which hangs on machines where that service is broken;
    # GetVersionEx lies to programs without a manifest. RtlGetVersion does neither.
    ntdll = _library("ntdll")
    info = _VersionInfo(ctypes.sizeof(_VersionInfo))
    ntdll.RtlGetVersion(ctypes.byref(info))
    machine = os.environ.get("PROCESSOR_ARCHITEW6432") or os.environ.get("PROCESSOR_ARCHITECTURE") or ""
    return {
        "system": "Windows",
        "release": windows_release(info.major, info.minor, info.build),
        "version": "{}.{}.{}".format(info.major, info.minor, info.build),
        "machine": machine,
        "wsl": None,
        "wine": hasattr(ntdll, "wine_get_version"),
        "distribution": None,
    }


def distribution(path: str = "/etc/os-release") -> Optional[str]:
    """``PRETTY_NAME`` of os-release, e.g. "Ubuntu 22.04.4 LTS"."""
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)', _text(path), re.M)
    return match.group(1) if match else None


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read(1 << 20)
    except OSError:
        return ""


@collector("system.os", 10)
def system(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Sample: ``{"system": "Windows", "release": "10", "version": "10.0.18362", "machine": "AMD64", ...}``."""
    if sys.platform == "win32":
        return _windows(), "RtlGetVersion"
    names = os.uname()
    return {
        "system": names.sysname,
        "release": names.release,
        "version": names.version,
        "machine": names.machine,
        "wsl": wsl_of(names.release),
        "wine": False,
        "distribution": distribution(),
    }, "uname"


@collector("system.locale", 5)
def language(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Code page and language. Sample: ``{"acp": 936, "encoding": "cp936", "ui_language": "zh_CN", ...}``."""
    utf8 = bool(getattr(sys.flags, "utf8_mode", 0))
    forced = os.environ.get("LC_ALL") or None
    if sys.platform == "win32":
        kernel = _library("kernel32")
        acp = code_page()
        name = locale.windows_locale.get(int(kernel.GetUserDefaultUILanguage()))
        return {
            "acp": acp,
            "oem": int(kernel.GetOEMCP()),
            "console": int(kernel.GetConsoleOutputCP()) or None,  # 0 without a console
            "encoding": "cp{}".format(acp),
            "ui_language": name,
            "lc_all": forced,
            "utf8_mode": utf8,
        }, "GetACP"
    chosen = forced or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
    plain = chosen.split(".")[0].split("@")[0]
    return {
        "acp": None,
        "oem": None,
        "console": None,
        "encoding": locale.getpreferredencoding(False),
        "ui_language": plain if re.match(r"^[a-z]{2,3}_[A-Z]{2}$", plain) else None,
        "lc_all": forced,
        "utf8_mode": utf8,
    }, "LC_ALL, LC_MESSAGES, LANG"


@collector("system.user", 5)
def user(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Who runs this. Sample: ``{"name": "张伟", "home": "C:\\\\Users\\\\张伟", "temp": "..."}``."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user without an entry in the password file
        name = os.environ.get("USERNAME") or os.path.basename(os.path.expanduser("~"))
    try:
        temp = tempfile.gettempdir()
    except OSError as problem:  # no folder can be written
        raise Failed("no writable temporary folder: {}".format(problem))
    return {"name": name, "home": os.path.expanduser("~"), "temp": temp}, "getuser, gettempdir"


def processor_of(cpuinfo: str) -> Dict[str, Any]:
    """Name, AVX and cores from ``/proc/cpuinfo``; AVX is None where it lists no flags (other architectures)."""
    name = re.search(r"^model name\s*: (.*)$", cpuinfo, re.M)
    flags = re.search(r"^flags\s*: (.*)$", cpuinfo, re.M)
    pairs = set(
        zip(
            re.findall(r"^physical id\s*: (\d+)", cpuinfo, re.M),
            re.findall(r"^core id\s*: (\d+)", cpuinfo, re.M),
        )
    )
    return {
        "name": name.group(1).strip() if name else None,
        "avx": "avx" in flags.group(1).split() if flags else None,
        "cores": len(pairs) or None,
    }


def _windows_avx() -> Optional[bool]:
    kernel = _library("kernel32")
    if kernel.IsProcessorFeaturePresent(AVX_FEATURE):
        return True
    # Windows before version 2004 does not know feature 39 and says no; the saved register state is older and
    # sure.
    enabled = getattr(kernel, "GetEnabledXStateFeatures", None)
    if enabled is None:
        return None
    enabled.restype = ctypes.c_uint64
    return bool(enabled() & AVX_STATE)


@collector("system.cpu", 10)
def processor(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Sample: ``{"name": "Intel(R) Core(TM) i5-8300H CPU", "avx": true, "cores": 4, "logical": 8}``."""
    if sys.platform == "win32":
        stored = winreg_reader.values("HKLM", PROCESSOR_KEY)
        name = str(stored.get("ProcessorNameString", ("", ""))[1]).strip() or None
        found: Dict[str, Any] = {"name": name, "avx": _windows_avx(), "cores": None}
        source = "GetEnabledXStateFeatures"
    else:
        found, source = processor_of(_text("/proc/cpuinfo")), "/proc/cpuinfo"
    try:
        import psutil

        found["cores"] = psutil.cpu_count(logical=False) or found["cores"]
    except Exception:  # psutil is optional, and an old one fails on new systems in its own ways
        pass
    found["name"] = found["name"] or (platform.processor() if sys.platform != "win32" else None) or None
    found["logical"] = os.cpu_count() or 1
    return found, source


class _MemoryStatus(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint32), ("load", ctypes.c_uint32)] + [
        (name, ctypes.c_uint64)
        for name in (
            "total",
            "available",
            "commit_limit",
            "commit_available",
            "virtual",
            "virtual_available",
            "extended",
        )
    ]


def memory_of(meminfo: str, strict: bool) -> Dict[str, Any]:
    """Bytes from ``/proc/meminfo``. The commit limit binds only where the kernel is told so (``strict``)."""
    sizes = {name: int(size) * 1024 for name, size in re.findall(r"^(\w+):\s+(\d+) kB", meminfo, re.M)}
    if "MemTotal" not in sizes:
        raise Failed("/proc/meminfo has no MemTotal")
    limit = sizes.get("CommitLimit") if strict else None
    return {
        "total": sizes["MemTotal"],
        "available": sizes.get("MemAvailable", sizes.get("MemFree", 0)),
        "commit_limit": limit,
        "commit_available": None if limit is None else max(0, limit - sizes.get("Committed_AS", 0)),
    }


@collector("system.memory", 5)
def memory(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Bytes. On Windows the commit limit is memory plus page file: what error 1455 is about."""
    if sys.platform == "win32":
        status = _MemoryStatus(ctypes.sizeof(_MemoryStatus))
        if not _library("kernel32").GlobalMemoryStatusEx(ctypes.byref(status)):
            raise Failed("GlobalMemoryStatusEx refused")
        names = ("total", "available", "commit_limit", "commit_available")
        return {name: getattr(status, name) for name in names}, "GlobalMemoryStatusEx"
    return memory_of(_text("/proc/meminfo"), _text("/proc/sys/vm/overcommit_memory").strip() == "2"), "/proc/meminfo"
