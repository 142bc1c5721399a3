"""Calls of a transcript, entry by entry: each tool use once, with its result or with what followed instead of one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from threadline.index.answer import LISTS, Answered, call_name, ending
from threadline.index.call_rows import CallRow, CallRows
from threadline.index.moment import moment_of
from threadline.index.reread import entry_at
from threadline.index.texts import as_text
from threadline.model.block import (
    McpToolResultBlock,
    McpToolUseBlock,
    ServerResultBlock,
    ServerToolUseBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from threadline.model.call import Outcome, ResultBlock
from threadline.model.entries import AssistantEntry, UserEntry
from threadline.thread.calls import STARTERS, end_by, results_of

_USE = frozenset({ToolUseBlock, ServerToolUseBlock, McpToolUseBlock})
_RESULT = frozenset({ToolResultBlock, McpToolResultBlock, *ServerResultBlock.__subclasses__()})
# So many calls without a result, and results without a call, are remembered; the others are looked up in the index.
_MOST = 200
# The tools whose input is asked for, as a rule or often.
_GIVEN = frozenset({"Read", "Write", "Edit", "MultiEdit", "NotebookEdit", *STARTERS, *LISTS})
_Open = tuple[Any, str | None, int, str | None]


class Waiting(Struct, array_like=True, gc=False):
    """A call without a result so far: where its use stands, and which of the blocks there it is.

    `message` is the one that it is a part of, `agent` who made it where that is not the transcript's own agent.
    `followed` says that the conversation went on without a result.
    """

    tool: str
    offset: int
    line: int
    position: int
    message: str | None = None
    agent: str | None = None
    followed: bool = False


class CallState(Struct, array_like=True):
    """What is remembered of a transcript's calls: those that wait for results, and loose results.

    A loose result, of which offset and line are kept, answers a call that was not read yet.
    """

    waiting: dict[str, Waiting] = {}
    loose: dict[str, tuple[int, int]] = {}


class Calling:
    """The calls, while entries are added. `answered` is told of each that gets a result, and whose it is."""

    def __init__(
        self, state: CallState, path: str, answered: Callable[[Answered, str | None], None], *, is_whole: bool
    ) -> None:
        self.state = state
        self._path = path
        self._is_whole = is_whole
        self._answered = answered
        self._rows: dict[str, CallRow] = {}
        self._loose: dict[str, tuple[int, int, int]] = {}
        # Those of this reading that have no result so far; what is to be remembered of them is only made in the end.
        self._open: dict[str, _Open] = {}
        self._places: dict[str, tuple[int, int]] = {}
        self._unfollowed = {call: None for call, one in state.waiting.items() if not one.followed}

    def reply(self, at: int, entry: AssistantEntry, agent: str | None) -> None:
        """One more entry of a model's."""
        if self._unfollowed:
            self._follow(entry, agent)
        content = entry.message.content if entry.message is not None else None
        if type(content) is list:
            for index, block in enumerate(content):
                kind = type(block)
                if kind in _USE:
                    self._use(at, entry, block, index, agent)
                elif kind in _RESULT:
                    self._result(at, entry, block, agent)  # type: ignore[arg-type]

    def user(self, at: int, entry: UserEntry, agent: str | None) -> None:
        """One more entry of a user's: results, as a rule."""
        content = entry.message.content if entry.message is not None else None
        answers = False
        if type(content) is list:
            for block in content:
                if type(block) in _RESULT:
                    answers = True
                    self._result(at, entry, block, agent)  # type: ignore[arg-type]
        if self._unfollowed and not answers:
            self._follow(entry, agent)

    def _use(self, at: int, entry: AssistantEntry, block: Any, index: int, agent: str | None) -> None:
        call = call_name(block, entry, index)
        row = self._rows.get(call)
        state = self.state
        if row is None:
            row = self._rows[call] = _row(call, state.waiting.get(call))
        row.at, row.position, row.tool, row.agent = at, index, as_text(block.name) or "", agent
        row.moment = moment_of(entry)
        if row.result is not None:  # it is told again; what came of it stays
            return
        state.waiting.pop(call, None)
        # Entries are not held on to: it is quicker where their memory is used again at once.
        kept = block if row.tool in _GIVEN else None
        self._open[call] = kept, entry.message.id if entry.message is not None else None, index, agent
        self._places[call] = entry.line.offset, entry.line.number
        row.outcome = None
        if entry.is_aborted_mid_stream:
            row.outcome = Outcome.INTERRUPTED.value
            self._unfollowed.pop(call, None)
        else:
            self._unfollowed[call] = None
        if call in self._loose or call in state.loose:
            self._tied(call, agent)

    def _tied(self, call: str, agent: str | None) -> None:
        """A loose result, which stands before its call, is tied to it."""
        here, (offset, line) = self._loose.pop(call, None), self.state.loose.pop(call)
        entry = entry_at(self._path, offset, line)
        if isinstance(entry, UserEntry | AssistantEntry):
            for block in results_of(entry):
                if as_text(block.tool_use_id) == call:
                    self._result(here[0] if here is not None else -line, entry, block, agent)

    def _result(self, at: int, entry: UserEntry | AssistantEntry, block: ResultBlock, agent: str | None) -> None:
        for call in self._answered_by(entry, block):
            row, use = self._rows.get(call), self._open.pop(call, None)
            known = self.state.waiting.pop(call, None) if use is None else None
            if row is None:
                if known is None:
                    self._loose[call] = (at, entry.line.offset, entry.line.number)
                    self.state.loose[call] = (entry.line.offset, entry.line.number)
                    continue
                row = self._rows[call] = _row(call, known)
            if known is not None:
                self._places[call] = known.offset, known.line
            self._unfollowed.pop(call, None)
            is_again = row.result is not None
            end = ending(row.tool, entry, block)
            row.result, row.outcome, row.exit_code = at, end.outcome.value, end.exit_code
            row.started = as_text(end.started)
            given = use[0] if use is not None else None
            place = self._places[call]
            one = Answered(call, row.tool, entry, block, at, end, self._path, given, *place, is_again)
            self._answered(one, agent)

    def _answered_by(self, entry: UserEntry | AssistantEntry, block: ResultBlock) -> Iterable[str]:
        """The calls that a result is of; one that names none is told by the row that it hangs off."""
        if block.tool_use_id:
            return (as_text(block.tool_use_id) or "",)
        near = (entry.source_tool_assistant_uuid or entry.parent_uuid) if isinstance(entry, UserEntry) else None
        return [call for call in (*self.state.waiting, *self._open) if near and call.startswith(f"{near}#")]

    def _follow(self, entry: UserEntry | AssistantEntry, agent: str | None) -> None:
        """The conversation goes on: calls before it are not answered any more, as a rule."""
        message = entry.message.id if type(entry) is AssistantEntry and entry.message is not None else None
        for call in list(self._unfollowed):
            known = self.state.waiting.get(call)
            if known is not None:
                own, made_by = known.message, known.agent
            else:
                _, own, _, made_by = self._open[call]
            if made_by != agent or (message is not None and message == own):
                continue
            del self._unfollowed[call]
            if known is not None:
                known.followed = True
            row = self._rows.get(call) or self._rows.setdefault(call, _row(call, known))
            row.outcome = end_by(entry)[0].value

    def done(self) -> CallRows:
        """The rows, when all entries have been added."""
        state = self.state
        for call, (_, message, index, agent) in self._open.items():
            place = (*self._places[call], index)
            followed = call not in self._unfollowed
            state.waiting[call] = Waiting(self._rows[call].tool, *place, as_text(message), agent, followed)
        for most in (state.waiting, state.loose):
            for call in list(most)[:-_MOST]:
                del most[call]
        loose = [(call, *place) for call, place in self._loose.items()]
        return CallRows(os.fsencode(self._path), list(self._rows.values()), loose, self._is_whole)


def _row(call: str, known: Waiting | None) -> CallRow:
    """The row of a call that was not met in this reading so far."""
    if known is None:
        return CallRow(call)
    return CallRow(call, known.tool, known_line=known.line, known_position=known.position)
