"""The repairs there are. Their words stand in ``knowledge/fixes``, one file for each id."""

from __future__ import annotations

from tftriage.fixes import (
    by_hand,
    copy_cudnn,
    dll_directory,
    kernel_path,
    machine_settings,
    new_environment,
    offline_kit,
    one_tensorflow,
    path_environment,
    path_user,
    pin_packages,
    register_kernel,
    reinstall,
    rename_shadowing,
    restore_dll,
    set_variable,
    start_jupyter,
    unset_variable,
)
from tftriage.fixes.situation import Fix

FIXES: dict[str, Fix] = {
    fix.id: fix
    for fix in (
        register_kernel.FIX,
        kernel_path.FIX,
        path_user.FIX,
        path_environment.FIX,
        dll_directory.FIX,
        restore_dll.FIX,
        copy_cudnn.FIX,
        pin_packages.FIX,
        reinstall.FIX,
        one_tensorflow.FIX,
        unset_variable.FIX,
        *set_variable.FIXES,
        rename_shadowing.FIX,
        *by_hand.FIXES,
        *machine_settings.FIXES,
        *new_environment.FIXES,
        offline_kit.FIX,
        start_jupyter.FIX,
    )
}
"""By id. ``Fix(id, refuses, plan)``."""

__all__ = ["FIXES", "Fix"]
