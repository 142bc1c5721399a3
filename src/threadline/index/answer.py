"""Answer: how a call ended, as its result tells; of a plain one without looking at all that is in it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from threadline.index.reread import entry_at
from threadline.index.texts import as_number, as_text
from threadline.model.block import McpToolUseBlock, ServerToolUseBlock, TextBlock, ToolResultBlock, ToolUseBlock
from threadline.model.call import Outcome, ResultBlock
from threadline.model.entries import AssistantEntry, UserEntry
from threadline.model.ids import AgentId
from threadline.model.results import TOOL_RESULTS, typed_result
from threadline.model.text import extract_text
from threadline.thread import outcome as verdicts
from threadline.thread.calls import OUTPUT_TOOLS, STARTERS, agent_in_result, agent_in_text, exit_code_in

LISTS = frozenset({"TodoWrite", "TaskCreate", "TaskGet", "TaskUpdate", "TaskList"})
"""The tools that keep lists."""

_PLAIN = frozenset(TOOL_RESULTS) - OUTPUT_TOOLS
_LEADING = frozenset({"", "E"})  # of texts that may tell an exit code
_USES = (ToolUseBlock, ServerToolUseBlock, McpToolUseBlock)


class Ending(Struct, frozen=True, gc=False):
    """How a call ended, the exit code that is told, and the agent that it started."""

    outcome: Outcome
    exit_code: int | None = None
    started: AgentId | None = None


_PLAIN_ENDING = Ending(Outcome.OK)


def ending(tool: str, entry: UserEntry | AssistantEntry, block: ResultBlock) -> Ending:
    """How a call of a tool ended, by its result: as `threadline.thread.calls` has it."""
    raw = entry.tool_use_result if type(entry) is UserEntry else None
    is_plain = _is_plain(tool, entry, block, raw)
    if is_plain and tool not in STARTERS and not _may_tell_more(raw, block.content):
        return _PLAIN_ENDING
    text = extract_text(block.content)
    value = typed_result(raw, tool) if not is_plain else None
    outcome = Outcome.OK if is_plain else verdicts.judge(verdicts.Answer(tool, entry, block, value, text))[0]
    started = agent_in_result(raw) or (agent_in_text(text) if tool in STARTERS else None)
    return Ending(outcome, as_number(exit_code_in(tool, value, text)), started)


def _may_tell_more(raw: Any, content: Any) -> bool:
    """Whether a result may name an agent or an exit code, with which its text begins."""
    if raw is not None and ("agentId" in raw or "agent_id" in raw):
        return True
    if type(content) is list and content:
        content = content[0].text if type(content[0]) is TextBlock else " "
    return type(content) is str and (content[:1] in _LEADING or content[:1].isspace())


def _is_plain(tool: str, entry: UserEntry | AssistantEntry, block: ResultBlock, raw: Any) -> bool:
    """Whether nothing in a result can say that its call did not end well."""
    if (
        type(entry) is not UserEntry
        or type(block) is not ToolResultBlock
        or block.is_error
        or entry.tool_denial_kind
        or entry.permission_decision is not None
    ):
        return False
    if raw is None:
        return block.is_error is False
    return (
        type(raw) is dict
        and (tool in _PLAIN or tool.startswith("mcp__"))
        and raw.get("success") is not False
        and not raw.get("interrupted")
        and not raw.get("wasInterrupted")
        and not raw.get("timedOutAfterMs")
    )


class Answered(Struct, frozen=True, gc=False):
    """A call that has got its result: what other tables are made of.

    `use` is its block where it was just read; else it stands at `offset`. `is_again` says that it had a result before.
    """

    call: str
    tool: str
    entry: UserEntry | AssistantEntry
    block: ResultBlock
    at: int
    ending: Ending
    path: str
    use: Any = None
    offset: int = 0
    line: int = 0
    is_again: bool = False

    @property
    def input(self) -> Any:
        """What the tool was given; read once more where need be."""
        if self.use is None and self.line:
            return input_at(self.path, self.offset, self.line, self.call)
        return self.use.input if self.use is not None else None


def input_at(path: str, offset: int, line: int, call: str) -> Any:
    """What the tool was given by a call whose use stands there; None where it does not, any more."""
    entry = entry_at(path, offset, line)
    content = entry.message.content if isinstance(entry, AssistantEntry) and entry.message is not None else None
    for index, one in enumerate(content or ()):
        if isinstance(one, _USES) and call_name(one, entry, index) == call:
            return one.input
    return None


def call_name(block: Any, entry: Any, index: int) -> str:
    """The id of a call; one that has none is named after its entry."""
    return as_text(block.id) or as_text(f"{entry.uuid or entry.line.number}#{index}") or ""
