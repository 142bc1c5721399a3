"""Every case of the session corpus matches its `out.json`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.subtests import Subtests
from tests.thread.session_cases import (
    CASES,
    CORPUS,
    SESSION_PARTS,
    expected,
    folder,
    main_transcripts,
    reduce_to,
    transcripts,
)

import threadline
from threadline.load import read
from threadline.model.entries import Entry
from threadline.model.session import Session


def _place(entry: Entry) -> tuple[str, int, int]:
    return entry.line.transcript, entry.line.number, entry.line.offset


def _read(case: str) -> list[Session]:
    return [read(folder(case) / session["session"]) for session in expected(case)]


def check_stated_parts(case: str, sessions: list[Session]) -> None:
    """Each part that the case states is equal."""
    for session, stated in zip(sessions, expected(case), strict=True):
        for part, value in stated.items():
            if part != "session":
                assert reduce_to(SESSION_PARTS[part](session), value) == value, part


def check_every_entry_once(_case: str, sessions: list[Session]) -> None:
    """Every entry of every transcript of the session is in exactly one agent, in file order."""
    for session in sessions:
        files = {Path(entry.line.transcript) for entry in session} | {session.path}
        expected_places = Counter(
            _place(entry) for path in files if path is not None for entry in threadline.entries(path)
        )
        assert Counter(_place(entry) for entry in session) == expected_places
        for agent in (session.main, *session.agents):
            places = [_place(entry) for entry in agent.entries]
            assert places == sorted(places)


def check_every_transcript_is_read(case: str, sessions: list[Session]) -> None:
    """Every transcript with an entry is read with one of the sessions of its folder, or stated separately."""
    stated = {folder(case) / session["session"] for session in expected(case)}
    other_sessions = [read(path) for path in main_transcripts(case) if path not in stated]
    read_with = {Path(entry.line.transcript) for session in (*sessions, *other_sessions) for entry in session}
    assert {path for path in transcripts(case) if path.stat().st_size} == read_with


def check_turns_cover_all_entries(_case: str, sessions: list[Session]) -> None:
    """The turns of an agent join to the entries of its transcript. A workflow's journal is not in them."""
    for session in sessions:
        for agent in (session.main, *session.agents):
            agent_entries = [entry for entry in agent.entries if entry.line.transcript == str(agent.transcript)]
            assert [entry for turn in agent.turns for entry in turn.entries] == agent_entries
            assert {entry.kind for entry in agent.entries if entry not in agent_entries} <= {
                "started",
                "result",
                "failed",
            }


def check_second_reading_is_equal(case: str, sessions: list[Session]) -> None:
    """A session is a value: read again, it is equal and has the same repr."""
    for session, second in zip(sessions, _read(case), strict=True):
        assert session == second
        assert repr(session) == repr(second)


def check_explanation(case: str, _sessions: list[Session]) -> None:
    """A case says why it exists, in which versions it was seen and what the evidence is, and states something."""
    why = (CORPUS / case / "why.md").read_text()
    assert "- Seen in: " in why
    assert "- Evidence: " in why
    assert all(len(stated) > 1 for stated in expected(case))


CHECKS = (
    check_stated_parts,
    check_every_entry_once,
    check_every_transcript_is_read,
    check_turns_cover_all_entries,
    check_second_reading_is_equal,
    check_explanation,
)


@pytest.mark.parametrize("case", CASES)
def test_case(case: str) -> None:
    """All checks of the case pass on one reading."""
    sessions = _read(case)
    with Subtests() as subtests:
        for check in CHECKS:
            with subtests.test(check.__name__):
                check(case, sessions)


def test_there_are_enough_cases() -> None:
    """There are at least 70 cases."""
    assert len(CASES) >= 70
