"""What tftriage never does, though public advice says to: each with the page of the knowledge base that says why."""

from __future__ import annotations

import re

NEVER: dict[str, str] = {
    "download-dlls": "single-dlls",
    "copy-into-system32": "copy-into-system32",
    "rename-nvidia-dlls": "rename-cudnn",
    "switch-antivirus-off": "turn-off-defender",
    "setx-path": "setx-path",
    "yes-by-default": "yes-to-everything",
}
"""A name that somebody might look for to the id of the myth."""

_ALSO = {
    "download-dlls": ("download", "dll-files", "dllfiles", "下载", "dll"),
    "copy-into-system32": ("system32", "syswow64"),
    "rename-nvidia-dlls": ("rename", "改名", "重命名", "cudnn64"),
    "switch-antivirus-off": ("antivirus", "virus", "defender", "firewall", "杀毒", "关闭防护"),
    "setx-path": ("setx",),
    "yes-by-default": ("--yes", "default", "auto", "自动"),
}


def looked_for(text: str) -> list[str]:
    """The refusals that a person may mean who looks for ``text``, in the order of ``NEVER``."""
    wanted = text.strip().lower()
    if not wanted:
        return []
    words = {word for word in re.split(r"[\s_-]+", wanted) if len(word) > 3}
    found = []
    for name, also in _ALSO.items():
        own = set(name.split("-"))
        if wanted == name or any(word in wanted for word in also) or len(own & words) > 1:
            found.append(name)
    return found
