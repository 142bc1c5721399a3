"""Find sessions that are running now, from the registry of live processes in a home."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from threadline.errors import Error
from threadline.model.homes import SideFile, SideFileKind
from threadline.model.places import SessionId
from threadline.model.side_files import LiveSession
from threadline.parse import read_side_file

_START_TIME_FIELD = 19
"""Where a process's start time stands in `/proc/<pid>/stat`, counted after its name."""


def find_running_sessions(side_files: Iterable[SideFile]) -> set[SessionId]:
    """The sessions whose process is alive. A registry's id goes stale after `/clear`: then it names the one before."""
    found: set[SessionId] = set()
    for side in side_files:
        if side.kind is not SideFileKind.LIVE_SESSION or not side.path.stem.isdecimal():
            continue
        with suppress(Error):
            live = read_side_file(side).content
            if isinstance(live, LiveSession) and live.session_id is not None and _is_alive(live):
                found.add(live.session_id)
    return found


def _is_alive(live: LiveSession) -> bool:
    if live.pid is None or live.pid <= 0 or not _process_exists(live.pid):
        return False
    started = _process_start_time(live.pid)
    told = str(live.proc_start) if live.proc_start is not None else None
    # Pids are used again; where both say when the process began, they must agree.
    return started is None or told is None or not told.isdecimal() or told == started


def _process_exists(pid: int) -> bool:
    if os.name == "nt":  # there, signal 0 would end it
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True  # somebody else's
    except (OSError, OverflowError):
        return False
    return True


def _process_start_time(pid: int) -> str | None:
    """When a process began, as Linux counts it; None where that cannot be told."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    after_name = stat.rpartition(")")[2].split()
    return after_name[_START_TIME_FIELD] if len(after_name) > _START_TIME_FIELD else None
