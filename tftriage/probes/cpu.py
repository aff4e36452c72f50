"""What the processor can do: has it the instructions that TensorFlow's wheels use?"""

from __future__ import annotations

import re

from tftriage.facts import Facts
from tftriage.probes.base import Evidence, Finding, probe, unknown
from tftriage.probes.logs import pasted
from tftriage.tables import Tables

# TensorFlow's own words when it stops; "weren't compiled to use" is the harmless opposite.
_STOPPED = re.compile(r"was compiled to use (?P<instructions>[\w ,.]+?) instructions, but these aren.t available")
# A note on a processor that has them: "… instructions that this TensorFlow binary was not compiled to use: AVX AVX2",
# and from 2.4 on "optimized with oneDNN to use the following CPU instructions in performance-critical operations: AVX".
_HAS = re.compile(
    r"(?:not compiled to use|following (?:CPU )?instructions(?: in performance-critical operations)?): *"
    r"(?P<instructions>(?:[\w.]+[ ,]+)*?AVX\w*)"
)


@probe("cpu_avx", answers=("yes", "no"), needs=("system.cpu", "paste.text"), fills=("cpu", "instructions"))
def cpu_avx(facts: Facts, tables: Tables) -> Finding:
    """Whether the processor offers AVX, which TensorFlow needs from 1.6 on (a virtual machine's host may hide it).

    Sample of ``system.cpu``::

        {"name": "Intel(R) Pentium(R) CPU G4560 @ 3.50GHz", "avx": false, "cores": 2, "logical": 4}
    """
    cpu = facts.value("system.cpu") or {}
    name = str(cpu.get("name") or "?")
    stopped = _STOPPED.search(" ".join(str((facts.value("paste.text") or {}).get("text") or "").split()))
    if stopped is not None:
        values = {"cpu": name, "instructions": stopped["instructions"]}
        return Finding("no", (Evidence("cpu_avx.stopped", {"instructions": values["instructions"]}, "bad"),), values)
    if cpu.get("avx") is None and (noted := _HAS.search(" ".join(pasted(facts).split()))):
        line = Evidence("cpu_avx.noted", {"instructions": noted["instructions"].strip()}, "ok")
        return Finding("yes", (line,), {"cpu": name, "instructions": "AVX"})
    if cpu.get("avx") is None:
        if facts.ok("system.cpu"):
            reason = "system.cpu: this system does not tell whether the processor has AVX"
            return Finding("unknown", (Evidence("cpu_avx.not-told", {"cpu": name}),), {"cpu": name}, reason)
        return unknown(facts, "system.cpu")
    values = {"cpu": name, "instructions": "AVX"}
    if cpu["avx"]:
        return Finding("yes", (Evidence("cpu_avx.yes", {"cpu": name}, "ok"),), values)
    return Finding("no", (Evidence("cpu_avx.no", {"cpu": name}, "bad"),), values)
