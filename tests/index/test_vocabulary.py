"""The vocabulary has every word of the full text, however it was written, and finds it by any part."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transcripts import Pen, prompt, reply, transcript, write

from threadline.find import homes
from threadline.index import FIELDS, Index, Vocabulary, normalize_text, refresh_index, tokenize, vocabulary
from threadline.index.store import write_lock
from threadline.index.vocabulary import TOKENIZER, VOCABULARY, VocabularyWriter, collect_runs, rebuild_vocabulary

TEXTS = ["parseTimestamp decode", "Café ENCODE 数据库 decoder", "E404 \U0001d400 ГОРОД decoding", "encoded a1b2c3"]
LIMIT = 1000


@pytest.fixture
def index() -> Iterator[sqlite3.Connection]:
    """An empty full-text table with its vocabulary."""
    with closing(_create()) as connection:
        yield connection


def _create() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    connection.execute("INSERT INTO meta VALUES('next_entry', '1')")
    connection.execute(VOCABULARY.tables["terms"])
    connection.execute(f"CREATE VIRTUAL TABLE text USING fts5({', '.join(FIELDS)}, content='', tokenize='{TOKENIZER}')")
    return connection


def _write(index: sqlite3.Connection, writer: VocabularyWriter, *texts: str) -> None:
    """Write entries like a refresh."""
    index.execute("BEGIN IMMEDIATE")
    (number,) = index.execute("SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'next_entry'").fetchone()
    for at, text in enumerate(texts):
        index.execute("INSERT INTO text(rowid, prompt) VALUES(?, ?)", (number + at, normalize_text(text)))
    writer.add([None, normalize_text(text)] for text in texts)
    writer.commit(number + len(texts))
    index.execute("UPDATE meta SET value = ? WHERE name = 'next_entry'", (str(number + len(texts)),))
    index.execute("COMMIT")


def _vocabulary(index: sqlite3.Connection) -> Vocabulary:
    """The vocabulary as it is stored: without a path, it cannot be completed."""
    return Vocabulary(index, Path("missing"))


def _words(texts: list[str]) -> set[str]:
    return {word for text in texts for word in tokenize(normalize_text(text))}


def test_finds_words_by_any_part(index: sqlite3.Connection) -> None:
    """In the middle, at the end or complete, ignoring case and accents."""
    writer = VocabularyWriter(index)
    _write(index, writer, *TEXTS)
    rebuild_vocabulary(index)
    words = _vocabulary(index)
    assert words.is_whole
    assert words.containing("cod", LIMIT) == ["decode", "decoder", "decoding", "encode", "encoded"]
    assert words.containing("code", LIMIT, ends=True) == ["decode", "encode"]
    assert words.containing("afe", LIMIT) == ["cafe"]
    assert words.containing("据", LIMIT) == ["据"]
    assert words.containing("zzz", LIMIT) == []
    assert sorted(words.beginning("dec")) == ["decode", "decoder", "decoding"]
    assert list(words.beginning("zzz")) == []


def test_returns_none_for_too_many_words(index: sqlite3.Connection) -> None:
    """They would not narrow a search."""
    writer = VocabularyWriter(index)
    _write(index, writer, *TEXTS)
    rebuild_vocabulary(index)
    words = _vocabulary(index)
    assert words.containing("cod", 5) is not None
    assert words.containing("cod", 4) is None


def test_a_truncated_word_always_matches(index: sqlite3.Connection) -> None:
    """Full text keeps only the beginning of a very long word, so the rest of it is unknown."""
    writer = VocabularyWriter(index)
    _write(index, writer, "a" * 40_000 + "needle", "needle", "straw")
    rebuild_vocabulary(index)
    words = _vocabulary(index).containing("eedl", LIMIT)
    assert words is not None
    assert [len(word) for word in words] == [32_768, 6]


@given(
    st.lists(
        st.tuples(st.lists(st.text(max_size=12) | st.sampled_from(TEXTS), max_size=4), st.booleans()), max_size=12
    ),
    st.text("aeocd据", min_size=1, max_size=3),
    st.sampled_from([1, 40, 10**6]),
)
def test_no_word_is_missing_after_any_refreshes(refreshes: list[tuple[list[str], bool]], part: str, run: int) -> None:
    """After any number of refreshes with any entries, with or without a question between them, and with any runs."""
    with pytest.MonkeyPatch.context() as patch, closing(_create()) as index:
        patch.setattr(vocabulary, "_RUN_BYTES", run)
        patch.setattr(vocabulary, "_REBUILD_SHARE", 0.5)
        all_texts: list[str] = []
        for texts, is_asked in refreshes:
            _write(index, VocabularyWriter(index), *texts)
            if is_asked and not _vocabulary(index).is_whole:
                rebuild_vocabulary(index)
            all_texts += texts
        words = _vocabulary(index)
        if not words.is_whole:
            rebuild_vocabulary(index)
        matches = words.containing(part, 10**6)
        assert matches == sorted(word for word in _words(all_texts) if part in word)
        assert set(words.beginning(part)) == {word for word in _words(all_texts) if word.startswith(part)}


def test_small_refreshes_leave_few_runs(index: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred runs are merged as they come, and no word has to be collected from full text."""
    _write(index, VocabularyWriter(index), *TEXTS)
    rebuild_vocabulary(index)
    monkeypatch.setattr(vocabulary, "_REBUILD_SHARE", 0)
    for number in range(100):
        _write(index, VocabularyWriter(index), f"word{number}")
    words = _vocabulary(index)
    assert words.is_whole
    assert len(words.containing("ord", LIMIT) or ()) == 101 - 1
    assert index.execute("SELECT COUNT(*) FROM terms").fetchone()[0] <= 8


def test_many_new_entries_leave_the_vocabulary_incomplete(index: sqlite3.Connection) -> None:
    """Refreshes after that do not complete it: the next question does."""
    _write(index, VocabularyWriter(index), *TEXTS)
    assert not _vocabulary(index).is_whole
    _write(index, VocabularyWriter(index), "one more")
    assert not _vocabulary(index).is_whole
    rebuild_vocabulary(index)
    assert _vocabulary(index).is_whole
    assert set(_vocabulary(index).containing("o", LIMIT) or ()) >= {"one", "more", "decode"}


def test_the_first_question_completes_the_vocabulary(tmp_path: Path) -> None:
    """And later refreshes update it, when lines were appended and when a transcript was deleted."""
    home, path = tmp_path / "home", tmp_path / "index.sqlite"
    file = home / "projects" / "-work-app" / f"{Pen().session}.jsonl"
    lines = transcript(prompt("first needle"), *(reply(f"straw {number}") for number in range(60)), prompt("haystack"))
    write(file, *lines[:-1])
    refresh_index(path, homes(home), jobs=1)
    assert not _is_stored(path)
    assert _has_words(path) == {"needle": True, "haystack": False}
    assert _is_stored(path)
    write(file, *lines)
    refresh_index(path, homes(home), jobs=1)
    assert _is_stored(path)
    assert _has_words(path) == {"needle": True, "haystack": True}
    file.unlink()
    refresh_index(path, homes(home), jobs=1)
    assert _is_stored(path)
    assert _has_words(path) == {"needle": False, "haystack": False}


def test_a_question_while_the_index_is_written_finds_all_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words are collected, but not stored, and nobody waits for the writer. The next question stores them."""
    home, path = tmp_path / "home", tmp_path / "index.sqlite"
    write(home / "projects" / "-work-app" / f"{Pen().session}.jsonl", *transcript(prompt("needle")))
    refresh_index(path, homes(home), jobs=1)
    waits: list[float] = []
    monkeypatch.setattr("threadline.locks.sleep", waits.append)
    with write_lock(path):
        assert _has_words(path) == {"needle": True, "haystack": False}
    assert not _is_stored(path)
    assert waits == []
    assert _has_words(path) == {"needle": True, "haystack": False}
    assert _is_stored(path)


def test_words_of_another_state_are_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a refresh ends while words are collected, the vocabulary stays incomplete: words may be missing."""
    home, path = tmp_path / "home", tmp_path / "index.sqlite"
    file = home / "projects" / "-work-app" / f"{Pen().session}.jsonl"
    lines = transcript(prompt("needle"), prompt("haystack"))
    write(file, *lines[:1])
    refresh_index(path, homes(home), jobs=1)

    def collect_and_refresh(connection: sqlite3.Connection) -> list[bytes]:
        runs = list(collect_runs(connection))
        write(file, *lines)
        refresh_index(path, homes(home), jobs=1)
        return runs

    monkeypatch.setattr(vocabulary, "collect_runs", collect_and_refresh)
    _has_words(path)
    assert not _is_stored(path)
    monkeypatch.undo()
    assert _has_words(path) == {"needle": True, "haystack": True}


def _is_stored(path: Path) -> bool:
    with Index.open(path) as index:
        return index.vocabulary.is_whole


def _has_words(path: Path) -> dict[str, bool]:
    with Index.open(path) as index:
        return {word: bool(index.vocabulary.containing(word[1:-1], LIMIT)) for word in ("needle", "haystack")}
