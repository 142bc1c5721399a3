"""Figures as people read them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_EXACT = 10
_FEW = 8


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 call`, `1,204 calls`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def some(words: Iterable[str]) -> str:
    """A few words of many: `Bash, Read and 3 more`."""
    listed = list(words)
    more = f" and {len(listed) - _FEW} more" if len(listed) > _FEW else ""
    return ", ".join(listed[:_FEW]) + more


def agents(kept: int, started: int) -> str:
    """`3 agents`, `26 agents, none kept`, `5 agents, 3 kept`; nothing where there was none."""
    if started <= kept:
        return count(kept, "agent") if kept else ""
    return f"{count(started, 'agent')}, {kept or 'none'} kept"


def span_of_time(duration: timedelta | None) -> str:
    """`340ms`, `3.2s`, `1m 12s`, `2h 03m`, `3d 4h`; nothing where it is not known.

    >>> span_of_time(timedelta(seconds=72))
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


def moment(when: datetime | None) -> str:
    """`2026-01-05 09:00`: times are in UTC throughout."""
    return when.strftime("%Y-%m-%d %H:%M") if when is not None else ""


def model_name(model: str | None) -> str:
    """`sonnet-4-5` for `claude-sonnet-4-5-20250929`."""
    if not model:
        return ""
    name = model.removeprefix("claude-")
    head, _, tail = name.rpartition("-")
    return head if head and len(tail) == len("20250929") and tail.isdecimal() else name
