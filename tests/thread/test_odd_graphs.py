"""Tests of graphs that no correct program writes. The thread is the one that Claude Code would show."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest
from tests.thread.rows import decode_rows

from threadline.model.entries import Entry
from threadline.thread import assemble_agents, detect_continuations, find_notifications


def row(uuid: str, parent: str | None, kind: str = "user", **fields: Any) -> dict[str, Any]:
    """Return a row of the conversation graph."""
    message = {"role": kind, "content": f"words of {uuid}"} if kind in {"user", "assistant"} else None
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s",
        **({"message": message} if message else {}),
        **fields,
    }


def visible_ids(*rows: dict[str, Any]) -> list[str | None]:
    """Return the visible ids of the active thread."""
    main, _others = assemble_agents(decode_rows(*rows), ())
    return [entry.uuid for entry in main.thread.visible]


def test_last_prompt_that_points_at_bookkeeping_is_ignored() -> None:
    """There is no prompt or reply above that row."""
    rows = (row("a", None), row("b", "a", "assistant"), row("s", "gone", "system"))
    assert visible_ids(*rows, {"type": "last-prompt", "leafUuid": "s", "sessionId": "s"}) == ["a", "b"]


def test_row_that_is_its_own_parent_is_not_a_leaf() -> None:
    """The conversation does not end in it."""
    rows = (row("a", None), row("b", "a", "assistant"), row("c", "b"), row("d", "d", "assistant"))
    assert visible_ids(*rows) == ["a", "b", "c"]


def test_separate_cycle_is_not_the_active_thread() -> None:
    """It counts only if there is nothing else."""
    ring = (row("c", "d"), row("d", "c", "assistant"))
    assert visible_ids(row("a", None), row("b", "a", "assistant"), *ring) == ["a", "b"]
    assert sorted(str(uuid) for uuid in visible_ids(*ring)) == ["c", "d"]


def test_leaf_below_a_cycle_visits_it_once() -> None:
    """The walk from the leaf passes every row of the cycle once."""
    rows = (row("a", "c"), row("b", "a", "assistant"), row("c", "b"), row("leaf", "a", "assistant"))
    assert visible_ids(*rows) == ["b", "c", "a", "leaf"]


def test_thread_continues_through_agent_rows() -> None:
    """A main row below an agent's row continues from the main rows above it."""
    rows = (row("a", None), row("b", "a", "assistant", isSidechain=True), row("c", "b"), row("d", "c", "assistant"))
    assert visible_ids(*rows) == ["a", "c", "d"]


@pytest.mark.parametrize("rows", [[("u1", ""), ("", "u1")], [("", "")], [("", None), ("b", ""), ("c", "b")]])
def test_empty_id_is_not_a_parent(rows: list[tuple[str, str | None]]) -> None:
    """Rows with an empty id or parent id are read like any other."""
    entries = decode_rows(*(row(uuid, parent) for uuid, parent in rows))
    main, others = assemble_agents(entries, ())
    assert len(main.entries) + sum(len(other.entries) for other in others) == len(rows)


def test_absurd_count_in_a_notification_is_ignored() -> None:
    """A number of thousands of digits is left out."""
    text = f"<task-notification><task-id>x</task-id><usage>tokens: {'9' * 5000}</usage></task-notification>"
    (notification,) = find_notifications(decode_rows(row("a", None, message={"role": "user", "content": text})))
    assert notification.usage == {}


def many_sessions(count: int) -> list[Entry]:
    """Return rows that each name another session."""
    return decode_rows(*(row(f"u{number}", None, sessionId=f"s{number}") for number in range(count)))


def long_usage(count: int) -> list[Entry]:
    """Return a notification whose usage is one long word."""
    text = f"<task-notification><task-id>x</task-id><usage>{'a' * count * 20}</usage></task-notification>"
    return decode_rows(row("a", None, message={"role": "user", "content": text}))


def unclosed_tags(count: int) -> list[Entry]:
    """Return a prompt of tags that are never closed."""
    return decode_rows(row("a", None, message={"role": "user", "content": "<bash-input>" * count}))


def preserved_segments(count: int) -> list[Entry]:
    """Return boundaries that each claim to preserve everything before them."""
    chain = [row(f"u{at}", f"u{at - 1}" if at else None) for at in range(count)]
    segment = {"headUuid": "nowhere", "tailUuid": f"u{count - 1}"}
    fields = {"compactMetadata": {"preservedSegment": segment}, "subtype": "compact_boundary"}
    return decode_rows(*chain, *(row(f"b{at}", None, "system", **fields) for at in range(count)))


@pytest.mark.sample(4)
@pytest.mark.parametrize("make", [many_sessions, long_usage, unclosed_tags, preserved_segments])
def test_time_is_linear_for_odd_rows(make: Any) -> None:
    """Four times as many rows take about four times as long, not sixteen times."""

    def seconds(count: int) -> float:
        entries = make(count)
        start = process_time()
        assemble_agents(entries, ())
        detect_continuations(None, entries)
        return process_time() - start

    small = min(seconds(500) for _ in range(3))
    assert min(seconds(2000) for _ in range(3)) < 10 * max(small, 0.002)
