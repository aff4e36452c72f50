"""The user's variables: HKCU\\Environment, read unexpanded and with their types.

``winreg`` exists on Windows only and is imported there only; elsewhere every access raises ``Unsupported``.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Protocol, cast

from tftriage.fixes.plans import RegistryType, Variable

KEY = "Environment"


class Unsupported(Exception):
    """There is no registry on this system."""


class OddType(Exception):
    """The value is neither REG_SZ nor REG_EXPAND_SZ: nobody knows what it means as a variable."""


class Registry(Protocol):
    """Reads and writes one user's variables. Names in any case; a name that exists keeps its spelling."""

    def read(self, name: str) -> Variable: ...

    def write(self, variable: Variable) -> None: ...

    def delete(self, name: str) -> None: ...

    def broadcast(self) -> bool: ...

    def read_machine(self, key: str, name: str) -> int | None: ...

    def write_machine(self, key: str, name: str, value: int | None) -> None: ...


class MemoryRegistry:
    """The same rules without Windows: a dictionary."""

    def __init__(self, *variables: Variable) -> None:
        self._variables = {variable.name.upper(): variable for variable in variables}
        self.machine: dict[tuple[str, str], int] = {}
        self.broadcasts = 0

    def read(self, name: str) -> Variable:
        return self._variables.get(name.upper(), Variable(name))

    def write(self, variable: Variable) -> None:
        known = self._variables.get(variable.name.upper())
        name = known.name if known else variable.name
        self._variables[name.upper()] = Variable(name, variable.value, variable.type)

    def delete(self, name: str) -> None:
        self._variables.pop(name.upper(), None)

    def broadcast(self) -> bool:
        self.broadcasts += 1
        return True

    def read_machine(self, key: str, name: str) -> int | None:
        return self.machine.get((key, name))

    def write_machine(self, key: str, name: str, value: int | None) -> None:
        if value is None:
            self.machine.pop((key, name), None)
        else:
            self.machine[key, name] = value


class NoRegistry:
    """Every other system."""

    def read(self, name: str) -> Variable:
        raise Unsupported(name)

    def write(self, variable: Variable) -> None:
        raise Unsupported(variable.name)

    def delete(self, name: str) -> None:
        raise Unsupported(name)

    def broadcast(self) -> bool:
        raise Unsupported("broadcast")

    def read_machine(self, key: str, name: str) -> int | None:
        raise Unsupported(name)

    def write_machine(self, key: str, name: str, value: int | None) -> None:
        raise Unsupported(name)


class WindowsRegistry:
    """HKEY_CURRENT_USER\\Environment."""

    def read(self, name: str) -> Variable:
        if sys.platform != "win32":
            raise Unsupported(name)
        import winreg

        try:
            with winreg.OpenKey(winreg.HKEY_CURRENT_USER, KEY) as key:
                value, kind = winreg.QueryValueEx(key, name)
                spelling = _spelling(key, name)
        except FileNotFoundError:
            return Variable(name)
        types = {winreg.REG_SZ: "REG_SZ", winreg.REG_EXPAND_SZ: "REG_EXPAND_SZ"}
        if kind not in types or not isinstance(value, str):
            raise OddType(f"{name}: {kind}")
        return Variable(spelling, value, cast(RegistryType, types[kind]))

    def write(self, variable: Variable) -> None:
        if sys.platform != "win32":
            raise Unsupported(variable.name)
        import winreg

        kind = winreg.REG_SZ if variable.type == "REG_SZ" else winreg.REG_EXPAND_SZ
        with winreg.CreateKeyEx(winreg.HKEY_CURRENT_USER, KEY, 0, winreg.KEY_SET_VALUE) as key:
            winreg.SetValueEx(key, variable.name, 0, kind, variable.value)
            winreg.FlushKey(key)

    def delete(self, name: str) -> None:
        if sys.platform != "win32":
            raise Unsupported(name)
        import winreg

        with winreg.OpenKey(winreg.HKEY_CURRENT_USER, KEY, 0, winreg.KEY_SET_VALUE) as key:
            try:
                winreg.DeleteValue(key, name)
            except FileNotFoundError:
                return
            winreg.FlushKey(key)

    def broadcast(self) -> bool:
        """Tell running programs (Explorer above all) that variables changed. False when it was not taken in 5 s.

        A console that runs already keeps its old block whatever is sent.
        """
        if sys.platform != "win32":
            raise Unsupported("broadcast")
        import ctypes

        send = ctypes.WinDLL("user32", use_last_error=True).SendMessageTimeoutW
        send.restype = ctypes.c_ssize_t
        send.argtypes = [
            ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t, ctypes.c_wchar_p,
            ctypes.c_uint, ctypes.c_uint, ctypes.POINTER(ctypes.c_size_t),
        ]  # fmt: skip
        hwnd_broadcast, wm_settingchange, abort_if_hung = 0xFFFF, 0x001A, 0x0002
        answer = ctypes.c_size_t()
        return bool(send(hwnd_broadcast, wm_settingchange, 0, KEY, abort_if_hung, 5000, ctypes.byref(answer)))

    def read_machine(self, key: str, name: str) -> int | None:
        """A REG_DWORD below HKEY_LOCAL_MACHINE, in the 64-bit view whatever this Python is."""
        if sys.platform != "win32":
            raise Unsupported(name)
        import winreg

        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, key, 0, winreg.KEY_READ | winreg.KEY_WOW64_64KEY) as opened:
                value, kind = winreg.QueryValueEx(opened, name)
        except FileNotFoundError:
            return None
        if kind != winreg.REG_DWORD:
            raise OddType(f"{name}: {kind}")
        return int(value)

    def write_machine(self, key: str, name: str, value: int | None) -> None:
        """Write it, or delete it with None. Nothing but the value: a key that is not there is ``OSError``."""
        if sys.platform != "win32":
            raise Unsupported(name)
        import winreg

        access = winreg.KEY_SET_VALUE | winreg.KEY_WOW64_64KEY
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, key, 0, access) as opened:
            if value is not None:
                winreg.SetValueEx(opened, name, 0, winreg.REG_DWORD, value)
            else:
                with contextlib.suppress(FileNotFoundError):
                    winreg.DeleteValue(opened, name)
            winreg.FlushKey(opened)


def _spelling(key: object, name: str) -> str:
    """The name as the registry has it (``Path`` or ``PATH``): the registry itself takes any case."""
    if sys.platform != "win32":
        return name
    import winreg

    for index in range(winreg.QueryInfoKey(key)[1]):
        known = winreg.EnumValue(key, index)[0]
        if known.upper() == name.upper():
            return known
    return name


def user_registry() -> Registry:
    """This system's."""
    return WindowsRegistry() if sys.platform == "win32" else NoRegistry()
