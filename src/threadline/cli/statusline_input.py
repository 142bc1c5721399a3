"""What Claude Code tells a statusline on standard input. Every field may be missing or of another type."""

from __future__ import annotations

import sys
from decimal import Decimal
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

_LARGEST = 64 * 1024 * 1024
_SENT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_LONG_MARKS = ("[1m]", "1m context")
_USUAL, _LONG = 200_000, 1_000_000
_MOST = 1e15


class Told(Struct, frozen=True):
    """What Claude Code tells. `tokens` are those of the last prompt, `limit` is how large the window may grow.

    `share` is how full Claude Code says the window is; `reported` what it says that the session cost so far, in USD.
    """

    model: str | None = None
    session: str | None = None
    transcript: str | None = None
    reported: Decimal | None = None
    tokens: int | None = None
    limit: int | None = None
    share: float | None = None
    is_long: bool = False

    def limit_for(self, tokens: int) -> int:
        """How large the window may grow: as told, or else a million where something tells of that, or 200,000."""
        return self.limit or (_LONG if self.is_long or tokens > _USUAL else _USUAL)


def read_input() -> Told:
    """What standard input tells; nothing where a person is at the keyboard, or where it is no JSON."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return Told()
    try:
        data = sys.stdin.buffer.read(_LARGEST)
    except (OSError, ValueError):
        return Told()
    return told(data)


def told(data: bytes) -> Told:
    """What such bytes tell."""
    given = _decoded(data)
    identity, name = _text(given, "model", "id"), _text(given, "model", "display_name")
    cost, share = _number(given, "cost", "total_cost_usd"), _number(given, "context_window", "used_percentage")
    sent = [_count(given, "context_window", "current_usage", one) for one in _SENT]
    return Told(
        model=name or identity or _text(given, "model"),
        session=_text(given, "session_id"),
        transcript=_text(given, "transcript_path"),
        reported=Decimal(str(cost)) if cost is not None else None,
        tokens=sum(one or 0 for one in sent) or None,
        limit=_count(given, "context_window", "context_window_size") or None,
        share=share / 100 if share else None,  # none is said after a compaction, when nobody knows
        is_long=any(mark in f"{identity} {name}".lower() for mark in _LONG_MARKS)
        or _at(given, "exceeds_200k_tokens") is True,
    )


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        import json  # half a character in a path is enough for the fast decoder to refuse

        try:
            return json.loads(data.decode(errors="replace"))
        except (ValueError, RecursionError):
            return None


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: Any, *keys: str) -> str | None:
    found = _at(value, *keys)
    return found if isinstance(found, str) and found.strip() else None


def _number(value: Any, *keys: str) -> int | float | None:
    found = _at(value, *keys)
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return found if is_number and abs(found) < _MOST and isfinite(found) and found >= 0 else None


def _count(value: Any, *keys: str) -> int | None:
    found = _number(value, *keys)
    return int(found) if found is not None else None
