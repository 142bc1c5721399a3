"""A page shows sessions that say it in several entries, and says which words an entry has not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.search.indexed_home import FIRST, SECOND, Archive, found, scanned
from tests.transcripts import Pen, call, meta, prompt, reply

from threadline.search import search
from threadline.search.query import word_forms

NOW = datetime(2026, 1, 6, tzinfo=UTC)
THIRD = "5e551033-0000-4000-8000-000000000003"


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Two sessions: one is about a leak and says so in three entries, in the other a tool prints the same words."""
    archive = Archive(tmp_path)
    archive.write(
        prompt("the process grows until it is killed, find the leak"),
        reply("a listener is never removed, so the memory stays in use"),
        meta("ai-title", aiTitle="The API server grows"),
    )
    printed = " ".join(f"line {number}" for number in range(400))
    archive.write(call("Bash", "cat log", result=f"memory {printed} leak {printed} server"), session=SECOND)
    return archive


def test_a_session_that_is_about_it_comes_before_a_log(archive: Archive) -> None:
    """All three words stand in the log, and in the session's title, prompt and reply one each: that one was meant."""
    with archive.opened() as index:
        hits = search(index, "memory leak server", now=NOW, near=True)
    assert [hit.session for hit in hits.hits] == [FIRST, SECOND]
    assert len(hits.hits[0].lacks) == 2
    assert hits.hits[1].lacks == ()
    assert (hits.total, hits.near) == (1, False)
    assert hits.note is not None


def test_without_near_all_words_stand_in_one_entry(archive: Archive) -> None:
    """A program gets what it asked for, and nothing like it."""
    with archive.opened() as index:
        hits = search(index, "memory leak server", now=NOW)
    assert [(hit.session, hit.lacks) for hit in hits.hits] == [(SECOND, ())]
    assert hits.note is None


@pytest.mark.parametrize("more", [{"every": True}, {"sort": "time"}, {"limit": None}])
def test_who_asks_for_every_entry_gets_those_that_match(archive: Archive, more: dict[str, object]) -> None:
    """All of them, or by time: only what has all words."""
    with archive.opened() as index:
        hits = search(index, "memory leak server", now=NOW, near=True, **more)  # type: ignore[arg-type]
    assert [hit.session for hit in hits.hits] == [SECOND]


def test_questions_are_asked_without_their_empty_words(archive: Archive) -> None:
    """`why did the` is in no entry, and nobody wants it to be."""
    with archive.opened() as index:
        hits = search(index, "why did the listener leak", now=NOW, near=True)
    assert hits.hits[0].session == FIRST
    assert hits.near
    assert hits.note is not None


def test_other_forms_of_a_word_are_found(archive: Archive) -> None:
    """Who remembers `leaking listeners` finds a leak and a listener."""
    with archive.opened() as index:
        hits = search(index, "leaking listeners removing", now=NOW, near=True)
    assert hits.hits[0].session == FIRST
    assert hits.near
    assert hits.hits[0].highlights


@pytest.mark.parametrize(
    ("word", "has"),
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
def test_forms_of_words(word: str, has: str) -> None:
    """Endings come and go, doubled letters with them."""
    assert has in word_forms(word)
    assert word not in word_forms(word)


@pytest.mark.parametrize("word", ["src/app.py", "E404", "naïve", "数据库", "log", "a_b"])
def test_what_is_no_plain_word_has_no_forms(word: str) -> None:
    """Codes, paths, names and other languages stay as they are."""
    assert word_forms(word) == ()


def test_filters_hold_for_scattered_words_too(archive: Archive) -> None:
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


def test_copies_are_one_hit_here_too(archive: Archive) -> None:
    """A session that goes on in another file repeats its entries: they are shown once."""
    original = archive.home / "projects" / "-work-app" / f"{FIRST}.jsonl"
    copy = original.with_name(f"{THIRD}.jsonl")
    copy.write_bytes(original.read_bytes().replace(FIRST.encode(), THIRD.encode()))
    with archive.opened() as index:
        hits = search(index, "listener killed", now=NOW, near=True)
    assert len(hits.hits) == 1


def test_names_are_found_however_they_are_written(archive: Archive) -> None:
    """Of several words or of one, and a scan agrees."""
    archive.write(reply("verifyOauthState compares it"), reply("use verify_oauth_state"), session=THIRD)
    asked = ["verify_oauth_state", "verifyOauthState", "verify-oauth-state", "verify oauth state", "verify_oauth*"]
    with archive.opened() as index:
        assert {text: found(index, text) for text in asked} == {text: scanned(index, text) for text in asked}
        assert len(found(index, "verify_oauth_state")) == 2
        assert len(found(index, '"verify_oauth_state"')) == 1


def test_a_misspelt_part_of_a_name(archive: Archive) -> None:
    """The rest of the name stays as it was typed."""
    archive.write(reply("verify_webhook_signature is wrong"), session=THIRD)
    with archive.opened() as index:
        hits = search(index, "verify_webhook_signatre", now=NOW, near=True)
    assert [hit.session for hit in hits.hits] == [THIRD]
    assert hits.note == "No entry contains 'verify_webhook_signatre'; did you mean 'verify_webhook_signature'?"


def test_what_is_only_a_little_like_a_word_is_no_misspelling(archive: Archive) -> None:
    """`killed` is not `killer` with three letters changed: `kilometre` stays what it is."""
    with archive.opened() as index:
        assert search(index, "kilometre", now=NOW, near=True).hits == ()


def test_backslashes_divide_a_path(archive: Archive) -> None:
    """As slashes do, wherever the path comes from."""
    archive.write(call("Read", "/work/app/src/store/names.py", result="x"), session=THIRD)
    with archive.opened() as index:
        assert found(index, r"src\store\names.py") == found(index, "src/store/names.py") != set()


@pytest.mark.parametrize(("asked", "said"), [("redesign", "redesigning"), ("leaks", "leaking"), ("query", "queries")])
def test_another_form_is_marked_where_it_stands(tmp_path: Path, asked: str, said: str) -> None:
    """Not the beginning of what was said, but the words around the form that was found."""
    archive = Archive(tmp_path)
    archive.write(prompt("anchor"), reply("word " * 100 + f"we are {said} the pier"))
    with archive.opened() as index:
        (hit,) = search(index, f"{asked} pier", now=NOW, near=True).hits
    marked = [hit.snippet[start:end] for start, end in hit.highlights]
    assert said in marked
    assert "pier" in marked
