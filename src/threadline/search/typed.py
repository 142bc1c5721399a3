"""Typed prompts whose transcripts are gone: `history.jsonl` still has them, and a search finds them, too.

They are few and small, so they are not indexed: the file is gone through when something is asked for. Most rows are
ruled out by their bytes, without being decoded.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import chain
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
    known = _sessions(connection)
    nameless = 0
    for (home,) in connection.execute("SELECT path FROM homes ORDER BY home_id").fetchall():
        for typed in _rows(Path(home) / _HISTORY, needed, known):
            session = (typed.prompt.session_id or "").lower()
            if session in known or (not session and bounded and nameless >= _NAMELESS):
                continue
            if matches(query, typed.document, patience):
                nameless += not session
                if session or not _is_said(connection, typed.prompt.display or ""):
                    yield typed


def _sessions(connection: sqlite3.Connection) -> set[str]:
    return {session for (session,) in connection.execute("SELECT DISTINCT session FROM transcripts") if session}


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


def _rows(path: Path, needed: list[tuple[bytes, ...]], known: set[str]) -> Iterator[Typed]:
    """The rows of a history that may be asked for and may be gone, the last one first."""
    history = _history(path)
    may_be_gone = chain.from_iterable(lines for session, lines in history.sessions.items() if session not in known)
    for number in sorted(may_be_gone, reverse=True):
        raw, low, offset = history.lines[number]
        if _may_be_asked(low, needed):
            # Of a part of a file, lines cannot be told.
            place = Place(str(path), number + 1 if history.is_whole else 0, offset, len(raw))
            prompt = _decoded(raw, place)
            if prompt is not None and prompt.display:
                yield Typed(prompt, place)


class _History(NamedTuple):
    """Lines of a history, each in small letters, too, and with its offset; and the lines of each session.

    The session is told as far as the bytes of a line show it.
    """

    lines: list[tuple[bytes, bytes, int]]
    sessions: dict[str, list[int]]
    is_whole: bool = True


def _history(path: Path) -> _History:
    with suppress(OSError, Error):
        known = path.stat()
        return _read(path, known.st_size, known.st_mtime_ns)
    return _History([], {})


@lru_cache(maxsize=2)
def _read(path: Path, size: int, _mtime_ns: int) -> _History:
    """The end of a history, read once for several queries: where nothing is found, others are tried."""
    with os.fdopen(open_transcript(path), "rb") as file:
        begin = file.seek(max(0, size - MOST_BYTES))
        data = file.read(MOST_BYTES)
    cut = data.find(b"\n") + 1 if begin else 0
    history = _History([], {}, begin == 0)
    offset = begin + cut
    for number, (raw, low) in enumerate(zip(data[cut:].split(b"\n"), data[cut:].lower().split(b"\n"), strict=True)):
        history.lines.append((raw, low, offset))
        history.sessions.setdefault(_session(raw), []).append(number)
        offset += len(raw) + 1
    return history


def _session(line: bytes) -> str:
    at = line.rfind(_SESSION)
    if at < 0:
        return ""
    start = at + len(_SESSION)
    return line[start : line.find(b'"', start)].decode(errors="replace").lower()


def _may_be_asked(low: bytes, needed: list[tuple[bytes, ...]]) -> bool:
    """Whether a row's bytes have what is needed, or have letters that may be taken for others."""
    for some in needed:
        if not any(one in low for one in some):
            return b"\\u" in low or (not low.isascii() and _LETTERS.search(low) is not None)
    return True


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
