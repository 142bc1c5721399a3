"""Tokenize text as SQLite's full-text search does, and keep a list of every word in the index.

Full-text search finds words by their beginning only. The vocabulary finds words by any part of them, for regular
expressions and spelling suggestions. The first question that needs it makes it, and later refreshes add their words.
Words of deleted entries may remain; while `is_whole` holds, no word is missing.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import cache
from itertools import chain
from pathlib import Path
from unicodedata import normalize

from msgspec import Struct

from threadline.errors import IndexBusy, Unreadable
from threadline.index.store import open_for_writing, open_read_only, read_generation


class TableGroup(Struct, frozen=True):
    """Tables that belong together.

    `tables` and `views` map a name to the statement that creates it; a comment behind a column says what it means.
    `indexes` are created after them, and `late_indexes` after the first rows: sorting all rows once is faster, and
    nothing looks them up before. `of_transcript` are the tables whose rows are deleted, by `transcript_id` and in
    this order, when their transcript is read again or is gone. `of_entries` are those whose rows are deleted before
    that, by `entry_id`. `private` are those that only the refresh needs: they are documented, and may change without
    notice.
    """

    tables: dict[str, str] = {}
    views: dict[str, str] = {}
    indexes: tuple[str, ...] = ()
    late_indexes: tuple[str, ...] = ()
    of_transcript: tuple[str, ...] = ()
    of_entries: tuple[str, ...] = ()
    private: tuple[str, ...] = ()


VOCABULARY = TableGroup(
    tables={
        "terms": """CREATE TABLE terms(
        run INTEGER PRIMARY KEY, -- the number of a run of words
        words BLOB NOT NULL -- the words in order, each with a line break before and after it
    )""",
    },
    private=("terms",),
)

_RUN_BYTES = 1024 * 1024
_WORDS_PER_QUERY = 50_000
# If more than this share of the texts is new, collecting all words from the full-text index is faster than tokenizing.
_REBUILD_SHARE = 12
# The full-text index cuts off longer words: what followed may be anything.
_MAX_WORD_BYTES = 32_000
# A word that was cut off may end in the middle of a character, so words are passed as bytes.
_SELECT_WORDS = """SELECT CAST(group_concat(term, char(10)) AS BLOB)
    FROM (SELECT term FROM temp.all_words WHERE term > CAST(? AS TEXT) LIMIT ?)"""
_SELECT_COVERED = "SELECT name, CAST(value AS INTEGER) FROM meta WHERE name IN ('next_entry', 'terms_to')"


def _is_whole(connection: sqlite3.Connection) -> bool:
    numbers: dict[str, int] = dict(connection.execute(_SELECT_COVERED).fetchall())
    return numbers.get("terms_to", -1) == numbers.get("next_entry")


class Vocabulary:
    """Finds words of the index at a path. If what it stores is not whole, the first question completes it."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._runs: list[bytes] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the index stores every word."""
        return _is_whole(self._connection)

    def _read(self) -> list[bytes]:
        if self._runs is None:
            if self.is_whole:
                self._runs = [words for (words,) in self._connection.execute("SELECT words FROM terms")]
            else:
                self._runs = _complete(self._path)
        return self._runs

    def containing(self, part: str, most: int, *, ends: bool = False) -> list[str] | None:
        """The words that contain a part, or with `ends` end with it; None if there are more than `most`.

        Words that were cut off are always among them, because they may have gone on with anything.
        """
        needle = part.encode() + (b"\n" if ends else b"")
        words: set[bytes] = set()
        for run in self._read():
            for word in chain(_truncated_words(run), _lines_containing(run, needle)):
                words.add(word)
                if len(words) > most:
                    return None
        return sorted(word.decode(errors="ignore") for word in words)

    def beginning(self, start: str) -> Iterator[str]:
        """The words with that beginning; words may come twice."""
        needle = b"\n" + start.encode()
        for run in self._read():
            first = run.find(needle)
            if first >= 0:
                end = run.find(b"\n", run.rfind(needle) + 1)
                yield from run[first + 1 : end].decode(errors="ignore").split("\n")


def _lines_containing(run: bytes, part: bytes) -> Iterator[bytes]:
    """The lines of a run that contain a part, each once."""
    at = run.find(part)
    while at >= 0:
        end = run.find(b"\n", at)
        yield run[run.rfind(b"\n", 0, at) + 1 : end]
        at = run.find(part, end)


def _truncated_words(run: bytes) -> Iterator[bytes]:
    """The words that are so long that they may have been cut off."""
    at = 0
    while (end := run.rfind(b"\n", at, at + _MAX_WORD_BYTES)) >= 0 and end + 1 < len(run):
        if end > at:
            at = end
            continue
        end = run.find(b"\n", at + 1)
        yield run[at + 1 : end]
        at = end


class VocabularyWriter:
    """Updates the vocabulary while entries are written: `add` their texts, and `commit` with them.

    If it is not whole, or if there are many new entries, their words are left to the next question that needs them.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._keeps_up = _is_whole(connection)
        self._texts = 0
        self._all = int(connection.execute("SELECT value FROM meta WHERE name = 'next_entry'").fetchone()[0])
        self._covered = self._all
        self._words: set[str] = set()

    def add(self, texts: Iterable[Iterable[str | bytes | None]]) -> None:
        """Add the texts of entries, as full-text search gets them."""
        for fields in texts:
            self._texts += 1
            if self._texts * _REBUILD_SHARE > self._all:
                self._keeps_up = False
            if not self._keeps_up:
                return
            for text in fields:
                if text:
                    self._words.update(tokenize(text if isinstance(text, str) else text.decode()))

    def commit(self, next_entry: int) -> None:
        """Write the words, in the same transaction as their entries."""
        if not self._keeps_up:
            return
        if self._words:
            self._merge({word.encode() for word in self._words})
            self._words.clear()
        if next_entry != self._covered:
            _mark_covered(self._connection, next_entry)
            self._covered = next_entry

    def _merge(self, words: set[bytes]) -> None:
        """Add a run, merged with the runs before it that are not longer: so there are few, and they seldom change."""
        last_run = "SELECT run, length(words) FROM terms ORDER BY run DESC LIMIT 1"
        merged = _join_words(sorted(words))
        while (run := self._connection.execute(last_run).fetchone()) is not None and run[1] < min(
            2 * len(merged), _RUN_BYTES
        ):
            (old,) = self._connection.execute("SELECT words FROM terms WHERE run = ?", run[:1]).fetchone()
            self._connection.execute("DELETE FROM terms WHERE run = ?", run[:1])
            words.update(old[1:-1].split(b"\n"))
            merged = _join_words(sorted(words))
        self._connection.execute("INSERT INTO terms(words) VALUES(?)", (merged,))


def _complete(path: Path) -> list[bytes]:
    """Collect the words of an index, 0.07 s for 100 MB of transcripts, and store them if it may be written now."""
    with closing(open_read_only(path)) as reader:
        reader.execute("PRAGMA query_only = 0")  # words are read through a temporary table
        generation = read_generation(reader)
        runs = list(collect_runs(reader))
    with suppress(IndexBusy, Unreadable), open_for_writing(path, wait=False) as writer:
        if read_generation(writer) == generation:  # nobody has written meanwhile
            write_runs(writer, runs)
    return runs


def rebuild_vocabulary(connection: sqlite3.Connection) -> None:
    """Replace the vocabulary with all words of the full-text index."""
    write_runs(connection, list(collect_runs(connection)))


def collect_runs(connection: sqlite3.Connection) -> Iterator[bytes]:
    """All words of the full-text index, in runs; outside of a transaction."""
    # This table cannot be created or dropped in a transaction, in which other statements may still read.
    connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.all_words USING fts5vocab('main', 'text', 'row')")
    run: list[bytes] = []
    last = b""
    # SQLite joins the words, in their order: that is faster than fetching them row by row.
    while (words := connection.execute(_SELECT_WORDS, (last, _WORDS_PER_QUERY)).fetchone()[0]) is not None:
        run.append(words)
        last = words[words.rfind(b"\n") + 1 :]
        if sum(map(len, run)) > _RUN_BYTES:
            yield _join_words(run)
            run = []
    yield _join_words(run)
    connection.execute("DROP TABLE temp.all_words")


def write_runs(connection: sqlite3.Connection, runs: Iterable[bytes]) -> None:
    """Write a complete vocabulary."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("DELETE FROM terms")
        connection.executemany("INSERT INTO terms(words) VALUES(?)", ((run,) for run in runs))
        _mark_covered(connection, connection.execute("SELECT value FROM meta WHERE name = 'next_entry'").fetchone()[0])
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _mark_covered(connection: sqlite3.Connection, next_entry: int | str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES('terms_to', ?)", (str(next_entry),))


def _join_words(words: Iterable[bytes]) -> bytes:
    return b"\n" + b"".join(word + b"\n" for word in words)


TOKENIZER = "unicode61 remove_diacritics 2"
"""How SQLite splits text into tokens: letters and digits only, without case and accents."""

# Scripts without spaces between words (Hangul has them, but attaches particles to words): each character is a token.
_UNSPACED = (
    "\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3005-\u3007\u3021-\u3029"  # Han
    "\u3040-\u30ff\u31f0-\u31ff"  # Hiragana, Katakana
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17ff\u19e0-\u19ff"  # Khmer
    "\u1950-\u19df\u1a20-\u1aaf\uaa80-\uaadf"  # the Tai scripts
    "\u1b00-\u1b7f\ua980-\ua9df"  # Balinese, Javanese
    "\u3100-\u312f\u31a0-\u31bf\ua000-\ua4cf"  # Bopomofo, Yi
)
# The same scripts beyond the first 65,536 characters: searching for them is many times slower, and seldom needed.
_UNSPACED_BEYOND = "\U00020000-\U0003ffff\U0001aff0-\U0001b16f"
# Other forms of letters than a person types: ligatures, wide and narrow forms, mathematical alphabets, parts of Hangul,
# compatibility forms of Han. Halves of surrogate pairs are among them, which SQLite does not accept.
_OTHER_FORMS = (
    "[\ufb00-\ufb4f\uff00-\uffef\u1100-\u11ff\ud7b0-\udfff\uf900-\ufaff\U0001d400-\U0001d7ff\U0002f800-\U0002fa1f]+"
)
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_VOICED = "[\u3040-\u30ff][\u3099\u309a]"
# Bytes of UTF-8: all bytes of characters that are not changed (ASCII, the alphabets of Europe, signs and arrows), and
# the first bytes of characters that are spaced out and have no other forms.
_UNCHANGED_BYTES = bytes(range(0xE0)) + b"\xe2\xee"
_UNSPACED_LEAD_BYTES = bytes([0xE0, *range(0xE3, 0xED)])
_CHANGE_MARKS = bytes(byte not in _UNCHANGED_BYTES for byte in range(256))  # 1 in place of a byte that may change
_ENCODING = ("utf-8", "surrogatepass")
# Escape sequences that colour output and move the cursor. They touch words, and would be taken for a part of them.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|[()][0-9A-Z])")
# The longest token in SQLite, in bytes, and a number of characters that never exceeds it.
_MAX_TOKEN_BYTES = 32768
_BLOCK_BYTES = 128
_SAFE_TOKEN_CHARS = _MAX_TOKEN_BYTES // 4


def normalize_text(text: str) -> str:
    r"""The text as SQLite gets it, both when it is indexed and when it is searched for.

    Characters of scripts without spaces are separated, so that a word becomes a phrase. Wide, narrow and composed forms
    of letters become the letters. Terminal escape sequences are removed. Case and accents stay: SQLite folds them.

    >>> normalize_text("full text 検索")
    'full text  検 索 '
    >>> normalize_text("\x1b[31mError\x1b[0m: no such file")
    'Error: no such file'
    """
    return strip_escapes(text) if text.isascii() else encode_normalized(text).decode()


def encode_normalized(text: str) -> bytes:
    """The same in UTF-8, which SQLite stores: text that needs no change is encoded once, not by SQLite again."""
    encoded = strip_escapes(text).encode(*_ENCODING)
    marks = encoded.translate(_CHANGE_MARKS)
    at = marks.find(1)
    if at < 0:
        return encoded
    # Most lines of a long text need no change. Those that do are changed in blocks of whole lines.
    pieces: list[bytes] = []
    end = 0
    while at >= 0:
        start = encoded.rfind(b"\n", end, at) + 1 or end
        pieces.append(encoded[end:start])
        end = encoded.find(b"\n", at + _BLOCK_BYTES) + 1 or len(encoded)
        pieces.append(_normalize_block(encoded[start:end]))
        at = marks.find(1, end)
    return b"".join([*pieces, encoded[end:]])


def _normalize_block(encoded: bytes) -> bytes:
    text = encoded.decode(*_ENCODING)
    leads = encoded.translate(None, _UNCHANGED_BYTES)
    has_other_forms = bool(leads.translate(None, _UNSPACED_LEAD_BYTES)) or "\u3099" in text or "\u309a" in text
    run = _unspaced_run(has_characters_beyond=b"\xf0" in leads)
    return run.sub(_space_out, _normalize_forms(text) if has_other_forms else text).encode()


@cache
def _unspaced_run(*, has_characters_beyond: bool) -> re.Pattern[str]:
    """Matches a run of characters that are tokens; compiled on first use, because that takes two milliseconds."""
    return re.compile(f"[{_UNSPACED}{_UNSPACED_BEYOND if has_characters_beyond else ''}]+")


def _normalize_forms(text: str) -> str:
    return re.sub(_VOICED, _nfkc, re.sub(_OTHER_FORMS, _nfkc, text))


def strip_escapes(text: str) -> str:
    """The text without terminal escape sequences, as a person saw it."""
    return _ESCAPE.sub("", text) if "\x1b" in text else text


def _nfkc(match: re.Match[str]) -> str:
    run = match[0]
    return normalize("NFKC", run if run.isprintable() else _HALF_PAIR.sub(" ", run))


def _space_out(match: re.Match[str]) -> str:
    return f" {' '.join(match[0])} "


def tokenize(text: str) -> list[str]:
    """The tokens of a text, in order, as SQLite splits it. What a person typed must be normalized first.

    >>> tokenize("Café: snake_case --dry-run /etc/hosts")
    ['cafe', 'snake', 'case', 'dry', 'run', 'etc', 'hosts']
    """
    if not text.isascii() and (unknown := set(map(ord, text)) - _FOLDING.keys()):
        _FOLDING.update(_ask_sqlite_to_fold(sorted(unknown)))
    return [
        token if len(token) <= _SAFE_TOKEN_CHARS else _truncate_token(token)
        for token in text.translate(_FOLDING).split()
    ]


def _truncate_token(token: str) -> str:
    """A token, cut off where SQLite cuts it off."""
    return token.encode()[:_MAX_TOKEN_BYTES].decode(errors="ignore")


def _ask_sqlite_to_fold(characters: Sequence[int]) -> dict[int, str]:
    """How SQLite folds each character: to its plain form, to nothing for an accent, to a space between tokens.

    SQLite decides, because its tables are older than Python's and differ from them in thousands of characters.
    """
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, content='', tokenize='{TOKENIZER}')")
        database.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab(texts, 'instance')")
        texts = ((character, f"a{chr(character)}a") for character in characters if not _HALF_PAIR.match(chr(character)))
        database.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", texts)
        tokens: dict[int, str] = dict(database.execute("SELECT doc, term FROM tokens WHERE offset = 0"))
    return {
        character: tokens[character][1:-1] if len(tokens.get(character, "")) > 1 else " " for character in characters
    }


# The first 128 characters are the same in every version; the others are added when they occur.
_FOLDING = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
