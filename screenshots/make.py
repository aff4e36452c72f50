"""Make the pictures: the main screens in both languages, from the recorded cases. SVG, and PNG where rsvg-convert is.

    uv run python screenshots/make.py [FOLDER]

Run it after any change of the screens or of the knowledge base; a test compares what it would make.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.pilot import KB, press, wait_for  # noqa: E402
from tftriage import cases  # noqa: E402
from tftriage.facts import Facts  # noqa: E402
from tftriage.session import Session  # noqa: E402
from tftriage.sources import CaseSource  # noqa: E402
from tftriage.tui.app import DEMOS, TriageApp  # noqa: E402

# name of the picture: (recorded case, screen)
PICTURES = {
    "start": ("protobuf", "start"),
    "walk": ("cuda-not-on-path", "walk"),
    "diagnosis": ("cudnn-renamed-utf-8", "diagnosis"),
    "fix": ("cudnn-renamed-utf-8", "fix"),
    "doctor": ("no-cuda", "doctor"),
}
FONTS = "'Noto Sans Mono', 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', 'Noto Sans CJK SC', monospace"


def app_of(name: str, lang: str, walked: bool) -> TriageApp:
    """The app on a recorded case."""
    case = cases.read(DEMOS / f"{name}.json")
    if walked:
        session = cases.replay(case, lambda source, target, text, facts: Session(KB, source, target, text, facts))
    else:
        facts = Facts(case.facts)
        session = Session(KB, CaseSource(facts), case.target, case.text, facts)
    return TriageApp(KB, session, lang)


async def picture(name: str, screen: str, lang: str) -> str:
    """One screen as SVG."""
    app = app_of(name, lang, walked=screen not in ("start", "doctor"))
    async with app.run_test(size=(80, 24)) as pilot:
        if screen == "start":
            await wait_for(pilot, KB.say("start.looks-like", lang))
        elif screen == "doctor":
            await press(pilot, "d")
            await wait_for(pilot, KB.say("doctor.heading", lang))
        else:
            await wait_for(pilot, KB.say("walk.enter-diagnosis", lang))
        if screen in ("diagnosis", "fix"):
            await press(pilot, "enter")
            await wait_for(pilot, KB.say("diagnosis.fixes", lang))
        if screen == "fix":
            await press(pilot, "enter")
            await wait_for(pilot, KB.say("fix.phase-preview", lang))
        await pilot.pause(0.2)
        return neutral(app.export_screenshot(title="tftriage", simplify=True))


def neutral(svg: str) -> str:
    """The same picture with the system's fonts (Rich names a font on a web server) and stable ids."""
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.S)
    svg = re.sub(r"font-family: ?[^;]*;", f"font-family: {FONTS};", svg)
    return re.sub(r"terminal-\d+", "terminal", svg)


def make(folder: Path) -> list[Path]:
    """All pictures into a folder."""
    made: list[Path] = []
    for picture_name, (name, screen) in PICTURES.items():
        for lang in ("en", "zh"):
            path = folder / f"{picture_name}-{lang}.svg"
            path.write_text(asyncio.run(picture(name, screen, lang)), encoding="utf-8")
            made.append(path)
    return made


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "screenshots"
    convert = shutil.which("rsvg-convert")
    for path in make(folder):
        if convert:
            subprocess.run([convert, "-o", str(path.with_suffix(".png")), str(path)], check=True)
        print(path.name)


if __name__ == "__main__":
    main()
