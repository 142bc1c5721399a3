"""Act and Turn: what a person did, and all that followed."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from threadline.model.block import ToolResultBlock
from threadline.model.entries import AssistantEntry, Entry, SystemEntry, UserEntry
from threadline.model.place import Place


class ActKind(StrEnum):
    """What a person can do in a session."""

    PROMPT = "prompt"
    COMMAND = "command"
    SHELL = "shell"
    MEMORY = "memory"
    INTERRUPT = "interrupt"
    STEERING = "steering"
    PROGRAMMATIC = "programmatic"
    FEEDBACK = "feedback"
    PLAN = "plan"


class Act(Struct, frozen=True):
    """Something a person did: its kind, its clean text, and the entry that tells of it.

    `rule` is the step of the rule that decided. A `steering` act was typed while the model was working; of a
    `programmatic` one it cannot be told whether a person or a script wrote it. `feedback` is what was said when a call
    was refused; its entry is the call's result. A `plan` nobody typed: it was approved, and the program put it to the
    model, which begins a turn.
    """

    kind: ActKind
    text: str
    entry: Entry
    rule: str
    images: int = 0

    @property
    def place(self) -> Place:
        """Where it stands."""
        return self.entry.place

    @property
    def timestamp(self) -> datetime | None:
        """When it was done."""
        return self.entry.timestamp

    def __repr__(self) -> str:
        return f"Act({str(self.kind)!r}, {self.text[:60]!r}, line {self.place.line})"


_NOTES_OF_THE_END = frozenset({"turn_duration", "stop_hook_summary"})


def _is_work(entry: Entry) -> bool:
    """Whether it is part of what a turn took: a reply, a tool's result, or the note that the turn ended."""
    if isinstance(entry, SystemEntry):
        return entry.subtype in _NOTES_OF_THE_END
    if isinstance(entry, UserEntry):
        content = entry.message.content if entry.message is not None else None
        return isinstance(content, list) and any(isinstance(block, ToolResultBlock) for block in content)
    return isinstance(entry, AssistantEntry)


class Turn(Struct, frozen=True):
    """An act and all that follows until the next. Turn 0, where there is one, is what came before the first act.

    Rows that the program wrote just before the act, and for it, are part of the turn.
    """

    number: int
    act: Act | None
    entries: tuple[Entry, ...]

    @property
    def started(self) -> datetime | None:
        """When its act was done; where that is not told, the first time in it."""
        told = self.act.timestamp if self.act is not None else None
        return told or min((moment for entry in self.entries if (moment := entry.timestamp)), default=None)

    @property
    def ended(self) -> datetime | None:
        """When the last reply, result or note of its end came; where there is none of them, the last time in it."""
        worked = [moment for entry in self.entries if _is_work(entry) and (moment := entry.timestamp)]
        return max(worked or (moment for entry in self.entries if (moment := entry.timestamp)), default=None)

    @property
    def duration(self) -> timedelta | None:
        """How long it took, from its act to its end; None where no reply came, as for local commands.

        The times are those of the rows in every version. What `turn_duration` rows claim is not used: old versions
        write none, and a turn that went on after a notification has several.
        """
        start, end = self.started, self.ended
        replied = any(isinstance(entry, AssistantEntry) and not entry.is_made_up for entry in self.entries)
        return end - start if replied and start and end and end >= start else None

    @property
    def reply(self) -> str:
        """What the model said in it, as a person reads it: the text of its replies."""
        texts = (entry.text for entry in self.entries if isinstance(entry, AssistantEntry))
        return "\n\n".join(text for text in texts if text.strip())

    def __repr__(self) -> str:
        said = f"{self.act.kind}: {self.act.text[:60]!r}" if self.act else "no act"
        return f"Turn({self.number}, {said}, {len(self.entries)} entries)"
