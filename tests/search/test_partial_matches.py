"""Pages include sessions that contain the words in several entries, and say which words an entry lacks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.search.indexed_home import FIRST, SECOND, Archive, scan_places, search_places
from tests.transcripts import Pen, call, meta, prompt, reply

from threadline.search import search
from threadline.search.query import word_forms

NOW = datetime(2026, 1, 6, tzinfo=UTC)
THIRD = "5e551033-0000-4000-8000-000000000003"


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Two sessions: one discusses a leak in three entries, and a tool in the other prints the same words."""
    archive = Archive(tmp_path)
    archive.write(
        prompt("the process grows until it is killed, find the leak"),
        reply("a listener is never removed, so the memory stays in use"),
        meta("ai-title", aiTitle="The API server grows"),
    )
    output = " ".join(f"line {number}" for number in range(400))
    archive.write(call("Bash", "cat log", result=f"memory {output} leak {output} server"), session=SECOND)
    return archive


def test_ranks_a_session_about_the_topic_before_a_log(archive: Archive) -> None:
    """The log contains all three words. The session has one each in its title, prompt and reply, and ranks first."""
    with archive.opened() as index:
        hits = search(index, "memory leak server", now=NOW, near=True)
    assert [hit.session for hit in hits.hits] == [FIRST, SECOND]
    assert len(hits.hits[0].lacks) == 2
    assert hits.hits[1].lacks == ()
    assert (hits.total, hits.near) == (1, False)
    assert hits.note is not None


def test_without_near_all_words_must_be_in_one_entry(archive: Archive) -> None:
    """A program gets only exact results."""
    with archive.opened() as index:
        hits = search(index, "memory leak server", now=NOW)
    assert [(hit.session, hit.lacks) for hit in hits.hits] == [(SECOND, ())]
    assert hits.note is None


@pytest.mark.parametrize("more", [{"every": True}, {"sort": "time"}, {"limit": None}])
def test_partial_matches_are_left_out_of_complete_lists(archive: Archive, more: dict[str, object]) -> None:
    """Requests for all hits, or hits by time, return only entries that contain all words."""
    with archive.opened() as index:
        hits = search(index, "memory leak server", now=NOW, near=True, **more)  # type: ignore[arg-type]
    assert [hit.session for hit in hits.hits] == [SECOND]


def test_ignores_stop_words_of_questions(archive: Archive) -> None:
    """No entry contains `why did the`, and nobody expects that."""
    with archive.opened() as index:
        hits = search(index, "why did the listener leak", now=NOW, near=True)
    assert hits.hits[0].session == FIRST
    assert hits.near
    assert hits.note is not None


def test_finds_other_forms_of_a_word(archive: Archive) -> None:
    """`leaking listeners` finds a leak and a listener."""
    with archive.opened() as index:
        hits = search(index, "leaking listeners removing", now=NOW, near=True)
    assert hits.hits[0].session == FIRST
    assert hits.near
    assert hits.hits[0].highlights


@pytest.mark.parametrize(
    ("word", "form"),
    [
        ("leak", "leaks"),
        ("crashes", "crash"),
        ("charged", "charge"),
        ("stopped", "stop"),
        ("stop", "stopping"),
        ("queries", "query"),
        ("query", "queries"),
        ("running", "runs"),
    ],
)
def test_word_forms(word: str, form: str) -> None:
    """Endings are added and removed, with doubled letters."""
    assert form in word_forms(word)
    assert word not in word_forms(word)


@pytest.mark.parametrize("word", ["src/app.py", "E404", "naïve", "数据库", "log", "a_b"])
def test_only_plain_words_have_forms(word: str) -> None:
    """Codes, paths, names and other languages have no forms."""
    assert word_forms(word) == ()


def test_filters_apply_to_partial_matches(archive: Archive) -> None:
    """Words of another project do not count."""
    pen = Pen(THIRD, start=NOW, cwd="/srv/shop")
    archive.write(prompt("memory"), reply("the leak"), session=THIRD, project="-srv-shop", pen=pen)
    with archive.opened() as index:
        shop = search(index, "memory leak server project:shop", now=NOW, near=True)
        never = search(index, "memory leak server project:shop until:2025-01-01", now=NOW, near=True)
        bash = search(index, "memory listener tool:Bash", now=NOW, near=True)
    assert {hit.session for hit in shop.hits} == {THIRD}
    assert never.hits == ()
    assert {hit.session for hit in bash.hits} <= {SECOND}


def test_partial_matches_include_copies_once(archive: Archive) -> None:
    """A session that continues in another file repeats its entries. They are shown once."""
    original = archive.home / "projects" / "-work-app" / f"{FIRST}.jsonl"
    copy = original.with_name(f"{THIRD}.jsonl")
    copy.write_bytes(original.read_bytes().replace(FIRST.encode(), THIRD.encode()))
    with archive.opened() as index:
        hits = search(index, "listener killed", now=NOW, near=True)
    assert len(hits.hits) == 1


def test_finds_names_in_any_notation(archive: Archive) -> None:
    """As several words or as one, and a scan agrees."""
    archive.write(reply("verifyOauthState compares it"), reply("use verify_oauth_state"), session=THIRD)
    queries = ["verify_oauth_state", "verifyOauthState", "verify-oauth-state", "verify oauth state", "verify_oauth*"]
    with archive.opened() as index:
        assert {text: search_places(index, text) for text in queries} == {
            text: scan_places(index, text) for text in queries
        }
        assert len(search_places(index, "verify_oauth_state")) == 2
        assert len(search_places(index, '"verify_oauth_state"')) == 1


def test_corrects_a_misspelt_part_of_a_name(archive: Archive) -> None:
    """The rest of the name is kept as typed."""
    archive.write(reply("verify_webhook_signature is wrong"), session=THIRD)
    with archive.opened() as index:
        hits = search(index, "verify_webhook_signatre", now=NOW, near=True)
    assert [hit.session for hit in hits.hits] == [THIRD]
    assert hits.note == "No entry contains 'verify_webhook_signatre'; did you mean 'verify_webhook_signature'?"


def test_distant_words_are_not_corrections(archive: Archive) -> None:
    """`kilometre` is too different from `killed` to be a misspelling of it."""
    with archive.opened() as index:
        assert search(index, "kilometre", now=NOW, near=True).hits == ()


def test_backslashes_separate_path_components(archive: Archive) -> None:
    """Like slashes, wherever the path comes from."""
    archive.write(call("Read", "/work/app/src/store/names.py", result="x"), session=THIRD)
    with archive.opened() as index:
        assert search_places(index, r"src\store\names.py") == search_places(index, "src/store/names.py") != set()


@pytest.mark.parametrize(("query", "text"), [("redesign", "redesigning"), ("leaks", "leaking"), ("query", "queries")])
def test_highlights_another_form_of_a_word(tmp_path: Path, query: str, text: str) -> None:
    """The snippet shows the words around the matching form, not the start of the text."""
    archive = Archive(tmp_path)
    archive.write(prompt("anchor"), reply("word " * 100 + f"we are {text} the pier"))
    with archive.opened() as index:
        (hit,) = search(index, f"{query} pier", now=NOW, near=True).hits
    highlighted = [hit.snippet[start:end] for start, end in hit.highlights]
    assert text in highlighted
    assert "pier" in highlighted


def test_note_names_the_spelling_of_words_in_separate_entries(archive: Archive) -> None:
    """If misspelled words are in separate entries only, the note says both."""
    with archive.opened() as index:
        hits = search(index, "kiled listner", now=NOW, near=True, sort="time")
    assert {hit.session for hit in hits.hits} == {FIRST}
    assert hits.note is not None
    assert "did you mean 'killed'?" in hits.note
    assert "these contain some" in hits.note
