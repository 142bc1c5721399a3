"""What the entries of a conversation say, by field: who typed it, who said it, who put it in."""

from __future__ import annotations

from typing import Any

from threadline.index.strings import strings
from threadline.index.tool_text import Texts, add, call, news, result
from threadline.model.act import Act, ActKind
from threadline.model.attachments import PromptSnapshot, QueuedCommand
from threadline.model.block import (
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
from threadline.model.entries import AssistantEntry, AttachmentEntry, QueueOperationEntry, SystemEntry, UserEntry
from threadline.model.text import extract_text
from threadline.thread.acts import act_of, clean, without_prefaces

# What the program writes in a person's place when something that was started has something to show.
_PRINTED = (
    "<bash-stdout>",
    "<bash-stderr>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<task-notification>",
)
_COMMANDS = ("<command-name>", "<command-message>")
_TYPED = frozenset(
    {ActKind.PROMPT, ActKind.PROGRAMMATIC, ActKind.STEERING, ActKind.MEMORY, ActKind.COMMAND, ActKind.FEEDBACK}
)
# What a thing of an unknown kind calls itself.
_TAG = ("tag",)
# Fields of attachments that hold paths, and those that hold no words.
_ATTACHED_PATHS = ("filename", "path", "plan_file_path", "skill_dir", "output_file_path")
_PRINTED_BY_HOOKS = ("stdout", "stderr")
_ATTACHED_MUTE = frozenset(
    {
        *_ATTACHED_PATHS,
        *_PRINTED_BY_HOOKS,
        *("tag", "timestamp", "tool_use_id", "source_uuid", "process_id", "display_path", "digests", "usage"),
    }
)
_SYSTEM_WORDS = (
    *("content", "summary", "description", "prompt", "stdout", "stderr", "output", "stop_reason"),
    *("hook_infos", "hook_errors", "hook_additional_context", "hook_name", "url", "upgrade_nudge"),
    *("command_run", "command_outcome", "prompt_submit_ending", "original_model", "fallback_model"),
    *("api_refusal_category", "api_refusal_explanation"),
)


def user(entry: UserEntry, texts: Texts) -> None:
    """A prompt, a tool's result, or what the program put in."""
    content = entry.message.content if entry.message is not None else None
    told = entry.tool_use_result if entry.tool_use_result is not None else entry.stream_result
    blocks = [item for item in content if type(item) is ToolResultBlock] if type(content) is list else []
    if blocks or told is not None:
        result(blocks, told, texts)
    if not blocks:
        _text(entry, content, texts)
        return
    if type(content) is list and len(content) > len(blocks):
        beside = [item for item in content if type(item) is not ToolResultBlock]
        add(texts, "injected", strings([item.text if type(item) is TextBlock else item for item in beside]))
    refused = entry.user_feedback or any(block.is_error for block in blocks)
    if refused and (act := act_of(entry)) is not None:
        add(texts, "prompt", [act.text])


def _text(entry: UserEntry, content: Any, texts: Texts) -> None:
    """Text that stands in a person's place: theirs, or the program's."""
    text = extract_text(content)
    act = act_of(entry)
    if act is None:
        add(texts, "result" if text.lstrip().startswith(_PRINTED) else "injected", [text])
    else:
        _acted(act, text, texts)
    for item in content if type(content) is list else ():
        if type(item) not in (str, TextBlock, ImageBlock):
            add(texts, "injected", strings(item, mute=_TAG))
    if entry.plan_content and entry.plan_content not in text:
        add(texts, "injected", [entry.plan_content])


def _acted(act: Act, text: str, texts: Texts) -> None:
    """A person's act, and what the program wrote around it."""
    own = without_prefaces(text)
    if len(own) < len(text):
        before = text[: text.rfind(own)]
        add(texts, "injected", [before] if before.strip() else [])
    if act.kind is ActKind.SHELL:
        add(texts, "command", [act.text])
        add(texts, "result", [own.partition("</bash-input>")[2]])
    elif act.kind in _TYPED:
        add(texts, "prompt", [act.text])
        add(texts, "injected", [own.partition("<command-contents>")[2]] if act.kind is ActKind.COMMAND else [])
    else:
        add(texts, "injected", [own])


def assistant(entry: AssistantEntry, texts: Texts) -> None:
    """What the model said, thought and called; what the program says in its place is put in."""
    message = entry.message
    said = "injected" if entry.is_api_error_message or entry.is_made_up else "reply"
    content = message.content if message is not None else None
    if type(content) is list:
        for item in content:
            _block(item, said, texts)
    elif type(content) is str:
        add(texts, said, [content])
    elif message is not None:  # what a gateway sent instead of a message
        data = entry.data
        add(texts, "injected", strings(data.get("message"), mute=("id", "model", "role")) if data else [])
    if entry.error is not None or entry.error_details is not None:
        add(texts, "injected", strings([entry.error, entry.error_details]))


def _block(item: Any, said: str, texts: Texts) -> None:
    kind = type(item)
    if kind is ToolUseBlock or kind is ServerToolUseBlock or kind is McpToolUseBlock:
        call(item.name, item.input, texts)
    elif kind is TextBlock:
        add(texts, said, [item.text])
    elif kind is ThinkingBlock:
        add(texts, "thinking", [item.thinking])
    elif kind is str:
        add(texts, said, [item])
    elif isinstance(item, ServerResultBlock | McpToolResultBlock | ToolResultBlock):
        add(texts, "result", strings(item.content))
    elif kind is not ImageBlock and kind is not RedactedThinkingBlock:
        add(texts, "injected", strings(item, mute=_TAG))


def attachment(entry: AttachmentEntry, texts: Texts) -> None:
    """What the program attached; or what a person typed while the model was working."""
    attached = entry.attachment
    if attached is None or type(attached) is PromptSnapshot:
        return
    if type(attached) is QueuedCommand:
        _queued(entry, attached, texts)
        return
    for name in _ATTACHED_PATHS:
        add(texts, "path", strings(getattr(attached, name, None)))
    said = strings(entry.rendered)
    printed = strings([getattr(attached, name, None) for name in _PRINTED_BY_HOOKS])
    for parts in (strings(attached, mute=_ATTACHED_MUTE), printed):
        said += news(parts, "\n".join(said))
    add(texts, "injected", said)


def _queued(entry: AttachmentEntry, queued: QueuedCommand, texts: Texts) -> None:
    act = act_of(entry)
    if act is not None:
        add(texts, "command" if act.kind is ActKind.SHELL else "prompt", [act.text])
    else:
        _aside(extract_text(queued.prompt), "injected", texts)
    add(texts, "path", strings(queued.file_attachments))


def system(entry: SystemEntry, texts: Texts) -> None:
    """What the program has to say."""
    if entry.subtype == "turn_duration":
        return
    if entry.subtype == "local_command":
        _aside(entry.text, "injected", texts)
        return
    add(texts, "injected", strings([getattr(entry, name) for name in _SYSTEM_WORDS]))
    if entry.error is not None or entry.cause is not None:
        add(texts, "injected", strings([entry.error, entry.cause], everything=True))  # a code is a number
    if entry.compact_metadata is not None and entry.compact_metadata.user_context:
        add(texts, "prompt", [entry.compact_metadata.user_context])


def queue(entry: QueueOperationEntry, texts: Texts) -> None:
    """What was typed while the model was working, as it waited."""
    text = entry.text
    machine = text.startswith(("<", '{"task_id"')) and not text.startswith(_COMMANDS)
    _aside(text, "injected" if machine else "prompt", texts)


def _aside(text: str, otherwise: str, texts: Texts) -> None:
    """Text that says itself what it is: output, a command that a person typed, or something else."""
    start = text.lstrip()[:40]
    if start.startswith(_PRINTED):
        add(texts, "result", [text])
    elif start.startswith(_COMMANDS):
        add(texts, "prompt", [clean(text, ActKind.COMMAND)])
    else:
        add(texts, otherwise, [text])
