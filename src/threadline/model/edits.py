"""The history of a file: its edits as diffs."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from threadline.model.places import AgentId, CallId, Place, SessionId
from threadline.model.state import EvidenceKind
from threadline.model.tables import Listing


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
