"""The repairs there are. Their words stand in ``knowledge/fixes``, one file for each id."""

from __future__ import annotations

from tftriage.fixes import (
    kernel_path,
    path_environment,
    path_user,
    pin_packages,
    register_kernel,
    reinstall,
    restore_dll,
    start_jupyter,
    unset_variable,
)
from tftriage.fixes.situation import Fix

FIXES: dict[str, Fix] = {
    module.FIX.id: module.FIX
    for module in (
        register_kernel,
        kernel_path,
        path_user,
        path_environment,
        restore_dll,
        pin_packages,
        reinstall,
        unset_variable,
        start_jupyter,
    )
}
"""By id. ``Fix(id, refuses, plan)``."""

__all__ = ["FIXES", "Fix"]
