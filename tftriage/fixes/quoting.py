"""Texts as shells want them. Pure. Nothing is run through a shell; these are for a person to read and copy."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence

_CMD_SPECIAL = set(" \t&|<>^(),;=!\"'`+[]{}")
_POWERSHELL_QUOTES = "'\u2018\u2019\u201a\u201b"  # PowerShell takes each of these for a single quote


def cmd(argv: Sequence[str]) -> str:
    """A command for cmd.exe. ``%NAME%`` inside an argument would still be expanded: cmd has no way to prevent that."""
    return " ".join(
        f'"{argument}"'
        if '"' not in argument and not argument.endswith("\\") and _CMD_SPECIAL & set(argument)
        else subprocess.list2cmdline([argument])
        for argument in argv
    )


def powershell(argv: Sequence[str]) -> str:
    """A command for PowerShell 5.1 and 7."""
    return "& " + " ".join(argument if _plain(argument) else ps_string(argument) for argument in argv)


def bash(argv: Sequence[str]) -> str:
    """A command for a POSIX shell."""
    return shlex.join(argv)


def _plain(argument: str) -> bool:
    return (
        bool(argument) and all(c.isascii() and (c.isalnum() or c in "-_./\\:") for c in argument) and argument[0] != "-"
    )


def ps_string(text: str) -> str:
    """A PowerShell string literal."""
    for quote in _POWERSHELL_QUOTES:
        text = text.replace(quote, quote * 2)
    return f"'{text}'"


def ps_ascii(text: str) -> str:
    """The same in ASCII only: PowerShell 5.1 reads a script without a mark in the system's code page."""
    if text.isascii():
        return ps_string(text)
    parts: list[str] = []
    run = ""
    for character in text:
        if character.isascii():
            run += character
            continue
        if run or not parts:
            parts.append(ps_string(run))
        run = ""
        parts += [f"[char]0x{unit:04X}" for unit in _utf16(character)]
    if run:
        parts.append(ps_string(run))
    return "(" + " + ".join(parts) + ")"


def _utf16(character: str) -> list[int]:
    data = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]


def bat(text: str) -> str:
    """A text inside ``set "NAME=..."`` of a batch file: only ``%`` means something there."""
    return text.replace("%", "%%")


def sh(text: str) -> str:
    """A POSIX shell string literal."""
    return shlex.quote(text)
