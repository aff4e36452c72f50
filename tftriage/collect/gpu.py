"""NVIDIA devices: by NVML, and by ``nvidia-smi`` where NVML or its Python module is not there."""

import csv
import ctypes
import os
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from . import places
from .child import decode, run
from .driver import cuda_text
from .registry import Absent, Failed, collector

# What holds the clocks down, as NVML's bits name it (nvml.h, nvmlClocksThrottleReason*).
THROTTLE = {
    0x1: "gpu-idle", 0x2: "applications-clocks", 0x4: "sw-power-cap", 0x8: "hw-slowdown", 0x10: "sync-boost",
    0x20: "sw-thermal", 0x40: "hw-thermal", 0x80: "hw-power-brake", 0x100: "display-clocks",
}  # fmt: skip
DRIVER_MODELS = {0: "WDDM", 1: "WDM", 2: "MCDM"}
FIELDS = (
    "index", "name", "driver_version", "memory.total", "memory.used", "memory.free", "utilization.gpu",
    "utilization.memory", "power.draw", "power.limit", "temperature.gpu", "clocks.sm", "clocks.max.sm",
    "pstate", "pcie.link.gen.current", "pcie.link.gen.max", "pcie.link.width.current", "pcie.link.width.max",
)  # fmt: skip


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _try(function: Callable[..., Any], *arguments: Any) -> Any:
    # Every field may be refused by itself: laptops report no power, old cards no utilisation, old drivers
    # lack calls.
    try:
        return function(*arguments)
    except Exception:
        return None


def error_name(nvml: Any, problem: Any) -> str:
    """The constant's name of an NVML error: 9 -> NVML_ERROR_DRIVER_NOT_LOADED."""
    code = getattr(problem, "value", None)
    names = [name for name in dir(nvml) if name.startswith("NVML_ERROR_") and getattr(nvml, name) == code]
    return names[0] if names else "NVML error {}".format(code)


class NoNvml(Exception):
    """NVML cannot be asked: no-module (pynvml), no-library, broken-library or too-old-library, and what was said."""


def start_nvml() -> Any:
    """pynvml with NVML initialised. NoNvml: there is none to ask. Failed: it is there and its driver is dead."""
    try:
        import pynvml
    except ImportError as problem:
        raise NoNvml("no-module: {}".format(problem))
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as problem:
        if problem.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
            raise NoNvml(_why_not_found())
        if problem.value == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:  # drivers before 2012 have no nvmlInit_v2
            raise NoNvml("too-old-library: {}".format(error_name(pynvml, problem)))
        raise Failed("driver:{}".format(error_name(pynvml, problem)))
    except Exception as problem:  # an old binding, or a library that is none
        raise NoNvml("broken-library: {}".format(problem))
    return pynvml


def _why_not_found() -> str:
    """pynvml says "not found" of a library that is there and does not load as well."""
    name = "nvml.dll" if os.name == "nt" else "libnvidia-ml.so.1"
    try:
        ctypes.CDLL(name)
    except OSError as problem:
        text = str(problem)
        # glibc names the file that it misses; of a broken one it says something else (invalid ELF header, ...).
        gone = ("cannot open shared object file" in text and text.startswith(name)) or "126" in text
        return "no-library" if gone or "Could not find module" in text else "broken-library: {}".format(text)
    return "broken-library: pynvml does not find {}".format(name)


def nvml_or_reason() -> Tuple[Any, str]:
    """(pynvml, "") or (None, why NVML cannot be asked). Failed: a dead driver."""
    try:
        return start_nvml(), ""
    except NoNvml as none:
        return None, str(none)


def from_nvml(nvml: Any) -> Dict[str, Any]:
    """The value of ``gpu.devices`` by NVML; what a device or driver does not support is null."""
    cuda = _try(lambda: int(nvml.nvmlSystemGetCudaDriverVersion()))
    count = _try(lambda: int(nvml.nvmlDeviceGetCount())) or 0
    return {
        "driver": _try(lambda: _text(nvml.nvmlSystemGetDriverVersion())),
        "cuda_driver": cuda_text(cuda or 0),
        "devices": [device for device in (_try(_device, nvml, number) for number in range(count)) if device],
    }


def _device(nvml: Any, index: int) -> Dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def ask(name: str, *more: Any) -> Any:
        return _try(lambda: getattr(nvml, name)(handle, *more))

    memory, rates = ask("nvmlDeviceGetMemoryInfo"), ask("nvmlDeviceGetUtilizationRates")
    capability, power, limit = (
        ask("nvmlDeviceGetCudaComputeCapability"),
        ask("nvmlDeviceGetPowerUsage"),
        ask("nvmlDeviceGetEnforcedPowerLimit"),
    )
    reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons")
    model = ask("nvmlDeviceGetCurrentDriverModel")
    pstate = ask("nvmlDeviceGetPerformanceState")
    return {
        "index": index,
        "name": _text(ask("nvmlDeviceGetName") or ""),
        "capability": "{}.{}".format(*capability) if capability else None,
        "memory_total": memory.total if memory else None,
        "memory_used": memory.used if memory else None,
        "memory_free": memory.free if memory else None,
        "utilization": rates.gpu if rates else None,
        "memory_utilization": rates.memory if rates else None,
        "power": None if power is None else power / 1000,
        "power_limit": None if limit is None else limit / 1000,
        "temperature": ask("nvmlDeviceGetTemperature", 0),
        "clock_sm": ask("nvmlDeviceGetClockInfo", 1),
        "clock_sm_max": ask("nvmlDeviceGetMaxClockInfo", 1),
        "pstate": "P{}".format(pstate) if isinstance(pstate, int) and 0 <= pstate <= 15 else None,
        "throttle": [name for bit, name in sorted(THROTTLE.items()) if (reasons or 0) & bit],
        "pcie_gen": ask("nvmlDeviceGetCurrPcieLinkGeneration"),
        "pcie_gen_max": ask("nvmlDeviceGetMaxPcieLinkGeneration"),
        "pcie_width": ask("nvmlDeviceGetCurrPcieLinkWidth"),
        "pcie_width_max": ask("nvmlDeviceGetMaxPcieLinkWidth"),
        "driver_model": DRIVER_MODELS.get(model) if model is not None else None,
        # Under WDDM Windows itself owns the memory: NVML tells no program's share of it.
        "limits": ["process-memory"] if model == 0 else [],
        "processes": _processes(nvml, handle),
    }


def _nothing(handle: Any) -> List[Any]:
    return []


def _processes(nvml: Any, handle: Any) -> List[Dict[str, Any]]:
    found: Dict[int, Dict[str, Any]] = {}
    for name in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"):
        for process in _try(getattr(nvml, name, None) or _nothing, handle) or []:
            title = _try(nvml.nvmlSystemGetProcessName, process.pid)
            used = getattr(process, "usedGpuMemory", None)  # None under WDDM: there Windows owns the memory
            found[process.pid] = {
                "pid": process.pid,
                "name": re.split(r"[\\/]", _text(title))[-1] if title else None,
                "memory": used,
            }
    return list(found.values())


def find_smi(environment: Mapping[str, str]) -> Optional[str]:
    """The path of nvidia-smi: on PATH, in System32, in the driver's old folder, in WSL's."""
    name = "nvidia-smi.exe" if os.name == "nt" else "nvidia-smi"
    folders = environment.get("PATH", "").split(os.pathsep)
    if os.name == "nt":
        folders.append(places.windows_folders(environment)["system32"])
        for base in ("PROGRAMFILES", "PROGRAMW6432"):
            folders.append(os.path.join(environment.get(base, ""), "NVIDIA Corporation", "NVSMI"))
    else:
        folders += ["/usr/lib/wsl/lib", "/usr/bin"]
    return next((os.path.join(folder, name) for folder in folders if os.path.isfile(os.path.join(folder, name))), None)


def parse_smi(text: str, heading: str) -> Dict[str, Any]:
    """The value of ``gpu.devices`` from nvidia-smi's CSV and the heading of its plain output.

    Samples: ``0, GeForce GTX 1060 6GB, 461.92, 6144, 300, 5844, 37, 12, 71.23, 120.00, 61, 1708, 2002, P2, 3,
    3, 16, 16`` (``[N/A]``, ``[Not Supported]`` for what a card does not tell); ``| NVIDIA-SMI 461.92 ... CUDA
    Version: 11.2 |``.
    """
    devices, driver = [], None
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(row) != len(FIELDS) or not row[0].strip().isdigit():
            continue
        fields = {name: _number(value.strip()) for name, value in zip(FIELDS, row)}
        driver = row[2].strip()
        megabyte = {name: None if fields[name] is None else int(fields[name] * 1048576)
                    for name in ("memory.total", "memory.used", "memory.free")}  # fmt: skip
        devices.append({
            "index": int(row[0]), "name": row[1].strip(), "capability": None,
            "memory_total": megabyte["memory.total"], "memory_used": megabyte["memory.used"],
            "memory_free": megabyte["memory.free"], "utilization": fields["utilization.gpu"],
            "memory_utilization": fields["utilization.memory"], "power": fields["power.draw"],
            "power_limit": fields["power.limit"], "temperature": fields["temperature.gpu"],
            "clock_sm": fields["clocks.sm"], "clock_sm_max": fields["clocks.max.sm"],
            "pstate": row[13].strip() if re.match(r"^P\d+$", row[13].strip()) else None, "throttle": [],
            "pcie_gen": fields["pcie.link.gen.current"], "pcie_gen_max": fields["pcie.link.gen.max"],
            "pcie_width": fields["pcie.link.width.current"], "pcie_width_max": fields["pcie.link.width.max"],
            "driver_model": None, "limits": ["process-memory", "throttle", "processes"], "processes": [],
        })  # fmt: skip
    cuda = re.search(r"CUDA Version:\s*(\d+\.\d+)", heading)
    return {"driver": driver, "cuda_driver": cuda.group(1) if cuda else None, "devices": devices}


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def from_smi(smi: str, limit: float = 15, all_of_it: bool = True) -> Dict[str, Any]:
    """Ask nvidia-smi. Failed with ``driver:`` and its own words when it cannot reach the driver.

    Not ``all_of_it``: only what changes, by one call of at most ``limit`` seconds.
    """
    first = run([smi, "--query-gpu=" + ",".join(FIELDS), "--format=csv,noheader,nounits"], limit)
    text = decode(first.out)
    if first.exit != 0:
        said = (text + decode(first.err)).strip().splitlines()
        if first.exit == 6:  # nvidia-smi's "no devices were found"
            return {"driver": None, "cuda_driver": None, "devices": []}
        raise Failed("driver:{}".format(said[0] if said else "nvidia-smi ended with {}".format(first.exit)))
    if not all_of_it:
        return parse_smi(text, "")
    found = parse_smi(text, decode(run([smi], limit).out))
    asked = run([smi, "--query-gpu=index,compute_cap", "--format=csv,noheader"], limit)  # drivers since 2021
    for row in csv.reader(decode(asked.out).splitlines(), skipinitialspace=True):
        for device in found["devices"]:
            if len(row) == 2 and row[0] == str(device["index"]) and re.match(r"^\d+\.\d+$", row[1].strip()):
                device["capability"] = row[1].strip()
    return found


@collector("gpu.devices", 60)
def devices(args: Dict[str, Any]) -> Tuple[Any, str]:
    """The cards, as the driver tells. Absent, ``no-library``: neither NVML nor nvidia-smi is on this machine.

    ``nvml`` is null, or says why nvidia-smi was asked instead. Without it a library that is broken or too old is an
    error, ``nvml:broken-library: ...``: that is another fault than having none.
    """
    nvml, reason = nvml_or_reason()
    if nvml is not None:
        try:
            return dict(from_nvml(nvml), nvml=None), "nvml"
        finally:
            _try(nvml.nvmlShutdown)
    smi = find_smi(os.environ)
    if smi is not None:
        return dict(from_smi(smi), nvml=reason), "nvidia-smi"
    if reason == "no-library":
        raise Absent("no-library")
    raise Failed("nvml:" + reason)
