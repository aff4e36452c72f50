"""Advice that is never followed: whoever looks for it is told why."""

from __future__ import annotations

import pytest

from tftriage.fixes import catalogue, never
from tftriage.knowledge import load


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("setx", "setx-path"),
        ("setx PATH", "setx-path"),
        ("copy to System32", "copy-into-system32"),
        ("download dll", "download-dlls"),
        ("下载 DLL", "download-dlls"),
        ("rename cudnn64_7.dll", "rename-nvidia-dlls"),
        ("turn off Windows Defender", "switch-antivirus-off"),
        ("关闭杀毒软件", "switch-antivirus-off"),
        ("yes by default", "yes-by-default"),
    ],
)
def test_whoever_looks_for_it_finds_the_reason(text: str, name: str) -> None:
    assert name in never.looked_for(text)


def test_other_words_find_nothing() -> None:
    for text in ("", "  ", "protobuf", "path-user", "kernel", "pin-packages", "numpy"):
        assert never.looked_for(text) == [], text


def test_every_refusal_has_a_page_with_a_source_and_no_fix_bears_its_name() -> None:
    kb = load()
    for name, myth in never.NEVER.items():
        page = kb.myths[myth]
        assert page.sources and all(page.claim[lang] and page.truth[lang] for lang in ("en", "zh"))
        assert name not in catalogue.FIXES
        assert name in never.looked_for(name)
