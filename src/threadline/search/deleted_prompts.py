"""Find prompts whose transcripts are gone, in `history.jsonl`.

They are few and small, so they are not indexed: the file is searched for each query. Most rows are ruled out by their
bytes, without being decoded.
"""

from __future__ import annotations

import os
import re
import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import msgspec

from threadline.errors import Error
from threadline.index import normalize_text, tokenize
from threadline.model.places import Place
from threadline.model.side_files import HistoryPrompt
from threadline.parse import decode_side_value, open_transcript
from threadline.search.match import Document, matches
from threadline.search.query import TEXT_FIELDS, And, Or, Phrase, Query, Regex, expand
from threadline.search.regex import TimeBudget, required_literals

MAX_HISTORY_BYTES = 16 * 1024 * 1024
"""How much of a home's history is gone through: its end."""

_HISTORY = "history.jsonl"
_DECODER = msgspec.json.Decoder(HistoryPrompt)
_PLAIN_WORD = re.compile("[0-9A-Za-z]{2,}")
# How characters begin in UTF-8 that may be taken for plain letters: with accents, in other forms. Dashes, arrows, emoji
# and Chinese are none of them.
_FOLDING_LETTERS = re.compile(
    rb"[\xc2-\xcd]|\xe1[\xb4-\xbf]|\xe2[\x82-\x84\x91-\x93\xb1]|\xea|\xef[\xac\xbc\xbd]|\xf0\x9d|\xf0\x9f[\x84-\x87]"
)
_FIRST_WORDS = 8
_MAX_WITHOUT_SESSION = 10
_SESSION_KEY = b'"sessionId":"'


class DeletedPrompt(NamedTuple):
    """A prompt of the history, and where it stands there."""

    prompt: HistoryPrompt
    place: Place

    @property
    def document(self) -> Document:
        """The prompt as search sees it: an entry of the person's."""
        return Document(
            prompt=self.prompt.display or "",
            project=self.prompt.project,
            session=self.prompt.session_id,
            kind="user",
            timestamp=self.prompt.timestamp,
        )


def find_deleted_prompts(
    connection: sqlite3.Connection, query: Query, *, bounded: bool = False
) -> Iterator[DeletedPrompt]:
    """The prompts that a query asks for whose sessions have no transcript any more, those typed last first.

    Rows of old versions do not name a session; those count as gone whose words no prompt of the index has. That takes a
    while to find out, so with `bounded`, only a few of them are looked at.
    """
    needed = list(_required_bytes(expand(query)))
    patience = TimeBudget()
    nameless = 0
    for (home,) in connection.execute("SELECT path FROM homes ORDER BY home_id").fetchall():
        left = _history_rows(connection, Path(os.fsdecode(home)) / _HISTORY)
        for typed in left.asked(needed):
            session = (typed.prompt.session_id or "").lower()
            if session in left.sessions or (not session and bounded and nameless >= _MAX_WITHOUT_SESSION):
                continue
            if matches(query, typed.document, patience):
                nameless += not session
                if session or not _is_in_index(connection, typed.prompt.display or ""):
                    yield typed


def _is_in_index(connection: sqlite3.Connection, text: str) -> bool:
    """Whether some prompt of the index begins so, or it has no words to tell."""
    words = " ".join(tokenize(normalize_text(text))[:_FIRST_WORDS])
    asked = "SELECT 1 FROM text WHERE text MATCH ? LIMIT 1"
    return not words or connection.execute(asked, (f'{{prompt}}:"{words}"',)).fetchone() is not None


def read_prompt(place: Place) -> str:
    """The whole prompt that stands at a place of a history; empty where it is not there any more."""
    with suppress(Error, OSError), os.fdopen(open_transcript(place.transcript), "rb") as file:
        file.seek(place.offset)
        prompt = _decode_row(file.read(place.length), place)
        return (prompt.display or "") if prompt is not None else ""
    return ""


class _HistoryRows:
    """The rows of a history that no transcript is left of, as far as bytes tell: the last one first, one below another.

    `sessions` are those that have a transcript. A row is found by looking through all of them at once: most queries ask
    for what none of them has.
    """

    def __init__(self, path: Path, rows: list[tuple[int, int, bytes]], sessions: set[str], *, is_whole: bool) -> None:
        self.sessions = sessions
        self._path = path
        self._rows = rows
        self._is_whole = is_whole
        lowered = [raw.lower() for _number, _offset, raw in rows]
        self._text = b"\n".join(lowered)
        self._begins = [0, *accumulate(len(one) + 1 for one in lowered)]
        # What may be taken for other letters is looked at whatever is asked for.
        self._odd = [at for at, one in enumerate(lowered) if _may_fold(one)]

    def asked(self, needed: list[tuple[bytes, ...]]) -> Iterator[DeletedPrompt]:
        """Those that may be asked for."""
        for at in self._numbers(needed):
            number, offset, raw = self._rows[at]
            # Of a part of a file, lines cannot be told.
            place = Place(str(self._path), number + 1 if self._is_whole else 0, offset, len(raw))
            prompt = _decode_row(raw, place)
            if prompt is not None and prompt.display:
                yield DeletedPrompt(prompt, place)

    def _numbers(self, needed: list[tuple[bytes, ...]]) -> Iterable[int]:
        if not needed:
            return range(len(self._rows))
        found = set.intersection(*({at for one in some for at in self._with(one)} for some in needed))
        return sorted(found.union(self._odd))

    def _with(self, part: bytes) -> Iterator[int]:
        """The rows that have a part in them."""
        at = self._text.find(part)
        while at >= 0:
            row = bisect_right(self._begins, at) - 1
            yield row
            at = self._text.find(part, self._begins[row + 1])


def _may_fold(low: bytes) -> bool:
    return b"\\u" in low or (not low.isascii() and _FOLDING_LETTERS.search(low) is not None)


def _history_rows(connection: sqlite3.Connection, path: Path) -> _HistoryRows:
    with suppress(OSError, Error):
        status = path.stat()
        asked = "SELECT value FROM meta WHERE name = 'generation'"
        return _read_history(
            connection, path, (status.st_size, status.st_mtime_ns, connection.execute(asked).fetchone())
        )
    return _HistoryRows(path, [], set(), is_whole=True)


_MAX_CACHED = 8
_CACHE: dict[Path, tuple[object, _HistoryRows]] = {}


def _read_history(connection: sqlite3.Connection, path: Path, state: tuple[int, int, object]) -> _HistoryRows:
    """What is left, read once for several queries of one index: where nothing is found, others are tried."""
    known = _CACHE.get(path)
    if known is not None and known[0] == state:
        return known[1]
    sessions = {one for (one,) in connection.execute("SELECT DISTINCT session FROM transcripts") if one}
    with os.fdopen(open_transcript(path), "rb") as file:
        begin = file.seek(max(0, state[0] - MAX_HISTORY_BYTES))
        data = file.read(MAX_HISTORY_BYTES)
    cut = data.find(b"\n") + 1 if begin else 0
    rows = []
    offset = begin + cut
    for number, raw in enumerate(data[cut:].split(b"\n")):
        if _session_of(raw) not in sessions:
            rows.append((number, offset, raw))
        offset += len(raw) + 1
    rows.reverse()
    made = _HistoryRows(path, rows, sessions, is_whole=begin == 0)
    if len(_CACHE) >= _MAX_CACHED:
        _CACHE.clear()
    _CACHE[path] = state, made
    return made


def _session_of(line: bytes) -> str:
    at = line.rfind(_SESSION_KEY)
    if at < 0:
        return ""
    start = at + len(_SESSION_KEY)
    return line[start : line.find(b'"', start)].decode(errors="replace").lower()


def _decode_row(raw: bytes, place: Place) -> HistoryPrompt | None:
    with suppress(msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _DECODER.decode(raw)
    content = decode_side_value(raw, HistoryPrompt, place).content
    return content if isinstance(content, HistoryPrompt) else None


def _required_bytes(query: Query) -> Iterator[tuple[bytes, ...]]:
    """Of each thing that is asked for, strings of which a row must have one."""
    for one in query.of if isinstance(query, And) else (query,):
        ways = [_longest_literal(way) for way in (one.of if isinstance(one, Or) else (one,))]
        if all(ways):
            yield tuple(way.lower().encode() for way in ways)


def _longest_literal(query: Query) -> str:
    """The longest string of plain letters that text must have; empty where none is known."""
    texts: list[str] = []
    if isinstance(query, Phrase):
        texts = [token for token in query.tokens if token.isascii()]
    elif isinstance(query, Regex) and (query.field is None or query.field in TEXT_FIELDS):
        texts = [part for run in required_literals(query) for part in _PLAIN_WORD.findall(run)]
    return max(texts, key=len, default="")
