"""Calls of a transcript, entry by entry: each tool use once, with its result or with what followed instead of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from threadline.index.answer import Answered, call_name, ending
from threadline.index.call_rows import CallRow, CallRows
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
from threadline.model.entries import AssistantEntry, Entry, UserEntry
from threadline.thread.calls import end_by, results_of

_USE = frozenset({ToolUseBlock, ServerToolUseBlock, McpToolUseBlock})
_RESULT = frozenset({ToolResultBlock, McpToolResultBlock, *ServerResultBlock.__subclasses__()})
# So many calls without a result, and results without a call, are remembered; the others are looked up in the index.
_MOST = 200


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
    """The calls, while entries are added."""

    def __init__(self, state: CallState, path: str, *, is_whole: bool) -> None:
        self.state = state
        self.path = path
        self.is_whole = is_whole
        self.rows: dict[str, CallRow] = {}
        self._uses: dict[str, Any] = {}
        self._places: dict[str, tuple[int, int]] = {}
        self._unfollowed: dict[str, AssistantEntry | None] = {
            call: None for call, one in state.waiting.items() if not one.followed
        }
        self.loose: dict[str, tuple[int, int, int]] = {}

    def add(self, at: int, entry: UserEntry | AssistantEntry, agent: str | None) -> Iterator[Answered]:
        """One more entry; gives the calls that got a result by it."""
        content = entry.message.content if entry.message is not None else None
        answers = False
        if type(content) is list:
            for index, block in enumerate(content):
                kind = type(block)
                if kind in _RESULT:
                    answers = True
                    yield from self._result(at, entry, block)  # type: ignore[arg-type]
                elif kind in _USE and type(entry) is AssistantEntry:
                    yield from self._use(at, entry, block, index, agent)
        if self._unfollowed and (type(entry) is AssistantEntry or not answers):
            self._follow(entry, agent)

    def _use(self, at: int, entry: AssistantEntry, block: Any, index: int, agent: str | None) -> Iterator[Answered]:
        call = call_name(block, entry, index)
        row = self.rows.get(call)
        state = self.state
        if row is None:
            row = self.rows[call] = _row(call, state.waiting.get(call))
        row.at, row.position, row.tool, row.agent = at, index, as_text(block.name) or "", agent
        row.moment = _moment(entry)
        if row.result is not None:  # it is told again; what came of it stays
            return
        line = entry.line
        message = entry.message.id if entry.message is not None else None
        state.waiting[call] = Waiting(row.tool, line.offset, line.number, index, as_text(message), agent)
        self._uses[call] = block
        self._places[call] = (line.offset, line.number)
        self._unfollowed[call] = entry
        row.outcome = str(Outcome.INTERRUPTED) if entry.is_aborted_mid_stream else None
        if call in self.loose or call in state.loose:
            yield from self._loose(call)

    def _loose(self, call: str) -> Iterator[Answered]:
        """The result stands before the call."""
        here, (offset, line) = self.loose.pop(call, None), self.state.loose.pop(call)
        entry = entry_at(self.path, offset, line)
        if isinstance(entry, UserEntry | AssistantEntry):
            for block in results_of(entry):
                if as_text(block.tool_use_id) == call:
                    yield from self._result(here[0] if here is not None else -line, entry, block)

    def _result(self, at: int, entry: UserEntry | AssistantEntry, block: ResultBlock) -> Iterator[Answered]:
        for call in self._answered_by(entry, block):
            row, known = self.rows.get(call), self.state.waiting.pop(call, None)
            if row is None and known is None:
                self.loose[call] = (at, entry.line.offset, entry.line.number)
                self.state.loose[call] = (entry.line.offset, entry.line.number)
                continue
            if row is None and known is not None:
                row = self.rows[call] = _row(call, known)
            if row is not None:
                self._unfollowed.pop(call, None)
                is_again = row.result is not None
                end = ending(row.tool, entry, block)
                row.result, row.outcome, row.exit_code = at, str(end.outcome), end.exit_code
                row.started = as_text(end.started)
                offset, line = (known.offset, known.line) if known is not None else self._places.get(call, (0, 0))
                yield Answered(
                    call=call,
                    tool=row.tool,
                    entry=entry,
                    block=block,
                    at=at,
                    ending=end,
                    path=self.path,
                    use=self._uses.pop(call, None),
                    offset=offset,
                    line=line,
                    is_again=is_again,
                )

    def _answered_by(self, entry: UserEntry | AssistantEntry, block: ResultBlock) -> list[str]:
        """The calls that a result is of; one that names none is told by the row that it hangs off."""
        if block.tool_use_id:
            return [as_text(block.tool_use_id) or ""]
        near = (entry.source_tool_assistant_uuid or entry.parent_uuid) if isinstance(entry, UserEntry) else None
        return [call for call in self.state.waiting if near and call.startswith(f"{near}#")]

    def _follow(self, entry: UserEntry | AssistantEntry, agent: str | None) -> None:
        """The conversation goes on: calls before it are not answered any more, as a rule."""
        message = as_text(entry.message.id) if type(entry) is AssistantEntry and entry.message is not None else None
        for call, used in list(self._unfollowed.items()):
            one = self.state.waiting.get(call)
            if one is None:
                del self._unfollowed[call]
            elif used is entry or one.agent != agent or (message is not None and message == one.message):
                continue
            else:
                del self._unfollowed[call]
                one.followed = True
                row = self.rows.get(call)
                if row is None:
                    row = self.rows[call] = _row(call, one)
                use = used or entry_at(self.path, one.offset, one.line)
                if isinstance(use, AssistantEntry):
                    row.outcome = str(end_by(use, entry)[0])

    def done(self) -> CallRows:
        """The rows, when all entries have been added."""
        state = self.state
        for most in (state.waiting, state.loose):
            for call in list(most)[:-_MOST]:
                del most[call]
        loose = [(call, *place) for call, place in self.loose.items()]
        return CallRows(self.path, list(self.rows.values()), loose, self.is_whole)


def _row(call: str, known: Waiting | None) -> CallRow:
    """The row of a call that was not met in this reading so far."""
    if known is None:
        return CallRow(call)
    return CallRow(call, known.tool, known_line=known.line, known_position=known.position)


def _moment(entry: Entry) -> int | None:
    moment = entry.timestamp
    return int(moment.timestamp()) if moment is not None else None
