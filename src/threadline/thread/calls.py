"""Pair every tool call with its result and decide how it ended.

The word "error" in an output proves nothing. Only what Claude Code writes for the purpose counts: flags on the row,
the shape of the tool's own result, and the fixed sentences it writes instead of a result. The rules are a table, the
best evidence first. A refused call is also the only tool result that can contain a person's words.

Some descriptions of the format have calls and results as rows of their own (`tool_use`, `tool_result`). Such a result
names no call: it answers the first call that was made since the last message and has no result yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from msgspec import Struct

from threadline.model.blocks import (
    McpToolResultBlock,
    McpToolUseBlock,
    ServerResultBlock,
    ServerToolUseBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from threadline.model.calls import Call, Outcome, ResultBlock
from threadline.model.entries import AssistantEntry, Entry, ToolResultEntry, ToolUseEntry, UserEntry
from threadline.model.names import AGENT_TOOLS, tool_names
from threadline.model.places import AgentId, CallId, EntryId
from threadline.model.program_texts import (
    CLARIFY_BUTTON,
    FEEDBACK_MARKER,
    HOOK_REFUSAL,
    INTERRUPT_MESSAGES,
    INTERRUPTIONS,
    REFUSALS,
    TOOL_ERROR_TAG,
    TRAILING_NOTE,
)
from threadline.model.results import TOOL_RESULTS, OutputResult, ResultValue, ShellOutputResult, typed_result
from threadline.model.session import Turn
from threadline.model.text import extract_text

AGENT_STARTING_TOOLS = AGENT_TOOLS | {"Skill"}
"""The tools that start agents. Other links to agents come from rows that contain their ids."""

_SPEAKERS = (UserEntry, AssistantEntry)
_CALL_ROWS = frozenset({ToolUseEntry, ToolResultEntry})
_USE_BLOCKS = (ToolUseBlock, ServerToolUseBlock, McpToolUseBlock)
_RESULT_BLOCKS = (ToolResultBlock, ServerResultBlock, McpToolResultBlock)
_SpeakerEntry: TypeAlias = UserEntry | AssistantEntry
_UseBlock: TypeAlias = ToolUseBlock | ServerToolUseBlock | McpToolUseBlock

_SAVED_OUTPUT = re.compile(r"Full output saved to: (.+)")
_AGENT_ID = re.compile(r"^agentId: ([\w.@-]+)", re.MULTILINE)
_EXIT_CODE = re.compile(r"\s*(?:Error: )?Exit code (-?\d{1,10})\b")
_EXIT_ELEMENT = re.compile(r"<exit_code>(-?\d{1,10})</exit_code>")


class _ToolUse(Struct):
    """A tool use: the last row and block that contain it, and the position of that row.

    `has_row` says that there is a row for the call alone.
    """

    id: CallId
    block: _UseBlock
    entry: AssistantEntry
    at: int
    has_row: bool = False


class CallResult(Struct, frozen=True):
    """A result: its row and its block."""

    entry: _SpeakerEntry
    block: ResultBlock


def find_calls(
    entries: Sequence[Entry],
    *,
    agent: AgentId | None = None,
    turns: Sequence[Turn] = (),
    elsewhere: Mapping[CallId, CallResult] = MappingProxyType({}),
) -> list[Call]:
    """Return every call that one agent made, once each and in file order.

    Of rows that are written again, and of rows that repeat a tool use, the last one counts. `turns` are the agent's
    own: they give each call the number of its turn. `elsewhere` are results from the session's other transcripts, for
    calls that have none in their own.
    """
    row_calls = _pair_call_rows(entries)
    uses = _find_uses(entries, row_calls.repeats)
    own_results, unnamed_results = _find_results(entries)
    own_results = row_calls.results | own_results
    for alias in row_calls.aliases.keys() - {use.id for use in uses} if row_calls.aliases else ():
        if alias in own_results:
            own_results.setdefault(row_calls.aliases[alias], own_results[alias])
    number = {id(entry): turn.number for turn in turns for entry in turn.entries}
    # A result without an id is matched by its parent row, if the call has no id either.
    paired = [
        own_results.get(use.id)
        or elsewhere.get(use.id)
        or (None if use.block.id else unnamed_results.get(use.entry.uuid))
        for use in uses
    ]
    ends = _unanswered_verdicts(entries, [use for use, result in zip(uses, paired, strict=True) if result is None])
    return [
        _unanswered_call(use, ends[use.id], agent, number.get(id(use.entry)))
        if result is None
        else _answered_call(use, result, agent, number.get(id(use.entry)))
        for use, result in zip(uses, paired, strict=True)
    ]


def results_by_call(entries: Iterable[Entry]) -> dict[CallId, CallResult]:
    """Return the results in any entries, by the call they answer."""
    return _find_results(entries)[0]


def exit_code(call: Call) -> int | None:
    """Return the exit code of a command, if it is recorded: usually only if it is not 0."""
    return parse_exit_code(call.tool, call.result, call.output)


def parse_exit_code(tool: str, result: ResultValue, output: str) -> int | None:
    """Return the exit code from the tool's own result or from what the model saw of it."""
    if isinstance(result, ShellOutputResult) and result.exit_code is not None:
        return result.exit_code
    if isinstance(result, OutputResult) and result.task is not None and result.task.exit_code is not None:
        return result.task.exit_code
    match = _EXIT_CODE.match(output) or (_EXIT_ELEMENT.search(output) if tool in BACKGROUND_OUTPUT_TOOLS else None)
    return int(match[1]) if match else None


BACKGROUND_OUTPUT_TOOLS = tool_names("TaskOutput")
"""The tools that read the output of background tasks."""


def agent_id_in_result(entry: Entry) -> AgentId | None:
    """Return the agent that the tool's own result, or the entry with it, names as the one it started."""
    if not isinstance(entry, UserEntry):
        return None
    raw = entry.tool_use_result
    id_ = (raw.get("agentId") or raw.get("agent_id")) if isinstance(raw, dict) else None
    return AgentId(id_) if isinstance(id_, str) else entry.named_agent_id


def agent_id_in_text(text: str) -> AgentId | None:
    """Return the agent that the last lines of an agent's report name."""
    ids = _AGENT_ID.findall(text)
    # The report itself comes first and may quote anything.
    return AgentId(ids[-1]) if ids else None


def result_blocks(entry: _SpeakerEntry) -> Iterator[ResultBlock]:
    """Yield the results in an entry."""
    content = entry.message.content if entry.message is not None else None
    return (block for block in content if isinstance(block, _RESULT_BLOCKS)) if isinstance(content, list) else iter(())


def _find_uses(entries: Sequence[Entry], repeats: Container[int]) -> list[_ToolUse]:
    """Return the tool uses in order of first appearance, each with the last row that contains it.

    `repeats` are the positions of rows that only repeat a call.
    """
    uses: dict[CallId, _ToolUse] = {}
    for at, entry in enumerate(entries):
        if isinstance(entry, AssistantEntry) and at not in repeats:
            uses.update((use.id, use) for use in _uses_in(entry, at))
    return list(uses.values())


def _uses_in(entry: AssistantEntry, at: int) -> Iterator[_ToolUse]:
    content = entry.message.content if entry.message is not None else None
    for index, block in enumerate(content) if isinstance(content, list) else ():
        if isinstance(block, _USE_BLOCKS):
            yield _ToolUse(block.id or CallId(f"{entry.uuid or entry.place}#{index}"), block, entry, at)


class _RowCalls(Struct):
    """Which rows of calls repeat a call that a message makes, by position, and which calls rows of results answer.

    `aliases` are the ids of rows that repeat a call, with the id of the call.
    """

    repeats: set[int] = set()
    aliases: dict[CallId, CallId] = {}
    results: dict[CallId, CallResult] = {}


def _pair_call_rows(entries: Sequence[Entry]) -> _RowCalls:
    """Pair calls and results that are rows of their own, in file order."""
    pairing = _RowCalls()
    if _CALL_ROWS.isdisjoint(map(type, entries)):
        return pairing
    waiting: dict[CallId, _ToolUse] = {}
    for at, entry in enumerate(entries):
        if isinstance(entry, ToolResultEntry):
            _pair_result_row(entry, waiting, pairing)
        elif isinstance(entry, ToolUseEntry):
            _pair_call_row(entry, at, waiting, pairing)
        elif isinstance(entry, _SPEAKERS):
            answered = {block.tool_use_id for block in result_blocks(entry)}
            is_over = continues_conversation(entry)
            waiting = {
                id_: use
                for id_, use in waiting.items()
                if id_ not in answered and not (is_over and not _is_same_message(entry, use.entry))
            }
            if isinstance(entry, AssistantEntry):
                waiting.update((use.id, use) for use in _uses_in(entry, at))
    return pairing


def _pair_result_row(entry: ToolResultEntry, waiting: dict[CallId, _ToolUse], pairing: _RowCalls) -> None:
    """Pair the row of a result: it answers the call that it names, otherwise the first that waits."""
    block = next(result_blocks(entry), None)
    if block is None:
        return
    id_ = block.tool_use_id
    if id_:
        waiting.pop(id_ if id_ in waiting else pairing.aliases.get(id_, id_), None)
    elif waiting:
        call = next(iter(waiting))
        del waiting[call]
        pairing.results[call] = CallResult(entry, block)


def _pair_call_row(entry: ToolUseEntry, at: int, waiting: dict[CallId, _ToolUse], pairing: _RowCalls) -> None:
    """Pair the row of a call with the call that it repeats, or let it wait for its result."""
    for use in _uses_in(entry, at):
        calls = (call for call in waiting.values() if not call.has_row)
        repeated = next((call for call in calls if is_same_call(call.block, use.block, entry)), None)
        if repeated is not None:
            repeated.has_row = True
            pairing.repeats.add(at)
            if use.id not in waiting:
                pairing.aliases[use.id] = repeated.id
        else:
            use.has_row = True
            waiting[use.id] = use


def is_same_call(block: _UseBlock, row: _UseBlock, entry: ToolUseEntry) -> bool:
    """Whether the row of a call is the call that a message makes.

    It has the same id; or the same tool and input, if the row has no id for the call.
    """
    if row.id is not None and row.id == block.id:
        return True
    return entry.own_call_id is None and row.name == block.name and row.input == block.input


def _find_results(entries: Iterable[Entry]) -> tuple[dict[CallId, CallResult], dict[EntryId | None, CallResult]]:
    """Return results by the call they answer, and those that name none by the row they follow."""
    by_call: dict[CallId, CallResult] = {}
    unnamed: dict[EntryId | None, CallResult] = {}
    for entry in entries:
        if isinstance(entry, _SPEAKERS):
            for block in result_blocks(entry):
                result = CallResult(entry, block)
                if block.tool_use_id:
                    by_call[block.tool_use_id] = result
                elif isinstance(entry, UserEntry):
                    unnamed[entry.source_tool_assistant_uuid or entry.parent_uuid] = result
    unnamed.pop(None, None)
    return by_call, unnamed


def _answered_call(use: _ToolUse, result: CallResult, agent: AgentId | None, turn: int | None) -> Call:
    tool, text = use.block.name, extract_text(result.block.content)
    raw = result.entry.tool_use_result if isinstance(result.entry, UserEntry) else None
    value = typed_result(raw, tool)
    outcome, evidence = judge_outcome(Answer(tool, result.entry, result.block, value, text))
    started = agent_id_in_result(result.entry) or (agent_id_in_text(text) if tool in AGENT_STARTING_TOOLS else None)
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
        persisted=_persisted_path(value, text),
        feedback=refusal_feedback(result.entry, text) if outcome is Outcome.DENIED else None,
    )


def _unanswered_call(use: _ToolUse, verdict: Verdict, agent: AgentId | None, turn: int | None) -> Call:
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


def _persisted_path(value: ResultValue, text: str) -> Path | None:
    """Return the file that contains the output, if it was too long for the transcript."""
    path = getattr(value, "persisted_output_path", None)
    if path is None and text.lstrip().startswith("<persisted-output>"):
        match = _SAVED_OUTPUT.search(text)
        path = match[1].strip() if match else None
    return Path(path) if path else None


def _unanswered_verdicts(entries: Sequence[Entry], uses: list[_ToolUse]) -> dict[CallId, Verdict]:
    """Decide why calls have no result, by what was said next, results aside: one walk from the end of the file."""
    waiting: dict[int, list[_ToolUse]] = {}
    for use in uses:
        waiting.setdefault(use.at, []).append(use)
    ends: dict[CallId, Verdict] = {}
    nearest: _SpeakerEntry | None = None
    beyond: _SpeakerEntry | None = None  # the nearest one of another message than `nearest`
    for at in range(len(entries) - 1, -1, -1) if waiting else ():
        for use in waiting.get(at, ()):
            following = beyond if _is_same_message(use.entry, nearest) else nearest
            ends[use.id] = verdict_without_result(following, aborted=bool(use.entry.is_aborted_mid_stream))
        entry = entries[at]
        if isinstance(entry, _SPEAKERS) and continues_conversation(entry):
            beyond = beyond if _is_same_message(entry, nearest) else nearest
            nearest = entry
    return ends


def continues_conversation(entry: _SpeakerEntry) -> bool:
    """Whether calls before an entry usually get no result any more: it is neither a result nor the row of a call."""
    if isinstance(entry, AssistantEntry):
        return not isinstance(entry, ToolUseEntry)
    return next(result_blocks(entry), None) is None


def verdict_without_result(following: _SpeakerEntry | None, *, aborted: bool = False) -> Verdict:
    """Decide why a call has no result, by what was said next, other results and its own message aside."""
    if aborted:
        return Outcome.INTERRUPTED, "isAbortedMidStream"
    if following is None:
        return Outcome.PENDING, "nothing follows it"
    if isinstance(following, UserEntry) and _is_interrupt(following):
        return Outcome.INTERRUPTED, "an interrupt follows"
    return Outcome.LOST, "the conversation went on without its result"


def _is_interrupt(entry: UserEntry) -> bool:
    return bool(entry.interrupted_message_id) or entry.text.lstrip().startswith(INTERRUPT_MESSAGES)


def _is_same_message(speaker: _SpeakerEntry, other: _SpeakerEntry | None) -> bool:
    """Whether two rows are parts of one reply."""
    if not isinstance(speaker, AssistantEntry) or not isinstance(other, AssistantEntry):
        return False
    ids = [entry.message.id if entry.message is not None else None for entry in (speaker, other)]
    return ids[0] is not None and ids[0] == ids[1]


Verdict = tuple[Outcome, str]

# Tools whose own result is a string on success. For other known tools, a string is an error.
_STRING_RESULT_TOOLS = frozenset({"LS", "LSTool", "NotebookRead", "TodoRead", "ExitPlanMode", "exit_plan_mode"})
_INTERRUPTED_KIND = "interrupted"


class Answer(Struct, frozen=True):
    """A result to be judged: its row and block, the tool's own result, and what the model saw of it."""

    tool: str
    entry: UserEntry | AssistantEntry
    block: ResultBlock
    value: ResultValue
    text: str

    @property
    def is_error(self) -> bool | None:
        """Whether the block itself says that it is an error."""
        flag: bool | None = getattr(self.block, "is_error", None)
        return flag

    @property
    def sentence(self) -> str:
        """The sentence that replaces a result; empty for a real result."""
        return "" if self.is_error is False or isinstance(self.value, Struct) else self.text.lstrip()


def judge_outcome(answer: Answer) -> Verdict:
    """Decide how a call with a result ended."""
    return next((verdict for rule in _OUTCOME_RULES if (verdict := rule(answer)) is not None), (Outcome.OK, "a result"))


def _denial_kind(answer: Answer) -> Verdict | None:
    kind = answer.entry.tool_denial_kind if isinstance(answer.entry, UserEntry) else None
    if not kind:
        return None
    outcome = Outcome.INTERRUPTED if kind == _INTERRUPTED_KIND else Outcome.DENIED
    return outcome, f"toolDenialKind: {kind}"


def _permission_decision(answer: Answer) -> Verdict | None:
    decision: Any = answer.entry.permission_decision if isinstance(answer.entry, UserEntry) else None
    refused = isinstance(decision, dict) and decision.get("decision") == "reject"
    return (Outcome.DENIED, "permissionDecision: reject") if refused else None


def _fixed_sentence(answer: Answer) -> Verdict | None:
    sentence = answer.sentence
    if sentence.startswith(INTERRUPTIONS):
        return Outcome.INTERRUPTED, f"text: {_first_line(sentence)}"
    if sentence.startswith(REFUSALS) or HOOK_REFUSAL.match(sentence):
        return Outcome.DENIED, f"text: {_first_line(sentence)}"
    return None


def _interrupted_flag(answer: Answer) -> Verdict | None:
    if getattr(answer.value, "timed_out_after_ms", None):
        return Outcome.INTERRUPTED, "timedOutAfterMs in its result"
    if getattr(answer.value, "interrupted", None) is True:
        return Outcome.INTERRUPTED, "interrupted in its result"
    if getattr(answer.value, "was_interrupted", None) is True:
        return Outcome.INTERRUPTED, "wasInterrupted in its result"
    return None


def _error_flag(answer: Answer) -> Verdict | None:
    return (Outcome.ERROR, "is_error") if answer.is_error else None


def _error_element(answer: Answer) -> Verdict | None:
    return (Outcome.ERROR, "<tool_use_error>") if answer.sentence.startswith(TOOL_ERROR_TAG) else None


def _string_result(answer: Answer) -> Verdict | None:
    is_error_text = (
        isinstance(answer.value, str) and answer.tool in TOOL_RESULTS and answer.tool not in _STRING_RESULT_TOOLS
    )
    return (Outcome.ERROR, "a string in place of its result") if is_error_text and answer.is_error is None else None


def _success_flag(answer: Answer) -> Verdict | None:
    return (Outcome.ERROR, "success is false in its result") if getattr(answer.value, "success", 0) is False else None


def _server_error(answer: Answer) -> Verdict | None:
    """Whether it is an error of the API's own tools: an object with a code."""
    content = answer.block.content
    code = content.get("error_code") if isinstance(content, dict) else None
    return (Outcome.ERROR, f"error_code: {code}") if code else None


def _first_line(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= 60 else line[:59] + "…"  # noqa: PLR2004 - as much as reads well in a table


_OUTCOME_RULES: tuple[Callable[[Answer], Verdict | None], ...] = (
    _denial_kind,
    _permission_decision,
    _fixed_sentence,
    _interrupted_flag,
    _error_flag,
    _error_element,
    _string_result,
    _success_flag,
    _server_error,
)


def refusal_feedback(entry: UserEntry | AssistantEntry, text: str) -> str | None:
    """Return the person's own words in a result that is a refusal. `text` is what the model saw of it."""
    _, marker, words = text.partition(FEEDBACK_MARKER)
    words = "" if words.lstrip().startswith(CLARIFY_BUTTON) else words.partition(TRAILING_NOTE)[0].strip()
    recorded = entry.user_feedback if isinstance(entry, UserEntry) else None
    return words if marker and words else recorded if isinstance(recorded, str) and recorded else None


def feedback_in_results(entry: UserEntry, blocks: list[ResultBlock]) -> str | None:
    """Return the person's own words in a row of results, if one of them is a refusal with words."""
    for block in blocks:
        text = extract_text(block.content)
        if FEEDBACK_MARKER in text or entry.user_feedback:
            # No tool has its own shape for a refusal, so the tool's name is not needed.
            answer = Answer("", entry, block, typed_result(entry.tool_use_result, ""), text)
            if judge_outcome(answer)[0] is Outcome.DENIED and (words := refusal_feedback(entry, text)):
                return words
    return None
