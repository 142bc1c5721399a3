"""What a session gives to someone who explores it by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.subtests import for_each
from tests.thread.session_cases import folder
from tests.transcripts import SESSION, call, chain, prompt, reply, transcript, write

from threadline.errors import NotFound
from threadline.load import Session, read
from threadline.model.text import Title, TitleSource

NESTED = "calls-of-agents-belong-to-the-turn-that-started-them"


@pytest.fixture(name="small")
def _small(tmp_path: Path) -> Session:
    """A session of two turns, with a call, a compaction and an act to show."""
    shown = "sort --numeric-sort shelf.txt | uniq --count > sorted.txt\nrm shelf.txt"
    rows = transcript(
        prompt("Sort the shelf"),
        call("Bash", shown, result="a", details={"stdout": "a"}),
        prompt("Dust it"),
        reply("Dusted."),
        chain("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 9}),
    )
    return read(write(tmp_path / f"{SESSION}.jsonl", *rows))


def test_a_line_number_is_a_place(small: Session) -> None:
    """`session.at(2)` is the state at line 2 of the main transcript; a line that is not there is not found."""
    assert small.at(2) == small.at(f"{small.path}:2")
    assert small.at(2).place == small.main.entries[1].place
    with pytest.raises(NotFound):
        small.at(2000)


def test_calls_of_a_turn_are_those_of_its_agents_too() -> None:
    """By the turn or by its number; calls of agents that nothing links are in none."""
    session = read(folder(NESTED) / f"{SESSION}.jsonl")
    turn = session.turns[1]
    assert [one.id for one in session.calls_of(turn)] == ["t1", "t2", "u1", "w1", "v1"]
    assert session.calls_of(2) == session.calls_of(turn)
    assert session.calls_of(1) == session.calls_of(99) == ()


def test_the_result_of_an_agent_is_its_final_reply() -> None:
    """Its last words, whether or not the call that started it has them."""
    session = read(folder(NESTED) / f"{SESSION}.jsonl")
    assert [agent.result for agent in session.agents] == ["done", "done", "Dusted.", "done"]
    assert session.main.result == "Bye."


def test_the_result_of_an_agent_that_said_nothing_is_empty(tmp_path: Path) -> None:
    """An agent that was never answered has no last words."""
    assert read(write(tmp_path / "a.jsonl", *transcript(prompt("Sort")))).main.result == ""


def test_what_is_shown_is_short_and_tells(small: Session) -> None:
    """Acts, calls and compactions are shown in a line: what, how it went, where."""
    assert repr(small.acts[0]) == "Act('prompt', 'Sort the shelf', line 1)"
    assert repr(small.calls[0]) == "Call('Bash', 'sort --numeric-sort shelf.txt | uniq --…', 'ok', line 2)"
    assert repr(small.compactions[0]) == "Compaction('boundary', trigger='auto', tokens 9 -> None, line 6)"


def test_a_title_is_its_text() -> None:
    """As a string, a title is what the session is called."""
    assert str(Title("Sort", TitleSource.AI)) == "Sort"


@for_each("session", ["../../etc/passwd", "a/b", "/", ".", "..", "x" * 300, "a\0b", "\ud800", "a\nb"])
def test_a_continuation_may_name_anything(session: str, tmp_path: Path) -> None:
    """A session counts its charges whatever id a row names as its continuation. The id need not be a file name."""
    row = {"type": "continued-in", "sessionId": SESSION, "continuedInSessionId": session}
    rows = transcript(prompt("hi"), reply("ok", output=9))
    whole = read(write(tmp_path / f"{SESSION}.jsonl", *rows, f"{json.dumps(row)}\n".encode()))
    assert any(continuation.forward for continuation in whole.continuations)
    assert whole.ledger.total.charges == 1
