"""Estimate what fills a context window, by category, so that the parts add up to the measured size."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import chain, pairwise
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
    PromptSnapshot,
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
from threadline.model.entries import (
    ApiRequestShapeEntry,
    AssistantEntry,
    AttachmentEntry,
    ChainEntry,
    Entry,
    ToolResultEntry,
    UserEntry,
)
from threadline.model.names import mcp_server
from threadline.model.places import Place
from threadline.model.program_texts import PREFACE

# The length of a thinking block without text is estimated from its signature.
_SIGNATURE_PER_TOKEN = 4


class Piece(NamedTuple):
    """What one block puts into the window: its category, and an estimate of its tokens.

    `reply` says that it is part of a reply, whose size the message's own usage has. `call` is the id of the call that a
    call or a result belongs to. `place` is the row.
    """

    category: ContextCategory
    name: str | None
    weight: int
    reply: bool = False
    call: str | None = None
    place: Place | None = None


def split_into_pieces(
    entry: Entry, tools: Mapping[str, str], acts: Container[int], *, agent: bool = False
) -> Iterator[Piece]:
    """Split an entry into pieces. `tools` are the tools by call id, `acts` the `id()`s of acts' entries.

    The tool of a result that is a row of its own is found by the row's place. `agent` says that the entry is a
    subagent's, whose prompts no person wrote.
    """
    place = entry.place
    for piece in _split_entry(entry, tools, acts, agent=agent):
        yield piece._replace(place=place)


def _split_entry(entry: Entry, tools: Mapping[str, str], acts: Container[int], *, agent: bool) -> Iterator[Piece]:
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
            weight = estimate_tokens((block.name, block.id, block.input))
            yield Piece(ContextCategory.CALL, None, weight, reply=True, call=block.id)
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
    while (match := PREFACE.match(text, start)) is not None:
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
        yield Piece(ContextCategory.RESULT, name, estimate_tokens(content), call=block.tool_use_id)
        return
    rest = []
    for item in content:
        if isinstance(item, ImageBlock | DocumentBlock):
            yield _media_piece(item)._replace(call=block.tool_use_id)
        else:
            rest.append(item.text if isinstance(item, TextBlock) else item)
    if rest:
        yield Piece(ContextCategory.RESULT, name, estimate_tokens(rest), call=block.tool_use_id)


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


# What is in the window and not in the transcript.
_SYSTEM = Piece(ContextCategory.SYSTEM, None, 0)
_UNSEEN = Piece(ContextCategory.UNSEEN, None, 0)
# An estimate is trusted within a factor of two, and within the size of a short reminder.
_MAX_FACTOR, _SLACK = 2, 200
# System prompts and tool definitions are rarely larger.
_MAX_SYSTEM = 50_000
# With fewer tokens, it cannot be determined how a model counts.
_MIN_SAMPLE = 1_000
# What leaves a window without a compaction, in the order in which that is known to happen: thinking of earlier turns
# first, then old results, then anything else.
_DROP_ORDER = (ContextCategory.THINKING, ContextCategory.RESULT, ContextCategory.IMAGE)


class WindowStep(Struct, frozen=True):
    """One request on the way to a place: its window, and the pieces added since the previous request.

    `is_restart` says that a compaction replaced everything before these pieces.
    """

    window: ContextWindow
    pieces: Sequence[Piece]
    is_restart: bool = False


def measured_scale(paths: Iterable[Sequence[WindowStep]]) -> float:
    """Return how much larger things are than estimated, from everything that was added along some paths.

    Models count differently, and the first prompt, which is mostly not recorded, cannot be corrected by itself.
    """
    measured = expected = 0
    for before, step in chain.from_iterable(map(pairwise, paths)):
        more, weight = step.window.prompt - before.window.prompt, _total_weight(step.pieces)
        if weight < more * _MAX_FACTOR and more < weight * _MAX_FACTOR:
            measured, expected = measured + more, expected + weight
    return measured / expected if expected >= _MIN_SAMPLE else 1.0


def _total_weight(pieces: Iterable[Piece]) -> int:
    return sum(max(1, piece.weight) for piece in pieces)


class WindowSlice(Struct, eq=False):
    """A piece in a window, and how many of the window's tokens it takes.

    `is_measured`: the pieces of its category that were added with it are measured together. `is_exact`: it was added
    alone, so its own size is measured. `at` is its position in the window.
    """

    piece: Piece
    tokens: int
    is_measured: bool = False
    is_exact: bool = False
    at: int = 0


class WindowFiller:
    """Fills a window request by request, so that its slices always add up to the measured size.

    `slices` are in the order in which the model reads them. `system` are the parts of the system prompt, if they are
    known. `is_continued`: the conversation began in another transcript, so that more may be in its first window.
    `before_change` is called with slices of the window before their tokens change, and with None before all are
    replaced.
    """

    def __init__(self, scale: float = 1.0, system: Sequence[Piece] = (), *, is_continued: bool = False) -> None:
        self._scale = scale
        self._system = system
        self._is_continued = is_continued
        self.before_change: Callable[[Sequence[WindowSlice] | None], None] | None = None
        self._output = 0
        self.size = 0
        """How many tokens are in the window: the sum of its slices."""
        self.slices: list[WindowSlice] = []
        self.dropped = 0
        # The slices that can be dropped, by category. Those without tokens are removed at the next drop.
        self._droppable: dict[ContextCategory, list[WindowSlice]] = {category: [] for category in _DROP_ORDER}

    def fork(self) -> WindowFiller:
        """Return a filler with the same window, for requests that follow instead of others."""
        filler = WindowFiller(self._scale, self._system, is_continued=self._is_continued)
        filler.size, filler.dropped, filler._output = self.size, self.dropped, self._output
        filler.slices = [copy(part) for part in self.slices]
        for category, parts in self._droppable.items():
            filler._droppable[category] = [filler.slices[part.at] for part in parts if part.tokens]
        return filler

    def filling(self) -> tuple[ContextPart, ...]:
        """Return what fills the window by category and name, largest first."""
        parts: dict[tuple[ContextCategory, str | None], tuple[int, int]] = {}
        for window_slice in self.slices:
            key = window_slice.piece.category, window_slice.piece.name
            tokens, measured = parts.get(key, (0, 0))
            more = window_slice.tokens
            parts[key] = tokens + more, measured + (more if window_slice.is_measured else 0)
        filled = [ContextPart(*key, tokens, measured) for key, (tokens, measured) in parts.items() if tokens]
        return tuple(sorted(filled, key=lambda part: (-part.tokens, part.category, part.name or "")))

    def guess(self, pieces: Iterable[Piece]) -> None:
        """Add pieces whose size no usage contains: each counts as estimated."""
        for piece, weight in self._weights(pieces):
            self._add(piece, weight)

    def step(self, step: WindowStep) -> None:
        """Add the next request: its prompt grew by what was added since the previous one."""
        size = step.window.prompt
        if not self.size:
            self._begin(size, step.pieces)
        elif step.is_restart:
            self._restart(size, step.pieces)
        else:
            self._grow(size - self.size, step.pieces)
        self.size, self._output = size, step.window.output

    def _begin(self, size: int, pieces: Sequence[Piece]) -> None:
        """Add the first request: what is not recorded of it is the system prompt and the tools."""
        weights = self._weights(pieces)
        recorded = min(size, sum(weight for _, weight in weights))
        if self._is_continued and size - recorded > _MAX_SYSTEM:
            self._add(_UNSEEN, size - recorded)
        elif self._system:
            self._share([(piece, max(1, piece.weight)) for piece in self._system], size - recorded)
        else:
            self._add(_SYSTEM, size - recorded, measured=not recorded, exact=not recorded)
        self._share(weights, recorded)

    def _restart(self, size: int, pieces: Sequence[Piece]) -> None:
        """Replace everything except what comes before the conversation."""
        if self.before_change is not None:
            self.before_change(None)
        system = [part for part in self.slices if part.piece.category is ContextCategory.SYSTEM]
        for at, part in enumerate(system):
            part.at = at
        for parts in self._droppable.values():
            parts.clear()
        self.slices = system
        self._is_continued = False
        recorded = max(0, size - sum(part.tokens for part in system))
        if not system or not pieces or recorded * _MAX_FACTOR < _total_weight(pieces):
            self.slices = []
            self._begin(size, pieces)
        else:
            self._share_or_mark_unseen(self._weights(pieces), recorded)

    def _grow(self, more: int, pieces: Sequence[Piece]) -> None:
        reply_weights = self._weights(piece for piece in pieces if piece.reply)
        other_weights = self._weights(piece for piece in pieces if not piece.reply)
        reply_total = sum(weight for _, weight in reply_weights)
        expected = reply_total + sum(weight for _, weight in other_weights)
        if more * _MAX_FACTOR < expected:
            more += self._drop(expected - more, at_least=-more)
            self._share(self._weights(pieces), more)
            return
        reply = self._reply(reply_total, more)
        if reply is None:
            self._share_or_mark_unseen(self._weights(pieces), more)
        else:
            self._share(reply_weights, reply, measured=_is_uniform(reply_weights))
            self._share_or_mark_unseen(other_weights, more - reply)

    def _weights(self, pieces: Iterable[Piece]) -> list[tuple[Piece, int]]:
        return [(piece, max(1, round(max(1, piece.weight) * self._scale))) for piece in pieces]

    def _reply(self, weight: int, more: int) -> int | None:
        """Return the size of the previous reply from its usage; None if that is a placeholder or does not fit."""
        output = self._output
        return output if weight and weight <= output * _MAX_FACTOR and output <= more else None

    def _share_or_mark_unseen(self, weights: Sequence[tuple[Piece, int]], more: int) -> None:
        """Share out an amount, but no more than the estimates allow: the rest is not in the transcript."""
        expected = sum(weight for _, weight in weights)
        recorded = min(more, expected * _MAX_FACTOR + _SLACK) if weights else 0
        self._share(weights, recorded, measured=recorded == more and _is_uniform(weights))
        self._add(_UNSEEN, more - recorded)

    def _drop(self, amount: int, at_least: int) -> int:
        """Remove what must have left the window, because it grew too little or shrank.

        Thinking may have left at any time; of anything else, only what is certainly missing is removed.
        """
        taken = 0
        for category in _DROP_ORDER:
            most = amount if category is ContextCategory.THINKING else at_least
            if most > taken:
                parts = self._droppable[category] = [part for part in self._droppable[category] if part.tokens]
                taken += self._take(parts, most - taken)
        if at_least > taken:
            inner = [part for part in self.slices if part.piece.category is not ContextCategory.SYSTEM]
            taken += self._take(inner, at_least - taken)
            taken += self._take(self.slices, at_least - taken)
        self.dropped += taken
        return taken

    def _take(self, parts: Sequence[WindowSlice], needed: int) -> int:
        """Take tokens from slices in proportion to theirs. Nothing is touched if nothing can be taken."""
        taken = max(0, min(needed, sum(part.tokens for part in parts)))
        if not taken:
            return 0
        if self.before_change is not None:
            self.before_change(parts)
        for part, tokens in zip(parts, share_out([part.tokens for part in parts], taken), strict=True):
            part.tokens -= tokens
            part.is_measured = part.is_measured and not tokens
            part.is_exact = part.is_exact and not tokens
        return taken

    def _share(self, weights: Sequence[tuple[Piece, int]], tokens: int, *, measured: bool = False) -> None:
        shares = share_out([weight for _, weight in weights], tokens)
        for (piece, _), part in zip(weights, shares, strict=True):
            self._add(piece, part, measured=measured, exact=measured and len(weights) == 1)

    def _add(self, piece: Piece, tokens: int, *, measured: bool = False, exact: bool = False) -> None:
        if tokens:
            part = WindowSlice(piece, tokens, measured, exact, len(self.slices))
            self.slices.append(part)
            if piece.category in self._droppable:
                self._droppable[piece.category].append(part)


def system_pieces(entries: Iterable[Entry]) -> list[Piece]:
    """Return the parts of the system prompt that a transcript contains: the prompt itself and the tools by server.

    Transcripts contain it from 2.1.325 on. The first one counts.
    """
    for entry in entries:
        if isinstance(entry, ApiRequestShapeEntry) and isinstance(entry.shape, dict):
            return _split_system(entry.shape.get("system"), entry.shape.get("tools"))
        attachment = entry.attachment if isinstance(entry, AttachmentEntry) else None
        if isinstance(attachment, PromptSnapshot) and attachment.tools:
            return _split_system(attachment.system_prompt, attachment.tools)
    return []


def is_continued(entries: Iterable[Entry]) -> bool:
    """Whether the first entry follows one that is not in the transcript."""
    first = next((entry for entry in entries if isinstance(entry, ChainEntry)), None)
    return first is not None and first.parent_uuid is not None


def _split_system(system: Any, tools: Any) -> list[Piece]:
    weights: dict[str | None, int] = {}
    for tool in tools if isinstance(tools, list) else ():
        name = tool.get("name") if isinstance(tool, dict) else None
        server = mcp_server(name) if isinstance(name, str) else None
        key = f"tools of {server}" if server is not None else "tools"
        weights[key] = weights.get(key, 0) + estimate_tokens(tool)
    weights[None] = estimate_tokens(system, PROSE_BYTES_PER_TOKEN)
    return [Piece(ContextCategory.SYSTEM, name, weight) for name, weight in weights.items() if weight]


def _is_uniform(weights: Sequence[tuple[Piece, int]]) -> bool:
    """Whether all pieces are of one category and name, so that their sum is measured even if each is estimated."""
    return len({(piece.category, piece.name) for piece, _ in weights}) == 1


def share_out(weights: Sequence[int], tokens: int) -> list[int]:
    """Share out a number in proportion to weights, in whole tokens that add up to it: by largest remainder.

    >>> share_out([2, 1], 10)
    [7, 3]
    """
    total = sum(weights)
    if not total:
        return [0] * len(weights)
    parts = [divmod(tokens * weight, total) for weight in weights]
    shares = [quotient for quotient, _ in parts]
    left = tokens - sum(shares)
    for at in sorted(range(len(parts)), key=lambda at: -parts[at][1])[:left]:
        shares[at] += 1
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
    bytes_per_token = CODE_BYTES_PER_TOKEN if _CODE_ATTACHMENT.search(attachment.type) else PROSE_BYTES_PER_TOKEN
    if entry.rendered is not None:  # newer versions write what they sent
        sent: Any = [_rendered_content(content) for content in entry.rendered]
    elif attachment.type in _NOT_SENT:
        return attachment.type, 0
    else:
        sent = _sent_part(attachment)
    return attachment.type, estimate_tokens(sent, bytes_per_token)


# Attachments that are code or the output of programs. The others are prose: reminders and lists.
_CODE_ATTACHMENT = re.compile("file|directory|selection|diagnostics|diff|hook")


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
