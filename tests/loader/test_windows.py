"""The Windows loader model: search orders of each Python, what stops a search, what is merely optional."""

from __future__ import annotations

import pytest

from tests.loader.machine import CUDA, PY37, PYD, SYSTEM32, pe, windows
from tftriage.loader import Entry, base, resolve
from tftriage.loader.windows import CONDA_FOLDERS


def entry(tree: dict, name: str, **how: object) -> Entry:
    found = [one for one in resolve(tree, **how).entries if one.name.lower() == name.lower()]
    assert len(found) == 1, f"{len(found)} entries called {name}"
    return found[0]


BESIDE = PYD.replace("_pywrap_tensorflow_internal.pyd", "dep.dll")
PLACES = {  # where dep.dll lies -> its rule
    "pyd-folder": BESIDE,
    "python-folder": PY37 + "\\dep.dll",
    "dll-directory": "D:\\added\\dep.dll",
    "system32": SYSTEM32 + "\\dep.dll",
    "windows": "C:\\Windows\\dep.dll",
    "cwd": "C:\\work\\dep.dll",
    "path": "D:\\on path\\dep.dll",
}
CONTEXT = {"path": ("D:\\on path",), "dll_directories": ["D:\\added"]}


@pytest.mark.parametrize(
    ("python", "more", "order"),
    [
        ((3, 7), {}, ["pyd-folder", "system32", "windows", "cwd", "path"]),
        ((3, 8), {}, ["pyd-folder", "python-folder", "dll-directory", "system32"]),
        ((3, 11), {}, ["pyd-folder", "python-folder", "dll-directory", "system32"]),
        ((3, 7), {"store": True}, ["pyd-folder", "system32"]),
        ((3, 10), {"store": True}, ["pyd-folder", "python-folder", "dll-directory", "system32"]),
    ],
)
def test_an_extension_is_searched_in_the_order_of_its_python(python, more, order):
    """Each step takes away the winner: the next in the order must win, and nobody else ever."""
    places, seen = dict(PLACES), []
    while True:
        tree = windows({PYD: pe("dep.dll"), **{p: pe() for p in places.values()}}, python=python, **CONTEXT, **more)
        found = entry(tree, "dep.dll")
        if found.rule == "nowhere":
            break
        assert found.path == places[found.rule]
        assert {copy.rule for copy in found.shadowed} == set(order) - set(seen) - {found.rule}
        seen.append(found.rule)
        del places[found.rule]
    assert seen == order
    assert found.failure == "absent"
    assert {copy.path for copy in found.unsearched} == set(places.values())


@pytest.mark.parametrize(
    ("via", "python", "more", "order"),
    [
        ("runtime", (3, 11), {}, ["python-folder", "system32", "windows", "cwd", "path"]),
        ("runtime", (3, 7), {}, ["python-folder", "system32", "windows", "cwd", "path"]),
        ("runtime", (3, 10), {"store": True}, ["python-folder", "system32"]),
        ("ctypes", (3, 7), {}, ["python-folder", "system32", "windows", "cwd", "path"]),
        ("ctypes", (3, 8), {}, ["python-folder", "dll-directory", "system32"]),
        ("ctypes", (3, 7), {"store": True}, ["python-folder", "system32"]),
    ],
)
def test_a_bare_name_is_searched_without_a_folder_of_its_own(via, python, more, order):
    tree = windows({PYD: pe("dep.dll")}, roots=["dep.dll"], python=python, folders=("D:\\on path",), **CONTEXT, **more)
    assert [place.rule for place in resolve(tree, via=via).places["dep.dll"]] == order


def test_a_bare_root_is_a_run_time_load_and_a_dll_path_is_loaded_as_ctypes_does():
    where = "D:\\on path\\"
    files = {where + "a.dll": pe("b.dll"), where + "b.dll": pe()}
    assert entry(windows(files, roots=["a.dll"], python=(3, 11), path=("D:\\on path",)), "b.dll").rule == "path"
    assert entry(windows(files, roots=[where + "a.dll"], python=(3, 11)), "b.dll").rule == "pyd-folder"
    old = resolve(windows(files, roots=[where + "a.dll"], python=(3, 7)))  # plain LoadLibrary: not beside the DLL
    assert [one.failure for one in old.entries] == ["child-absent", "absent"]


@pytest.mark.parametrize(
    ("python", "mode", "rule"),
    [((3, 7), False, "path"), ((3, 7), True, "dll-directory"), ((3, 9), True, "dll-directory")],
)
def test_conda_path_mode_searches_path_as_added_directories(python, mode, rule):
    tree = windows(
        {PYD: pe("dep.dll"), "D:\\on path\\dep.dll": pe()}, python=python, path=("D:\\on path",), conda=True,
        conda_path_mode=mode,
    )  # fmt: skip
    assert entry(tree, "dep.dll").rule == rule


@pytest.mark.parametrize("python", [(3, 8), (3, 11)])
def test_conda_adds_the_folders_of_its_prefix(python):
    for part in CONDA_FOLDERS:
        file = f"{PY37}\\{part}\\dep.dll"
        assert entry(windows({PYD: pe("dep.dll"), file: pe()}, python=python, conda=True), "dep.dll").path == file
    other = windows({PYD: pe("dep.dll"), "E:\\env\\Library\\bin\\dep.dll": pe()}, python=python, conda=True,
                    prefix="E:\\env", dll_directories=["E:\\ENV\\Library\\bin\\"])  # fmt: skip
    assert entry(other, "dep.dll").rule == "dll-directory"
    assert sum(p.rule == "dll-directory" for p in resolve(other).places[PYD]) == len(CONDA_FOLDERS)  # each once


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("d:\\ON PATH", True),
        ("D:\\on path\\", True),
        ("D:/on path//", True),
        ("..\\on path", True),  # relative to the current folder
        ('"D:\\on path"', False),
        ("%CUDA_PATH%\\bin", False),
    ],
)
def test_how_a_path_entry_is_written(written, found):
    tree = windows(
        {PYD: pe("DEP.dll"), "D:\\on path\\Dep.DLL": pe()}, path=("", "E:\\gone", written), cwd="D:\\work"
    )  # fmt: skip
    assert (entry(tree, "dep.dll").path == "D:\\on path\\Dep.DLL") is found
    reasons = {item.entry: item.reason for item in resolve(tree).ignored}
    assert reasons["E:\\gone"] == "missing"
    if not found:
        assert reasons[written] == ("quoted" if '"' in written else "unexpanded")


def test_a_relative_entry_without_a_known_current_folder_is_useless():
    tree = windows({PYD: pe("dep.dll"), "bin\\dep.dll": None}, path=("bin",), cwd=None)
    assert entry(tree, "dep.dll").rule == "path"  # ntpath cannot tell; the listing names it as written
    assert not any(place.rule == "cwd" for place in resolve(tree).places[PYD])


def test_what_python_has_loaded_is_reused_before_any_folder():
    files = {
        PYD: pe("VCRUNTIME140.dll", "python37.dll", "other.dll"),
        PY37 + "\\vcruntime140.dll": pe(file_version="14.16.27012.6"),
        SYSTEM32 + "\\vcruntime140.dll": pe(file_version="14.29.30139.0"),
        PY37 + "\\python37.dll": pe("VCRUNTIME140.dll"),
        "D:\\late\\other.dll": pe(),
    }
    runtime = entry(windows(files), "vcruntime140.dll")
    assert (runtime.rule, runtime.version) == ("loaded", "14.16.27012.6")
    assert [(copy.rule, copy.version) for copy in runtime.shadowed] == [("system32", "14.29.30139.0")]
    assert entry(windows(files), "python37.dll").rule == "loaded"
    assert entry(windows(files), "other.dll").failure == "absent"
    assert entry(windows(files, loaded=["D:\\late\\other.dll", "gone.dll"]), "other.dll").rule == "loaded"


def test_another_pythons_extension_misses_that_python():
    tree = windows({PYD: pe("python38.dll"), PY37 + "\\python311.dll": pe()}, python=(3, 11))
    assert entry(tree, "python38.dll").failure == "absent"


def test_a_library_of_an_earlier_root_is_reused_only_if_that_root_loaded():
    files = {
        PYD: pe("x.dll"), "D:\\a\\x.dll": pe(), "D:\\b\\y.dll": pe("x.dll"), "D:\\b\\x.dll": pe(),
        "D:\\b\\bad.pyd": pe("x.dll", "gone.dll"),
    }  # fmt: skip
    roots = [PYD, "D:\\b\\y.dll"]
    good = resolve(windows(files, roots=roots, path=("D:\\a",)))
    assert [e.path for e in good.entries if e.name == "x.dll"] == ["D:\\a\\x.dll"] * 2
    assert good.of("D:\\b\\y.dll")[1].rule == "loaded"
    failed = resolve(windows(files, roots=["D:\\b\\bad.pyd", PYD], path=("D:\\a",)))
    assert [e.path for e in failed.entries if e.name == "x.dll"] == ["D:\\b\\x.dll", "D:\\a\\x.dll"]


def test_api_sets_and_known_dlls_are_never_missing():
    tree = windows(
        {PYD: pe("api-ms-win-crt-runtime-l1-1-0.dll", "EXT-MS-win-x.dll", "KERNEL32.dll", "special.dll", "odd.dll")},
        known_dlls=["special.dll"],
    )
    tree["apisets"] = ["odd.dll"]
    resolution = resolve(tree)
    assert resolution.complete
    assert [one.rule for one in resolution.entries[1:]] == ["api-set", "api-set", "known-dll", "known-dll", "api-set"]


@pytest.mark.parametrize(
    ("header", "failure"),
    [
        (pe(machine="x86"), "wrong-machine"),
        (pe(machine=None), None),
        (None, None),
        (pe(machine=None, error="not-pe") | {"error": "not-pe"}, "not-a-pe"),
        ({"error": "truncated"}, "not-a-pe"),
        ({"error": "empty"}, "not-a-pe"),
        ({"error": "unreadable"}, "unreadable"),
        ({"error": "something new"}, "unreadable"),
    ],
)
def test_the_first_copy_ends_the_search_even_if_it_is_unusable(header, failure):
    """Windows stops at the first file of that name; Wine goes on (so this is not tested under Wine)."""
    tree = windows(
        {PYD: pe("dep.dll"), "D:\\bad\\dep.dll": header, "D:\\good\\dep.dll": pe(cudnn_version="7.6.5")},
        path=("D:\\bad", "D:\\good"),
    )
    found = entry(tree, "dep.dll")
    assert (found.path, found.failure) == ("D:\\bad\\dep.dll", failure)
    assert [(copy.path, copy.version) for copy in found.shadowed] == [("D:\\good\\dep.dll", "7.6.5")]
    assert resolve(tree).complete is (failure is None)


def test_the_process_decides_which_machine_type_is_right():
    files = {PYD: pe("dep.dll", machine="x86"), SYSTEM32 + "\\dep.dll": pe(machine="x86")}
    assert resolve(windows(files)).complete  # nothing says that python is 64-bit
    assert resolve(windows(files, bits=32)).complete
    root, _ = resolve(windows(files, bits=64)).entries, None
    assert [one.failure for one in root] == ["wrong-machine"]  # and its imports are not looked at


def test_a_broken_child_makes_every_importer_a_victim():
    tree = windows({
        PYD: pe("a.dll", "b.dll", "fine.dll"), SYSTEM32 + "\\a.dll": pe("b.dll"), SYSTEM32 + "\\b.dll": pe("c.dll"),
        SYSTEM32 + "\\c.dll": pe("a.dll", "gone.dll"), SYSTEM32 + "\\fine.dll": pe(),
    })  # fmt: skip
    resolution = resolve(tree)
    assert {one.name: one.failure for one in resolution.entries} == {
        "_pywrap_tensorflow_internal.pyd": "child-absent", "a.dll": "child-absent", "b.dll": "child-absent",
        "c.dll": "child-absent", "gone.dll": "absent", "fine.dll": None,
    }  # fmt: skip
    assert [(one.name, one.chain) for one in resolution.failed] == [
        ("gone.dll", ("_pywrap_tensorflow_internal.pyd", "b.dll", "c.dll"))
    ]
    assert not resolution.complete
    assert resolution.failed[0].importer == "c.dll"
    assert resolution.entries[0].importer == ""


def test_delay_loaded_libraries_are_optional_until_something_needs_them():
    late = {PYD: pe("a.dll", late=("late.dll",)), SYSTEM32 + "\\late.dll": pe("gone.dll"), SYSTEM32 + "\\a.dll": pe()}
    resolution = resolve(windows(late))
    assert resolution.complete and not resolution.failed
    assert {one.name for one in resolution.entries if one.optional} == {"late.dll", "gone.dll"}
    assert entry(windows(late), "late.dll").failure == "child-absent"
    late[SYSTEM32 + "\\a.dll"] = pe("late.dll")  # now it is a hard import as well
    needed = resolve(windows(late))
    assert not needed.complete and not any(one.optional for one in needed.entries)


def test_an_absent_root_and_a_folder_nobody_looked_into():
    tree = windows({})
    assert [(one.rule, one.failure, one.path) for one in resolve(tree).entries] == [("root", "absent", None)]
    assert resolve(tree).unlisted == ()
    del tree["folders"][SYSTEM32]
    assert resolve(tree).unlisted == (SYSTEM32,)
    assert not resolve(tree).incomplete
    assert resolve({**tree, "incomplete": True}).incomplete


def test_a_tree_with_nothing_in_it():
    assert resolve({}).entries == ()
    assert resolve({"roots": ["a.dll"]}).entries[0].failure == "absent"


def test_what_if_a_folder_were_on_path_or_a_file_there():
    tree = windows({PYD: pe("cudnn64_7.dll")})
    tree["elsewhere"] = {"cudnn64_7.dll": [CUDA + "\\cudnn64_7.dll"]}
    assert [copy.path for copy in entry(tree, "cudnn64_7.dll").unsearched] == [CUDA + "\\cudnn64_7.dll"]
    assert resolve(tree, with_path=[CUDA]).complete
    assert not resolve(windows({PYD: pe("cudnn64_7.dll")}, python=(3, 8)), with_path=[CUDA]).complete
    assert resolve(tree, with_files={PY37 + "\\cudnn64_7.dll": pe()}, with_path=[PY37]).complete
    assert not resolve(tree, with_files={SYSTEM32 + "\\CUDNN64_7.DLL": pe(machine="x86")}).complete


def test_with_path_comes_before_path():
    tree = windows({PYD: pe("dep.dll"), "D:\\a\\dep.dll": pe(), "D:\\b\\dep.dll": pe()}, path=("D:\\a",))
    assert entry(tree, "dep.dll").path == "D:\\a\\dep.dll"
    assert entry(tree, "dep.dll", with_path=["D:\\b"]).path == "D:\\b\\dep.dll"


def test_a_library_that_lacks_a_function_is_to_blame_and_its_importers_are_victims():
    runtime, user = SYSTEM32 + "\\msvcp140.dll", SYSTEM32 + "\\user.dll"
    files = {PYD: pe("user.dll"), user: pe("MSVCP140.dll"), runtime: pe(), "D:\\b\\msvcp140.dll": pe()}
    lacks = {"importer": user, "dll": runtime, "count": 2, "names": ["?new@@", "?newer@@"]}
    tree = windows(files) | {"missing_exports": [lacks, {"importer": "D:\\other.dll", "dll": user, "names": ["x"]}]}
    found = entry(tree, "msvcp140.dll")
    assert (found.failure, found.symbols, found.lacked_by) == ("export-missing", ("?new@@", "?newer@@"), "user.dll")
    assert [one.failure for one in resolve(tree).entries] == ["child-absent", "child-absent", "export-missing"]
    lacks["dll"] = "D:\\b\\msvcp140.dll"  # the copy that does not win harms nobody
    assert resolve(tree).complete
    del lacks["names"]
    tree["context"]["path"], tree["context"]["loaded"] = ["D:\\b"], ["D:\\b\\msvcp140.dll"]
    assert entry(tree, "msvcp140.dll").symbols == ("?",)  # loaded already, and lacking all the same


def test_the_order_in_which_initialisers_run():
    """Depth first, as the tables name them; what is loaded already or comes late does not start (again)."""
    files = {
        PYD: pe("a.dll", "python37.dll", "b.dll", late=("late.dll",)), SYSTEM32 + "\\a.dll": pe("C.dll", "b.dll"),
        SYSTEM32 + "\\b.dll": pe("a.dll", "d.dll"), SYSTEM32 + "\\c.dll": pe("KERNEL32.dll", "a.dll"),
        SYSTEM32 + "\\d.dll": pe(), SYSTEM32 + "\\late.dll": pe(), PY37 + "\\python37.dll": pe(),
    }  # fmt: skip
    assert resolve(windows(files)).starts[PYD] == ("C.dll", "d.dll", "b.dll", "a.dll", base(PYD))
    assert resolve(windows(files, loaded=[SYSTEM32 + "\\b.dll"])).starts[PYD] == ("C.dll", "a.dll", base(PYD))


def test_what_is_loaded_needs_nothing_more_even_from_a_folder_nobody_listed():
    tree = windows({PYD: pe("x.dll"), SYSTEM32 + "\\x.dll": pe("gone.dll")}, loaded=["E:\\run\\x.dll"])
    assert [(one.name, one.rule, one.path) for one in resolve(tree).entries][1:] == [
        ("x.dll", "loaded", "E:\\run\\x.dll")
    ]
    assert resolve(tree).complete


@pytest.mark.parametrize(
    ("have", "linkers", "older_than"),
    [
        ("14.16.27012.6", ("14.24", "14.0"), "14.24"),
        ("14.24.28127.4", ("14.24",), None),  # the same
        ("14.29.30139.0", ("14.24",), None),
        ("14.9.1.1", ("14.10",), "14.10"),  # numbers, not texts
        ("12.0.40660.0", ("14.24",), None),  # another runtime altogether
        (None, ("14.24",), None),
        ("14.0.24215.1", ("2.40", None), None),  # linked by another linker
    ],
)
def test_a_runtime_older_than_the_linker_of_a_module_that_uses_it(have, linkers, older_than):
    names = [f"m{number}.dll" for number in range(len(linkers))]
    files = {PYD: pe("MSVCP140.dll", *names), SYSTEM32 + "\\msvcp140.dll": pe(file_version=have, linker="14.29")}
    files |= {f"{SYSTEM32}\\{name}": pe(linker=linker) for name, linker in zip(names, linkers, strict=True)}
    assert entry(windows(files), "msvcp140.dll").older_than == older_than
    assert resolve(windows(files)).complete  # it loads all the same
