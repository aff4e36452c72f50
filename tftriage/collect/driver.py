"""The NVIDIA driver: does its CUDA library load and start, and which cards does the system show by itself?"""

import os
import re
import sys
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import places, winreg_reader
from .child import decode, run
from .registry import collector

DISPLAY_CLASS = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"
VENDORS = {
    "10de": "NVIDIA",
    "1002": "AMD",
    "1022": "AMD",
    "8086": "Intel",
    "1414": "Microsoft",
    "15ad": "VMware",
}
# Runs in a process of its own: a broken driver can crash in cuInit. Prints "library", "init" and "version"
# lines.
CHILD = r"""
import ctypes, sys
try:
    library = ctypes.CDLL("libcuda.so.1") if sys.platform != "win32" else ctypes.WinDLL("nvcuda.dll")
except OSError as problem:
    print("error", str(problem).encode("unicode_escape").decode("ascii"))
    sys.exit(0)
path = ""
if sys.platform == "win32":
    buffer = ctypes.create_unicode_buffer(32768)
    get = ctypes.windll.kernel32.GetModuleFileNameW
    get.argtypes = [ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_uint32]
    get(library._handle, buffer, 32768)
    path = buffer.value
else:
    for line in open("/proc/self/maps", errors="replace"):
        if "libcuda.so" in line:
            path = line.split(None, 5)[5].strip()
            break
print("library", path.encode("unicode_escape").decode("ascii"))
sys.stdout.flush()
version = ctypes.c_int(0)
print("version", library.cuDriverGetVersion(ctypes.byref(version)), version.value)
sys.stdout.flush()
print("init", library.cuInit(0))
"""


def cuda_text(number: int) -> Optional[str]:
    """11020 -> "11.2": how CUDA writes versions as one number."""
    return "{}.{}".format(number // 1000, number % 1000 // 10) if number > 0 else None


def parse_child(text: str) -> Dict[str, Any]:
    """What the child printed, and so how far it came.

    Sample: ``library /usr/lib/wsl/lib/libcuda.so.1``, ``version 0 11020``, ``init 100``.
    """
    found: Dict[str, Any] = {
        "library": None,
        "loads": None,
        "error": None,
        "cu_init": None,
        "cuda_version": None,
    }
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word == "error":
            found["loads"], found["error"] = False, rest.encode("ascii", "replace").decode("unicode_escape")
        elif word == "library":
            found["loads"], found["library"] = (
                True,
                rest.encode("ascii", "replace").decode("unicode_escape") or None,
            )
        elif word == "version" and re.match(r"^0 \d+$", rest):
            found["cuda_version"] = cuda_text(int(rest.split()[1]))
        elif word == "init" and re.match(r"^-?\d+$", rest):
            found["cu_init"] = int(rest)
    return found


def driver_file(environment: Mapping[str, str]) -> Optional[str]:
    """Where the driver's CUDA library lies, for when it does not load."""
    if os.name == "nt":
        folders, name = [places.windows_folders(environment)["system32"]], "nvcuda.dll"
    else:
        folders, name = environment.get("LD_LIBRARY_PATH", "").split(":"), "libcuda.so.1"
        folders += [
            "/usr/lib/wsl/lib",
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib64",
            "/usr/lib",
            "/usr/lib/aarch64-linux-gnu",
        ]
    paths = [os.path.join(folder, name) for folder in folders if folder]
    return next((path for path in paths if os.path.isfile(path)), None)


def kernel_module(path: str = "/proc/driver/nvidia/version") -> Optional[str]:
    """The version of the loaded kernel module.

    Sample: ``NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82.01  Mon Nov  1 ...``.
    """
    match = re.search(r"Kernel Module\s+(?:for \S+\s+)?(\d+\.[\d.]+)", places.text_of(path))
    return match.group(1) if match else None


def windows_cards(
    keys: winreg_reader.Keys = winreg_reader.keys, values: winreg_reader.Values = winreg_reader.values
) -> List[Dict[str, Any]]:
    """The display adapters of the registry, also those that run on Microsoft's basic driver.

    Sample of a subkey ``0000``: DriverDesc ``NVIDIA GeForce GTX 1060``, MatchingDeviceId
    ``PCI\\VEN_10DE&DEV_1C20``, DriverVersion ``27.21.14.6192`` (461.92).
    """
    found = []
    for key in keys("HKLM", DISPLAY_CLASS):
        stored = values("HKLM", DISPLAY_CLASS + "\\" + key) if re.match(r"^\d{4}$", key) else {}
        name = str(stored.get("DriverDesc", ("", ""))[1])
        if name:
            device = str(stored.get("MatchingDeviceId", ("", ""))[1])
            match = re.search(r"VEN_([0-9A-F]{4})", device, re.I)
            found.append({"vendor": _vendor(match.group(1) if match else ""), "name": name,
                          "driver": str(stored.get("DriverVersion", ("", ""))[1]) or None})  # fmt: skip
    return found


def _vendor(number: str) -> str:
    return VENDORS.get(number.lower(), number.lower())


def linux_cards(root: str = "/sys/bus/pci/devices") -> Optional[List[Dict[str, Any]]]:
    """The display controllers on the PCI bus (class 03), by number; None where there is no such list."""
    if not os.path.isdir(root):
        return None
    found = []
    for slot in sorted(places.names_in(root)):
        read = [places.text_of(os.path.join(root, slot, name)).strip() for name in ("class", "vendor", "device")]
        if read[0].startswith("0x03"):
            found.append({"vendor": _vendor(read[1][2:]), "name": "{}:{}".format(read[1][2:], read[2][2:])})
    return found


def named_cards(cards: List[Dict[str, Any]], lspci: str) -> List[Dict[str, Any]]:
    """The same with names, from ``lspci -nn``.

    Sample: ``01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GP106M [10de:1c20] (rev a1)``.
    """
    names = {match.group(2): match.group(1).strip()
             for match in re.finditer(r"\[03\d\d\]: (.*?) \[([0-9a-f]{4}:[0-9a-f]{4})\]", lspci)}  # fmt: skip
    return [dict(card, name=names.get(card["name"], card["name"])) for card in cards]


def _cards() -> Optional[List[Dict[str, Any]]]:
    if sys.platform == "win32":
        return windows_cards()
    cards = linux_cards()
    if not cards:
        return cards
    try:
        return named_cards(cards, decode(run(["lspci", "-nn"], 10).out))
    except OSError:
        return cards


@collector("gpu.driver", 40)
def driver(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Whether the driver's CUDA library loads and starts, tried in a child. ``cu_init``: 0 ok, 100 no device."""
    result = run([sys.executable, "-I", "-S", "-c", CHILD], 20)
    found = parse_child(decode(result.out))
    if found["library"] is None:
        found["library"] = driver_file(os.environ)
    if result.timed_out:
        found["error"] = "no answer in 20 s"
    elif result.exit:
        found["error"] = "the process ended with {}".format(result.exit)
    found["kernel_module"] = kernel_module()
    found["cards"] = _cards()
    return found, "cuInit"
