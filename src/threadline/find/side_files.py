"""What a file beside the transcripts is, by its path alone."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from threadline.find.transcripts import session_id
from threadline.model.found import SideFileKind
from threadline.model.secret import is_secret_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from threadline.model.ids import SessionId

PROJECTS: Final = "projects"

# The directories of a home that are looked into, and what their files are unless `_BY_NAME` knows better.
# Every other directory is named in `Found.not_entered`: plugins, skills and caches can hold whole
# repositories, and none of it is what a session left behind.
_DIRECTORIES: Final = {
    "todos": SideFileKind.TODOS,
    "tasks": SideFileKind.TASK,
    "teams": SideFileKind.OTHER,
    "file-history": SideFileKind.FILE_HISTORY,
    "plans": SideFileKind.PLAN,
    "shell-snapshots": SideFileKind.SHELL_SNAPSHOT,
    "session-env": SideFileKind.SESSION_ENV,
    "sessions": SideFileKind.OTHER,
    "jobs": SideFileKind.JOB,
    "daemon": SideFileKind.JOB,
    "ide": SideFileKind.IDE_LOCK,
    "paste-cache": SideFileKind.PASTE,
    "image-cache": SideFileKind.IMAGE,
    "debug": SideFileKind.DEBUG,
    "usage-data": SideFileKind.USAGE_DATA,
    "backups": SideFileKind.OTHER,
    PROJECTS: SideFileKind.OTHER,
}

# Patterns of paths below the home by the directory they lie in, first match wins; those of all others come last.
_BY_NAME: Final[dict[str, tuple[tuple[str, SideFileKind], ...]]] = {
    "backups": ((r"backups/\.claude\.json.*", SideFileKind.CONFIG),),
    "tasks": ((r"tasks/([^/]*/)*\.[^/]*", SideFileKind.TASK_MARK),),
    "teams": (
        (r"teams/[^/]*/config\.json", SideFileKind.TEAM),
        (r"teams/[^/]*/inboxes/.*", SideFileKind.INBOX),
    ),
    "sessions": ((r"sessions/[0-9]+\.json", SideFileKind.LIVE_SESSION),),
    PROJECTS: (
        (r"projects/[^/]*/sessions-index\.json", SideFileKind.SESSIONS_INDEX),
        (r"projects/[^/]*/\.session-aliases", SideFileKind.SESSION_ALIASES),
        (r"projects/[^/]*/memory/.*", SideFileKind.MEMORY),
        (r"projects/[^/]*/[^/]*/tool-results/.*", SideFileKind.TOOL_RESULT),
        (r"projects/[^/]*/[^/]*/workflows/scripts/.*", SideFileKind.WORKFLOW_SCRIPT),
        (r"projects/[^/]*/[^/]*/workflows/[^/]*\.json", SideFileKind.WORKFLOW_RUN),
        (r"projects/.*/agent-[^/]*\.meta\.json", SideFileKind.AGENT_META),
        (r"projects/[^/]*/[^/]*/custom-title\.json", SideFileKind.TITLE),
    ),
    "": (
        (r"history\.jsonl", SideFileKind.HISTORY),
        (r"stats-cache\.json", SideFileKind.STATS_CACHE),
        (r"\.claude\.json.*|\.config\.json", SideFileKind.CONFIG),
        (r"([^/]*-)?settings(\.[^/]*)?\.json", SideFileKind.SETTINGS),
    ),
}

BY_NAME_ONLY: Final = frozenset({SideFileKind.SECRET, SideFileKind.SETTINGS})
"""Kinds that are listed from the directory entry alone: not opened, and not even asked for their size."""

MARKS: Final = frozenset(
    {
        PROJECTS,
        "todos",
        "file-history",
        "shell-snapshots",
        "session-env",
        "paste-cache",
        "image-cache",
        "history.jsonl",
        "stats-cache.json",
        "settings.json",
        ".credentials.json",
    }
)
"""Names by which a directory is recognised as a home; the others are common elsewhere as well."""


def kind_of(parts: Sequence[str]) -> SideFileKind:
    """Say what the file at this path below its home is; `OTHER` where nothing is known."""
    if is_secret(parts):
        return SideFileKind.SECRET
    path = "/".join(parts)
    for matches, kind in _patterns(parts[0]):
        if matches(path):
            return kind
    return _DIRECTORIES.get(parts[0], SideFileKind.OTHER) if len(parts) > 1 else SideFileKind.OTHER


@cache
def _patterns(directory: str) -> tuple[tuple[Callable[[str], re.Match[str] | None], SideFileKind], ...]:
    """The patterns of what lies in a directory; made when they are first asked for, which few commands do."""
    known = directory if directory in _DIRECTORIES else ""
    return tuple((re.compile(pattern, re.DOTALL).fullmatch, kind) for pattern, kind in _BY_NAME.get(known, ()))


def session_of(parts: Sequence[str]) -> SessionId | None:
    """Give the session the path names: below a project in its first part, elsewhere in any."""
    candidates = parts[2:3] if parts[0] == PROJECTS else parts[1:]
    return next((named for part in candidates if (named := session_id(part))), None)


def is_secret(parts: Sequence[str]) -> bool:
    """Say whether a file must never be opened, by its name alone."""
    # Below a project the word is the user's own: a memory may well be called security_notes.md.
    is_ours = parts[-1].lower().startswith("security_") and parts[0] != PROJECTS
    return is_ours or is_secret_name(parts[-1])


PUT_ASIDE: Final = frozenset({"memory", "tool-results", "scripts"})
"""The last names of the directories that are put aside; elsewhere, others may be called so."""


def is_put_aside(parts: Sequence[str]) -> bool:
    """Say whether a path below a project's folder lies where a `.jsonl` is no transcript.

    There it is what a tool printed, what the model noted down, or a workflow's source.
    """
    return len(parts) > 1 and (
        parts[0] == "memory" or parts[1] == "tool-results" or tuple(parts[1:3]) == ("workflows", "scripts")
    )


def is_entered(directory: str) -> bool:
    """Say whether a directory of the home is looked into."""
    return directory in _DIRECTORIES
