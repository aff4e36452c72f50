"""Runs in the Windows Python: loads each tree in every way and says what the real loader did.

    python treechild.py PLAN OUT

PLAN holds one JSON object a line (see ``trees.plan``), OUT gets one a line. Standard error gets a mark before each
load, between them what Wine's loader and the DLLs' own starts print. Python 3.8 and newer.
"""

import ctypes
import importlib.machinery
import importlib.util
import json
import os
import sys

from tftriage.collect import dlls

ALTERED = 0x8  # LOAD_WITH_ALTERED_SEARCH_PATH: TensorFlow's own, and extension imports up to Python 3.7
kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
kernel32.LoadLibraryExW.restype = ctypes.c_void_p
kernel32.LoadLibraryExW.argtypes = [ctypes.c_wchar_p, ctypes.c_void_p, ctypes.c_uint32]
kernel32.GetModuleHandleW.restype = ctypes.c_void_p
kernel32.GetModuleHandleW.argtypes = [ctypes.c_wchar_p]
kernel32.FreeLibrary.argtypes = [ctypes.c_void_p]
kernel32.SetErrorMode(0x8001)
TEXTS = {code: ctypes.FormatError(code).strip() for code in (126, 127, 193, 1114)}


def load(name, flags):
    """The code of LoadLibraryExW (0: it loaded, and is unloaded again)."""
    handle = kernel32.LoadLibraryExW(name, None, flags)
    if not handle:
        return ctypes.get_last_error()
    kernel32.FreeLibrary(handle)
    return 0


def by_ctypes(name, **mode):
    """The same through ctypes.WinDLL; its FileNotFoundError stands for 126."""
    try:
        kernel32.FreeLibrary(ctypes.WinDLL(name, **mode)._handle)
    except FileNotFoundError:
        return 126
    except OSError as problem:
        return problem.winerror
    return 0


def by_import(path):
    """A real import of an extension module; the code is read from the text, for ImportError has no number."""
    loader = importlib.machinery.ExtensionFileLoader("agree", path)
    try:
        importlib.util.module_from_spec(importlib.util.spec_from_loader("agree", loader))
    except ImportError as problem:
        return next((code for code, text in TEXTS.items() if str(problem).strip().endswith(text)), str(problem))
    return 0


WAYS = {
    "altered": lambda tree: load(tree["root"], ALTERED),
    "plain": lambda tree: by_ctypes(tree["root"], winmode=0),
    "ctypes": lambda tree: by_ctypes(tree["root"]),
    "runtime": lambda tree: load(tree["bare"], ALTERED),
    "ctypes-bare": lambda tree: by_ctypes(tree["bare"]),
    "import": lambda tree: by_import(tree["pyd"]),  # last: Python never unloads a module
}


def sweep(names, held):
    """Unload what a failed load has left behind (Wine keeps the imports of a module that it gives up)."""
    for _ in range(20):
        left = [handle for handle in map(kernel32.GetModuleHandleW, names) if handle and handle not in held]
        for handle in left:
            kernel32.FreeLibrary(handle)
        if not left:
            break
    return bool(left)


def one(tree):
    """Set the stage, try every way, record what our collector sees of it."""
    os.chdir(tree["cwd"])
    os.environ["PATH"] = tree["path"]
    added = [os.add_dll_directory(folder) for folder in tree["added"]]
    held = [kernel32.LoadLibraryExW(path, None, ALTERED) for path in tree["preload"]]
    codes = {}
    for way, run in WAYS.items():
        os.write(2, "mark {} {}\n".format(tree["number"], way).encode())
        codes[way] = run(tree)
        os.write(2, b"mark - -\n")
        if way != "import" and sweep(tree["names"], held):
            raise SystemExit("tree {}: {} leaves modules loaded".format(tree["number"], way))
    for handle in held:
        kernel32.FreeLibrary(handle)
    for cookie in added:
        cookie.close()
    roots = [tree["root"], tree["pyd"], tree["bare"]]
    args = {"python": sys.executable, "dll_directories": tree["added"], "cwd": tree["cwd"]}
    fact = dlls.windows_tree(args, roots, dlls.windows_context(args, os.environ, roots), [])
    return {"number": tree["number"], "codes": codes, "held": all(held), "tree": fact}


def main():
    with open(sys.argv[1], encoding="utf-8") as plan, open(sys.argv[2], "w", encoding="utf-8") as out:
        for line in plan:
            out.write(json.dumps(one(json.loads(line))) + "\n")


if __name__ == "__main__":
    main()
