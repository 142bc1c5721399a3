"""Summaries name an entry of another session, in any transcript of any home: links both ways, and titles."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from tests.index.content import content, differences, rebuilt_content
from tests.interfaces.entry_points import WebClient, isolated, run_command
from tests.transcripts import Pen, Row, prompt, reply, transcript, write

import threadline
from threadline.find import transcript_at
from threadline.model.homes import Transcript
from threadline.model.titles import SummaryRef, choose_summary
from threadline.parse import TranscriptLinks, find_summaries
from threadline.summary import SessionFilter

OLD = "01d00000-0000-4000-8000-000000000001"
NEW = "4e400000-0000-4000-8000-000000000002"
COPY = "c0b10000-0000-4000-8000-000000000003"
TITLE = "Shelves sorted"


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path) -> Iterator[None]:
    with isolated(tmp_path / "isolated", frozen=False):
        yield


def summary(leaf: str, text: str = TITLE) -> Row:
    """Return a summary of the conversation that contains the entry `leaf`."""
    return {"type": "summary", "summary": text, "leafUuid": leaf}


def session_rows(session: str, turns: int = 1, first: str = "Sort the shelves") -> list[Any]:
    """Return the rows of a conversation. The last one is its leaf."""
    parts = [part for at in range(turns) for part in (prompt(first if not at else f"More {at}"), reply(f"Done {at}"))]
    return transcript(*parts, pen=Pen(session, version="1.0.60"))


def write_session(home: Path, folder: str, session: str, rows: list[Any]) -> Path:
    """Write the transcript of a session."""
    return write(home / "projects" / folder / f"{session}.jsonl", *rows)


def links(session: threadline.Session) -> list[tuple[str | None, bool]]:
    """Return the sessions that summaries link with a session, and whether they continue it."""
    return [(link.session, link.forward) for link in session.continuations if str(link.kind) == "summary"]


class Homes:
    """Two homes: one with the old session, the other with the session that continues it."""

    def __init__(self, folder: Path, turns: int = 60, home: str = "b") -> None:
        self.paths = [folder / "a", folder / home]
        old = session_rows(OLD, turns)
        self.old = write_session(self.paths[0], "-work-app", OLD, old)
        self.leaf = old[-1]["uuid"]
        new = session_rows(NEW, first="Sort the boxes")
        self.new = write_session(self.paths[1], "-other-place", NEW, [summary(self.leaf), *new])

    def open(self, *, index: bool) -> threadline.Archive:
        """Open the archive of both homes."""
        return threadline.open(list(dict.fromkeys(self.paths)), index=index, keep=False)


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("home", ["b", "a"])
def test_leaf_is_found_in_any_transcript_of_any_home(tmp_path: Path, home: str, *, index: bool) -> None:
    """It is the 120th row of a transcript in another folder, or in another home."""
    with Homes(tmp_path, home=home).open(index=index) as archive:
        new, old = archive.session(NEW), archive.session(OLD)
        assert (links(new), links(old)) == ([(OLD, False)], [(NEW, True)])
        assert [link.session for link in (*new.continues, *old.continued_by)] == [OLD, NEW]
        assert (new.continued_by, old.continues) == ((), ())


@pytest.mark.parametrize("index", [True, False])
def test_summary_titles_the_session_that_it_names(tmp_path: Path, *, index: bool) -> None:
    """The session that contains the summary has the title of its own first prompt."""
    expected = {OLD: TITLE, NEW: "Sort the boxes"}
    with Homes(tmp_path).open(index=index) as archive:
        assert {row.id: row.title for row in archive.sessions().sessions} == expected
        assert {name: archive.session(name).title.text for name in expected} == expected
        assert archive.titles(expected) == expected
        newest = archive.sessions(SessionFilter(limit=1)).sessions
        assert [row.title for row in newest] == [TITLE]


def test_sessions_read_by_path_know_their_home(tmp_path: Path) -> None:
    """`threadline.read` without homes searches the home of the path; outside of a home, the folder."""
    homes = Homes(tmp_path, home="a")
    assert links(threadline.read(homes.new)) == [(OLD, False)]
    assert threadline.read(homes.old).title.text == TITLE
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in (homes.old, homes.new):
        (elsewhere / path.name).write_bytes(path.read_bytes())
    assert links(threadline.read(elsewhere / homes.old.name)) == [(NEW, True)]


def test_commands_and_pages_show_both_directions(tmp_path: Path) -> None:
    """`show`, `tree`, exports, pages and SQL."""
    homes = Homes(tmp_path, turns=2, home="a")
    home = homes.paths[0]
    for name, other, words, forward in ((NEW, OLD, "continues from", False), (OLD, NEW, "continues in", True)):
        for command in (("show", name), ("tree", name), ("export", name, "--format", "md", "--out", "-")):
            assert words in (text := run_command(*command, "--home", home).out.decode()), text
            assert other in text
        data = run_command("show", name, "--json", "--home", home).json
        assert [row for row in data["continuations"] if row["kind"] == "summary"] == [
            {"kind": "summary", "session": other, "forward": forward}
        ]
        assert data["title"] == (TITLE if name == OLD else "Sort the boxes")
    rows = run_command("sql", "SELECT session, continues, summary, leaf FROM continuations", "--json", "--home", home)
    assert rows.json == [{"session": NEW, "continues": OLD, "summary": TITLE, "leaf": homes.leaf}]
    server = WebClient(home)
    try:
        for name, other in ((NEW, OLD), (OLD, NEW)):
            assert other in json.dumps(server.json(f"/session/{name}/related.json"))
            assert f'href="/session/{other}"' in server.json(f"/session/{name}")["text"]
    finally:
        server.close()


def test_exported_title_is_redacted(tmp_path: Path) -> None:
    """A summary in another session, which is not exported, may contain a secret."""
    secret = "sk_live_" + "a1B2c3D4" * 3
    old = session_rows(OLD)
    write_session(tmp_path, "-work", OLD, old)
    write_session(tmp_path, "-work", NEW, [summary(old[-1]["uuid"], f"Use {secret}"), *session_rows(NEW)])
    for form in ("md", "json", "html", "txt"):
        text = run_command("export", OLD, "--format", form, "--out", "-", "--home", tmp_path).out.decode()
        assert "Use " in text
        assert secret not in text
    assert (
        secret
        in run_command("export", OLD, "--no-redact", "--format", "txt", "--out", "-", "--home", tmp_path).out.decode()
    )


def test_missing_leaf_titles_nothing(tmp_path: Path) -> None:
    """Its session is unknown, and the session that contains the summary is another one."""
    path = write_session(tmp_path, "-work", NEW, [summary("gone"), *session_rows(NEW, first="Sort the boxes")])
    session = threadline.read(path)
    assert (session.title.text, links(session)) == ("Sort the boxes", [(None, False)])


def test_summary_of_an_agent_does_not_title_its_session(tmp_path: Path) -> None:
    """Claude Code 2.0 wrote summaries of warm-ups, which are in the main transcript of another session."""
    pen = Pen(OLD, version="2.0.19", isSidechain=True)
    agent: list[Any] = transcript(prompt("Warmup"), reply("Ready"), pen=pen)
    write_session(tmp_path, "-work", OLD, [*agent, *session_rows(OLD)[:1]])
    write_session(tmp_path, "-work", NEW, [summary(agent[-1]["uuid"], "Warm up"), *session_rows(NEW)])
    for index in (True, False):
        with threadline.open(tmp_path, index=index, keep=False) as archive:
            assert archive.titles([OLD]) == {OLD: "Sort the shelves"}
            assert links(archive.session(OLD)) == [(NEW, True)]
            assert archive.session(OLD).title.text == "Sort the shelves"


def test_summary_of_the_latest_entry_counts() -> None:
    """Of several with the same entry, the last one of its own transcript, else the last one by path."""
    refs = [SummaryRef(leaf, f"{leaf} {path} {at}", path, at) for leaf in "ab" for path in "xyz" for at in (0, 1)]
    positions = {"a": 1, "b": 0}
    assert choose_summary(refs, positions, "x") == "a x 1"
    assert choose_summary(refs, positions, "none") == "a z 1"
    assert choose_summary(refs, {"b": 0}, "y") == "b y 1"
    assert choose_summary(refs, {}, "y") is None


def test_copies_of_a_session_are_continued_too(tmp_path: Path) -> None:
    """A resumed copy contains the entry that the summary names, so the summary titles both."""
    old = session_rows(OLD)
    write_session(tmp_path, "-work", OLD, old)
    write_session(tmp_path, "-work", COPY, old)
    write_session(tmp_path, "-work", NEW, [summary(old[-1]["uuid"]), *session_rows(NEW)])
    for index in (True, False):
        with threadline.open(tmp_path, index=index, keep=False) as archive:
            assert sorted(links(archive.session(NEW))) == [(OLD, False), (COPY, False)]
            assert archive.titles([OLD, COPY]) == {OLD: TITLE, COPY: TITLE}


def _append(path: Path, *rows: Row) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


_CHANGES: dict[str, Callable[[Homes], object]] = {
    "the old session grows": lambda homes: _append(homes.old, *session_rows(OLD, 70)[-2:]),
    "another summary": lambda homes: _append(homes.new, summary(homes.leaf, "Shelves sorted twice")),
    "a better title": lambda homes: _append(homes.old, {"type": "custom-title", "customTitle": "Mine"}),
    "the summary is gone": lambda homes: homes.new.unlink(),
    "the old session is gone": lambda homes: homes.old.unlink(),
    "the old session is moved": lambda homes: homes.old.rename(homes.old.with_name(f"{COPY}.jsonl")),
}


@pytest.mark.parametrize("change", _CHANGES)
def test_index_follows_changes(tmp_path: Path, change: str) -> None:
    """After any change, the index answers like the files, whichever of the two was indexed first."""
    homes = Homes(tmp_path, turns=3, home="a")
    with homes.open(index=True) as archive:
        archive.refresh()
    _CHANGES[change](homes)
    answers = []
    for index in (True, False):
        with homes.open(index=index) as archive:
            rows = archive.sessions().sessions
            answers.append([(row.id, row.title, row.title_source, links(archive.session(str(row.id)))) for row in rows])
    assert answers[0] == answers[1]
    with homes.open(index=True) as archive:
        assert differences(content(archive.index), rebuilt_content(homes.paths[0], tmp_path)) == {}


def test_killed_refresh_is_continued(tmp_path: Path) -> None:
    """A refresh that was killed before summaries were resolved: the next question resolves them."""
    homes = Homes(tmp_path, turns=3, home="a")
    with homes.open(index=True) as archive:
        archive.refresh()
        with closing(sqlite3.connect(archive.index)) as connection:
            connection.execute("UPDATE meta SET value = '1' WHERE name = 'leaves_to'")
            connection.execute("UPDATE summary_rows SET is_new = 1")
            connection.execute("UPDATE session_rows SET title = 'old', title_source = 'first-prompt'")
            for table in ("leaf_rows", "summary_titles"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
            connection.commit()
    with homes.open(index=True) as archive:
        assert archive.titles([OLD]) == {OLD: TITLE}
        assert links(archive.session(OLD)) == [(NEW, True)]


def test_files_are_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading one session after another searches the transcripts of the home for summaries only once."""
    homes = Homes(tmp_path, home="a")
    searches: list[Transcript] = []

    def search(file: Transcript) -> tuple[SummaryRef, ...]:
        searches.append(file)
        return find_summaries(file)

    monkeypatch.setattr("threadline.parse.summaries.find_summaries", search)
    for _ in range(3):
        for path in (homes.old, homes.new):
            threadline.read(path)
    assert len(searches) == 2


def test_newer_sessions_are_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list whose sessions all have better titles does not search transcripts for summaries."""
    homes = Homes(tmp_path, home="a")
    for path in (homes.old, homes.new):
        _append(path, {"type": "ai-title", "aiTitle": "Better"})
    monkeypatch.setattr(TranscriptLinks, "summaries", property(lambda _self: pytest.fail("searched")))
    monkeypatch.setattr("threadline.parse.summaries.find_summaries", lambda _file: pytest.fail("searched"))
    with homes.open(index=False) as archive:
        assert [row.title for row in archive.sessions(SessionFilter(limit=1)).sessions] == ["Better"]


@pytest.mark.sample(1)
def test_damaged_summaries_are_found_in_linear_time(tmp_path: Path) -> None:
    """Four times as many damaged lines take at most about ten times as long."""

    def seconds(count: int) -> float:
        damaged = [
            f'{{"type":"summary","leafUuid":"{number}","summary":"torn'.encode() + b"\n" for number in range(count)
        ]
        path = write(tmp_path / f"{count}.jsonl", *damaged, summary("leaf"))
        start = process_time()
        assert [ref.leaf for ref in find_summaries(transcript_at(path))] == ["leaf"]
        return process_time() - start

    short = min(seconds(300) for _ in range(3))
    assert min(seconds(1_200) for _ in range(2)) < 10 * max(short, 0.002)
