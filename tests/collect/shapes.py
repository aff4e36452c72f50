"""The shape of every fact's value: no collector changes what probes and cases read without a test's word."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Shape(msgspec.Struct, forbid_unknown_fields=True):
    """A JSON object with exactly these keys; those with a default may be left out."""


class Os(Shape):
    system: Literal["Windows", "Linux", "Darwin"]
    release: str
    version: str
    machine: str
    wsl: Literal[1, 2] | None
    wine: bool
    distribution: str | None


class Locale(Shape):
    acp: int | None
    oem: int | None
    console: int | None
    encoding: str
    ui_language: str | None
    lc_all: str | None
    utf8_mode: bool


class User(Shape):
    name: str
    home: str
    temp: str


class Cpu(Shape):
    name: str | None
    avx: bool | None
    cores: int | None
    logical: int


class Memory(Shape):
    total: int
    available: int
    commit_limit: int | None
    commit_available: int | None


class Settings(Shape):
    long_paths: bool | None
    hags: bool | None
    hags_mode: int | None


class RegisteredRuntime(Shape):
    arch: Literal["x64", "x86"]
    version: str
    installed: bool


class RuntimeFile(Shape):
    name: str
    version: str | None
    machine: str | None
    error: str | None


class VcRuntime(Shape):
    registry: list[RegisteredRuntime]
    folder: str
    files: list[RuntimeFile]


State = Literal["ok", "missing", "file", "quoted", "relative", "unexpanded", "denied", "duplicate"]


class PathEntry(Shape):
    entry: str
    folder: str
    exists: bool
    scope: Literal["user", "machine", "process"]
    state: State
    short: bool
    ascii: bool


class StoredEntry(Shape):
    entry: str
    folder: str
    state: State
    short: bool
    ascii: bool


class Variable(Shape):
    type: str
    value: Any


class StoredPath(Shape):
    type: str
    value: str
    entries: list[StoredEntry]


class Stored(Shape):
    Path: StoredPath | None
    variables: dict[str, Variable]


class Python(Shape):
    path: str
    version: str | None
    prefix: str
    kind: Literal["venv", "conda", "python.org", "store", "system", "pyenv", "given"]
    name: str
    tensorflow: str | None
    found_by: list[str]


class Interpreter(Shape):
    executable: str
    version: list[int]
    bits: Literal[32, 64]
    prefix: str
    base_prefix: str
    venv: bool
    conda: bool
    store: bool
    activated: bool | None
    implementation: str
    platform: str
    site_packages: list[str]
    user_site: str | None
    no_user_site: bool
    path: list[str]
    fs_encoding: str
    preferred_encoding: str
    dll_directories: list[str]
    ipykernel: str | None
    pip: str | None
    start: Literal["plain", "-I", "-I -S"]


class Package(Shape):
    name: str
    version: str
    folder: str
    record: str | None
    installer: str | None
    requires: list[str] = []


class Distribution(Shape):
    name: str
    version: str
    folder: str


class Native(Shape):
    path: str
    size: int | None
    machine: Literal["x64", "x86", "arm64"] | None


class TfPackage(Shape):
    distributions: list[Distribution]
    version: str | None
    folder: str | None
    module_file: str | None
    native: list[Native]
    main_native: str | None
    build_info: dict[str, Any] | None
    shadow: list[str]
    leftovers: bool


class OtherRecord(Shape):
    distribution: str
    missing: list[str]


class Record(Shape):
    distribution: str
    checked: int
    missing: list[str]
    empty: list[str]
    altered: list[str]
    native_missing: list[str]
    others: list[OtherRecord]


class Context(Shape):
    kind: Literal["here", "fresh", "kernel"]
    kernel: str | None
    env_changes: dict[str, str | None]


class Import(Shape):
    module: str
    ok: bool
    seconds: float
    version: str | None
    file: str | None
    error_type: str | None
    error: str | None
    traceback: str
    log: str
    exit: int | None
    signal: str | None
    timed_out: bool
    stack: str
    context: Context


class Gpus(Shape):
    ok: bool
    built_with_cuda: bool | None
    is_gpu_available: bool | None
    physical: list[str]
    error: str | None
    log: str
    exit: int | None
    signal: str | None
    timed_out: bool


class Operation(Shape):
    ok: bool
    device: str | None
    expected: float
    result: float | None
    correct: bool | None
    error: str | None
    log: str
    exit: int | None
    signal: str | None
    timed_out: bool
    seconds: float


class Opened(Shape):
    name: str
    code: int | None
    path: str | None
    error: str | None


class Libraries(Shape):
    opened: list[Opened]


class Toolkit(Shape):
    version: str | None
    folder: str
    bin: str
    cudnn: str | None
    libraries: list[str]
    on_path: bool


Number = int | float


class GpuProcess(Shape):
    pid: int
    name: str | None
    memory: int | None


class Device(Shape):
    index: int
    name: str
    capability: str | None
    memory_total: int | None
    memory_used: int | None
    memory_free: int | None
    utilization: Number | None
    memory_utilization: Number | None
    power: Number | None
    power_limit: Number | None
    temperature: Number | None
    clock_sm: Number | None
    clock_sm_max: Number | None
    pstate: str | None
    throttle: list[str]
    pcie_gen: int | None
    pcie_gen_max: int | None
    pcie_width: int | None
    pcie_width_max: int | None
    driver_model: Literal["WDDM", "WDM", "MCDM"] | None
    limits: list[str]
    processes: list[GpuProcess]


class Devices(Shape):
    driver: str | None
    cuda_driver: str | None
    devices: list[Device]
    nvml: str | None


class Card(Shape):
    vendor: str
    name: str
    driver: str | None = None


class Driver(Shape):
    library: str | None
    loads: bool | None
    error: str | None
    cu_init: int | None
    cuda_version: str | None
    kernel_module: str | None
    cards: list[Card] | None


class Kernel(Shape):
    name: str
    display_name: str
    folder: str
    scope: Literal["user", "system", "env"]
    argv: list[str]
    env: dict[str, str]
    language: str
    interpreter: str | None
    exists: bool
    bare: bool
    ipykernel: str | None
    error: str | None


class RunningServer(Shape):
    pid: int
    python: str | None
    cwd: str | None


class Server(Shape):
    python: str | None
    jupyter_client: str | None
    running: list[RunningServer]
    search_path: list[str]
    found_by: Literal["running", "path", "target"]


class Running(Shape):
    kind: Literal["kernel", "server"]
    pid: int
    parent: int | None
    python: str | None
    cwd: str | None
    connection: str | None
    env: dict[str, str] | None
    libraries: list[str] | None


class LoadedBy(Shape):
    pid: int
    python: str
    program: str
    kernel: bool
    modules: list[str]


class Modules(Shape):
    processes: list[LoadedBy]


class Product(Shape):
    name: str
    state: str | None


class Detection(Shape):
    path: str
    threat: str | None
    time: str | None
    action: str


class Defender(Shape):
    enabled: bool | None
    mode: str | None
    realtime: bool | None
    exclusions: list[str] | None


class Antivirus(Shape):
    products: list[Product]
    detections: list[Detection]
    defender: Defender | None
    administrator: list[str]


class NonAscii(Shape):
    what: Literal["user", "home", "temp", "prefix", "cwd", "cuda", "runtime", "package"]
    path: str
    ansi_ok: bool


class AsciiImport(Shape):
    ok: bool
    same_error: bool
    log: str
    error_type: str | None
    error: str | None
    before_ok: bool
    changed: list[str]


class GpuReading(Shape):
    t: Number
    index: int
    utilization: Number | None
    memory_utilization: Number | None
    power: Number | None
    clock_sm: Number | None
    pstate: str | None
    memory_used: int | None
    temperature: Number | None
    throttle: list[str]
    pcie_gen: int | None
    pcie_width: int | None


class CpuReading(Shape):
    t: Number
    total: float
    max_core: float


class DiskReading(Shape):
    t: Number
    busy: float | None
    read_bytes: int


class Process(Shape):
    pid: int
    name: str
    cpu: float
    memory: int
    on_gpu: bool


class Sample(Shape):
    seconds: float
    interval: float
    gpu: list[GpuReading]
    cpu: list[CpuReading]
    disk: list[DiskReading]
    processes: list[Process]


class Phase(Shape):
    name: Literal["matmul", "net", "fed", "net-cpu"]
    device: str
    size: int | None
    steps: int
    seconds: float
    first: float | None
    began: float
    ended: float
    correct: bool | None
    error: str | None
    detail: str | None
    during: dict[str, Number]
    loss: list[float] = []
    memory: bool = False
    shrunk: bool = False


class Workload(Shape):
    ok: bool
    gpus: list[str]
    version: str | None
    phases: list[Phase]
    last: dict[str, Any] | None
    error: str | None
    log: str
    exit: int | None
    signal: str | None
    timed_out: bool


class Tree(msgspec.Struct):
    """The closure of libraries; of its entries only what every one has."""

    roots: list[str]
    context: dict[str, Any]
    folders: dict[str, list[str]]
    files: dict[str, dict[str, Any]]
    elsewhere: dict[str, list[str]]
    near: dict[str, list[str]]
    incomplete: bool


SHAPES: dict[str, Any] = {
    "system.os": Os,
    "system.locale": Locale,
    "system.user": User,
    "system.cpu": Cpu,
    "system.memory": Memory,
    "system.settings": Settings,
    "system.vcruntime": VcRuntime,
    "env.process": dict[str, str],
    "env.path": list[PathEntry],
    "env.user": Stored,
    "env.machine": Stored,
    "pythons.list": list[Python],
    "target.interpreter": Interpreter,
    "target.packages": dict[str, Package],
    "tf.package": TfPackage,
    "tf.record": Record,
    "tf.import": Import,
    "tf.gpus": Gpus,
    "tf.operation": Operation,
    "tf.libraries": Libraries,
    "dlls.tree": Tree,
    "cuda.toolkits": list[Toolkit],
    "gpu.devices": Devices,
    "gpu.driver": Driver,
    "jupyter.kernels": list[Kernel],
    "jupyter.server": Server,
    "jupyter.running": list[Running],
    "jupyter.import": Import,
    "security.antivirus": Antivirus,
    "process.modules": Modules,
    "names.nonascii": list[NonAscii],
    "names.ascii_import": AsciiImport,
    "usage.sample": Sample,
    "usage.workload": Workload,
}


class Line(Shape):
    """One line of the collector's output."""

    fact: str
    status: Literal["ok", "absent", "error", "timeout", "skipped"]
    value: Any
    source: str
    seconds: float
    note: str


def problems(data: bytes) -> list[str]:
    """What is wrong with one line; empty when status and value are as they should be."""
    try:
        line = msgspec.json.decode(data, type=Line)
    except msgspec.MsgspecError as error:
        return [f"{data[:200]!r}: {error}"]
    if line.status != "ok":
        found = [] if line.note else [f"{line.fact}: {line.status} without a reason"]
        return found + ([] if line.value is None else [f"{line.fact}: {line.status} with a value"])
    try:
        msgspec.convert(line.value, SHAPES[line.fact])
    except msgspec.ValidationError as error:
        return [f"{line.fact}: {error}"]
    return [] if line.source else [f"{line.fact}: no source"]
