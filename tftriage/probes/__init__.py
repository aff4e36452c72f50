"""Probes interpret facts. They never touch the machine; importing this package registers all of them."""

from tftriage.probes import (
    context,
    cpu,
    cudnn,
    gpu,
    imports,
    jupyter,
    libraries,
    loaded,
    logs,
    metadata,
    named,
    names,
    owner,
    packages,
    running,
    search,
    shadow,
    spelling,
    starting,
    usage,
    windows,
    wording,
    workload,
)
from tftriage.probes.base import PROBES, Evidence, Finding, Probe

__all__ = [
    "PROBES", "Evidence", "Finding", "Probe",
    "context", "cpu", "cudnn", "gpu", "imports", "jupyter", "libraries", "loaded", "logs", "metadata", "named",
    "names", "owner", "packages", "running", "search", "shadow", "spelling", "starting", "usage", "windows",
    "wording", "workload",
]  # fmt: skip
