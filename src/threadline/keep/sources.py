"""Sources: the files of a home that are kept, by what they are; secrets and settings are not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from threadline.find import look
from threadline.find.links import real_projects
from threadline.find.side_files import PROJECTS
from threadline.model.found import Home, SideFileKind
from threadline.model.problem import Problem

KEPT = frozenset(
    {
        SideFileKind.HISTORY,
        SideFileKind.TODOS,
        SideFileKind.TASK,
        SideFileKind.TASK_MARK,
        SideFileKind.TEAM,
        SideFileKind.INBOX,
        SideFileKind.FILE_HISTORY,
        SideFileKind.TOOL_RESULT,
        SideFileKind.AGENT_META,
        SideFileKind.TITLE,
        SideFileKind.SESSIONS_INDEX,
        SideFileKind.SESSION_ALIASES,
        SideFileKind.STATS_CACHE,
        SideFileKind.PLAN,
        SideFileKind.JOB,
        SideFileKind.WORKFLOW_RUN,
        SideFileKind.WORKFLOW_SCRIPT,
        SideFileKind.MEMORY,
        SideFileKind.PASTE,
        SideFileKind.IMAGE,
        SideFileKind.USAGE_DATA,
    }
)
"""Side files that a session left, or that tell of sessions. Not: credentials, settings, environments, logs, locks."""


class Source(Struct, frozen=True):
    """A file to be kept: where it lies, and its path below the home."""

    home: Home
    file: Path
    path: str


def sources(home: Home, problems: list[Problem]) -> Iterator[Source]:
    """The files of a home that are kept, in order of their paths; what could not be looked at goes to `problems`."""
    found = look(home)
    problems.extend(found.problems)
    files = [one.path for one in found.transcripts]
    files += [one.path for one in found.side_files if one.kind in KEPT]
    top = os.path.realpath(home.path)
    moved = real_projects(top)
    for file in sorted(set(files)):
        yield Source(home, file, _below(os.fspath(file), top, moved))


def _below(file: str, top: str, moved: str | None) -> str:
    """A file's path below its home. Where `projects` is a link, it is as if what that leads to lay there."""
    if moved is not None and file.startswith(moved.rstrip(os.sep) + os.sep):
        return f"{PROJECTS}/{os.path.relpath(file, moved)}".replace(os.sep, "/")
    return os.path.relpath(file, top).replace(os.sep, "/")
