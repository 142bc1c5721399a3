"""The vocabulary has every word that full text has, however it came to be, and finds it by any part."""

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
from threadline.index import FIELDS, Vocabulary, normalize_text, open_read_only, refresh_index, tokenize, vocabulary
from threadline.index.vocabulary import TOKENIZER, VOCABULARY, VocabularyWriter, rebuild_vocabulary

SAID = ["parseTimestamp decode", "Café ENCODE 数据库 decoder", "E404 \U0001d400 ГОРОД decoding", "encoded a1b2c3"]
MANY = 1000


@pytest.fixture
def index() -> Iterator[sqlite3.Connection]:
    """Full text without rows, and what belongs to it."""
    with closing(_made()) as made:
        yield made


def _made() -> sqlite3.Connection:
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.execute("CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    made.execute("INSERT INTO meta VALUES('next_entry', '1')")
    made.execute(VOCABULARY.tables["terms"])
    made.execute(f"CREATE VIRTUAL TABLE text USING fts5({', '.join(FIELDS)}, content='', tokenize='{TOKENIZER}')")
    return made


def _say(index: sqlite3.Connection, noting: VocabularyWriter, *texts: str) -> None:
    """Write entries as a refresh does."""
    index.execute("BEGIN IMMEDIATE")
    (number,) = index.execute("SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'next_entry'").fetchone()
    for at, text in enumerate(texts):
        index.execute("INSERT INTO text(rowid, prompt) VALUES(?, ?)", (number + at, normalize_text(text)))
    noting.add([None, normalize_text(text)] for text in texts)
    noting.commit(number + len(texts))
    index.execute("UPDATE meta SET value = ? WHERE name = 'next_entry'", (str(number + len(texts)),))
    index.execute("COMMIT")


def _words(texts: list[str]) -> set[str]:
    return {word for text in texts for word in tokenize(normalize_text(text))}


def test_words_are_found_by_any_part(index: sqlite3.Connection) -> None:
    """In the middle, at the end, as a whole; without case and accents."""
    noting = VocabularyWriter(index)
    _say(index, noting, *SAID)
    with noting.finishing(None):
        pass
    words = Vocabulary(index)
    assert words.is_whole
    assert words.containing("cod", MANY) == ["decode", "decoder", "decoding", "encode", "encoded"]
    assert words.containing("code", MANY, ends=True) == ["decode", "encode"]
    assert words.containing("afe", MANY) == ["cafe"]
    assert words.containing("据", MANY) == ["据"]
    assert words.containing("zzz", MANY) == []
    assert sorted(words.beginning("dec")) == ["decode", "decoder", "decoding"]
    assert list(words.beginning("zzz")) == []


def test_too_many_words_are_none(index: sqlite3.Connection) -> None:
    """They would narrow nothing."""
    noting = VocabularyWriter(index)
    _say(index, noting, *SAID)
    with noting.finishing(None):
        pass
    words = Vocabulary(index)
    assert words.containing("cod", 5) is not None
    assert words.containing("cod", 4) is None


def test_a_word_that_is_cut_off_may_be_any(index: sqlite3.Connection) -> None:
    """Full text keeps the beginning of a very long word: what stood behind is not known."""
    noting = VocabularyWriter(index)
    _say(index, noting, "a" * 40_000 + "needle", "needle", "straw")
    with noting.finishing(None):
        pass
    found = Vocabulary(index).containing("eedl", MANY)
    assert found is not None
    assert [len(one) for one in found] == [32_768, 6]


@given(
    st.lists(st.lists(st.text(max_size=12) | st.sampled_from(SAID), max_size=4), max_size=12),
    st.text("aeocd据", min_size=1, max_size=3),
    st.sampled_from([1, 40, 10**6]),
)
def test_whatever_is_said_is_known(refreshes: list[list[str]], part: str, run: int) -> None:
    """After any number of refreshes, each of which writes some entries, with runs of any length: no word is missing."""
    with pytest.MonkeyPatch.context() as patch, closing(_made()) as index:
        patch.setattr(vocabulary, "_RUN_BYTES", run)
        patch.setattr(vocabulary, "_REBUILD_SHARE", 0.5)
        said: list[str] = []
        for texts in refreshes:
            noting = VocabularyWriter(index)
            _say(index, noting, *texts)
            with noting.finishing(None):
                pass
            said += texts
        words = Vocabulary(index)
        assert words.is_whole or not refreshes
        found = words.containing(part, 10**6)
        assert found == sorted(word for word in _words(said) if part in word)
        assert set(words.beginning(part)) == {word for word in _words(said) if word.startswith(part)}


def test_small_refreshes_leave_few_runs(index: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred of them are merged as they come, and full text is not asked for all words again."""
    _say(index, VocabularyWriter(index), *SAID)
    rebuild_vocabulary(index)
    monkeypatch.setattr(vocabulary, "_REBUILD_SHARE", 0)
    monkeypatch.setattr(vocabulary, "rebuild_vocabulary", _never)
    for number in range(100):
        noting = VocabularyWriter(index)
        _say(index, noting, f"word{number}")
        with noting.finishing(None):
            pass
    words = Vocabulary(index)
    assert len(words.containing("ord", MANY) or ()) == 101 - 1
    assert index.execute("SELECT COUNT(*) FROM terms").fetchone()[0] <= 8


def _never(*_: object) -> None:
    raise AssertionError("all words were asked for again")


def test_a_refresh_that_was_killed_leaves_no_half_vocabulary(index: sqlite3.Connection) -> None:
    """What was committed without its words is told by `is_whole`, and made good by the next refresh."""
    _say(index, VocabularyWriter(index), *SAID)  # too much to be taken apart, and killed before the end
    assert not Vocabulary(index).is_whole
    noting = VocabularyWriter(index)
    _say(index, noting, "one more")
    assert not Vocabulary(index).is_whole
    with noting.finishing(None):
        pass
    words = Vocabulary(index)
    assert words.is_whole
    assert set(words.containing("o", MANY) or ()) >= {"one", "more", "decode"}


def test_a_refresh_keeps_it(tmp_path: Path) -> None:
    """After a first one, after lines were appended, and after a transcript is gone."""
    home, path = tmp_path / "home", tmp_path / "index.sqlite"
    file = home / "projects" / "-work-app" / f"{Pen().session}.jsonl"
    lines = transcript(prompt("first needle"), *(reply(f"straw {number}") for number in range(60)), prompt("haystack"))
    write(file, *lines[:-1])
    refresh_index(path, homes(home), jobs=1)
    assert _knows(path) == {"needle": True, "haystack": False}
    write(file, *lines)
    refresh_index(path, homes(home), jobs=1)
    assert _knows(path) == {"needle": True, "haystack": True}
    file.unlink()
    refresh_index(path, homes(home), jobs=1)
    with closing(open_read_only(path)) as connection:
        assert Vocabulary(connection).is_whole


def _knows(path: Path) -> dict[str, bool]:
    with closing(open_read_only(path)) as connection:
        words = Vocabulary(connection)
        assert words.is_whole
        return {word: bool(words.containing(word[1:-1], MANY)) for word in ("needle", "haystack")}
