"""Write ``docs/symptoms.md``: what tftriage recognises, by the question that its tree asks first.

python tools/symptoms_page.py            # writes
python tools/symptoms_page.py --check    # exit status 1 when the page is not current
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tftriage import knowledge
from tftriage.knowledge import Knowledge
from tftriage.symptoms import Symptom

PAGE = Path(__file__).resolve().parents[1] / "docs" / "symptoms.md"
HEAD = """\
# What it recognises

Made by `tools/symptoms_page.py` from `knowledge/symptoms/`; do not edit. `tftriage kb show ID` says more.
"""
GROUPS = {
    "dll-import": "The import fails",
    "gpu-missing": "It imports, and there is no GPU",
    "gpu-found-not-added": "The GPU is found and not added",
    "gpu-fails-in-use": "The GPU is listed, and using it fails",
    "low-utilisation": "The GPU works and idles",
    "jupyter": "Notebooks",
    "install": "Installing",
    "non-ascii": "Names outside ASCII",
    "antivirus": "Virus scanners",
    "fault": "Named at once",
    "not-an-installation-fault": "Not a fault of the installation",
    "not-tensorflow": "Not TensorFlow",
    "harmless": "Harmless notices",
}


def group(symptom: Symptom) -> str:
    """The tree where a symptom starts; for those that need no question, or that are no fault, the verdict."""
    if symptom.verdict != "fault" or symptom.start.startswith("diagnosis:"):
        return symptom.verdict
    return symptom.start.split("/")[0]


def page(kb: Knowledge) -> str:
    """The whole page."""
    parts = [HEAD]
    for name, heading in GROUPS.items():
        rows = sorted((s for s in kb.symptoms if group(s) == name), key=lambda s: s.id)
        if rows:
            table = "\n".join(f"| {_cell(s.title['en'])} | {_cell(s.title['zh'])} | `{s.id}` |" for s in rows)
            parts.append(f"\n## {heading}\n\n| message | 现象 | id |\n| --- | --- | --- |\n{table}\n")
    return "".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("_", "\\_")


def main(arguments: list[str]) -> int:
    """Write or check the page."""
    text = page(knowledge.load(knowledge.CHECKOUT))
    if "--check" in arguments:
        return int(not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
