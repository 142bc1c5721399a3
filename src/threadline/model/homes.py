"""Homes (Claude configuration directories), projects, transcripts and side files, and how they change.

A kept home is a folder with what was kept of a home after Claude Code deleted it there. Which folders are kept homes
is registered once per process, by whoever created them.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from threadline.model.places import AgentId, Problem, SessionId


class Home(Struct, frozen=True):
    """One Claude configuration directory.

    `path` is its real path; `source` says how it was found: `option`, `CLAUDE_CONFIG_DIR`,
    `CLAUDE_CONFIG_DIRS`, `default`, `xdg` or `desktop`.
    """

    path: Path
    source: str


class PathSource(StrEnum):
    """How a project's true path became known, best evidence first."""

    CWD = "cwd"
    RELOCATED = "relocated"
    INDEX = "sessions-index"
    CONFIG = "config"
    HISTORY = "history"
    DISK = "disk"
    UNKNOWN = "unknown"


class Project(Struct, frozen=True):
    """The directory sessions were started in.

    `folder` is the name under `projects/`, which is lossy; `path` is the true path, or None when no
    evidence of it is left; `path_source` is that evidence.
    """

    home: Home
    folder: str
    path: str | None
    path_source: PathSource

    @property
    def name(self) -> str:
        """The true path, or the folder's name where the path is not known."""
        return self.path if self.path is not None else self.folder


class TranscriptKind(StrEnum):
    """Which of the layouts a transcript lies in."""

    MAIN = "main"
    AGENT = "agent"
    WORKFLOW_AGENT = "workflow-agent"
    JOURNAL = "journal"
    OTHER = "other"


class Transcript(Struct, frozen=True):
    """One `.jsonl` file below a project, with what its path alone says.

    `session` is the session id that the path names (None for an `agent-*.jsonl` beside the sessions,
    whose session is named inside it); `meta` is the `.meta.json` beside an agent's transcript. `folder` is
    empty for a file that lies in `projects/` itself.
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
    def is_agent(self) -> bool:
        """Whether it is a subagent's own transcript."""
        return self.kind in (TranscriptKind.AGENT, TranscriptKind.WORKFLOW_AGENT)


class SideFileKind(StrEnum):
    """What a file beside the transcripts is. The value is also its heading in `docs/format/shapes/side-files.md`."""

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
    """One file beside the transcripts. `session` is the session id its path names, where it names one.

    Secrets and settings are listed from their directory entry alone, so their `size` is 0.
    """

    path: Path
    home: Home
    kind: SideFileKind
    size: int
    session: SessionId | None = None


class Found(Struct, frozen=True):
    """All that lies in one home, and what could not be looked at.

    `not_entered` are directories of the home that hold no traces of sessions (plugins, skills, caches) or
    that are not known; they are named so that nothing is passed over in silence.
    """

    home: Home
    projects: tuple[Project, ...]
    transcripts: tuple[Transcript, ...]
    side_files: tuple[SideFile, ...]
    problems: tuple[Problem, ...]
    not_entered: tuple[Path, ...] = ()

    def project_of(self, transcript: Transcript) -> Project | None:
        """The project that a transcript belongs to."""
        return next((project for project in self.projects if project.folder == transcript.folder), None)


class TranscriptFingerprint(Struct, frozen=True, array_like=True, gc=False):
    """A transcript as it was when it was last read.

    `read_to` is the offset up to which lines were read: 0, just after a newline, or the end of a whole line that has
    none. `size` and `mtime_ns` are from before the reading, so that nothing written meanwhile is taken for read.
    `head_hash` and `tail_hash` are of the first and the last bytes before `read_to`, `checksum` (CRC-32, which an
    appended line extends) is of them all.

    `racy` says that it was written to so shortly before it was looked at that a later write may bear the same time:
    then equal times prove nothing, and its ends are compared.
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


class ChangeKind(StrEnum):
    """What happened to a transcript.

    ==========  ============================================================  =====================
    kind        what happened                                                 its lines
    ==========  ============================================================  =====================
    vanished    it is gone, and its content is nowhere else                   drop
    moved       the same content lies at another path                         keep, then read on
    grown       more bytes follow what was read                               keep, then read on
    truncated   the same file is shorter than what was read                   drop, then read from 0
    rewritten   the same file holds other bytes                               drop, then read from 0
    replaced    another file with other bytes lies at its path                drop, then read from 0
    new         nothing is known of it                                        read from 0
    unreadable  the machine refuses to show it                                as they were
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
    """One transcript that is not as it was.

    `known` is what was known of it (of a moved one: at its old path), None for a new one; `transcript` and `looked` are
    what it is now, None if it is gone or unreadable. Lines before `read_from` are kept, and reading goes on there.
    """

    kind: ChangeKind
    known: TranscriptFingerprint | None = None
    transcript: Transcript | None = None
    looked: TranscriptStat | None = None
    read_from: int = 0


class TranscriptStat(Struct, frozen=True, gc=False):
    """What a directory says of a transcript, before it is opened: all that `Known` has from there."""

    path: str
    device: int
    inode: int
    size: int
    mtime_ns: int
    racy: bool


class TranscriptChanges(Struct, frozen=True):
    """All that happened since last time, in the order in which it can be applied: what vanished comes first.

    `renewed` hold the same lines as before, but are to be stored again: another time or inode, or no longer racy.
    `unchanged` counts those of which nothing need be stored.
    """

    changed: tuple[TranscriptChange, ...]
    renewed: tuple[TranscriptFingerprint, ...]
    unchanged: int
    problems: tuple[Problem, ...]


KEEP_SOURCE = "keep"
"""How a kept home was found, as `Home.source` says it."""


class KeptHome(Struct, frozen=True):
    """A kept home: where it lies, the home its files come from, and the machine that was on, if not this one.

    `projects` is where the projects of that home really lie, if that is elsewhere.
    """

    path: str
    home: str
    machine: str | None = None
    projects: str | None = None

    @property
    def name(self) -> str:
        """The home that it stands for, as people know it."""
        return f"{self.machine}:{self.home}" if self.machine is not None else self.home

    def equivalent_folders(self) -> Iterator[tuple[str, str]]:
        """Folders that hold the same, kept and living, and the other way round; the narrower ones first."""
        if self.projects is not None:
            own = self.path + os.sep + "projects"
            yield from ((own, self.projects), (self.projects, own))
        yield from ((self.path, self.home), (self.home, self.path))


_kept_homes: dict[str, KeptHome] = {}


def register_kept_home(kept: KeptHome) -> None:
    """Tell that a folder is a kept home."""
    _kept_homes[kept.path] = kept


def home_name(home: str | os.PathLike[str]) -> str:
    """What a home is called: its path; for a kept one, that of the home its files come from."""
    found = _kept_homes.get(os.fspath(home)) if _kept_homes else None
    return found.name if found is not None else os.fspath(home)


def machine_name(home: str | os.PathLike[str]) -> str:
    """The machine that a home is on, or was on, as people call it: this one, unless it was kept by another."""
    found = _kept_homes.get(os.fspath(home)) if _kept_homes else None
    return found.machine if found is not None and found.machine is not None else platform.node() or "machine"


def is_kept(path: str | os.PathLike[str]) -> bool:
    """Whether a file lies in a kept home."""
    return _kept_home_of(os.fspath(path)) is not None if _kept_homes else False


def counterpart_paths(path: str | os.PathLike[str]) -> Iterator[str]:
    """The same place in the homes that hold the rest of what one home held: living, and kept."""
    if not _kept_homes:
        return
    text = os.fspath(path)
    for home in _kept_homes.values():
        if home.machine is not None:
            continue
        for here, there in home.equivalent_folders():
            if text.startswith(here + os.sep):
                yield there + text[len(here) :]
                break


def rank_homes(homes: Iterable[str]) -> dict[str, int]:
    """The place of each home among those that were named; a kept one has that of the home it stands for."""
    named: dict[str, int] = {}
    return {home: named.setdefault(home_name(home), number) for number, home in enumerate(homes)}


def _kept_home_of(path: str) -> KeptHome | None:
    return next((home for home in _kept_homes.values() if path.startswith(home.path + os.sep)), None)


WARM_UP_PROMPT = "Warmup"
"""What an agent is asked that only makes the program ready."""


class SideAgentKind(StrEnum):
    """Agents that are not work the model gave away: they are not counted as such."""

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
    """Which kind of side agent an id names; None where it names none."""
    if not id_.startswith(_ALL_PREFIXES):
        return None
    return next((kind for prefix, kind in _KIND_BY_PREFIX if id_.startswith(prefix)), None)


def side_agent_kind(id_: str, prompt: str | None) -> SideAgentKind | None:
    """Which kind of side agent it is, by its id or its first words; None for one that does the model's work."""
    kind = side_agent_kind_by_id(id_)
    return SideAgentKind.WARM_UP if kind is None and prompt is not None and prompt.strip() == WARM_UP_PROMPT else kind
