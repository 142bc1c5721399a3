"""Decide which files of a home are kept, by path and kind; credentials and settings never are.

While a truncated transcript still exists, the part it lost is shown as a session of its own. Its id is derived from
the session's id, since two transcripts with one id would be ambiguous.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid5

from msgspec import Struct

from threadline.find import (
    is_secret_path,
    is_transcript_path,
    look_with_names,
    parse_agent_id,
    parse_transcript_name,
    side_file_kind,
)
from threadline.model.homes import Home, SideFileKind, TranscriptKind
from threadline.model.places import Problem

KEPT_KINDS = frozenset(
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


class SourceFile(Struct, frozen=True):
    """A file to be kept: where it really lies, and its path below the home, as names lead to it there."""

    home: Home
    file: Path
    path: str


def find_source_files(home: Home, problems: list[Problem]) -> Iterator[SourceFile]:
    """The files of a home that are kept, in order of their paths; what could not be looked at goes to `problems`."""
    looked = look_with_names(home)
    found = looked.found
    problems.extend(found.problems)
    files = {transcript.path for transcript in found.transcripts}
    files |= {one.path for one in found.side_files if one.kind in KEPT_KINDS}
    for path, file in sorted((looked.paths[file], file) for file in files):
        yield SourceFile(home, file, path)


def is_kept_path(path: str) -> bool:
    """Whether a run keeps what lies at this path below a home. What else a manifest tells of was put there by hand."""
    parts = path.split("/")
    if is_secret_path(parts):
        return False
    return is_transcript_path(parts) or side_file_kind(parts) in KEPT_KINDS


_LOST_PART_NAME = "what was cut off"
_PROJECT_DEPTH = 2
"""Names of transcripts begin below projects/<folder>."""


def lost_part_path(path: str) -> str | None:
    """The path of what was cut off a transcript; None where it is no session's or agent's.

    A session's has an id that is made from the session's own: two transcripts of one name would be one too many for
    whoever asks for it by its id.
    """
    above, _slash, name = path.rpartition("/")
    parts = path.split("/")[_PROJECT_DEPTH:]
    kind = parse_transcript_name(parts).kind if parts else TranscriptKind.OTHER
    if kind is TranscriptKind.MAIN:
        return f"{above}/{lost_part_id(name.lower().removesuffix('.jsonl'))}.jsonl"
    if kind in (TranscriptKind.AGENT, TranscriptKind.WORKFLOW_AGENT):
        return f"{above}/agent-{parse_agent_id(name)}-before.jsonl"
    return None


def lost_part_id(session: str) -> str | None:
    """The id under which what a session lost is listed while its transcript is there, where its own is an id."""
    try:
        return str(uuid5(UUID(session), _LOST_PART_NAME))
    except ValueError:
        return None
