"""Make the pictures: the main screens in both languages, from the recorded cases. SVG, and PNG where rsvg-convert is.

    uv run python screenshots/make.py [FOLDER]

Run it after any change of the screens or of the knowledge base; a test compares what it would make.
"""

from __future__ import annotations

import asyncio
import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

from rich.cells import cell_len

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.pilot import KB, case_app, press, wait_for  # noqa: E402

# name of the picture: (recorded case, screen)
PICTURES = {
    "start": ("found-not-added", "start"),
    "walk": ("cuda-not-on-path", "walk"),
    "diagnosis": ("cudnn-renamed-utf-8", "diagnosis"),
    "fix": ("cudnn-renamed-utf-8", "fix"),
    "doctor": ("found-not-added", "doctor"),
    "dlls": ("cudnn-renamed-utf-8", "dlls"),
    "report": ("cudnn-renamed-utf-8", "report"),
}
CELL, WIDE = 12.2, 22.5  # the width of a cell in Rich's picture, and what a full-width character in two of them takes
FONTS = "'Noto Sans Mono', 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', 'Noto Sans CJK SC', monospace"


async def picture(name: str, screen: str, lang: str) -> str:
    """One screen as SVG."""
    app = case_app(name, lang, walked=screen not in ("start", "doctor"))
    async with app.run_test(size=(80, 24)) as pilot:
        if screen == "start":
            await wait_for(pilot, KB.say("start.looks-like", lang))
        elif screen == "doctor":
            await press(pilot, "d")
            await wait_for(pilot, KB.say("doctor.heading", lang))
        else:
            await wait_for(pilot, KB.say("walk.enter-diagnosis", lang))
        if screen in ("dlls", "report"):
            await press(pilot, "d" if screen == "dlls" else "x")
            await wait_for(pilot, KB.say("dlls.failure.absent" if screen == "dlls" else "key.copy_report", lang))
        if screen in ("diagnosis", "fix"):
            await press(pilot, "enter")
            await wait_for(pilot, KB.say("diagnosis.fixes", lang))
        if screen == "fix":
            await press(pilot, "enter")
            await wait_for(pilot, KB.say("fix.phase-preview", lang))
        await pilot.pause(0.2)
        return neutral(app.export_screenshot(title="tftriage", simplify=True))


def neutral(svg: str) -> str:
    """The same picture with the system's fonts (Rich names a font on a web server), stable ids and true columns."""
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.S)
    svg = re.sub(r"font-family: ?[^;]*;", f"font-family: {FONTS};", svg)
    svg = re.sub(r"\n\s*font-variant-east-asian: full-width;", "", svg)
    svg = re.sub(r"terminal-\d+", "terminal", svg)
    return re.sub(r'<text class="([^"]*)" x="([\d.]+)" y="([\d.]+)" textLength[^>]*>([^<]*)</text>', columns, svg)


def columns(found: re.Match[str]) -> str:
    """One run of text, every word and every wide character at its own column.

    Rich counts characters where it should count cells, and what draws SVG drops spaces at the beginning of a run:
    Chinese lines and the frames around them would not stand straight.
    """
    style, x, y, text = found[1], float(found[2]), found[3], html.unescape(found[4]).replace("\u00a0", " ")
    made: list[str] = []
    at = 0
    for piece in re.findall(r"[\u1100-\U0010ffff]| +|[^ \u1100-\U0010ffff]+", text.replace("\n", "")):
        for part in [piece] if cell_len(piece) == len(piece) else list(piece):
            cells = cell_len(part)
            if part.strip():
                inset, size = (
                    ((2 * CELL - WIDE) / 2, f' font-size="{WIDE}"') if len(part) == 1 and cells == 2 else (0.0, "")
                )
                left = f"{x + at * CELL + inset:.1f}"
                made.append(f'<text class="{style}" x="{left}" y="{y}"{size}>{html.escape(part, quote=False)}</text>')
            at += cells
    return "".join(made)


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
