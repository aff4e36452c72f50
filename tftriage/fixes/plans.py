"""Plans as plain data: what a fix would do, step by step, with nothing done yet.

Every value is frozen and goes through JSON unchanged, because the journal keeps the plan it carried out.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

import msgspec

from tftriage.probes.base import Evidence

Risk = Literal["safe", "moderate"]
RegistryType = Literal["REG_SZ", "REG_EXPAND_SZ"]
ABSENT = "absent"
"""``expected`` of a file that must not be there."""


class Refused(Exception):
    """A fix cannot be planned here. ``key`` (words in ``knowledge/evidence/fixes.yaml``) and ``params`` say why."""

    def __init__(self, key: str, **params: str) -> None:
        super().__init__(key)
        self.key = key
        self.params = params

    @property
    def evidence(self) -> Evidence:
        return Evidence(self.key, self.params, "bad")


class Variable(msgspec.Struct, frozen=True):
    """A value in HKCU\\Environment, unexpanded, with its type; ``value`` None when there is none."""

    name: str
    value: str | None = None
    type: RegistryType | None = None


class WriteFile(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="write-file"):
    """Write a whole file. A file that exists keeps its mode; ``mode`` is for a new one.

    ``newline`` ``""`` writes the text as it is, else every ``\\n`` becomes that. ``expected`` is the SHA-256 of
    the file the plan was made from, ``"absent"``, or None for whatever is there.
    """

    path: str
    text: str
    encoding: str = "utf-8"
    newline: Literal["", "\n", "\r\n"] = ""
    mode: int | None = None
    expected: str | None = None

    def data(self) -> bytes:
        text = self.text.replace("\n", self.newline) if self.newline else self.text
        return text.encode(self.encoding)


class CopyFile(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="copy-file"):
    """Copy a file to a name that does not exist yet."""

    source: str
    target: str


class MoveAside(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="move-aside"):
    """Rename a file or a folder to ``to``, in the same folder, where nothing is yet."""

    path: str
    to: str


class RemoveFile(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="remove-file"):
    """Remove a file; its content is saved first."""

    path: str
    expected: str | None = None


class SetUserVariable(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="set-user-variable"):
    """Write a value in HKCU\\Environment. ``expected`` is the value the plan was made from."""

    name: str
    value: str
    type: RegistryType
    expected: Variable


class UnsetUserVariable(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="unset-user-variable"):
    """Delete a value in HKCU\\Environment."""

    name: str
    expected: Variable


class EditKernelspec(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="edit-kernelspec"):
    """Change some keys of a kernel.json. ``changes`` is merged in; within ``env`` None removes a variable."""

    path: str
    changes: dict[str, Any]
    expected: str | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="run"):
    """Run a command without a shell.

    ``env`` changes the child's environment (None removes). ``python`` is the interpreter whose packages the
    command changes: they are read before and after, ``packages`` (name to version) must then be there, the
    distributions in ``whole`` must have every file of their RECORD, those in ``absent`` must be gone, and undo brings
    back the versions that were read before. ``undo_argv`` are the commands that do so, as far as they are known
    beforehand.
    """

    argv: tuple[str, ...]
    undo_argv: tuple[tuple[str, ...], ...] = ()
    env: dict[str, str | None] = {}
    cwd: str | None = None
    note: str = ""
    python: str | None = None
    packages: dict[str, str | None] = {}
    whole: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    limit: float = 3600.0


class BuildFolder(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="build-folder"):
    """Run commands, one after the other, that make a folder which is not there yet.

    ``python`` is an interpreter in that folder, of which ``packages`` (name to version) must be there afterwards;
    ``files`` are patterns of names of which the folder must then hold one each. Undo removes the folder, unless
    somebody has put something into it since.
    """

    path: str
    commands: tuple[tuple[str, ...], ...]
    env: dict[str, str | None] = {}
    cwd: str | None = None
    python: str | None = None
    packages: dict[str, str | None] = {}
    files: tuple[str, ...] = ()
    limit: float = 3600.0


class SetMachineValue(msgspec.Struct, frozen=True, kw_only=True, tag_field="step", tag="set-machine-value"):
    """Write a REG_DWORD below HKEY_LOCAL_MACHINE. ``expected`` is the value the plan was made from, None for none."""

    key: str
    name: str
    value: int
    expected: int | None


Step = (
    WriteFile
    | CopyFile
    | MoveAside
    | RemoveFile
    | SetUserVariable
    | UnsetUserVariable
    | EditKernelspec
    | Run
    | BuildFolder
    | SetMachineValue
)


class Verify(msgspec.Struct, frozen=True, kw_only=True):
    """How to see that it is cured: observe ``facts`` again in ``context``, ask ``probe``, expect a good answer.

    ``context``: ``fresh`` (bool, Windows: an environment rebuilt from the registry, as a new console gets it),
    ``kernel`` (name or None), ``env`` (changes for the child), ``python`` (another interpreter than the target).
    ``own`` is true where only this probe can see the cure, whichever probe saw the fault.
    """

    facts: tuple[str, ...]
    probe: str
    good_answers: tuple[str, ...]
    context: dict[str, Any] = {}
    own: bool = False


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A fix made out for one machine. ``title`` fills the placeholders of its words.

    ``commands`` stand for steps that only a person can take (a variable of a shell that runs already), by shell.
    ``undoable`` is false where taking it back would break the machine again; the fix's words say so.
    """

    fix: str
    steps: tuple[Step, ...]
    verify: Verify
    title: dict[str, str] = {}
    needs: tuple[str, ...] = ()
    risk: Risk = "safe"
    python: str | None = None
    predicted: tuple[Evidence, ...] = ()
    notes: tuple[Evidence, ...] = ()
    commands: dict[str, tuple[str, ...]] = {}
    undoable: bool = True

    @property
    def id(self) -> str:
        """The same for the same plan: a fingerprint of its content."""
        return hashlib.sha256(json.dumps(msgspec.to_builtins(self), sort_keys=True).encode("ascii")).hexdigest()[:12]


# What a step touches, as it is at one moment. Comparing two of these tells whether anyone else has changed it.


class FileState(msgspec.Struct, frozen=True, kw_only=True):
    """One file. ``sha256`` None: not there. ``saved`` is the key of its kept content in the journal's folder."""

    path: str
    sha256: str | None = None
    size: int | None = None
    mode: int | None = None
    saved: str | None = None
    missing_folders: tuple[str, ...] = ()


class Files(msgspec.Struct, frozen=True, kw_only=True, tag_field="state", tag="files"):
    files: tuple[FileState, ...]


class UserVariable(msgspec.Struct, frozen=True, kw_only=True, tag_field="state", tag="user-variable"):
    variable: Variable


class Packages(msgspec.Struct, frozen=True, kw_only=True, tag_field="state", tag="packages"):
    """Distributions of one interpreter, normalised name to version; ``damaged`` name to number of bad files."""

    python: str
    versions: dict[str, str]
    damaged: dict[str, int] = {}


class Folder(msgspec.Struct, frozen=True, kw_only=True, tag_field="state", tag="folder"):
    """A folder that commands make. ``fingerprint`` None: not there; it covers names, sizes and times of the files,
    not what Python itself writes when it runs. ``versions`` are the packages of the interpreter in it."""

    path: str
    fingerprint: str | None = None
    versions: dict[str, str] = {}
    missing_folders: tuple[str, ...] = ()


class MachineValue(msgspec.Struct, frozen=True, kw_only=True, tag_field="state", tag="machine-value"):
    key: str
    name: str
    value: int | None = None


class Nothing(msgspec.Struct, frozen=True, kw_only=True, tag_field="state", tag="nothing"):
    """A command whose effect is not known to us."""


State = Files | UserVariable | Packages | Folder | MachineValue | Nothing
