"""Explain where ccusage's token counts differ from ours, message by message.

`count_like_ccusage` reimplements its rule from observation. `bench/usage.py` compares the result with ccusage's own
totals and prints what remains unexplained.
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
    """A row as ccusage's `daily` reads it."""

    id: str | None
    request: str | None
    session: str | None
    time: str
    is_agent: bool
    is_progress: bool
    counts: Counts


def usage_rows(home: Path) -> Iterator[UsageRow]:
    """Yield every row that its `daily` reads: assistant rows, and agents' messages in progress rows."""
    for path in sorted(home.glob("projects/**/*.jsonl")):
        with path.open("rb") as file:
            for line in file:
                if b'"usage":{' in line:  # it searches for this text, and misses rows with white space there
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


def count_like_ccusage(home: Path) -> dict[str, list[UsageRow]]:
    """Return the rows that it counts, by message.

    It counts one row for each id and requestId, or for each id, session and time if there is no requestId.
    """
    counted: dict[tuple[str | None, ...], UsageRow] = {}
    first_keys: dict[tuple[str | None, str | None], tuple[str | None, ...]] = {}
    without_id = []
    for row in sorted(usage_rows(home), key=lambda row: row.is_agent):
        if row.id is None:
            without_id.append(row)
            continue
        key: tuple[str | None, ...] = (row.id, row.request) if row.request else (row.id, row.session, row.time)
        if row.is_agent:
            key = first_keys.get((row.id, row.session), key)
        if key not in counted or _is_better(row, counted[key]):
            counted[key] = row
        first_keys.setdefault((row.id, row.session), key)
    rows: dict[str, list[UsageRow]] = defaultdict(list)
    for row in (*counted.values(), *without_id):
        rows[row.id or ""].append(row)
    return rows


def _is_better(new: UsageRow, old: UsageRow) -> bool:
    if new.is_agent != old.is_agent:
        return old.is_agent
    return sum(new.counts) > sum(old.counts)


def differences(home: Path, totals: Counts) -> Iterator[str]:
    """Yield a sentence for each cause of differences, with the number of messages and tokens."""
    import threadline

    ours: dict[str, list[Counts]] = defaultdict(list)
    for charge in threadline.ledger(home):
        ours[charge.message].append((charge.input, charge.output, charge.cache_write, charge.cache_read))
    theirs = count_like_ccusage(home)
    causes: dict[str, list[Counts]] = defaultdict(list)
    for message in {*ours, *theirs}:
        difference = _subtract(_sum(row.counts for row in theirs.get(message, ())), _sum(ours.get(message, ())))
        if any(difference):
            causes[_cause(theirs.get(message, []), ours.get(message, []))].append(difference)
    for cause, counts in sorted(causes.items()):
        tokens = ", ".join(f"{name} {count:+,}" for name, count in zip(NAMES, _sum(counts), strict=True) if count)
        yield f"{len(counts):,} messages: {cause} ({tokens})"
    explained = _sum(row.counts for rows in theirs.values() for row in rows)
    rest = _subtract(totals, explained)
    tokens = ", ".join(f"{name} {count:+,}" for name, count in zip(NAMES, rest, strict=True))
    yield f"not explained: {tokens}"


def _cause(theirs: list[UsageRow], ours: list[Counts]) -> str:
    causes = {
        "only they count it": not ours,
        "only we count it": not theirs,
        "no requestId: they count it once per time and session": len(theirs) > len(ours)
        and any(row.request is None for row in theirs),
        "several requestIds: they count each": len(theirs) > len(ours),
        "several calls with one id: they count one": len(theirs) < len(ours),
        "they count the placeholder in a progress row instead of the agent's output": any(
            row.is_progress for row in theirs
        ),
    }
    return next((cause for cause, applies in causes.items() if applies), "they count a row with less output")


def _sum(all_counts: Iterable[Counts]) -> Counts:
    first, second, third, fourth = 0, 0, 0, 0
    for counts in all_counts:
        first, second, third, fourth = first + counts[0], second + counts[1], third + counts[2], fourth + counts[3]
    return first, second, third, fourth


def _subtract(counts: Counts, other: Counts) -> Counts:
    return counts[0] - other[0], counts[1] - other[1], counts[2] - other[2], counts[3] - other[3]
