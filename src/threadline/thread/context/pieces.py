"""Entries to pieces: what each entry puts into the window, by category, with an estimate of its size."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from typing import Any, NamedTuple

from threadline.model.attachments import QueuedCommand
from threadline.model.block import (
    DocumentBlock,
    FallbackBlock,
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
from threadline.model.context import Category
from threadline.model.entries import AssistantEntry, AttachmentEntry, Entry, UserEntry
from threadline.thread.context.estimate import DOCUMENT, IMAGE, PROSE, estimate
from threadline.thread.context.injected import OTHER, attached, text_kind

# Text the program puts before a person's own in the same row.
_PREFACE = re.compile(
    r"\s*<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics|user-prompt-submit-hook"
    r"|session-start-hook|post-tool-use-hook)>.*?</\1>\s*",
    re.DOTALL,
)
# A block of thinking without its text is as long as its signature tells, roughly.
_SIGNATURE = 4


class Piece(NamedTuple):
    """What one block puts into the window: what it is, and how many tokens that is by estimate.

    `reply` says that it is part of what the model said, whose size the message's own usage tells.
    """

    category: Category
    name: str | None
    weight: int
    reply: bool = False


def pieces(entry: Entry, tools: Mapping[str, str], acts: Container[int], *, agent: bool = False) -> Iterator[Piece]:
    """The pieces of an entry. `tools` are the tools by the ids of their calls, `acts` the `id()`s of acts' entries.

    `agent`: it is a subagent's, whose prompts no person wrote.
    """
    match entry:
        case AssistantEntry() if entry.message is not None:
            for block in entry.message.blocks:
                yield from _said(block, tools)
        case UserEntry() if entry.message is not None:
            for block in entry.message.blocks:
                yield from _given(entry, block, tools, is_act=id(entry) in acts, agent=agent)
        case AttachmentEntry(attachment=QueuedCommand() as queued) if id(entry) in acts:
            yield Piece(Category.PROMPT, None, estimate(queued.prompt, PROSE))
        case AttachmentEntry():
            kind, size = attached(entry)
            if size:
                yield Piece(Category.INJECTED, kind, size)


def _said(block: Any, tools: Mapping[str, str]) -> Iterator[Piece]:
    match block:
        case TextBlock():
            yield Piece(Category.REPLY, None, estimate(block.text, PROSE), reply=True)
        case ThinkingBlock():
            hidden = len(block.signature or "") // _SIGNATURE
            yield Piece(Category.THINKING, None, estimate(block.thinking, PROSE) or hidden, reply=True)
        case RedactedThinkingBlock():
            yield Piece(Category.THINKING, None, len(block.data or "") // _SIGNATURE, reply=True)
        case ToolUseBlock() | ServerToolUseBlock() | McpToolUseBlock():
            yield Piece(Category.CALL, None, estimate((block.name, block.id, block.input)), reply=True)
        case ToolResultBlock() | ServerResultBlock() | McpToolResultBlock():
            yield from _result(block, tools)
        case FallbackBlock():
            return
        case _:
            yield Piece(Category.REPLY, None, estimate(block), reply=True)


def _given(entry: UserEntry, block: Any, tools: Mapping[str, str], *, is_act: bool, agent: bool) -> Iterator[Piece]:
    match block:
        case ToolResultBlock() | ServerResultBlock() | McpToolResultBlock():
            yield from _result(block, tools)
        case ImageBlock() | DocumentBlock():
            yield _picture(block)
        case TextBlock() if entry.is_compact_summary:
            yield Piece(Category.SUMMARY, None, estimate(block.text, PROSE))
        case TextBlock():
            kind = text_kind(entry, block.text)
            if is_act or (agent and kind == OTHER):
                yield from _prompt(block.text)
            else:
                yield Piece(Category.INJECTED, kind, estimate(block.text))
        case _:
            yield Piece(Category.INJECTED, OTHER, estimate(block))


def _prompt(text: str) -> Iterator[Piece]:
    """A person's text, and apart from it what the program put before it."""
    start = 0
    while (found := _PREFACE.match(text, start)) is not None:
        yield Piece(Category.INJECTED, found[1].replace("_", "-"), estimate(found[0]))
        start = found.end()
    if start < len(text):
        yield Piece(Category.PROMPT, None, estimate(text[start:], PROSE))


def _result(
    block: ToolResultBlock | ServerResultBlock | McpToolResultBlock, tools: Mapping[str, str]
) -> Iterator[Piece]:
    name = tools.get(block.tool_use_id or "") or "unknown tool"
    content = block.content
    if not isinstance(content, list):
        yield Piece(Category.RESULT, name, estimate(content))
        return
    rest = []
    for item in content:
        if isinstance(item, ImageBlock | DocumentBlock):
            yield _picture(item)
        else:
            rest.append(item.text if isinstance(item, TextBlock) else item)
    if rest:
        yield Piece(Category.RESULT, name, estimate(rest))


def _picture(block: ImageBlock | DocumentBlock) -> Piece:
    """A picture or a document: its bytes say nothing of its tokens, so a fixed number for each."""
    if isinstance(block, ImageBlock):
        return Piece(Category.IMAGE, None, IMAGE)
    source = block.source if isinstance(block.source, dict) else {}
    is_text = source.get("type") == "text"
    return Piece(Category.IMAGE, "document", estimate(source.get("data"), PROSE) if is_text else DOCUMENT)
