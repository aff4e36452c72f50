"""The texts of shell scripts that put folders first in a search path, and take them away again. Pure.

Nothing of the system's PATH is ever lost: a script only adds in front, and removes only what it added. A batch file
with other than ASCII characters switches the code page while it is read, as Python's own activate.bat does.
"""

from __future__ import annotations

from collections.abc import Sequence

from tftriage.fixes import paths, quoting

BEGIN = ">>> tftriage {name} >>>"
END = "<<< tftriage {name} <<<"
_BAT_UTF8 = (
    '@for /f "tokens=2 delims=:." %%a in (\'"%SystemRoot%\\System32\\chcp.com"\') do @set "_TFTRIAGE_CP=%%a"',
    '@"%SystemRoot%\\System32\\chcp.com" 65001 >nul',
)
_BAT_BACK = (
    '@if defined _TFTRIAGE_CP "%SystemRoot%\\System32\\chcp.com" %_TFTRIAGE_CP% >nul',
    '@set "_TFTRIAGE_CP="',
)


def bat_encoded(lines: Sequence[str]) -> list[str]:
    """Batch lines, with the code page switched around them when they need it."""
    return list(lines) if all(line.isascii() for line in lines) else [*_BAT_UTF8, *lines, *_BAT_BACK]


def bat_add(folders: Sequence[str]) -> list[str]:
    return bat_encoded([f'@set "PATH={quoting.bat(_joined(folders))};%PATH%"'])


def bat_remove(folders: Sequence[str]) -> list[str]:
    """Cut what ``bat_add`` put in front; if something else was put before it since, cut it out of the middle."""
    added = _joined(folders) + ";"
    text, length = quoting.bat(added), paths.units(added)
    # cmd's replacement cannot hold a % or a =: such a folder is cut out in front only.
    middle = [] if set("%=") & set(added) else [f'@set "PATH=%PATH:;{text}=;%"']
    lines = [
        f'@if /i "%PATH:~0,{length}%"=="{text}" goto tftriage_front',
        *middle,
        "@goto tftriage_end",
        ":tftriage_front",
        f'@set "PATH=%PATH:~{length}%"',
        ":tftriage_end",
    ]
    return bat_encoded(lines)


def ps_add(folders: Sequence[str]) -> list[str]:
    return [f"$env:PATH = {quoting.ps_ascii(_joined(folders))} + ';' + $env:PATH"]


def ps_remove(folders: Sequence[str]) -> list[str]:
    return [
        f"$tftriageAdded = {quoting.ps_ascii(_joined(folders))} + ';'",
        "$tftriageAt = (';' + $env:PATH + ';').IndexOf(';' + $tftriageAdded, [StringComparison]::OrdinalIgnoreCase)",
        "if ($tftriageAt -ge 0) {",
        "    $tftriageLength = [Math]::Min($tftriageAdded.Length, $env:PATH.Length - $tftriageAt)",
        "    $env:PATH = $env:PATH.Remove($tftriageAt, $tftriageLength)",
        "}",
        "Remove-Variable tftriageAdded, tftriageAt, tftriageLength -ErrorAction SilentlyContinue",
    ]


def sh_add(variable: str, folders: Sequence[str]) -> list[str]:
    """For bash, dash and zsh."""
    return [
        f"_tftriage_added={quoting.sh(':'.join(folders))}",
        f'{variable}="${{_tftriage_added}}${{{variable}:+:${{{variable}}}}}"',
        f"export {variable}",
        "unset _tftriage_added",
    ]


def sh_remove(variable: str, folders: Sequence[str]) -> list[str]:
    """Remove the first place where the folders stand in a row; an empty rest means that it was not set before."""
    return [
        f"_tftriage_added={quoting.sh(':'.join(folders))}",
        f'case ":${{{variable}:-}}:" in',
        '    *":${_tftriage_added}:"*)',
        f'        _tftriage_rest=":${{{variable}}}:"',
        '        _tftriage_head="${_tftriage_rest%%":${_tftriage_added}:"*}"',
        '        _tftriage_tail="${_tftriage_rest#*":${_tftriage_added}:"}"',
        f'        {variable}="${{_tftriage_head#:}}${{_tftriage_head:+:}}${{_tftriage_tail%:}}"',
        f'        {variable}="${{{variable}%:}}"',
        f'        if [ -n "${{{variable}}}" ]; then export {variable}; else unset {variable}; fi',
        "        unset _tftriage_rest _tftriage_head _tftriage_tail ;;",
        "esac",
        "unset _tftriage_added",
    ]


def block(lines: Sequence[str], comment: str, name: str = "gpu libraries") -> list[str]:
    """Lines between two marks by which they are found again."""
    return [f"{comment} {BEGIN.format(name=name)}", *lines, f"{comment} {END.format(name=name)}"]


def has_block(text: str, comment: str, name: str = "gpu libraries") -> bool:
    return f"{comment} {BEGIN.format(name=name)}" in text


def without_block(text: str, comment: str, name: str = "gpu libraries") -> str:
    """The text less every block of that name, to the character (the line end after the last mark included)."""
    begin, end = f"{comment} {BEGIN.format(name=name)}", f"{comment} {END.format(name=name)}"
    while (start := text.find(begin)) >= 0 and (stop := text.find(end, start)) >= 0:
        stop += len(end)
        for newline in ("\r\n", "\n"):
            if text.startswith(newline, stop):
                stop += len(newline)
                break
        text = text[:start] + text[stop:]
    return text


def _joined(folders: Sequence[str]) -> str:
    return ";".join(paths.quoted(folder) for folder in folders)
