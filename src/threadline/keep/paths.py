"""What a path inside a home says: whether the file is kept, and which session it belongs to.

Credentials and settings are never kept. While a truncated transcript still exists, the part it lost is shown as a
session of its own. Its id is derived from the session's id, since two transcripts with one id would be ambiguous.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import UUID, uuid5

from msgspec import Struct

from threadline.find import (
    PROJECTS,
    is_secret_path,
    is_transcript_name,
    is_transcript_path,
    look_with_names,
    parse_agent_id,
    parse_session_id,
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
"""Side files of sessions, or about sessions. Not: credentials, settings, environments, logs, locks."""


_LOST_PART_NAME = "what was cut off"
"""The name from which ids of lost parts are derived."""
_PROJECT_DEPTH = 2
"""Paths of transcripts start with projects/<folder>."""
_SESSION_DEPTH = 3
"""projects/<folder>/<name>: the third part names a session or an agent."""
_META_SUFFIX = ".meta.json"


class SourceFile(Struct, frozen=True):
    """A file to keep: where it really is, and its path inside the home, which may lead there through symlinks."""

    home: Home
    file: Path
    path: str


def find_source_files(home: Home, problems: list[Problem]) -> Iterator[SourceFile]:
    """The files of a home that are kept, sorted by path. What could not be read is added to `problems`."""
    looked = look_with_names(home)
    listing = looked.found
    problems.extend(listing.problems)
    files = {transcript.path for transcript in listing.transcripts}
    files |= {side_file.path for side_file in listing.side_files if side_file.kind in KEPT_KINDS}
    for path, file in sorted((looked.paths[file], file) for file in files):
        yield SourceFile(home, file, path)


def is_kept_path(path: str) -> bool:
    """Whether a run keeps the file at this path. Only a crafted manifest contains other paths."""
    parts = path.split("/")
    if is_secret_path(parts):
        return False
    return is_transcript_path(parts) or side_file_kind(parts) in KEPT_KINDS


def is_session_transcript(path: str) -> bool:
    """Whether a path is that of a session's or an agent's transcript."""
    return path.startswith(f"{PROJECTS}/") and is_transcript_name(Path(path).name) and "/tool-results/" not in path


def session_of_main_transcript(path: str) -> str | None:
    """The session whose own transcript has this path; None for any other path."""
    parts = path.split("/")
    if len(parts) != _SESSION_DEPTH or parts[0] != PROJECTS or not is_transcript_name(parts[-1]):
        return None
    name = parse_transcript_name(parts[2:])
    return name.session if name.kind is TranscriptKind.MAIN else None


def has_unique_name(path: str) -> bool:
    """Whether a path contains the id of a session or an agent, which no other file has."""
    parts = path.split("/")
    if parts[0] != PROJECTS:
        return any(parse_session_id(part) is not None for part in parts[1:])
    return len(parts) >= _SESSION_DEPTH and (
        parse_session_id(parts[2]) is not None or parse_agent_id(parts[2]) is not None
    )


def referring_file(parts: Sequence[str]) -> str | None:
    """The path of the file that says which session this file belongs to, if its own path does not."""
    if parts[0] == PROJECTS and len(parts) == _SESSION_DEPTH:
        name = parts[2].removesuffix(_META_SUFFIX) + ".jsonl" if parts[2].endswith(_META_SUFFIX) else parts[2]
        return "/".join([*parts[:2], name]) if parse_agent_id(name) is not None else None
    if len(parts) < _SESSION_DEPTH:
        return None
    if parts[0] in ("teams", "tasks"):
        return f"teams/{parts[1]}/config.json"
    return f"jobs/{parts[1]}/state.json" if parts[0] == "jobs" else None


def lost_part_path(path: str) -> str | None:
    """The path for the lost part of a truncated transcript; None if it is not a session's or an agent's."""
    folder, _slash, name = path.rpartition("/")
    parts = path.split("/")[_PROJECT_DEPTH:]
    kind = parse_transcript_name(parts).kind if parts else TranscriptKind.OTHER
    if kind is TranscriptKind.MAIN:
        return f"{folder}/{lost_part_id(name.lower().removesuffix('.jsonl'))}.jsonl"
    if kind in (TranscriptKind.AGENT, TranscriptKind.WORKFLOW_AGENT):
        return f"{folder}/agent-{parse_agent_id(name)}-before.jsonl"
    return None


def lost_part_id(session: str) -> str | None:
    """The id under which the lost part of a session is listed; None if the session's id is not a UUID."""
    try:
        return str(uuid5(UUID(session), _LOST_PART_NAME))
    except ValueError:
        return None
