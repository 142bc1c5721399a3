"""Act and Turn: what a person did, and all that followed."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from threadline.model.entries import AssistantEntry, Entry
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
    was refused; its entry is the call's result. A `plan` nobody typed: it was approved, and the program put it to the model
    as what begins a turn.
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


class Turn(Struct, frozen=True):
    """An act and all that follows until the next. Turn 0, where there is one, is what came before the first act."""

    number: int
    act: Act | None
    entries: tuple[Entry, ...]

    @property
    def started(self) -> datetime | None:
        """The first time in it."""
        return min((moment for entry in self.entries if (moment := entry.timestamp)), default=None)

    @property
    def ended(self) -> datetime | None:
        """The last time in it."""
        return max((moment for entry in self.entries if (moment := entry.timestamp)), default=None)

    @property
    def duration(self) -> timedelta | None:
        """How long it took, by its own times."""
        return self.ended - self.started if self.started and self.ended else None

    @property
    def reply(self) -> str:
        """What the model said in it, as a person reads it: the text of its replies."""
        texts = (entry.text for entry in self.entries if isinstance(entry, AssistantEntry))
        return "\n\n".join(text for text in texts if text.strip())

    def __repr__(self) -> str:
        said = f"{self.act.kind}: {self.act.text[:60]!r}" if self.act else "no act"
        return f"Turn({self.number}, {said}, {len(self.entries)} entries)"
