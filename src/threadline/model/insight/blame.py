"""Who wrote each line of a file."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from threadline.model.places import AgentId, CallId, Place, SessionId


class TextSource(StrEnum):
    """Where the lines are from: the file, or the last text that sessions recorded, if the file is not there."""

    FILE = "file"
    SESSIONS = "sessions"


class BlamedLine(Struct, frozen=True):
    """A line and who wrote it: an edit by a session, a commit, or unknown.

    `known` is whether the writer is proven. With a `session`, the line was written by that edit: `place` is the result
    of its `call`, `turn` and `prompt` are those of the main conversation, and `path` is the file that was edited.
    With only a `commit`, it was committed there, and no session wrote it. Otherwise `reason` says why it is not known;
    `commit` is then the commit that added the line, if there is one.
    """

    line: int
    text: str
    known: bool
    session: SessionId | None = None
    turn: int | None = None
    prompt: str | None = None
    model: str | None = None
    agent: AgentId | None = None
    time: datetime | None = None
    tool: str | None = None
    call: CallId | None = None
    place: Place | None = None
    path: str | None = None
    commit: str | None = None
    author: str | None = None
    reason: str = ""


class Blame(Struct, frozen=True):
    """The lines of a file and who wrote them.

    `repository` is the git repository whose history was read. `revision` is its current commit, if the file has not
    been changed since. `statements` say what could not be used.
    """

    file: str
    lines: tuple[BlamedLine, ...]
    source: TextSource = TextSource.FILE
    repository: str | None = None
    revision: str | None = None
    statements: tuple[str, ...] = ()

    def __repr__(self) -> str:
        known = sum(line.known for line in self.lines)
        return f"Blame({self.file!r}, {len(self.lines)} lines, {known} known)"
