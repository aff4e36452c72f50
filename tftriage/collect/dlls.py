"""The DLLs that an import needs, in every folder where a loader may look. What is found is recorded, not judged.

The closure is taken over *every* copy, not over the one that wins: which copy wins depends on the search
order, and a what-if ("this folder on PATH") must be answerable later from the recorded fact alone.
"""

import os
import re
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Tuple

from . import cuda, elf, interpreters, pe, places
from .environment import context_environment, path_folders
from .registry import Skipped, collector
from .tree import BUDGET, Tree, closure, finish

CONDA_FOLDERS = (
    "bin",
    "Scripts",
    os.path.join("Library", "bin"),
    os.path.join("Library", "usr", "bin"),
    os.path.join("Library", "mingw-w64", "bin"),
)


def windows_context(args: Dict[str, Any], environment: Mapping[str, str], roots: List[str]) -> Dict[str, Any]:
    """What the loader model needs to know besides files: the folders that Windows and Python search."""
    python = str(args.get("python") or "")
    prefix = interpreters.prefix_of(python) if python else ""
    version = interpreters.version_of(python) if python else None
    conda = bool(prefix) and interpreters.conda_history(prefix)
    numbers = [int(part) for part in version.split(".")[:2]] if version else None
    machine = pe.read(python)["machine"] if python else None
    first = next((root for root in roots if os.path.dirname(root)), None)
    context: Dict[str, Any] = {
        "python": numbers,
        "bits": {"x86": 32, "x64": 64}.get(str(machine)),
        "prefix": prefix or None,
        "python_folder": interpreters.application_folder(python) if python else None,
        "pyd_folder": os.path.dirname(first) if first else None,
        "conda": conda,
        "conda_path_mode": conda
        and bool(environment.get("CONDA_DLL_SEARCH_MODIFICATION_ENABLE"))
        and (numbers is None or numbers <= [3, 10]),
        "store": interpreters.is_store(python),
        "dll_directories": [str(folder) for folder in args.get("dll_directories") or []],
        "cwd": str(args.get("cwd") or os.getcwd()),
        "path": path_folders(environment),
        "known_dlls": places.known_dlls(),
    }
    context.update(places.windows_folders(environment))
    return context


def windows_tree(
    args: Dict[str, Any], roots: List[str], context: Dict[str, Any], elsewhere: List[str]
) -> Dict[str, Any]:
    """The value of ``dlls.tree`` for PE files; works elsewhere, too, for files that were copied there."""
    tree = Tree(True, budget(args), alias_of(context["system32"]))
    conda = [os.path.join(context["prefix"], part) for part in CONDA_FOLDERS] if context["conda"] else []
    single = [
        context["pyd_folder"],
        context["python_folder"],
        *context["dll_directories"],
        *conda,
        context["system32"],
        context["windows"],
        context["cwd"],
    ]
    on_path = [os.path.join(context["cwd"], entry) for entry in context["path"]]
    search = list(dict.fromkeys(folder for folder in [*single, *on_path] if folder))
    for folder in [*search, *elsewhere]:
        tree.listing(folder)
    system = {os.path.normcase(os.path.normpath(folder)) for folder in (context["system32"], context["windows"])}
    needed, api_sets = closure(tree, roots, lambda: search, elsewhere, system)
    found = finish(tree, roots, context, needed, api_sets, search, elsewhere)
    found["missing_exports"] = missing_exports(tree, search, elsewhere)
    found["incomplete"] = tree.incomplete
    return found


def budget(args: Dict[str, Any]) -> float:
    """Seconds for the tree: most of the fact's deadline, so that a part is answered rather than nothing."""
    return min(BUDGET, 0.7 * float(args.get("limit") or BUDGET))


def alias_of(system32: str) -> Dict[str, str]:
    """A 32-bit process is shown SysWOW64 when it opens System32; ``Sysnative`` is its way to the real one."""
    native = os.path.join(os.path.dirname(system32), "Sysnative")
    return {system32: native} if os.environ.get("PROCESSOR_ARCHITEW6432") and os.path.isdir(native) else {}


def missing_exports(tree: Tree, search: List[str], elsewhere: List[str]) -> List[Dict[str, Any]]:
    """Names that a file imports and that a copy of the DLL lacks: error 127 if that copy is loaded.

    Sample: ``{"importer": "...\\\\x.pyd", "dll": "...\\\\msvcp140.dll", "count": 1, "names":
    ["?_Xlength@..."]}``.
    """
    found = []
    exports: Dict[str, Optional[FrozenSet[str]]] = {}
    for importer, facts in list(tree.files.items()):
        if not facts.get("followed") or facts["error"] or tree.late():
            continue
        for dll, names in pe.imported_names(tree.place(importer)).items():
            for path in tree.copies(dll, [*search, *elsewhere])[:8]:
                copy = tree.files.get(path)
                if copy and not copy["error"] and copy["machine"] == facts["machine"] and names and not tree.late():
                    if path not in exports:
                        exports[path] = pe.exports(tree.place(path))
                    known = exports[path]
                    if known is None:
                        lacking = pe.missing_exports(tree.place(path), names[:4000])
                    else:
                        lacking = [name for name in names if name not in known]
                    if lacking:
                        found.append({"importer": importer, "dll": path, "count": len(lacking), "names": lacking[:5]})
    return found


def linux_context(args: Dict[str, Any], environment: Mapping[str, str], roots: List[str]) -> Dict[str, Any]:
    """The same for Linux: ``path`` is LD_LIBRARY_PATH, ``default`` the built-in folders, ``cache`` {name: path}."""
    python = str(args.get("python") or "")
    version = interpreters.version_of(python) if python else None
    first = next((root for root in roots if os.path.dirname(root)), None)
    variable = environment.get("LD_LIBRARY_PATH", "")
    return {
        "python": [int(part) for part in version.split(".")[:2]] if version else None,
        "python_folder": os.path.dirname(python) or None,
        "program": os.path.realpath(python) if python else None,  # its RPATH serves all libraries: conda's has one
        "pyd_folder": os.path.dirname(first) if first else None,
        "conda": bool(python) and interpreters.conda_history(interpreters.prefix_of(python)),
        "store": False,
        "dll_directories": [],
        "system32": None,
        "windows": None,
        "cwd": str(args.get("cwd") or os.getcwd()),
        # ld.so(8): separated by colons or semicolons; an empty entry is the current folder
        "path": [part or "." for part in re.split("[:;]", variable)] if variable else [],
        "default": elf.DEFAULT_FOLDERS,
        "cache": {},
    }


def linux_tree(
    args: Dict[str, Any],
    roots: List[str],
    context: Dict[str, Any],
    elsewhere: List[str],
    cache: Dict[str, List[str]],
) -> Dict[str, Any]:
    """The value of ``dlls.tree`` for ELF files; puts the needed names of the loader's cache into the context."""
    tree = Tree(False, budget(args))
    cached = {os.path.dirname(path) for paths in cache.values() for path in paths}
    search = list(
        dict.fromkeys(
            [
                *(os.path.join(context["cwd"], part) for part in context["path"]),
                *sorted(cached),
                *context["default"],
            ]
        )
    )

    def more(path: str, facts: Dict[str, Any]) -> None:
        for entry in facts["rpath"] + facts["runpath"]:
            folder = os.path.normpath(os.path.join(context["cwd"], elf.expand_origin(entry, path)))
            if folder not in search:
                search.append(folder)

    if context["program"]:
        more(context["program"], tree.read(context["program"], False))
    system = {os.path.normcase(os.path.normpath(folder)) for folder in [*context["default"], *cached]}
    needed, _ = closure(tree, roots, lambda: search, elsewhere, system, more)
    for folder in elsewhere:
        tree.listing(folder)
    context["cache"] = {name: _first_usable(cache[name], tree) for name in needed if name in cache}
    return finish(tree, roots, context, needed, [], search, elsewhere)


def _first_usable(paths: List[str], tree: Tree) -> str:
    """The cache names the 32-bit and the 64-bit file of one name; a 64-bit process takes the 64-bit one."""
    return next((path for path in paths if tree.files.get(path, {}).get("elf_class") == 64), paths[0])


def other_folders(args: Dict[str, Any], environment: Mapping[str, str]) -> List[str]:
    """Folders outside the search order in which libraries may lie: toolkits, conda, packages, ``search``."""
    search = cuda.search_path(environment)
    extra = [str(folder) for folder in args.get("search") or []]
    named = {**places.stored_variables(), **environment}
    toolkits = places.toolkit_folders(named, extra=extra) + places.version_siblings(search) + extra
    found = [folder for toolkit in toolkits for folder in places.library_folders(toolkit)]
    below = ("Library", "bin") if os.name == "nt" else ("lib",)
    found += [os.path.join(prefix, *below) for prefix in cuda.conda_prefixes(args, environment)]
    found += places.conda_package_folders(environment, os.path.expanduser("~"))
    if args.get("python"):
        for site in interpreters.site_packages(str(args["python"]), environment):
            for package in places.children(os.path.join(site, "nvidia")):
                found += [os.path.join(package, "bin"), os.path.join(package, "lib")]
    return places.unique(found)


def roots_of(args: Dict[str, Any], environment: Mapping[str, str]) -> List[str]:
    """The request's roots; else the native libraries of TensorFlow in the target, and ``libraries``."""
    roots = [str(root) for root in args.get("roots") or []]
    if not roots and args.get("python"):
        roots = interpreters.native_modules(interpreters.site_packages(str(args["python"]), environment))
    return list(dict.fromkeys(roots + [str(name) for name in args.get("libraries") or []]))


@collector("dlls.tree", 60)
def dlls(args: Dict[str, Any]) -> Tuple[Any, str]:
    """Import tables of the roots and of everything they need, wherever copies lie."""
    environment = context_environment(args)
    roots = roots_of(args, environment)
    if not roots:
        raise Skipped("no library to start from")
    elsewhere = other_folders(args, environment)
    if os.name == "nt":
        return windows_tree(args, roots, windows_context(args, environment, roots), elsewhere), "PE headers"
    cache: Optional[Dict[str, List[str]]] = elf.read_cache()
    return linux_tree(args, roots, linux_context(args, environment, roots), elsewhere, cache or {}), "ELF headers"
