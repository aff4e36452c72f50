"""Writing a file whole or not at all."""

import os
import tempfile


def write(data: bytes, name: str) -> None:
    """Write ``data``; a full disk leaves the old file. Raises ``OSError``.

    What is no file (/dev/null, a pipe) is written to: replacing it would break the system.
    """
    if os.path.exists(name) and not os.path.isfile(name):
        with open(name, "wb") as there:
            there.write(data)
        return
    folder, base = os.path.split(os.path.abspath(name))
    handle, partial = tempfile.mkstemp(dir=folder, prefix=base, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, name)
    except OSError:
        if os.path.exists(partial):
            os.unlink(partial)
        raise
