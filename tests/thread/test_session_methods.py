"""Tests of the methods of a session for interactive use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.subtests import for_each
from tests.thread.session_cases import folder
from tests.transcripts import SESSION, Pen, call, chain, prompt, reply, transcript, write

from threadline.errors import NotFound
from threadline.load import Session, read
from threadline.model.places import Place
from threadline.model.titles import Title, TitleSource

NESTED = "calls-of-agents-belong-to-the-turn-that-started-them"


@pytest.fixture(name="small")
def _small(tmp_path: Path) -> Session:
    """A session of two turns, with a call, a compaction and an act."""
    command = "sort --numeric-sort shelf.txt | uniq --count > sorted.txt\nrm shelf.txt"
    rows = transcript(
        prompt("Sort the shelf"),
        call("Bash", command, result="a", details={"stdout": "a"}),
        prompt("Dust it"),
        reply("Dusted."),
        chain("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 9}),
    )
    return read(write(tmp_path / f"{SESSION}.jsonl", *rows))


def test_at_accepts_a_line_number(small: Session) -> None:
    """`session.at(2)` is the state at line 2 of the main transcript. A missing line is not found."""
    assert small.at(2) == small.at(f"{small.path}:2")
    assert small.at(2).place == small.main.entries[1].place
    with pytest.raises(NotFound):
        small.at(2000)


def test_calls_of_a_turn_include_those_of_its_agents() -> None:
    """The turn may be given by its number. Calls of unlinked agents belong to no turn."""
    session = read(folder(NESTED) / f"{SESSION}.jsonl")
    turn = session.turns[1]
    assert [call_.id for call_ in session.calls_of(turn)] == ["t1", "t2", "u1", "w1", "v1"]
    assert session.calls_of(2) == session.calls_of(turn)
    assert session.calls_of(1) == session.calls_of(99) == ()


def test_result_of_an_agent_is_its_final_reply() -> None:
    """Whether or not the call that started it has the text."""
    session = read(folder(NESTED) / f"{SESSION}.jsonl")
    assert [agent.result for agent in session.agents] == ["done", "done", "Dusted.", "done"]
    assert session.main.result == "Bye."


def test_result_of_an_agent_without_a_reply_is_empty(tmp_path: Path) -> None:
    """There is no final reply."""
    assert read(write(tmp_path / "a.jsonl", *transcript(prompt("Sort")))).main.result == ""


def test_reprs_are_one_line(small: Session) -> None:
    """Acts, calls and compactions show what they are, how they ended and where."""
    assert repr(small.acts[0]) == "Act('prompt', 'Sort the shelf', line 1)"
    assert repr(small.calls[0]) == "Call('Bash', 'sort --numeric-sort shelf.txt | uniq --…', 'ok', line 2)"
    assert repr(small.compactions[0]) == "Compaction('boundary', trigger='auto', tokens 9 -> None, line 6)"


def test_str_of_a_title_is_its_text() -> None:
    """As a string, a title is the session's name."""
    assert str(Title("Sort", TitleSource.AI)) == "Sort"


@for_each("session", ["../../etc/passwd", "a/b", "/", ".", "..", "x" * 300, "a\0b", "\ud800", "a\nb"])
def test_continuation_may_have_any_id(session: str, tmp_path: Path) -> None:
    """A session counts its charges whatever id a row names as its continuation. The id need not be a file name."""
    row = {"type": "continued-in", "sessionId": SESSION, "continuedInSessionId": session}
    rows = transcript(prompt("hi"), reply("ok", output=9))
    read_session = read(write(tmp_path / f"{SESSION}.jsonl", *rows, f"{json.dumps(row)}\n".encode()))
    assert any(continuation.forward for continuation in read_session.continuations)
    assert read_session.ledger.total.charges == 1


def test_ids_may_be_half_a_surrogate_pair(tmp_path: Path) -> None:
    """The charges of a session are counted if a row has an id that UTF-8 cannot encode."""
    rows = transcript(prompt("hi"), reply("ok", output=9), chain("user", uuid="\ud800"))
    main = tmp_path / f"{SESSION}.jsonl"
    main.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    assert read(main).ledger.total.charges == 1


def test_place_may_name_its_transcript_by_the_end_of_its_path(tmp_path: Path) -> None:
    """Whole names are compared: `a1.jsonl` is not the agent's transcript `agent-a1.jsonl`."""
    main = write(tmp_path / "a1.jsonl", *transcript(prompt("Sort", cwd="/main")))
    agent = transcript(prompt("Sort", cwd="/agent"), pen=Pen(isSidechain=True, agentId="a1"))
    write(tmp_path / "a1" / "subagents" / "agent-a1.jsonl", *agent)
    session = read(main)
    assert [session.at(f"{name}.jsonl:1").cwd for name in ("a1", "agent-a1")] == ["/main", "/agent"]
    assert [session.context(at=f"{name}.jsonl:1").agent for name in ("a1", "agent-a1")] == [None, "a1"]
    found = session.find(Place.parse("subagents/agent-a1.jsonl:1"))
    assert found is not None
    assert found.line.transcript.endswith("agent-a1.jsonl")
