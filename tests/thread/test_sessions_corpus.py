"""Every case of the corpus of sessions comes out as it says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.thread.session_cases import CASES, CORPUS, PARTS, expected, folder, mains, shown, transcripts

import threadline
from threadline.load import read
from threadline.model.entries import Entry
from threadline.model.session import Session


def _place(entry: Entry) -> tuple[str, int, int]:
    return entry.line.transcript, entry.line.number, entry.line.offset


def _read(case: str) -> list[Session]:
    return [read(folder(case) / stated["session"]) for stated in expected(case)]


@pytest.mark.parametrize("case", CASES)
def test_a_session_comes_out_as_stated(case: str) -> None:
    """Each part of the session that the case is about is as the case states it."""
    for session, stated in zip(_read(case), expected(case), strict=True):
        for part, value in stated.items():
            if part != "session":
                assert shown(PARTS[part](session), value) == value, part


@pytest.mark.parametrize("case", CASES)
def test_every_entry_exactly_once(case: str) -> None:
    """Every entry of every transcript of the session stands in exactly one agent, in file order."""
    for session in _read(case):
        files = {Path(entry.line.transcript) for entry in session} | {session.path}
        there = Counter(_place(entry) for path in files if path is not None for entry in threadline.entries(path))
        assert Counter(_place(entry) for entry in session) == there
        for agent in (session.main, *session.agents):
            places = [_place(entry) for entry in agent.entries]
            assert places == sorted(places)


@pytest.mark.parametrize("case", CASES)
def test_no_transcript_is_left_out(case: str) -> None:
    """Every transcript with an entry is read with one of the sessions of its folder, or stated on its own."""
    stated = {folder(case) / one["session"] for one in expected(case)}
    read_with = {Path(entry.line.transcript) for path in {*mains(case), *stated} for entry in read(path)}
    assert {path for path in transcripts(case) if path.stat().st_size} == read_with


@pytest.mark.parametrize("case", CASES)
def test_turns_hold_every_entry_of_their_agent(case: str) -> None:
    """The turns of an agent, joined, are the entries of its transcript; a workflow's journal stands outside them."""
    for session in _read(case):
        for agent in (session.main, *session.agents):
            own = [entry for entry in agent.entries if entry.line.transcript == str(agent.transcript)]
            assert [entry for turn in agent.turns for entry in turn.entries] == own
            assert {entry.kind for entry in agent.entries if entry not in own} <= {"started", "result", "failed"}


@pytest.mark.parametrize("case", CASES)
def test_reading_twice_gives_equal_sessions(case: str) -> None:
    """A session is a value: read again, it is equal and says the same."""
    for one, other in zip(_read(case), _read(case), strict=True):
        assert one == other
        assert repr(one) == repr(other)


@pytest.mark.parametrize("case", CASES)
def test_a_case_explains_itself(case: str) -> None:
    """A case says why it is there, in which versions it was seen and what the evidence is, and states something."""
    why = (CORPUS / case / "why.md").read_text()
    assert "- Seen in: " in why
    assert "- Evidence: " in why
    assert all(len(stated) > 1 for stated in expected(case))


def test_the_corpus_is_large_enough() -> None:
    """There are 70 cases or more."""
    assert len(CASES) >= 70
