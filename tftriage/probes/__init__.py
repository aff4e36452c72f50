"""Probes interpret facts. They never touch the machine; importing this package registers all of them."""

from tftriage.probes import context, gpu, imports, jupyter, libraries, logs, names, packages, usage
from tftriage.probes.base import PROBES, Evidence, Finding, Probe

__all__ = [
    "PROBES", "Evidence", "Finding", "Probe",
    "context", "gpu", "imports", "jupyter", "libraries", "logs", "names", "packages", "usage",
]  # fmt: skip
