"""Where this machine's keep is, the machine's id, and when it last ran `keep`.

This is loaded on every start, with or without a keep, so it imports nothing heavy (no zstandard).

The machine's id and its last runs are stored on the machine, never in the keep, which several machines may share. A
hook that fails or a disk that is not mounted leaves no trace in a keep; the record of the last run reveals it.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Struct

from threadline import atomic
from threadline.errors import Unreadable

_OFF_VALUES = frozenset({"0", "off", "no", "false"})
KEEP_JSON = "keep.json"
LAST_RUNS_FILE = "keeps.json"
"""In a machine's own folder: where it keeps."""


def existing_keep_folder() -> str | None:
    """Where the keep lies, if there is one: `THREADLINE_KEEP`, or below the platform's folder for data."""
    folder = configured_keep_folder()
    if os.path.exists(os.path.join(folder, KEEP_JSON)):  # noqa: PTH110, PTH118 - the same
        return folder
    try:  # what says that it is a keep may be lost, and what is in it can still be read
        return folder if os.listdir(os.path.join(folder, "runs")) else None  # noqa: PTH118, PTH208 - the same
    except OSError:
        return None


def configured_keep_folder() -> str:
    """Where the keep lies, or would: `THREADLINE_KEEP`, or below the platform's folder for data."""
    said = os.environ.get("THREADLINE_KEEP") if is_keep_enabled() else None
    return os.path.expanduser(said) if said else os.path.join(data_folder(), "keep")  # noqa: PTH111, PTH118 - paths are text


def missing_keep_folder() -> str | None:
    """Where the keep was, if this machine has kept there and there is none any more: a disk may not be mounted."""
    if existing_keep_folder() is not None or not os.path.exists(os.path.join(data_folder(), LAST_RUNS_FILE)):  # noqa: PTH110, PTH118 - text
        return None
    from pathlib import Path  # noqa: PLC0415 - only where something is missed

    folder = configured_keep_folder()
    return folder if read_last_run(Path(data_folder()), Path(folder)) is not None else None


def is_keep_enabled() -> bool:
    """Whether the keep is read: `THREADLINE_KEEP=off` leaves it."""
    return os.environ.get("THREADLINE_KEEP", "").strip().lower() not in _OFF_VALUES


def data_folder() -> str:
    """The platform's folder for this program's data, where a machine has its id."""
    return os.path.join(_platform_data_folder(), "threadline")  # noqa: PTH118 - the same


def _platform_data_folder() -> str:
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.expanduser raises when at a loss
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")  # noqa: PTH118 - the same
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support")  # noqa: PTH118 - the same
    named = os.environ.get("XDG_DATA_HOME", "")
    return named if os.path.isabs(named) else os.path.join(home, ".local", "share")  # noqa: PTH117, PTH118 - the same


_INVALID_ID_CHARACTERS = re.compile(r"[^0-9A-Za-z_]+")
_ID_PATTERN = re.compile(r"[0-9A-Za-z_]{1,64}")
_MAX_LABEL_LENGTH = 24


class Machine(Struct, frozen=True):
    """Who keeps: `id` tells machines apart, `label` is for people; `memory` is where it remembers what keeps hold."""

    id: str
    label: str
    memory: Path | None = None


def this_machine(folder: Path | None = None) -> Machine:
    """This machine; its id lies in a folder of its own, never in the keep, which may be shared.

    Raises:
        Unreadable: the id cannot be put down.
    """
    folder = folder or machine_folder()
    label = platform.node() or "machine"
    path = folder / "machine"
    try:
        known = path.read_text(errors="replace").strip()
    except OSError:
        known = ""
    if _ID_PATTERN.fullmatch(known) is None:
        known = f"{_INVALID_ID_CHARACTERS.sub('_', label)[:_MAX_LABEL_LENGTH]}_{uuid4().hex[:8]}"
        save_machine_id(folder, known)
    return Machine(known, label, folder)


def save_machine_id(folder: Path, id_: str) -> None:
    """Put down this machine's id.

    Raises:
        Unreadable: it cannot be put down.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        atomic.write_file(folder, "machine", "machine", f"{id_}\n".encode())
    except OSError as error:
        said = f"This machine's id cannot be put in {str(folder / 'machine')!r}: {error.strerror or error}."
        raise Unreadable(said) from None


def machine_folder() -> Path:
    """Where a machine has its id and its memory: the platform's folder for data."""
    return Path(data_folder())


class LastRun(Struct, frozen=True):
    """The keep that was in a folder, by its id, and when a run into it last ended."""

    id: str
    ended: str


def read_last_run(machine: Path | None, folder: Path) -> LastRun | None:
    """What this machine, whose own folder is `machine`, knows of the keep in a folder."""
    return _read_last_runs(machine).get(os.path.realpath(folder)) if machine is not None else None


def missing_keep_message(machine: Path | None, folder: Path) -> str | None:
    """What to say of a keep that this machine has kept into and that is not there any more, if it has."""
    if read_last_run(machine, folder) is None:
        return None
    return f"The keep that was in {str(folder)!r} is not there. Is its disk mounted, or was it moved (--keep DIR)?"


def has_completed_run(machine: Path) -> bool:
    """Whether a run of this machine has ended anywhere."""
    return bool(_read_last_runs(machine))


def save_last_run(machine: Path | None, folder: Path, id_: str, ended: str) -> None:
    """Put by that a run ended. Not being able to harms nothing."""
    if machine is None:
        return
    known = {**_read_last_runs(machine), os.path.realpath(folder): LastRun(id_, ended)}
    with suppress(OSError):
        machine.mkdir(parents=True, exist_ok=True, mode=0o700)
        atomic.write_file(machine, "lately", LAST_RUNS_FILE, msgspec.json.encode(known, order="sorted"))


def _read_last_runs(machine: Path) -> dict[str, LastRun]:
    try:
        return msgspec.json.decode(atomic.read_small_file(machine / LAST_RUNS_FILE), type=dict[str, LastRun])
    except (OSError, msgspec.MsgspecError):
        return {}
