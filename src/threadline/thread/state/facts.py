"""What a session knew about a file, and what it did to it, in order of time.

`file_facts` lists every complete text that the session saw, and every change that it made, without joining them:
several sessions may change a file in turn, so that only all of their facts together give its history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

from msgspec import Struct

from threadline.model.calls import Call
from threadline.model.results import Hunk
from threadline.model.session import Session
from threadline.model.state import Evidence, EvidenceKind, ProofLevel
from threadline.shell_syntax import SHELL_TOOLS
from threadline.thread.state.events import ReplayEvent, replay_events
from threadline.thread.state.files import NOT_RUN, BackupReader, TrackedFiles
from threadline.thread.state.replay import agent_ids
from threadline.thread.state.tracked_file import NameMentions, TrackedFile


class FactKind(StrEnum):
    """What a fact says.

    The complete text was seen (or that there is no file), written, or edited; a change is not recorded; or a command
    ran.
    """

    SEEN = "seen"
    WRITE = "write"
    EDIT = "edit"
    CHANGE = "change"
    COMMAND = "command"


class FileFact(Struct, frozen=True):
    """Something that a session recorded about a file. `path` is empty for a command.

    `content` is the text that was seen or written, or the text after an edit; None if there is no file, or if the
    text is not known. `old` and `new` are the strings of an edit. `time` is in seconds since 1970.
    """

    kind: FactKind
    path: str
    time: float
    evidence: Evidence
    call: Call | None
    content: str | None = None
    old: str | None = None
    new: str | None = None
    replaces_all: bool = False

    @property
    def is_user_modified(self) -> bool:
        """Whether a person changed the edit before it was made."""
        return self.evidence.how is EvidenceKind.USER_MODIFIED


def file_facts(session: Session, has_path: Callable[[str], bool], backup: BackupReader | None = None) -> list[FileFact]:
    """Return the facts about the files that `has_path` selects, and all commands, in order of time."""
    facts: list[FileFact] = []
    current: list[ReplayEvent] = []

    def make_file(path: str, named: NameMentions) -> TrackedFile:
        return _RecordedFile(path, named, facts, current) if has_path(path) else _IgnoredFile(path, named)

    files = TrackedFiles(backup, agents=agent_ids(session), make_file=make_file)
    for event in replay_events(session):
        current[:] = [event]
        call = event.call
        if call is not None and call.tool in SHELL_TOOLS and call.outcome not in NOT_RUN:
            evidence = Evidence(event.entry.place, EvidenceKind.COMMAND, event.agent)
            facts.append(FileFact(FactKind.COMMAND, "", event.key[0], evidence, call))
        files.apply_event(event)
    return facts


class _IgnoredFile(TrackedFile):
    """A file that nobody asks about. Its text is not computed."""

    def record_edit(
        self, old: str, new: str, hunks: Sequence[Hunk] | None, evidence: Evidence, command_count: int, *, all_: bool
    ) -> None:
        pass

    def record_write(self, content: str, evidence: Evidence, command_count: int) -> None:
        pass

    def record_before(self, content: str | None, evidence: Evidence, command_count: int) -> None:
        pass

    def record_lines(self, lines: dict[int, str], total: int | None, evidence: Evidence, command_count: int) -> None:
        pass


class _RecordedFile(TrackedFile):
    """A file whose facts are recorded. `current` contains the current event."""

    def __init__(self, path: str, named: NameMentions, facts: list[FileFact], current: list[ReplayEvent]) -> None:
        super().__init__(path, named)
        self._facts = facts
        self._current = current

    def record_write(self, content: str, evidence: Evidence, command_count: int) -> None:
        """Record that the session wrote this text."""
        super().record_write(content, evidence, command_count)
        self._add(FactKind.WRITE, evidence, content=content)

    def record_before(self, content: str | None, evidence: Evidence, command_count: int) -> None:
        """Record a complete text."""
        super().record_before(content, evidence, command_count)
        self._add(FactKind.SEEN, evidence, content=content)

    def record_edit(
        self, old: str, new: str, hunks: Sequence[Hunk] | None, evidence: Evidence, command_count: int, *, all_: bool
    ) -> None:
        """Record that a part was replaced."""
        super().record_edit(old, new, hunks, evidence, command_count, all_=all_)
        content = self.content if self.proven is ProofLevel.WHOLE else None
        self._add(FactKind.EDIT, evidence, content=content, old=old, new=new, replaces_all=all_)

    def record_unknown_change(self, evidence: Evidence, command_count: int) -> None:
        """Record that the session changed it in a way that is not known."""
        super().record_unknown_change(evidence, command_count)
        self._add(FactKind.CHANGE, evidence)

    def _add(
        self,
        kind: FactKind,
        evidence: Evidence,
        *,
        content: str | None = None,
        old: str | None = None,
        new: str | None = None,
        replaces_all: bool = False,
    ) -> None:
        event = self._current[0]
        self._facts.append(
            FileFact(kind, self.path, event.key[0], evidence, event.call, content, old, new, replaces_all)
        )
