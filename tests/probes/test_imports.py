"""loader_code: numbers, texts of any language, damage. import_chain: one answer for each way to miss a library."""

from __future__ import annotations

import html
import ntpath
from typing import Any

import pytest

from tests.probes.evidence_words import run
from tftriage.facts import Fact
from tftriage.tables import LoaderError, Tables


def row(code: int, **texts: tuple[str, ...]) -> LoaderError:
    return LoaderError(code=code, symbol="X", texts=texts, source="test")


TABLES = Tables(
    loader_errors=(
        row(5, en=("Access is denied.", "Access denied."), zh=("拒绝访问。",)),
        row(
            126, en=("The specified module could not be found.", "Module not found."),
            ko=("지정된 모듈을 찾을 수 없습니다.",), zh=("找不到指定的模块。", "找不到模块。"),
            fr=("Le module spécifié est introuvable.",),
            ru=("Не найден указанный модуль.",), ja=("指定されたモジュールが見つかりません。",),
        ),
        row(127, en=("The specified procedure could not be found.", "Procedure not found."),
            zh=("找不到指定的程序。", "找不到过程。")),
        row(182, en=("The operating system cannot run %1.",), zh=("操作系统无法运行 %1。",)),
        row(193, en=("%1 is not a valid Win32 application.", "Bad EXE format for %1."),
            zh=("%1 不是有效的 Win32 应用程序。", "%1 的 EXE 格式无效。")),
        row(225, en=("Operation did not complete successfully because the file contains a virus or potentially "
                     "unwanted software.",)),
        row(1114, en=("A dynamic link library (DLL) initialization routine failed.",),
            fr=("Une routine d'initialisation d'une bibliothèque de liens dynamiques (DLL) a échoué.",)),
        row(1455, en=("The paging file is too small for this operation to complete.",),
            zh=("页面文件太小，无法完成操作。",)),
    )
)  # fmt: skip
NEW = "ImportError: DLL load failed while importing _pywrap_tensorflow_internal: "
OLD = "ImportError: DLL load failed: "
ZH126 = "找不到指定的模块。"


def code(text: str, **more: Any) -> Any:
    return run("loader_code", TABLES, paste=text, **more)


@pytest.mark.parametrize("row", TABLES.loader_errors, ids=lambda row: str(row.code))
@pytest.mark.parametrize("head", [NEW, OLD])
def test_every_text_of_the_table_in_every_language(row, head):
    for text in [text for texts in row.texts.values() for text in texts]:
        assert code(f"Traceback …\n{head}{text}\n\nDuring handling").answer == str(row.code), text


@pytest.mark.parametrize(
    ("text", "answer", "shown"),
    [
        ("OSError: [WinError 126] 找不到指定的程序。", "126", "126"),  # the number decides, not the text
        ("OSError: [WinError 193] %1 is not a valid Win32 application", "193", "193"),
        ("ImportError: DLL load failed with error code 1114 while importing x", "1114", "1114"),
        ("Could not load library cudnn_cnn_infer64_8.dll. Error code 127", "127", "127"),
        ("LoadLibrary failed with error 126: gone", "126", "126"),
        ("错误代码：225", "225", "225"),
        ("exit: error code 0xc0000135", "126", "0xc0000135"),
        ("ImportError: DLL load failed with error code -1073741795", "1114", "-1073741795"),
        ("OSError: [WinError -1066598274] Windows Error 0xc06d007e", "126", "-1066598274"),
        ("[WinError 2] The system cannot find the file\n[WinError 5] Access is denied", "5", "5"),
        (
            "FileNotFoundError: Could not find module 'C:\\x\\msvcp140.dll' (or one of its dependencies). Try",
            "126",
            "126",
        ),
        ("ImportError: Could not find the DLL(s) 'msvcp140.dll or msvcp140_1.dll'. TensorFlow requires", "126", "126"),
        ("ImportError: Could not find 'cudart64_100.dll'. TensorFlow requires", "126", "126"),
    ],
)
def test_numbers_and_fixed_words_come_before_texts(text, answer, shown):
    found = code(text)
    assert found.answer == answer
    assert found.values["code"] == shown


@pytest.mark.parametrize(
    "damaged",
    [
        ZH126.encode("gbk").decode("latin-1"),
        ZH126.encode("gbk").decode("cp1252", errors="replace"),
        ZH126.encode("gbk").decode("utf-8", errors="replace"),
        ZH126.encode("utf-8").decode("latin-1"),
        ZH126.encode("utf-8").decode("gbk", errors="replace"),
        ZH126.encode("unicode_escape").decode("ascii"),
        ZH126.encode("unicode_escape").decode("ascii").replace("\\", "\\\\"),
        repr(ZH126.encode("gbk"))[2:-1],
        repr(ZH126.encode("utf-8"))[2:-1],
        html.escape(ZH126).encode("ascii", "xmlcharrefreplace").decode(),
        "Le module spécifié est introuvable.".encode("cp1252").decode("cp850"),
        "Le module spécifié est introuvable.".encode("cp1252").decode("utf-8", errors="replace"),
        "Не найден указанный модуль.".encode("cp1251").decode("latin-1"),
        "The specified mod\nule could not\n be found",
        "找不到指定\n的模块",
        "LE MODULE SPÉCIFIÉ EST INTROUVABLE",
    ],
)
def test_a_text_is_known_in_spite_of_wrong_code_pages_escapes_and_broken_lines(damaged):
    assert code(f"{OLD}{damaged}").answer == "126"


def test_damage_does_not_confuse_126_with_127():
    for encoding in ("latin-1", "cp1252", "utf-8"):
        text = "找不到指定的程序。".encode("gbk").decode(encoding, errors="replace")
        assert code(OLD + text).answer == "127"


@pytest.mark.parametrize(
    "text",
    [
        "ModuleNotFoundError: No module named 'tensorflow'",
        "ImportError: ModuleNotFoundError: No module named 'x'",
        "webpack: module not found (a page about DLL load failed)",
        "TypeError: Descriptors cannot not be created directly.",
        "W dso_loader.cc:55] Could not load dynamic library 'libnvinfer.so.6'; dlerror: libnvinfer.so.6: "
        "cannot open shared object file: No such file or directory",
        "exit status: error code 1",
    ],
)
def test_what_is_no_loader_error(text):
    found = code(text)
    assert (found.answer, dict(found.values)) == ("none", {})


def test_the_library_that_the_check_of_old_tensorflow_names_later():
    found = code("OSError: [WinError 126] 找不到指定的模块。\n\nImportError: Could not find 'cudart64_100.dll'.\n")
    assert found.values == {"code": "126", "library": "cudart64_100.dll"}


def test_a_file_name_in_place_of_percent_1():
    assert code("OSError: C:\\cuda\\cudnn64_7.dll 不是有效的 Win32 应用程序。").answer == "193"
    assert code("ImportError: The operating system cannot run x.dll.").answer == "182"


def test_curly_apostrophes_and_the_first_of_several():
    curly = "Une routine d’initialisation d’une bibliothèque de liens dynamiques (DLL) a échoué."
    assert code(OLD + curly).answer == "1114"
    assert code(f"{OLD}{curly}\n\n{OLD}{ZH126}").answer == "1114"
    assert code(f"{OLD}{ZH126}\n\n{OLD}{curly}").answer == "126"


@pytest.mark.parametrize(
    ("text", "answer", "library"),
    [
        (
            "ImportError: libcublas.so.10.0: cannot open shared object file: No such file",
            "so-missing",
            "libcublas.so.10.0",
        ),
        ("ImportError: libcublas.so.10.0: wrong ELF class: ELFCLASS32", "wrong-elf-class", "libcublas.so.10.0"),
        ("OSError: /v/libcudart.so.10.1: file too short", "wrong-elf-class", "/v/libcudart.so.10.1"),
        ("ImportError: /e/_pywrap.so: undefined symbol: cublasDgetri, version x", "undefined-symbol", "/e/_pywrap.so"),
    ],
)
def test_messages_of_linux(text, answer, library):
    found = code(text)
    assert (found.answer, found.values["library"]) == (answer, library)


def test_the_module_is_named_in_the_message_or_only_in_the_traceback():
    assert code(NEW + ZH126).values["module"] == "_pywrap_tensorflow_internal"
    old = (
        "    _mod = imp.load_module('_pywrap_tensorflow_internal', fp, pathname, description)\n    return load(spec)\n"
    )
    assert code(old + OLD + ZH126).values["module"] == "_pywrap_tensorflow_internal"
    proto = "    from google.protobuf.pyext import _message\n" + OLD + "The specified procedure could not be found."
    assert code(proto).values["module"] == "_message"
    assert "module" not in code(OLD + ZH126).values
    assert code("Could not load library cudnn_ops_infer64_8.dll. Error code 126").values["library"] == (
        "cudnn_ops_infer64_8.dll"
    )


FAILED = {"ok": False, "error": NEW + "The paging file is too small for this operation to complete.", "traceback": ""}


def test_our_own_import_counts_more_than_the_paste_and_both_more_than_libraries():
    opened = {"opened": [{"name": "nvinfer.dll", "code": 126}, {"name": "cudnn64_7.dll", "code": 193},
                         {"name": "cudart64_101.dll", "code": 0}]}  # fmt: skip
    assert code(OLD + ZH126, tf__import=FAILED).answer == "1455"
    assert code(OLD + ZH126, tf__import={"ok": True, "error": None}, tf__libraries=opened).answer == "126"
    assert code("nothing here", tf__import={"ok": False, "error": None, "traceback": None}).answer == "none"
    found = run("loader_code", TABLES, tf__libraries=opened)
    assert (found.answer, found.values) == ("193", {"code": "193", "library": "cudnn64_7.dll"})
    assert run("loader_code", TABLES, tf__libraries={"opened": [{"name": "a.dll", "code": 87}]}).answer == "none"


def test_unknown_without_anything_to_read():
    found = run("loader_code", TABLES, tf__import=Fact("tf.import", "timeout", note="60 s"))
    assert (found.answer, found.reason) == ("unknown", "tf.import: timeout: 60 s")


# ---------------------------------------------------------------- import_chain

PY = "C:\\py37"
PYD = PY + "\\Lib\\site-packages\\tensorflow\\python\\_pywrap_tensorflow_internal.pyd"
S32 = "C:\\Windows\\System32"
CUDA = "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v10.0"
WANTED = ("cublas64_100.dll", "cudart64_100.dll", "cudnn64_7.dll", "nvcuda.dll", "MSVCP140.dll", "VCRUNTIME140.dll")


def pe(*imports: str, machine: str = "x64", **more: Any) -> dict[str, Any]:
    return {"machine": machine, "imports": list(imports), "delay_imports": [], "error": None, **more}


def tree(
    without: tuple[str, ...] = (), *, add: dict[str, Any] | None = None, path: tuple[str, ...] = (), **more: Any
) -> Any:
    """TensorFlow 1.13.1 with every library it imports in System32, except ``without``."""
    files = {PYD: pe(*WANTED), **{f"{S32}\\{name}": pe() for name in WANTED if name not in without}, **(add or {})}
    folders: dict[str, list[str]] = {S32: [], PY: []}
    for file in files:
        folders.setdefault(ntpath.dirname(file), []).append(ntpath.basename(file))
    context = {"python": [3, 7], "python_folder": PY, "system32": S32, "windows": "C:\\Windows", "cwd": "C:\\w",
               "path": list(path)}  # fmt: skip
    base = {"roots": [PYD], "context": context, "folders": folders, "files": files, "elsewhere": {}, "near": {}}
    return {**base, **more}


def chain(recorded: Any, **more: Any) -> Any:
    return run("import_chain", Tables(), dlls__tree=recorded, **more)


def test_complete():
    found = chain(tree())
    assert found.answer == "complete"
    assert [line.key for line in found.evidence] == ["chain.root", "chain.complete"]


def test_driver_missing_comes_before_everything_else():
    found = chain(tree(("nvcuda.dll", "cudnn64_7.dll", "cublas64_100.dll")))
    assert found.answer == "driver-missing"
    assert found.values["dll"] == "nvcuda.dll"
    assert found.values["importer"] == "_pywrap_tensorflow_internal.pyd"
    assert found.values["missing"] == "cublas64_100.dll, cudnn64_7.dll, nvcuda.dll"


def test_cudnn_renamed_missing_elsewhere_or_of_another_version():
    gone = ("cudnn64_7.dll",)
    near = CUDA + "\\bin\\cudnn64_7_v741.dll"
    renamed = chain(tree(gone, near={"cudnn64_7.dll": [near]}, add={near: pe(cudnn_version="7.4.1")}))
    assert (renamed.answer, renamed.values["near"]) == ("cudnn-renamed", near)
    assert chain(tree(gone)).answer == "cudnn-missing"
    wrong = chain(tree(gone, near={"cudnn64_7.dll": [near]}, add={near: pe(cudnn_version="8.0.5")}))
    assert wrong.answer == "cudnn-missing"  # that file was never cuDNN 7
    small = chain(tree(gone, near={"cudnn64_7.dll": [near]}, add={near: pe(machine="x86")}))
    assert small.answer == "cudnn-missing"
    other = chain(tree(gone, near={"cudnn64_7.dll": [CUDA + "\\bin\\cudnn64_8.dll"]}))
    assert (other.answer, other.values["found_version"]) == ("cudnn-missing", "8")
    away = chain(tree(gone, elsewhere={"cudnn64_7.dll": ["D:\\cudnn\\cudnn64_7.dll"]}))
    assert (away.answer, away.values["folder"]) == ("cudnn-elsewhere", "D:\\cudnn")


def test_cuda_elsewhere_gives_the_fewest_folders():
    places = {
        "cublas64_100.dll": ["D:\\pkgs\\cublas64_100.dll", CUDA + "\\bin\\cublas64_100.dll"],
        "cudart64_100.dll": [CUDA + "\\bin\\cudart64_100.dll"],
        "cudnn64_7.dll": ["D:\\cudnn\\cudnn64_7.dll"],
    }
    found = chain(tree(tuple(places), elsewhere=places))
    assert found.answer == "cuda-elsewhere"
    assert found.values["folder"] == CUDA + "\\bin"
    assert found.values["folders"] == CUDA + "\\bin;D:\\cudnn"
    assert found.values["missing"] == "cublas64_100.dll, cudart64_100.dll, cudnn64_7.dll"


def test_cuda_of_another_version_and_cuda_nowhere():
    gone = ("cublas64_100.dll", "cudart64_100.dll")
    kit = [
        {"version": "10.1", "folder": CUDA[:-1] + "1", "bin": CUDA[:-1] + "1\\bin", "libraries": ["cudart64_101.dll"]}
    ]
    package = {"version": "1.13.1", "build_info": {"cuda_version": "64_100"}}
    other = chain(tree(gone), cuda__toolkits=kit, tf__package=package)
    assert other.answer == "cuda-other-version"
    assert (other.values["found_version"], other.values["wanted_version"]) == ("10.1", "10.0")
    assert chain(tree(gone)).answer == "cuda-missing"
    partly = tree(gone, elsewhere={"cudart64_100.dll": ["D:\\x\\cudart64_100.dll"]})
    assert chain(partly).answer == "cuda-missing"  # cublas is nowhere


def test_vc_runtime_other_libraries_and_wrong_machine_types():
    assert chain(tree(("MSVCP140.dll",))).answer == "vc-runtime-missing"
    foreign = tree(add={PYD: pe(*WANTED, "zlibwapi.dll")})
    assert (chain(foreign).answer, chain(foreign).values["dll"]) == ("other-missing", "zlibwapi.dll")
    bad = chain(tree(("MSVCP140.dll",), add={S32 + "\\cudnn64_7.dll": pe(machine="x86")}))
    assert (bad.answer, bad.values["dll"]) == ("wrong-machine", S32 + "\\cudnn64_7.dll")
    assert bad.values["missing"] == "MSVCP140.dll"
    cut = chain(tree(add={S32 + "\\cudnn64_7.dll": {"error": "truncated"}}))
    assert cut.answer == "wrong-machine"
    assert "dll.not-a-library" in [line.key for line in cut.evidence]
    own = chain(tree(add={PYD: {"error": "empty"}}))
    assert (own.answer, own.values["importer"]) == ("wrong-machine", "_pywrap_tensorflow_internal.pyd")


def test_a_second_root_that_misses_the_same_library_is_named_once():
    second = PYD.replace("_internal", "_second")
    found = chain(tree(("cudnn64_7.dll",), add={second: pe("cudnn64_7.dll")}, roots=[PYD, second]))
    assert found.values["missing"] == "cudnn64_7.dll"


def test_side_notes_hidden_copies_useless_path_entries_delay_loading():
    late = tree(
        add={PYD: {**pe(*WANTED), "delay_imports": ["late.dll"]}, "D:\\p\\cudnn64_7.dll": pe()},
        path=("D:\\p", '"D:\\q"', "%X%\\bin", "E:\\gone"),
    )
    found = chain(late)
    assert found.answer == "complete"
    assert [line.key for line in found.evidence] == [
        "chain.root", "chain.shadowed", "chain.path-quoted", "chain.path-unexpanded", "chain.optional",
        "chain.complete",
    ]  # fmt: skip


def test_unknown_when_absence_is_not_proved_or_a_file_cannot_be_read():
    blind = tree(("cudnn64_7.dll",))
    del blind["folders"][S32]
    assert chain(blind).reason == f"dlls.tree: nobody looked into {S32}"
    assert "cut short" in chain(tree(("cudnn64_7.dll",), incomplete=True)).reason
    assert chain(tree(incomplete=True)).answer == "complete"
    locked = chain(tree(add={S32 + "\\cudnn64_7.dll": {"error": "unreadable"}}))
    assert locked.reason == f"dlls.tree: {S32}\\cudnn64_7.dll cannot be read"
    assert chain(tree(roots=["cudart64_101.dll"])).reason == "dlls.tree: no native module was recorded"
    assert run("import_chain", Tables()).reason == "dlls.tree: not-recorded"


def test_a_lacking_function_is_shown_but_left_to_the_question_whose_it_is():
    lacks = [{"importer": PYD, "dll": f"{S32}\\MSVCP140.dll", "count": 1, "names": ["?x@@"]}]
    found = chain(tree(missing_exports=lacks))
    assert found.answer == "complete"
    assert [(one.key, one.params.get("symbol")) for one in found.evidence][1] == ("export.lacks", "?x@@")
    assert chain(tree(("cudnn64_7.dll",), missing_exports=lacks)).answer == "cudnn-missing"
