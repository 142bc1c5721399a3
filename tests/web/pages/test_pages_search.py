"""Search, calls and files: what is found, and that links lead to it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

from tests import transcripts
from tests.web.pages.requests import ask, data, seen

import threadline
from threadline.archive import Archive
from threadline.model.hits import Hit
from threadline.model.places import Place
from threadline.web.pages.search import highlight_snippet


def test_search_finds_what_the_archive_finds(demo: Archive) -> None:
    """The same hits in the same order, each with a link to its entry."""
    hits = demo.search("the test", limit=20).hits
    page = ask(demo, "/search?q=the+test&tz=UTC")
    assert [one["place"]["line"] for one in data(page)["hits"]] == [hit.place.line for hit in hits]
    links = seen(demo, "/search?q=the+test").links
    for hit in hits:
        if hit.session and not hit.gone:
            anchor = f"{hit.agent}.L{hit.place.line}" if hit.agent else f"L{hit.place.line}"
            assert any(link.startswith(f"/session/{hit.session}") and link.endswith(f"#{anchor}") for link in links)


def test_words_that_were_asked_for_stand_out() -> None:
    """What is highlighted is marked, and nothing of the snippet is lost or run."""
    hit = Hit(Place("a.jsonl", 1), 1, None, None, "", "user", None, 1.0, "prompt", "a <b> c", ((2, 5),))
    assert [str(part) for part in highlight_snippet(hit)] == ["a ", "<mark>&lt;b&gt;</mark>", " c"]


def test_nothing_found_says_what_would_be(demo: Archive) -> None:
    """The sentence is the archive's own."""
    told = demo.why("zzzzqqqq since:2001-01-01")
    page = seen(demo, "/search?q=zzzzqqqq+since:2001-01-01&tz=UTC")
    assert " ".join(told.split()) in page.words


def test_a_query_that_cannot_be_understood_is_shown_with_its_fault(demo: Archive) -> None:
    """The box keeps what was typed, and the sentence stands below it."""
    page = ask(demo, "/search?q=%22open")
    told = data(page)
    assert told["error"]
    assert 'value="&#34;open"' in str(page.main)
    assert 'role="alert"' in str(page.main)


def test_calls_are_those_of_the_archive(demo: Archive) -> None:
    """Newest first, filtered by tool and outcome, each a link to its entry."""
    told = data(ask(demo, "/calls?limit=30"))["calls"]
    assert [one["call"]["id"] for one in told] == [call.id for call in demo.calls(limit=30)]
    failed = data(ask(demo, "/calls?outcome=error&limit=500"))["calls"]
    assert failed
    assert {one["call"]["outcome"] for one in failed} == {"error"}
    tool = failed[0]["call"]["tool"]
    some = data(ask(demo, f"/calls?tool={tool}&outcome=error&limit=500"))["calls"]
    assert [one["call"]["id"] for one in some] == [one["call"]["id"] for one in failed if one["call"]["tool"] == tool]


def test_a_file_tells_who_touched_it(demo: Archive) -> None:
    """Its page has each session and each time, and as many reads and writes as the list says."""
    listed = next(file for file in demo.files(limit=500) if file.writes and file.reads)
    told = data(ask(demo, f"/files?path={quote(listed.path)}"))
    assert {one["file"]["path"] for one in told["files"]} == {listed.path}
    how = [one["how"] for one in told["touches"]]
    assert sum(each in {"read", "attached"} for each in how) == sum(one["file"]["reads"] for one in told["files"])
    assert sum(each in {"write", "edit", "user-modified"} for each in how) == sum(
        one["file"]["writes"] for one in told["files"]
    )
    links = seen(demo, f"/files?path={quote(listed.path)}").links
    assert sum(bool(re.search(r"#([\w-]+\.)?L\d+$", link)) for link in links) == len(how)


def test_a_question_is_told_in_the_list(tmp_path: Path) -> None:
    """A call that asks a person something says what it asked."""
    asked = transcripts.call("AskUserQuestion", {"questions": [{"question": "Which colour?"}]}, "blue")
    rows = transcripts.transcript(transcripts.prompt("paint it"), asked)
    transcripts.write(tmp_path / "home/projects/-work" / f"{transcripts.SESSION}.jsonl", *rows)
    with Archive(threadline.open(tmp_path / "home").homes, stale_ok=True) as archive:
        page = seen(archive, "/calls")
    assert "Which colour?" in page.words
    assert "(nothing given)" not in page.words
