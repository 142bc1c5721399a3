"""The state of files, todos and tasks at a place in a session, as far as the transcript proves it; edits of files."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from threadline.model.places import AgentId, CallId, Place, SessionId
from threadline.model.results import Task, Todo
from threadline.model.tables import Listing
from threadline.model.text import count


class ProofLevel(StrEnum):
    """How much of a file is proven."""

    WHOLE = "whole"
    PARTIAL = "partial"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class EvidenceKind(StrEnum):
    """The kind of evidence for a file's content, or against what was known about it."""

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
    """Evidence about a file: its place, its kind, and its agent (None for the main one)."""

    place: Place
    how: EvidenceKind
    agent: AgentId | None = None


class FileVersion(Struct, frozen=True):
    """A file's text as proven by one piece of evidence. `content` is None if the file did not exist.

    Line ends are always newlines, as when Claude Code reads and edits a file.
    """

    content: str | None
    evidence: Evidence


class FileState(Struct, frozen=True):
    """The state of one file.

    `content` is the complete text if every line is proven. Otherwise `lines` are the proven lines, by number. `proof`
    is the last evidence that proves them. `doubts` are later events that mention the file and may have changed it.
    `ran_since` counts all commands since the proof. `first` is the file's first known version in the session.
    `changed` is the last change that the session made.
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

    def __repr__(self) -> str:
        return f"FileState({self.path!r}, {self.proven}, {count(self.total_lines or len(self.lines), 'line')})"

    @property
    def size(self) -> int | None:
        """The size of the text in bytes, with newlines as line ends; None if it is not completely proven."""
        return len(self.content.encode(errors="surrogatepass")) if self.content is not None else None

    @property
    def statement(self) -> str:
        """A sentence that says what is proven and what is not."""
        known, total = len(self.lines), self.total_lines
        lines = f"{known} of {total} lines are" if total else count(known, "line is", "lines are")
        sentence = _PROOF_SENTENCES[self.proven].format(lines=lines)
        return f"{sentence}{self._describe_proof()}."

    def _describe_proof(self) -> str:
        if self.proof is None:
            return ""
        mentions = f"; {count(len(self.doubts), 'mentions', 'mention')} this file" if self.doubts else ""
        since = f". {count(self.ran_since, 'later command')} ran{mentions}" if self.ran_since else ""
        return f" from the {_PROOF_NAMES.get(self.proof.how, self.proof.how)} at {self.proof.place}{since}"


_PROOF_SENTENCES = {
    ProofLevel.WHOLE: "Every line is known",
    ProofLevel.PARTIAL: "{lines} known",
    ProofLevel.ABSENT: "Its absence is known",
    ProofLevel.UNKNOWN: "None of its text is known",
}
_PROOF_NAMES = {
    EvidenceKind.USER_MODIFIED: "edit that the user modified",
    EvidenceKind.ATTACHED: "attachment",
    EvidenceKind.OUTSIDE: "report of a change outside the session",
}


class ListSource(StrEnum):
    """Where the state of a list is from: a transcript, or a file under `todos/` or `tasks/`."""

    TRANSCRIPT = "transcript"
    FILE = "file"


class TodoState(Struct, frozen=True):
    """The todo list of one agent (None for the main one), and the place and time of its last update."""

    agent: AgentId | None
    place: Place
    todos: tuple[Todo, ...]
    time: datetime | None = None
    source: ListSource = ListSource.TRANSCRIPT


class TaskState(Struct, frozen=True):
    """One task, and the place and time of its last update."""

    task: Task
    place: Place
    time: datetime | None = None
    source: ListSource = ListSource.TRANSCRIPT


class State(Struct, frozen=True):
    """The state at a place. `place` is None for the end of the session.

    `agent` is the agent that the place belongs to. Model, mode, directory, branch and context are those of this agent.
    Files, todos and tasks are those of all agents.
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
        counts = f"{len(self.files)} files, {len(self.todos)} todo lists, {len(self.tasks)} tasks"
        return f"State({str(self.place or 'end')!r}, {counts}, context_tokens={self.context_tokens})"


class FileDifference(Struct, frozen=True):
    """How one file differs between two states: a unified diff if both sides are known, else an empty text.

    `proven` says whether the diff is proven. `statement` gives the evidence, or says what is missing.
    """

    path: str
    before: FileVersion | None
    after: FileVersion | None
    text: str
    proven: bool
    statement: str


class DiffSource(StrEnum):
    """What the diff of an edit was made from, best first."""

    TEXTS = "texts"
    PATCH = "patch"
    INPUT = "input"
    NONE = "none"


class FileEdit(Struct, frozen=True):
    """One edit of a file by a session.

    `how` is `write`, `edit` or `user-modified` (a person changed the edit). `turn` and `prompt` are those of the main
    conversation; for an agent's edit, the turn that started the agent. `place` is the result of the call.

    `diff` is a unified diff. `source` says what it was made from: the complete texts before and after, the patch that
    the tool recorded, or only the input of the call. `proven` says whether it is proven, and `statement` why not.
    """

    path: str
    how: EvidenceKind
    tool: str
    timestamp: datetime | None
    session: SessionId | None
    project: str | None
    agent: AgentId | None
    turn: int | None
    prompt: str | None
    model: str | None
    call: CallId
    place: Place
    diff: str
    source: DiffSource
    proven: bool
    statement: str

    def __repr__(self) -> str:
        return f"FileEdit({self.path!r}, {str(self.how)!r}, session {self.session!r}, turn {self.turn})"


class FileLog(Listing[FileEdit]):
    """The edits of a file, newest first."""

    row_type = FileEdit
    noun = "edit"
    html_columns = ("timestamp", "path", "how", "session", "turn", "prompt", "model", "proven", "diff")


def edit_row(edit: FileEdit) -> dict[str, Any]:
    """Return an edit as a row for programs, with the same keys in every interface."""
    return {
        "timestamp": edit.timestamp,
        "path": edit.path,
        "how": str(edit.how),
        "tool": edit.tool,
        "session": edit.session,
        "project": edit.project,
        "agent": edit.agent,
        "turn": edit.turn,
        "prompt": edit.prompt,
        "model": edit.model,
        "call": edit.call,
        "place": str(edit.place),
        "source": str(edit.source),
        "proven": edit.proven,
        "statement": edit.statement,
        "diff": edit.diff,
    }
