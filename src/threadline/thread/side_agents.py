"""Recognise side agents: those the program starts for itself, which are not counted as work.

Most are recognised by their ids. A warm-up is recognised by its task, the word `Warmup`. Version 2.0.60 does not write
the task into an agent's transcript; there, a warm-up is a single reply and nothing else, and no call started it.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from threadline.model.entries import AssistantEntry, Entry, UserEntry
from threadline.model.side_agents import WARM_UP_PROMPT, SideAgentKind, side_agent_kind_by_id
from threadline.thread.calls import result_blocks
from threadline.thread.graph import call_ids


class SideAgentFold(Struct, array_like=True):
    """Decides from an agent's entries, added one by one, whether it is a warm-up. The index stores it."""

    has_task: bool = False
    is_warm_up: bool = False
    is_bare: bool = True
    reply: str | None = None

    def add(self, entry: Entry) -> None:
        """Add the agent's next entry."""
        if isinstance(entry, UserEntry):
            self.is_bare = False
            if not self.has_task and not entry.is_meta:
                is_result = next(result_blocks(entry), None) is not None
                self.has_task = is_result or bool(entry.text)
                self.is_warm_up = not is_result and entry.text.strip() == WARM_UP_PROMPT
        elif self.is_bare and isinstance(entry, AssistantEntry):
            message = (entry.message.id or "") if entry.message is not None else self.reply
            self.is_bare = self.reply in (None, message) and next(call_ids(entry), None) is None
            self.reply = message

    @property
    def is_single_reply(self) -> bool:
        """Whether the transcript is one reply and nothing else: no task, no calls."""
        return self.is_bare and self.reply is not None

    @property
    def is_decided(self) -> bool:
        """Whether later entries cannot change the answer."""
        return self.has_task

    def kind(self, agent: str, *, is_started: bool) -> SideAgentKind | None:
        """Return the kind of side agent, or None for an agent that works for the model.

        `is_started` says whether a call is known that started it.
        """
        kind = side_agent_kind_by_id(agent)
        if kind is None and (self.is_warm_up or (self.is_single_reply and not is_started)):
            return SideAgentKind.WARM_UP
        return kind


def fold_agent(entries: Iterable[Entry]) -> SideAgentFold:
    """Return the decision for an agent's entries; stops reading when it is clear."""
    fold = SideAgentFold()
    for entry in entries:
        fold.add(entry)
        if fold.is_decided:
            break
    return fold
