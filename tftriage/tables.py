"""Measured and documented numbers, as frozen values: which build wants what, which driver is enough.

The rows live in ``knowledge/tables``; each carries its ``source`` and the ``kind`` of it. Look-ups here
answer with a row or ``None``: a version that is not in the table is unknown, never guessed.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

Kind = Literal["measured", "documented", "reported", "tested", "derived"]
System = Literal["Windows", "Linux"]


class Build(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one TensorFlow build needs.

    ``libraries`` are opened by name at run time, ``imports`` stand in the import table (Windows refuses the
    import without them). ``capability_min`` and ``capability_max`` are the compute capabilities the build
    has machine code for; ``ptx`` lists those it carries PTX for (a newer card then compiles for minutes).
    """

    package: str
    version: str  # "2.1" stands for every 2.1.x that has no row of its own
    system: System
    pythons: tuple[str, ...]
    cuda: str | None = None
    cudnn: str | None = None  # the version it was compiled with
    libraries: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    vc_runtime: tuple[str, ...] = ()
    vc_floor: str | None = None  # linker version of the wheel, e.g. "14.24"
    capability_min: str | None = None
    machine_code: tuple[str, ...] = ()
    ptx: tuple[str, ...] = ()
    source: str = ""
    kind: Kind = "documented"


class DriverFloor(msgspec.Struct, frozen=True, kw_only=True):
    """The oldest NVIDIA driver that runs a CUDA version, for one system."""

    cuda: str
    system: System
    driver: str
    source: str
    kind: Kind = "documented"


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """Cards (lower-case name fragments) and their compute capability; first and last CUDA that serve them."""

    names: tuple[str, ...]
    capability: str
    first_cuda: str | None = None
    last_cuda: str | None = None
    source: str = ""
    kind: Kind = "documented"


class PinSet(msgspec.Struct, frozen=True, kw_only=True):
    """Package versions that make one TensorFlow work today. They cure only together (failures are stacked).

    ``rules`` are the bounds that must hold (requirement strings); ``pins`` the exact versions we install.
    """

    tensorflow: str  # "2.1.0" exactly, or "2.1" for the series
    pythons: tuple[str, ...]
    rules: tuple[str, ...]
    pins: dict[str, str]
    source: str
    kind: Kind


class LoaderError(msgspec.Struct, frozen=True, kw_only=True):
    """One Windows error code of the DLL loader and the system texts it is shown as, by language."""

    code: int
    symbol: str
    texts: dict[str, tuple[str, ...]]
    source: str
    kind: Kind = "reported"


class Toolkit(msgspec.Struct, frozen=True, kw_only=True):
    """The library names that one CUDA toolkit ships, per system."""

    cuda: str
    system: System
    libraries: tuple[str, ...]
    source: str
    kind: Kind = "measured"


class Tables(msgspec.Struct, frozen=True):
    """All tables of the knowledge base."""

    builds: tuple[Build, ...] = ()
    drivers: tuple[DriverFloor, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    pins: tuple[PinSet, ...] = ()
    loader_errors: tuple[LoaderError, ...] = ()
    toolkits: tuple[Toolkit, ...] = ()

    def build(self, version: str | None, system: str) -> Build | None:
        """The row for a TensorFlow version on a system: the exact version first, else its series."""
        row: Build | None = _nearest([b for b in self.builds if b.system == system and b.cuda], version)
        return row

    def pin_set(self, version: str | None, python: str) -> PinSet | None:
        """The pin set for a TensorFlow version on a Python (``"3.7"``), or ``None``."""
        row: PinSet | None = _nearest([p for p in self.pins if python in p.pythons], version, "tensorflow")
        return row

    def driver_floor(self, cuda: str | None, system: str) -> DriverFloor | None:
        """The oldest driver for a CUDA version (``"10.1"``) on a system."""
        return next((d for d in self.drivers if d.cuda == cuda and d.system == system), None)

    def gpu(self, name: str) -> Gpu | None:
        """The row whose longest name fragment is in the card's marketing name."""
        low = name.lower()
        hits = [(len(n), gpu) for gpu in self.gpus for n in gpu.names if n in low]
        return max(hits, key=lambda hit: hit[0])[1] if hits else None

    def toolkits_with(self, library: str, system: str) -> tuple[str, ...]:
        """The CUDA versions that ship a library of that name."""
        low = library.lower()
        return tuple(t.cuda for t in self.toolkits if t.system == system and low in t.libraries)


def _nearest(rows: list[Any], version: str | None, field: str = "version") -> Any:
    """The row whose version is ``version``, else the one for its ``major.minor`` series, else ``None``."""
    parsed = parse(version)
    if parsed is None:
        return None
    series = f"{parsed.major}.{parsed.minor}"
    exact = next((row for row in rows if parse(getattr(row, field)) == parsed and getattr(row, field) != series), None)
    return exact or next((row for row in rows if getattr(row, field) == series), None)


def parse(version: str | None) -> Version | None:
    """A version, or ``None`` when the text is none."""
    try:
        return Version(version) if version else None
    except InvalidVersion:
        return None


def satisfies(version: str | None, specifier: str) -> bool | None:
    """Whether a version lies in a specifier (``"<3.21"``); ``None`` when either cannot be read."""
    parsed = parse(version)
    try:
        return None if parsed is None else SpecifierSet(specifier).contains(parsed, prereleases=True)
    except InvalidSpecifier:
        return None
