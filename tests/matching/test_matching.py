"""Ranking, verdicts, damage, and limits of the matcher, with the real knowledge base."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.matching.base import load_loader_errors, load_symptoms
from tftriage.anchors import anchors
from tftriage.matching import GUESSED, MatchResult, match
from tftriage.tables import LoaderError

SYMPTOMS = load_symptoms()
ERRORS = load_loader_errors()
CODE_PAGES = {
    "zh-CN": "gbk",
    "zh-TW": "big5",
    "ja": "cp932",
    "ko": "cp949",
    "ru": "cp1251",
    "pl": "cp1250",
    "tr": "cp1254",
}
FRAME = r"""Traceback (most recent call last):
  File "C:\lab\env\lib\site-packages\tensorflow\python\pywrap_tensorflow.py", line 64, in <module>
    from tensorflow.python._pywrap_tensorflow_internal import *
ImportError: DLL load failed while importing _pywrap_tensorflow_internal: """


def run(text: str) -> MatchResult:
    return match(text, SYMPTOMS, ERRORS)


def ids(text: str) -> list[str]:
    return [hit.id for hit in run(text).matches]


def spoken() -> list[object]:
    return [
        pytest.param(error, lang, text, id=f"{error.code}-{lang}-{n}-{error.kind}")
        for error in ERRORS
        if error.code not in (5, 225)
        for lang, texts in error.texts.items()
        for n, text in enumerate(texts)
    ]


@pytest.mark.parametrize(("error", "lang", "text"), spoken())
def test_every_wording_is_understood_however_it_was_damaged(error: LoaderError, lang: str, text: str) -> None:
    forms = {text, text.rstrip("。."), text.replace("'", "’")}
    if not text.isascii() and error.kind != "measured":
        forms.add("".join(bytes([b]).decode("cp1252", "ignore") or chr(b) for b in text.encode()))
        forms.add(text.encode("ascii", "backslashreplace").decode())
        own = text.encode(CODE_PAGES.get(lang, "cp1252"))
        forms |= {own.decode("latin-1"), own.decode("cp850", "replace"), own.decode("cp437", "replace")}
        if lang != "ko":  # Hangul through GBK loses too many bytes
            forms.add(text.encode().decode("gbk", "replace"))
    for form in forms:
        found = run(FRAME + form).matches
        assert found[0].id == f"dll-load-failed-{error.code}", form
        assert found[0].captures["code"] == str(error.code)
        assert found[0].captures["module"] == "_pywrap_tensorflow_internal"
    assert ids(json.dumps({"output": FRAME + text}))[0] == f"dll-load-failed-{error.code}"


@pytest.mark.parametrize("form", ["[WinError 126] ...", "error code 126", "Error 126", "[WinError 126] 乱码 ???"])
def test_a_number_is_enough(form: str) -> None:
    assert ids("_pywrap_tensorflow: OSError: " + form)[0] == "dll-load-failed-126"


def test_the_number_beats_the_words() -> None:
    assert ids("ImportError: DLL load failed: [WinError 127] The specified module could not be found.")[0] == (
        "dll-load-failed-127"
    )


@pytest.mark.parametrize(
    "text",
    [
        FRAME.replace("tensorflow", "torch").replace("_pywrap_torch_internal", "_C") + "找不到指定的模块。",
        "ImportError: DLL load failed while importing cv2: The specified module could not be found.",
        'Traceback (most recent call last):\n  File "C:\\work\\a.py", line 1, in <module>\n    import dlib\n'
        "ImportError: DLL load failed: The specified module could not be found.",
        "ImportError: DLL load failed while importing onnxruntime_pybind11_state: 动态链接库(DLL)初始化例程失败。",
        "ModuleNotFoundError: No module named 'pandas'",
        "AssertionError: Torch not compiled with CUDA enabled",
    ],
)
def test_another_package_is_not_ours(text: str) -> None:
    result = run(text)
    assert result.verdict == "not-tensorflow"
    sure = [hit.id for hit in result.matches if hit.score > GUESSED]
    assert not [name for name in sure if name.startswith(("dll-", "gpu-", "cudnn", "self-check"))]


@pytest.mark.parametrize("module", ["_message", "_errors", "_pywrap_tfe"])
def test_what_tensorflow_needs_is_ours(module: str) -> None:
    result = run(f"ImportError: DLL load failed while importing {module}: The specified procedure could not be found.")
    assert result.matches[0].id == "dll-load-failed-127"


def test_numpy_is_ours_only_inside_the_import_of_tensorflow() -> None:
    numpy = '  File "C:\\e\\lib\\site-packages\\numpy\\core\\multiarray.py", line 6, in <module>\n    from . import x\n'
    tail = "ImportError: DLL load failed: The specified module could not be found."
    head = "Traceback (most recent call last):\n"
    own = '  File "C:\\e\\lib\\site-packages\\tensorflow\\__init__.py", line 24, in <module>\n'
    assert run(head + numpy + tail).verdict == "not-tensorflow"
    assert run(head + own + numpy + tail).matches[0].id == "dll-load-failed-126"


def test_the_last_exception_decides() -> None:
    warning = "W tensorflow/x.cc:60] Could not load dynamic library 'cudart64_110.dll'; dlerror: not found\n"
    shapes = 'ValueError: Input 0 of layer "dense" is incompatible with the layer: expected shape=(None, 4)'
    result = run(warning + "Traceback (most recent call last):\n" + shapes)
    assert result.verdict == "not-an-installation-fault"
    assert [hit.id for hit in result.matches] == ["not-install-fault", "dso-loader-missing"]
    assert run(warning).verdict == "fault"


def test_what_explains_ranks_above_the_wrapper() -> None:
    text = (
        "E tensorflow/x/cuda_dnn.cc:334] Could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED\n"
        "Traceback (most recent call last):\n"
        "UnknownError: Failed to get convolution algorithm. This is probably because cuDNN failed to initialize"
    )
    assert ids(text)[:2] == ["cudnn-handle-failed", "conv-algorithm-failed"]
    assert ids(FRAME + "The specified module could not be found.\n\nFailed to load the native TensorFlow runtime.")[
        :2
    ] == [
        "dll-load-failed-126",
        "native-runtime-failed",
    ]


def test_harmless_never_outranks_a_fault() -> None:
    notices = "I tensorflow/x.cc:1] This TensorFlow binary is optimized with oneDNN\n"
    assert run(notices * 30).verdict == "harmless"
    result = run("Num GPUs Available:  0\n" + notices * 30)
    assert result.verdict == "fault"
    assert [hit.id for hit in result.matches] == ["gpu-not-listed", "benign-log-only"]


def test_notices_beside_an_unknown_error_are_not_called_harmless() -> None:
    notice = "I tensorflow/x.cc:1] This TensorFlow binary is optimized with oneDNN\n"
    assert run(notice + "FrobnicationError: the frobs are gone").verdict == "unrecognised"
    assert run(notice + "F tensorflow/core/y.cc:9] Check failed: a == b").verdict == "unrecognised"


def test_lines_are_those_of_the_paste() -> None:
    text = "hello\n\n" + FRAME + "The specified module could not be found.\nbye"
    assert run(text).matches[0].lines == ((6, 6),)
    assert run(text.replace("\n", "\r\n")).matches[0].lines == ((6, 6),)


def test_a_literal_may_span_a_line_break() -> None:
    text = "UnknownError: Failed to get\n   convolution algorithm."
    assert run(text).matches[0].lines == ((1, 2),)


def test_captures_name_the_library_and_the_interpreter() -> None:
    found = run("Could not load dynamic library 'cudnn64_7.dll'; dlerror: cudnn64_7.dll not found").matches[0]
    assert found.captures["library"] == "cudnn64_7.dll"
    assert run(FRAME + "找不到指定的模块。").matches[0].captures["python"] == r"C:\lab\env"


@pytest.mark.parametrize(
    "text", ["", "   \n\n", "hello world", "你好，请问怎么安装？", "\x00\x01\x02" * 4000], ids=range(5)
)
def test_nothing_to_recognise(text: str) -> None:
    result = run(text)
    assert result.verdict == "unrecognised"
    assert result.matches == ()


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000_000,
        "\n" * 10_000_000,
        "error\n" * 1_600_000,
        "ImportError: " * 770_000,
        "\u00f6\u00e4 \n" * 2_500_000,
        "".join(f"2021-01-01 00:00:{n:06d}: W x.cc:1] failed {n}\n" for n in range(220_000)),
    ],
    ids=["one-line", "breaks", "short", "long", "accents", "log"],
)
def test_ten_megabytes_stay_cheap(text: str) -> None:
    start = time.process_time()
    run(text)
    assert time.process_time() - start < 3


def test_a_large_log_still_shows_its_end() -> None:
    log = "".join(f"2021-01-01 00:00:{n:06d}: I tensorflow/core/x.cc:1] step {n}\n" for n in range(120_000))
    result = run(log + FRAME + "找不到指定的模块。")
    assert result.matches[0].id == "dll-load-failed-126"
    assert result.matches[0].lines == ((120_004, 120_004),)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_any_text_has_an_answer(text: str) -> None:
    result = run(text)
    assert result.matches or result.verdict == "unrecognised"
    last = text.count("\n") + 1
    assert all(1 <= start <= end <= last for hit in result.matches for start, end in hit.lines)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"failed call to cuInit: ?(?P<error>.{0,9})", ("failed call to cuinit:",)),
        (r"(?:alpha|beta) x", ("alpha", "beta")),
        (r"kernel died|DeadKernelError", ("kernel died", "deadkernelerror")),
        (r"colou?r \d{0,16}", ("colo",)),
        (r"a(?:bc)?[xyz]+def", ("def",)),
        (r"\d+|abc", ()),
    ],
)
def test_anchors_hold_in_every_match(pattern: str, expected: tuple[str, ...]) -> None:
    assert anchors(pattern) == expected


MESSAGE = "E tensorflow/stream_executor/cuda/cuda_driver.cc:271] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no device"


@pytest.mark.parametrize("at", range(56, len(MESSAGE) - 2))
def test_a_line_may_be_broken_anywhere(at: int) -> None:
    found = run(f"{MESSAGE[:at]}\n{MESSAGE[at:]}").matches
    assert found and found[0].id == "cuinit-failed", MESSAGE[:at]


def test_blanks_count_where_nothing_was_broken() -> None:
    assert ids("the module name notfound is free") == []
    assert ids("ModuleNotFoundError: No module named 'tensorflow'")[0] == "notebook-module-not-found"


def test_the_edge_of_a_text_may_cut_a_message() -> None:
    whole = "InternalError: CUDA driver version is insufficient for CUDA runtime version"
    assert ids(whole[: -len(" runtime version")])[0] == "driver-insufficient"
    assert ids("river version is insufficient for CUDA runtime version")[0] == "driver-insufficient"
    assert ids("InternalError: CUDA driver version is ins") == []  # too little to know it by


def test_a_guess_gives_no_verdict_and_ranks_last() -> None:
    created = (
        "I tensorflow/core/gpu_device.cc:1510] Created device /job:localhost/task:0/device:GPU:0 with 5472 MB memory"
    )
    result = run(created)
    assert [(hit.id, hit.score > GUESSED) for hit in result.matches] == [
        ("benign-log-only", True), ("gpu-util-low", False),
    ]  # fmt: skip
    assert result.verdict == "harmless"
    torch = run("ImportError: DLL load failed while importing cv2: The specified module could not be found.")
    assert [hit.id for hit in torch.matches] == ["not-tensorflow", "dll-load-failed-126"]
    assert torch.verdict == "not-tensorflow"


def test_a_pause_is_measured_on_one_clock() -> None:
    before = "2021-02-20 15:00:07.2: I tensorflow/x.cc:1] Adding visible gpu devices: 0\n"
    other = "I0000 00:00:1720000000.1 42 worker.cc:77] step 1 done\n"
    for seconds, slow in (("15:00:44.8", False), ("15:07:44.8", True)):
        after = f"2021-02-20 {seconds}: I tensorflow/x.cc:2] Device interconnect StreamExecutor with strength 1\n"
        assert (ids(before + other + after)[0] == "gpu-init-very-slow") is slow


def test_the_last_of_many_lines_of_one_shape_is_read() -> None:
    lines = [
        f"W tensorflow/x.cc:1] Could not load dynamic library 'libnvinfer.so.{n}'; dlerror: no\n" for n in range(9)
    ]
    text = "".join(lines) + "W tensorflow/x.cc:1] Could not load dynamic library 'libcudnn.so.8'; dlerror: no"
    assert ids(text)[0] == "dso-loader-missing"


def test_an_error_in_another_package_is_not_ours_whatever_its_words() -> None:
    text = '  File "/v/lib/python3.11/site-packages/jax/api.py", line 10, in f\n'
    text += "jax.errors.JaxRuntimeError: INTERNAL: no kernel image is available for execution on the device"
    assert run(text).verdict == "not-tensorflow"
