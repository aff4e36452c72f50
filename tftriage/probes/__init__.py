"""Probes interpret facts. They never touch the machine; importing this package registers all of them."""

from tftriage.probes import (
    context,
    cpu,
    cudnn,
    gpu,
    imports,
    jupyter,
    libraries,
    logs,
    named,
    names,
    packages,
    search,
    shadow,
    spelling,
    starting,
    usage,
    wording,
)
from tftriage.probes.base import PROBES, Evidence, Finding, Probe

__all__ = [
    "PROBES", "Evidence", "Finding", "Probe",
    "context", "cpu", "cudnn", "gpu", "imports", "jupyter", "libraries", "logs", "named", "names", "packages",
    "search", "shadow", "spelling", "starting", "usage", "wording",
]  # fmt: skip
