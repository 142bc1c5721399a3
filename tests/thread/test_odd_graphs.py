"""Graphs that no sound program writes, and the thread that Claude Code itself would make of them."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest
from tests.thread.rows import read

from threadline.model.entries import Entry
from threadline.thread import assemble_agents, detect_continuations, find_notifications


def row(uuid: str, parent: str | None, kind: str = "user", **fields: Any) -> dict[str, Any]:
    """A row of the conversation graph."""
    said = {"role": kind, "content": f"words of {uuid}"} if kind in {"user", "assistant"} else None
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s",
        **({"message": said} if said else {}),
        **fields,
    }


def visible(*rows: dict[str, Any]) -> list[str | None]:
    """The ids of the active thread that are shown."""
    main, _others = assemble_agents(read(*rows), ())
    return [entry.uuid for entry in main.thread.visible]


def test_a_pointer_at_a_row_that_nothing_speaks_above_says_nothing() -> None:
    """A `last-prompt` that leads to bookkeeping alone is passed over."""
    rows = (row("a", None), row("b", "a", "assistant"), row("s", "gone", "system"))
    assert visible(*rows, {"type": "last-prompt", "leafUuid": "s", "sessionId": "s"}) == ["a", "b"]


def test_a_row_that_is_its_own_parent_is_no_end() -> None:
    """A self-parent is named as a parent, so that the conversation does not end in it."""
    rows = (row("a", None), row("b", "a", "assistant"), row("c", "b"), row("d", "d", "assistant"))
    assert visible(*rows) == ["a", "b", "c"]


def test_a_ring_apart_is_no_end() -> None:
    """A cycle that hangs from nothing counts only where there is nothing else."""
    ring = (row("c", "d"), row("d", "c", "assistant"))
    assert visible(row("a", None), row("b", "a", "assistant"), *ring) == ["a", "b"]
    assert sorted(str(uuid) for uuid in visible(*ring)) == ["c", "d"]


def test_a_leaf_below_a_ring_goes_once_round_it() -> None:
    """The walk from a leaf passes every row of a cycle once."""
    rows = (row("a", "c"), row("b", "a", "assistant"), row("c", "b"), row("leaf", "a", "assistant"))
    assert visible(*rows) == ["b", "c", "a", "leaf"]


def test_the_thread_leads_through_rows_of_agents() -> None:
    """A main row below an agent's row goes on from the main rows above it."""
    rows = (row("a", None), row("b", "a", "assistant", isSidechain=True), row("c", "b"), row("d", "c", "assistant"))
    assert visible(*rows) == ["a", "c", "d"]


@pytest.mark.parametrize("rows", [[("u1", ""), ("", "u1")], [("", "")], [("", None), ("b", ""), ("c", "b")]])
def test_an_empty_id_is_no_parent(rows: list[tuple[str, str | None]]) -> None:
    """Rows whose id, or whose parent's, is the empty string are read like any other."""
    entries = read(*(row(uuid, parent) for uuid, parent in rows))
    main, others = assemble_agents(entries, ())
    assert len(main.entries) + sum(len(other.entries) for other in others) == len(rows)


def test_a_count_of_thousands_of_digits_is_no_count() -> None:
    """A notification's usage with an absurd number is a notification without that number."""
    text = f"<task-notification><task-id>x</task-id><usage>tokens: {'9' * 5000}</usage></task-notification>"
    (one,) = find_notifications(read(row("a", None, message={"role": "user", "content": text})))
    assert one.usage == {}


def many_sessions(count: int) -> list[Entry]:
    """Rows each of which names a session of its own."""
    return read(*(row(f"u{number}", None, sessionId=f"s{number}") for number in range(count)))


def long_usage(count: int) -> list[Entry]:
    """A notification whose usage is one long word."""
    text = f"<task-notification><task-id>x</task-id><usage>{'a' * count * 20}</usage></task-notification>"
    return read(row("a", None, message={"role": "user", "content": text}))


def unclosed(count: int) -> list[Entry]:
    """A prompt of tags that are never closed."""
    return read(row("a", None, message={"role": "user", "content": "<bash-input>" * count}))


def stretches(count: int) -> list[Entry]:
    """Boundaries that each claim to preserve everything before them."""
    chain = [row(f"u{at}", f"u{at - 1}" if at else None) for at in range(count)]
    segment = {"headUuid": "nowhere", "tailUuid": f"u{count - 1}"}
    told = {"compactMetadata": {"preservedSegment": segment}, "subtype": "compact_boundary"}
    return read(*chain, *(row(f"b{at}", None, "system", **told) for at in range(count)))


@pytest.mark.sample(4)
@pytest.mark.parametrize("make", [many_sessions, long_usage, unclosed, stretches])
def test_odd_rows_take_time_in_proportion(make: Any) -> None:
    """Four times as much of it takes about four times as long, not sixteen times."""

    def seconds(count: int) -> float:
        entries = make(count)
        start = process_time()
        assemble_agents(entries, ())
        detect_continuations(None, entries)
        return process_time() - start

    small = min(seconds(500) for _ in range(3))
    assert min(seconds(2000) for _ in range(3)) < 10 * max(small, 0.002)
