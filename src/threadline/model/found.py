"""What `find` finds: homes, projects, transcripts and the files beside them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from threadline.model.ids import AgentId, SessionId
from threadline.model.problem import Problem


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
