"""Which program printed what a CUDA library says of itself: it says the same in every program."""

from __future__ import annotations

import re

from tftriage.facts import Facts
from tftriage.probes.base import Evidence, Finding, probe, unknown
from tftriage.probes.context import frames
from tftriage.probes.logs import events, pasted
from tftriage.tables import Tables

_WORDS = re.compile(r"tensorflow|keras|\btf\.|stream_executor|\bEpoch \d+/\d+", re.IGNORECASE)  # last: how Keras counts


@probe("whose_program", answers=("tensorflow", "other-package"), needs=("tf.package", "paste.text"), fills=("module",))
def whose_program(facts: Facts, tables: Tables) -> Finding:
    """The program by its words or its traceback; another one where TensorFlow is in neither the text nor the machine.

    Sample (Whisper on Windows; cuDNN's own words, which every program with cuDNN prints)::

        Could not load library cudnn_cnn_infer64_8.dll. Error code 126
        Please make sure cudnn_cnn_infer64_8.dll is in your library path!
    """
    text = pasted(facts)
    if not text:
        return unknown(facts, "paste.text")
    if _WORDS.search(text) or events(text):
        evidence = Evidence("whose_fault.words", {"module": "tensorflow"}, "info")
        return Finding("tensorflow", (evidence,), {"module": "tensorflow"})
    package = next((frame.package for frame in reversed(frames(text)) if frame.package), "")
    if package:
        evidence = Evidence("whose_fault.other", {"module": package, "package": package}, "bad")
        return Finding("other-package", (evidence,), {"module": package})
    if "tf.package" in facts and facts["tf.package"].status == "absent":
        return Finding("other-package", (Evidence("whose_program.nowhere", {}, "bad"),), {"module": "?"})
    return Finding("unknown", (Evidence("whose_program.unnamed", {}),), {}, "paste.text: names no program")
