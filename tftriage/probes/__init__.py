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
    names,
    owner,
    packages,
    running,
    search,
    spelling,
    starting,
    usage,
    windows,
    workload,
)
from tftriage.probes.base import PROBES, Evidence, Finding, Probe

__all__ = [
    "PROBES", "Evidence", "Finding", "Probe",
    "context", "cpu", "cudnn", "gpu", "imports", "jupyter", "libraries", "loaded", "logs", "metadata", "names",
    "owner", "packages", "running", "search", "spelling", "starting", "usage", "windows", "workload",
]  # fmt: skip
