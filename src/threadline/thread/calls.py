"""Calls: every tool use of one agent, paired with its result, or with the reason why there is none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from msgspec import Struct

from threadline.model.act import Turn
from threadline.model.block import (
    McpToolResultBlock,
    McpToolUseBlock,
    ServerResultBlock,
    ServerToolUseBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from threadline.model.call import Call, Outcome, ResultBlock
from threadline.model.entries import AssistantEntry, Entry, UserEntry
from threadline.model.ids import AgentId, CallId, EntryId
from threadline.model.results import OutputResult, ResultValue, ShellOutputResult, typed_result
from threadline.model.text import extract_text
from threadline.thread.feedback import feedback
from threadline.thread.interrupts import INTERRUPTS
from threadline.thread.outcome import Answer, Verdict, judge

STARTERS = frozenset({"Task", "Agent", "Skill"})
"""The tools that start agents; the rest of an agent's links come from what names its id."""

_SPEAKERS = (UserEntry, AssistantEntry)
_USES = (ToolUseBlock, ServerToolUseBlock, McpToolUseBlock)
_RESULTS = (ToolResultBlock, ServerResultBlock, McpToolResultBlock)
_Speaker: TypeAlias = UserEntry | AssistantEntry
_UseBlock: TypeAlias = ToolUseBlock | ServerToolUseBlock | McpToolUseBlock

_SAVED = re.compile(r"Full output saved to: (.+)")
_AGENT_ID = re.compile(r"^agentId: ([\w.@-]+)", re.MULTILINE)
_EXIT_CODE = re.compile(r"\s*(?:Error: )?Exit code (-?\d{1,10})\b")
_EXIT_ELEMENT = re.compile(r"<exit_code>(-?\d{1,10})</exit_code>")


class _Use(Struct):
    """A tool use: the last row and block that hold it, and where in the file that row stands."""

    id: CallId
    block: _UseBlock
    entry: AssistantEntry
    at: int


class Result(Struct, frozen=True):
    """A result: its row and its block."""

    entry: _Speaker
    block: ResultBlock


def calls(
    entries: Sequence[Entry],
    *,
    agent: AgentId | None = None,
    turns: Sequence[Turn] = (),
    elsewhere: Mapping[CallId, Result] = MappingProxyType({}),
) -> list[Call]:
    """Every call that one agent made, once each and in file order.

    Of rows that are written again, and of rows that repeat a tool use, the last one counts. `turns` are the agent's
    own: they give each call the number of its turn. `elsewhere` are results from the session's other transcripts, for
    calls that have none in their own.
    """
    uses = _uses(entries)
    own, loose = _results(entries)
    number = {id(entry): turn.number for turn in turns for entry in turn.entries}
    # A result without an id can still be told by the row it hangs off, if the call has no id, either.
    paired = [
        own.get(use.id) or elsewhere.get(use.id) or (None if use.block.id else loose.get(use.entry.uuid))
        for use in uses
    ]
    ends = _ends(entries, [use for use, result in zip(uses, paired, strict=True) if result is None])
    return [
        _unanswered(use, ends[use.id], agent, number.get(id(use.entry)))
        if result is None
        else _answered(use, result, agent, number.get(id(use.entry)))
        for use, result in zip(uses, paired, strict=True)
    ]


def results(entries: Iterable[Entry]) -> dict[CallId, Result]:
    """The results in any entries, by the call they answer."""
    return _results(entries)[0]


def exit_code(call: Call) -> int | None:
    """The exit code of a command, where it is told: as a rule only one that is not 0."""
    return exit_code_in(call.tool, call.result, call.output)


def exit_code_in(tool: str, result: ResultValue, output: str) -> int | None:
    """The same, by the tool's own result and by what the model saw of it."""
    if isinstance(result, ShellOutputResult) and result.exit_code is not None:
        return result.exit_code
    if isinstance(result, OutputResult) and result.task is not None and result.task.exit_code is not None:
        return result.task.exit_code
    match = _EXIT_CODE.match(output) or (_EXIT_ELEMENT.search(output) if tool in OUTPUT_TOOLS else None)
    return int(match[1]) if match else None


OUTPUT_TOOLS = frozenset({"BashOutput", "AgentOutputTool", "TaskOutput"})
"""The tools that ask for the output of what runs in the background."""


def agent_in_result(raw: Any) -> AgentId | None:
    """The agent that the tool's own result, as it is written, names as the one it started."""
    named = (raw.get("agentId") or raw.get("agent_id")) if isinstance(raw, dict) else None
    return AgentId(named) if isinstance(named, str) else None


def agent_in_text(text: str) -> AgentId | None:
    """The agent that the lines the program puts at the end of an agent's report name."""
    found = _AGENT_ID.findall(text)
    # The report itself comes first and may quote anything.
    return AgentId(found[-1]) if found else None


def results_of(entry: _Speaker) -> Iterator[ResultBlock]:
    """The results that an entry holds."""
    content = entry.message.content if entry.message is not None else None
    return (block for block in content if isinstance(block, _RESULTS)) if isinstance(content, list) else iter(())


def _uses(entries: Sequence[Entry]) -> list[_Use]:
    """The tool uses in order of first appearance, each with the last row that holds it."""
    found: dict[CallId, _Use] = {}
    for at, entry in enumerate(entries):
        if (
            not isinstance(entry, AssistantEntry)
            or entry.message is None
            or not isinstance(entry.message.content, list)
        ):
            continue
        for index, block in enumerate(entry.message.content):
            if isinstance(block, _USES):
                name = block.id or CallId(f"{entry.uuid or entry.place}#{index}")
                found[name] = _Use(name, block, entry, at)
    return list(found.values())


def _results(entries: Iterable[Entry]) -> tuple[dict[CallId, Result], dict[EntryId | None, Result]]:
    """Results by the call they answer, and those that name none by the row they hang off."""
    by_call: dict[CallId, Result] = {}
    loose: dict[EntryId | None, Result] = {}
    for entry in entries:
        if isinstance(entry, _SPEAKERS):
            for block in results_of(entry):
                result = Result(entry, block)
                if block.tool_use_id:
                    by_call[block.tool_use_id] = result
                elif isinstance(entry, UserEntry):
                    loose[entry.source_tool_assistant_uuid or entry.parent_uuid] = result
    loose.pop(None, None)
    return by_call, loose


def _answered(use: _Use, result: Result, agent: AgentId | None, turn: int | None) -> Call:
    tool, text = use.block.name, extract_text(result.block.content)
    raw = result.entry.tool_use_result if isinstance(result.entry, UserEntry) else None
    value = typed_result(raw, tool)
    outcome, evidence = judge(Answer(tool, result.entry, result.block, value, text))
    started = agent_in_result(raw) or (agent_in_text(text) if tool in STARTERS else None)
    return Call(
        id=use.id,
        tool=tool,
        input=use.block.input,
        entry=use.entry,
        outcome=outcome,
        evidence=evidence,
        answer=result.entry,
        block=result.block,
        agent=agent,
        turn=turn,
        agent_turn=turn,
        started=started,
        persisted=_persisted(value, text),
        feedback=feedback(result.entry, text) if outcome is Outcome.DENIED else None,
    )


def _unanswered(use: _Use, verdict: Verdict, agent: AgentId | None, turn: int | None) -> Call:
    outcome, evidence = verdict
    return Call(
        id=use.id,
        tool=use.block.name,
        input=use.block.input,
        entry=use.entry,
        outcome=outcome,
        evidence=evidence,
        agent=agent,
        turn=turn,
        agent_turn=turn,
    )


def _persisted(value: ResultValue, text: str) -> Path | None:
    """The file that holds the output, where it was too long for the transcript."""
    path = getattr(value, "persisted_output_path", None)
    if path is None and text.lstrip().startswith("<persisted-output>"):
        match = _SAVED.search(text)
        path = match[1].strip() if match else None
    return Path(path) if path else None


def _ends(entries: Sequence[Entry], uses: list[_Use]) -> dict[CallId, Verdict]:
    """Why calls have no result, by what was said next, other results aside: one walk from the end of the file."""
    waiting: dict[int, list[_Use]] = {}
    for use in uses:
        waiting.setdefault(use.at, []).append(use)
    ends: dict[CallId, Verdict] = {}
    nearest: _Speaker | None = None
    beyond: _Speaker | None = None  # the nearest that is of another message than `nearest`
    for at in range(len(entries) - 1, -1, -1) if waiting else ():
        for use in waiting.get(at, ()):
            following = beyond if _same_message(use.entry, nearest) else nearest
            ends[use.id] = end_by(following, aborted=bool(use.entry.is_aborted_mid_stream))
        entry = entries[at]
        if isinstance(entry, AssistantEntry) or (
            isinstance(entry, UserEntry) and next(results_of(entry), None) is None
        ):
            beyond = beyond if _same_message(entry, nearest) else nearest
            nearest = entry
    return ends


def end_by(following: _Speaker | None, *, aborted: bool = False) -> Verdict:
    """Why a call has no result, by what was said next, other results and its own message aside."""
    if aborted:
        return Outcome.INTERRUPTED, "isAbortedMidStream"
    if following is None:
        return Outcome.PENDING, "nothing follows it"
    if isinstance(following, UserEntry) and _is_interrupt(following):
        return Outcome.INTERRUPTED, "an interrupt follows"
    return Outcome.LOST, "the conversation went on without its result"


def _is_interrupt(entry: UserEntry) -> bool:
    return bool(entry.interrupted_message_id) or entry.text.lstrip().startswith(INTERRUPTS)


def _same_message(one: _Speaker, other: _Speaker | None) -> bool:
    """Whether two rows are parts of one reply."""
    if not isinstance(one, AssistantEntry) or not isinstance(other, AssistantEntry):
        return False
    ids = [entry.message.id if entry.message is not None else None for entry in (one, other)]
    return ids[0] is not None and ids[0] == ids[1]
