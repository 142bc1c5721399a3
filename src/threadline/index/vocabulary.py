"""Tokenize text as SQLite's full-text search does, and keep a list of every word in the index.

Full-text search finds words by their beginning only. The vocabulary finds words by any part of them, for regular
expressions and spelling suggestions. Words of deleted entries may remain; while `is_whole` holds, no word is missing.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from threading import Thread
from unicodedata import normalize

from msgspec import Struct


class TableGroup(Struct, frozen=True):
    """Some tables that belong together.

    `tables` and `views` are by name, with the statement that makes each; a comment behind a column says what it means.
    `indexes` are made after them. `of_transcript` are the tables whose rows go when their transcript is read anew or is
    gone, by `transcript_id`, in the order in which they are to be emptied; `of_entries` are those whose rows go with an
    entry, by `entry_id`, and before it. `private` are those that only the refresh
    needs: they are documented, and may change without notice.
    """

    tables: dict[str, str] = {}
    views: dict[str, str] = {}
    indexes: tuple[str, ...] = ()
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
# Above this share of what is there, asking full text for all words is quicker than to take new text apart.
_REBUILD_SHARE = 12
# As much as full text keeps of a word: what stood behind that may be anything.
_MAX_WORD_BYTES = 32_000
# A word may end in the middle of a character, where full text has cut it off: words are passed as bytes.
_SELECT_WORDS = """SELECT CAST(group_concat(term, char(10)) AS BLOB)
    FROM (SELECT term FROM temp.all_words WHERE term > CAST(? AS TEXT) LIMIT ?)"""
_SELECT_COVERED = "SELECT name, CAST(value AS INTEGER) FROM meta WHERE name IN ('next_entry', 'terms_to')"


def _is_whole(connection: sqlite3.Connection) -> bool:
    known: dict[str, int] = dict(connection.execute(_SELECT_COVERED).fetchall())
    return known.get("terms_to", -1) == known.get("next_entry")


class Vocabulary:
    """The words of an index, to be asked. Where it is not whole, it knows nothing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.is_whole = _is_whole(connection)
        self._runs: list[bytes] | None = None

    def _read(self) -> list[bytes]:
        if self._runs is None:
            self._runs = [words for (words,) in self._connection.execute("SELECT words FROM terms")]
        return self._runs

    def containing(self, part: str, most: int, *, ends: bool = False) -> list[str] | None:
        """The words that have a part in them, or with `ends` at their end; None where there are more than `most`.

        A word that full text has cut off may have gone on with anything: it is always among them.
        """
        looked_for = part.encode() + (b"\n" if ends else b"")
        found: set[bytes] = set()
        for run in self._read():
            for word in chain(_truncated_words(run), _lines_containing(run, looked_for)):
                found.add(word)
                if len(found) > most:
                    return None
        return sorted(word.decode(errors="ignore") for word in found)

    def beginning(self, start: str) -> Iterator[str]:
        """The words that begin so; some may come twice."""
        looked_for = b"\n" + start.encode()
        for run in self._read():
            first = run.find(looked_for)
            if first >= 0:
                end = run.find(b"\n", run.rfind(looked_for) + 1)
                yield from run[first + 1 : end].decode(errors="ignore").split("\n")


def _lines_containing(run: bytes, part: bytes) -> Iterator[bytes]:
    """Each line of a run that has a part in it, once."""
    at = run.find(part)
    while at >= 0:
        end = run.find(b"\n", at)
        yield run[run.rfind(b"\n", 0, at) + 1 : end]
        at = run.find(part, end)


def _truncated_words(run: bytes) -> Iterator[bytes]:
    """The words that are so long that full text may have cut them off."""
    at = 0
    while (end := run.rfind(b"\n", at, at + _MAX_WORD_BYTES)) >= 0 and end + 1 < len(run):
        if end > at:
            at = end
            continue
        end = run.find(b"\n", at + 1)
        yield run[at + 1 : end]
        at = end


class VocabularyWriter:
    """Keeps the vocabulary while entries are written: `add` what they say, `commit` with them, and see to `finishing`.

    A refresh that is killed leaves a vocabulary that is not whole, and the next one makes it so.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._keeps_up = _is_whole(connection)
        self._texts = 0
        self._all = int(connection.execute("SELECT value FROM meta WHERE name = 'next_entry'").fetchone()[0])
        self._covered = self._all
        self._words: set[str] = set()

    def add(self, texts: Iterable[Iterable[str | None]]) -> None:
        """What entries say in each field, as it is handed to full text."""
        for said in texts:
            self._texts += 1
            if self._texts * _REBUILD_SHARE > self._all:
                self._keeps_up = False
            if not self._keeps_up:
                return
            for text in filter(None, said):
                self._words.update(tokenize(text))

    def commit(self, next_entry: int) -> None:
        """Write the words down, in the transaction that their entries are written in."""
        if not self._keeps_up:
            return
        if self._words:
            self._merge({word.encode() for word in self._words})
            self._words.clear()
        if next_entry != self._covered:
            _mark_covered(self._connection, next_entry)
            self._covered = next_entry

    def _merge(self, words: set[bytes]) -> None:
        """Add a run, together with those before it that are no longer: so there are few, and each grows seldom."""
        last = "SELECT run, length(words) FROM terms ORDER BY run DESC LIMIT 1"
        made = _join_words(sorted(words))
        while (run := self._connection.execute(last).fetchone()) is not None and run[1] < min(
            2 * len(made), _RUN_BYTES
        ):
            (old,) = self._connection.execute("SELECT words FROM terms WHERE run = ?", run[:1]).fetchone()
            self._connection.execute("DELETE FROM terms WHERE run = ?", run[:1])
            words.update(old[1:-1].split(b"\n"))
            made = _join_words(sorted(words))
        self._connection.execute("INSERT INTO terms(words) VALUES(?)", (made,))

    @contextmanager
    def finishing(self, beside: Path | None) -> Iterator[None]:
        """Make the vocabulary whole where it could not keep up; outside of a transaction.

        That takes a second or two for a large index. Of one at `beside` that nobody else sees, words are gathered by
        another thread while what is inside of the `with` is done: SQLite lets Python go on meanwhile.
        """
        if self._keeps_up:
            yield
        elif beside is None:
            rebuild_vocabulary(self._connection)
            yield
        else:
            self._connection.execute("PRAGMA journal_mode = WAL")  # one writes while another reads
            gathering = _WordCollector(beside)
            gathering.start()
            try:
                yield
            finally:
                gathering.join()
            if gathering.failed is not None:
                raise gathering.failed
            write_runs(self._connection, gathering.runs)
        self._keeps_up = True


class _WordCollector(Thread):
    """Gathers the words of an index; `failed` says why it could not."""

    def __init__(self, index: Path) -> None:
        super().__init__(daemon=True)
        self._index = index
        self.runs: list[bytes] = []
        self.failed: sqlite3.Error | None = None

    def run(self) -> None:
        """Gather them."""
        try:
            with closing(sqlite3.connect(self._index, isolation_level=None)) as connection:
                self.runs += collect_runs(connection)
        except sqlite3.Error as error:
            self.failed = error


def rebuild_vocabulary(connection: sqlite3.Connection) -> None:
    """Make the vocabulary anew of all that full text has."""
    write_runs(connection, list(collect_runs(connection)))


def collect_runs(connection: sqlite3.Connection) -> Iterator[bytes]:
    """All words of the full-text index, in runs; outside of a transaction."""
    # It cannot be made in a transaction, nor dropped in one: other statements may still read.
    connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.all_words USING fts5vocab('main', 'text', 'row')")
    run: list[bytes] = []
    last = b""
    # SQLite joins the words, in their order. It works without the interpreter's lock meanwhile, so that another thread
    # can charge messages. Fetching words row by row, both waited for each other, which cost 0.13 s per 200 MB.
    while (words := connection.execute(_SELECT_WORDS, (last, _WORDS_PER_QUERY)).fetchone()[0]) is not None:
        run.append(words)
        last = words[words.rfind(b"\n") + 1 :]
        if sum(map(len, run)) > _RUN_BYTES:
            yield _join_words(run)
            run = []
    yield _join_words(run)
    connection.execute("DROP TABLE temp.all_words")


def write_runs(connection: sqlite3.Connection, runs: Iterable[bytes]) -> None:
    """Write down a vocabulary that is whole."""
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
"""How SQLite cuts text into tokens: at all but letters and digits, without case, without accents."""

# Scripts that put no space between words (Hangul does, but glues particles to them): each character is a token.
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
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
# The same with what lies beyond the first 65,536 characters: many times slower, and seldom needed.
_UNSPACED_RUN_BEYOND = re.compile(f"[{_UNSPACED}\U00020000-\U0003ffff\U0001aff0-\U0001b16f]+")
# Other forms of letters than a person types: ligatures, wide and narrow ones, mathematical alphabets, pieces of Hangul,
# doubles of Han. Half of a surrogate pair is among them, which SQLite does not take.
_OTHER_FORMS = re.compile(
    "[\ufb00-\ufb4f\uff00-\uffef\u1100-\u11ff\ud7b0-\udfff\uf900-\ufaff\U0001d400-\U0001d7ff\U0002f800-\U0002fa1f]+"
)
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_VOICED = re.compile("[\u3040-\u30ff][\u3099\u309a]")
# Bytes of UTF-8 that characters begin with, and other bytes: of those that stay as they are (ASCII, the alphabets of
# Europe, signs and arrows), and of those that stand apart and have no other forms.
_UNCHANGED_BYTES = bytes(range(0xE0)) + b"\xe2\xee"
_UNSPACED_LEAD_BYTES = bytes([0xE0, *range(0xE3, 0xED)])
# What a program prints to colour its output and to move about: right before words, and it would be taken for theirs.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|[()][0-9A-Z])")
# The bytes of a token that SQLite keeps, and how many characters are surely no more.
_MAX_TOKEN_BYTES = 32768
_BLOCK_CHARS = 128
_SAFE_TOKEN_CHARS = _MAX_TOKEN_BYTES // 4


def normalize_text(text: str) -> str:
    r"""The text as it is handed to SQLite, when it is indexed and when it is asked for.

    Characters of scripts without spaces stand apart, so that a word of them is a phrase; wide, narrow and composed
    forms of letters are the letters; escape sequences of terminals are gone. Case and accents stay: SQLite folds them.

    >>> normalize_text("full text 検索")
    'full text  検 索 '
    >>> normalize_text("\x1b[31mError\x1b[0m: no such file")
    'Error: no such file'
    """
    text = strip_escapes(text)
    if text.isascii() or not _changing_bytes(text):
        return text
    # Most of a long text is as it should be, and found to be so faster than looked through.
    blocks: list[str] = []
    start = 0
    while start < len(text):
        end = text.find("\n", start + _BLOCK_CHARS) + 1 or len(text)
        block = text[start:end]
        leads = b"" if block.isascii() else _changing_bytes(block)
        blocks.append(_normalize_block(block, leads) if leads else block)
        start = end
    return "".join(blocks)


def _changing_bytes(text: str) -> bytes:
    """The first bytes of the characters that may have to be changed."""
    return text.encode("utf-8", "surrogatepass").translate(None, _UNCHANGED_BYTES)


def _normalize_block(text: str, leads: bytes) -> str:
    has_other_forms = bool(leads.translate(None, _UNSPACED_LEAD_BYTES)) or "\u3099" in text or "\u309a" in text
    run = _UNSPACED_RUN_BEYOND if b"\xf0" in leads else _UNSPACED_RUN
    return run.sub(_space_out, _normalize_forms(text) if has_other_forms else text)


def _normalize_forms(text: str) -> str:
    return _VOICED.sub(_nfkc, _OTHER_FORMS.sub(_nfkc, text))


def strip_escapes(text: str) -> str:
    """The text without the escape sequences that steer a terminal: what a person saw."""
    return _ESCAPE.sub("", text) if "\x1b" in text else text


def _nfkc(found: re.Match[str]) -> str:
    run = found[0]
    return normalize("NFKC", run if run.isprintable() else _HALF_PAIR.sub(" ", run))


def _space_out(found: re.Match[str]) -> str:
    return f" {' '.join(found[0])} "


def tokenize(text: str) -> list[str]:
    """The tokens that SQLite makes of a text, in order. What a person typed goes through `searchable` first.

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
    """A token as far as SQLite keeps it."""
    return token.encode()[:_MAX_TOKEN_BYTES].decode(errors="ignore")


def _ask_sqlite_to_fold(characters: Sequence[int]) -> dict[int, str]:
    """What SQLite makes of each character: its plain form, nothing for an accent, a space for what divides tokens.

    It is asked, because its tables are older than Python's and differ from them in thousands of characters.
    """
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE VIRTUAL TABLE one USING fts5(text, content='', tokenize='{TOKENIZER}')")
        database.execute("CREATE VIRTUAL TABLE made USING fts5vocab(one, 'instance')")
        whole = ((character, f"a{chr(character)}a") for character in characters if not _HALF_PAIR.match(chr(character)))
        database.executemany("INSERT INTO one (rowid, text) VALUES (?, ?)", whole)
        made: dict[int, str] = dict(database.execute("SELECT doc, term FROM made WHERE offset = 0"))
    return {character: made[character][1:-1] if len(made.get(character, "")) > 1 else " " for character in characters}


# The first 128 are the same in every version; the others come as they are met.
_FOLDING = {one: chr(one).lower() if chr(one).isalnum() else " " for one in range(128)}
