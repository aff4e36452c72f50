"""Tokens that stand for a name, and every spelling in which a name turns up in logs, paths and addresses."""

import hashlib
import hmac
import re
from typing import Callable, Dict, List, Optional, Tuple
from urllib.parse import quote

Spelling = Callable[[str], Optional[str]]

TOKEN = re.compile(r"(?:user|host|dir|file|mail)[- ][0-9a-f]{8}")
# GB2312's first level, 3,666 everyday characters: a token that every Chinese console and font can show.
_GB_ROWS = range(0xB0, 0xD7)


def digest(key: bytes, kind: str, value: str) -> bytes:
    """What makes a token: keyed, so that it cannot be guessed without the key; the same in upper and lower case."""
    text = (kind + ":" + value.lower()).encode("utf-8", "surrogatepass")
    return hmac.new(key, text, hashlib.sha256).digest()


def token(key: bytes, kind: str, value: str) -> str:
    """The token of a value: plain ASCII for ASCII (a blank stays), else as many letters of the same scripts.

    Whether a name is ASCII, how long a non-ASCII one is and in which script may be the finding; who it is is not.
    """
    data = digest(key, kind, value)
    if all(ord(letter) < 128 for letter in value):
        return kind + (" " if " " in value.strip() else "-") + data.hex()[:8]
    while len(data) < 2 * len(value):
        data += hashlib.sha256(data).digest()
    return "".join(_like(letter, data[2 * i] * 256 + data[2 * i + 1]) for i, letter in enumerate(value))


def _like(letter: str, number: int) -> str:
    """Another letter of the same script and case; blanks and punctuation stay."""
    code = ord(letter)
    if code < 128:
        if not letter.isalnum():
            return letter
        return chr(ord("0") + number % 10) if letter.isdigit() else chr(ord("a") + number % 26)
    if 0x3400 <= code <= 0x9FFF or code >= 0x20000:
        place = number % (len(_GB_ROWS) * 94)
        return bytes([_GB_ROWS[place // 94], 0xA1 + place % 94]).decode("gb2312")
    start = code & ~0x7F
    block = [chr(c) for c in range(start, start + 128) if chr(c).isalpha() and chr(c).islower() == letter.islower()]
    others = [one for one in block if one != letter]
    return others[number % len(others)] if others and letter.isalpha() else "*"


def _through(written: str, read: str, errors: str = "strict") -> Spelling:
    """Bytes of one encoding read as another: what a console or a log makes of a name."""

    def spell(name: str) -> Optional[str]:
        try:
            return name.encode(written).decode(read, errors)
        except UnicodeError:
            return None

    return spell


def _bytewise(encoding: str, form: str) -> Spelling:
    def spell(name: str) -> Optional[str]:
        try:
            return "".join(form.format(byte) for byte in name.encode(encoding))
        except UnicodeError:
            return None

    return spell


def _escaped(encoding: str, form: str) -> Spelling:
    """As ``_bytewise``, with ASCII letters left as they are (how repr, git and addresses write bytes)."""

    def spell(name: str) -> Optional[str]:
        try:
            return "".join(chr(b) if b < 128 and chr(b) not in " %" else form.format(b) for b in name.encode(encoding))
        except UnicodeError:
            return None

    return spell


def _lettered(form: str) -> Spelling:
    def spell(name: str) -> Optional[str]:
        units: List[int] = []
        for letter in name:
            data = letter.encode("utf-16-be", "surrogatepass")
            units += [data[i] * 256 + data[i + 1] for i in range(0, len(data), 2)]
        return "".join(chr(u) if u < 128 else form.format(u) for u in units)

    return spell


def _undecoded(encoding: str) -> Spelling:
    """Bytes that Python could not decode, as the collector spells them out (``\\udcd5``)."""

    def spell(name: str) -> Optional[str]:
        try:
            text = name.encode(encoding).decode("ascii", "surrogateescape")
        except UnicodeError:
            return None
        return text.encode("utf-8", "backslashreplace").decode("utf-8")

    return spell


_ENCODINGS = ("utf-8", "gbk", "big5", "shift_jis", "cp1251", "cp1252", "euc_kr")
_FOREIGN: List[Spelling] = [
    *(_escaped(encoding, "\\x{:02x}") for encoding in _ENCODINGS),
    *(_escaped(encoding, "\\{:03o}") for encoding in _ENCODINGS),
    *(_escaped(encoding, "%{:02X}") for encoding in _ENCODINGS),
    *(_escaped(encoding, "={:02X}") for encoding in ("utf-8", "gbk")),
    *(_bytewise(encoding, "{:02x}") for encoding in ("utf-8", "gbk")),
    *(_undecoded(encoding) for encoding in _ENCODINGS),
    *(_through("utf-8", read) for read in ("gbk", "latin-1", "cp1252", "cp437", "cp936", "big5")),
    *(_through("gbk", read) for read in ("latin-1", "cp1252", "cp437", "cp1251", "big5", "shift_jis")),
    *(_through("utf-8", read, "replace") for read in ("gbk", "cp1252", "ascii")),
    *(_through("gbk", read, "replace") for read in ("utf-8", "cp1252")),
    *(_through("utf-8", read, "ignore") for read in ("gbk", "cp1252")),
    *(_lettered(form) for form in ("\\u{:04x}", "&#{};", "&#x{:x};", "%u{:04X}", "\\x{{{:x}}}")),
]


def _plain(name: str) -> Optional[str]:
    return name


def _address(name: str) -> Optional[str]:
    try:
        return quote(name, safe="")
    except UnicodeError:
        return None


def spellings(name: str, stand_in: str) -> Dict[str, str]:
    """{spelling in lower case: the same spelling of the token}. Case does not matter: match without it."""
    ascii_only = all(ord(letter) < 128 for letter in name)
    ways: List[Spelling] = [_plain, _address, *([] if ascii_only else _FOREIGN)]
    if ascii_only and " " in name:
        for glue in ("", "_", ".", "-", "+", "\\ "):
            ways.append(lambda text, glue=glue: text.replace(" ", glue))  # type: ignore[misc]
    found: Dict[str, str] = {}
    for way in ways:
        spelled, replaced = way(name), way(stand_in)
        if spelled is None or len(spelled.replace("\ufffd", "")) < min(2, len(name)):
            continue
        variants = [spelled]
        if "\\" in spelled and way is not _plain:
            variants.append(spelled.replace("\\", "\\\\"))  # a log inside a log
        for variant in variants:
            instead = replaced or stand_in
            found.setdefault(variant.lower(), instead.replace("\\", "\\\\") if variant != spelled else instead)
    return found


def shortened(name: str) -> str:
    """A pattern of the shortened forms: 8.3 (``ALICEB~1``, ``AL1F2C~1``), and cut with ``+`` or dots."""
    bare = re.sub(r"[ .,;=+\[\]]", "", name)
    short = [re.escape(bare[:n]) for n in range(min(6, len(bare)), 1, -1)]
    parts = [r"(?:{})~[0-9]{{1,3}}".format("|".join(short)), r"{}[0-9a-f]{{4}}~[0-9]".format(re.escape(bare[:2]))]
    least = 4 if _is_ascii(name) else 2
    if len(name) > least:
        cut = "|".join(re.escape(name[:n]) for n in range(len(name) - 1, least - 1, -1))
        parts.append(r"(?:{})(?=\+|\.\.|\u2026|~(?![\\/]))".format(cut))
    if _is_ascii(name) and len(name) > 8:
        parts.append(re.escape(name[:8]) + r"(?![A-Za-z])")
    return "|".join(parts)


def short_token(stand_in: str, found: str) -> str:
    """The shortened form of a token for a shortened form of its name."""
    if "~" in found:
        bare = re.sub(r"[ .-]", "", stand_in)
        if _is_ascii(stand_in):
            bare = bare[:1] + bare[-5:]
        return (bare[:6]).upper() + found[found.index("~") :]
    return stand_in


def _is_ascii(text: str) -> bool:
    return all(ord(letter) < 128 for letter in text)


def escaped_alternatives(found: Dict[str, str]) -> Tuple[str, str]:
    """Two patterns: spellings that need no letter beside them (ASCII words), and those that stand anywhere."""
    words, free = [], []  # type: List[str], List[str]
    for spelled in sorted(found, key=len, reverse=True):
        (words if _is_ascii(spelled) and spelled[:1].isalnum() else free).append(re.escape(spelled))
    return "|".join(words), "|".join(free)
