"""Where ccusage's tokens part from ours, message by message: a stand-in for its rule, as seen from outside.

The stand-in is held against ccusage's own totals by `bench/usage.py`; what it leaves over is said, too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

Counts = tuple[int, int, int, int]
NAMES = ("input", "output", "cache write", "cache read")


class Telling(NamedTuple):
    """One row as ccusage's `daily` takes it."""

    id: str | None
    request: str | None
    session: str | None
    time: str
    is_agent: bool
    repeated: bool
    counts: Counts


def tellings(home: Path) -> Iterator[Telling]:
    """Every row that its `daily` reads: assistants', and agents' that progress repeats."""
    for path in sorted(home.glob("projects/**/*.jsonl")):
        with path.open("rb") as file:
            for line in file:
                if b'"usage":{' in line:  # what it looks for: white space there loses the row
                    told = _telling(line)
                    if told is not None:
                        yield told


def _telling(line: bytes) -> Telling | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    data = row.get("data")
    inner = data.get("message") if row.get("type") == "progress" and isinstance(data, dict) else None
    if row.get("type") != "assistant" and not isinstance(inner, dict):
        return None
    told: dict[str, Any] = inner if isinstance(inner, dict) else row
    message = told.get("message")
    usage = message.get("usage") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(usage, dict):
        return None
    return Telling(
        message.get("id"),
        told.get("requestId"),
        row.get("sessionId"),
        str(told.get("timestamp") or row.get("timestamp")),
        bool(row.get("isSidechain") or told.get("isSidechain")),
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


def theirs(home: Path) -> dict[str, list[Telling]]:
    """What is kept of each message by (id, requestId), or by id, session and time where there is no requestId."""
    kept: dict[tuple[str | None, ...], Telling] = {}
    known: dict[tuple[str | None, str | None], tuple[str | None, ...]] = {}
    nameless = []
    for one in sorted(tellings(home), key=lambda told: told.is_agent):
        if one.id is None:
            nameless.append(one)
            continue
        key: tuple[str | None, ...] = (one.id, one.request) if one.request else (one.id, one.session, one.time)
        if one.is_agent:
            key = known.get((one.id, one.session), key)
        if key not in kept or _is_better(one, kept[key]):
            kept[key] = one
        known.setdefault((one.id, one.session), key)
    found: dict[str, list[Telling]] = defaultdict(list)
    for one in (*kept.values(), *nameless):
        found[one.id or ""].append(one)
    return found


def _is_better(new: Telling, old: Telling) -> bool:
    if new.is_agent != old.is_agent:
        return old.is_agent
    return sum(new.counts) > sum(old.counts)


def differences(home: Path, totals: Counts) -> Iterator[str]:
    """The causes in words, each with how many messages it concerns and what it comes to."""
    import threadline

    mine: dict[str, list[Counts]] = defaultdict(list)
    for charge in threadline.ledger(home):
        mine[charge.message].append((charge.input, charge.output, charge.cache_write, charge.cache_read))
    other = theirs(home)
    causes: dict[str, list[Counts]] = defaultdict(list)
    for message in {*mine, *other}:
        difference = _less(_sum(one.counts for one in other.get(message, ())), _sum(mine.get(message, ())))
        if any(difference):
            causes[_cause(other.get(message, []), mine.get(message, []))].append(difference)
    for cause, found in sorted(causes.items()):
        told = ", ".join(f"{name} {count:+,}" for name, count in zip(NAMES, _sum(found), strict=True) if count)
        yield f"{len(found):,} messages: {cause} ({told})"
    stand_in = _sum(one.counts for some in other.values() for one in some)
    left = _less(totals, stand_in)
    told = ", ".join(f"{name} {count:+,}" for name, count in zip(NAMES, left, strict=True))
    yield f"left over, not explained: {told}"


def _cause(found: list[Telling], mine: list[Counts]) -> str:
    causes = {
        "only theirs": not mine,
        "only ours": not found,
        "no requestId, so that they count each time and session anew": len(found) > len(mine)
        and any(telling.request is None for telling in found),
        "the same message under several requestIds, which they count each": len(found) > len(mine),
        "several calls under one id, which they take for one": len(found) < len(mine),
        "a progress row's placeholder taken before the agent's own output": any(telling.repeated for telling in found),
    }
    return next((cause for cause, holds in causes.items() if holds), "a row with less output taken")


def _sum(some: Iterable[Counts]) -> Counts:
    first, second, third, fourth = 0, 0, 0, 0
    for counts in some:
        first, second, third, fourth = first + counts[0], second + counts[1], third + counts[2], fourth + counts[3]
    return first, second, third, fourth


def _less(counts: Counts, other: Counts) -> Counts:
    return counts[0] - other[0], counts[1] - other[1], counts[2] - other[2], counts[3] - other[3]
