"""What betrays a person or a machine by its form: addresses, numbers of devices, secrets. One pattern, one stand-in."""

import ipaddress
import re
from typing import Callable, List, Match, Pattern, Tuple

Rule = Tuple[Pattern[str], Callable[[Callable[[str, str], str], Match[str]], str]]
SECRET = "[redacted]"
SECRET_NAME = re.compile(
    r"(?i)(token|secret|passw|passphrase|pwd|api_?key|access_?key|private_?key|_key$|credential|cookie|authorization"
    r"|(?:^|_)auth(?:_|$)|(?:^|_)sas(?:_|$)|connection_?string|(?:^|_)pat$|^key$)"
)
NOT_SECRET = frozenset(["PWD", "OLDPWD"])
# Values under these names are versions, whatever they look like (cuDNN 7.6.5.32 has the form of an address).
VERSION_NAME = re.compile(r"(?i)(version|^linker$|^driver$|^release$|^cudnn$|^cuda)")


def _secret_value(token: Callable[[str, str], str], match: Match[str]) -> str:
    return match.group(1) + SECRET


def _secret(token: Callable[[str, str], str], match: Match[str]) -> str:
    return SECRET


def _mail(token: Callable[[str, str], str], match: Match[str]) -> str:
    if re.match(r"v?\d+(\.\d+){0,2}$", match.group(2)) or match.group(2).endswith(".invalid"):
        return match.group()
    return token("mail", match.group().replace("%40", "@")) + "@example.invalid"


def _address(token: Callable[[str, str], str], match: Match[str]) -> str:
    text = match.group()
    if any(int(part) > 255 for part in text.split(".")) or text.startswith(("127.", "0.", "192.0.2.", "255.")):
        return text
    data = token("ip", text)[-8:]
    return "192.0.2.{}".format(int(data, 16) % 254 + 1)


def _address6(token: Callable[[str, str], str], match: Match[str]) -> str:
    text = match.group()
    try:
        parsed = ipaddress.IPv6Address(text)
    except ValueError:
        return text
    if parsed.is_loopback or parsed.is_unspecified or text.startswith("2001:db8:") or not re.search(r"\d", text):
        return text
    data = token("ip", text)[-8:]
    return "2001:db8::{}:{}".format(data[:4].lstrip("0") or "0", data[4:].lstrip("0") or "1")


def _card(token: Callable[[str, str], str], match: Match[str]) -> str:
    if match.group(2).startswith("00000000-0000"):
        return match.group()
    data = token("uuid", match.group())[-8:]
    return "{}00000000-0000-0000-0000-0000{}".format(match.group(1), data)


def _hardware(token: Callable[[str, str], str], match: Match[str]) -> str:
    text = match.group()
    if re.sub(r"[:.-]", "", text).lower().startswith("020000") or not re.search(r"[1-9a-fA-F]", text):
        return text
    data = token("mac", text)[-6:]
    return "02:00:00:{}:{}:{}".format(data[:2], data[2:4], data[4:])


def _serial(token: Callable[[str, str], str], match: Match[str]) -> str:
    if match.group(2).startswith("serial-"):
        return match.group()
    return match.group(1) + token("serial", match.group(2))


def _sid(token: Callable[[str, str], str], match: Match[str]) -> str:
    return "S-1-5-21-0-0-0-0"


def _credentials(token: Callable[[str, str], str], match: Match[str]) -> str:
    return "://" + SECRET + "@"


_HEX = r"[0-9a-fA-F]"
RULES: List[Rule] = [
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S), _secret),
    (re.compile(r"://[^/\s:@'\"\[]+(?::|%3A)[^/\s@'\"]*@"), _credentials),
    (re.compile(r"://(?!\[redacted\])[^/\s:@'\"]+@(?=[\w.-]+)"), _credentials),
    (re.compile(r"(?i)((?:bearer|basic|token)\s+)(?!\[redacted\])[A-Za-z0-9_~+/=-][\w.~+/=-]{15,}"), _secret_value),
    (
        re.compile(
            r"(?i)(?<![\w-])((?:[\w-]{0,40}?(?:token|passwords?|passwd|passphrase|secret|api[_-]?key|access[_-]?key|signature)[\w-]*)"
            r"[\"']?(?:\s*(?:=|:(?!:))\s*|%3D|\s+(?<=--token )|\s+(?<=--password ))[bru]?[\"']?)"
            r"(?!\[redacted\])[^\s\"'&;,(){}\[\]]{4,}"
        ),
        _secret_value,
    ),
    (
        re.compile(
            r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{15,}|hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{16,}"
            r"|xox[abprs]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|npm_[A-Za-z0-9]{30,}"
            r"|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?|pypi-[\w-]{16,}|[0-9a-f]{48})(?![\w-])"
        ),
        _secret,
    ),
    (re.compile(r"(?i)(?<![\w.+-])([\w.+-]+)(?:@|%40)([\w-]+(?:\.[\w-]+)*)"), _mail),
    (
        re.compile(
            r"\b((?:MIG-)?(?:GPU-)?)("
            + _HEX
            + r"{8}-"
            + _HEX
            + r"{4}-"
            + _HEX
            + r"{4}-"
            + _HEX
            + r"{4}-"
            + _HEX
            + r"{12})(?!"
            + _HEX
            + r")"
        ),
        _card,
    ),
    (re.compile(r"\bS-1-5-21-(?!0-0-0-0)[\d-]+"), _sid),
    (re.compile(r"(?i)(\bserial[ _-]?(?:number|no\.?|nr)?[\"']?[ \t]*(?:is|[:=#])[ \t]*[\"']?)([\w-]{4,})"), _serial),
    (re.compile(r"(?<![\w:.-])(?:{h}{h}([:-]))(?:{h}{h}\1){{4}}{h}{h}(?![\w:-])".format(h=_HEX)), _hardware),
    (re.compile(r"(?<![\w.])(?:{h}{{4}}\.){{2}}{h}{{4}}(?![\w.])".format(h=_HEX)), _hardware),
    (
        re.compile(
            r"(?<![\w.])(?<!version )(?<!Version )(?<!cuDNN )(?<!cudnn )(?<!CUDA )(?<!==)(?<!>=)(?<!<=)"
            r"\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\w)(?!-?\.?(?:dist-info|egg|whl|cp\d|py\d|py\b))"
        ),
        _address,
    ),
    (re.compile(r"(?i)(?<![\w:.])(?=[0-9a-f]*:[0-9a-f]*:)[0-9a-f:]{4,39}(?![\w:])"), _address6),
]


def clean(text: str, token: Callable[[str, str], str], version: bool = False) -> str:
    """``text`` with every match replaced; ``token(kind, value)`` makes the stand-ins. ``version``: it is one."""
    if version and re.match(r"[\w.+ -]{1,40}$", text):
        return text
    for pattern, replaced in RULES:
        if pattern is _MAIL and "@" not in text and "%40" not in text:
            continue
        text = pattern.sub(lambda match, how=replaced: how(token, match), text)  # type: ignore[misc]
    return text


_MAIL = RULES[6][0]
