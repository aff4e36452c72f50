"""What GPU, processor and disk do while a program runs: samples at a fixed interval, the busiest processes."""

import ctypes
import os
import re
import sys
import threading
import time
from typing import Any, Dict, List, Optional, Tuple

from . import gpu, places
from .registry import Absent, Failed, collector

INTERVAL = 0.5
LONGEST = 120.0  # seconds; the collector's deadline follows
TOP = 12  # processes that are reported
Times = List[Tuple[float, float]]  # (busy, total) of each core since the start of the system


def processor_times() -> Times:
    """Busy and total seconds of every core; [] where they cannot be had."""
    try:
        import psutil

        found = []
        for core in psutil.cpu_times(percpu=True):
            idle = core.idle + getattr(core, "iowait", 0.0)
            # guest time is already part of user time on Linux
            total = sum(core) - getattr(core, "guest", 0.0) - getattr(core, "guest_nice", 0.0)
            found.append((total - idle, total))
        return found
    except Exception:  # not installed, or it fails on this system
        return times_of(places.text_of("/proc/stat"))


def times_of(stat: str) -> Times:
    """The same from ``/proc/stat``. Sample: ``cpu0 100 0 50 800 10 0 5 0 0 0`` (user nice system idle iowait)."""
    found = []
    for line in re.findall(r"^cpu\d+ (.*)$", stat, re.M):
        numbers = [float(part) for part in line.split()[:8]]
        if len(numbers) >= 5:
            found.append((sum(numbers) - numbers[3] - numbers[4], sum(numbers)))
    return found


def load_between(before: Times, after: Times) -> Optional[Dict[str, float]]:
    """Load of all cores and of the busiest one, 0 to 100, between two readings; None when nothing was read."""
    loads = [100.0 * (busy - old_busy) / (total - old_total)
             for (old_busy, old_total), (busy, total) in zip(before, after) if total > old_total]  # fmt: skip
    if not loads:
        return None
    clipped = [min(100.0, max(0.0, load)) for load in loads]
    return {"total": round(sum(clipped) / len(clipped), 1), "max_core": round(max(clipped), 1)}


Disk = Dict[str, Tuple[Optional[float], int]]  # disk -> (seconds busy since some start, bytes read)


def disk_times() -> Disk:
    """Busy seconds and bytes read of every disk; busy is None where the system does not tell."""
    if sys.platform == "win32":
        found = windows_disks()
        if found:
            return found
    try:
        import psutil

        counters = psutil.disk_io_counters(perdisk=True) or {}
        return {
            name: (getattr(one, "busy_time", 0) / 1000 if hasattr(one, "busy_time") else None, int(one.read_bytes))
            for name, one in counters.items() if whole_disk(name)
        }  # fmt: skip
    except Exception:  # not installed; no disk counters (containers, old Windows)
        return disks_of(places.text_of("/proc/diskstats"))


def whole_disk(name: str) -> bool:
    """Whether a Linux device is a disk, not a partition, loop or memory device (Windows: PhysicalDrive0)."""
    return bool(re.match(r"^(sd[a-z]+|vd[a-z]+|xvd[a-z]+|hd[a-z]|nvme\d+n\d+|mmcblk\d+|PhysicalDrive\d+)$", name))


def disks_of(diskstats: str) -> Disk:
    """The same from ``/proc/diskstats`` (kernel's iostats: field 3 sectors read, 10 milliseconds busy)."""
    found: Disk = {}
    for line in diskstats.splitlines():
        parts = line.split()
        if len(parts) >= 14 and whole_disk(parts[2]):
            found[parts[2]] = (int(parts[12]) / 1000, int(parts[5]) * 512)
    return found


class _Performance(ctypes.Structure):
    """DISK_PERFORMANCE (winioctl.h); times in units of 100 ns."""

    _fields_ = [
        ("read", ctypes.c_int64),
        ("written", ctypes.c_int64),
        ("read_time", ctypes.c_int64),
        ("write_time", ctypes.c_int64),
        ("idle", ctypes.c_int64),
        ("counts", ctypes.c_uint32 * 4),
        ("query_time", ctypes.c_int64),
        ("number", ctypes.c_uint32),
        ("manager", ctypes.c_wchar * 8),
    ]


def windows_disks() -> Disk:
    """Idle time of the physical drives by IOCTL_DISK_PERFORMANCE, which needs no rights; {} if refused."""
    kernel = getattr(ctypes, "WinDLL")("kernel32")
    kernel.CreateFileW.restype = ctypes.c_void_p
    found: Disk = {}
    for number in range(8):
        name = "PhysicalDrive{}".format(number)
        handle = kernel.CreateFileW(ctypes.c_wchar_p("\\\\.\\" + name), 0, 3, None, 3, 0, None)
        if handle in (None, ctypes.c_void_p(-1).value):
            continue
        data, size = _Performance(), ctypes.c_uint32()
        good = kernel.DeviceIoControl(ctypes.c_void_p(handle), 0x70020, None, 0, ctypes.byref(data),
                                      ctypes.sizeof(data), ctypes.byref(size), None)  # fmt: skip
        kernel.CloseHandle(ctypes.c_void_p(handle))
        if good and data.query_time:
            found[name] = ((data.query_time - data.idle) / 1e7, data.read)
    return found


def disk_between(before: Disk, after: Disk, seconds: float) -> Optional[Dict[str, Any]]:
    """The busiest disk's share of busy time, 0 to 1, and the bytes read from all; None when nothing was read."""
    common = [name for name in after if name in before]
    if not common or seconds <= 0:
        return None
    busy = [(after[name][0] or 0.0) - (before[name][0] or 0.0) for name in common
            if after[name][0] is not None and before[name][0] is not None]  # fmt: skip
    return {"busy": round(min(1.0, max(0.0, max(busy) / seconds)), 3) if busy else None,
            "read_bytes": max(0, sum(after[name][1] - before[name][1] for name in common))}  # fmt: skip


def gpu_sample(found: Dict[str, Any], at: float) -> List[Dict[str, Any]]:
    """The fields of ``gpu.devices`` that change."""
    names = (
        "index", "utilization", "memory_utilization", "power", "clock_sm", "pstate", "memory_used", "temperature",
        "throttle", "pcie_gen", "pcie_width",
    )  # fmt: skip
    return [dict({name: device.get(name) for name in names}, t=round(at, 2)) for device in found["devices"]]


class Processes:
    """Processor use of every process between the start and the end of the sampling."""

    def __init__(self) -> None:
        self.before = self._read()
        self.began = time.monotonic()

    def _read(self) -> Dict[int, Tuple[str, float, int]]:
        try:
            import psutil
        except ImportError:
            return {}
        found = {}
        for process in psutil.process_iter():
            try:
                times = process.cpu_times()
                found[process.pid] = (
                    self._name(process),
                    times.user + times.system,
                    int(process.memory_info().rss),
                )
            except Exception:  # gone, or not ours to see
                continue
        return found

    def _name(self, process: Any) -> str:
        for ask in (process.name, lambda: os.path.basename(process.cmdline()[0])):
            try:
                return str(ask())
            except Exception:  # psutil cannot tell names under Wine; another user's process has no command line
                continue
        return ""

    def busiest(self, on_gpu: Dict[int, Optional[str]]) -> List[Dict[str, Any]]:
        """The processes that used most, and all that are on the GPU. ``cpu`` is in percent of one core."""
        seconds = max(0.001, time.monotonic() - self.began)
        found = []
        for pid, (name, used, memory) in self._read().items():
            cpu = 100.0 * (used - self.before.get(pid, (name, used, 0))[1]) / seconds
            found.append({"pid": pid, "name": name or on_gpu.get(pid) or "", "cpu": round(max(0.0, cpu), 1),
                          "memory": memory, "on_gpu": pid in on_gpu})  # fmt: skip
        found.sort(key=lambda one: (one["on_gpu"], one["cpu"]), reverse=True)
        return found[:TOP]


def sample(seconds: float, interval: float = INTERVAL, stop: Optional[threading.Event] = None) -> Dict[str, Any]:
    """Sample for ``seconds``, or until ``stop``. A reading that takes longer than the interval makes the next later."""
    stop = stop or threading.Event()
    began = time.monotonic()
    end = began + seconds
    try:
        nvml = gpu.nvml_or_reason()[0]
    except Failed:  # a dead driver: the rest can still be read
        nvml = None
    smi = gpu.find_smi(os.environ) if nvml is None else None
    processes = Processes()
    value: Dict[str, Any] = {"seconds": seconds, "interval": interval, "gpu": [], "cpu": [], "disk": []}
    on_gpu: Dict[int, Optional[str]] = {}
    cores, disks, last = processor_times(), disk_times(), time.monotonic()
    while True:
        left = end - time.monotonic()
        if left <= 0 or stop.wait(min(interval, left)):
            break
        now = time.monotonic()
        at = now - began
        found = _devices(nvml, smi, end - now)
        for device in found["devices"]:
            on_gpu.update({process["pid"]: process["name"] for process in device["processes"]})
        value["gpu"] += gpu_sample(found, at)
        new_cores, new_disks = processor_times(), disk_times()
        load, disk = load_between(cores, new_cores), disk_between(disks, new_disks, now - last)
        value["cpu"] += [dict(load, t=round(at, 2))] if load else []
        value["disk"] += [dict(disk, t=round(at, 2))] if disk else []
        cores, disks, last = new_cores, new_disks, now
    if nvml is not None:
        nvml.nvmlShutdown()
    value["processes"] = processes.busiest(on_gpu)
    return value


def _devices(nvml: Any, smi: Optional[str], left: float) -> Dict[str, Any]:
    if nvml is not None:
        return gpu.from_nvml(nvml)
    try:
        return gpu.from_smi(smi, left, False) if smi and left > INTERVAL else {"devices": []}
    except (OSError, Failed):
        return {"devices": []}


@collector("usage.sample", LONGEST + 20)
def usage(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Samples of ``seconds`` (default 10, at most 120) while the person's program runs."""
    limit = float(args.get("limit") or LONGEST + 20)
    seconds = min(LONGEST, limit * 0.8, max(1.0, float(args.get("seconds") or 10)))
    value = sample(seconds)
    if not value["gpu"] and not value["cpu"]:
        raise Absent("no-library")
    return value, "nvml, psutil" if value["gpu"] else "psutil"
