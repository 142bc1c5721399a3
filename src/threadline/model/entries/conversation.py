"""The base class of entries, and the five kinds that form the conversation graph.

Those are `user`, `assistant`, `attachment`, `system` and `progress`.
`progress` rows were written by versions 2.1.2 to about 2.1.9x.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import field

from threadline.model.attachments import Attachment
from threadline.model.blocks import Message, ToolResultBlock
from threadline.model.entries.required import describe_rule, find_suspects, missing_fields
from threadline.model.places import (
    NOWHERE,
    AgentId,
    CallId,
    EntryId,
    Line,
    MessageId,
    Place,
    Problem,
    ProblemKind,
    RequestId,
    SessionId,
    strip_line,
)
from threadline.model.results import ResultValue, typed_result
from threadline.model.times import parse_timestamp, sortable_time
from threadline.model.usage import SYNTHETIC_MODEL, ModelUsage
from threadline.shape import OTHER_TAG, OWN_PREFIX, Shape, lenient_loads

_EARLIEST, _LATEST = "2020", "2101"
"""A timestamp outside these years is wrong: Claude Code did not exist before."""


class Entry(Shape, frozen=True, tag_field="type"):
    """A decoded line. Each kind has its own class; all have these fields.

    `line` is set by the reader, whatever the JSON contains.
    """

    line: Line = field(default=NOWHERE, name="threadline:line")
    uuid: EntryId | None = None
    session_id: SessionId | None = None
    timestamp_text: str | int | float | None = field(default=None, name="timestamp")

    @property
    def kind(self) -> str:
        """The entry's type in the transcript, such as `user` or `ai-title`."""
        return str(type(self).__struct_config__.tag)

    @property
    def raw(self) -> bytes:
        """The bytes of this entry, with the newline."""
        return self.line.raw

    @property
    def place(self) -> Place:
        """The place of the entry."""
        return self.line.place

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the line, if anything."""
        return self.line.problems

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        """What is wrong with the line, including missing required fields and impossible timestamps."""
        missing = missing_fields(self)
        text = self.timestamp_text
        time = sortable_time(text) if text is not None else None
        is_time = text is None or time is not None
        is_possible = is_time and (time is None or _EARLIEST <= time < _LATEST)
        if is_possible and not missing:
            return self.line.problems
        problems = [*self.problems]
        if not is_possible:
            reason = "is not a time" if not is_time else "is not when a session was written; it is shown as it is"
            message = f"{str(text)[:40]!r} {reason}"
            problems.append(Problem(ProblemKind.BAD_TIMESTAMP, self.place.within("$.timestamp"), message))
        problems += (
            Problem(ProblemKind.MISSING_FIELD, self.place.within(f"$.{rule.field}"), describe_rule(rule))
            for rule in missing
        )
        return tuple(problems)

    @property
    def timestamp(self) -> datetime | None:
        """When it was written, in UTC; None if unknown."""
        return parse_timestamp(self.timestamp_text)

    @property
    def data(self) -> Any:
        """The line's JSON, decoded on each access: every field, known or not. None if it is not JSON."""
        try:
            return lenient_loads(strip_line(self.raw)).value
        except (ValueError, RecursionError):
            return None

    @property
    def extra(self) -> dict[str, Any]:
        """The top-level fields for which this kind has no attribute."""
        data = self.data
        if not isinstance(data, dict):
            return {}
        fields = {*type(self).__struct_encode_fields__, "type"}
        return {key: value for key, value in data.items() if key not in fields}

    def __repr__(self) -> str:
        fields = (f"{name}={value!r}" for name, value in self._repr_fields() if value is not None)
        return f"{type(self).__name__}({', '.join(fields)})"

    def _repr_fields(self) -> tuple[tuple[str, Any], ...]:
        """The fields shown by `repr`; kinds add their own."""
        place = str(self.place) if self.line is not NOWHERE else None
        return (("place", place), ("uuid", self.uuid), ("timestamp", self.timestamp_text))


class ForkedFrom(Shape, frozen=True):
    """The original of an entry that a branched session copied."""

    session_id: SessionId | None = None
    message_uuid: EntryId | None = None


def may_have_problems(entries: Sequence[Entry], times: Sequence[str | None]) -> list[Entry]:
    """Return the entries whose `all_problems` may not be empty, in their order.

    Most entries have none, and this is cheaper than asking each of them. `times` are their `sortable_time`s.
    """
    suspects = {entry.line.offset: entry for entry in find_suspects(entries)}
    suspects |= {
        entry.line.offset: entry
        for entry, time in zip(entries, times, strict=True)
        if not (_EARLIEST <= time < _LATEST if time is not None else entry.timestamp_text is None)
    }
    return [suspects[offset] for offset in sorted(suspects)]


def entry_subtype(entry: Entry) -> str | None:
    """Return the subtype of a system entry, or the type of an attachment."""
    return getattr(entry, "subtype", None) or getattr(getattr(entry, "attachment", None), "type", None)


def kind_label(entry: Entry) -> str:
    """Return the kind of an entry with its subtype, if it has one: `user`, `system/api_error`."""
    subtype = entry_subtype(entry)
    return f"{entry.kind}/{subtype}" if subtype else entry.kind


class ChainEntry(Entry, frozen=True):
    """The fields that the five kinds of the conversation graph share."""

    parent_uuid: EntryId | None = None
    logical_parent_uuid: EntryId | None = None
    is_agent: bool | None = field(default=None, name="isSidechain")
    user_type: str | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    slug: str | None = None
    agent_id: AgentId | None = None
    entrypoint: str | None = None
    is_meta: bool | None = None
    session_kind: str | None = None
    session_id_again: SessionId | None = field(default=None, name="session_id")
    team_name: str | None = None
    agent_name: str | None = None
    is_teammate: bool | None = None
    forked_from: ForkedFrom | None = None
    spawning_uuid: EntryId | None = field(default=None, name="sidechainParentUuid")
    parent_call_id: str | None = field(default=None, name="parent_tool_use_id")
    system_message: str | None = None
    agent_id_again: AgentId | None = field(default=None, name="agent_id")
    agent_transcript_path: str | None = field(default=None, name="agent_transcript_path")
    model_usage: dict[str, ModelUsage] | None = None

    @property
    def author_agent_id(self) -> AgentId | None:
        """The agent that wrote it, in whichever of its two fields the id is."""
        return self.agent_id or (self.agent_id_again if not self._names_other_agent else None)

    @property
    def named_agent_id(self) -> AgentId | None:
        """The agent that it is about, if it names the transcript of an agent that did not write it."""
        if not self._names_other_agent or self.agent_transcript_path is None:
            return None
        stem = self.agent_transcript_path.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl")
        return self.agent_id_again or AgentId(stem.removeprefix("agent-"))

    @property
    def _names_other_agent(self) -> bool:
        return self.agent_transcript_path is not None and not self.is_agent


class OtherEntry(Entry, frozen=True, tag=OTHER_TAG):
    """A line that no kind fits, kept unchanged.

    `tag` is the line's own `type` if it is an object of an unknown kind. Otherwise it is `blank` (an empty line),
    `damaged` (not decodable), `pending` (a last line that is still being written) or `untyped` (an object without a
    `type`).
    """

    tag: str = field(default="", name=f"{OWN_PREFIX}tag")

    @property
    def kind(self) -> str:
        """The line's own `type`, or `blank`, `damaged`, `pending`, `untyped`."""
        return self.tag

    def _repr_fields(self) -> tuple[tuple[str, Any], ...]:
        return (("kind", self.tag), *super()._repr_fields())


class Origin(Shape, frozen=True):
    """Who authored the text."""

    kind: str | None = None
    from_: Any = field(default=None, name="from")
    name: str | None = None
    body: Any = None
    msg_id: str | None = field(default=None, name="msg_id")
    from_mode: str | None = None
    verified_peer_pid: int | None = None
    hop_chain: Any = None
    sender_task_id: str | None = None
    server: str | None = None
    producer: str | None = None
    run_id: str | None = None


class ThinkingMetadata(Shape, frozen=True):
    """How much thinking the prompt requested."""

    level: str | None = None
    disabled: bool | None = None
    triggers: list[Any] | None = None
    max_thinking_tokens: int | None = None


class TurnPosition(Shape, frozen=True):
    """The position of the turn in the session."""

    prompt_index: int | None = None
    turn_index: int | None = None


class McpMeta(Shape, frozen=True):
    """What an MCP server sent in addition to its content."""

    structured_content: Any = None
    meta: Any = field(default=None, name="_meta")
    resource_links: list[Any] | None = None


class UserEntry(ChainEntry, frozen=True, tag="user"):
    """A prompt, a tool's result, or text that Claude Code inserted; the fields show which."""

    prompt_id: str | None = None
    message: Message | None = None
    tool_use_result: Any = None
    source_tool_assistant_uuid: EntryId | None = field(default=None, name="sourceToolAssistantUUID")
    source_tool_use_id: CallId | None = field(default=None, name="sourceToolUseID")
    permission_mode: str | None = None
    prompt_source: str | None = None
    origin: Origin | None = None
    is_compact_summary: bool | None = None
    is_visible_in_transcript_only: bool | None = None
    thinking_metadata: ThinkingMetadata | None = None
    todos: list[Any] | None = None
    image_paste_ids: list[int | str] | None = None
    plan_content: str | None = None
    interrupted_message_id: MessageId | None = None
    tool_denial_kind: str | None = None
    permission_decision: Any = None
    mcp_call_not_read_only: str | None = None
    sandboxed: bool | None = None
    refused_message_id: MessageId | None = None
    queue_skip_attachments: bool | None = None
    classifier_meta_lines: Any = None
    user_feedback: Any = None
    tool_ends_turn: bool | None = None
    turn_companion: Any = None
    interrupted_by_shutdown: bool | None = None
    mcp_meta: McpMeta | None = None
    turn_origin: Any = None
    turn_position: TurnPosition | None = None
    custom_instructions: Any = None
    images: list[Any] | None = None
    attachments: list[Any] | None = None
    is_replay: bool | None = None
    is_synthetic: bool | None = None
    stream_result: Any = field(default=None, name="tool_use_result")

    @property
    def text(self) -> str:
        """The text blocks of the message."""
        return self.message.text if self.message is not None else ""

    @property
    def call_id(self) -> CallId | None:
        """The call whose result this entry is, if it is one."""
        content = self.message.content if self.message is not None else None
        for item in content if isinstance(content, list) else ():
            if isinstance(item, ToolResultBlock):
                return item.tool_use_id
        return None

    @property
    def result(self) -> ResultValue:
        """The tool's own result, typed by its keys; None if there is none.

        A string is an error or a refusal (and normal for old `LS`), a list contains blocks, and an unknown object is an
        `OtherResult`. If the call is known, use `typed_result(value, tool)` instead.
        """
        return typed_result(self.tool_use_result)


class AssistantEntry(ChainEntry, frozen=True, tag="assistant"):
    """Usually one block of a reply: entries that share `message.id` are one message."""

    message: Message | None = None
    request_id: RequestId | None = None
    is_api_error_message: bool | None = None
    error: Any = None
    api_error: Any = None
    api_error_status: int | str | None = None
    api_error_type: str | None = None
    error_details: Any = None
    effort: str | None = None
    advisor_model: str | None = None
    attribution_agent: str | None = None
    attribution_skill: str | None = None
    attribution_plugin: str | None = None
    attribution_mcp_server: str | None = None
    attribution_mcp_tool: str | None = None
    is_aborted_mid_stream: bool | None = None
    supersedes_uuids: list[EntryId] | None = None
    api_block_index: int | None = None
    request_ref: str | None = None
    requested_model: str | None = None
    prompt_cache_requested: str | None = None
    made_by: str | None = None
    per_turn_effort: str | None = None
    server_classifier_request: str | None = None
    thinking_display: str | None = None
    thinking_duration_ms: float | None = None
    tool_input_stream_ms: float | None = None
    failed_response_had_no_tool_call: bool | None = None
    cost_usd: float | None = field(default=None, name="costUSD")
    duration_ms: float | None = None

    @property
    def text(self) -> str:
        """The text blocks of the message."""
        return self.message.text if self.message is not None else ""

    @property
    def stop_reason(self) -> str | None:
        """Why the model stopped: `end_turn`, `tool_use`, `max_tokens` and so on; None while it is writing."""
        return self.message.stop_reason if self.message is not None else None

    @property
    def service_tier(self) -> str | None:
        """The service tier of the API that answered, if the entry contains it."""
        usage = self.message.usage if self.message is not None else None
        return usage.service_tier if usage is not None else None

    @property
    def is_synthetic(self) -> bool:
        """Whether Claude Code wrote it itself (`<synthetic>`): it is not from a model, and nothing was spent."""
        return self.message is not None and self.message.model == SYNTHETIC_MODEL


class AttachmentEntry(ChainEntry, frozen=True, tag="attachment"):
    """Context that Claude Code adds for the model. `queued_command` is what a person typed meanwhile."""

    attachment: Attachment | None = None
    rendered: list[Any] | None = None
    rendered_role: str | None = None
    rendered_beside_tool_result: Any = None
    rendered_in_human_turn: list[Any] | None = None
    prompt_id: str | None = None


class PreservedSegment(Shape, frozen=True):
    """Entries from before a compaction that stay in the conversation after it."""

    head_uuid: EntryId | None = None
    anchor_uuid: EntryId | None = None
    tail_uuid: EntryId | None = None


class PreservedMessages(Shape, frozen=True):
    """Entries from before a compaction that stay in the conversation after it, as a list of ids."""

    anchor_uuid: EntryId | None = None
    uuids: list[EntryId] | None = None
    all_uuids: list[EntryId] | None = None


class CompactMetadata(Shape, frozen=True):
    """What a compaction did."""

    trigger: str | None = None
    pre_tokens: int | None = None
    post_tokens: int | None = None
    duration_ms: float | None = None
    cumulative_dropped_tokens: int | None = None
    messages_summarized: int | None = None
    user_context: str | None = None
    pre_compact_discovered_tools: list[str] | None = None
    preserved_segment: PreservedSegment | None = None
    preserved_messages: PreservedMessages | None = None


class MicrocompactMetadata(Shape, frozen=True):
    """Which old tool results were blanked for the model."""

    trigger: str | None = None
    pre_tokens: int | None = None
    tokens_saved: int | None = None
    compacted_tool_ids: list[str] | None = None
    cleared_attachment_uuids: list[EntryId] | None = field(default=None, name="clearedAttachmentUUIDs")


class HookInfo(Shape, frozen=True):
    """One hook that ran when the turn stopped."""

    command: str | None = None
    duration_ms: float | None = None
    prompt_text: str | None = None


class SystemEntry(ChainEntry, frozen=True, tag="system"):
    """A message from Claude Code itself. `subtype` determines which of the fields are present: see `SUBTYPES`."""

    subtype: str | None = None
    content: Any = None
    level: str | None = None
    tool_use_id: str | None = field(default=None, name="toolUseID")
    # compactions
    compact_metadata: CompactMetadata | None = None
    microcompact_metadata: MicrocompactMetadata | None = None
    # turns and hooks
    duration_ms: float | None = None
    message_count: int | None = None
    pending_background_agent_count: int | None = None
    pending_workflow_count: int | None = None
    hook_count: int | None = None
    hook_infos: list[HookInfo] | None = None
    hook_errors: list[Any] | None = None
    hook_additional_context: Any = None
    prevented_continuation: bool | None = None
    stop_reason: str | None = None
    has_output: bool | None = None
    prevent_continuation: bool | None = None
    # API errors and refusals
    error: Any = None
    cause: Any = None
    retry_in_ms: float | None = None
    retry_attempt: int | None = None
    max_retries: int | None = None
    source: str | None = None
    original_model: str | None = None
    fallback_model: str | None = None
    trigger: str | None = None
    direction: str | None = None
    scope: str | None = None
    request_id: RequestId | None = None
    api_refusal_category: str | None = None
    api_refusal_explanation: str | None = None
    refused_user_message_uuid: EntryId | None = None
    retracted_message_uuids: list[EntryId] | None = None
    # local commands
    command_run: Any = None
    command_outcome: Any = None
    context_usage: Any = None
    prompt_submit_ending: Any = None
    # remote control
    url: str | None = None
    upgrade_nudge: str | None = None
    # stream-json dumps: Claude Code itself never writes them to disk
    tools: list[Any] | None = None
    mcp_servers: list[Any] | None = field(default=None, name="mcp_servers")
    model: str | None = None
    permission_mode: str | None = None
    slash_commands: list[Any] | None = field(default=None, name="slash_commands")
    api_key_source: str | None = None
    claude_code_version: str | None = field(default=None, name="claude_code_version")
    output_style: str | None = field(default=None, name="output_style")
    agents: list[Any] | None = None
    skills: list[Any] | None = None
    plugins: list[Any] | None = None
    status: str | None = None
    summary: str | None = None
    hook_id: str | None = field(default=None, name="hook_id")
    hook_name: str | None = field(default=None, name="hook_name")
    hook_event: str | None = field(default=None, name="hook_event")
    stdout: str | None = None
    stderr: str | None = None
    output: str | None = None
    outcome: str | None = None
    exit_code: int | None = field(default=None, name="exit_code")
    task_id: str | None = field(default=None, name="task_id")
    stream_tool_use_id: str | None = field(default=None, name="tool_use_id")
    description: str | None = None
    task_type: str | None = field(default=None, name="task_type")
    subagent_type: str | None = field(default=None, name="subagent_type")
    prompt: str | None = None
    usage: Any = None
    last_tool_name: str | None = field(default=None, name="last_tool_name")
    output_file: str | None = field(default=None, name="output_file")
    stream_compact_metadata: Any = field(default=None, name="compact_metadata")

    @property
    def text(self) -> str:
        """The content, if it is text."""
        return self.content if isinstance(self.content, str) else ""

    @property
    def api_error_text(self) -> str:
        """What failed in a request to the API, and the attempt: `529 Overloaded · attempt 2 of 10`."""
        error = self.error if isinstance(self.error, dict) else {}
        status = error.get("status") or _innermost_text(self.cause, "code") or ""
        message = _innermost_text(error, "message") or (self.error if isinstance(self.error, str) else "") or self.text
        kind = _innermost_text(error, "type") or _innermost_text(error, "code")
        attempt = (
            f" · attempt {self.retry_attempt} of {self.max_retries}" if self.retry_attempt and self.max_retries else ""
        )
        words = " ".join(str(word) for word in (status, message or kind or "request failed") if word)
        return words.rstrip(".") + attempt


def _innermost_text(value: Any, name: str) -> str:
    """Return the innermost text of a field: API errors are wrapped several times."""
    text = ""
    for _ in range(8):
        if not isinstance(value, dict):
            break
        if isinstance(value.get(name), str):
            text = value[name] if value[name] != "error" else text
        value = value.get("error") or value.get("cause")
    return text


SUBTYPES: dict[str, str] = {
    "compact_boundary": "earlier entries were replaced by a summary",
    "microcompact_boundary": "old tool results were blanked for the model",
    "local_command": "a command that ran in Claude Code itself, or its output",
    "turn_duration": "a turn ended",
    "stop_hook_summary": "the hooks that ran when a turn stopped",
    "api_error": "a request failed and will be tried again",
    "away_summary": "what happened while the person was away",
    "scheduled_task_fire": "a scheduled prompt was sent",
    "bridge_status": "remote control started or ended",
    "informational": "a notice",
    "model_refusal_fallback": "a model refused and another answered",
    "model_refusal_no_fallback": "a model refused and none answered",
    "api_refusal": "the API refused",
    "model_consent_fallback": "another model answered, with consent",
    "model_fallback": "another model answered",
    "agents_killed": "agents were stopped",
    "thinking": "a notice about thinking",
    "permission_retry": "a refused call was tried again",
    "memory_saved": "something was remembered",
    "session_start": "a session began",
    "error": "an error notice",
    # stream-json only
    "init": "stream-json: a session began",
    "summary": "stream-json: a summary",
    "status": "stream-json: what Claude Code is doing",
    "task_started": "stream-json: a background task began",
    "task_progress": "stream-json: how a background task is doing",
    "task_notification": "stream-json: a background task ended",
    "hook_started": "stream-json: a hook began",
    "hook_progress": "stream-json: a hook is running",
    "hook_response": "stream-json: a hook answered",
}
"""Every known subtype and its meaning. An entry without one is an early notice."""


class HookProgress(Shape, frozen=True, tag="hook_progress"):
    """A hook is running."""

    hook_event: str | None = None
    hook_name: str | None = None
    command: str | None = None
    status_message: str | None = None


class ShellProgress(Shape, frozen=True):
    """The output of a command so far."""

    output: str | None = None
    full_output: str | None = None
    elapsed_time_seconds: float | None = None
    total_lines: int | None = None
    total_bytes: int | None = None
    task_id: str | None = None
    timeout_ms: float | None = None


class BashProgress(ShellProgress, frozen=True, tag="bash_progress"):
    """The output of a shell command so far."""


class PowershellProgress(ShellProgress, frozen=True, tag="powershell_progress"):
    """The same on Windows."""


class AgentMessage(Shape, frozen=True):
    """An agent's entry, repeated with the same message id as in the agent's own transcript."""

    type: str | None = None
    message: Message | None = None
    timestamp: str | None = None
    request_id: RequestId | None = None
    uuid: EntryId | None = None
    tool_use_result: Any = None
    is_meta: bool | None = None
    parent_uuid: EntryId | None = None
    is_api_error_message: bool | None = None
    error: Any = None
    source_tool_assistant_uuid: EntryId | None = field(default=None, name="sourceToolAssistantUUID")
    source_tool_use_id: str | None = field(default=None, name="sourceToolUseID")


class AgentProgress(Shape, frozen=True, tag="agent_progress"):
    """What an agent is doing."""

    message: AgentMessage | None = None
    normalized_messages: list[Any] | None = None
    prompt: str | None = None
    agent_id: AgentId | None = None
    resume: Any = None


class SkillProgress(Shape, frozen=True, tag="skill_progress"):
    """What a skill is doing."""

    message: AgentMessage | None = None
    normalized_messages: list[Any] | None = None
    prompt: str | None = None
    agent_id: AgentId | None = None


class McpProgress(Shape, frozen=True, tag="mcp_progress"):
    """The progress of a call to an MCP server."""

    status: str | None = None
    server_name: str | None = None
    tool_name: str | None = None
    elapsed_time_ms: float | None = None


class WaitingForTask(Shape, frozen=True, tag="waiting_for_task"):
    """Waiting for a background task."""

    task_description: str | None = None
    task_type: str | None = None


class QueryUpdate(Shape, frozen=True, tag="query_update"):
    """The query of a web search."""

    query: str | None = None


class SearchResultsReceived(Shape, frozen=True, tag="search_results_received"):
    """The number of results of a web search."""

    result_count: int | None = None
    query: str | None = None


class TaskProgress(Shape, frozen=True, tag="task_progress"):
    """The progress of a background task."""


class ReplToolCall(Shape, frozen=True, tag="repl_tool_call"):
    """A call made from within another tool."""


class OtherProgress(Shape, frozen=True, tag=OTHER_TAG):
    """Progress of an unknown type: its tag, and the complete object in `data`."""

    tag: str = ""
    data: Any = None


ProgressData = (
    HookProgress
    | BashProgress
    | PowershellProgress
    | AgentProgress
    | SkillProgress
    | McpProgress
    | WaitingForTask
    | QueryUpdate
    | SearchResultsReceived
    | TaskProgress
    | ReplToolCall
    | OtherProgress
)


class ProgressEntry(ChainEntry, frozen=True, tag="progress"):
    """The progress of a call. Progress rows are part of the parent chain."""

    progress: ProgressData | None = field(default=None, name="data")
    parent_tool_use_id: str | None = field(default=None, name="parentToolUseID")
    tool_use_id: str | None = field(default=None, name="toolUseID")
