"""The search, calls and files pages: their content and their links."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

from tests import transcripts
from tests.thread.state_rows import write_call
from tests.web.pages.requests import NOW, ask, data, parse_page

import threadline
from threadline.archive import Archive
from threadline.model.hits import Hit
from threadline.model.places import Place
from threadline.web.pages.search import highlight_snippet


def test_search_finds_what_the_archive_finds(demo: Archive) -> None:
    """The page has the same hits in the same order, each with a link to its entry."""
    hits = demo.search("the test", limit=20, now=NOW).hits
    page = ask(demo, "/search?q=the+test&tz=UTC")
    assert [row["place"]["line"] for row in data(page)["hits"]] == [hit.place.line for hit in hits]
    links = parse_page(demo, "/search?q=the+test").links
    for hit in hits:
        if hit.session and not hit.gone:
            anchor = f"{hit.agent}.L{hit.place.line}" if hit.agent else f"L{hit.place.line}"
            assert any(link.startswith(f"/session/{hit.session}") and link.endswith(f"#{anchor}") for link in links)


def test_highlights_matches_in_a_snippet() -> None:
    """Matches are marked, and the rest of the snippet is kept and escaped."""
    hit = Hit(Place("a.jsonl", 1), 1, None, None, "", "user", None, 1.0, "prompt", "a <b> c", ((2, 5),))
    assert [str(part) for part in highlight_snippet(hit)] == ["a ", "<mark>&lt;b&gt;</mark>", " c"]


def test_an_empty_result_is_explained(demo: Archive) -> None:
    """The explanation is the archive's."""
    explanation = demo.explain_no_hits("zzzzqqqq since:2001-01-01")
    page = parse_page(demo, "/search?q=zzzzqqqq+since:2001-01-01&tz=UTC")
    assert " ".join(explanation.split()) in page.words


def test_shows_a_bad_query_with_its_error(demo: Archive) -> None:
    """The box keeps the query, and the error is shown, with the status that other pages have for bad values."""
    page = ask(demo, "/search?q=%22open")
    assert page.status == 400
    assert data(page)["error"]
    assert 'value="&#34;open"' in str(page.main)
    assert 'role="alert"' in str(page.main)


def test_calls_equal_the_archives(demo: Archive) -> None:
    """Calls are listed newest first, and filtered by tool and outcome."""
    rows = data(ask(demo, "/calls?limit=30"))["calls"]
    assert [row["call"] for row in rows] == [call.id for call in demo.calls(limit=30)]
    failed = data(ask(demo, "/calls?outcome=error&limit=500"))["calls"]
    assert failed
    assert {row["outcome"] for row in failed} == {"error"}
    tool = failed[0]["tool"]
    filtered = data(ask(demo, f"/calls?tool={tool}&outcome=error&limit=500"))["calls"]
    assert [row["call"] for row in filtered] == [row["call"] for row in failed if row["tool"] == tool]


def test_a_files_page_lists_every_touch(demo: Archive) -> None:
    """The page of a file has as many reads and writes as the list says, each with a link."""
    listed = next(file for file in demo.files(limit=500) if file.writes and file.reads)
    answer = data(ask(demo, f"/files?path={quote(listed.path)}"))
    assert {row["file"]["path"] for row in answer["files"]} == {listed.path}
    kinds = [touch["how"] for touch in answer["touches"]]
    assert sum(kind in {"read", "attached"} for kind in kinds) == sum(row["file"]["reads"] for row in answer["files"])
    assert sum(kind in {"write", "edit", "user-modified"} for kind in kinds) == sum(
        row["file"]["writes"] for row in answer["files"]
    )
    links = parse_page(demo, f"/files?path={quote(listed.path)}").links
    assert sum(bool(re.search(r"#([\w-]+\.)?L\d+$", link)) for link in links) == len(kinds)


def test_the_history_of_a_file_shows_every_edit(demo: Archive) -> None:
    """The page has the archive's edits as diffs, each with links to its entry and session, in parts."""
    listed = next(file for file in demo.files(limit=500) if file.writes)
    edits = demo.file_log(listed.path)
    url = f"/files/log?path={quote(listed.path)}"
    rows = data(ask(demo, f"{url}&limit=500"))["edits"]
    assert [(row["edit"]["call"], row["edit"]["diff"]) for row in rows] == [(edit.call, edit.diff) for edit in edits]
    page = parse_page(demo, f"{url}&limit=500")
    assert sum(bool(re.search(r"#([\w-]+\.)?L\d+$", link)) for link in page.links) == len(edits)
    assert any(link.startswith("/files/log?") for link in parse_page(demo, f"/files?path={quote(listed.path)}").links)
    first = data(ask(demo, f"{url}&limit=1"))
    assert (len(first["edits"]), first["more"]) == (1, len(edits) > 1)


def test_the_history_of_a_file_is_safe(tmp_path: Path) -> None:
    """Markup in paths, prompts, texts and models is shown as text."""
    evil = "<script>alert(1)</script><b>"
    path = f"/work/{evil}.py"
    rows = transcripts.transcript(transcripts.prompt(evil), write_call(path, f"{evil}\n"))
    transcripts.write(tmp_path / "home/projects/-work" / f"{transcripts.SESSION}.jsonl", *rows)
    with Archive(threadline.open(tmp_path / "home").homes, stale_ok=True) as archive:
        page = parse_page(archive, f"/files/log?path={quote(path)}")
    assert {"script", "b"}.isdisjoint(page.names)
    assert page.words.count("alert(1)") >= 3


def test_the_list_shows_the_question_of_a_call(tmp_path: Path) -> None:
    """A call that asks the user something shows its question."""
    question = transcripts.call("AskUserQuestion", {"questions": [{"question": "Which colour?"}]}, "blue")
    rows = transcripts.transcript(transcripts.prompt("paint it"), question)
    transcripts.write(tmp_path / "home/projects/-work" / f"{transcripts.SESSION}.jsonl", *rows)
    with Archive(threadline.open(tmp_path / "home").homes, stale_ok=True) as archive:
        page = parse_page(archive, "/calls")
    assert "Which colour?" in page.words
    assert "(nothing given)" not in page.words
