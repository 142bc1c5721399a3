"""Sessions whose requests report given window and cache sizes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.thread.state_rows import session_of
from tests.transcripts import START, Part, Row, Writer, call, reply

from threadline.model.context import CacheBreak, Context, ContextCategory
from threadline.thread import analyze_context


def usage(read: int, written: int = 0, *, input_: int = 2, output: int = 10, hour: bool = False) -> Row:
    """Return the counts of a message, with the split that newer versions write."""
    split = {"ephemeral_5m_input_tokens": 0 if hour else written, "ephemeral_1h_input_tokens": written if hour else 0}
    return {
        "input_tokens": input_,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "cache_creation": split,
        "output_tokens": output,
    }


def at(minutes: float) -> str:
    """Return a time some minutes after the session's start."""
    return (START + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def cached_reply(
    read: int, written: int = 0, *blocks: str | Row, after: float | None = None, message: Row | None = None, **more: Any
) -> Writer:
    """Write a reply whose request read and wrote this much cache, `after` minutes after the session's start."""
    counts = usage(read, written, **{name: more.pop(name) for name in ("input_", "output", "hour") if name in more})
    fields = {"timestamp": at(after), **more} if after is not None else more
    return reply(*(blocks or ("ok",)), message={"usage": counts, **(message or {})}, **fields)


def cached_call(
    read: int, written: int, tool: str, tool_input: Any, result: Any, *, output: int = 10, **message: Any
) -> Writer:
    """Write a call whose request read and wrote this much cache."""
    return call(tool, tool_input, result, message={"usage": usage(read, written, output=output), **message})


def context_of(*parts: Part, **options: Any) -> Context:
    """Return the context of a session of these parts."""
    return analyze_context(session_of(*parts), **options)


def only_break(*parts: Part) -> CacheBreak:
    """Return the only cache break of a session of these parts."""
    (cache_break,) = context_of(*parts).breaks
    return cache_break


def amounts(context: Context) -> dict[str, int]:
    """Return the tokens of a window by category, with the name after a colon if there is one."""
    return {
        f"{part.category}:{part.name}" if part.name else str(part.category): part.tokens for part in context.filling
    }


def is_measured(context: Context, category: ContextCategory, name: str | None = None) -> bool:
    """Whether all of a category is measured."""
    return next(part for part in context.filling if (part.category, part.name) == (category, name)).is_measured
