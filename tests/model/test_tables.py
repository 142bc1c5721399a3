"""Listings and other results as tables: sequences, records, data frames, HTML, reprs and pickles."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import threadline
from threadline import Archive, Listing
from threadline.model.tables import to_arrow, to_pandas, to_polars

pytestmark = pytest.mark.sample(4)

TABLES: dict[str, Callable[..., Any]] = {
    "sessions": Archive.sessions,
    "calls": Archive.calls,
    "files": Archive.files,
    "edits": lambda archive, **keywords: archive.file_log("tile_compare.py", **keywords),
    "agents": Archive.agents,
    "problems": Archive.problems,
    "errors": Archive.errors,
    "hits": lambda archive, **keywords: archive.search("parser", near=False, **keywords),
    "entries": Archive.entries,
    "prompts": Archive.prompts,
    "history": Archive.history,
    "charges": Archive.ledger,
    "rows": lambda archive, **keywords: archive.ledger(**keywords).by("day", "model"),
}


@pytest.fixture(scope="module")
def archive(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """The demo home with an index."""
    index = tmp_path_factory.mktemp("index") / "index.sqlite"
    with threadline.open(demo_home, index=index, keep=False, tz="UTC") as archive:
        archive.refresh()
        yield archive


def nothing_of(archive: Archive, name: str) -> Any:
    """A table without rows."""
    return TABLES[name](archive, project="no such project")


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("library", ["pyarrow", "polars", "pandas"])
def test_every_result_is_a_data_frame(archive: Archive, name: str, library: str) -> None:
    """It has a row for each object. Times are times, amounts are decimals, and an empty one has the same columns."""
    pytest.importorskip("pyarrow")
    pytest.importorskip(library)
    table = TABLES[name](archive)
    method = {"pyarrow": "arrow"}.get(library, library)
    frame = getattr(table, method)()
    empty = getattr(nothing_of(archive, name), method)()
    records = table.records()
    assert frame.shape == (len(records), len(table.columns))
    assert empty.shape == (0, len(table.columns))
    if library == "pandas":
        assert list(frame.dtypes) == list(empty.dtypes)
        assert list(frame.columns) == list(table.columns)
    else:
        assert frame.schema == empty.schema
    for column, kind in table.columns.items():
        values = frame[column].to_pylist() if library == "pyarrow" else frame[column].to_list()
        expected = [record[column] for record in records]
        present = [(value, cell) for value, cell in zip(values, expected, strict=True) if cell is not None]
        assert all(list(value) == cell if kind is list else value == cell for value, cell in present), column


@pytest.mark.parametrize("name", TABLES)
def test_types_of_columns(archive: Archive, name: str) -> None:
    """Times are in UTC with microseconds, and amounts are decimals."""
    pa = pytest.importorskip("pyarrow")
    table = TABLES[name](archive)
    schema = table.arrow().schema
    expected = {
        datetime: pa.timestamp("us", tz="UTC"),
        Decimal: pa.decimal128(38, 18),
        int: pa.int64(),
        bool: pa.bool_(),
    }
    for column, kind in table.columns.items():
        assert kind not in expected or schema.field(column).type == expected[kind]
    times = {"timestamp", "first", "last", "ended"} & set(table.columns)
    assert all(table.columns[column] is datetime for column in times)
    assert all(table.columns[column] is Decimal for column in {"amount", "reported"} & set(table.columns))


def test_hostile_values_fit() -> None:
    """Lone surrogates are replaced, and None stays None."""
    pytest.importorskip("pyarrow")
    columns = {"text": str, "when": datetime, "amount": Decimal, "number": int, "names": list}
    record = {
        "text": "\ufffd",
        "when": datetime(2026, 1, 1, tzinfo=UTC),
        "amount": Decimal("0.1"),
        "number": 1,
        "names": ["a"],
    }
    for convert in (to_arrow, to_polars, to_pandas):
        if convert is not to_arrow:
            pytest.importorskip(convert.__name__[3:])
        assert convert(columns, [record, dict.fromkeys(columns)]).shape == (2, 5)

    class Texts(Listing[Any]):
        row_type = threadline.Place

    (row,) = Texts([threadline.Place("\ud800.jsonl", 1)]).records()
    assert row["transcript"] == "\ufffd.jsonl"


def test_listing_is_a_sequence(archive: Archive) -> None:
    """It can be iterated, measured, indexed, sliced and compared with a list."""
    calls = archive.calls()
    assert len(calls) == len(list(calls)) > 3
    assert calls[0] is next(iter(calls))
    assert calls[-1] == calls[len(calls) - 1]
    assert calls[:2] == [calls[0], calls[1]]
    assert isinstance(calls[:2], threadline.CallList)
    assert calls
    assert not archive.calls(project="no such project")
    sessions = archive.sessions(limit=2)
    assert (len(sessions), sessions.more) == (2, len(archive.sessions()) - 2)
    assert sessions.sessions == tuple(sessions)


def test_more_says_whether_others_match(archive: Archive) -> None:
    """Calls, files, agents and edits beyond the limit are not counted: `more` is None then, and 0 without others."""
    edited = next(file.path for file in archive.files() if file.writes > 1)
    questions: tuple[Callable[..., Listing[Any]], ...] = (
        archive.calls,
        archive.files,
        archive.agents,
        partial(archive.file_log, edited),
    )
    for ask in questions:
        everything = ask()
        assert (len(everything) > 1, everything.more) == (True, 0)
        assert ask(limit=len(everything)).more == 0
        assert ask(limit=0).more is None
        part = ask(limit=len(everything) - 1)
        assert (part, part.more) == (everything[:-1], None)
        assert "and more" in repr(part)


def test_hits_and_ledger_are_sequences(archive: Archive) -> None:
    """The best hit comes first."""
    hits = archive.search("parser")
    assert len(hits) == len(list(hits)) == len(hits.hits)
    assert hits[0] is hits.hits[0]
    assert hits[:2] == hits.hits[:2]
    ledger = archive.ledger()
    assert len(ledger) == len(list(ledger))
    assert bool(ledger)


def test_reprs_say_what_it_is(archive: Archive, demo_home: Path) -> None:
    """They are one line, and contain no memory address."""
    session = archive.session("last")
    values = [archive, session, *(TABLES[name](archive) for name in TABLES)]
    values += [next(iter(TABLES[name](archive)), None) for name in TABLES if name not in {"entries", "rows"}]
    values += [session.calls[0], session.at(), *session.at().files.values()]
    for value in values:
        assert "\n" not in repr(value)
        assert " object at 0x" not in repr(value)
        assert len(repr(value)) < 500
    assert repr(archive) == f"Archive({demo_home})"
    assert repr(archive.sessions(limit=2)) == f"SessionList(2 sessions of {len(archive.sessions())})"
    assert repr(archive.calls()) == f"CallList({len(archive.calls())} calls)"
    assert repr(archive.ledger()).startswith(f"Ledger({len(archive.ledger())} charges, ")
    charge = archive.ledger().charges[0]
    assert repr(charge).startswith(f"Charge({charge.message!r}, {charge.model!r}, {charge.tokens:,} tokens, ")


@pytest.mark.parametrize("name", TABLES)
def test_notebooks_show_a_table(archive: Archive, name: str) -> None:
    """With the most important columns, and at most 20 rows."""
    html = TABLES[name](archive)._repr_html_()
    assert html.startswith("<table><caption>")
    assert 1 < html.count("<tr>") <= 21 or name == "problems"
    assert nothing_of(archive, name)._repr_html_().count("<tr>") == 1


def test_session_is_shown_turn_by_turn(archive: Archive) -> None:
    """In a notebook, a session is a table of its turns."""
    session = archive.session("last")
    html = session._repr_html_()
    assert html.count("<tr>") == min(20, len(session.turns)) + 1
    assert str(session.id) in html


def test_html_is_escaped() -> None:
    """Text of a transcript is never markup."""
    prompt = threadline.SessionPrompt(
        None, None, "<b>", "prompt", 1, "<script>alert(1)</script>" + "x" * 500, threadline.Place("a.jsonl", 1)
    )
    html = threadline.PromptList([prompt])._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "&lt;b&gt;" in html
    assert len(html) < 800


@pytest.mark.parametrize("name", TABLES)
def test_every_result_pickles(archive: Archive, name: str) -> None:
    """The copy has the same rows, whether the original came from an index or not."""
    table = TABLES[name](archive)
    copy = pickle.loads(pickle.dumps(table))  # noqa: S301 - our own pickle
    assert type(copy) is type(table)
    assert copy.records() == table.records()
    assert repr(copy) == repr(table)


def test_sessions_and_archives_pickle(archive: Archive) -> None:
    """A copy of an archive opens the index itself."""
    session = archive.session("last")
    assert pickle.loads(pickle.dumps(session)) == session  # noqa: S301 - our own pickle
    copy = pickle.loads(pickle.dumps(archive))  # noqa: S301 - our own pickle
    with copy:
        assert copy.calls() == archive.calls()
    ledger = pickle.loads(pickle.dumps(archive.ledger()))  # noqa: S301 - our own pickle
    assert ledger.by("month", "model").records() == archive.ledger().by("month", "model").records()
    assert ledger.where(since="2026-02").total == archive.ledger(since="2026-02").total


def count_turns(session: threadline.Session) -> int:
    """The number of turns, in another process."""
    return len(session.turns)


@pytest.mark.slow
def test_results_go_to_other_processes(archive: Archive) -> None:
    """As `multiprocessing` sends them."""
    session = archive.session("last")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(count_turns, [session]) == [len(session.turns)]
        (ledger,) = pool.map(archive.__class__.ledger, [archive])
    assert ledger.total == archive.ledger().total


def test_ledger_of_files_pickles_with_agent_types(demo_home: Path, archive: Archive) -> None:
    """Without an index, types are read when they are needed: before a pickle is sent elsewhere, and for a table."""
    with threadline.open(demo_home, index=False, keep=False, tz="UTC") as unindexed:
        copy = pickle.loads(pickle.dumps(unindexed.ledger()))  # noqa: S301 - our own pickle
        records = unindexed.ledger().records()
    assert sorted(map(str, copy.records())) == sorted(map(str, records))
    assert sorted(map(str, records)) == sorted(map(str, archive.ledger().records()))
    assert len({record["agent_type"] for record in records}) > 2
    assert copy.by("agent-type") == archive.ledger().by("agent-type")
