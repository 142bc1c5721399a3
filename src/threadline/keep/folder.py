"""The folder of the keep that is read unless another is named; looked for on every start, so it loads nothing."""

from __future__ import annotations

import os
import sys

_OFF = frozenset({"0", "off", "no", "false"})
ABOUT = "keep.json"
KEEPS = "keeps.json"
"""In a machine's own folder: where it keeps."""


def keep_folder() -> str | None:
    """Where the keep lies, if there is one: `THREADLINE_KEEP`, or below the platform's folder for data."""
    folder = usual_folder()
    if os.path.exists(os.path.join(folder, ABOUT)):  # noqa: PTH110, PTH118 - the same
        return folder
    try:  # what says that it is a keep may be lost, and what is in it can still be read
        return folder if os.listdir(os.path.join(folder, "runs")) else None  # noqa: PTH118, PTH208 - the same
    except OSError:
        return None


def usual_folder() -> str:
    """Where the keep lies, or would: `THREADLINE_KEEP`, or below the platform's folder for data."""
    said = os.environ.get("THREADLINE_KEEP") if is_read() else None
    return os.path.expanduser(said) if said else os.path.join(data_folder(), "keep")  # noqa: PTH111, PTH118 - paths are text


def lost_folder() -> str | None:
    """Where the keep was, if this machine has kept there and there is none any more: a disk may not be mounted."""
    if keep_folder() is not None or not os.path.exists(os.path.join(data_folder(), KEEPS)):  # noqa: PTH110, PTH118 - text
        return None
    from pathlib import Path  # noqa: PLC0415 - only where something is missed

    from threadline.keep.lately import lately  # noqa: PLC0415 - the same

    folder = usual_folder()
    return folder if lately(Path(data_folder()), Path(folder)) is not None else None


def is_read() -> bool:
    """Whether the keep is read: `THREADLINE_KEEP=off` leaves it."""
    return os.environ.get("THREADLINE_KEEP", "").strip().lower() not in _OFF


def data_folder() -> str:
    """The platform's folder for this program's data, where a machine has its id."""
    return os.path.join(_data(), "threadline")  # noqa: PTH118 - the same


def _data() -> str:
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.expanduser raises when at a loss
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")  # noqa: PTH118 - the same
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support")  # noqa: PTH118 - the same
    named = os.environ.get("XDG_DATA_HOME", "")
    return named if os.path.isabs(named) else os.path.join(home, ".local", "share")  # noqa: PTH117, PTH118 - the same
