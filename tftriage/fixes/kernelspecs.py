"""kernel.json as text: read, change, write back with a JSON library and nothing else.

A Windows path with single backslashes makes the file unreadable and the kernel vanish from every list, so no line
of it is ever edited by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_INDENT = re.compile(r"^\ufeff?\{\r?\n(?P<indent>[ \t]+)")


class Broken(ValueError):
    """The text is not a JSON object."""


def parse(text: str) -> dict[str, Any]:
    """The kernelspec. Raises ``Broken``."""
    try:
        value = json.loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        raise Broken(str(error)) from error
    if not isinstance(value, dict):
        raise Broken("not an object")
    return value


def merged(spec: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The kernelspec with ``changes``: a mapping is merged into a mapping, None removes a key, the rest replaces."""
    result = dict(spec)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            inner = result.get(key)
            result[key] = merged(inner if isinstance(inner, Mapping) else {}, value)
        else:
            result[key] = value
    return result


def edited(text: str, changes: Mapping[str, Any]) -> str:
    """The file's new text: same order of keys, indent, line ends, final line end and mark at the start."""
    spec = merged(parse(text), changes)
    match = _INDENT.search(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    body = json.dumps(spec, indent=match["indent"] if match else 1, ensure_ascii="\\u" in text)
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    return mark + body.replace("\n", newline) + (newline if text.endswith("\n") else "")


def created(spec: Mapping[str, Any]) -> str:
    """The text of a new kernel.json, as ipykernel writes it (indent 1), readable names included."""
    return json.dumps(spec, indent=1, ensure_ascii=False) + "\n"
