"""Small versions of what a real client was made to do: a rewind into a reply, and a fork that continued first."""

from __future__ import annotations

from typing import Any

from tests.thread.rows import decode_rows

from threadline.model.places import SessionId
from threadline.thread import OtherSession, assemble_agents, detect_continuations

ROW = dict[str, Any]


def prompt_row(uuid: str, parent: str | None, text: str = "go on", session: str = "one", at: int = 0) -> ROW:
    """Return a prompt."""
    message = {"role": "user", "content": text}
    return _row("user", uuid, parent, session, at) | {"message": message}


def reply_row(
    uuid: str, parent: str, content: ROW, message: str = "msg_1", *, session: str = "one", at: int = 0
) -> ROW:
    """Return a row with one block of a reply."""
    body = {"role": "assistant", "id": message, "content": [content], "stop_reason": "end_turn"}
    return _row("assistant", uuid, parent, session, at) | {"message": body}


def _row(kind: str, uuid: str, parent: str | None, session: str, at: int) -> ROW:
    time = f"2026-01-01T00:00:{at:02}.000Z"
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": session,
        "version": "2.1.325",
        "timestamp": time,
    }


def test_rewind_into_a_reply_makes_a_branch_of_what_followed() -> None:
    """The other blocks of the reply stay with it."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
    rows = [
        prompt_row("p1", None),
        reply_row("a1", "p1", {"type": "text", "text": "A beginning."}),
        reply_row("a2", "a1", call),
        prompt_row("r1", "a2") | {"message": {"role": "user", "content": [result]}},
        prompt_row("p2", "r1", "the way that was left"),
        reply_row("a3", "p2", {"type": "text", "text": "Left."}, "msg_2"),
        prompt_row("p3", "a1", "another way"),
        reply_row("a4", "p3", {"type": "text", "text": "Kept."}, "msg_3"),
    ]
    main, _others = assemble_agents(decode_rows(*rows), ())
    assert [entry.uuid for entry in main.thread.visible] == ["p1", "a1", "a2", "r1", "p3", "a4"]
    assert [[entry.uuid for entry in branch.entries] for branch in main.branches] == [["p2", "a3"]]


def test_fork_is_the_copy_even_if_its_original_continued_later() -> None:
    """The original has its own rows between the shared ones. A copy has the shared rows in one run."""

    def shared(session: str) -> list[ROW]:
        prompt = prompt_row("p1", None, session=session, at=1)
        return [prompt, reply_row("a1", "p1", {"type": "text", "text": "ok"}, session=session, at=2)]

    queue = {"type": "queue-operation", "operation": "dequeue", "sessionId": "one"}
    first, second = shared("one")
    original = decode_rows(first, queue, second, prompt_row("p3", "a1", "goes on last", at=9))
    fork = decode_rows(*shared("two"), prompt_row("p2", "a1", "goes on first", session="two", at=5))
    (continuation,) = detect_continuations(SessionId("two"), fork, [OtherSession(SessionId("one"), tuple(original))])
    assert (str(continuation.kind), continuation.session, continuation.forward) == ("fork", "one", False)
    (continuation,) = detect_continuations(SessionId("one"), original, [OtherSession(SessionId("two"), tuple(fork))])
    assert (str(continuation.kind), continuation.session, continuation.forward) == ("fork", "two", True)


def test_original_continued_first_in_any_time_zone() -> None:
    """The rows that only the original has begin first: as a moment, not as text."""
    shared = [prompt_row("p1", None, session="none", at=1)]
    early, late = "2026-01-01T11:00:00+02:00", "2026-01-01T10:00:00.000Z"
    original = decode_rows(*shared, prompt_row("p3", "p1", "early", session="none") | {"timestamp": early})
    copy = decode_rows(*shared, prompt_row("p2", "p1", "late", session="none") | {"timestamp": late})
    continuations = detect_continuations(SessionId("two"), copy, [OtherSession(SessionId("one"), tuple(original))])
    assert [(part.session, part.forward) for part in continuations if part.session == "one"] == [("one", False)]
    continuations = detect_continuations(SessionId("one"), original, [OtherSession(SessionId("two"), tuple(copy))])
    assert [(part.session, part.forward) for part in continuations if part.session == "two"] == [("two", True)]
