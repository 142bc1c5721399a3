"""Find sessions that are running now, from the registry of live processes in a home.

This is a module of its own because few homes have running sessions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from threadline.files import is_running
from threadline.model.homes import SideFile, SideFileKind
from threadline.model.places import SessionId
from threadline.model.side_files import LiveSession
from threadline.parse import read_side_content

_START_TIME_FIELD = 19
"""The index of the start time in `/proc/<pid>/stat`, counted after the name."""


def find_running_sessions(side_files: Iterable[SideFile]) -> set[SessionId]:
    """Return the sessions whose process is alive.

    After `/clear`, the id in the registry is stale: it names the previous session.
    """
    sessions: set[SessionId] = set()
    for side in side_files:
        if side.kind is not SideFileKind.LIVE_SESSION or not side.path.stem.isdecimal():
            continue
        live = read_side_content(side.path, side.home.path, LiveSession)
        if live is not None and live.session_id is not None and _is_alive(live):
            sessions.add(live.session_id)
    return sessions


def _is_alive(live: LiveSession) -> bool:
    # On Windows, nobody can tell.
    if live.pid is None or live.pid <= 0 or os.name == "nt" or not is_running(live.pid):
        return False
    started = _process_start_time(live.pid)
    recorded = str(live.proc_start) if live.proc_start is not None else None
    # Pids are reused: if both start times are known, they must agree.
    return started is None or recorded is None or not recorded.isdecimal() or recorded == started


def _process_start_time(pid: int) -> str | None:
    """Return when a process began, as Linux counts it; None if that is unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    after_name = stat.rpartition(")")[2].split()
    return after_name[_START_TIME_FIELD] if len(after_name) > _START_TIME_FIELD else None
