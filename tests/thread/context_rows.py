"""Sessions whose requests report what a test wants of window and cache."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.thread.state_rows import session_of
from tests.transcripts import START, Part, Row, Writer, call, reply

from threadline.model.context import CacheBreak, Context, ContextCategory
from threadline.thread import analyze_context


def usage(read: int, written: int = 0, *, input_: int = 2, output: int = 10, hour: bool = False) -> Row:
    """The counts of a message, with the split that newer versions write."""
    split = {"ephemeral_5m_input_tokens": 0 if hour else written, "ephemeral_1h_input_tokens": written if hour else 0}
    return {
        "input_tokens": input_,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "cache_creation": split,
        "output_tokens": output,
    }


def at(minutes: float) -> str:
    """A time some minutes after the session's start."""
    return (START + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def said(
    read: int, written: int = 0, *blocks: str | Row, after: float | None = None, message: Row | None = None, **more: Any
) -> Writer:
    """A reply whose request read and wrote so much; `after` is how many minutes after the session's start it came."""
    counts = usage(read, written, **{name: more.pop(name) for name in ("input_", "output", "hour") if name in more})
    fields = {"timestamp": at(after), **more} if after is not None else more
    return reply(*(blocks or ("ok",)), message={"usage": counts, **(message or {})}, **fields)


def called(read: int, written: int, tool: str, given: Any, result: Any, *, output: int = 10, **message: Any) -> Writer:
    """A call whose request read and wrote so much."""
    return call(tool, given, result, message={"usage": usage(read, written, output=output), **message})


def told(*parts: Part, **wanted: Any) -> Context:
    """The context of a session of these parts."""
    return analyze_context(session_of(*parts), **wanted)


def only_break(*parts: Part) -> CacheBreak:
    """The one cache break of a session of these parts."""
    (found,) = told(*parts).breaks
    return found


def amounts(found: Context) -> dict[str, int]:
    """What fills a window: tokens by category, with the name after a colon where there is one."""
    return {f"{one.category}:{one.name}" if one.name else str(one.category): one.tokens for one in found.filling}


def measured(found: Context, category: ContextCategory, name: str | None = None) -> bool:
    """Whether all of a category is measured."""
    return next(one for one in found.filling if (one.category, one.name) == (category, name)).is_measured
