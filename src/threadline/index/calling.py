"""Calls of a transcript, entry by entry: each tool use once, with its result or with what followed instead of one."""

from __future__ import annotations

import os
from collections.abc import Callable
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
# The tools whose results tell of no file, no list and no agent.
_MUTE = frozenset({"Bash", "PowerShell", "Glob", "Grep", "WebFetch", "WebSearch", "ToolSearch", "BashOutput"})


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


class _Met(Struct, gc=False):
    """A call that was met or is remembered: its row, where its use stands, and what it was given if that is asked for.

    Its entry is not held on to: it is quicker where the memory of entries is used again at once.
    """

    row: CallRow
    offset: int
    line: int
    message: str | None
    agent: str | None
    use: Any = None
    followed: bool = False


class Calling:
    """The calls, while entries are added. `answered` is told of each that gets a result, and whose it is."""

    def __init__(
        self, state: CallState, path: str, answered: Callable[[Answered, str | None], None], *, is_whole: bool
    ) -> None:
        self.state = state
        self._path = path
        self._is_whole = is_whole
        self._answered = answered
        self._met = {call: _remembered(call, one) for call, one in state.waiting.items()}
        self._unfollowed = {call: one for call, one in self._met.items() if not one.followed}
        self._loose: dict[str, tuple[int, int, int]] = {}

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
        call, tool = block.id, block.name
        if not call or not call.isascii() or not tool.isascii():
            call, tool = call_name(block, entry, index), as_text(tool) or ""
        before = self._met.get(call)
        row = CallRow(call, tool, at, index, agent, None, None, None, moment_of(entry))
        if before is not None:
            row.known_line, row.known_position = before.row.known_line, before.row.known_position
            if before.row.result is not None:  # it is told again; what came of it stays
                row.result, row.outcome = before.row.result, before.row.outcome
                row.exit_code, row.started = before.row.exit_code, before.row.started
        line = entry.line
        message = entry.message.id if entry.message is not None else None
        met = _Met(row, line.offset, line.number, message, agent, block if tool in _GIVEN else None)
        self._met[call] = met
        if row.result is not None:
            return
        if entry.is_aborted_mid_stream:
            row.outcome = Outcome.INTERRUPTED.value
            met.followed = True
            self._unfollowed.pop(call, None)
        else:
            self._unfollowed[call] = met
        if self.state.loose and call in self.state.loose:
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
        named = block.tool_use_id
        if not named:
            for call in self._near(entry):
                self._answer(call, at, entry, block, agent)
        else:
            self._answer(named if named.isascii() else as_text(named) or "", at, entry, block, agent)

    def _answer(
        self, call: str, at: int, entry: UserEntry | AssistantEntry, block: ResultBlock, agent: str | None
    ) -> None:
        met = self._met.get(call)
        if met is None:
            self._loose[call] = (at, entry.line.offset, entry.line.number)
            self.state.loose[call] = (entry.line.offset, entry.line.number)
            return
        self._unfollowed.pop(call, None)
        row = met.row
        is_again = row.result is not None
        end = ending(row.tool, entry, block)
        row.result, row.outcome, row.exit_code = at, end.outcome.value, end.exit_code
        if row.tool in _MUTE and end.started is None and not is_again:
            return
        row.started = as_text(end.started)
        place = met.offset, met.line
        one = Answered(call, row.tool, entry, block, at, end, self._path, met.use, *place, is_again)
        self._answered(one, agent)
        met.use = None  # another result is not likely, and what was given can be large

    def _near(self, entry: UserEntry | AssistantEntry) -> list[str]:
        """The calls of a result that names none: those without an id in the entry that it hangs off."""
        near = (entry.source_tool_assistant_uuid or entry.parent_uuid) if isinstance(entry, UserEntry) else None
        return [call for call in self._met if near and call.startswith(f"{as_text(near)}#")]

    def _follow(self, entry: UserEntry | AssistantEntry, agent: str | None) -> None:
        """The conversation goes on: calls before it are not answered any more, as a rule."""
        message = entry.message.id if type(entry) is AssistantEntry and entry.message is not None else None
        for call, met in list(self._unfollowed.items()):
            if met.agent == agent and (message is None or message != met.message):
                del self._unfollowed[call]
                met.followed = True
                met.row.outcome = end_by(entry)[0].value

    def done(self) -> CallRows:
        """The rows, when all entries have been added."""
        state = self.state
        state.waiting = {call: _waiting(met) for call, met in self._met.items() if met.row.result is None}
        for most in (state.waiting, state.loose):
            for call in list(most)[:-_MOST]:
                del most[call]
        rows = [met.row for met in self._met.values() if _has_changed(met.row)]
        loose = [(call, *place) for call, place in self._loose.items()]
        return CallRows(os.fsencode(self._path), rows, loose, self._is_whole)


def _remembered(call: str, one: Waiting) -> _Met:
    row = CallRow(call, one.tool, known_line=one.line, known_position=one.position)
    return _Met(row, one.offset, one.line, one.message, one.agent, followed=one.followed)


def _waiting(met: _Met) -> Waiting:
    row = met.row
    position = row.position if row.at is not None else row.known_position
    return Waiting(row.tool, met.offset, met.line, position, as_text(met.message), met.agent, met.followed)


def _has_changed(row: CallRow) -> bool:
    return row.at is not None or row.result is not None or row.outcome is not None
