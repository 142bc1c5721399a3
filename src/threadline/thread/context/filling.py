"""Estimate what fills a context window, by category, so that the parts add up to the measured size."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from msgspec import Struct

from threadline.model.attachments import (
    Attached,
    Delta,
    HookAdditionalContext,
    HookAttachment,
    HookBlockingError,
    HookSuccess,
    OtherAttachment,
    QueuedCommand,
)
from threadline.model.blocks import (
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
from threadline.model.context import ContextCategory, ContextPart, ContextWindow
from threadline.model.entries import AssistantEntry, AttachmentEntry, Entry, ToolResultEntry, UserEntry

# Text that Claude Code puts before a person's own in the same row.
_PREFACE_TAG = re.compile(
    r"\s*<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics|user-prompt-submit-hook"
    r"|session-start-hook|post-tool-use-hook)>.*?</\1>\s*",
    re.DOTALL,
)
# The length of a thinking block without text is estimated from its signature.
_SIGNATURE_PER_TOKEN = 4


class Piece(NamedTuple):
    """What one block puts into the window: its category, and an estimate of its tokens.

    `reply` says that it is part of a reply, whose size the message's own usage has.
    """

    category: ContextCategory
    name: str | None
    weight: int
    reply: bool = False


def split_into_pieces(
    entry: Entry, tools: Mapping[str, str], acts: Container[int], *, agent: bool = False
) -> Iterator[Piece]:
    """Split an entry into pieces. `tools` are the tools by call id, `acts` the `id()`s of acts' entries.

    The tool of a result that is a row of its own is found by the row's place.

    `agent` says that it is a subagent's, whose prompts no person wrote.
    """
    match entry:
        case AssistantEntry() if entry.message is not None:
            for block in entry.message.blocks:
                yield from _reply_pieces(block, tools)
        case ToolResultEntry() if entry.message is not None:
            tool = {entry.call_id or "": tools.get(str(entry.place), "")}
            for block in entry.message.blocks:
                yield from _user_pieces(entry, block, tool, is_act=False, agent=agent)
        case UserEntry() if entry.message is not None:
            for block in entry.message.blocks:
                yield from _user_pieces(entry, block, tools, is_act=id(entry) in acts, agent=agent)
        case AttachmentEntry(attachment=QueuedCommand() as queued) if id(entry) in acts:
            yield Piece(ContextCategory.PROMPT, None, estimate_tokens(queued.prompt, PROSE_BYTES_PER_TOKEN))
        case AttachmentEntry():
            kind, size = attachment_tokens(entry)
            if size:
                yield Piece(ContextCategory.INJECTED, kind, size)


def _reply_pieces(block: Any, tools: Mapping[str, str]) -> Iterator[Piece]:
    match block:
        case TextBlock():
            yield Piece(ContextCategory.REPLY, None, estimate_tokens(block.text, PROSE_BYTES_PER_TOKEN), reply=True)
        case ThinkingBlock():
            hidden = len(block.signature or "") // _SIGNATURE_PER_TOKEN
            yield Piece(
                ContextCategory.THINKING,
                None,
                estimate_tokens(block.thinking, PROSE_BYTES_PER_TOKEN) or hidden,
                reply=True,
            )
        case RedactedThinkingBlock():
            yield Piece(ContextCategory.THINKING, None, len(block.data or "") // _SIGNATURE_PER_TOKEN, reply=True)
        case ToolUseBlock() | ServerToolUseBlock() | McpToolUseBlock():
            yield Piece(ContextCategory.CALL, None, estimate_tokens((block.name, block.id, block.input)), reply=True)
        case ToolResultBlock() | ServerResultBlock() | McpToolResultBlock():
            yield from _result_pieces(block, tools)
        case FallbackBlock():
            return
        case _:
            yield Piece(ContextCategory.REPLY, None, estimate_tokens(block), reply=True)


def _user_pieces(
    entry: UserEntry, block: Any, tools: Mapping[str, str], *, is_act: bool, agent: bool
) -> Iterator[Piece]:
    match block:
        case ToolResultBlock() | ServerResultBlock() | McpToolResultBlock():
            yield from _result_pieces(block, tools)
        case ImageBlock() | DocumentBlock():
            yield _media_piece(block)
        case TextBlock() if entry.is_compact_summary:
            yield Piece(ContextCategory.SUMMARY, None, estimate_tokens(block.text, PROSE_BYTES_PER_TOKEN))
        case TextBlock():
            kind = injected_kind(entry, block.text)
            if is_act or (agent and kind == OTHER_KIND):
                yield from _prompt_pieces(block.text)
            else:
                yield Piece(ContextCategory.INJECTED, kind, estimate_tokens(block.text))
        case _:
            yield Piece(ContextCategory.INJECTED, OTHER_KIND, estimate_tokens(block))


def _prompt_pieces(text: str) -> Iterator[Piece]:
    """Yield the pieces of a person's text, and of what Claude Code put before it."""
    start = 0
    while (match := _PREFACE_TAG.match(text, start)) is not None:
        yield Piece(ContextCategory.INJECTED, match[1].replace("_", "-"), estimate_tokens(match[0]))
        start = match.end()
    if start < len(text):
        yield Piece(ContextCategory.PROMPT, None, estimate_tokens(text[start:], PROSE_BYTES_PER_TOKEN))


def _result_pieces(
    block: ToolResultBlock | ServerResultBlock | McpToolResultBlock, tools: Mapping[str, str]
) -> Iterator[Piece]:
    name = tools.get(block.tool_use_id or "") or "unknown tool"
    content = block.content
    if not isinstance(content, list):
        yield Piece(ContextCategory.RESULT, name, estimate_tokens(content))
        return
    rest = []
    for item in content:
        if isinstance(item, ImageBlock | DocumentBlock):
            yield _media_piece(item)
        else:
            rest.append(item.text if isinstance(item, TextBlock) else item)
    if rest:
        yield Piece(ContextCategory.RESULT, name, estimate_tokens(rest))


def _media_piece(block: ImageBlock | DocumentBlock) -> Piece:
    """Return the piece of an image or a document: its bytes say nothing about its tokens, so the number is fixed."""
    if isinstance(block, ImageBlock):
        return Piece(ContextCategory.IMAGE, None, IMAGE_TOKENS)
    source = block.source if isinstance(block.source, dict) else {}
    is_text = source.get("type") == "text"
    return Piece(
        ContextCategory.IMAGE,
        "document",
        estimate_tokens(source.get("data"), PROSE_BYTES_PER_TOKEN) if is_text else DOCUMENT_TOKENS,
    )


FillingKey = tuple[ContextCategory, str | None]
_SYSTEM: FillingKey = (ContextCategory.SYSTEM, None)
_UNSEEN: FillingKey = (ContextCategory.UNSEEN, None)
# An estimate is trusted within a factor of two, and within the size of a short reminder.
_MAX_FACTOR, _SLACK = 2, 200
# With fewer tokens, it cannot be determined how a model counts.
_MIN_SAMPLE = 1_000
# What leaves a window without a compaction, in the order in which that is known to happen: thinking of earlier turns
# first, then old results, then anything else.
_DROP_ORDER = (ContextCategory.THINKING, ContextCategory.RESULT, ContextCategory.IMAGE)


class WindowStep(Struct, frozen=True):
    """One request on the way to a place: its window, and the pieces added since the previous request."""

    window: ContextWindow
    pieces: Sequence[Piece]


def measured_scale(steps: Sequence[WindowStep]) -> float:
    """Return how much larger things are than estimated, from everything that was added along the way.

    Models count differently, and the first prompt, which is mostly not recorded, cannot be corrected by itself.
    """
    measured = expected = 0
    for before, step in pairwise(steps):
        more, weight = step.window.prompt - before.window.prompt, sum(_weights_by_key(step.pieces).values())
        if weight < more * _MAX_FACTOR and more < weight * _MAX_FACTOR:
            measured, expected = measured + more, expected + weight
    return measured / expected if expected >= _MIN_SAMPLE else 1.0


class _Amount(Struct):
    tokens: int = 0
    measured: int = 0


class WindowFiller:
    """Fills a window request by request, so that the amounts always add up to the measured size."""

    def __init__(self, scale: float = 1.0) -> None:
        self._scale = scale
        self._amounts: dict[FillingKey, _Amount] = {}
        self._size = 0
        self._output = 0
        self.dropped = 0

    def filling(self) -> tuple[ContextPart, ...]:
        """Return what fills the window, largest first."""
        parts = [
            ContextPart(*key, amount.tokens, amount.measured) for key, amount in self._amounts.items() if amount.tokens
        ]
        return tuple(sorted(parts, key=lambda part: (-part.tokens, part.category, part.name or "")))

    def guess(self, pieces: Iterable[Piece]) -> None:
        """Add pieces whose size no usage contains: each counts as estimated."""
        for key, weight in self._weights(pieces).items():
            self._add(key, weight)

    def step(self, step: WindowStep) -> None:
        """Add the next request: its prompt grew by what was added since the previous one."""
        size = step.window.prompt
        if not self._size:
            self._begin(size, step.pieces)
        else:
            self._grow(size - self._size, step.pieces)
        self._size, self._output = size, step.window.output

    def _begin(self, size: int, pieces: Sequence[Piece]) -> None:
        """Add the first request: what is not recorded of it is the system prompt and the tools."""
        weights = self._weights(pieces)
        recorded = min(size, sum(weights.values()))
        self._share(weights, recorded)
        self._add(_SYSTEM, size - recorded, measured=not recorded)

    def _grow(self, more: int, pieces: Sequence[Piece]) -> None:
        reply_weights = self._weights(piece for piece in pieces if piece.reply)
        other_weights = self._weights(piece for piece in pieces if not piece.reply)
        expected = sum(reply_weights.values()) + sum(other_weights.values())
        if more * _MAX_FACTOR < expected:
            more += self._drop(expected - more, at_least=-more)
            self._share(self._weights(pieces), more)
            return
        reply = self._reply(sum(reply_weights.values()), more)
        if reply is None:
            self._share_or_mark_unseen(self._weights(pieces), more)
        else:
            self._share(reply_weights, reply, measured=len(reply_weights) == 1)
            self._share_or_mark_unseen(other_weights, more - reply)

    def _weights(self, pieces: Iterable[Piece]) -> dict[FillingKey, int]:
        return {key: max(1, round(weight * self._scale)) for key, weight in _weights_by_key(pieces).items()}

    def _reply(self, weight: int, more: int) -> int | None:
        """Return the size of the previous reply from its usage; None if that is a placeholder or does not fit."""
        output = self._output
        return output if weight and weight <= output * _MAX_FACTOR and output <= more else None

    def _share_or_mark_unseen(self, weights: dict[FillingKey, int], more: int) -> None:
        """Share out an amount, but no more than the estimates allow: the rest is not in the transcript."""
        expected = sum(weights.values())
        recorded = min(more, expected * _MAX_FACTOR + _SLACK) if weights else 0
        self._share(weights, recorded, measured=len(weights) == 1 and recorded == more)
        self._add(_UNSEEN, more - recorded)

    def _drop(self, amount: int, at_least: int) -> int:
        """Remove what must have left the window, because it grew too little or shrank.

        Thinking may have left at any time; of anything else, only what is certainly missing is removed.
        """
        taken = 0
        for category in _DROP_ORDER:
            most = amount if category is ContextCategory.THINKING else at_least
            taken += self._take([key for key in self._amounts if key[0] is category], most - taken)
        inner = [key for key in self._amounts if key != _SYSTEM]
        taken += self._take(inner, at_least - taken)
        taken += self._take([_SYSTEM], at_least - taken)
        self.dropped += taken
        return taken

    def _take(self, keys: Sequence[FillingKey], needed: int) -> int:
        tokens_by_key = {key: self._amounts[key].tokens for key in keys if key in self._amounts}
        taken = max(0, min(needed, sum(tokens_by_key.values())))
        for key, part in share_out(tokens_by_key, taken).items():
            amount = self._amounts[key]
            amount.tokens -= part
            amount.measured = 0 if part else amount.measured
        return taken

    def _share(self, weights: dict[FillingKey, int], tokens: int, *, measured: bool = False) -> None:
        for key, part in share_out(weights, tokens).items():
            self._add(key, part, measured=measured)

    def _add(self, key: FillingKey, tokens: int, *, measured: bool = False) -> None:
        amount = self._amounts.setdefault(key, _Amount())
        amount.tokens += tokens
        amount.measured += tokens if measured else 0


def _weights_by_key(pieces: Iterable[Piece]) -> dict[FillingKey, int]:
    """Return the weight of each category, in order of appearance, without empty ones."""
    weights: dict[FillingKey, int] = {}
    for piece in pieces:
        key = piece.category, piece.name
        weights[key] = weights.get(key, 0) + max(1, piece.weight)
    return weights


def share_out(weights: dict[FillingKey, int], tokens: int) -> dict[FillingKey, int]:
    """Share out a number in proportion to weights, in whole tokens that add up to it: by largest remainder.

    >>> share_out({("reply", None): 2, ("call", None): 1}, 10)
    {('reply', None): 7, ('call', None): 3}
    """
    total = sum(weights.values())
    if not total:
        return {}
    parts = {key: divmod(tokens * weight, total) for key, weight in weights.items()}
    shares = {key: quotient for key, (quotient, _) in parts.items()}
    left = tokens - sum(shares.values())
    for key in sorted(parts, key=lambda key: -parts[key][1])[:left]:
        shares[key] += 1
    return shares


# Notes for Claude Code itself or the person: the model does not get them. The system prompt is counted separately.
_NOT_SENT = frozenset(
    {
        "prompt_snapshot",
        "command_permissions",
        "structured_output",
        "max_turns_reached",
        "credential_org",
        "hook_system_message",
        "hook_cancelled",
        "hook_non_blocking_error",
        "hook_error_during_execution",
        "hook_permission_decision",
        "hook_deferred_tool",
        "hook_stopped_continuation",
        "deferred_tools_record",
        "batching_reminder_sent",
    }
)
# The hooks whose output the model gets even if they succeeded.
_HEARD_EVENTS = frozenset({"SessionStart", "UserPromptSubmit"})
_METADATA_FIELDS = frozenset(
    {"timestamp", "display_path", "tool_use_id", "digests", "names", "source_uuid", "delivery_id", "usage"}
)

OTHER_KIND = "other"
# The kinds of rows in the person's place that no person wrote, by how they begin.
_KINDS_BY_PREFIX = {
    "<system-reminder>": "system-reminder",
    "<task-notification>": "task-notification",
    "<local-command-caveat>": "local-command",
    "Caveat: The messages below": "local-command",
    "<local-command-stdout>": "local-command",
    "<local-command-stderr>": "local-command",
    "<bash-stdout>": "local-command",
    "<bash-stderr>": "local-command",
    "<command-name>": "command",
    "<command-message>": "command",
    "<user-prompt-submit-hook>": "hook",
    "<session-start-hook>": "hook",
    "<post-tool-use-hook>": "hook",
    "Stop hook feedback:": "hook",
    "<teammate-message": "agent-message",
    "<agent-message": "agent-message",
    "<cross-session-message": "agent-message",
    "Another Claude session sent a message:": "agent-message",
    "The coordinator sent a message": "agent-message",
    "<ide_": "ide",
    "Base directory for this skill:": "skill",
    "[Request interrupted by user": "interrupt",
    "[Image": "image-note",
}


def injected_kind(entry: UserEntry, text: str) -> str:
    """Return the kind of a text in the person's place that no person wrote."""
    start = text.lstrip()[:80]
    known_kind = next((kind for beginning, kind in _KINDS_BY_PREFIX.items() if start.startswith(beginning)), None)
    return known_kind or ("skill" if entry.source_tool_use_id else "meta" if entry.is_meta else OTHER_KIND)


def attachment_tokens(entry: AttachmentEntry) -> tuple[str, int]:
    """Return the kind of an attachment, and an estimate of the tokens that the model got of it."""
    attachment = entry.attachment
    if attachment is None:
        return "unknown", 0
    if entry.rendered is not None:  # newer versions write what they sent
        return attachment.type, estimate_tokens([_rendered_content(content) for content in entry.rendered])
    if attachment.type in _NOT_SENT:
        return attachment.type, 0
    return attachment.type, estimate_tokens(_sent_part(attachment))


def _rendered_content(rendered: Any) -> Any:
    return rendered.get("content") if isinstance(rendered, dict) else rendered


def _sent_part(attachment: Attached) -> Any:
    """Return the part of an attachment that the model is given."""
    for kind, part in _PARTS_BY_TYPE:
        if isinstance(attachment, kind):
            return part(attachment)
    return [getattr(attachment, name) for name in attachment.__struct_fields__ if name not in _METADATA_FIELDS]


def _delta_part(attachment: Any) -> Any:
    names = (
        (attachment.added_names or attachment.added_types)
        if not attachment.added_lines and not attachment.added_blocks
        else None
    )
    return [names, attachment.added_lines, attachment.added_blocks, attachment.removed_names, attachment.removed_types]


def _hook_part(attachment: Any) -> Any:
    if isinstance(attachment, HookSuccess):
        return (attachment.content or attachment.stdout) if attachment.hook_event in _HEARD_EVENTS else None
    if isinstance(attachment, HookBlockingError):
        return attachment.blocking_error
    if isinstance(attachment, HookAdditionalContext):
        return attachment.content
    return [attachment.content, getattr(attachment, "response", None)]


_PARTS_BY_TYPE: tuple[tuple[type[Attached], Callable[[Any], Any]], ...] = (
    (Delta, _delta_part),
    (HookAttachment, _hook_part),
    (OtherAttachment, lambda attachment: attachment.data),
)


# Bytes per token, measured on 1,500 texts whose size is known from usage alone: prose, and code or tool output. From
# Opus 4.7 on it is a fifth to three tenths less, which is corrected by what each session measures itself.
PROSE_BYTES_PER_TOKEN, CODE_BYTES_PER_TOKEN = 3.8, 2.8
IMAGE_TOKENS = 1_500
DOCUMENT_TOKENS = 3_000
# Names, brackets and quotes around a value of an object or a list.
_KEY_OVERHEAD = 3
_SCALAR_BYTES = 8


def estimate_tokens(value: Any, bytes_per_token: float = CODE_BYTES_PER_TOKEN) -> int:
    """Estimate the tokens of a text, or of all texts in a value: its bytes in UTF-8, divided by a constant.

    Bytes and not characters, because a Chinese character is about one token, and takes three bytes.
    """
    return round(text_bytes(value) / bytes_per_token)


def text_bytes(value: Any) -> int:
    """Return the bytes of all texts in a value, however nested: nearly what its JSON would take."""
    total = 0
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, str):
            total += len(here) if here.isascii() else len(here.encode(errors="surrogatepass"))
        elif isinstance(here, dict):
            total += sum(len(key) + _KEY_OVERHEAD for key in here if isinstance(key, str))
            waiting.extend(here.values())
        elif isinstance(here, list | tuple):
            waiting.extend(here)
        elif isinstance(here, Struct):
            waiting.extend(getattr(here, name) for name in here.__struct_fields__)
        elif here is not None:
            total += _SCALAR_BYTES
    return total
