"""Editing a Path value: nothing that is not ours may change by a byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tftriage.fixes import paths

FOLDER = r"C:\CUDA\v10.1\bin"
entry = st.one_of(
    st.sampled_from(
        [
            "",
            r"%SystemRoot%\system32",
            r'"C:\a;b\bin"',
            "C:\\深度学习\\bin",
            r"c:\cuda\v10.1\BIN\\",
            " ",
            "%",
            "C:\\Py;",
        ]
    ),
    st.text(max_size=20),
)
value = st.lists(entry, max_size=12).map(";".join)
variables = {"SYSTEMROOT": r"C:\Windows", "CUDA_PATH": r"C:\CUDA\v10.1"}


@given(value)
def test_splitting_loses_nothing(text: str) -> None:
    assert ";".join(paths.split(text)) == text


@given(value)
def test_the_folder_is_first_once_and_the_rest_is_as_it_was(text: str) -> None:
    new = paths.prepend(text, [FOLDER], variables=variables)
    key = paths.folder_key(FOLDER)
    old_entries = paths.split(text) if text else []
    keys = [paths.folder_key(e, variables) for e in old_entries]
    others = [e for e, k in zip(old_entries, keys, strict=True) if k != key]
    spelling = old_entries[keys.index(key)] if key in keys else FOLDER
    assert new == ";".join([spelling, *others])


@given(value)
def test_doing_it_twice_is_doing_it_once(text: str) -> None:
    once = paths.prepend(text, [FOLDER, r"C:\cudnn\bin"], variables=variables)
    assert paths.prepend(once, [FOLDER, r"C:\cudnn\bin"], variables=variables) == once


@given(value, value)
def test_the_marks_tell_both_lists(old: str, new: str) -> None:
    entries = paths.compare(old, new)
    assert [e.text for e in entries if e.mark != "removed"] == (paths.split(new) if new else [])
    was = sorted(e.text for e in entries if e.mark != "added")
    assert was == sorted(paths.split(old) if old else [])


def test_a_spelling_with_a_variable_is_the_same_folder() -> None:
    text = r"C:\x;%CUDA_PATH%\bin\;C:\y;C:/cuda/v10.1/bin"
    assert paths.prepend(text, [FOLDER], variables=variables) == r"%CUDA_PATH%\bin\;C:\x;C:\y"
    # REG_SZ is not expanded by Windows: there the same text is another folder.
    assert paths.prepend(text, [FOLDER]) == r"C:/cuda/v10.1/bin;C:\x;%CUDA_PATH%\bin\;C:\y"


def test_foreign_doubles_and_empty_entries_stay() -> None:
    assert paths.prepend(r"C:\x;;C:\x;", [FOLDER]) == FOLDER + r";C:\x;;C:\x;"


def test_a_folder_with_a_semicolon_is_quoted() -> None:
    new = paths.prepend(r"C:\x", [r"C:\a;b"])
    assert new == r'"C:\a;b";C:\x'
    assert paths.split(new) == [r'"C:\a;b"', r"C:\x"]


def test_a_missing_value_becomes_the_folder() -> None:
    assert paths.prepend("", [FOLDER]) == FOLDER


def test_long_values_are_written_whole_and_too_long_ones_refused() -> None:
    long = ";".join(rf"C:\folder{i:05}" for i in range(2150))
    assert paths.prepend(long, [FOLDER]) == FOLDER + ";" + long
    assert paths.units(long) > 30_000
    with pytest.raises(paths.TooLong):
        paths.prepend("x" * (paths.LIMIT - len(FOLDER)), [FOLDER])
    paths.prepend("x" * (paths.LIMIT - len(FOLDER) - 1), [FOLDER])


def test_length_is_counted_as_windows_counts() -> None:
    assert paths.units("a\U00020000") == 3


def test_linux_lists_are_separated_by_colons_and_case_matters() -> None:
    assert (
        paths.prepend("/usr/bin:/CUDA/lib", ["/cuda/lib"], separator=":", limit=None) == "/cuda/lib:/usr/bin:/CUDA/lib"
    )
    assert paths.prepend("/usr/bin:/cuda/lib/", ["/cuda/lib"], separator=":", limit=None) == "/cuda/lib/:/usr/bin"
