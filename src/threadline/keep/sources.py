"""Sources: the files of a home that are kept, by what they are; secrets and settings are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from threadline.find.looking import look_by_name
from threadline.find.side_files import PROJECTS, is_put_aside, is_secret, kind_of
from threadline.find.transcripts import is_transcript
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
    """A file to be kept: where it really lies, and its path below the home, as names lead to it there."""

    home: Home
    file: Path
    path: str


def sources(home: Home, problems: list[Problem]) -> Iterator[Source]:
    """The files of a home that are kept, in order of their paths; what could not be looked at goes to `problems`."""
    looked = look_by_name(home)
    found = looked.found
    problems.extend(found.problems)
    files = {one.path for one in found.transcripts}
    files |= {one.path for one in found.side_files if one.kind in KEPT}
    for path, file in sorted((looked.paths[file], file) for file in files):
        yield Source(home, file, path)


def is_source(path: str) -> bool:
    """Whether a run keeps what lies at this path below a home. What else a manifest tells of was put there by hand."""
    parts = path.split("/")
    if is_secret(parts):
        return False
    if parts[0] == PROJECTS and is_transcript(parts[-1]) and not is_put_aside(parts[2:]):
        return len(parts) > 1
    return kind_of(parts) in KEPT
