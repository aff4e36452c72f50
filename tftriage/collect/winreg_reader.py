"""Read the Windows registry. Elsewhere, and where a key is not there or may not be read, answers are empty."""

import importlib
from typing import Any, Callable, Dict, List, Tuple

TYPES = {1: "REG_SZ", 2: "REG_EXPAND_SZ", 3: "REG_BINARY", 4: "REG_DWORD", 7: "REG_MULTI_SZ", 11: "REG_QWORD"}

# (hive "HKCU" or "HKLM", key) -> {value name: (type, value)}: what collectors take as a parameter
Values = Callable[[str, str], Dict[str, Tuple[str, Any]]]
Keys = Callable[[str, str], List[str]]


def _open(hive: str, key: str, view: int) -> Tuple[Any, Any]:
    winreg: Any = importlib.import_module("winreg")
    roots = {"HKCU": winreg.HKEY_CURRENT_USER, "HKLM": winreg.HKEY_LOCAL_MACHINE}
    return winreg, winreg.OpenKey(roots[hive], key, 0, winreg.KEY_READ | view)


def values(hive: str, key: str, view: int = 0) -> Dict[str, Tuple[str, Any]]:
    """{name: (type such as "REG_EXPAND_SZ", value as stored, unexpanded)} of one key.

    ``view`` is 0, KEY_WOW64_64KEY (0x100) or KEY_WOW64_32KEY (0x200).
    """
    found: Dict[str, Tuple[str, Any]] = {}
    try:
        winreg, handle = _open(hive, key, view)
        with handle:
            for number in range(winreg.QueryInfoKey(handle)[1]):
                name, value, kind = winreg.EnumValue(handle, number)
                found[name] = (TYPES.get(kind, str(kind)), value)
    except (ImportError, OSError):
        pass
    return found


def keys(hive: str, key: str, view: int = 0) -> List[str]:
    """Names of the keys below one key."""
    found: List[str] = []
    try:
        winreg, handle = _open(hive, key, view)
        with handle:
            found = [winreg.EnumKey(handle, number) for number in range(winreg.QueryInfoKey(handle)[0])]
    except (ImportError, OSError):
        pass
    return found
