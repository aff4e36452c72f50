"""Build hook: the wheel carries knowledge/ compiled to one typed JSON (authors write YAML, readers get JSON)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KnowledgeHook(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # a checkout reads its own YAML
            return
        root = Path(self.root)
        sys.path.insert(0, str(root))
        from tftriage.knowledge import compile_folder

        compiled = Path(self.directory) / "_knowledge.json"
        compiled.parent.mkdir(parents=True, exist_ok=True)
        compiled.write_bytes(compile_folder(root / "knowledge"))
        build_data["force_include"][str(compiled)] = "tftriage/_knowledge.json"
