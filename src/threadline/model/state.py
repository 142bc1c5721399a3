"""The state of files, todos and tasks at a place in a session, as far as the transcript proves it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from threadline.model.places import AgentId, Place
from threadline.model.results import Task, Todo


class ProofLevel(StrEnum):
    """How much of a file is proven."""

    WHOLE = "whole"
    PARTIAL = "partial"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class EvidenceKind(StrEnum):
    """What kind of evidence speaks for a file, or against what was known of it."""

    WRITE = "write"
    EDIT = "edit"
    PATCH = "patch"
    USER_MODIFIED = "user-modified"
    READ = "read"
    ATTACHED = "attached"
    BACKUP = "backup"
    OUTSIDE = "outside"
    COMMAND = "command"
    HOOK = "hook"
    REWIND = "rewind"


class Evidence(Struct, frozen=True):
    """Where something about a file is told, what kind of telling it is, and which agent's (None: the main one's)."""

    place: Place
    how: EvidenceKind
    agent: AgentId | None = None


class FileVersion(Struct, frozen=True):
    """A file's text as one piece of evidence proves it; no content means that the file was not there.

    Line ends are newlines whatever the file has on disk: Claude Code reads and edits it so.
    """

    content: str | None
    evidence: Evidence


class FileState(Struct, frozen=True):
    """One file as it stood.

    `content` is the whole text where every line of it is proven; `lines` the lines that are, by number, where only
    some are. The proof is as old as the last of `evidence` that gave one; `doubts` are later acts that name the file
    and may have changed it, and `ran_since` counts all commands since then. `first` is what the file was when the
    session first met it, `changed` the last change that the session made.
    """

    path: str
    proven: ProofLevel
    content: str | None = None
    lines: dict[int, str] = {}
    total_lines: int | None = None
    evidence: tuple[Evidence, ...] = ()
    proof: Evidence | None = None
    doubts: tuple[Evidence, ...] = ()
    ran_since: int = 0
    first: FileVersion | None = None
    changed: Place | None = None

    @property
    def size(self) -> int | None:
        """How many bytes the text takes, with newlines as line ends; None where it is not proven whole."""
        return len(self.content.encode(errors="surrogatepass")) if self.content is not None else None

    @property
    def statement(self) -> str:
        """What is proven of it and what is not, as a sentence."""
        sentence = _PROOF_SENTENCES[self.proven].format(known=len(self.lines), total=self.total_lines or "?")
        return f"{sentence}{self._until()}."

    def _until(self) -> str:
        if self.proof is None:
            return ""
        named = f", {len(self.doubts)} of them naming it" if self.doubts else ""
        since = f"; {self.ran_since} later acts could have changed it{named}" if self.ran_since else ""
        return f" by {self.proof.how} at {self.proof.place}{since}"


_PROOF_SENTENCES = {
    ProofLevel.WHOLE: "Every line is proven",
    ProofLevel.PARTIAL: "{known} of {total} lines are proven",
    ProofLevel.ABSENT: "That it was not there is proven",
    ProofLevel.UNKNOWN: "Nothing of its text is proven",
}


class TodoState(Struct, frozen=True):
    """The todo list of one agent (None: the main one) as it stood, and where it was last told."""

    agent: AgentId | None
    place: Place
    todos: tuple[Todo, ...]


class TaskState(Struct, frozen=True):
    """One task as it stood, and where it was last told."""

    task: Task
    place: Place


class State(Struct, frozen=True):
    """How things stood at a place; `place` is None for the end of the session.

    `agent` is the agent that the place belongs to: model, mode, directory, branch and context are its own. Files,
    todos and tasks are those of all agents.
    """

    place: Place | None
    time: datetime | None = None
    agent: AgentId | None = None
    files: dict[str, FileState] = {}
    todos: tuple[TodoState, ...] = ()
    tasks: tuple[TaskState, ...] = ()
    model: str | None = None
    effort: str | None = None
    permission_mode: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    context_tokens: int | None = None

    def __repr__(self) -> str:
        said = f"{len(self.files)} files, {len(self.todos)} todo lists, {len(self.tasks)} tasks"
        return f"State({str(self.place or 'end')!r}, {said}, context_tokens={self.context_tokens})"


class FileDifference(Struct, frozen=True):
    """How one file differs between two states: a unified diff where both sides are proven, else none.

    `proven` says whether the diff is; `statement` says why not, or on what it rests.
    """

    path: str
    before: FileVersion | None
    after: FileVersion | None
    text: str
    proven: bool
    statement: str
