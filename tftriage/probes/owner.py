"""Which program printed what a CUDA library says of itself: it says the same in every program."""

from __future__ import annotations

import re

from tftriage.facts import Facts
from tftriage.probes.base import Evidence, Finding, probe, unknown
from tftriage.probes.context import frames
from tftriage.probes.logs import events, pasted
from tftriage.tables import Tables

_WORDS = re.compile(r"tensorflow|keras|\bEpoch \d+/\d+", re.IGNORECASE)  # the last: how Keras counts


@probe("whose_program", answers=("tensorflow", "other-package"), needs=("paste.text",), fills=("module",))
def whose_program(facts: Facts, tables: Tables) -> Finding:
    """The program by its traceback or its words; unknown when the text names none.

    Sample (Windows, any program with cuDNN 8)::

        Could not load library cudnn_cnn_infer64_8.dll. Error code 126
    """
    text = pasted(facts)
    if _WORDS.search(text) or events(text):
        evidence = Evidence("whose_fault.words", {"module": "tensorflow"}, "info")
        return Finding("tensorflow", (evidence,), {"module": "tensorflow"})
    package = next((frame.package for frame in reversed(frames(text)) if frame.package), "")
    if package:
        evidence = Evidence("whose_fault.other", {"module": package, "package": package}, "bad")
        return Finding("other-package", (evidence,), {"module": package})
    if facts.ok("paste.text"):
        return Finding("unknown", (Evidence("whose_program.unnamed", {}),), {}, "paste.text: names no program")
    return unknown(facts, "paste.text")
