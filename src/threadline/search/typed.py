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
_FIRST_WORDS = 8


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


def gone_prompts(connection: sqlite3.Connection, query: Query) -> Iterator[Typed]:
    """The prompts that a query asks for whose sessions have no transcript any more, those typed last first.

    Rows of old versions do not name a session; those count as gone whose words no prompt of the index has.
    """
    needed = list(_needed(expanded(query)))
    patience = Patience()
    for (home,) in connection.execute("SELECT path FROM homes ORDER BY home_id").fetchall():
        for typed in _rows(Path(home) / _HISTORY, needed):
            if matches(query, typed.document, patience) and _is_gone(connection, typed.prompt):
                yield typed


def text_at(place: Place) -> str:
    """The whole prompt that stands at a place of a history; empty where it is not there any more."""
    with suppress(Error, OSError), os.fdopen(open_transcript(place.transcript), "rb") as file:
        file.seek(place.offset)
        prompt = _decoded(file.read(place.length), place)
        return (prompt.display or "") if prompt is not None else ""
    return ""


def _is_gone(connection: sqlite3.Connection, prompt: HistoryPrompt) -> bool:
    if prompt.session_id:
        asked, given = "SELECT 1 FROM transcripts WHERE session = ? LIMIT 1", prompt.session_id.lower()
    else:
        words = tokens(searchable(prompt.display or ""))[:_FIRST_WORDS]
        asked, given = "SELECT 1 FROM text WHERE text MATCH ? LIMIT 1", f'{{prompt}}:"{" ".join(words)}"'
        if not words:
            return False
    return connection.execute(asked, (given,)).fetchone() is None


def _rows(path: Path, needed: list[tuple[bytes, ...]]) -> Iterator[Typed]:
    """The rows of a history that may be asked for, the last one first."""
    data, begin = _end_of(path)
    end = begin + len(data)
    number = data.count(b"\n") + 1 if begin == 0 else 0  # of a part, lines cannot be told
    for raw, low in zip(reversed(data.split(b"\n")), reversed(data.lower().split(b"\n")), strict=True):
        start = end - len(raw)
        if raw and _may_be_asked(low, needed):
            place = Place(str(path), number, start, len(raw))
            prompt = _decoded(raw, place)
            if prompt is not None and prompt.display:
                yield Typed(prompt, place)
        end, number = start - 1, max(0, number - 1)


def _end_of(path: Path) -> tuple[bytes, int]:
    """The last bytes of a file from the beginning of a line on, and where that is."""
    with suppress(OSError, Error):
        known = path.stat()
        return _read(path, known.st_size, known.st_mtime_ns)
    return b"", 0


@lru_cache(maxsize=2)
def _read(path: Path, size: int, _mtime_ns: int) -> tuple[bytes, int]:
    """The same, once for several queries: where nothing is found, others are tried."""
    with os.fdopen(open_transcript(path), "rb") as file:
        begin = file.seek(max(0, size - MOST_BYTES))
        data = file.read(MOST_BYTES)
    cut = data.find(b"\n") + 1 if begin else 0
    return data[cut:], begin + cut


def _may_be_asked(low: bytes, needed: list[tuple[bytes, ...]]) -> bool:
    """Whether a row's bytes have what is needed; letters with accents and those written by number may be others."""
    return all(any(one in low for one in some) for some in needed) or not low.isascii() or b"\\u" in low


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
