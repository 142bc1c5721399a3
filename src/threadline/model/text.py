"""Extract message text, choose session titles, and format counts, durations and times for people.

Titles follow Claude Code's own order of sources (`TitleSource`), then the plan that began the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct


def extract_text(content: Any) -> str:
    r"""The text of a content: a string as it is, text blocks joined with newlines, else nothing.

    Takes what the format has been seen to hold: a string, a list of blocks (as structs or as plain
    objects, with bare strings among them), one block, a whole message or entry, or nothing.

    >>> extract_text("hello")
    'hello'
    >>> extract_text([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}])
    'a\nb'
    >>> extract_text(None)
    ''
    """
    return "\n".join(_iter_texts(content))


def _iter_texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list | tuple):
        for item in content:
            if isinstance(item, str):
                yield item
            else:
                yield from _block_text(item)
    elif content is not None:
        inner = _get_field(content, "message", None)
        holder = content if inner is None else inner
        nested = _get_field(holder, "content", None)
        if _get_field(holder, "type", None) in (None, "message", "user", "assistant") and nested is not None:
            yield from _iter_texts(nested)
        else:
            yield from _block_text(holder)


def _block_text(block: Any) -> Iterator[str]:
    text = _get_field(block, "text", None)
    if isinstance(text, str) and _get_field(block, "type", "text") == "text":
        yield text


def _get_field(thing: Any, name: str, default: Any) -> Any:
    return thing.get(name, default) if isinstance(thing, dict) else getattr(thing, name, default)


_MAX_TITLE_LENGTH = 200


class TitleSource(StrEnum):
    """Where a session's title comes from, best first: the official order, and then the plan that began it."""

    CUSTOM = "custom-title"
    AI = "ai-title"
    LAST_PROMPT = "last-prompt"
    SUMMARY = "summary"
    FIRST_PROMPT = "first-prompt"
    PLAN = "plan"
    NONE = "none"


class Title(Struct, frozen=True):
    """What a session is called, and why."""

    text: str = ""
    source: TitleSource = TitleSource.NONE

    def __str__(self) -> str:
        return self.text


# The first prompt; where there is none, the first plan, and where there is no plan either, the first command.
_FIRST_WORDS_SOURCES = {
    "prompt": TitleSource.FIRST_PROMPT,
    "plan": TitleSource.PLAN,
    "command": TitleSource.FIRST_PROMPT,
}


def choose_title(given: Mapping[str, str], words: Mapping[str, str]) -> Title:
    """The title, of those that entries give by source, and of the first words that acts do by rank."""
    titles = dict(given)
    for rank, source in _FIRST_WORDS_SOURCES.items():
        if rank in words:
            titles[source.value] = words[rank]
            break
    source = next((source for source in TitleSource if source.value in titles), TitleSource.NONE)
    return Title(shorten_title(titles.get(source.value, "")), source)


def shorten_title(text: str) -> str:
    """A text as a title: in one line, and not too long."""
    folded = " ".join(text.split())
    return folded if len(folded) <= _MAX_TITLE_LENGTH else folded[: _MAX_TITLE_LENGTH - 1] + "…"


_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_EXACT = 10
_FEW = 8


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 call`, `1,204 calls`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def join_some(words: Iterable[str]) -> str:
    """A few words of many: `Bash, Read and 3 more`."""
    listed = list(words)
    more = f" and {len(listed) - _FEW} more" if len(listed) > _FEW else ""
    return ", ".join(listed[:_FEW]) + more


def count_agents(kept: int, started: int) -> str:
    """`3 agents`, `26 agents, none kept`, `5 agents, 3 kept`; nothing where there was none."""
    if started <= kept:
        return count(kept, "agent") if kept else ""
    return f"{count(started, 'agent')}, {kept or 'none'} kept"


def format_duration(duration: timedelta | None) -> str:
    """`340ms`, `3.2s`, `1m 12s`, `2h 03m`, `3d 4h`; nothing where it is not known.

    >>> format_duration(timedelta(seconds=72))
    '1m 12s'
    """
    if duration is None:
        return ""
    seconds = duration.total_seconds()
    whole = round(seconds)
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if whole < _MINUTE:
        return f"{seconds:.1f}s" if seconds < _EXACT else f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m {whole % _MINUTE:02d}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // _MINUTE:02d}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR}h"


def format_time(when: datetime | None) -> str:
    """`2026-01-05 09:00`: times are in UTC throughout."""
    return when.strftime("%Y-%m-%d %H:%M") if when is not None else ""


def short_model_name(model: str | None) -> str:
    """`sonnet-4-5` for `claude-sonnet-4-5-20250929`."""
    if not model:
        return ""
    name = model.removeprefix("claude-")
    head, _, tail = name.rpartition("-")
    return head if head and len(tail) == len("20250929") and tail.isdecimal() else name
