"""Run by the Python that holds jupyter_client, from standard input: start a kernel and import a module in a cell.

``python -B - kernel MARKER JSON``. The kernel's death, silence or refusal are results; it is shut down in any case.
Works with jupyter_client 5 to 8. Result lines are as inside.py's: MARKER and JSON on a private standard output.
"""

import json
import os
import queue
import sys
import time
from typing import Any, Callable, Dict

CELL = """
def _tftriage():
    import faulthandler, json, sys, time, traceback
    name, marker = %(module)r, %(marker)r
    value = {"ok": False, "version": None, "file": None, "error_type": None, "error": None, "traceback": ""}
    faulthandler.dump_traceback_later(%(seconds)r, file=2)
    began = time.time()
    try:
        __import__(name)
        module = sys.modules[name]
    except BaseException as error:
        value["error_type"], value["error"] = type(error).__name__, str(error)
        frames = error.__traceback__ and error.__traceback__.tb_next
        value["traceback"] = "".join(traceback.format_exception(type(error), error, frames))
    else:
        version, file = getattr(module, "__version__", None), getattr(module, "__file__", None)
        value.update(ok=True, version=version and str(version), file=file and str(file))
    faulthandler.cancel_dump_traceback_later()
    value["seconds"] = round(time.time() - began, 3)
    print("\\n" + marker + json.dumps(value))
_tftriage()
del _tftriage
"""


def run(kernel: str, module: str, until: float, marker: str, emit: Callable[[Dict[str, Any]], None]) -> None:
    """Emit the value of the fact, less what the caller adds; ``exit`` is the kernel's own, when it died."""
    from jupyter_client.manager import KernelManager

    value = dict.fromkeys(("version", "file", "error_type", "error", "exit", "signal"))  # type: Dict[str, Any]
    value.update(module=module, ok=False, seconds=0.0, traceback="", log="", timed_out=False)
    manager = KernelManager(kernel_name=kernel)
    client = None
    try:
        language = (getattr(manager.kernel_spec, "language", None) or "python").lower()
        if language != "python":
            value.update(error_type="NotPython", error="the kernel's language is %s" % language)
            emit({"value": value})
            return
        manager.start_kernel()
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=max(1.0, (until - time.monotonic()) * 0.6))
        _cell(manager, client, until, marker, value)
    except Exception as error:  # NoSuchKernel; FileNotFoundError of argv[0]; RuntimeError: died before replying
        value.update(error_type=type(error).__name__, error=str(error))
        value["timed_out"] = "respond in" in str(error)
    if not value["ok"]:
        value["exit"] = _exit_of(manager)
    emit({"value": value})  # before the kernel is shut down: on a slow machine that can take longer than is left
    try:
        if client is not None:
            client.stop_channels()
        if manager.has_kernel:
            manager.shutdown_kernel(now=True)
    except Exception as error:
        sys.stderr.write("shutting the kernel down: %s\n" % error)


def _cell(manager: Any, client: Any, until: float, marker: str, value: Dict[str, Any]) -> None:
    left = max(1.0, until - time.monotonic())
    text = CELL % {"module": value["module"], "marker": marker, "seconds": left * 0.85}
    began = time.monotonic()
    request = client.execute(text, store_history=False)
    out, err, dead = "", "", False
    while True:
        value["seconds"] = round(time.monotonic() - began, 3)
        if time.monotonic() > until:
            value.update(timed_out=True, error_type="CellTimeoutError", error="timeout")
            break
        try:
            message = client.get_iopub_msg(timeout=0.5)
        except queue.Empty:
            if dead:
                value.update(error_type="DeadKernelError", error="Kernel died")
                break
            dead = not manager.is_alive()  # once more round: its last words may still be under way
            continue
        if message["parent_header"].get("msg_id") != request:
            if message["msg_type"] == "stream":  # lines that a kernel's watcher thread sends belong to no cell
                err += message["content"]["text"]
            continue
        content = message["content"]
        if message["msg_type"] == "stream" and content["name"] == "stdout":
            out += content["text"]
        elif message["msg_type"] == "stream":
            err += content["text"]
        elif message["msg_type"] == "error":
            value.update(error_type=content["ename"], error=content["evalue"])
            value["traceback"] = "\n".join(content["traceback"])
        elif message["msg_type"] == "status" and content["execution_state"] == "idle":
            break
    chatter = []
    for line in out.splitlines():
        if line.startswith(marker):
            value.update(json.loads(line[len(marker) :]))
        elif line.strip():
            chatter.append(line + "\n")
    value["log"] = "".join(chatter) + err


def _exit_of(manager: Any) -> Any:
    """The exit status of a kernel that died: of its provisioner since jupyter_client 7, of ``kernel`` before."""
    process = getattr(getattr(manager, "provisioner", None), "process", None) or getattr(manager, "kernel", None)
    try:
        return process.poll() if process is not None else None
    except Exception:
        return None


def main() -> None:
    began = time.monotonic()  # the limit is the caller's: importing jupyter_client counts
    marker, given = sys.argv[2], json.loads(sys.argv[3])
    private = os.dup(1)
    os.dup2(2, 1)  # the kernel inherits 1 and 2

    def emit(line: Dict[str, Any]) -> None:
        data = ("\n" + marker + json.dumps(line) + "\n").encode("ascii")
        while data:
            data = data[os.write(private, data) :]

    emit({"begin": list(sys.version_info[:3])})
    if os.name == "nt" and (3, 8) <= sys.version_info < (3, 14):
        import asyncio

        # zmq needs a loop that watches sockets; the default one makes it print warnings of its own.
        loops = asyncio  # type: Any
        loops.set_event_loop_policy(loops.WindowsSelectorEventLoopPolicy())
    try:
        run(given["kernel"], given["module"], began + given["limit"], marker, emit)
    except ImportError as error:
        emit({"absent": "no-jupyter-client: %s" % error})
    except Exception as error:
        emit({"error": "%s: %s" % (type(error).__name__, error)})
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
