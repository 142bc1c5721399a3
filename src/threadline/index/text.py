"""Extract the searchable text of an entry, by field.

Each thing an entry says is indexed once: tool output appears in a result in two shapes, and so does a file that was
read. Left out are base64, signatures and token counts, and what other entries repeat: partial output of running
commands, a subagent's entries repeated as progress, API requests, copies of files, system prompts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from msgspec import Struct

from threadline.index.vocabulary import encode_normalized
from threadline.model.attachments import PromptSnapshot, QueuedCommand
from threadline.model.blocks import (
    ImageBlock,
    McpToolResultBlock,
    McpToolUseBlock,
    RedactedThinkingBlock,
    ServerResultBlock,
    ServerToolUseBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from threadline.model.entries import (
    CHAIN_TYPES,
    AgentNameEntry,
    AgentProgress,
    AiEntry,
    AiTitleEntry,
    ApiRequestBlobEntry,
    ApiRequestEntry,
    ApiRequestShapeEntry,
    AssistantEntry,
    AttachmentEntry,
    AttributionSnapshotEntry,
    BashProgress,
    ChainEntry,
    ContentReplacementEntry,
    CostStateEntry,
    CustomTitleEntry,
    Entry,
    FailedEntry,
    FileHistoryDeltaEntry,
    FileHistorySnapshotEntry,
    FrameLinkEntry,
    HumanEntry,
    InternalEntry,
    LastPromptEntry,
    McpProgress,
    ModeEntry,
    OtherEntry,
    PermissionModeEntry,
    PowershellProgress,
    ProgressEntry,
    QueueOperationEntry,
    RelocatedEntry,
    ReplToolCall,
    ResultEntry,
    SearchResultsReceived,
    SkillProgress,
    SpeculationAcceptEntry,
    SummaryEntry,
    SystemEntry,
    TagEntry,
    TaskProgress,
    TaskSummaryEntry,
    ToolProgressEntry,
    ToolResultEntry,
    ToolsUsedEntry,
    ToolUseEntry,
    UserEntry,
    WorktreeStateEntry,
)
from threadline.model.program_texts import COMMAND_TAGS
from threadline.model.session import Act, ActKind
from threadline.model.text import extract_text
from threadline.thread import act_of, act_text, strip_prefaces

# Claude Code writes these tags into user entries when a command or task has output.
_OUTPUT_TAGS = (
    "<bash-stdout>",
    "<bash-stderr>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<task-notification>",
)
_RESULT_BLOCKS = (ServerResultBlock, McpToolResultBlock, ToolResultBlock)
_TYPED_KINDS = frozenset(
    {ActKind.PROMPT, ActKind.PROGRAMMATIC, ActKind.STEERING, ActKind.MEMORY, ActKind.COMMAND, ActKind.FEEDBACK}
)
# The kind that an unknown block or attachment names.
_TAG_KEY = ("tag",)
# Fields of attachments that contain paths, and those that contain no words.
_ATTACHMENT_PATH_FIELDS = ("filename", "path", "plan_file_path", "skill_dir", "output_file_path")
_HOOK_OUTPUT_FIELDS = ("stdout", "stderr")
_ATTACHMENT_IGNORED_FIELDS = frozenset(
    {
        *_ATTACHMENT_PATH_FIELDS,
        *_HOOK_OUTPUT_FIELDS,
        *("tag", "timestamp", "tool_use_id", "source_uuid", "process_id", "display_path", "digests", "usage"),
    }
)
_SYSTEM_FIELDS = (
    *("content", "summary", "description", "prompt", "stdout", "stderr", "output", "stop_reason"),
    *("hook_infos", "hook_errors", "hook_additional_context", "hook_name", "url", "upgrade_nudge"),
    *("command_run", "command_outcome", "prompt_submit_ending", "original_model", "fallback_model"),
    *("api_refusal_category", "api_refusal_explanation"),
)


def add_user(entry: UserEntry, texts: FieldParts) -> None:
    """Add a prompt, the result of a tool, or text that Claude Code inserted."""
    content = entry.message.content if entry.message is not None else None
    result = entry.tool_use_result if entry.tool_use_result is not None else entry.stream_result
    blocks = [item for item in content if type(item) is ToolResultBlock] if type(content) is list else []
    if blocks or result is not None:
        add_results(blocks, result, texts)
    if not blocks:
        _add_user_text(entry, content, texts)
        return
    if type(content) is list and len(content) > len(blocks):
        others = [item for item in content if type(item) is not ToolResultBlock]
        add_parts(
            texts, "injected", collect_strings([item.text if type(item) is TextBlock else item for item in others])
        )
    refused = entry.user_feedback or any(block.is_error for block in blocks)
    if refused and (act := act_of(entry)) is not None:
        add_parts(texts, "prompt", [act.text])


def _add_user_text(entry: UserEntry, content: Any, texts: FieldParts) -> None:
    """Add the text of a user entry, which a person or Claude Code wrote."""
    text = extract_text(content)
    act = act_of(entry)
    if act is None:
        add_parts(texts, "result" if text.lstrip().startswith(_OUTPUT_TAGS) else "injected", [text])
    else:
        _add_act(act, text, texts)
    for item in content if type(content) is list else ():
        if type(item) not in (str, TextBlock, ImageBlock):
            add_parts(texts, "injected", collect_strings(item, mute=_TAG_KEY))
    if entry.plan_content and entry.plan_content not in text:
        add_parts(texts, "injected", [entry.plan_content])


def _add_act(act: Act, text: str, texts: FieldParts) -> None:
    """Add a person's act, and the text that Claude Code wrote around it."""
    typed = strip_prefaces(text)
    if len(typed) < len(text):
        preface = text[: text.rfind(typed)]
        add_parts(texts, "injected", [preface] if preface.strip() else [])
    if act.kind is ActKind.SHELL:
        add_parts(texts, "command", [act.text])
        add_parts(texts, "result", [typed.partition("</bash-input>")[2]])
    elif act.kind in _TYPED_KINDS:
        add_parts(texts, "prompt", [act.text])
        add_parts(texts, "injected", [typed.partition("<command-contents>")[2]] if act.kind is ActKind.COMMAND else [])
    else:
        add_parts(texts, "injected", [typed])


def add_assistant(entry: AssistantEntry, texts: FieldParts) -> None:
    """Add the reply, thinking and calls of the model. Text that Claude Code wrote in its place is `injected`."""
    message = entry.message
    field = "injected" if entry.is_api_error_message or entry.is_synthetic else "reply"
    content = message.content if message is not None else None
    if type(content) is list:
        for item in content:
            _add_block(item, field, texts)
    elif type(content) is str:
        add_parts(texts, field, [content])
    elif message is not None:  # a gateway sent something else instead of a message
        data = entry.data
        add_parts(texts, "injected", collect_strings(data.get("message"), mute=("id", "model", "role")) if data else [])
    if entry.error is not None or entry.error_details is not None:
        add_parts(texts, "injected", collect_strings([entry.error, entry.error_details]))


def _add_block(item: Any, field: str, texts: FieldParts) -> None:
    kind = type(item)
    if kind is ToolUseBlock or kind is ServerToolUseBlock or kind is McpToolUseBlock:
        add_call(item.name, item.input, texts)
    elif kind is TextBlock:
        add_parts(texts, field, [item.text])
    elif kind is ThinkingBlock:
        add_parts(texts, "thinking", [item.thinking])
    elif kind is str:
        add_parts(texts, field, [item])
    elif isinstance(item, _RESULT_BLOCKS):
        add_parts(texts, "result", collect_strings(item.content))
    elif kind is not ImageBlock and kind is not RedactedThinkingBlock:
        add_parts(texts, "injected", collect_strings(item, mute=_TAG_KEY))


def add_attachment(entry: AttachmentEntry, texts: FieldParts) -> None:
    """Add what Claude Code attached, or what a person typed while the model was working."""
    attached = entry.attachment
    if attached is None or type(attached) is PromptSnapshot:
        return
    if type(attached) is QueuedCommand:
        _add_queued(entry, attached, texts)
        return
    for name in _ATTACHMENT_PATH_FIELDS:
        add_parts(texts, "path", collect_strings(getattr(attached, name, None)))
    strings = collect_strings(entry.rendered)
    output = collect_strings([getattr(attached, name, None) for name in _HOOK_OUTPUT_FIELDS])
    for parts in (collect_strings(attached, mute=_ATTACHMENT_IGNORED_FIELDS), output):
        strings += new_parts(parts, "\n".join(strings))
    add_parts(texts, "injected", strings)


def _add_queued(entry: AttachmentEntry, queued: QueuedCommand, texts: FieldParts) -> None:
    act = act_of(entry)
    if act is not None:
        add_parts(texts, "command" if act.kind is ActKind.SHELL else "prompt", [act.text])
    else:
        _add_tagged_text(extract_text(queued.prompt), "injected", texts)
    add_parts(texts, "path", collect_strings(queued.file_attachments))


def add_system(entry: SystemEntry, texts: FieldParts) -> None:
    """Add a message of Claude Code itself."""
    if entry.subtype == "turn_duration":
        return
    if entry.subtype == "local_command":
        _add_tagged_text(entry.text, "injected", texts)
        return
    add_parts(texts, "injected", collect_strings([getattr(entry, name) for name in _SYSTEM_FIELDS]))
    if entry.error is not None or entry.cause is not None:
        add_parts(texts, "injected", collect_strings([entry.error, entry.cause], everything=True))  # a code is a number
    if entry.compact_metadata is not None and entry.compact_metadata.user_context:
        add_parts(texts, "prompt", [entry.compact_metadata.user_context])


def add_queue(entry: QueueOperationEntry, texts: FieldParts) -> None:
    """Add what was typed while the model was working and waited in the queue."""
    text = entry.text
    is_machine = text.startswith(("<", '{"task_id"')) and not text.startswith(COMMAND_TAGS)
    _add_tagged_text(text, "injected" if is_machine else "prompt", texts)


def _add_tagged_text(text: str, otherwise: str, texts: FieldParts) -> None:
    """Add text whose first tag shows what it is: output, a command that a person typed, or something else."""
    start = text.lstrip()[:40]
    if start.startswith(_OUTPUT_TAGS):
        add_parts(texts, "result", [text])
    elif start.startswith(COMMAND_TAGS):
        add_parts(texts, "prompt", [act_text(text, ActKind.COMMAND)])
    else:
        add_parts(texts, otherwise, [text])


# Keys whose values nobody searches for: the kind of a block, and what only the API can read.
_IGNORED_KEYS = frozenset(
    {"type", "signature", "encrypted_content", "encrypted_index", "encrypted_stdout", "cache_control"}
)
_INT_RANGE = range(-(2**63), 2**64)


def collect_strings(value: Any, *, everything: bool = False, mute: Collection[str] = ()) -> list[str]:
    """All strings in a value, in order, each once. Keys and objects marked as base64 are left out.

    Args:
        value: any mixture of objects, lists, structs and plain values.
        everything: include numbers and the values of all keys.
        mute: keys of the outermost object whose values are left out.
    """
    if value is None:
        return []
    if type(value) is str:
        return [value] if value else []
    strings: dict[str, None] = {}
    ignored = () if everything else _IGNORED_KEYS
    # An explicit stack: a value may be nested deeper than Python's calls.
    stack = [item for key, item in _items(value) if key not in mute] if mute and _has_keys(value) else [value]
    stack.reverse()
    while stack:
        item = stack.pop()
        if type(item) is str:
            if item:
                strings[item] = None
        elif type(item) is list:
            stack += reversed(item)
        elif _has_keys(item):
            stack += reversed([inner for key, inner in _items(item) if key not in ignored])
        elif everything and (type(item) is float or (type(item) is int and item in _INT_RANGE)):
            strings[str(item)] = None
    return list(strings)


def _has_keys(value: Any) -> bool:
    return type(value) is dict or isinstance(value, Struct)


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    if type(value) is dict:
        return value.items() if value.get("type") != "base64" else ()
    return [(name, getattr(value, name)) for name in value.__struct_fields__]


FieldParts = dict[str, list[str]]
"""The parts of each field, in order."""

_PATH_KEYS = frozenset(
    {"file_path", "notebook_path", "path", "filePath", "notebookPath", "glob", "paths", "file_paths"}
)
_GLOB_TOOLS = frozenset({"Glob", "GlobTool"})
# More names are usually a listing of a whole tree.
_MAX_NAMES = 2000
# How many characters may be searched for repeated parts: beyond that, indexing them twice is cheaper.
_MAX_COMPARISON = 16_000_000
# Keys of results whose values are also in other entries or other keys.
_REPEATED_KEYS = frozenset(
    {
        *("prompt", "usage", "toolStats", "status", "retrieval_status", "questions", "oldTodos", "newTodos"),
        *("originalFile", "originalFileContents", "original_file", "updated_file", "new_source", "old_source"),
    }
)
# The requested change, in the keys of results and of calls.
_EDIT_KEYS = ("oldString", "newString", "old_string", "new_string", "content")
# A text that only lists names may be this much longer than the names.
_HEADING_CHARS = 200
_NUMBERED = re.compile(r"\s*\d+[→\t]")
_REMINDER = "<system-reminder>"


def add_call(name: str, tool_input: Any, texts: FieldParts) -> None:
    """Add the input of a tool: commands, paths, and everything else as `input`."""
    if type(tool_input) is not dict:
        add_parts(texts, "input", collect_strings(tool_input))
        return
    is_mcp = name.startswith("mcp__")
    if is_mcp:
        add_parts(texts, "input", [name])
    for key, value in tool_input.items():
        if key == "command" and type(value) is str:
            field = "command"
        elif key in _PATH_KEYS or (key == "pattern" and name in _GLOB_TOOLS):
            field = "path"
        else:
            field = "input"
        add_parts(texts, field, [value] if type(value) is str else collect_strings(value, everything=is_mcp))


def add_results(blocks: list[ToolResultBlock], result: Any, texts: FieldParts) -> None:
    """Add the results of tools: the text that the model saw, and the parts of `result` that this text lacks."""
    text = _blocks_text(blocks)
    if type(result) is dict:
        for key, adds in _RESULT_SHAPES.items():
            if key in result:
                text = adds(result, text, texts)
                break
        else:
            add_parts(texts, "result", new_parts(collect_strings(result, mute=_REPEATED_KEYS), text))
    elif result is not None:
        add_parts(texts, "result", new_parts(collect_strings(result), text))
    if text:
        add_parts(texts, "result", [text])


def _blocks_text(blocks: list[ToolResultBlock]) -> str:
    if len(blocks) == 1 and type(blocks[0].content) is str:
        return blocks[0].content
    return "\n".join(string for block in blocks for string in collect_strings(block.content))


def add_parts(texts: FieldParts, field: str, parts: list[str]) -> None:
    """Add parts to a field."""
    if parts:
        if field in texts:
            texts[field] += parts
        else:
            texts[field] = parts


def new_parts(parts: list[str], text: str) -> list[str]:
    """The parts that a text does not contain."""
    if not text or len(parts) * len(text) > _MAX_COMPARISON:
        return parts
    return [part for part in parts if not _contains(text, part)]


def _contains(text: str, part: str) -> bool:
    # Usually they are equal, or the text begins with the part: otherwise it is searched.
    return text.startswith(part) or part.removeprefix("Error: ").strip() in text


def _add_shell_result(result: dict[str, Any], text: str, texts: FieldParts) -> str:
    """Add output that the model did not see: it sees all of the output, or a part."""
    output = [value for key in ("stdout", "stderr") if type(value := result.get(key)) is str and value]
    add_parts(texts, "result", new_parts(output, text))
    add_parts(texts, "result", new_parts(collect_strings([result.get("returnCodeInterpretation")]), text))
    return text


def _add_read_result(result: dict[str, Any], text: str, texts: FieldParts) -> str:
    """Add a file's content, without line numbers. A reminder after it is not a part of the file."""
    file = result["file"]
    if type(file) is not dict:
        return text
    add_parts(texts, "path", collect_strings(file.get("filePath")))
    content = file.get("content")
    if type(content) is not str or not content:
        return text
    add_parts(texts, "result", [content])
    if not _NUMBERED.match(text):
        return "" if _contains(content, text) else text
    reminder = text.rfind(_REMINDER)
    if reminder >= 0 and text[reminder:] not in content:
        add_parts(texts, "injected", [text[reminder:]])
    return ""


def _add_edit_result(result: dict[str, Any], text: str, texts: FieldParts) -> str:
    """Add the lines of a change that the call does not contain: the old lines, and those around them."""
    add_parts(texts, "path", collect_strings(result.get("filePath")))
    edits = result.get("edits")
    requested = {
        line
        for edit in (result, *(edits if type(edits) is list else ()))
        if type(edit) is dict
        for key in _EDIT_KEYS
        if type(changed := edit.get(key)) is str
        for line in changed.split("\n")
    }
    hunks = result.get("structuredPatch")
    lines = [
        line[1:]
        for hunk in (hunks if type(hunks) is list else ())
        if type(hunk) is dict and type(hunk.get("lines")) is list
        for line in hunk["lines"]
        if type(line) is str and line[1:] not in requested
    ]
    if lines:
        add_parts(texts, "result", ["\n".join(lines)])
    return text


def _add_file_names(result: dict[str, Any], text: str, texts: FieldParts) -> str:
    """Add file names as paths. If the text only lists them again, they are cut out of it."""
    names = result["filenames"]
    listed = [name for name in names if type(name) is str] if type(names) is list else []
    add_parts(texts, "path", listed[:_MAX_NAMES])
    content = result.get("content")
    if type(content) is str and content:
        add_parts(texts, "result", new_parts([content], text))
    if not 0 < len(listed) <= _MAX_NAMES or len(text) > sum(map(len, listed)) + len(listed) + _HEADING_CHARS:
        return text
    first, last = text.find(listed[0]), text.rfind(listed[-1])
    return text if first < 0 or last < 0 else text[:first] + text[last + len(listed[-1]) :]


def _add_answers(result: dict[str, Any], text: str, texts: FieldParts) -> str:
    """Add the answers of a person as a prompt."""
    add_parts(texts, "prompt", collect_strings([result["answers"], result.get("annotations")]))
    return text


# By the key that identifies a kind of result; the first key that is present counts.
_RESULT_SHAPES = {
    "stdout": _add_shell_result,
    "file": _add_read_result,
    "structuredPatch": _add_edit_result,
    "filenames": _add_file_names,
    "answers": _add_answers,
}


MAX_FIELD_CHARS = 1_000_000
"""How many characters of a field are indexed; a longer text is cut between words."""

_ENVELOPE = frozenset(
    {
        *("type", "uuid", "parentUuid", "sessionId", "session_id", "timestamp", "version", "cwd", "gitBranch"),
        *("userType", "slug", "entrypoint", "requestId", "agentId", "agent_id"),
    }
)
_COMMON_FIELDS = frozenset((*ChainEntry.__struct_fields__, "key"))
_CUT_WINDOW = 1000


def extract_fields(entry: Entry) -> dict[str, str]:
    """The text of an entry by field, unchanged; only fields that are not empty.

    Each text appears once: a result contains the output of a tool in two shapes, and also the content of a file. Left
    out are base64, signatures and token counts, and what other entries contain: partial output of running commands, a
    subagent's entries repeated as progress, API requests, copies of files, system prompts. All strings of unknown
    entries and blocks are `injected`. A field ends after `MAX_FIELD_CHARS` characters.
    """
    return {field: text for field, parts in _collect_parts(entry).items() if (text := _join_parts(parts))}


def searchable_fields(entry: Entry) -> dict[str, str | bytes]:
    """The same fields as full-text search takes them: text that is not ASCII is normalized and encoded."""
    fields: dict[str, str | bytes] = {}
    for field, parts in _collect_parts(entry).items():
        if text := _join_parts(parts):
            is_plain = text.isascii() and "\x1b" not in text  # checked here to save a call
            fields[field] = text if is_plain else encode_normalized(text)
    return fields


def _collect_parts(entry: Entry) -> FieldParts:
    texts: FieldParts = {}
    _EXTRACTORS.get(type(entry), _add_own_fields)(entry, texts)
    if type(entry) in CHAIN_TYPES and (message := entry.system_message) is not None:  # type: ignore[attr-defined]
        add_parts(texts, "injected", [message])
    if entry.line.problems and not any(map(_join_parts, texts.values())):
        _add_all_strings(entry, texts)
    return texts


def _join_parts(parts: list[str]) -> str:
    text = parts[0] if len(parts) == 1 else "\n".join(filter(None, parts))
    if len(text) >= BASE64_RUN:
        text = strip_base64(text)
        if len(text) > MAX_FIELD_CHARS:
            text = _truncate(text)
    return "" if text.isspace() else text


def _truncate(text: str) -> str:
    """The beginning of a text, cut at the end of a word if possible."""
    end = max(text.rfind(space, MAX_FIELD_CHARS - _CUT_WINDOW, MAX_FIELD_CHARS + 1) for space in " \n")
    return text[: end if end > 0 else MAX_FIELD_CHARS]


def _add_nothing(_entry: Entry, _texts: FieldParts) -> None:
    pass


def _add_own_fields(entry: Entry, texts: FieldParts) -> None:
    """Add the fields of a kind that not all kinds have."""
    add_parts(
        texts,
        "injected",
        collect_strings([getattr(entry, name) for name in entry.__struct_fields__ if name not in _COMMON_FIELDS]),
    )


def _add_all_strings(entry: Entry, texts: FieldParts) -> None:
    """Add all strings of a line, or its bytes if it is not JSON."""
    if entry.kind == "blank":
        return
    data = entry.data
    strings = (
        collect_strings(data, mute=_ENVELOPE)
        if data is not None
        else [entry.raw[:MAX_FIELD_CHARS].decode(errors="ignore")]
    )
    add_parts(texts, "injected", strings)


def _title_from(name: str) -> Callable[[Any, FieldParts], None]:
    def title(entry: Any, texts: FieldParts) -> None:
        add_parts(texts, "title", collect_strings(getattr(entry, name)))

    return title


def _add_progress(entry: ProgressEntry, texts: FieldParts) -> None:
    """Add progress that the final entry does not repeat."""
    kind = type(entry.progress)
    if kind in (TaskProgress, ReplToolCall):
        _add_all_strings(entry, texts)
    elif kind not in _REPEATED_PROGRESS:
        add_parts(texts, "injected", collect_strings(entry.progress))


_REPEATED_PROGRESS = (
    BashProgress,
    PowershellProgress,
    AgentProgress,
    SkillProgress,
    McpProgress,
    SearchResultsReceived,
)


def _add_tool_use(entry: ToolUseEntry, texts: FieldParts) -> None:
    for block in entry.message.blocks if entry.message is not None else ():
        if type(block) is ToolUseBlock:
            add_call(block.name, block.input, texts)


def _add_tool_result(entry: ToolResultEntry, texts: FieldParts) -> None:
    add_parts(texts, "result", collect_strings(entry.tool_result))
    if entry.content:
        add_results([ToolResultBlock(content=entry.content)], None, texts)


def _add_final_result(entry: ResultEntry, texts: FieldParts) -> None:
    add_parts(texts, "result", collect_strings([entry.result, entry.structured_output, entry.errors]))


def _add_failure(entry: FailedEntry, texts: FieldParts) -> None:
    add_parts(texts, "result", collect_strings(entry.error))


def _add_human(entry: HumanEntry, texts: FieldParts) -> None:
    add_parts(texts, "prompt", _exported_strings(entry))


def _add_ai(entry: AiEntry, texts: FieldParts) -> None:
    add_parts(texts, "reply", _exported_strings(entry))


def _exported_strings(entry: HumanEntry | AiEntry) -> list[str]:
    return collect_strings([entry.text, entry.content, entry.message])


def _add_worktree(entry: WorktreeStateEntry, texts: FieldParts) -> None:
    if (worktree := entry.worktree_session) is not None:
        add_parts(texts, "path", collect_strings([worktree.worktree_path, worktree.original_cwd]))
        names = [worktree.worktree_name, worktree.worktree_branch, worktree.original_branch]
        add_parts(texts, "injected", collect_strings(names))


def _add_relocated(entry: RelocatedEntry, texts: FieldParts) -> None:
    add_parts(texts, "path", collect_strings(entry.relocated_cwd))


def _add_frame(entry: FrameLinkEntry, texts: FieldParts) -> None:
    add_parts(texts, "title", collect_strings(entry.title))
    add_parts(texts, "path", collect_strings(entry.path))
    add_parts(texts, "injected", collect_strings(entry.frame_url))


_EXTRACTORS: dict[type[Entry], Callable[[Any, FieldParts], None]] = {
    UserEntry: add_user,
    AssistantEntry: add_assistant,
    AttachmentEntry: add_attachment,
    SystemEntry: add_system,
    ProgressEntry: _add_progress,
    QueueOperationEntry: add_queue,
    SummaryEntry: _title_from("summary"),
    AiTitleEntry: _title_from("ai_title"),
    CustomTitleEntry: _title_from("custom_title"),
    TaskSummaryEntry: _title_from("summary"),
    AgentNameEntry: _title_from("agent_name"),
    TagEntry: _title_from("tag"),
    LastPromptEntry: _title_from("last_prompt"),
    FrameLinkEntry: _add_frame,
    WorktreeStateEntry: _add_worktree,
    RelocatedEntry: _add_relocated,
    ToolUseEntry: _add_tool_use,
    ToolResultEntry: _add_tool_result,
    ResultEntry: _add_final_result,
    FailedEntry: _add_failure,
    HumanEntry: _add_human,
    AiEntry: _add_ai,
    OtherEntry: _add_all_strings,
    **dict.fromkeys(
        (
            FileHistorySnapshotEntry,
            FileHistoryDeltaEntry,
            ContentReplacementEntry,
            AttributionSnapshotEntry,
            ApiRequestEntry,
            ApiRequestShapeEntry,
            ApiRequestBlobEntry,
            CostStateEntry,
            ModeEntry,
            PermissionModeEntry,
            ToolsUsedEntry,
            ToolProgressEntry,
            SpeculationAcceptEntry,
        ),
        _add_nothing,
    ),
}
_EXTRACTORS |= {kind: _add_all_strings for kind in InternalEntry.__subclasses__() if kind not in _EXTRACTORS}


BASE64_RUN = 256
"""The shortest run of base64 that is left out. A shorter one may be a name, and costs little."""

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_"
_WHOLE_RUN = re.compile("[A-Za-z0-9+/=_-]+")
# As in certificates and mail: lines of equal width. The last one may be shorter, but not shorter than a long word.
_WRAPPED = re.compile("(?:[A-Za-z0-9+/]{60,76}\r?\n){3,}(?:[A-Za-z0-9+/]{16,}={0,2})?")
_DIVIDERS = re.compile("[/_+-]")
_MIN_CHARACTER_COUNTS = (
    (str.isupper, BASE64_RUN // 8),
    (str.islower, BASE64_RUN // 8),
    (str.isdigit, BASE64_RUN // 20),
)


def strip_base64(text: str) -> str:
    """The text with a space in place of each long run of base64.

    Checks the end of a window first. Most text has a space near it, and then the window cannot contain a run.
    """
    parts: list[str] = []
    start = at = 0
    last = len(text) - BASE64_RUN
    while at <= last:
        space = text.rfind(" ", at, at + BASE64_RUN)
        if space >= 0:
            at = space + 1
            continue
        window = text[at : at + BASE64_RUN]
        other = len(window.rstrip(_ALPHABET))
        match = None
        if not other:
            match = _WHOLE_RUN.match(text, at) if _looks_random(window) else None
            at += 0 if match else BASE64_RUN
        else:
            at += other
            match = _WRAPPED.match(text, at) if window[other - 1] == "\n" else None
        if match:
            parts.append(text[start:at])
            start = at = match.end()
    return " ".join([*parts, text[start:]]) if parts else text


def _looks_random(window: str) -> bool:
    """Whether it is neither a path nor a ruler: it has no dividers, or letters of both cases and digits throughout."""
    if not _DIVIDERS.search(window):
        return True
    return all(sum(map(is_it, window)) >= few for is_it, few in _MIN_CHARACTER_COUNTS)
