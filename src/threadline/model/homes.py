"""Homes (Claude configuration directories), projects, transcripts and side files, and how they change.

A kept home is a folder with files that only the keep still has: Claude Code deleted them from the original home, or
the original home is on another machine. `Homes` answers questions about paths in the homes of an archive.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from threadline.model.places import AgentId, Problem, SessionId, is_uuid

HOME_VARIABLES = ("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS")
"""The environment variables that name homes."""
KEEP_SOURCE = "keep"
"""The `Home.source` of a kept home."""
ARCHIVE_SOURCE = "archive"
"""The `Home.source` of a home in an archive or a bucket: what is read is its copy in the cache folder."""

LAKE_SOURCE = "lake"
"""The `Home.source` of a home whose sessions were downloaded from a lake."""


class OriginalHome(Struct, frozen=True):
    """The home that the files of a kept home come from.

    `machine` is the name of the machine it is on; None for this one. `projects` is the real path of its `projects/`, if
    that is a symlink to another place.
    """

    path: str
    machine: str | None = None
    projects: str | None = None

    @property
    def name(self) -> str:
        """Its path, with the machine if that is another one."""
        return f"{self.machine}:{self.path}" if self.machine is not None else self.path


class Home(Struct, frozen=True, omit_defaults=True):
    """One Claude configuration directory.

    `path` is its real path. `source` says how it was found: `option`, `CLAUDE_CONFIG_DIR`, `CLAUDE_CONFIG_DIRS`,
    `default`, `xdg`, `desktop`, `path`, `archive`, `keep` or `lake`. `original` is set if it is a kept home.
    """

    path: Path
    source: str
    original: OriginalHome | None = None

    @property
    def is_kept(self) -> bool:
        """Whether it has files that only the keep still has."""
        return self.original is not None

    @property
    def name(self) -> str:
        """What reports call it: its path, or the name of the original home."""
        return self.original.name if self.original is not None else os.fspath(self.path)

    @property
    def machine(self) -> str:
        """The name of the machine that its files were written on."""
        machine = self.original.machine if self.original is not None else None
        return machine if machine is not None else this_machine_name()


def this_machine_name() -> str:
    """Return the name of this machine."""
    return platform.node() or "machine"


class Homes(tuple[Home, ...]):  # noqa: SLOT001 - cached properties need a __dict__
    """The homes of an archive, live ones and kept ones.

    A session may be split: some of its files are in a live home, others only in the kept home of the same original.
    `counterparts` finds the other ones.
    """

    def name_of(self, path: str) -> str:
        """Return what reports call the home with this path; the path itself if it is not among these homes."""
        home = self._by_path.get(path)
        return home.name if home is not None else path

    def machine_of(self, path: str) -> str:
        """Return the machine of the home with this path; this machine if it is not among these homes."""
        home = self._by_path.get(path)
        return home.machine if home is not None else this_machine_name()

    def is_kept(self, path: str | os.PathLike[str]) -> bool:
        """Whether a file is in a kept home."""
        return os.fspath(path).startswith(self._kept_prefixes)

    def counterparts(self, path: str | os.PathLike[str]) -> Iterator[Path]:
        """Yield the paths that a file or folder of a live home may have in kept homes, and the reverse."""
        text = os.fspath(path)
        for pairs in self._folder_pairs:
            for folder, counterpart in pairs:
                if text.startswith(folder + os.sep):
                    yield Path(counterpart + text[len(folder) :])
                    break

    def ranks(self, paths: Iterable[str] | None = None) -> dict[str, int]:
        """Return the rank of each home by path: its position. A kept home has the rank of its original.

        `paths` are those of the homes to rank, if not of all.
        """
        ranks: dict[str, int] = {}
        ranked = paths if paths is not None else (os.fspath(home.path) for home in self)
        return {path: ranks.setdefault(self.name_of(path), rank) for rank, path in enumerate(ranked)}

    @cached_property
    def _by_path(self) -> dict[str, Home]:
        return {os.fspath(home.path): home for home in self}

    @cached_property
    def _kept_prefixes(self) -> tuple[str, ...]:
        return tuple(os.fspath(home.path) + os.sep for home in self if home.is_kept)

    @cached_property
    def _folder_pairs(self) -> list[list[tuple[str, str]]]:
        """For each kept home of this machine, the folders that have counterparts; subfolders come first."""
        return [
            _folder_pairs(os.fspath(home.path), home.original)
            for home in self
            if home.original is not None and home.original.machine is None
        ]


NO_HOMES = Homes()


def _folder_pairs(kept: str, original: OriginalHome) -> list[tuple[str, str]]:
    pairs = [(kept, original.path), (original.path, kept)]
    if original.projects is None:
        return pairs
    kept_projects = kept + os.sep + "projects"
    return [(kept_projects, original.projects), (original.projects, kept_projects), *pairs]


class PathSource(StrEnum):
    """Where a project's true path was found, best evidence first."""

    CWD = "cwd"
    RELOCATED = "relocated"
    INDEX = "sessions-index"
    CONFIG = "config"
    HISTORY = "history"
    DISK = "disk"
    UNKNOWN = "unknown"


class Project(Struct, frozen=True):
    """The directory that sessions were started in.

    `folder` is its name under `projects/`, which is lossy. `path` is the true path, or None if there is no evidence of
    it. `path_source` says where the path was found.
    """

    home: Home
    folder: str
    path: str | None
    path_source: PathSource

    @property
    def name(self) -> str:
        """The true path, or the folder's name if the path is unknown."""
        return self.path if self.path is not None else self.folder


class TranscriptKind(StrEnum):
    """The kind of a transcript, by its path."""

    MAIN = "main"
    AGENT = "agent"
    WORKFLOW_AGENT = "workflow-agent"
    JOURNAL = "journal"
    OTHER = "other"


class Transcript(Struct, frozen=True):
    """One `.jsonl` file below `projects/`, described by its path and status.

    `session` is the session id in the path. It is None for an `agent-*.jsonl` in the folder of the sessions, whose
    entries name the session. `meta` is the `.meta.json` of an agent's transcript. `folder` is empty for a file in
    `projects/` itself.
    """

    path: Path
    home: Home
    folder: str
    kind: TranscriptKind
    size: int
    mtime_ns: int
    session: SessionId | None = None
    agent: AgentId | None = None
    run: str | None = None
    meta: Path | None = None

    @property
    def session_key(self) -> str:
        """What sessions are counted by: a UUID, which has no second meaning, or else the path."""
        return str(self.session) if self.session is not None and is_uuid(self.session) else str(self.path)

    @property
    def is_main(self) -> bool:
        """Whether it is a session's own transcript. Its rows decide whether the session is listed."""
        return self.kind is TranscriptKind.MAIN

    @property
    def is_agent(self) -> bool:
        """Whether it is a subagent's transcript."""
        return self.kind in (TranscriptKind.AGENT, TranscriptKind.WORKFLOW_AGENT)


class SideFileKind(StrEnum):
    """The kind of a file that is not a transcript. The value is its heading in `docs/format/shapes/side-files.md`."""

    HISTORY = "history"
    TODOS = "todos"
    TASK = "task"
    TASK_MARK = "task-mark"
    TEAM = "team"
    INBOX = "inbox"
    FILE_HISTORY = "file-history"
    TOOL_RESULT = "tool-result"
    AGENT_META = "agent-meta"
    TITLE = "title"
    SESSIONS_INDEX = "sessions-index"
    SESSION_ALIASES = "session-aliases"
    STATS_CACHE = "stats-cache"
    PLAN = "plan"
    SHELL_SNAPSHOT = "shell-snapshot"
    SESSION_ENV = "session-env"
    IDE_LOCK = "ide-lock"
    LIVE_SESSION = "live-session"
    JOB = "job"
    WORKFLOW_RUN = "workflow-run"
    WORKFLOW_SCRIPT = "workflow-script"
    MEMORY = "memory"
    PASTE = "paste"
    IMAGE = "image"
    DEBUG = "debug"
    USAGE_DATA = "usage-data"
    CONFIG = "config"
    SETTINGS = "settings"
    SECRET = "secret"  # noqa: S105 - the kind of file that is never opened, not a password
    OTHER = "other"


class SideFile(Struct, frozen=True):
    """One file of a home that is not a transcript. `session` is the session id in its path, if there is one.

    Secrets and settings are listed without a call to `stat`, so their `size` is 0.
    """

    path: Path
    home: Home
    kind: SideFileKind
    size: int
    session: SessionId | None = None


class Found(Struct, frozen=True):
    """The files of one home, and problems with listing them.

    `not_entered` are directories that were not searched, because they contain no sessions (plugins, skills, caches) or
    are unknown. They are listed so that nothing is left out silently.
    """

    home: Home
    projects: tuple[Project, ...]
    transcripts: tuple[Transcript, ...]
    side_files: tuple[SideFile, ...]
    problems: tuple[Problem, ...]
    not_entered: tuple[Path, ...] = ()

    def project_of(self, transcript: Transcript) -> Project | None:
        """Return the project that a transcript belongs to."""
        return next((project for project in self.projects if project.folder == transcript.folder), None)


class ProjectNames:
    """The names of the projects of homes, by the folder of a transcript."""

    def __init__(self, found: Iterable[Found]) -> None:
        self._names = {(project.home, project.folder): project.name for home in found for project in home.projects}

    def of(self, transcript: Transcript) -> str:
        """The name of the project in a transcript's folder, or else of the folder."""
        return self._names.get((transcript.home, transcript.folder), transcript.folder)


class TranscriptFingerprint(Struct, frozen=True, array_like=True, gc=False):
    """Identifies the state of a transcript when it was last read.

    `read_to` is the offset up to which lines were read: 0, just after a newline, or the end of a complete line without
    one. `size` and `mtime_ns` are from before the read, so that bytes written during it do not count as read.
    `head_hash` and `tail_hash` cover the first and the last bytes before `read_to`. `checksum` covers all of them; it
    is a CRC-32, which an appended line extends.

    `racy` says that the file was modified so shortly before the status was taken that a later write may have the same
    times. Equal times then prove nothing, and the content is compared. `ctime_ns` is when the file was last changed in
    any way, which no program can set back; 0 if the system does not provide it (Windows).
    """

    path: str
    device: int
    inode: int
    size: int
    mtime_ns: int
    read_to: int
    head_hash: bytes
    tail_hash: bytes
    checksum: int
    racy: bool = False
    ctime_ns: int = 0


class ChangeKind(StrEnum):
    """What happened to a transcript.

    ==========  ============================================================  =====================
    kind        what happened                                                 its lines
    ==========  ============================================================  =====================
    vanished    it is gone, and its content is at no other path               drop
    moved       the same content is at another path                           keep, then read on
    grown       bytes were appended                                           keep, then read on
    truncated   the same file is shorter than what was read                   drop, then read from 0
    rewritten   the same file has other bytes                                 drop, then read from 0
    replaced    another file with other bytes is at its path                  drop, then read from 0
    new         it was never read                                             read from 0
    unreadable  the system does not allow reading it                          keep
    ==========  ============================================================  =====================
    """

    VANISHED = "vanished"
    MOVED = "moved"
    GROWN = "grown"
    TRUNCATED = "truncated"
    REWRITTEN = "rewritten"
    REPLACED = "replaced"
    NEW = "new"
    UNREADABLE = "unreadable"


class TranscriptChange(Struct, frozen=True):
    """One transcript that changed.

    `before` is its earlier fingerprint, with the old path if it moved; None for a new transcript. `transcript` and
    `stat` describe it now; None if it is gone or unreadable. Lines before `read_from` stay; reading continues there.
    """

    kind: ChangeKind
    before: TranscriptFingerprint | None = None
    transcript: Transcript | None = None
    stat: TranscriptStat | None = None
    read_from: int = 0


class TranscriptStat(Struct, frozen=True, gc=False):
    """The file status of a transcript, taken before it is opened. It becomes part of the fingerprint."""

    path: str
    device: int
    inode: int
    size: int
    mtime_ns: int
    racy: bool
    ctime_ns: int = 0


class TranscriptChanges(Struct, frozen=True):
    """All changes since the last comparison, in an order in which they can be applied: vanished transcripts first.

    `touched` are new fingerprints of transcripts that have the same lines, but other times or another inode, or are no
    longer racy. `unchanged` counts the transcripts whose fingerprint is still valid.
    """

    changed: tuple[TranscriptChange, ...]
    touched: tuple[TranscriptFingerprint, ...]
    unchanged: int
    problems: tuple[Problem, ...]


WARM_UP_PROMPT = "Warmup"
"""The prompt of an agent that Claude Code starts only to warm up."""


class SideAgentKind(StrEnum):
    """Agents that Claude Code starts for itself. They are not counted as subagents."""

    COMPACT = "compact"
    SUGGESTION = "prompt-suggestion"
    QUESTION = "side-question"
    MEMORY = "memory"
    WARM_UP = "warm-up"


_KIND_BY_PREFIX = (
    ("acompact-", SideAgentKind.COMPACT),
    ("aprompt_suggestion-", SideAgentKind.SUGGESTION),
    ("aside_question-", SideAgentKind.QUESTION),
    ("asession_memory-", SideAgentKind.MEMORY),
    ("aextract_memories-", SideAgentKind.MEMORY),
)


_ALL_PREFIXES = tuple(prefix for prefix, _kind in _KIND_BY_PREFIX)


def side_agent_kind_by_id(id_: str) -> SideAgentKind | None:
    """Return the kind of side agent that an id names; None if it names none."""
    if not id_.startswith(_ALL_PREFIXES):
        return None
    return next((kind for prefix, kind in _KIND_BY_PREFIX if id_.startswith(prefix)), None)


def side_agent_kind(id_: str, prompt: str | None) -> SideAgentKind | None:
    """Return the kind of side agent, by its id or its first prompt; None for an agent that the model started."""
    kind = side_agent_kind_by_id(id_)
    return SideAgentKind.WARM_UP if kind is None and prompt is not None and prompt.strip() == WARM_UP_PROMPT else kind
