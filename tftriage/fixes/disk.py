"""Bytes on a disk, all or nothing. Only ``effects`` (for the user's files) and ``journal`` (for its own) call this.

A file is written beside its place and put there in one move, so that nobody, not even after a power cut, finds half
of it. The temporary name is known beforehand: what a crash leaves behind can be found and removed.
"""

# Paths here are texts of the machine they are of, kept byte for byte.
# ruff: noqa: PTH101, PTH104, PTH105, PTH108, PTH110, PTH112, PTH114, PTH115, PTH116, PTH118, PTH120
from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

_CHUNK = 1 << 20


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file, in hexadecimal. ``OSError`` as ``open`` has it."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def temporary(path: str) -> str:
    """Where ``path`` is written first. In the same folder, so that the last move stays on one volume."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.tftriage-part")


def sync_folder(folder: str) -> None:
    """Make a rename last through a power cut (POSIX; Windows has no such call for folders)."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _part(path: str) -> Iterator[str]:
    """The temporary file's name; it is gone afterwards, whatever happened."""
    part = temporary(path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part)
    try:
        yield part
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)


def _publish(part: str, path: str, like: os.stat_result | None) -> None:
    """Move the finished file over its place, with the rights of the file that was there."""
    if like is not None and sys.platform == "win32":
        _same_rights_windows(path, part)
    elif like is not None:
        with contextlib.suppress(PermissionError):  # another owner's file: the mode is kept, the owner cannot be
            os.chown(part, like.st_uid, like.st_gid)
        os.chmod(part, stat.S_IMODE(like.st_mode))
    os.replace(part, path)
    sync_folder(os.path.dirname(path))


def _same_rights_windows(path: str, part: str) -> None:
    """Give ``part`` the access list and attributes of ``path``, as far as this user may.

    ReplaceFileW would keep them too, but in two renames: a crash between them leaves no file, a refusal a stray one.
    """
    if sys.platform != "win32":
        return
    import ctypes

    advapi32, kernel32 = ctypes.WinDLL("advapi32"), ctypes.WinDLL("kernel32")
    get, put = advapi32.GetFileSecurityW, advapi32.SetFileSecurityW
    get.argtypes = [ctypes.c_wchar_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p]
    put.argtypes = [ctypes.c_wchar_p, ctypes.c_uint32, ctypes.c_void_p]
    kernel32.GetFileAttributesW.argtypes = [ctypes.c_wchar_p]
    kernel32.SetFileAttributesW.argtypes = [ctypes.c_wchar_p, ctypes.c_uint32]
    dacl, needed = 0x4, ctypes.c_uint32()
    get(path, dacl, None, 0, ctypes.byref(needed))
    buffer = ctypes.create_string_buffer(needed.value or 1)
    if get(path, dacl, buffer, needed.value, ctypes.byref(needed)):
        put(part, dacl, buffer)
    attributes = kernel32.GetFileAttributesW(path) & 0x2026  # hidden, system, archive, not indexed
    if attributes:
        kernel32.SetFileAttributesW(part, attributes)


def write(path: str, data: bytes, mode: int | None = None) -> None:
    """Replace or create a file. An existing one keeps its rights; ``mode`` is for a new one.

    A symbolic link stays one: the file it leads to is written. ``OSError`` leaves the former file as it was.
    """
    path = os.path.realpath(path) if os.path.islink(path) else path
    like = os.stat(path) if os.path.exists(path) else None
    with _part(path) as part:
        with open(part, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if like is None and mode is not None:
            os.chmod(part, mode)
        _publish(part, path, like)


def copy_new(source: str, target: str) -> None:
    """Copy a file with its mode to a name that does not exist. ``FileExistsError`` when it does."""
    with _part(target) as part:
        with open(source, "rb") as reader, open(part, "xb") as writer:
            shutil.copyfileobj(reader, writer, _CHUNK)
            writer.flush()
            os.fsync(writer.fileno())
        shutil.copymode(source, part)
        _publish_new(part, target)


def _publish_new(part: str, target: str) -> None:
    """Give the finished file its name, which must be free, at that very moment: a hard link refuses a taken one."""
    if sys.platform == "win32":
        os.rename(part, target)
        return
    try:
        os.link(part, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        rename_new(part, target)
    else:
        os.unlink(part)
    sync_folder(os.path.dirname(target))


def rename_new(source: str, target: str) -> None:
    """Rename in one move to a free name: ``FileExistsError`` when it is taken.

    POSIX looks first and renames then: of link and unlink, a crash between them would leave two names.
    """
    if sys.platform != "win32" and os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    os.rename(source, target)
    sync_folder(os.path.dirname(target))


def folder_fingerprint(path: str) -> str:
    """What a folder holds: names, sizes and times of its files, links by where they lead.

    ``__pycache__`` is left out: Python writes there when something is imported, and nobody misses it.
    """
    digest = hashlib.sha256()
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in sorted([*names, *links]):
            file = os.path.join(folder, name)
            info = os.lstat(file)
            what = os.readlink(file) if stat.S_ISLNK(info.st_mode) else f"{info.st_size} {info.st_mtime_ns}"
            line = f"{os.path.relpath(file, path)}\0{what}\n"
            digest.update(line.encode("utf-8", "surrogatepass" if sys.platform == "win32" else "surrogateescape"))
    return digest.hexdigest()


def remove_tree(path: str) -> None:
    """Remove a folder in one move for whoever looks at ``path``; a crash leaves only the temporary name behind."""
    part = temporary(path)
    if os.path.lexists(part):
        _unlink_all(part)
    if os.path.lexists(path):
        os.rename(path, part)
        sync_folder(os.path.dirname(path))
        _unlink_all(part)


def _unlink_all(path: str) -> None:
    def writable(function: Callable[[str], object], name: str, _: object) -> None:
        os.chmod(name, stat.S_IWRITE | stat.S_IREAD | stat.S_IEXEC)  # pip leaves read-only files on Windows
        function(name)

    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, onerror=writable)
    else:
        os.unlink(path)


def missing_folders(path: str) -> tuple[str, ...]:
    """The folders above ``path`` that do not exist yet, outermost first."""
    missing: list[str] = []
    folder = os.path.dirname(path)
    while folder and not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        missing.append(folder)
        folder = os.path.dirname(folder)
    return tuple(reversed(missing))


def may_write(folder: str) -> bool | None:
    """Whether this user may create files in a folder, without creating one; None when that cannot be told."""
    if not os.path.isdir(folder):
        above = os.path.dirname(folder)
        return may_write(above) if above and above != folder else None
    if sys.platform != "win32":
        return os.access(folder, os.W_OK | os.X_OK)
    import ctypes

    kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel32.CreateFileW.restype = ctypes.c_void_p
    kernel32.CreateFileW.argtypes = [
        ctypes.c_wchar_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p,
        ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p,
    ]  # fmt: skip
    kernel32.CloseHandle.argtypes = [ctypes.c_void_p]
    # FILE_ADD_FILE on the folder itself: os.access on Windows only looks at the read-only attribute.
    handle = kernel32.CreateFileW(folder, 0x2, 0x7, None, 3, 0x02000000, None)
    if handle in (None, ctypes.c_void_p(-1).value):
        return False if ctypes.get_last_error() == 5 else None
    kernel32.CloseHandle(handle)
    return True
