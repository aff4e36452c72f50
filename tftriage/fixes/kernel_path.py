"""kernel-path: give a kernel the folders of its GPU libraries, in kernel.json's ``env``.

``${PATH}`` there is filled in by jupyter_client 6.0 and later, from the *server's* environment. Version 5 hands it
on literally, and the kernel's PATH is destroyed (measured with 5.2.3 to 8.10.0): there the whole PATH is written out.
``$`` is doubled for 6 and later. The name must be PATH: Windows' Python knows it in capitals only, and two spellings
would be two variables. A restart does not read the file again.
"""

from __future__ import annotations

from typing import Any

from tftriage.facts import Facts
from tftriage.fixes import kernelspecs, paths, situation
from tftriage.fixes.plans import EditKernelspec, Plan, Refused, Verify
from tftriage.fixes.situation import Fix, Values
from tftriage.probes.base import Evidence
from tftriage.tables import Tables, parse


def refuses(facts: Facts, values: Values) -> str | None:
    kernel = named(facts, values)
    if kernel is None:
        return "fix.refuse.no-kernel"
    if kernel.get("error"):
        return "fix.refuse.kernelspec-broken"
    if not situation.folders(facts, values):
        return "fix.refuse.no-folder"
    client = parse((facts.value("jupyter.server") or {}).get("jupyter_client"))
    if client is None:
        return "fix.refuse.jupyter-client-unknown"
    variable = situation.libraries_variable(facts)
    if client.major < 6 and variable not in (facts.value("env.process") or {}) and variable == "PATH":
        return "fix.refuse.path-unknown"
    return None


def named(facts: Facts, values: Values) -> dict[str, Any] | None:
    """The kernel of the placeholder ``kernel``; without one, the only one there is."""
    kernels = facts.value("jupyter.kernels") or []
    wanted = values.get("kernel")
    found = [kernel for kernel in kernels if kernel["name"] == wanted] if wanted else kernels
    return found[0] if len(found) == 1 or (wanted and found) else None


def new_value(old: str | None, folders: list[str], *, variable: str, separator: str, client: int, process: str) -> str:
    """The value for kernel.json. ``client`` is the major version of the server's jupyter_client, ``process`` the
    variable as it is in our own environment."""
    limit = paths.LIMIT if separator == ";" else None
    if client < 6:
        return paths.prepend(old or process, folders, separator=separator, limit=limit)
    reference = "${" + variable + "}"
    base = reference if old is None else old
    if separator == ";" and old is not None:  # %PATH% is never filled in there: the kernel has lost its PATH
        base = ";".join(reference if e.upper() == f"%{variable}%" else e for e in paths.split(old))
    doubled = [folder.replace("$", "$$") for folder in folders]
    return paths.prepend(base, doubled, separator=separator, limit=limit)


def plan(facts: Facts, values: Values, tables: Tables) -> Plan:
    if reason := refuses(facts, values):
        raise Refused(reason)
    kernel = situation.need(named(facts, values), "fix.refuse.no-kernel")
    windows = situation.windows(facts)
    file = str(kernel["folder"]) + ("\\" if windows else "/") + "kernel.json"
    data = situation.read(file) if situation.here(facts) else None
    env: dict[str, Any] = dict(kernel.get("env") or {})
    if data is not None:
        try:
            env = kernelspecs.parse(data.decode("utf-8")).get("env") or {}
        except (kernelspecs.Broken, UnicodeDecodeError) as error:
            raise Refused("fix.refuse.kernelspec-broken", file=file, error=str(error)) from error
    elif situation.here(facts):
        raise Refused("fix.refuse.no-kernel", kernel=kernel["name"])
    variable = situation.libraries_variable(facts)
    spellings = [name for name in env if name == variable or (windows and name.upper() == variable)]
    client = parse(facts.value("jupyter.server")["jupyter_client"])
    assert client is not None
    folders = situation.folders(facts, values)
    old = env.get(spellings[0]) if spellings else None
    try:
        new = new_value(
            old,
            folders,
            variable=variable,
            separator=situation.separator(facts),
            client=client.major,
            process=(facts.value("env.process") or {}).get(variable, ""),
        )
    except paths.TooLong as error:
        raise Refused("fix.refuse.path-too-long", length=str(error)) from error
    if new == old and spellings == [variable]:
        raise Refused("fix.refuse.already-first", folder=";".join(folders))
    changes: dict[str, Any] = {name: None for name in spellings if name != variable}
    changes[variable] = new
    notes = [Evidence("fix.note.not-restart", {"kernel": str(kernel.get("display_name") or kernel["name"])}, "info")]
    if client.major < 6:
        notes.append(Evidence("fix.note.path-frozen", {"version": str(client)}, "info"))
    return Plan(
        fix="kernel-path",
        title={"kernel": kernel["name"], "folder": ";".join(folders)},
        steps=(
            EditKernelspec(
                path=file,
                changes={"env": changes},
                expected=situation.fingerprint(data) if situation.here(facts) else None,
            ),
        ),
        needs=("restart-kernel", *situation.rights(facts, str(kernel["folder"]))),
        risk="safe",
        python=kernel.get("interpreter") or situation.interpreter(facts).get("executable"),
        notes=tuple(notes),
        verify=Verify(
            facts=("jupyter.kernels", "jupyter.server", "env.process", "cuda.toolkits"),
            probe="kernel_path",
            good_answers=("has-cuda",),
            context={"fresh": False, "kernel": kernel["name"], "env": {}},
        ),
    )


FIX = Fix("kernel-path", refuses, plan)
