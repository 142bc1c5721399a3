"""Where this machine's keep is, the machine's id, and when it last ran `keep`.

This is loaded on every start, with or without a keep, so it imports nothing heavy (no zstandard).

The id and the last runs are stored on the machine, never in the keep, which several machines may share. A hook that
fails or a disk that is not mounted leaves no trace in a keep; the record of the last run reveals it.
"""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import msgspec
from msgspec import Meta, Struct

from threadline import files
from threadline.errors import Unreadable

_OFF_VALUES = frozenset({"0", "off", "no", "false"})
KEEP_JSON = "keep.json"
MACHINE_FILE = "machine"
LAST_RUNS_FILE = "keeps.json"
KeepId = Annotated[str, Meta(pattern=r"^[0-9A-Za-z-]{0,64}\Z")]
"""The id of a keep. Files and folders are named after it, and a keep may come from anywhere."""


def is_keep_enabled() -> bool:
    """Whether the keep is read: `THREADLINE_KEEP=off` turns it off."""
    return os.environ.get("THREADLINE_KEEP", "").strip().lower() not in _OFF_VALUES


def configured_keep_folder() -> str:
    """Where the keep is, or would be: `THREADLINE_KEEP`, or `keep` in the data folder."""
    folder = os.environ.get("THREADLINE_KEEP") if is_keep_enabled() else None
    return os.path.expanduser(folder) if folder else os.path.join(files.data_folder(), "keep")  # noqa: PTH111, PTH118 - paths are text


def existing_keep_folder() -> str | None:
    """The configured folder, if there is a keep in it."""
    folder = configured_keep_folder()
    if os.path.exists(os.path.join(folder, KEEP_JSON)):  # noqa: PTH110, PTH118 - the same
        return folder
    try:  # keep.json may be lost; the rest can still be read
        return folder if os.listdir(os.path.join(folder, "runs")) else None  # noqa: PTH118, PTH208 - the same
    except OSError:
        return None


def missing_keep_folder() -> str | None:
    """The configured folder, if this machine has kept into it and no keep is there now: is a disk not mounted?"""
    if existing_keep_folder() is not None or not os.path.exists(os.path.join(files.data_folder(), LAST_RUNS_FILE)):  # noqa: PTH110, PTH118 - text
        return None
    folder = configured_keep_folder()
    return folder if read_last_run(machine_folder(), Path(folder)) is not None else None


def missing_keep_message(machine: Path | None, folder: Path) -> str | None:
    """The message about a keep that this machine has kept into and that is missing now; None if it has not."""
    if read_last_run(machine, folder) is None:
        return None
    return f"The keep in {str(folder)!r} is missing. Mount its disk, or name its new place with --keep DIR."


def machine_folder() -> Path:
    """The platform's folder for threadline's data: the machine's id, its last runs, and caches about keeps."""
    return Path(files.data_folder())


_INVALID_ID_CHARACTERS = re.compile(r"[^0-9A-Za-z_]+")
_ID_PATTERN = re.compile(r"[0-9A-Za-z_]{1,64}")
_MAX_LABEL_LENGTH = 24


class Machine(Struct, frozen=True):
    """A machine that keeps: its unique id, its host name, and the folder where it stores caches about keeps."""

    id: str
    label: str
    folder: Path | None = None

    @property
    def has_completed_run(self) -> bool:
        """Whether it has completed a run into any keep."""
        return self.folder is not None and bool(_read_last_runs(self.folder))

    def require_known_recipients(self, folder: Path, id_: str, recipients: tuple[str, ...]) -> None:
        """Make sure that what this machine adds to a keep is encrypted for the same public keys as before.

        Whoever can write to the folder of a keep can change keep.json, which names them.

        Raises:
            Unreadable: this machine has stored into this folder, or into a keep with this id, for other keys.
        """
        runs = _read_last_runs(self.folder) if self.folder is not None else {}
        path = os.path.realpath(folder)
        known = {run.recipients for at, run in runs.items() if at == path or run.id == id_} - {None}
        if known and recipients not in known:
            change = "encrypted for other keys" if recipients else "not encrypted any more"
            raise Unreadable(
                f"According to keep.json, the keep {str(folder)!r} is {change}, so nothing was added. If"
                " somebody changed that file, restore it from a copy of the keep. If this is another keep of yours, use"
                " another folder."
            )

    def last_run(self, folder: Path) -> LastRun | None:
        """The last run of this machine into the keep in a folder."""
        return read_last_run(self.folder, folder)


def this_machine(folder: Path | None = None) -> Machine:
    """This machine. Its id is created on first use.

    Raises:
        Unreadable: the id cannot be saved.
    """
    folder = folder or machine_folder()
    label = platform.node() or "machine"
    id_ = read_machine_id(folder)
    if id_ is None or _ID_PATTERN.fullmatch(id_) is None:
        id_ = f"{_INVALID_ID_CHARACTERS.sub('_', label)[:_MAX_LABEL_LENGTH]}_{uuid4().hex[:8]}"
        save_machine_id(folder, id_)
    return Machine(id_, label, folder)


def read_machine_id(folder: Path) -> str | None:
    """This machine's id, if it has one."""
    try:
        return (folder / MACHINE_FILE).read_text(errors="replace").strip() or None
    except OSError:
        return None


def save_machine_id(folder: Path, id_: str) -> None:
    """Save this machine's id.

    Raises:
        Unreadable: it cannot be saved.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.write_file(folder / MACHINE_FILE, f"{id_}\n".encode())
    except OSError as error:
        message = f"Cannot save this machine's id in {str(folder / MACHINE_FILE)!r}: {error.strerror or error}."
        raise Unreadable(message) from None


class LastRun(Struct, frozen=True, omit_defaults=True):
    """The id of the keep that was in a folder, when a run into it last ended, and the public keys that it was for.

    `recipients` is None if an earlier version of threadline wrote the record.
    """

    id: str
    ended: str
    recipients: tuple[str, ...] | None = None


def read_last_run(machine: Path | None, folder: Path) -> LastRun | None:
    """The last run of this machine, whose own folder is `machine`, into the keep in `folder`."""
    return _read_last_runs(machine).get(os.path.realpath(folder)) if machine is not None else None


def save_last_run(machine: Path | None, folder: Path, run: LastRun | None) -> None:
    """Record that a run ended, or forget the last one. Failing to write the record is not an error."""
    if machine is None:
        return
    runs = _read_last_runs(machine)
    runs.pop(os.path.realpath(folder), None)
    if run is not None:
        runs[os.path.realpath(folder)] = run
    with suppress(OSError):
        machine.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.write_file(machine / LAST_RUNS_FILE, msgspec.json.encode(runs, order="sorted"))


def _read_last_runs(machine: Path) -> dict[str, LastRun]:
    try:
        return msgspec.json.decode(
            files.read_file(machine / LAST_RUNS_FILE, follow_symlinks=False), type=dict[str, LastRun]
        )
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}
