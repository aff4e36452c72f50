"""The list of collectors: which function observes which fact, and how long it may take."""

from typing import Any, Callable, Dict, NamedTuple, Tuple


class Absent(Exception):
    """The thing looked for is not there. The message is the fact's note."""


class Skipped(Exception):
    """Not looked for, with the reason (another system, nothing to look at)."""


class Failed(Exception):
    """Could not be observed; the message is the fact's note (a missing right, a tool's error)."""


# A collector gets the request's arguments and returns (value, source): source names the file, registry key,
# command or API that was read.
Function = Callable[[Dict[str, Any]], Tuple[Any, str]]
Collector = NamedTuple("Collector", [("function", Function), ("limit", float)])

COLLECTORS = {}  # type: Dict[str, Collector]


def collector(name, limit):
    # type: (str, float) -> Callable[[Function], Function]
    """Register the collector of the fact ``name``; ``limit`` is its deadline in seconds."""

    def register(function):
        # type: (Function) -> Function
        COLLECTORS[name] = Collector(function, limit)
        return function

    return register
