"""What a real client was made to do, in small: rewound into a reply, and forked before it went on."""

from __future__ import annotations

from typing import Any

from tests.thread.rows import read

from threadline.model.places import SessionId
from threadline.thread import OtherSession, assemble_agents, detect_continuations

ROW = dict[str, Any]


def said(uuid: str, parent: str | None, text: str = "go on", session: str = "one", at: int = 0) -> ROW:
    """A prompt."""
    message = {"role": "user", "content": text}
    return _row("user", uuid, parent, session, at) | {"message": message}


def block(uuid: str, parent: str, content: ROW, message: str = "msg_1", *, session: str = "one", at: int = 0) -> ROW:
    """One block of a reply."""
    whole = {"role": "assistant", "id": message, "content": [content], "stop_reason": "end_turn"}
    return _row("assistant", uuid, parent, session, at) | {"message": whole}


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


def test_a_rewind_into_a_reply_leaves_what_followed_it() -> None:
    """The other blocks of the reply stay with it; the turns that followed them are a branch."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
    rows = [
        said("p1", None),
        block("a1", "p1", {"type": "text", "text": "A beginning."}),
        block("a2", "a1", call),
        said("r1", "a2") | {"message": {"role": "user", "content": [result]}},
        said("p2", "r1", "the way that was left"),
        block("a3", "p2", {"type": "text", "text": "Left."}, "msg_2"),
        said("p3", "a1", "another way"),
        block("a4", "p3", {"type": "text", "text": "Kept."}, "msg_3"),
    ]
    main, _others = assemble_agents(read(*rows), ())
    assert [entry.uuid for entry in main.thread.visible] == ["p1", "a1", "a2", "r1", "p3", "a4"]
    assert [[entry.uuid for entry in branch.entries] for branch in main.branches] == [["p2", "a3"]]


def test_a_fork_is_the_copy_even_where_its_original_went_on_later() -> None:
    """Rows of its own among the shared ones tell the original; a copy has those in one run."""

    def shared(session: str) -> list[ROW]:
        prompt = said("p1", None, session=session, at=1)
        return [prompt, block("a1", "p1", {"type": "text", "text": "ok"}, session=session, at=2)]

    queue = {"type": "queue-operation", "operation": "dequeue", "sessionId": "one"}
    first, second = shared("one")
    original = read(first, queue, second, said("p3", "a1", "goes on last", at=9))
    fork = read(*shared("two"), said("p2", "a1", "goes on first", session="two", at=5))
    (told,) = detect_continuations(SessionId("two"), fork, [OtherSession(SessionId("one"), tuple(original))])
    assert (str(told.kind), told.session, told.forward) == ("fork", "one", False)
    (told,) = detect_continuations(SessionId("one"), original, [OtherSession(SessionId("two"), tuple(fork))])
    assert (str(told.kind), told.session, told.forward) == ("fork", "two", True)
