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

from threadline.index.store import FIELDS
from threadline.index.vocabulary import normalize_text
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
from threadline.model.session import Act, ActKind
from threadline.model.text import extract_text
from threadline.thread import act_of, act_text, strip_prefaces

# What the program writes in a person's place when something that was started has something to show.
_OUTPUT_TAGS = (
    "<bash-stdout>",
    "<bash-stderr>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<task-notification>",
)
_COMMAND_TAGS = ("<command-name>", "<command-message>")
_RESULT_BLOCKS = (ServerResultBlock, McpToolResultBlock, ToolResultBlock)
_TYPED_KINDS = frozenset(
    {ActKind.PROMPT, ActKind.PROGRAMMATIC, ActKind.STEERING, ActKind.MEMORY, ActKind.COMMAND, ActKind.FEEDBACK}
)
# What a thing of an unknown kind calls itself.
_TAG_KEY = ("tag",)
# Fields of attachments that hold paths, and those that hold no words.
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
    """A prompt, a tool's result, or what the program put in."""
    content = entry.message.content if entry.message is not None else None
    told = entry.tool_use_result if entry.tool_use_result is not None else entry.stream_result
    blocks = [item for item in content if type(item) is ToolResultBlock] if type(content) is list else []
    if blocks or told is not None:
        add_results(blocks, told, texts)
    if not blocks:
        _add_user_text(entry, content, texts)
        return
    if type(content) is list and len(content) > len(blocks):
        beside = [item for item in content if type(item) is not ToolResultBlock]
        add_parts(
            texts, "injected", collect_strings([item.text if type(item) is TextBlock else item for item in beside])
        )
    refused = entry.user_feedback or any(block.is_error for block in blocks)
    if refused and (act := act_of(entry)) is not None:
        add_parts(texts, "prompt", [act.text])


def _add_user_text(entry: UserEntry, content: Any, texts: FieldParts) -> None:
    """Text that stands in a person's place: theirs, or the program's."""
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
    """A person's act, and what the program wrote around it."""
    own = strip_prefaces(text)
    if len(own) < len(text):
        before = text[: text.rfind(own)]
        add_parts(texts, "injected", [before] if before.strip() else [])
    if act.kind is ActKind.SHELL:
        add_parts(texts, "command", [act.text])
        add_parts(texts, "result", [own.partition("</bash-input>")[2]])
    elif act.kind in _TYPED_KINDS:
        add_parts(texts, "prompt", [act.text])
        add_parts(texts, "injected", [own.partition("<command-contents>")[2]] if act.kind is ActKind.COMMAND else [])
    else:
        add_parts(texts, "injected", [own])


def add_assistant(entry: AssistantEntry, texts: FieldParts) -> None:
    """What the model said, thought and called; what the program says in its place is put in."""
    message = entry.message
    said = "injected" if entry.is_api_error_message or entry.is_synthetic else "reply"
    content = message.content if message is not None else None
    if type(content) is list:
        for item in content:
            _add_block(item, said, texts)
    elif type(content) is str:
        add_parts(texts, said, [content])
    elif message is not None:  # what a gateway sent instead of a message
        data = entry.data
        add_parts(texts, "injected", collect_strings(data.get("message"), mute=("id", "model", "role")) if data else [])
    if entry.error is not None or entry.error_details is not None:
        add_parts(texts, "injected", collect_strings([entry.error, entry.error_details]))


def _add_block(item: Any, said: str, texts: FieldParts) -> None:
    kind = type(item)
    if kind is ToolUseBlock or kind is ServerToolUseBlock or kind is McpToolUseBlock:
        add_call(item.name, item.input, texts)
    elif kind is TextBlock:
        add_parts(texts, said, [item.text])
    elif kind is ThinkingBlock:
        add_parts(texts, "thinking", [item.thinking])
    elif kind is str:
        add_parts(texts, said, [item])
    elif isinstance(item, _RESULT_BLOCKS):
        add_parts(texts, "result", collect_strings(item.content))
    elif kind is not ImageBlock and kind is not RedactedThinkingBlock:
        add_parts(texts, "injected", collect_strings(item, mute=_TAG_KEY))


def add_attachment(entry: AttachmentEntry, texts: FieldParts) -> None:
    """What the program attached; or what a person typed while the model was working."""
    attached = entry.attachment
    if attached is None or type(attached) is PromptSnapshot:
        return
    if type(attached) is QueuedCommand:
        _add_queued(entry, attached, texts)
        return
    for name in _ATTACHMENT_PATH_FIELDS:
        add_parts(texts, "path", collect_strings(getattr(attached, name, None)))
    said = collect_strings(entry.rendered)
    printed = collect_strings([getattr(attached, name, None) for name in _HOOK_OUTPUT_FIELDS])
    for parts in (collect_strings(attached, mute=_ATTACHMENT_IGNORED_FIELDS), printed):
        said += new_parts(parts, "\n".join(said))
    add_parts(texts, "injected", said)


def _add_queued(entry: AttachmentEntry, queued: QueuedCommand, texts: FieldParts) -> None:
    act = act_of(entry)
    if act is not None:
        add_parts(texts, "command" if act.kind is ActKind.SHELL else "prompt", [act.text])
    else:
        _add_tagged_text(extract_text(queued.prompt), "injected", texts)
    add_parts(texts, "path", collect_strings(queued.file_attachments))


def add_system(entry: SystemEntry, texts: FieldParts) -> None:
    """What the program has to say."""
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
    """What was typed while the model was working, as it waited."""
    text = entry.text
    machine = text.startswith(("<", '{"task_id"')) and not text.startswith(_COMMAND_TAGS)
    _add_tagged_text(text, "injected" if machine else "prompt", texts)


def _add_tagged_text(text: str, otherwise: str, texts: FieldParts) -> None:
    """Text that says itself what it is: output, a command that a person typed, or something else."""
    start = text.lstrip()[:40]
    if start.startswith(_OUTPUT_TAGS):
        add_parts(texts, "result", [text])
    elif start.startswith(_COMMAND_TAGS):
        add_parts(texts, "prompt", [act_text(text, ActKind.COMMAND)])
    else:
        add_parts(texts, otherwise, [text])


# Keys whose values are words to nobody: what kind of thing it is, and what only the API can read.
_IGNORED_KEYS = frozenset(
    {"type", "signature", "encrypted_content", "encrypted_index", "encrypted_stdout", "cache_control"}
)
_KEYED = (dict, Struct)
_INT_RANGE = range(-(2**63), 2**64)


def collect_strings(value: Any, *, everything: bool = False, mute: Collection[str] = ()) -> list[str]:
    """All strings in a value, in its order, each once; keys are left out, and what says that it is base64.

    Args:
        value: any mixture of objects, lists, structs and plain values.
        everything: numbers too, and nothing is left out for what its key is called.
        mute: keys of the outermost object whose values are left out.
    """
    if value is None:
        return []
    if type(value) is str:
        return [value] if value else []
    found: dict[str, None] = {}
    never = () if everything else _IGNORED_KEYS
    # A stack of its own: a value may be nested deeper than Python calls.
    waiting = [one for key, one in _items(value) if key not in mute] if mute and _has_keys(value) else [value]
    waiting.reverse()
    while waiting:
        one = waiting.pop()
        if type(one) is str:
            if one:
                found[one] = None
        elif type(one) is list:
            waiting += reversed(one)
        elif _has_keys(one):
            waiting += reversed([inner for key, inner in _items(one) if key not in never])
        elif everything and (type(one) is float or (type(one) is int and one in _INT_RANGE)):
            found[str(one)] = None
    return list(found)


def _has_keys(value: Any) -> bool:
    return isinstance(value, _KEYED)


def _items(holder: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(holder, Struct):
        return [(name, getattr(holder, name)) for name in holder.__struct_fields__]
    return holder.items() if holder.get("type") != "base64" else ()


FieldParts = dict[str, list[str]]
"""The parts of each field, as they are met."""

_PATH_KEYS = frozenset(
    {"file_path", "notebook_path", "path", "filePath", "notebookPath", "glob", "paths", "file_paths"}
)
_GLOB_TOOLS = frozenset({"Glob", "GlobTool"})
# Names beyond these are as a rule a listing of everything there is.
_MAX_NAMES = 2000
# How much may be looked through for what is said twice: beyond it, twice is cheaper.
_MAX_COMPARISON = 16_000_000
# What results hold that other entries or other keys say already.
_REPEATED_KEYS = frozenset(
    {
        *("prompt", "usage", "toolStats", "status", "retrieval_status", "questions", "oldTodos", "newTodos"),
        *("originalFile", "originalFileContents", "original_file", "updated_file", "new_source", "old_source"),
    }
)
# What a change was asked with, in a result's words and in a call's.
_EDIT_KEYS = ("oldString", "newString", "old_string", "new_string", "content")
# How much longer than its names a text may be that only lists them.
_HEADING_CHARS = 200
_NUMBERED = re.compile(r"\s*\d+[→\t]")
_REMINDER = "<system-reminder>"


def add_call(name: str, given: Any, texts: FieldParts) -> None:
    """Adds what a tool is given: commands, paths, and all else as input."""
    if type(given) is not dict:
        add_parts(texts, "input", collect_strings(given))
        return
    foreign = name.startswith("mcp__")
    if foreign:
        add_parts(texts, "input", [name])
    for key, value in given.items():
        if key == "command" and type(value) is str:
            field = "command"
        elif key in _PATH_KEYS or (key == "pattern" and name in _GLOB_TOOLS):
            field = "path"
        else:
            field = "input"
        add_parts(texts, field, [value] if type(value) is str else collect_strings(value, everything=foreign))


def add_results(blocks: list[ToolResultBlock], told: Any, texts: FieldParts) -> None:
    """Adds what tools gave back: the text that the model saw, and of the tool's own result what that does not say."""
    seen = _blocks_text(blocks)
    if type(told) is dict:
        for key, adds in _RESULT_SHAPES.items():
            if key in told:
                seen = adds(told, seen, texts)
                break
        else:
            add_parts(texts, "result", new_parts(collect_strings(told, mute=_REPEATED_KEYS), seen))
    elif told is not None:
        add_parts(texts, "result", new_parts(collect_strings(told), seen))
    if seen:
        add_parts(texts, "result", [seen])


def _blocks_text(blocks: list[ToolResultBlock]) -> str:
    if len(blocks) == 1 and type(blocks[0].content) is str:
        return blocks[0].content
    return "\n".join(string for block in blocks for string in collect_strings(block.content))


def add_parts(texts: FieldParts, field: str, parts: list[str]) -> None:
    """Adds parts to a field."""
    if parts:
        if field in texts:
            texts[field] += parts
        else:
            texts[field] = parts


def new_parts(parts: list[str], seen: str) -> list[str]:
    """The parts that a text does not hold."""
    if not seen or len(parts) * len(seen) > _MAX_COMPARISON:
        return parts
    return [part for part in parts if not _contains(seen, part)]


def _contains(seen: str, part: str) -> bool:
    # As a rule the one is the other, or begins with it: only else is it looked for.
    return seen.startswith(part) or part.removeprefix("Error: ").strip() in seen


def _add_shell_result(told: dict[str, Any], seen: str, texts: FieldParts) -> str:
    """Output is given to the model as it is, or cut: the whole of it counts once."""
    printed = [one for key in ("stdout", "stderr") if type(one := told.get(key)) is str and one]
    add_parts(texts, "result", new_parts(printed, seen))
    add_parts(texts, "result", new_parts(collect_strings([told.get("returnCodeInterpretation")]), seen))
    return seen


def _add_read_result(told: dict[str, Any], seen: str, texts: FieldParts) -> str:
    """A file's content counts without the numbers of its lines; a reminder behind it is none of the file's."""
    file = told["file"]
    if type(file) is not dict:
        return seen
    add_parts(texts, "path", collect_strings(file.get("filePath")))
    content = file.get("content")
    if type(content) is not str or not content:
        return seen
    add_parts(texts, "result", [content])
    if not _NUMBERED.match(seen):
        return "" if _contains(content, seen) else seen
    reminder = seen.rfind(_REMINDER)
    if reminder >= 0 and seen[reminder:] not in content:
        add_parts(texts, "injected", [seen[reminder:]])
    return ""


def _add_edit_result(told: dict[str, Any], seen: str, texts: FieldParts) -> str:
    """Of a change, the lines that neither the call nor the model's text has: what stood there before, and around it."""
    add_parts(texts, "path", collect_strings(told.get("filePath")))
    edits = told.get("edits")
    said = {
        line
        for edit in (told, *(edits if type(edits) is list else ()))
        if type(edit) is dict
        for key in _EDIT_KEYS
        if type(text := edit.get(key)) is str
        for line in text.split("\n")
    }
    hunks = told.get("structuredPatch")
    lines = [
        line[1:]
        for hunk in (hunks if type(hunks) is list else ())
        if type(hunk) is dict and type(hunk.get("lines")) is list
        for line in hunk["lines"]
        if type(line) is str and line[1:] not in said
    ]
    if lines:
        add_parts(texts, "result", ["\n".join(lines)])
    return seen


def _add_file_names(told: dict[str, Any], seen: str, texts: FieldParts) -> str:
    """Names of files are paths; of a text that only lists them once more, what stands around them is left."""
    names = told["filenames"]
    listed = [name for name in names if type(name) is str] if type(names) is list else []
    add_parts(texts, "path", listed[:_MAX_NAMES])
    content = told.get("content")
    if type(content) is str and content:
        add_parts(texts, "result", new_parts([content], seen))
    if not 0 < len(listed) <= _MAX_NAMES or len(seen) > sum(map(len, listed)) + len(listed) + _HEADING_CHARS:
        return seen
    first, last = seen.find(listed[0]), seen.rfind(listed[-1])
    return seen if first < 0 or last < 0 else seen[:first] + seen[last + len(listed[-1]) :]


def _add_answers(told: dict[str, Any], seen: str, texts: FieldParts) -> str:
    """What a person answered is theirs."""
    add_parts(texts, "prompt", collect_strings([told["answers"], told.get("annotations")]))
    return seen


# By the key that tells a kind of result; the first that is there counts.
_RESULT_SHAPES = {
    "stdout": _add_shell_result,
    "file": _add_read_result,
    "structuredPatch": _add_edit_result,
    "filenames": _add_file_names,
    "answers": _add_answers,
}


MAX_FIELD_CHARS = 1_000_000
"""How many characters of a field are seen: what is longer is cut at a word."""

_ENVELOPE = frozenset(
    {
        *("type", "uuid", "parentUuid", "sessionId", "session_id", "timestamp", "version", "cwd", "gitBranch"),
        *("userType", "slug", "entrypoint", "requestId", "agentId"),
    }
)
_COMMON_FIELDS = frozenset((*ChainEntry.__struct_fields__, "key"))
_CUT_WINDOW = 1000
_FIELD_NUMBERS = {field: number for number, field in enumerate(FIELDS)}


def extract_fields(entry: Entry) -> dict[str, str]:
    """The text of an entry by field, as it stands; only fields that say something.

    Each thing an entry says is there once: what a tool printed stands in its result in two shapes, and a file that was
    read, too. Left out is what is no text (base64, signatures, token counts) and what other entries say: output so far
    of running commands, an agent's entries told once more, requests as they were sent, copies of files, system prompts.
    Of entries and blocks that are not known, all strings are `injected`. A field ends after `LONGEST` characters.
    """
    return {field: text for field, parts in _collect_parts(entry).items() if (text := _join_parts(parts))}


def text_row(entry: Entry) -> list[str | None] | None:
    """The text of an entry as full-text search takes it, by `FIELDS`; None if it has none."""
    row: list[str | None] | None = None
    for field, parts in _collect_parts(entry).items():
        if text := _join_parts(parts):
            if row is None:
                row = [None] * len(FIELDS)
            row[_FIELD_NUMBERS[field]] = normalize_text(text)
    return row


def _collect_parts(entry: Entry) -> FieldParts:
    texts: FieldParts = {}
    _EXTRACTORS.get(type(entry), _add_own_fields)(entry, texts)
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
    """The beginning of a text, to the end of a word where there is one."""
    end = max(text.rfind(space, MAX_FIELD_CHARS - _CUT_WINDOW, MAX_FIELD_CHARS + 1) for space in " \n")
    return text[: end if end > 0 else MAX_FIELD_CHARS]


def _add_nothing(_entry: Entry, _texts: FieldParts) -> None:
    pass


def _add_own_fields(entry: Entry, texts: FieldParts) -> None:
    """All that a kind has beside what all kinds have."""
    add_parts(
        texts,
        "injected",
        collect_strings([getattr(entry, name) for name in entry.__struct_fields__ if name not in _COMMON_FIELDS]),
    )


def _add_all_strings(entry: Entry, texts: FieldParts) -> None:
    """All strings of a line, or where it is not JSON, its bytes."""
    if entry.kind == "blank":
        return
    data = entry.data
    said = (
        collect_strings(data, mute=_ENVELOPE)
        if data is not None
        else [entry.raw[:MAX_FIELD_CHARS].decode(errors="ignore")]
    )
    add_parts(texts, "injected", said)


def _title_from(name: str) -> Callable[[Any, FieldParts], None]:
    def title(entry: Any, texts: FieldParts) -> None:
        add_parts(texts, "title", collect_strings(getattr(entry, name)))

    return title


def _add_progress(entry: ProgressEntry, texts: FieldParts) -> None:
    """What was going on: not what is said again when it is done."""
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
    if entry.tool is not None:
        add_call(entry.tool.name or "", entry.tool.input, texts)


def _add_tool_result(entry: ToolResultEntry, texts: FieldParts) -> None:
    add_parts(texts, "result", collect_strings(entry.result))


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
    if (one := entry.worktree_session) is not None:
        add_parts(texts, "path", collect_strings([one.worktree_path, one.original_cwd]))
        add_parts(texts, "injected", collect_strings([one.worktree_name, one.worktree_branch, one.original_branch]))


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
"""How long a run of base64 must be to be left out: what is shorter may be a name, and costs little."""

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_"
_WHOLE_RUN = re.compile("[A-Za-z0-9+/=_-]+")
# As certificates and mail have it: lines of one width; the last may be shorter, but then no shorter than a long word.
_WRAPPED = re.compile("(?:[A-Za-z0-9+/]{60,76}\r?\n){3,}(?:[A-Za-z0-9+/]{16,}={0,2})?")
_DIVIDERS = re.compile("[/_+-]")
_MIN_CHARACTER_COUNTS = (
    (str.isupper, BASE64_RUN // 8),
    (str.islower, BASE64_RUN // 8),
    (str.isdigit, BASE64_RUN // 20),
)


def strip_base64(text: str) -> str:
    """The text with a space in place of each long run of base64.

    Looks at the end of a window first, where in most text a space is near: what lies before it needs no look.
    """
    kept: list[str] = []
    start = at = 0
    last = len(text) - BASE64_RUN
    while at <= last:
        space = text.rfind(" ", at, at + BASE64_RUN)
        if space >= 0:
            at = space + 1
            continue
        window = text[at : at + BASE64_RUN]
        other = len(window.rstrip(_ALPHABET))
        found = None
        if not other:
            found = _WHOLE_RUN.match(text, at) if _looks_random(window) else None
            at += 0 if found else BASE64_RUN
        else:
            at += other
            found = _WRAPPED.match(text, at) if window[other - 1] == "\n" else None
        if found:
            kept.append(text[start:at])
            start = at = found.end()
    return " ".join([*kept, text[start:]]) if kept else text


def _looks_random(window: str) -> bool:
    """Whether it is no path and no ruler: letters of both cases and digits all over, or nothing that divides words."""
    if not _DIVIDERS.search(window):
        return True
    return all(sum(map(is_it, window)) >= few for is_it, few in _MIN_CHARACTER_COUNTS)
