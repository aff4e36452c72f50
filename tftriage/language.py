"""Which language to speak: the one asked for, else the system's."""

from __future__ import annotations

import os
import sys


def system_language() -> str:
    """``zh`` on a Chinese system, else ``en`` (the locale variables; on Windows the interface language)."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name)
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    if sys.platform == "win32":
        import ctypes

        primary = ctypes.windll.kernel32.GetUserDefaultUILanguage() & 0x3FF
        return "zh" if primary == 0x04 else "en"  # LANG_CHINESE
    return "en"
