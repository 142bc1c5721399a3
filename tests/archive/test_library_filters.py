"""The library's keyword filters: what they accept, what they select, and the errors for wrong ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import threadline
from threadline import Archive, BadQuery

pytestmark = pytest.mark.sample(3)

QUESTIONS: dict[str, Callable[..., Any]] = {
    "sessions": Archive.sessions,
    "calls": Archive.calls,
    "files": Archive.files,
    "agents": Archive.agents,
    "errors": Archive.errors,
    "search": lambda archive, **keywords: archive.search("the", every=True, **keywords),
    "entries": Archive.entries,
    "prompts": Archive.prompts,
    "history": Archive.history,
    "ledger": Archive.ledger,
}
"""The questions with the keywords `project`, `since` and `until`."""
TIME_COLUMNS = {"sessions": "last", "files": "last", "agents": "last"}


@pytest.fixture(scope="module")
def archive(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """The demo home with an index; days are UTC days."""
    index = tmp_path_factory.mktemp("index") / "index.sqlite"
    with threadline.open(demo_home, index=index, keep=False, tz="UTC") as archive:
        archive.refresh()
        yield archive


def rows_of(archive: Archive, question: str, **keywords: Any) -> list[dict[str, Any]]:
    """The answer to a question as records."""
    records: list[dict[str, Any]] = QUESTIONS[question](archive, **keywords).records()
    return records


@pytest.mark.parametrize("question", QUESTIONS)
def test_since_and_until_may_be_text_days_or_datetimes(archive: Archive, question: str) -> None:
    """All forms of a day select the same rows, and exactly those of that day."""
    column = TIME_COLUMNS.get(question, "timestamp")
    everything = rows_of(archive, question)
    times = sorted(row[column] for row in everything if row[column] is not None)
    assert times
    day = times[len(times) // 2].date()
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    end = start + timedelta(days=1, microseconds=-1)
    tokyo = ZoneInfo("Asia/Tokyo")
    forms: tuple[tuple[Any, Any], ...] = (
        (day.isoformat(), day.isoformat()),
        (day, day),
        (start, end),
        (start.replace(tzinfo=None), end.replace(tzinfo=None)),
        (start.astimezone(tokyo), end.astimezone(tokyo)),
    )
    answers = [rows_of(archive, question, since=since, until=until) for since, until in forms]
    assert answers[0]
    assert all(answer == answers[0] for answer in answers)
    if question not in {"files", "search", "sessions"}:  # a file or session of the day may have been used later, too
        assert answers[0] == [row for row in everything if row[column] is not None and row[column].date() == day]


@pytest.mark.parametrize("question", QUESTIONS)
def test_project_is_a_part_of_the_path(archive: Archive, question: str) -> None:
    """Case does not matter, and every row is of such a project."""
    projects = {row["project"] for row in rows_of(archive, question) if row["project"]}
    name = min(projects)
    part = name[-12:].upper()
    rows = rows_of(archive, question, project=part)
    assert rows
    assert all(part in row["project"].upper() for row in rows if "project" in row)


@pytest.mark.parametrize("question", [name for name in QUESTIONS if name not in {"sessions", "history"}])
def test_session_is_the_start_of_an_id_or_last(archive: Archive, question: str) -> None:
    """`last` is the newest session."""
    sessions = [row["session"] for row in rows_of(archive, question) if row["session"]]
    session = sessions[0]
    rows = rows_of(archive, question, session=session[:13])
    assert rows
    assert {row["session"] for row in rows} == {session}
    newest = archive.sessions(limit=1)[0].id
    assert rows_of(archive, question, session="last") == rows_of(archive, question, session=newest)


@pytest.mark.parametrize("question", [name for name in QUESTIONS if name != "ledger"])
def test_without_a_limit_everything_is_returned(archive: Archive, question: str) -> None:
    """A limit returns that many rows, and the others are not lost silently."""
    everything = rows_of(archive, question)
    assert len(everything) > 3
    limited = rows_of(archive, question, limit=3)
    assert len(limited) == 3
    assert rows_of(archive, question, limit=0) == []


def test_calls_are_as_many_as_in_the_index(archive: Archive) -> None:
    """`archive.calls()` used to return 50 of them."""
    (row,) = archive.sql("SELECT COUNT(*) AS calls FROM calls")
    assert len(archive.calls()) == row["calls"] > 50


@pytest.mark.parametrize("question", QUESTIONS)
def test_unknown_keyword_names_the_valid_ones(archive: Archive, question: str) -> None:
    """The error suggests the nearest one."""
    with pytest.raises(
        TypeError, match=rf"{question}\(\) has no keyword 'projekt'\. Did you mean 'project'\? Keywords: "
    ):
        QUESTIONS[question](archive, projekt="app")


@pytest.mark.parametrize("question", QUESTIONS)
def test_wrong_values_are_explained(archive: Archive, question: str) -> None:
    """Each error is a sentence about the value."""
    ask = QUESTIONS[question]
    with pytest.raises(BadQuery, match=r"'soon' is not a time\."):
        ask(archive, since="soon")
    with pytest.raises(BadQuery, match=r"5 is not a time\."):
        ask(archive, until=5)
    with pytest.raises(BadQuery, match=r"since 2026-02, until 2026-01\."):
        ask(archive, since="2026-02", until="2026-01")
    with pytest.raises(BadQuery, match=r"project=5 is not text\."):
        ask(archive, project=5)
    if question != "ledger":
        with pytest.raises(BadQuery, match=r"limit=-1 is not a number of rows\."):
            ask(archive, limit=-1)


def test_names_may_be_a_string_or_several(archive: Archive) -> None:
    """An unknown outcome or kind is an error that lists the valid ones."""
    assert archive.calls(tools="Bash") == archive.calls(tools=["Bash"]) != []
    assert {call.tool for call in archive.calls(tools="Bash")} == {"Bash"}
    assert {str(failure.what) for failure in archive.errors(outcomes="error")} == {"error"}
    assert {entry.kind for entry in archive.entries(kinds=("user", "assistant"))} == {"user", "assistant"}
    assert all(row["agent"] for row in archive.entries(agent="sub", limit=20).records())
    with pytest.raises(BadQuery, match=r"Unknown value 'bad' for outcomes\. Choose from ok, error, denied"):
        archive.calls(outcomes="bad")
    with pytest.raises(BadQuery, match=r"Unknown value 'typo' for kinds\."):
        archive.prompts(kinds="typo")


def test_watch_takes_the_same_times(archive: Archive) -> None:
    """An unknown keyword is explained, too."""
    assert isinstance(archive.watch("last", since="2025-01-01"), threadline.Follower)
    with pytest.raises(BadQuery, match=r"'soon' is not a time\."):
        archive.watch(since="soon")
    with pytest.raises(TypeError, match=r"watch\(\) has no keyword 'sinse'\. Did you mean 'since'\?"):
        archive.watch(sinse="7d")  # type: ignore[call-arg] # the mistake to be explained


def test_filter_objects_still_work(archive: Archive) -> None:
    """Keywords replace the fields of a filter object."""
    project = archive.sessions()[0].project
    by_object = archive.sessions(threadline.SessionFilter(project=project, limit=5))
    assert by_object == archive.sessions(project=project, limit=5)
    assert len(archive.sessions(threadline.SessionFilter(project=project, limit=5), limit=1)) == 1
    assert archive.calls(threadline.CallFilter(project=project)) == archive.calls(project=project)
    assert archive.files(selection=threadline.CallFilter(limit=2)) == archive.files(limit=2)
    assert archive.errors(selection=threadline.FailureFilter(limit=2)) == archive.errors(limit=2)
    assert list(archive.history(threadline.PromptFilter(limit=2))) == list(archive.history(limit=2))


def test_history_counts_what_was_read_last(archive: Archive) -> None:
    """A history that is read again counts its rows and problems again, not twice."""
    history = archive.history()
    for _ in range(2):
        prompts = list(history)
        assert history.rows_read == history.match_counts["text"] == len(prompts) > 0


def test_days_are_days_of_the_archives_zone(demo_home: Path, archive: Archive) -> None:
    """The default is this machine's zone, as on the command line."""
    day = archive.calls()[0].timestamp
    assert day is not None
    with threadline.open(demo_home, index=archive.index, keep=False, tz="Pacific/Auckland") as elsewhere:
        first = min(call.timestamp for call in elsewhere.calls(since=day.date(), until=day.date()) if call.timestamp)
        assert first >= datetime(day.year, day.month, day.day, tzinfo=ZoneInfo("Pacific/Auckland"))
        assert elsewhere.ledger().by("day")[0].keys == archive.ledger().by("day", zone="Pacific/Auckland")[0].keys
    with threadline.open(demo_home, keep=False) as here:
        assert here.zone.tzname(None) == threadline.ledger(demo_home).zone.tzname(None)


def test_answers_are_the_same_without_an_index(demo_home: Path, archive: Archive) -> None:
    """Those that do not need an index."""
    with threadline.open(demo_home, index=False, keep=False, tz="UTC") as unindexed:
        for question in ("sessions", "errors", "entries", "prompts", "history", "ledger"):
            keywords = {"since": "2026-02", "project": "tidewatch"}
            answers = [rows_of(source, question, **keywords) for source in (unindexed, archive)]
            assert answers[0]
            assert sorted(map(str, answers[0])) == sorted(map(str, answers[1]))


def test_prompts_are_those_of_the_index_with_their_full_text(archive: Archive) -> None:
    """The index stores up to 2,000 characters of each."""
    stored = archive.sql("SELECT session, turn, kind, text FROM prompts")
    prompts = [(prompt.session, prompt.turn, prompt.kind, prompt.text[:2000]) for prompt in archive.prompts()]
    assert sorted(map(str, prompts)) == sorted(str(tuple(row.values())) for row in stored)


def test_entries_have_the_text_of_replies(archive: Archive) -> None:
    """A table of entries has what was said."""
    rows = archive.entries(kinds="assistant", session="last").records()
    session = archive.session("last")
    said = [entry.text for entry in session if isinstance(entry, threadline.AssistantEntry)]
    assert sorted(row["text"] for row in rows) == sorted(said)
    assert any(said)


def test_tables_equal_those_of_sql(archive: Archive) -> None:
    """The columns that a table of the library and a view of the index share have the same values."""
    charges = archive.ledger().records()
    stored = archive.sql("SELECT * FROM charges")
    shared = sorted(set(charges[0]) & set(stored[0]) - {"timestamp", "part", "amount"})
    assert {"agent_type", "service_tier", "git_branch", "cache_write_1h"} <= set(shared)
    assert Counter(tuple(row[name] for name in shared) for row in charges) == Counter(
        tuple(row[name] for name in shared) for row in stored
    )
    assert sum(row["amount"] or 0 for row in charges) == sum(Decimal(row["amount"] or 0) for row in stored)
    agents = archive.agents().records()
    stored = archive.sql("SELECT agent, session, type, call, model, entries, project, transcript, side FROM agents")
    assert Counter(tuple(row[name] for name in stored[0]) for row in agents) == Counter(
        tuple(row.values()) for row in stored
    )
