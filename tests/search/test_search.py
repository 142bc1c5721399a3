"""A search finds what a scan finds, each thing once, and nothing that is gone."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.profiles import scale_examples
from tests.search.indexed_home import FIRST, SECOND, Archive, found, scanned
from tests.transcripts import Pen, call, meta, prompt, reply, transcript, write
from tools.demo import write as write_demo

from threadline.errors import BadQuery
from threadline.find import homes, look
from threadline.index import FIELDS
from threadline.search import engine, ranking, search
from threadline.search.documents import DocumentReader
from threadline.search.engine import run_query
from threadline.search.query import WEIGHTS, parse_query
from threadline.summary import read_session_titles

NOW = datetime(2026, 1, 6, tzinfo=UTC)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """An archive without transcripts."""
    return Archive(tmp_path)


def _mixed(archive: Archive) -> Archive:
    archive.write(
        prompt("please parseTimestamp in src/app.py, café 数据库连接"),
        reply("the parse_timestamp function fails with E404"),
        call("Bash", "grep -rn timeout --dry-run .", result="ENOENT: no such file", error=True),
        call("Read", "/work/app/src/app.py", result="def parse(timestamp): return timestamp"),
        reply({"type": "thinking", "thinking": "maybe the timeout is too short", "signature": "x"}),
        meta("ai-title", aiTitle="Parse timestamps"),
    )
    archive.write(
        prompt("another timeout in the parser"),
        call("Bash", "ls", result="timeout: 数据"),
        reply("Timestamp done, CAFÉ too"),
        session=SECOND,
        project="-srv-shop",
        pen=Pen(SECOND, start=datetime(2026, 3, 1, tzinfo=UTC), cwd="/srv/shop", gitBranch="topic", version="2.0.1"),
    )
    return archive


QUERIES = [
    "timeout",
    "timeout parser",
    '"no such file"',
    "time*",
    "timeout OR café",
    "timeout -parser",
    "parseTimestamp",
    "parse timestamp",
    "parse_timestamp",
    "cafe",
    "数据库",
    "据库连",
    "src/app.py",
    "--dry-run",
    "E404",
    "prompt:timeout",
    "reply:timestamp",
    "file:app.py",
    "command:grep",
    "thinking:short",
    "title:parse",
    "result:parse",
    "tool:Bash",
    "tool:Bash timeout",
    "tool:Read parse",
    "error:*",
    "error:ENOENT tool:Bash",
    "-error:* timeout",
    "project:shop",
    "project:shop timeout",
    "branch:topic timeout",
    "version:2.0",
    "model:sonnet timestamp",
    f"session:{SECOND[:7]}",
    "kind:user timeout",
    "kind:assistant",
    "since:2026-02-01",
    "until:2026-02-01 timeout",
    "agent:main timeout",
    "agent:sub",
    "cost:>0 timeout",
    r"/time(out|stamp)/",
    r"/E\d+/c",
    r"/imeou/",
    r"/ENOENT: no/ project:app",
    r"file:/app\.py$/",
    r"prompt:/^please/ OR title:/^Parse/",
    "-timeout",
    "(timeout OR parse) -kind:user",
    "project:shop OR café",
    "-(project:shop timeout)",
    "nothing of the kind",
]


def test_a_search_finds_what_a_scan_finds(archive: Archive) -> None:
    """Words, phrases, beginnings, OR, NOT, fields, filters, expressions, code, Chinese: all the same."""
    with _mixed(archive).opened() as index:
        told = {text: (found(index, text), scanned(index, text)) for text in QUERIES}
    assert {text: one for text, (one, _) in told.items()} == {text: other for text, (_, other) in told.items()}
    assert {text for text, (one, _) in told.items() if not one} == {"agent:sub", "nothing of the kind"}


WORDS = ["parse", "timestamp", "parseTimestamp", "parse_timestamp", "Café", "数据库", "数据", "a", "E404", "x.py", "ok"]
_said = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
_parts = st.one_of(
    _said.map(prompt),
    _said.map(reply),
    st.builds(lambda given, out, bad: call("Bash", given, result=out, error=bad), _said, _said, st.booleans()),
)
_word = st.sampled_from([*WORDS, "cafe", "pars*", "据", "/arse/", "/x.py$/", "/[0-9]+/"])
_term = st.one_of(
    _word,
    _said.map(lambda text: f'"{text}"'),
    st.builds(lambda field, word: f"{field}:{word}", st.sampled_from(["prompt", "reply", "command", "result"]), _word),
    st.sampled_from(["tool:Bash", "error:*", "kind:user", "project:shop", "since:2026-02-01", "agent:main"]),
)
_queries = st.lists(st.tuples(st.sampled_from(["", "-", "OR "]), _term).map("".join), min_size=1, max_size=3).map(
    lambda terms: " ".join([terms[0].removeprefix("OR "), *terms[1:]])
)


@settings(max_examples=scale_examples(25))
@given(st.lists(_parts, max_size=6), st.lists(_parts, max_size=4), st.lists(_queries, min_size=1, max_size=8))
def test_any_search_finds_what_a_scan_finds(
    tmp_path_factory: pytest.TempPathFactory, first: list[object], second: list[object], queries: list[str]
) -> None:
    """Whatever was said and whatever is asked."""
    archive = Archive(tmp_path_factory.mktemp("archive"))
    archive.write(*first)  # type: ignore[arg-type]
    later = Pen(SECOND, start=datetime(2026, 3, 1, tzinfo=UTC), cwd="/srv/shop")
    archive.write(*second, session=SECOND, project="-srv-shop", pen=later)  # type: ignore[arg-type]
    with archive.opened() as index:
        for text in queries:
            assert found(index, text) == scanned(index, text), text


def test_a_page_shows_the_same_as_all_of_it(archive: Archive) -> None:
    """With a limit that is not reached, hits, their order and their number are those without one."""
    with _mixed(archive).opened() as index:
        for text in QUERIES:
            page, whole = (search(index, text, limit=limit, now=NOW) for limit in (1000, None))
            assert (page.total, page.at_least) == (whole.total, False)
            assert [hit.entry_id for hit in page.hits] == [hit.entry_id for hit in whole.hits]


def test_copies_are_one_hit(archive: Archive) -> None:
    """A session that goes on in another file repeats what was said; the hit is where it was said first."""
    original = archive.write(prompt("a needle in here"), reply("seen"))
    resumed = archive.home / "projects" / "-work-app" / f"{SECOND}.jsonl"
    resumed.write_bytes(original.read_bytes())
    with archive.opened() as index:
        hits = search(index, "needle")
    assert [Path(hit.place.transcript).stem for hit in hits.hits] == [FIRST]
    assert (hits.total, hits.hits[0].more) == (1, 0)


def test_a_copy_is_found_where_only_it_is_asked_for(archive: Archive) -> None:
    """A filter that leaves out the original leaves the copy."""
    original = archive.write(prompt("a needle in here"))
    other = archive.home / "projects" / "-srv-shop" / f"{SECOND}.jsonl"
    other.parent.mkdir()
    data = original.read_bytes()
    assert b'"/work/app"' in data
    other.write_bytes(data.replace(b'"/work/app"', b'"/srv/shop"'))
    with archive.opened() as index:
        assert len(search(index, "needle").hits) == 1
        (hit,) = search(index, "needle -project:/work/app").hits
        assert (hit.project, hit.place.transcript) == ("/srv/shop", str(other))


def test_what_is_gone_is_never_found(archive: Archive) -> None:
    """Neither after a file is cut, nor when it is written anew, renamed or deleted; nor by a page, nor by all."""
    path = archive.write(prompt("first needle"), prompt("second needle"), prompt("third needle"))
    assert len(archive.places("needle")) == 3
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0])
    assert archive.places("needle") == {(FIRST, 1)}
    archive.write(prompt("nothing here"), prompt("needle anew"))
    assert archive.places("needle") == {(FIRST, 2)}
    moved = path.with_name(f"{SECOND}.jsonl")
    path.rename(moved)
    assert archive.places("needle") == {(SECOND, 2)}
    with archive.opened() as index:
        assert [hit.place.transcript for hit in search(index, "needle").hits] == [str(moved)]
    moved.unlink()
    assert archive.places("needle") == set()


def test_a_file_that_is_gone_meanwhile_does_no_harm(archive: Archive) -> None:
    """What full text finds is told even where the transcript cannot be read any more, without its words."""
    path = archive.write(prompt("a needle"))
    with archive.opened() as index:
        path.unlink()
        assert [hit.snippet for hit in search(index, "needle").hits] == [""]
        assert search(index, "/needle/").hits == ()


def test_one_hit_a_session_and_how_many_more(archive: Archive) -> None:
    """The best one is shown: what was typed comes before what a tool printed."""
    archive.write(call("Bash", "cat notes", result="needle"), prompt("the needle"), reply("a needle, too"))
    archive.write(call("Bash", "ls", result="needle"), session=SECOND)
    with archive.opened() as index:
        hits = search(index, "needle", now=NOW)
        every = search(index, "needle", now=NOW, every=True)
    assert [(hit.session, hit.field, hit.more) for hit in hits.hits] == [(FIRST, "prompt", 2), (SECOND, "result", 0)]
    assert (len(every.hits), every.total, hits.total) == (4, 4, 4)


def test_by_time_the_newest_comes_first(archive: Archive) -> None:
    """Whatever full text thinks of it."""
    archive.write(prompt("needle needle"), pen=Pen(FIRST, start=NOW))
    archive.write(call("Bash", "ls", result="needle"), session=SECOND, pen=Pen(SECOND, start=NOW + timedelta(days=9)))
    with archive.opened() as index:
        assert [hit.session for hit in search(index, "needle", sort="time").hits] == [SECOND, FIRST]
        assert [hit.session for hit in search(index, "needle", sort="rank").hits] == [FIRST, SECOND]


def test_of_equals_the_newer_comes_first(archive: Archive) -> None:
    """How new it is counts a little."""
    archive.write(prompt("the needle"), pen=Pen(FIRST, start=NOW - timedelta(days=300)))
    archive.write(prompt("the needle"), session=SECOND, pen=Pen(SECOND, start=NOW))
    with archive.opened() as index:
        assert [hit.session for hit in search(index, "needle", now=NOW).hits] == [SECOND, FIRST]


def test_a_common_word_is_bounded(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many matches only some are ranked: what was typed among them, and the newest. The total says at least."""
    monkeypatch.setattr(ranking, "MAX_RANKED", 20)
    monkeypatch.setattr(ranking, "NEWEST_RANKED", 10)
    noise = [call("Bash", "ls", result=f"needle {number}") for number in range(100)]
    archive.write(prompt("the needle"), *noise)
    with archive.opened() as index:
        monkeypatch.setattr(DocumentReader, "document", _never)  # nothing is read to find out whether it matches
        hits = search(index, "needle", every=True, limit=10)
        assert (len(hits.hits), hits.at_least, hits.total) == (10, True, 11)
        assert hits.hits[0].field == "prompt"
        assert search(index, "needle", limit=None).total == 101


def test_a_bounded_search_has_no_hit_that_a_scan_has_not(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few of them are ranked."""
    monkeypatch.setattr(ranking, "MAX_RANKED", 1)
    monkeypatch.setattr(ranking, "NEWEST_RANKED", 1)
    with _mixed(archive).opened() as index:
        for text in [*QUERIES, "parse -result:parse", "timeout -ENOENT -parser", "timestamp -src/app.py"]:
            hits = search(index, text, every=True).hits
            assert {(Path(hit.place.transcript).stem, hit.place.line) for hit in hits} <= scanned(index, text)


def test_what_a_filter_leaves_of_a_common_word_is_found(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it is not among what is ranked; and so is what is left when all that was ranked is gone."""
    monkeypatch.setattr(ranking, "MAX_RANKED", 5)
    monkeypatch.setattr(ranking, "NEWEST_RANKED", 5)
    archive.write(call("Read", "notes.md", result="needle in a file"), session=FIRST)
    archive.refresh()
    later = archive.write(*(call("Bash", "ls", result=f"needle {one}") for one in range(30)), session=SECOND)
    with archive.opened() as index:
        assert [hit.session for hit in search(index, "needle tool:Read").hits] == [FIRST]
    later.unlink()
    assert archive.places("needle") == {(FIRST, 2)}
    with archive.opened() as index:
        assert [hit.session for hit in search(index, "needle").hits] == [FIRST]


def test_without_words_the_newest_comes_first(archive: Archive) -> None:
    """By when it was written, whatever the files say."""
    early = archive.write(prompt("early"), pen=Pen(FIRST, start=NOW))
    archive.write(prompt("late"), session=SECOND, pen=Pen(SECOND, start=NOW + timedelta(days=1)))
    os.utime(early, (4_000_000_000, 4_000_000_000))
    with archive.opened() as index:
        assert [hit.snippet for hit in search(index, "kind:user").hits] == ["late", "early"]


def test_filters_that_the_index_answers_read_nothing(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Project, session, kind and time are known without opening a transcript."""
    with _mixed(archive).opened() as index:
        monkeypatch.setattr(DocumentReader, "entry", _never)
        with pytest.raises(AssertionError):
            search(index, "tool:Bash")
        monkeypatch.setattr("threadline.search.engine._make_hit", lambda _index, _query, row, *_: row)
        monkeypatch.setattr("threadline.search.engine._with_titles", lambda _connection, found: found)
        assert search(index, "timeout project:shop kind:user since:2026-02-01").total == 2


def _never(*_: object) -> None:
    raise AssertionError("a transcript was read")


def test_titles_are_those_that_sessions_have(tmp_path: Path) -> None:
    """What the index makes of them equals what the transcripts say."""
    archive = Archive(tmp_path)
    archive.home.joinpath("projects").rmdir()
    archive.home.rmdir()
    write_demo(archive.home, megabytes=1)
    told = [look(home) for home in homes(os.fspath(archive.home))]
    sessions = {transcript.session for home in told for transcript in home.transcripts if transcript.session}
    with archive.opened() as index:
        assert index.titles(sessions) == read_session_titles(told, sessions)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("timeuot", "timeout"), ("praser", "parser"), ("how did we fix the parser timeout", "timeout")],
)
def test_what_may_have_been_meant(archive: Archive, asked: str, meant: str) -> None:
    """A misspelling, or a whole question: nothing has it, and the nearest is told with a note."""
    with _mixed(archive).opened() as index:
        assert search(index, asked).hits == ()
        near = search(index, asked, near=True)
    assert near.note is not None
    assert meant in near.hits[0].snippet.lower()


def test_weights_are_of_the_fields() -> None:
    """Every field of full text has its weight, and no other has one."""
    assert set(WEIGHTS) == set(FIELDS)


def test_all_answers_come_from_one_query(archive: Archive) -> None:
    """A query that is understood already gives the same."""
    with _mixed(archive).opened() as index:
        assert run_query(index, parse_query("timeout"), now=NOW) == search(index, "timeout", now=NOW)


def test_what_takes_long_is_cut_short_and_says_so(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once something is found, a page is not waited for: it says that it may not be all; everything is still found."""
    with _mixed(archive).opened() as index:
        whole = search(index, "/[a-z]+e[a-z]+/", every=True, now=NOW)
        monkeypatch.setattr(engine, "SOON_SECONDS", -1.0)
        some = search(index, "/[a-z]+e[a-z]+/", every=True, now=NOW)
        every = search(index, "/[a-z]+e[a-z]+/", every=True, now=NOW, limit=None)
    assert (whole.cut_short, whole.note) == (False, None)
    assert (len(some.hits), some.cut_short, some.at_least) == (1, True, True)
    assert (some.note or "").startswith("This may not be all: ")
    assert every.hits == whole.hits
    assert not every.cut_short


@pytest.mark.parametrize("query", ["/[a-z]+e[a-z]+/", "/[0-9]{9}/", "tool:Bash"])
def test_what_finds_nothing_in_its_time_is_an_error(archive: Archive, query: str) -> None:
    """Where time is over before anything is found, there is a sentence and no empty answer."""
    with _mixed(archive).opened() as index, pytest.raises(BadQuery, match="did not finish within 1e-09 seconds"):
        search(index, query, now=NOW, seconds=1e-9)


def test_an_agent_is_found_by_the_type_that_its_call_asked_for(archive: Archive) -> None:
    """Old versions put nothing beside an agent's transcript: the call that started it says what it is."""
    given = {"description": "look", "prompt": "look for the pier", "subagent_type": "Explore"}
    archive.write(
        prompt("begin"), call("Task", given, result="done", details={"agentId": "a1b2c3d4", "status": "completed"})
    )
    path = archive.home / "projects" / "-work-app" / FIRST / "subagents" / "agent-a1b2c3d4.jsonl"
    write(path, *transcript(prompt("look for the pier"), pen=Pen(FIRST, isSidechain=True, agentId="a1b2c3d4")))
    assert archive.places("agent:explore") == {("agent-a1b2c3d4", 1)}
    assert archive.places("pier agent:Explore") == {("agent-a1b2c3d4", 1)}
    assert archive.places("agent:Plan") == set()
