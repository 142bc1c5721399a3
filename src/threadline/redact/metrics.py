"""Reduce a record to its metrics: times, kinds, models, tool names, token counts, amounts and sizes, and no text.

What remains is a transcript that threadline can read, with the same usage, turns and outcomes. A text becomes its
length in characters; sentences and tags of Claude Code's own stay, because they say what an entry is.
"""

from __future__ import annotations

from typing import Any

from threadline.model.program_texts import replace_words
from threadline.redact.records import ID_FIELDS, ID_VALUE, MAX_DEPTH, FormatWords
from threadline.redact.rules.heuristics import word_set
from threadline.redact.rules.patterns import compile_lazily
from threadline.redact.scanner import find_spans

_MAX_WORD = 128
# Fields whose values are names from a small set: of programs, models, tools and states.
_WORD_FIELDS = word_set(
    "type subtype role model version stop_reason service_tier inference_geo speed entrypoint userType permissionMode"
    " level operation status media_type trigger toolName subagent_type agentType resolvedModel effort thinkingLevel"
    " kind"
)
_WORD = compile_lazily(r"[A-Za-z<][A-Za-z0-9_.:@/\[\]>-]{0,127}|[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}(?:-[a-z0-9.]{1,16})?")
_KIND = compile_lazily(r"[a-z]{2,16}(?:[_-][a-z]{2,16}){0,3}")
# Texts and numbers in these are the conversation's; only their sizes are metrics.
_CONVERSATION_FIELDS = word_set("input toolUseResult attachment data mcpMeta snapshot trackedFileBackups")
# Who typed what was queued while the model worked, and how.
_QUEUE_FIELDS, _QUEUE_WORDS = word_set("kind commandMode"), word_set("human unclassified prompt bash")
_RESULT_NUMBERS = word_set(
    "searchCount durationMs durationSeconds totalDurationMs totalTokens totalToolUseCount numFiles numLines numMatches"
    " totalLines"
    " startLine bytes code exitCode interrupted isImage truncated isAsync"
)
_PRICED_FIELDS = frozenset(("usage", "modelUsage", "cache_creation", "server_tool_use", "iterations"))
# A message inside of a result is one of the model's, and has usage.
_MESSAGE_FIELDS = frozenset(("message", *_PRICED_FIELDS))
_BLOCK_KINDS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))


def keep_metrics(record: Any, fixed: FormatWords) -> Any:
    """A copy of a record without its texts."""
    return _reduce(record, "", fixed, 0, in_conversation=False)


def _reduce(value: Any, key: str, fixed: FormatWords, depth: int, *, in_conversation: bool) -> Any:
    if isinstance(value, str):
        return _reduce_text(value, key, fixed, in_conversation=in_conversation)
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return _reduce_object(value, key, fixed, depth, in_conversation=in_conversation)
    if isinstance(value, list | tuple):
        return [_reduce(item, key, fixed, depth + 1, in_conversation=in_conversation) for item in value]
    if (
        in_conversation
        and key not in _RESULT_NUMBERS
        and isinstance(value, int | float)
        and not isinstance(value, bool)
    ):
        return None
    return value


def _reduce_object(
    value: dict[str, Any], key: str, fixed: FormatWords, depth: int, *, in_conversation: bool
) -> dict[str, Any]:
    reduced: dict[str, Any] = {}
    in_conversation = (in_conversation or key in _CONVERSATION_FIELDS) and key not in _MESSAGE_FIELDS
    is_priced = key in _PRICED_FIELDS
    is_call = value.get("type") in _BLOCK_KINDS
    for name, item in value.items():
        if name == "input" and is_call:
            reduced[name] = {}
        elif is_call and name == "name" and isinstance(item, str):
            reduced[name] = item if _is_plain_word(item) else describe_text(item)
        elif name in fixed.keys or name in _RESULT_NUMBERS or (is_priced and _is_plain_word(name)):
            reduced[name] = _reduce(item, name, fixed, depth + 1, in_conversation=in_conversation)
    return reduced


def _reduce_text(value: str, key: str, fixed: FormatWords, *, in_conversation: bool) -> str:
    if key in ID_FIELDS and ID_VALUE.fullmatch(value):
        return value
    if fixed.is_fixed(key, value):
        return value
    if in_conversation and key == "type" and _KIND.fullmatch(value):
        return value
    if in_conversation and key in _QUEUE_FIELDS and value in _QUEUE_WORDS:
        return value
    if not in_conversation and key in _WORD_FIELDS and _is_plain_word(value):
        return value
    return replace_words(value, describe_text)


def describe_text(text: str) -> str:
    """What replaces a text: its length."""
    return f"<{len(text)} characters>" if text else ""


def _is_plain_word(value: str) -> bool:
    return len(value) <= _MAX_WORD and _WORD.fullmatch(value) is not None and not find_spans(value)
