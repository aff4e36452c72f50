"""Files that people hand us: any encoding, perhaps not text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tftriage.reading import Unreadable, decode, read_input

TEXT = "ImportError: DLL load failed: 找不到指定的模块。\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "gbk", "gb18030"])
def test_every_encoding_a_windows_console_writes(encoding: str) -> None:
    text = TEXT * 5 if encoding == "utf-16-le" else TEXT
    ascii_head = "ImportError: DLL load failed: the module was not found here\n" * 3
    text = ascii_head + text
    assert decode(text.encode(encoding)).lstrip("\ufeff") == text


def test_binary_is_decoded_somehow(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(range(256)) * 1000)
    assert read_input(str(path))


def test_a_missing_file_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="No such file"):
        read_input(str(tmp_path / "gone.txt"))
