"""Explain the differences between ccusage's tokens and ours, message by message.

ccusage prints no messages, so its rule is imitated here, as inferred from its totals. `bench/usage.py` compares the
imitation with those totals, and prints the tokens that remain unexplained.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

Counts = tuple[int, int, int, int]
NAMES = ("input", "output", "cache write", "cache read")


class UsageRow(NamedTuple):
    """A row with usage, as ccusage's `daily` reads it."""

    id: str | None
    request: str | None
    session: str | None
    time: str
    is_agent: bool
    is_progress: bool
    counts: Counts


def read_usage_rows(home: Path) -> Iterator[UsageRow]:
    """Every row that its `daily` reads: assistant rows, and those of agents that progress rows repeat."""
    for path in sorted(home.glob("projects/**/*.jsonl")):
        with path.open("rb") as file:
            for line in file:
                if b'"usage":{' in line:  # the bytes it searches for: it misses rows with white space there
                    row = _usage_row(line)
                    if row is not None:
                        yield row


def _usage_row(line: bytes) -> UsageRow | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    data = row.get("data")
    inner = data.get("message") if row.get("type") == "progress" and isinstance(data, dict) else None
    if row.get("type") != "assistant" and not isinstance(inner, dict):
        return None
    source: dict[str, Any] = inner if isinstance(inner, dict) else row
    message = source.get("message")
    usage = message.get("usage") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(usage, dict):
        return None
    return UsageRow(
        message.get("id"),
        source.get("requestId"),
        row.get("sessionId"),
        str(source.get("timestamp") or row.get("timestamp")),
        bool(row.get("isSidechain") or source.get("isSidechain")),
        inner is not None,
        _counts(usage),
    )


def _counts(usage: dict[str, Any]) -> Counts:
    split = usage.get("cache_creation") or {}
    parts = (split.get("ephemeral_5m_input_tokens") or 0) + (split.get("ephemeral_1h_input_tokens") or 0)
    written = parts or usage.get("cache_creation_input_tokens") or 0
    return (
        usage.get("input_tokens") or 0,
        usage.get("output_tokens") or 0,
        written,
        usage.get("cache_read_input_tokens") or 0,
    )


def kept_by_ccusage(home: Path) -> dict[str, list[UsageRow]]:
    """The rows it keeps of each message: one for each (id, requestId), or id, session and time without a requestId."""
    kept: dict[tuple[str | None, ...], UsageRow] = {}
    key_by_session: dict[tuple[str | None, str | None], tuple[str | None, ...]] = {}
    without_id = []
    for row in sorted(read_usage_rows(home), key=lambda row: row.is_agent):
        if row.id is None:
            without_id.append(row)
            continue
        key: tuple[str | None, ...] = (row.id, row.request) if row.request else (row.id, row.session, row.time)
        if row.is_agent:
            key = key_by_session.get((row.id, row.session), key)
        if key not in kept or _is_better(row, kept[key]):
            kept[key] = row
        key_by_session.setdefault((row.id, row.session), key)
    by_message: dict[str, list[UsageRow]] = defaultdict(list)
    for row in (*kept.values(), *without_id):
        by_message[row.id or ""].append(row)
    return by_message


def _is_better(new: UsageRow, old: UsageRow) -> bool:
    if new.is_agent != old.is_agent:
        return old.is_agent
    return sum(new.counts) > sum(old.counts)


def differences(home: Path, totals: Counts) -> Iterator[str]:
    """The causes in words, each with the number of messages and the tokens it amounts to."""
    import threadline

    ours: dict[str, list[Counts]] = defaultdict(list)
    for charge in threadline.ledger(home):
        ours[charge.message].append((charge.input, charge.output, charge.cache_write, charge.cache_read))
    other = kept_by_ccusage(home)
    causes: dict[str, list[Counts]] = defaultdict(list)
    for message in {*ours, *other}:
        difference = _subtract(_sum(row.counts for row in other.get(message, ())), _sum(ours.get(message, ())))
        if any(difference):
            causes[_cause(other.get(message, []), ours.get(message, []))].append(difference)
    for cause, counts in sorted(causes.items()):
        tokens = ", ".join(f"{name} {count:+,}" for name, count in zip(NAMES, _sum(counts), strict=True) if count)
        yield f"{len(counts):,} messages: {cause} ({tokens})"
    imitated = _sum(row.counts for rows in other.values() for row in rows)
    rest = _subtract(totals, imitated)
    tokens = ", ".join(f"{name} {count:+,}" for name, count in zip(NAMES, rest, strict=True))
    yield f"unexplained: {tokens}"


def _cause(their_rows: list[UsageRow], ours: list[Counts]) -> str:
    causes = {
        "only in ccusage": not ours,
        "only in threadline": not their_rows,
        "no requestId, so ccusage counts each time and session": len(their_rows) > len(ours)
        and any(row.request is None for row in their_rows),
        "the same message with several requestIds, of which ccusage counts each": len(their_rows) > len(ours),
        "several calls with the same id, which ccusage counts as one": len(their_rows) < len(ours),
        "ccusage counts the placeholder of a progress row instead of the agent's output": any(
            row.is_progress for row in their_rows
        ),
    }
    return next((cause for cause, holds in causes.items() if holds), "ccusage counts a row with less output")


def _sum(values: Iterable[Counts]) -> Counts:
    first, second, third, fourth = 0, 0, 0, 0
    for counts in values:
        first, second, third, fourth = first + counts[0], second + counts[1], third + counts[2], fourth + counts[3]
    return first, second, third, fourth


def _subtract(counts: Counts, other: Counts) -> Counts:
    return counts[0] - other[0], counts[1] - other[1], counts[2] - other[2], counts[3] - other[3]
