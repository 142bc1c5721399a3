"""A search finds what a scan finds, each result once, and nothing that was deleted."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.profiles import scale_examples
from tests.search.indexed_home import FIRST, SECOND, Archive, scan_places, search_places
from tests.transcripts import Pen, call, meta, prompt, reply, transcript, write
from tools.demo import write as write_demo

from threadline.errors import BadQuery
from threadline.find import homes, look
from threadline.index import FIELDS, EntryRow
from threadline.model.entries import Entry
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


def _fill(archive: Archive) -> Archive:
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
    """Words, phrases, prefixes, OR, NOT, fields, filters, regular expressions, code and Chinese."""
    with _fill(archive).opened() as index:
        results = {text: (search_places(index, text), scan_places(index, text)) for text in QUERIES}
    assert {text: hits for text, (hits, _) in results.items()} == {text: scan for text, (_, scan) in results.items()}
    assert {text for text, (hits, _) in results.items() if not hits} == {"agent:sub", "nothing of the kind"}


WORDS = ["parse", "timestamp", "parseTimestamp", "parse_timestamp", "Café", "数据库", "数据", "a", "E404", "x.py", "ok"]
_texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
_parts = st.one_of(
    _texts.map(prompt),
    _texts.map(reply),
    st.builds(
        lambda command, output, error: call("Bash", command, result=output, error=error), _texts, _texts, st.booleans()
    ),
)
_word = st.sampled_from([*WORDS, "cafe", "pars*", "据", "/arse/", "/x.py$/", "/[0-9]+/"])
_term = st.one_of(
    _word,
    _texts.map(lambda text: f'"{text}"'),
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
    """For any texts and any queries."""
    archive = Archive(tmp_path_factory.mktemp("archive"))
    archive.write(*first)  # type: ignore[arg-type]
    later = Pen(SECOND, start=datetime(2026, 3, 1, tzinfo=UTC), cwd="/srv/shop")
    archive.write(*second, session=SECOND, project="-srv-shop", pen=later)  # type: ignore[arg-type]
    with archive.opened() as index:
        for text in queries:
            assert search_places(index, text) == scan_places(index, text), text


def test_a_limit_that_is_not_reached_changes_nothing(archive: Archive) -> None:
    """With a limit that is not reached, hits, order and total are the same as without one."""
    with _fill(archive).opened() as index:
        for text in QUERIES:
            page, unlimited = (search(index, text, limit=limit, now=NOW) for limit in (1000, None))
            assert (page.total, page.at_least) == (unlimited.total, False)
            assert [hit.entry_id for hit in page.hits] == [hit.entry_id for hit in unlimited.hits]


def test_copies_are_one_hit(archive: Archive) -> None:
    """A session that continues in another file repeats its entries. The hit is the first occurrence."""
    original = archive.write(prompt("a needle in here"), reply("seen"))
    resumed = archive.home / "projects" / "-work-app" / f"{SECOND}.jsonl"
    resumed.write_bytes(original.read_bytes())
    with archive.opened() as index:
        hits = search(index, "needle")
    assert [Path(hit.place.transcript).stem for hit in hits.hits] == [FIRST]
    assert (hits.total, hits.hits[0].more) == (1, 0)


def test_original_is_the_hit_even_if_a_copy_is_indexed_first(archive: Archive) -> None:
    """An entry belongs to the session it names, wherever copies of it are."""
    original = archive.write(prompt("a needle in here"))
    resumed = archive.home / "projects" / "-aaa" / f"{SECOND}.jsonl"
    resumed.parent.mkdir()
    resumed.write_bytes(original.read_bytes())
    os.utime(original, (0, 0))
    with archive.opened() as index:
        hits = [search(index, "needle", sort=sort).hits for sort in ("rank", "time")]
    assert [[Path(hit.place.transcript).stem for hit in found] for found in hits] == [[FIRST], [FIRST]]


def test_a_session_whose_hits_are_all_copies_is_not_counted(archive: Archive) -> None:
    """A continuation copied every prompt and is found first: the hits are the original's, and so is the number."""
    pen = Pen(FIRST)
    rows = transcript(prompt("one"), prompt("two"), pen=pen)
    later = transcript(reply("on"), pen=Pen(SECOND, start=NOW))
    write(archive.home / f"projects/-work-app/{FIRST}.jsonl", *rows, *transcript(prompt("three"), pen=pen))
    write(archive.home / f"projects/-work-app/{SECOND}.jsonl", *rows, *later)
    with archive.opened() as index:
        hits = search(index, "kind:user")
    assert [hit.session for hit in hits.hits] == [FIRST]
    assert hits.listed == 1


@pytest.mark.parametrize("query", ["kind:user", "timeout", "/time.ut/", "since:0500-01-01"])
def test_a_limit_of_nothing_finds_nothing(archive: Archive, query: str) -> None:
    """No hit is listed, whichever way the hits are found."""
    with _fill(archive).opened() as index:
        assert search(index, query, limit=0).hits == ()
        assert search(index, query, limit=1).hits


def test_finds_a_copy_if_the_original_is_filtered_out(archive: Archive) -> None:
    """A filter that excludes the original leaves the copy."""
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


def test_never_finds_deleted_entries(archive: Archive) -> None:
    """Neither after a file is truncated, nor after it is rewritten, renamed or deleted."""
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


def test_survives_a_transcript_deleted_after_the_refresh(archive: Archive) -> None:
    """Full-text hits are returned without a snippet if the transcript can no longer be read."""
    path = archive.write(prompt("a needle"))
    with archive.opened() as index:
        path.unlink()
        assert [hit.snippet for hit in search(index, "needle").hits] == [""]
        assert search(index, "/needle/").hits == ()


def test_returns_one_hit_per_session_and_counts_the_rest(archive: Archive) -> None:
    """The best hit is returned: typed text ranks before the output of a tool."""
    archive.write(call("Bash", "cat notes", result="needle"), prompt("the needle"), reply("a needle, too"))
    archive.write(call("Bash", "ls", result="needle"), session=SECOND)
    with archive.opened() as index:
        hits = search(index, "needle", now=NOW)
        every = search(index, "needle", now=NOW, every=True)
    assert [(hit.session, hit.field, hit.more) for hit in hits.hits] == [(FIRST, "prompt", 2), (SECOND, "result", 0)]
    assert (len(every.hits), every.total, hits.total) == (4, 4, 4)


def test_sorts_by_time(archive: Archive) -> None:
    """The newest hit comes first, whatever its rank."""
    archive.write(prompt("needle needle"), pen=Pen(FIRST, start=NOW))
    archive.write(call("Bash", "ls", result="needle"), session=SECOND, pen=Pen(SECOND, start=NOW + timedelta(days=9)))
    with archive.opened() as index:
        assert [hit.session for hit in search(index, "needle", sort="time").hits] == [SECOND, FIRST]
        assert [hit.session for hit in search(index, "needle", sort="rank").hits] == [FIRST, SECOND]


def test_newer_hits_rank_higher(archive: Archive) -> None:
    """Recency counts a little."""
    archive.write(prompt("the needle"), pen=Pen(FIRST, start=NOW - timedelta(days=300)))
    archive.write(prompt("the needle"), session=SECOND, pen=Pen(SECOND, start=NOW))
    with archive.opened() as index:
        assert [hit.session for hit in search(index, "needle", now=NOW).hits] == [SECOND, FIRST]


def test_sessions_with_several_hits_rank_higher(archive: Archive) -> None:
    """The best hits of a session add to its score."""
    archive.write(prompt("the needle one"), pen=Pen(FIRST, start=NOW))
    several = [prompt(f"the needle {word}") for word in ("one", "two", "six")]
    archive.write(*several, session=SECOND, pen=Pen(SECOND, start=NOW))
    with archive.opened() as index:
        assert [hit.session for hit in search(index, "needle", now=NOW).hits] == [SECOND, FIRST]


def test_equal_hits_are_in_order_of_indexing(archive: Archive) -> None:
    """Hits with the same score have a fixed order."""
    archive.write(prompt("the needle"), prompt("the needle"), pen=Pen(FIRST, start=NOW))
    with archive.opened() as index:
        hits = search(index, "needle", now=NOW, every=True).hits
    assert [hit.place.line for hit in hits] == sorted(hit.place.line for hit in hits)


def test_titles_rank_above_older_prompts(archive: Archive) -> None:
    """A title has no time, so it gets no boost for recency, but a boost of its own that is nearly as large."""
    start = NOW - timedelta(days=30)
    archive.write(prompt("needle in a haystack"), pen=Pen(FIRST, start=start))
    title = meta("ai-title", aiTitle="needle in a haystack")
    archive.write(prompt("something else"), title, session=SECOND, pen=Pen(SECOND, start=start))
    with archive.opened() as index:
        assert [hit.field for hit in search(index, "needle", now=NOW).hits] == ["title", "prompt"]


def test_ranks_a_bounded_number_of_matches(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many matches only some are ranked, including typed text and the newest. The total is a lower bound."""
    monkeypatch.setattr(ranking, "MAX_RANKED", 20)
    monkeypatch.setattr(ranking, "NEWEST_RANKED", 10)
    noise = [call("Bash", "ls", result=f"needle {number}") for number in range(100)]
    archive.write(prompt("the needle"), *noise)
    with archive.opened() as index:
        monkeypatch.setattr(DocumentReader, "document", _never)  # no transcript is read to decide whether it matches
        hits = search(index, "needle", every=True, limit=10)
        assert (len(hits.hits), hits.at_least, hits.total) == (10, True, 11)
        assert hits.hits[0].field == "prompt"
        assert search(index, "needle", limit=None).total == 101


def test_a_bounded_search_finds_only_what_a_scan_finds(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few matches are ranked."""
    monkeypatch.setattr(ranking, "MAX_RANKED", 1)
    monkeypatch.setattr(ranking, "NEWEST_RANKED", 1)
    with _fill(archive).opened() as index:
        for text in [*QUERIES, "parse -result:parse", "timeout -ENOENT -parser", "timestamp -src/app.py"]:
            hits = search(index, text, every=True).hits
            assert {(Path(hit.place.transcript).stem, hit.place.line) for hit in hits} <= scan_places(index, text)


def test_finds_filtered_matches_of_a_common_word(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if they are not among the ranked ones, and also after all ranked matches were deleted."""
    monkeypatch.setattr(ranking, "MAX_RANKED", 5)
    monkeypatch.setattr(ranking, "NEWEST_RANKED", 5)
    archive.write(call("Read", "notes.md", result="needle in a file"), session=FIRST)
    archive.refresh()
    later = archive.write(*(call("Bash", "ls", result=f"needle {number}") for number in range(30)), session=SECOND)
    with archive.opened() as index:
        assert [hit.session for hit in search(index, "needle tool:Read").hits] == [FIRST]
    later.unlink()
    assert archive.places("needle") == {(FIRST, 2)}
    with archive.opened() as index:
        assert [hit.session for hit in search(index, "needle").hits] == [FIRST]


def test_without_words_the_newest_comes_first(archive: Archive) -> None:
    """By the time of the entry, whatever the mtime of the file."""
    early = archive.write(prompt("early"), pen=Pen(FIRST, start=NOW))
    archive.write(prompt("late"), session=SECOND, pen=Pen(SECOND, start=NOW + timedelta(days=1)))
    os.utime(early, (4_000_000_000, 4_000_000_000))
    with archive.opened() as index:
        assert [hit.snippet for hit in search(index, "kind:user").hits] == ["late", "early"]


def test_indexed_filters_read_no_transcripts(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Project, session, kind and time are known without opening a transcript."""
    with _fill(archive).opened() as index:
        monkeypatch.setattr(DocumentReader, "entry", _never)
        with pytest.raises(AssertionError):
            search(index, "tool:Bash")
        monkeypatch.setattr("threadline.search.engine._make_hit", lambda _index, _query, row, *_: row)
        monkeypatch.setattr("threadline.search.engine._with_titles", lambda _connection, hits: hits)
        assert search(index, "timeout project:shop kind:user since:2026-02-01").total == 2


def _never(*_: object) -> None:
    raise AssertionError("a transcript was read")


def test_titles_equal_those_of_the_transcripts(tmp_path: Path) -> None:
    """The titles in the index equal those read from the transcripts."""
    archive = Archive(tmp_path)
    archive.home.joinpath("projects").rmdir()
    archive.home.rmdir()
    write_demo(archive.home, megabytes=1)
    listings = [look(home) for home in homes(os.fspath(archive.home))]
    sessions = {transcript.session for home in listings for transcript in home.transcripts if transcript.session}
    with archive.opened() as index:
        assert index.titles(sessions) == read_session_titles(listings, sessions)


@pytest.mark.parametrize(
    ("query", "word"),
    [("timeuot", "timeout"), ("praser", "parser"), ("how did we fix the parser timeout", "timeout")],
)
def test_suggests_near_matches(archive: Archive, query: str, word: str) -> None:
    """For a misspelling or a full question without exact hits, the nearest hits are returned with a note."""
    with _fill(archive).opened() as index:
        assert search(index, query).hits == ()
        near = search(index, query, near=True)
    assert near.note is not None
    assert word in near.hits[0].snippet.lower()


def test_every_field_has_a_weight() -> None:
    """Every full-text field has a weight, and nothing else does."""
    assert set(WEIGHTS) == set(FIELDS)


def test_a_parsed_query_gives_the_same_result(archive: Archive) -> None:
    """A query that is already parsed gives the same result as its text."""
    with _fill(archive).opened() as index:
        assert run_query(index, parse_query("timeout"), now=NOW) == search(index, "timeout", now=NOW)


def test_a_slow_search_is_cut_short_with_a_note(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it has a hit, a slow search stops and says that there may be more. Without a limit, everything is found.

    The note does not name options of the command line: the page and agents show it as well.
    """
    with _fill(archive).opened() as index:
        complete = search(index, "/[a-z]+e[a-z]+/", every=True, now=NOW)
        monkeypatch.setattr(engine, "SOON_SECONDS", -1.0)
        partial = search(index, "/[a-z]+e[a-z]+/", every=True, now=NOW)
        unlimited = search(index, "/[a-z]+e[a-z]+/", every=True, now=NOW, limit=None)
    assert (complete.cut_short, complete.note) == (False, None)
    assert (len(partial.hits), partial.cut_short, partial.at_least) == (1, True, True)
    assert (partial.note or "").startswith("Results may be incomplete: ")
    assert "--" not in (partial.note or "")
    assert unlimited.hits == complete.hits
    assert not unlimited.cut_short


@pytest.mark.parametrize(
    ("query", "most"), [("version:2.0.1", 4), ("branch:topic", 4), ("error:*", 2), ("agent:sub error:*", 0)]
)
def test_values_are_compared_with_bytes_before_entries_are_decoded(
    archive: Archive, query: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To find a version, a branch or failures in a whole home, only entries that contain the value are decoded."""
    decoded: list[int] = []
    decode = DocumentReader.entry

    def entry(self: DocumentReader, row: EntryRow) -> Entry | None:
        decoded.append(row.entry_id)
        return decode(self, row)

    with _fill(archive).opened() as index:
        monkeypatch.setattr(DocumentReader, "entry", entry)
        hits = search(index, query, every=True, limit=None, now=NOW)
    assert len(set(decoded)) <= most
    assert len(hits.hits) == (1 if query == "error:*" else most)


def test_further_hits_are_counted_or_a_minimum(archive: Archive) -> None:
    """If a session has more matching entries than were examined, `more` is marked as a minimum."""
    archive.write(*(prompt(f"prompt {number}") for number in range(30)))
    archive.write(prompt("only this"), reply("and this"), session=SECOND)
    with archive.opened() as index:
        hits = {hit.session: hit for hit in search(index, "project:app", now=NOW)}
        every = search(index, "project:app", every=True, limit=None, now=NOW)
    assert [(hits[session].more, hits[session].at_least) for session in (FIRST, SECOND)] == [(19, True), (1, False)]
    assert (every.total, any(hit.at_least for hit in every)) == (32, False)


@pytest.mark.parametrize("query", ["/[a-z]+e[a-z]+/", "/[0-9]{9}/", "tool:Bash"])
def test_a_timeout_without_hits_is_an_error(archive: Archive, query: str) -> None:
    """If the time is over before anything is found, the search raises an error and returns no empty result."""
    with _fill(archive).opened() as index, pytest.raises(BadQuery, match="did not finish within 1e-09 seconds"):
        search(index, query, now=NOW, seconds=1e-9)


def test_finds_an_agent_by_the_type_in_its_call(archive: Archive) -> None:
    """Old versions stored no metadata beside an agent's transcript. The call that started it has the type."""
    arguments = {"description": "look", "prompt": "look for the pier", "subagent_type": "Explore"}
    archive.write(
        prompt("begin"), call("Task", arguments, result="done", details={"agentId": "a1b2c3d4", "status": "completed"})
    )
    path = archive.home / "projects" / "-work-app" / FIRST / "subagents" / "agent-a1b2c3d4.jsonl"
    write(path, *transcript(prompt("look for the pier"), pen=Pen(FIRST, isSidechain=True, agentId="a1b2c3d4")))
    assert archive.places("agent:explore") == {("agent-a1b2c3d4", 1)}
    assert archive.places("pier agent:Explore") == {("agent-a1b2c3d4", 1)}
    assert archive.places("agent:Plan") == set()
