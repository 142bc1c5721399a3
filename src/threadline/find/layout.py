"""What a path inside a Claude Code home means: transcripts, side files and project folders.

Names of transcripts below `projects/<folder>/`, in every layout that Claude Code has used:

====================================================  ==============  ===============
name                                                  kind            since
====================================================  ==============  ===============
`<session>.jsonl`                                     main            about 0.2.9x
`agent-<id>.jsonl`                                    agent           2.0.28 to 2.1.1
`<session>/subagents/**/agent-<id>.jsonl`             agent           2.1.2
`<session>/subagents/workflows/<run>/agent-*.jsonl`   workflow-agent  2.1.154
`<session>/subagents/workflows/<run>/journal.jsonl`   journal         2.1.154
any other `.jsonl`                                    other
====================================================  ==============  ===============

A session's id is the name of its file, whatever its rows say. Claude Code uses UUIDs; a file with any other name may
be a session as well, and its rows decide whether it is listed. In a `subagents` directory every transcript is an
agent's, whatever its name.

A project's folder is named after its path, and the rule loses information: `/a/b`, `/a-b` and `/a_b` all give `-a-b`.
It cannot be inverted; `project_paths` finds the true path by evidence.
"""

from __future__ import annotations

import os
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from threadline.files import escape_path
from threadline.home_files import PROJECTS_DIR, is_secret_path
from threadline.model.homes import Home, SideFileKind, Transcript, TranscriptKind
from threadline.model.places import AgentId, SessionId

if TYPE_CHECKING:
    from collections.abc import Sequence

TRANSCRIPT_SUFFIX: Final = ".jsonl"
META_SUFFIX: Final = ".meta.json"
SESSIONS_INDEX: Final = "sessions-index.json"
CONFIG_NAME: Final = ".claude.json"
"""The configuration file, which is beside a home called `.claude`, and in others."""
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# Any version of UUID: the format has used several. A longer run of hex digits is not a UUID.
_STARTS_WITH_UUID = re.compile(rf"({_UUID})(?![0-9a-z])", re.IGNORECASE)
_AGENT_NAME = re.compile(r"agent-(.+)\.jsonl", re.IGNORECASE | re.DOTALL)


class TranscriptName(NamedTuple):
    """The kind of transcript that a path names, and its session, agent and workflow run."""

    kind: TranscriptKind
    session: SessionId | None = None
    agent: AgentId | None = None
    run: str | None = None


def home_of_transcript(main: Path) -> Path | None:
    """Return the home that a main transcript is in, by its path; None if it is not in a home."""
    parents = main.absolute().parents
    return parents[2] if len(parents) > _HOME_DEPTH and parents[1].name == PROJECTS else None


def home_of_path(path: Path) -> Path | None:
    """Return the home that a transcript of any kind is in, by its path; None if it is not in a home."""
    parents = path.absolute().parents
    return next((parent.parent for parent in parents if parent.name == PROJECTS and parent != parents[0]), None)


def parse_transcript_name(parts: Sequence[str]) -> TranscriptName:
    """Parse the path of a `.jsonl`; `parts` are those below the project's folder."""
    *above, name = parts
    if not above:
        return _parse_top_level_name(name)
    if len(above) == 1 or above[1] != _AGENTS:
        return TranscriptName(TranscriptKind.OTHER, parse_session_id(above[0]))
    session = session_id_from_name(above[0])
    run = _workflow_run(above[2:])
    if name == "journal.jsonl":
        return TranscriptName(TranscriptKind.OTHER if run is None else TranscriptKind.JOURNAL, session, run=run)
    kind = TranscriptKind.AGENT if run is None else TranscriptKind.WORKFLOW_AGENT
    return TranscriptName(kind, session, parse_agent_id(name) or AgentId(transcript_stem(name)), run)


def parts_below_project(path: Path) -> tuple[str, ...]:
    """Return the parts of a transcript's path below its project's folder, in a home or anywhere else."""
    parts = path.absolute().parts
    # An agent's transcript is below its session's directory, at least two levels down.
    agents = _last_index(parts, _AGENTS)
    return parts[agents - 1 :] if agents > 0 and _last_index(parts, PROJECTS) < agents else parts[-1:]


def _last_index(parts: tuple[str, ...], name: str) -> int:
    """Return the position of the last directory of this name; -1 if there is none."""
    return max((at for at, part in enumerate(parts[:-1]) if part == name), default=-1)


def session_of_path(path: Path) -> SessionId | None:
    """Return the session that a transcript's path names; None for an agent's transcript beside the sessions."""
    return parse_transcript_name(parts_below_project(path)).session


def is_agent_path(path: Path) -> bool:
    """Whether a transcript is an agent's, by its path."""
    return parse_transcript_name(parts_below_project(path)).agent is not None


def make_transcript(
    path: Path, home: Home, folder: str, status: os.stat_result, below: Sequence[str], *, meta: Path | None = None
) -> Transcript:
    """Make the transcript at a path; `below` are the path's parts below the project's folder."""
    name = parse_transcript_name(below)
    return Transcript(
        path=path,
        home=home,
        folder=folder,
        kind=name.kind,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        session=name.session,
        agent=name.agent,
        run=name.run,
        meta=meta if name.agent is not None else None,
    )


def parse_session_id(name: str) -> SessionId | None:
    """Return the UUID that a file or directory name begins with. Ids that differ in case are different sessions."""
    match = _STARTS_WITH_UUID.match(name)
    return SessionId(match[1]) if match else None


def session_id_from_name(name: str) -> SessionId:
    """Return the session's id for the name of its file (without the suffix) or its directory.

    It is the name itself: ids that differ in case are different sessions. `escape_path` writes bytes that are not text.
    """
    return SessionId(name if name.isascii() else escape_path(name))


def transcript_stem(name: str) -> str:
    """Return the name of a transcript without `.jsonl`."""
    return name[: -len(TRANSCRIPT_SUFFIX)]


def parse_agent_id(name: str) -> AgentId | None:
    """Return the id in `agent-<id>.jsonl`."""
    match = _AGENT_NAME.fullmatch(name)
    return AgentId(match[1]) if match else None


_LAST_LETTERS = frozenset(TRANSCRIPT_SUFFIX[-1] + TRANSCRIPT_SUFFIX[-1].upper())


def is_transcript_name(name: str) -> bool:
    """Whether a file of this name below a project is a transcript of any kind."""
    return name[-1:] in _LAST_LETTERS and name.lower().endswith(TRANSCRIPT_SUFFIX)


def meta_path(transcript: str) -> str:
    """Return the path that the `.meta.json` of an agent's transcript has."""
    return transcript[: -len(TRANSCRIPT_SUFFIX)] + META_SUFFIX


def _parse_top_level_name(name: str) -> TranscriptName:
    if (agent := parse_agent_id(name)) is not None:
        return TranscriptName(TranscriptKind.AGENT, agent=agent)
    if name.startswith((".", "agent-")):  # hidden files are copies that a system made for itself
        return TranscriptName(TranscriptKind.OTHER)
    return TranscriptName(TranscriptKind.MAIN, session_id_from_name(transcript_stem(name)))


def _workflow_run(directories: Sequence[str]) -> str | None:
    if "workflows" not in directories:
        return None
    below = directories[directories.index("workflows") + 1 :]
    return below[0] if below else None


PROJECTS: Final = PROJECTS_DIR
_AGENTS = "subagents"
_HOME_DEPTH = 2
"""A main transcript is `<home>/projects/<folder>/<session>.jsonl`: its home is this many folders above its own."""

# The directories of a home that are listed, and the kind of their files unless `_KIND_PATTERNS` has another.
# `Found.not_entered` names all others: plugins, skills and caches can contain whole repositories, and nothing that a
# session has written.
_KIND_BY_DIRECTORY: Final = {
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

# Patterns of paths below the home, by top-level directory; "" is for all others. The first match wins.
_KIND_PATTERNS: Final[dict[str, tuple[tuple[str, SideFileKind], ...]]] = {
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
        (r"projects/[^/]*/[^/]*/subagents/.*\.meta\.json", SideFileKind.AGENT_META),
        (r"projects/[^/]*/[^/]*/custom-title\.json", SideFileKind.TITLE),
    ),
    "": (
        (r"history\.jsonl", SideFileKind.HISTORY),
        (r"stats-cache\.json", SideFileKind.STATS_CACHE),
        (r"\.claude\.json.*|\.config\.json", SideFileKind.CONFIG),
        (r"([^/]*-)?settings(\.[^/]*)?\.json", SideFileKind.SETTINGS),
    ),
}

NEVER_OPENED: Final = frozenset({SideFileKind.SECRET, SideFileKind.SETTINGS})
"""Kinds that are listed from the directory entry alone: never opened, and not even asked for their size."""

HOME_MARKERS: Final = frozenset(
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
"""Names that identify a directory as a home; other names in a home are common elsewhere, too."""


def side_file_kind(parts: Sequence[str]) -> SideFileKind:
    """Return the kind of the file at this path below its home; `OTHER` if nothing is known about it."""
    if is_secret_path(parts):
        return SideFileKind.SECRET
    path = "/".join(parts)
    for pattern, kind in _KIND_PATTERNS.get(parts[0] if parts[0] in _KIND_BY_DIRECTORY else "", ()):
        if _compile_pattern(pattern).fullmatch(path):
            return kind
    return _KIND_BY_DIRECTORY.get(parts[0], SideFileKind.OTHER) if len(parts) > 1 else SideFileKind.OTHER


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern on first use; most commands need few of them."""
    return re.compile(pattern, re.DOTALL)


def session_in_path(parts: Sequence[str]) -> SessionId | None:
    """Return the session that a path names: below a project in its first part, elsewhere in any."""
    if parts[0] != PROJECTS:
        return next((session for part in parts[1:] if (session := parse_session_id(part))), None)
    below = parts[2:]
    if not below or (len(below) > 1 and below[0] == "memory"):
        return None
    if is_transcript_name(below[-1]) and not is_non_transcript_path(below):
        return parse_transcript_name(below).session
    if len(below) > 1 and below[1] in _SESSION_SUBDIRECTORIES:
        return session_id_from_name(below[0])
    return parse_session_id(below[0])


_SESSION_SUBDIRECTORIES = frozenset({_AGENTS, "tool-results", "workflows"})
"""Only a session's directory contains these."""

NON_TRANSCRIPT_DIRS: Final = frozenset({"memory", "tool-results", "scripts"})
"""Names of the directories that `is_non_transcript_path` excludes; other directories may have them, too."""


def is_non_transcript_path(parts: Sequence[str]) -> bool:
    """Whether a path below a project's folder is in a directory where a `.jsonl` is not a transcript.

    There it is a tool's output, the model's memory or a workflow's source.
    """
    return len(parts) > 1 and (
        parts[0] == "memory" or parts[1] == "tool-results" or tuple(parts[1:3]) == ("workflows", "scripts")
    )


def is_transcript_path(parts: Sequence[str]) -> bool:
    """Whether the file at this path below its home is a transcript of any kind."""
    return (
        parts[0] == PROJECTS
        and is_transcript_name(parts[-1])
        and not is_non_transcript_path(parts[2:])
        and not is_secret_path(parts)
    )


def is_scanned_directory(directory: str) -> bool:
    """Whether a top-level directory of a home is listed."""
    return directory in _KIND_BY_DIRECTORY


MAX_FOLDER_NAME = 200
"""Longer names are cut here, and a hash of the path is appended."""

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_NOT_ALPHANUMERIC = re.compile("[^A-Za-z0-9]")
_WINDOWS_PATH = re.compile(r"[A-Za-z]:|\\\\")
_BASE36_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def folder_name(path: str | os.PathLike[str]) -> str:
    """Return the name of the folder under `projects/` for a project at this path, which is not resolved.

    A name longer than 200 characters gets the suffix of the Node builds. Native builds hash differently, so compare
    with `folder_matches`, never with `==`.

    >>> folder_name("/Users/me/my_proj.v2")
    '-Users-me-my-proj-v2'
    """
    normal = unicodedata.normalize("NFC", os.fspath(path))
    name = replace_with_dashes(normal)
    return name if len(name) <= MAX_FOLDER_NAME else f"{name[:MAX_FOLDER_NAME]}-{_node_hash(normal)}"


def folder_matches(folder: str, path: str | os.PathLike[str]) -> bool:
    r"""Whether a project at this path can have this folder.

    Long names are compared by their first 200 characters. Case is ignored for paths on a Windows drive.

    >>> folder_matches("c--Users-Ann-x", "C:\\Users\\Ann\\x")
    True
    """
    text = os.fspath(path)
    stem = folder_stem(folder)
    if is_windows_path(text):
        return stem.lower() in {name.lower() for name in possible_stems(text)}
    return stem in possible_stems(text)


def replace_with_dashes(path: str) -> str:
    """Replace every character except ASCII letters and digits with a dash.

    Claude Code counts UTF-16 code units, so a character beyond the first plane gives two dashes (observed in 1.0.100
    and 2.1.325: `a😀b` becomes `a--b`).
    """
    return _NOT_ALPHANUMERIC.sub("-", _ASTRAL.sub("--", path))


def folder_stem(folder: str) -> str:
    """Return the part of a folder's name that all builds derive from the path in the same way."""
    return folder[: MAX_FOLDER_NAME + 1] if len(folder) > MAX_FOLDER_NAME else folder


def possible_stems(path: str) -> set[str]:
    """Return the stems that a folder for this path can have: NFC-normalized as in newer builds, or as written."""
    names = {replace_with_dashes(unicodedata.normalize("NFC", path)), replace_with_dashes(path)}
    return {name if len(name) <= MAX_FOLDER_NAME else f"{name[:MAX_FOLDER_NAME]}-" for name in names}


def is_windows_path(path: str) -> bool:
    """Whether this is a path on a Windows drive or share, where case does not distinguish names."""
    return _WINDOWS_PATH.match(path) is not None


def _node_hash(path: str) -> str:
    data = path.encode("utf-16-le", "surrogatepass")
    value = 0
    for at in range(0, len(data), 2):
        value = (value * 31 + int.from_bytes(data[at : at + 2], "little")) & 0xFFFFFFFF
    number = abs(value - 0x100000000 if value & 0x80000000 else value)
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = _BASE36_DIGITS[digit] + text
    return text or "0"
