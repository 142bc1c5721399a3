"""Typed prompts whose transcripts are gone: `history.jsonl` still has them, and a search finds them, too.

They are few and small, so they are not indexed: the file is gone through when something is asked for. Most rows are
ruled out by their bytes, without being decoded.
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
from threadline.index.words import searchable, tokens
from threadline.model.place import Place
from threadline.model.side import HistoryPrompt
from threadline.parse.chunks import open_transcript
from threadline.parse.side_value import side_value
from threadline.search.expand import expanded
from threadline.search.match import Document, matches
from threadline.search.query import TEXTS, And, Or, Phrase, Query, Regex
from threadline.search.regex import Patience, literals

MOST_BYTES = 16 * 1024 * 1024
"""How much of a home's history is gone through: its end."""

_HISTORY = "history.jsonl"
_DECODER = msgspec.json.Decoder(HistoryPrompt)
_PLAIN = re.compile("[0-9A-Za-z]{2,}")
# How characters begin in UTF-8 that may be taken for plain letters: with accents, in other forms. Dashes, arrows, emoji
# and Chinese are none of them.
_LETTERS = re.compile(
    rb"[\xc2-\xcd]|\xe1[\xb4-\xbf]|\xe2[\x82-\x84\x91-\x93\xb1]|\xea|\xef[\xac\xbc\xbd]|\xf0\x9d|\xf0\x9f[\x84-\x87]"
)
_FIRST_WORDS = 8
_NAMELESS = 10
_SESSION = b'"sessionId":"'


class Typed(NamedTuple):
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


def gone_prompts(connection: sqlite3.Connection, query: Query, *, bounded: bool = False) -> Iterator[Typed]:
    """The prompts that a query asks for whose sessions have no transcript any more, those typed last first.

    Rows of old versions do not name a session; those count as gone whose words no prompt of the index has. That takes a
    while to find out, so with `bounded`, only a few of them are looked at.
    """
    needed = list(_needed(expanded(query)))
    patience = Patience()
    nameless = 0
    for (home,) in connection.execute("SELECT path FROM homes ORDER BY home_id").fetchall():
        left = _left(connection, Path(os.fsdecode(home)) / _HISTORY)
        for typed in left.asked(needed):
            session = (typed.prompt.session_id or "").lower()
            if session in left.sessions or (not session and bounded and nameless >= _NAMELESS):
                continue
            if matches(query, typed.document, patience):
                nameless += not session
                if session or not _is_said(connection, typed.prompt.display or ""):
                    yield typed


def _is_said(connection: sqlite3.Connection, text: str) -> bool:
    """Whether some prompt of the index begins so, or it has no words to tell."""
    words = " ".join(tokens(searchable(text))[:_FIRST_WORDS])
    asked = "SELECT 1 FROM text WHERE text MATCH ? LIMIT 1"
    return not words or connection.execute(asked, (f'{{prompt}}:"{words}"',)).fetchone() is not None


def text_at(place: Place) -> str:
    """The whole prompt that stands at a place of a history; empty where it is not there any more."""
    with suppress(Error, OSError), os.fdopen(open_transcript(place.transcript), "rb") as file:
        file.seek(place.offset)
        prompt = _decoded(file.read(place.length), place)
        return (prompt.display or "") if prompt is not None else ""
    return ""


class _Left:
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
        self._odd = [at for at, one in enumerate(lowered) if _is_odd(one)]

    def asked(self, needed: list[tuple[bytes, ...]]) -> Iterator[Typed]:
        """Those that may be asked for."""
        for at in self._numbers(needed):
            number, offset, raw = self._rows[at]
            # Of a part of a file, lines cannot be told.
            place = Place(str(self._path), number + 1 if self._is_whole else 0, offset, len(raw))
            prompt = _decoded(raw, place)
            if prompt is not None and prompt.display:
                yield Typed(prompt, place)

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


def _is_odd(low: bytes) -> bool:
    return b"\\u" in low or (not low.isascii() and _LETTERS.search(low) is not None)


def _left(connection: sqlite3.Connection, path: Path) -> _Left:
    with suppress(OSError, Error):
        status = path.stat()
        asked = "SELECT value FROM meta WHERE name = 'generation'"
        return _read(connection, path, (status.st_size, status.st_mtime_ns, connection.execute(asked).fetchone()))
    return _Left(path, [], set(), is_whole=True)


_HOMES = 8
_READ: dict[Path, tuple[object, _Left]] = {}


def _read(connection: sqlite3.Connection, path: Path, state: tuple[int, int, object]) -> _Left:
    """What is left, read once for several queries of one index: where nothing is found, others are tried."""
    known = _READ.get(path)
    if known is not None and known[0] == state:
        return known[1]
    sessions = {one for (one,) in connection.execute("SELECT DISTINCT session FROM transcripts") if one}
    with os.fdopen(open_transcript(path), "rb") as file:
        begin = file.seek(max(0, state[0] - MOST_BYTES))
        data = file.read(MOST_BYTES)
    cut = data.find(b"\n") + 1 if begin else 0
    rows = []
    offset = begin + cut
    for number, raw in enumerate(data[cut:].split(b"\n")):
        if _session(raw) not in sessions:
            rows.append((number, offset, raw))
        offset += len(raw) + 1
    rows.reverse()
    made = _Left(path, rows, sessions, is_whole=begin == 0)
    if len(_READ) >= _HOMES:
        _READ.clear()
    _READ[path] = state, made
    return made


def _session(line: bytes) -> str:
    at = line.rfind(_SESSION)
    if at < 0:
        return ""
    start = at + len(_SESSION)
    return line[start : line.find(b'"', start)].decode(errors="replace").lower()


def _decoded(raw: bytes, place: Place) -> HistoryPrompt | None:
    with suppress(msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _DECODER.decode(raw)
    content = side_value(raw, HistoryPrompt, place).content
    return content if isinstance(content, HistoryPrompt) else None


def _needed(query: Query) -> Iterator[tuple[bytes, ...]]:
    """Of each thing that is asked for, strings of which a row must have one."""
    for one in query.of if isinstance(query, And) else (query,):
        ways = [_spelt_out(way) for way in (one.of if isinstance(one, Or) else (one,))]
        if all(ways):
            yield tuple(way.lower().encode() for way in ways)


def _spelt_out(query: Query) -> str:
    """The longest string of plain letters that text must have; empty where none is known."""
    texts: list[str] = []
    if isinstance(query, Phrase):
        texts = [token for token in query.tokens if token.isascii()]
    elif isinstance(query, Regex) and (query.field is None or query.field in TEXTS):
        texts = [part for run in literals(query) for part in _PLAIN.findall(run)]
    return max(texts, key=len, default="")
