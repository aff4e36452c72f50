"""Notebooks: which Python a kernel runs, whether its environment has CUDA, and what an import does in it."""

from __future__ import annotations

import re
from typing import Any

from tftriage.facts import Facts
from tftriage.probes.base import Evidence, Finding, probe, unknown
from tftriage.probes.context import frames, of_prefix, same_path, site_prefix
from tftriage.probes.logs import pasted
from tftriage.tables import Tables, parse

Kernel = dict[str, Any]
# jupyter_client substitutes ${NAME} in kernel.json's env from this version on; older ones pass it literally.
EXPANDS_FROM = "6.0.0"


def python_kernels(facts: Facts) -> list[Kernel]:
    """The kernels that run Python (others, such as R, are none of ours). A broken kernel.json is kept."""
    return [kernel for kernel in facts.value("jupyter.kernels") or [] if _is_python(kernel)]


def _is_python(kernel: Kernel) -> bool:
    argv = [str(part) for part in kernel.get("argv") or []]
    program = re.split(r"[\\/]", argv[0])[-1].lower() if argv else "python"
    return program.startswith(("python", "pypy")) or any("ipykernel" in part for part in argv)


def runs_target(kernel: Kernel, facts: Facts) -> bool:
    """Whether a kernel's interpreter is the target's. A bare ``python`` is the one of the Jupyter server."""
    target = facts.value("target.interpreter") or {}
    interpreter = str(kernel.get("interpreter") or "")
    if kernel.get("bare"):
        interpreter = str((facts.value("jupyter.server") or {}).get("python") or interpreter)
    executable, prefix = str(target.get("executable") or ""), str(target.get("prefix") or "")
    if not interpreter or not executable:
        return False
    # The interpreter's folder decides, not its name: python and python3.7 of one environment are one Python.
    return same_path(interpreter, executable) or (bool(prefix) and of_prefix(interpreter, prefix))


def chosen(kernels: list[Kernel], facts: Facts) -> Kernel | None:
    """The kernel in question: the one the person (or a fix) named, else the one the pasted text is about."""
    name = (facts.value("target.kernel") or {}).get("name")
    given = next((kernel for kernel in kernels if name and kernel.get("name") == name), None)
    return given or mentioned(kernels, pasted(facts))


def mentioned(kernels: list[Kernel], text: str) -> Kernel | None:
    """The kernel a pasted text is about: by its name, its label, its interpreter or the folder of its packages."""
    for kernel in kernels:
        name, label = str(kernel.get("name") or ""), str(kernel.get("display_name") or "")
        spelled = (
            re.search(rf"kernels?\b[^\n]{{0,40}}[\s\"'/:\\]{re.escape(name)}\b", text, re.IGNORECASE) if name else None
        )
        interpreter = str(kernel.get("interpreter") or (kernel.get("argv") or [""])[0])
        if spelled or (len(label) > 8 and label in text) or (re.search(r"[\\/]", interpreter) and interpreter in text):
            return kernel
    prefixes = [prefix for frame in frames(text) if (prefix := site_prefix(frame.path))]
    return next(
        (k for k in kernels if any(of_prefix(str(k.get("interpreter") or ""), prefix) for prefix in prefixes)),
        None,
    )


@probe(
    "kernel_python",
    answers=("same", "other-python", "gone", "no-ipykernel", "bare-python", "no-kernels"),
    needs=("jupyter.kernels", "target.interpreter", "target.kernel", "paste.text", "jupyter.server", "tf.package"),
    fills=("kernel", "kernel_python", "target_python"),
)
def kernel_python(facts: Facts, tables: Tables) -> Finding:
    """Whether the notebook's kernel runs the target's Python.

    Sample (``jupyter kernelspec list --json``; the label says tf21, the interpreter is another one)::

        "tf21-wrong": {"spec": {"argv": ["/home/alice/jl/bin/python", "-m", "ipykernel_launcher", "-f",
        "{connection_file}"], "env": {}, "display_name": "Python (tf21)", "language": "python"}}
    """
    target = facts.value("target.interpreter")
    if not facts.ok("jupyter.kernels") or not target:
        return unknown(facts, "jupyter.kernels", "target.interpreter")
    kernels = python_kernels(facts)
    shown = str(target.get("executable") or "")
    if not kernels:
        return Finding("no-kernels", (Evidence("kernel_python.no-kernels", {}, "bad"),), {"target_python": shown})
    text = pasted(facts)
    named = chosen(kernels, facts)
    if named is not None:
        return _kernel(named, _state(named, facts), shown)
    ours = [kernel for kernel in kernels if runs_target(kernel, facts)]
    others = [kernel for kernel in kernels if kernel not in ours]
    # A notebook that finds no TensorFlow although the target has one ran in another kernel.
    absent = re.search(r"No module named '?tensorflow\b", text)
    installed = (facts.value("tf.package") or {}).get("distributions")
    pool = others if others and (not ours or (absent and installed)) else ours
    order = (
        ("same", "no-ipykernel", "gone") if pool is ours else ("other-python", "bare-python", "gone", "no-ipykernel")
    )
    judged = [(kernel, _state(kernel, facts)) for kernel in pool]
    kernel, state = min(judged, key=lambda pair: order.index(pair[1]) if pair[1] in order else len(order))
    return _kernel(kernel, state, shown, others=len(others) if pool is ours else 0)


def _state(kernel: Kernel, facts: Facts) -> str:
    """What is the matter with one kernel, the most certain trouble first."""
    ours = runs_target(kernel, facts)
    if kernel.get("exists") is False and not kernel.get("bare"):
        return "gone"
    if kernel.get("bare"):
        return "same" if ours else "bare-python"
    if not ours:
        return "other-python"
    return "same" if kernel.get("ipykernel") else "no-ipykernel"


def _kernel(kernel: Kernel, state: str, target: str, others: int = 0) -> Finding:
    interpreter = str(kernel.get("interpreter") or (kernel.get("argv") or ["?"])[0])
    values = {"kernel": str(kernel.get("name")), "kernel_python": interpreter, "target_python": target}
    more = [Evidence("kernel_python.others", {"count": str(others)})] if others else []
    if kernel.get("error"):
        more.append(
            Evidence(
                "kernel_python.broken-file",
                {"kernel": values["kernel"], "error": str(kernel["error"])},
                "bad",
            )
        )
        if not kernel.get("argv"):
            return Finding("unknown", tuple(more), values, f"jupyter.kernels: {kernel['error']}")
    shown = Evidence(f"kernel_python.{state}", values, "ok" if state == "same" else "bad")
    return Finding(state, (shown, *more), values)


@probe(
    "kernel_path",
    answers=("has-cuda", "lacks-cuda"),
    needs=(
        "jupyter.kernels",
        "env.process",
        "cuda.toolkits",
        "jupyter.server",
        "target.interpreter",
        "tf.package",
        "system.os",
        "paste.text",
        "target.kernel",
    ),
    fills=("kernel", "folder"),
)
def kernel_path(facts: Facts, tables: Tables) -> Finding:
    """Whether the folder of the CUDA libraries is on the path that the kernel gets.

    A kernel gets the environment of the Jupyter server, changed by ``env`` of kernel.json; registering it does
    not activate anything.

    Sample (kernel.json)::

        "env": {"PATH": "/home/alice/cuda-10.1/bin:${PATH}", "LD_LIBRARY_PATH": "/home/alice/cuda-10.1/lib64"}
    """
    system = (facts.value("system.os") or {}).get("system")
    needed = ("jupyter.kernels", "env.process", "cuda.toolkits", "system.os")
    if not all(facts.ok(name) for name in needed):
        return unknown(facts, *needed)
    kernels = python_kernels(facts)
    kernel = chosen(kernels, facts) or next((k for k in kernels if runs_target(k, facts)), None)
    kernel = kernel or (kernels[0] if kernels else None)
    if kernel is None:
        reason = "jupyter.kernels: no Python kernel is registered"
        return Finding("unknown", (Evidence("kernel_path.no-kernel"),), {}, reason)
    build = tables.build((facts.value("tf.package") or {}).get("version"), str(system))
    toolkits = facts.value("cuda.toolkits") or []
    wanted = [t for t in toolkits if build and f"{t.get('version')}.".startswith(f"{build.cuda}.")] or toolkits
    folders = [str(t["bin"]) for t in wanted if t.get("bin")]
    values = {"kernel": str(kernel.get("name")), "folder": folders[0] if folders else ""}
    if not folders:
        reason = "cuda.toolkits: no CUDA folder was found on this machine"
        return Finding("unknown", (Evidence("kernel_path.no-toolkit"),), values, reason)
    variable = "PATH" if system == "Windows" else "LD_LIBRARY_PATH"
    entries, destroyed = kernel_entries(kernel, variable, facts)
    trouble = (Evidence("kernel_path.not-expanded", {"variable": variable}, "bad"),) if destroyed else ()
    for folder in folders:
        if any(same_path(entry, folder) for entry in entries if entry):
            values["folder"] = folder
            shown = Evidence("kernel_path.has-cuda", {**values, "variable": variable}, "ok")
            return Finding("has-cuda", (shown, *trouble), values)
    return Finding(
        "lacks-cuda",
        (Evidence("kernel_path.lacks-cuda", {**values, "variable": variable}, "bad"), *trouble),
        values,
    )


def kernel_entries(kernel: Kernel, variable: str, facts: Facts) -> tuple[list[str], bool]:
    """The folders of a path variable as the kernel gets it, and whether a literal ``${...}`` destroys it."""
    windows = (facts.value("system.os") or {}).get("system") == "Windows"
    process = facts.value("env.process") or {}
    inherited = str(process.get(variable) or next((v for k, v in process.items() if k.upper() == variable), ""))
    own = next((str(v) for k, v in (kernel.get("env") or {}).items() if k.upper() == variable), None)
    client = parse((facts.value("jupyter.server") or {}).get("jupyter_client"))
    literal = client is not None and client < parse(EXPANDS_FROM)  # type: ignore[operator]
    text = inherited if own is None else own
    reference = re.compile(rf"\$\{{{variable}\}}|\${variable}\b")
    destroyed = own is not None and bool(reference.search(own)) and literal
    if own is not None and not literal:
        text = reference.sub(lambda _: inherited, own)
    return [entry.strip().strip('"') for entry in text.split(";" if windows else ":")], destroyed


@probe(
    "kernel_import",
    answers=("works", "fails", "dies"),
    needs=("jupyter.import",),
    fills=("error", "kernel"),
)
def kernel_import(facts: Facts, tables: Tables) -> Finding:
    """What the import does in a kernel that was really started.

    Sample (the native library is cut off)::

        nbclient.exceptions.DeadKernelError: Kernel died
    """
    tried = facts.value("jupyter.import")
    if not isinstance(tried, dict):
        return unknown(facts, "jupyter.import")
    kernel = str((tried.get("context") or {}).get("kernel") or "")
    error = ": ".join(str(tried[key]) for key in ("error_type", "error") if tried.get(key)).strip()
    values = {"kernel": kernel}
    if tried.get("ok"):
        shown = {**values, "version": str(tried.get("version") or "?")}
        return Finding("works", (Evidence("kernel_import.works", shown, "ok"),), values)
    if tried.get("timed_out"):
        values["error"] = f"no answer within {float(tried.get('seconds') or 0.0):.0f} s"
        return Finding("fails", (Evidence("kernel_import.no-answer", values, "bad"),), values)
    if tried.get("signal") or not error or re.search(r"Kernel died|DeadKernel", error):
        values["error"] = str(tried.get("signal") or error or f"exit {tried.get('exit')}").splitlines()[0]
        return Finding("dies", (Evidence("kernel_import.dies", values, "bad"),), values)
    values["error"] = error.splitlines()[0]
    return Finding("fails", (Evidence("kernel_import.fails", values, "bad"),), values)
