"""Every case of the corpus of sessions comes out as it says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.subtests import Subtests
from tests.thread.session_cases import CASES, CORPUS, PARTS, expected, folder, mains, shown, transcripts

import threadline
from threadline.load import read
from threadline.model.entries import Entry
from threadline.model.session import Session


def _place(entry: Entry) -> tuple[str, int, int]:
    return entry.line.transcript, entry.line.number, entry.line.offset


def _read(case: str) -> list[Session]:
    return [read(folder(case) / stated["session"]) for stated in expected(case)]


def comes_out_as_stated(case: str, sessions: list[Session]) -> None:
    """Each part of the session that the case is about is as the case states it."""
    for session, stated in zip(sessions, expected(case), strict=True):
        for part, value in stated.items():
            if part != "session":
                assert shown(PARTS[part](session), value) == value, part


def has_every_entry_exactly_once(_case: str, sessions: list[Session]) -> None:
    """Every entry of every transcript of the session is in exactly one agent, in file order."""
    for session in sessions:
        files = {Path(entry.line.transcript) for entry in session} | {session.path}
        there = Counter(_place(entry) for path in files if path is not None for entry in threadline.entries(path))
        assert Counter(_place(entry) for entry in session) == there
        for agent in (session.main, *session.agents):
            places = [_place(entry) for entry in agent.entries]
            assert places == sorted(places)


def leaves_no_transcript_out(case: str, sessions: list[Session]) -> None:
    """Every transcript with an entry is read with one of the sessions of its folder, or stated on its own."""
    stated = {folder(case) / one["session"] for one in expected(case)}
    others = [read(path) for path in mains(case) if path not in stated]
    read_with = {Path(entry.line.transcript) for session in (*sessions, *others) for entry in session}
    assert {path for path in transcripts(case) if path.stat().st_size} == read_with


def has_every_entry_in_a_turn(_case: str, sessions: list[Session]) -> None:
    """The turns of an agent, joined, are the entries of its transcript; a workflow's journal is outside them."""
    for session in sessions:
        for agent in (session.main, *session.agents):
            own = [entry for entry in agent.entries if entry.line.transcript == str(agent.transcript)]
            assert [entry for turn in agent.turns for entry in turn.entries] == own
            assert {entry.kind for entry in agent.entries if entry not in own} <= {"started", "result", "failed"}


def is_equal_when_read_twice(case: str, sessions: list[Session]) -> None:
    """A session is a value: read again, it is equal and has the same repr."""
    for session, other in zip(sessions, _read(case), strict=True):
        assert session == other
        assert repr(session) == repr(other)


def explains_itself(case: str, _sessions: list[Session]) -> None:
    """A case says why it is there, in which versions it was seen and what the evidence is, and states something."""
    why = (CORPUS / case / "why.md").read_text()
    assert "- Seen in: " in why
    assert "- Evidence: " in why
    assert all(len(stated) > 1 for stated in expected(case))


CLAIMS = (
    comes_out_as_stated,
    has_every_entry_exactly_once,
    leaves_no_transcript_out,
    has_every_entry_in_a_turn,
    is_equal_when_read_twice,
    explains_itself,
)


@pytest.mark.parametrize("case", CASES)
def test_case(case: str) -> None:
    """Every claim about the case holds, on one reading of it."""
    sessions = _read(case)
    with Subtests() as subtests:
        for claim in CLAIMS:
            with subtests.test(claim.__name__):
                claim(case, sessions)


def test_the_corpus_is_large_enough() -> None:
    """There are 70 cases or more."""
    assert len(CASES) >= 70
