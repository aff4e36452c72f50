"""Take out of a case who made it and on which machine, and leave the shape that a diagnosis needs.

Fails closed: what was redacted is read again with the same eyes, and a name that is still there is an error, so that
nothing is written. The same value gives the same token under the same key, across every case of a class.
"""

import re
from typing import Any, Dict, Iterable, List, Match, Set

from . import homes, patterns, tokens

# No person's name: accounts that every machine has, and what earlier versions wrote.
GENERIC = frozenset(
    [
        "public",
        "default",
        "root",
        "admin",
        "administrator",
        "user",
        "users",
        "student",
        "guest",
        "home",
        "shared",
        "defaultapppool",
        "localservice",
        "networkservice",
        "system",
        "ubuntu",
        "用户",
        "管理员",
    ]
) | {"all users", "default user"}
# Names that are also words of our subject: taken out of paths and of the account's own fields, never out of sentences.
WORDS = frozenset(
    [
        "python",
        "python3",
        "tensorflow",
        "keras",
        "numpy",
        "cuda",
        "cudnn",
        "nvidia",
        "conda",
        "anaconda",
        "jupyter",
        "notebook",
        "windows",
        "linux",
        "lab",
        "local",
        "lib",
        "bin",
        "site",
        "packages",
        "program",
        "files",
        "data",
        "dev",
        "desktop",
        "download",
        "downloads",
        "documents",
        "import",
        "error",
        "module",
        "file",
        "line",
        "test",
        "temp",
        "tmp",
        "gpu",
        "cpu",
        "device",
        "driver",
        "dll",
        "load",
        "failed",
        "found",
        "name",
        "import",
        "the",
        "and",
        "for",
        "with",
        "not",
        "can",
        "class",
        "code",
        "work",
        "main",
        "training",
        "train",
        "model",
        "base",
        "pip",
        "wheel",
        "core",
        "common",
        "intel",
        "amd",
        "microsoft",
        "visual",
        "runtime",
        "kernel",
        "server",
        "host",
        "none",
        "true",
        "false",
        "null",
        "info",
        "warning",
        "python37",
        "python38",
        "py",
        "path",
        "system32",
        "google",
        "protobuf",
        "version",
        "project",
        "home",
        "env",
    ]
)
LEAST = 3  # letters of an ASCII name that is looked for in sentences; 2 for other scripts
_HOST_NAMES = frozenset(["COMPUTERNAME", "HOSTNAME", "USERDOMAIN", "LOGONSERVER", "USERDNSDOMAIN"])
_USER_NAMES = frozenset(["USERNAME", "USER", "LOGNAME"])
_HOST_KEYS = frozenset(["host", "hostname", "node", "computer"])
_HOST_TEXT = re.compile(
    r"(?:does not appear to be running on this host \(|(?i:\bhost ?name: ?|\bhost: ?|\bcomputer ?name: ?))([\w.-]+)"
)
_UNC = re.compile(r"(?<![\\\w:])\\\\([A-Za-z0-9][\w.-]+)\\")
_URL_HOST = re.compile(
    r"https?://([A-Za-z][\w-]*)(?=[:/])|https?://([\w.-]+\.(?:local|lan|internal|corp|home|localdomain))\b"
)
_PROMPT = re.compile(r"(?m)(?:^|[\s(\[])([a-z_][\w.-]{0,31})@([A-Za-z0-9][\w-]{0,62})(?:(?=:[~/])|(?=[ \t]+[~/]))")
_NOT_HOSTS = frozenset(
    [
        "localhost",
        "wsl$",
        "wsl.localhost",
        "host",
        "users",
        "none",
        "unknown",
        "true",
        "false",
        "docker",
        "pc",
    ]
)


class RedactionError(Exception):
    """Something that names a person is still there: nothing may be written."""


def redact(case: Dict[str, Any], key: bytes, users: Iterable[str] = (), hosts: Iterable[str] = ()) -> Dict[str, Any]:
    """A redacted copy of a case (its JSON value). ``users`` and ``hosts`` are names that the machine itself gave."""
    work = _Redaction(case, key, users, hosts)
    result: Dict[str, Any] = work.walk(case)
    result["redacted"] = True
    result["tokens"] = sorted(set(case.get("tokens") or ()) | work.used)
    work.verify(result)
    return result


class _Redaction:
    def __init__(self, case: Dict[str, Any], key: bytes, users: Iterable[str], hosts: Iterable[str]) -> None:
        self.key = key
        self.earlier = {str(one) for one in case.get("tokens") or ()}
        self.used: Set[str] = set()
        self.needed = _needed(case)
        strings = list(_strings(case))
        self.users = {name: self._token("user", name) for name in self._people(case, strings, users)}
        self.hosts = {name: self._token("host", name) for name in self._machines(case, strings, hosts)}
        self.spelled: Dict[str, str] = {}
        parts: List[str] = []
        for names, kind in ((self.users, "user"), (self.hosts, "host")):
            for name in sorted(names, key=len, reverse=True):
                if _speakable(name, self.needed if kind == "user" else ()):
                    parts += self._forms(name, names[name], kind)
        self.named = re.compile("|".join(parts), re.I) if parts else None

    def _forms(self, name: str, stand_in: str, kind: str) -> List[str]:
        found = tokens.spellings(name, stand_in)
        for spelled, replaced in found.items():
            self.spelled.setdefault(spelled, replaced)
        words, free = tokens.escaped_alternatives(found)
        parts = []
        if words:
            parts.append(r"(?<![A-Za-z])(?:{})(?![A-Za-z])".format(words))
        if free:
            parts.append("(?:{})".format(free))
        if kind == "user":
            parts.append("(?P<s{}>(?<![A-Za-z])(?:{}))".format(len(self.short), tokens.shortened(name)))
            self.short.append(stand_in)
        return parts

    @property
    def short(self) -> List[str]:
        """The tokens of shortened forms, in the order of their groups."""
        kept: List[str] = self.__dict__.setdefault("_short", [])
        return kept

    # --- whom and what to look for -------------------------------------------------------------------------

    def _people(self, case: Dict[str, Any], strings: List[str], given: Iterable[str]) -> Set[str]:
        found = set(given)
        account = _value(case, "system.user")
        found.add(str(account.get("name") or ""))
        found.add(re.split(r"[\\/]", str(account.get("home") or "").rstrip("\\/"))[-1])
        found.update(_variables(case, _USER_NAMES))
        for text in strings:
            for pattern in (homes.WINDOWS, homes.POSIX):
                found.update(homes.root_and_name(match) for match in pattern.finditer(text))
            found.update(match.group(1) for match in _PROMPT.finditer(text))
        return {name for name in map(str.strip, found) if self._secret(name) and "~" not in name}

    def _machines(self, case: Dict[str, Any], strings: List[str], given: Iterable[str]) -> Set[str]:
        found = set(given)
        found.update(name.lstrip("\\") for name in _variables(case, _HOST_NAMES))
        for text in strings:
            for pattern in (_HOST_TEXT, _UNC):
                found.update(match.group(1) for match in pattern.finditer(text))
            for match in _URL_HOST.finditer(text):
                found.add(match.group(1) or match.group(2))
            found.update(match.group(2) for match in _PROMPT.finditer(text))
        found.update(name.partition(".")[0] for name in list(found) if not re.match(r"[\d.]+$", name))
        return {name for name in found if self._secret(name) and name.lower() not in _NOT_HOSTS and len(name) > 1}

    def _secret(self, name: str) -> bool:
        low = name.lower()
        return bool(name) and low not in GENERIC and name not in self.earlier and not tokens.TOKEN.match(low)

    def _token(self, kind: str, name: str) -> str:
        if name in self.earlier or name in self.used or tokens.TOKEN.match(name.lower()):
            return name
        made = tokens.token(self.key, kind, name)
        if kind in ("user", "dir", "host"):
            self.used.add(made)
        return made

    # --- taking it out -------------------------------------------------------------------------------------

    def walk(self, value: Any, name: str = "", secret: bool = False) -> Any:
        """The value without it; ``name`` is the key under which it stands."""
        if isinstance(value, str):
            return patterns.SECRET if secret and value else self.text(value, name)
        if isinstance(value, dict):
            result = {}
            for key, item in value.items():
                hidden = bool(patterns.SECRET_NAME.search(key)) and key.upper() not in patterns.NOT_SECRET
                hidden = hidden and not isinstance(item, (bool, int, float)) and not _structure(key, item)
                result[self.text(key, "")] = self.walk(item, key, secret or hidden)
            return result
        if isinstance(value, (list, tuple)):
            return [self.walk(item, name, secret) for item in value]
        return value

    def text(self, text: str, name: str) -> str:
        """One string without it."""
        if name in ("format", "created", "schema", "tool", "knowledge", "symptom", "answer") or not text:
            return text
        if name.lower() in _HOST_KEYS and text in self.hosts:
            return self.hosts[text]
        if name == "serial":
            return self._serial(text)
        for pattern in (homes.WINDOWS, homes.POSIX):
            text = pattern.sub(self._home, text)
        text = homes.SHORT.sub(self._short_home, text)
        if self.named is not None:
            text = self.named.sub(self._stand_in, text)
        elif text in self.users:
            return self.users[text]
        if name == "name" and text in self.users:
            return self.users[text]
        return patterns.clean(text, self._by_form, bool(patterns.VERSION_NAME.search(name)))

    def _serial(self, text: str) -> str:
        return text if text.startswith("serial-") else self._by_form("serial", text)

    def _by_form(self, kind: str, value: str) -> str:
        return kind + "-" + tokens.digest(self.key, kind, value).hex()[:8]

    def _home(self, match: Match[str]) -> str:
        name = match.group("name")
        bare = name.strip()
        replaced = self.users.get(bare)
        if replaced is None and self._secret(bare):
            spelled = self.spelled.get(bare.lower())
            short = self.named.match(bare) if self.named and "~" in bare else None
            replaced = spelled or (self._stand_in(short) if short else self._token("user", bare))
        return match.group("root") + name.replace(bare, replaced or bare) + self._below(match.group("rest"))

    def _short_home(self, match: Match[str]) -> str:
        return match.group("root") + self._below(match.group("rest"))

    def _below(self, rest: str) -> str:
        return homes.below(rest, self.needed, self._folder)

    def _folder(self, name: str) -> str:
        if self.named is not None and self.named.fullmatch(name):
            return name  # the next step replaces it by the person's token
        return self._token("dir", name)

    def _stand_in(self, match: Match[str]) -> str:
        for number, stand_in in enumerate(self.short):
            if match.group("s%d" % number) is not None:
                return tokens.short_token(stand_in, match.group())
        found = match.group()
        return self.spelled.get(found.lower(), patterns.SECRET)

    # --- looking again -------------------------------------------------------------------------------------

    def verify(self, result: Dict[str, Any]) -> None:
        """Raise ``RedactionError`` when a second reading still finds a name, or would still change something."""
        for text in set(_strings(dict(result, tokens=[]))):
            for match in self.named.finditer(text) if self.named else ():
                if match.group() not in self.used and not _of_token(match.group(), self.used):
                    raise RedactionError("a name is still there after redaction")
            once = patterns.clean(text, self._by_form, True)
            if once != text and patterns.clean(once, self._by_form, True) != once:
                raise RedactionError("an address is still there after redaction")


def _structure(key: str, item: Any) -> bool:
    """Whether a secret-sounding key holds our own structure (``tokens`` of a case, ``key`` of evidence)."""
    return key == "tokens" or (key == "key" and isinstance(item, str) and len(item) < 60 and "." in item)


def _of_token(found: str, used: Set[str]) -> bool:
    return any(found.lower() in one.lower() for one in used)


def _speakable(name: str, needed: Iterable[str]) -> bool:
    low = name.lower()
    if all(ord(letter) < 128 for letter in name):
        return len(name) >= LEAST and low not in WORDS and low not in needed and not name.isdigit()
    return len(name) >= 2


def _needed(case: Dict[str, Any]) -> Set[str]:
    """Stems of file names that may hide a package, and names of packages: they are evidence."""
    found = {"tensorflow", "tensorflow_core", "numpy", "keras", "h5py", "random", "types", "queue", "copy", "json"}
    package = _value(case, "tf.package")
    for path in package.get("shadow") or ():
        found.add(re.split(r"[\\/]", str(path))[-1].partition(".")[0].lower())
    module = str(_value(case, "tf.import").get("module") or "")
    found.update(part.lower() for part in module.split(".") if part)
    found.add(str((case.get("target") or {}).get("module") or "tensorflow").lower())
    return found


def _value(case: Dict[str, Any], fact: str) -> Dict[str, Any]:
    for one in case.get("facts") or ():
        if isinstance(one, dict) and one.get("name") == fact and isinstance(one.get("value"), dict):
            value: Dict[str, Any] = one["value"]
            return value
    return {}


def _variables(case: Dict[str, Any], wanted: Iterable[str]) -> Set[str]:
    found = set()
    for fact in ("env.process", "env.user", "env.machine"):
        value = _value(case, fact)
        variables = value.get("variables") if isinstance(value.get("variables"), dict) else value
        for name, text in (variables or {}).items():
            text = text.get("value") if isinstance(text, dict) else text
            if name.upper() in wanted and isinstance(text, str):
                found.add(text)
    return found


def _strings(value: Any) -> Iterable[str]:
    """Every string in a JSON value, keys too."""
    stack: List[Any] = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            stack.extend(one.keys())
            stack.extend(one.values())
        elif isinstance(one, (list, tuple)):
            stack.extend(one)
