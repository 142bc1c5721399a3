"""Find prompts whose sessions have no transcript any more, in `history.jsonl`, which Claude Code never deletes."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from threadline.errors import Error
from threadline.home_files import open_transcript
from threadline.index import Index, normalize_text, tokenize
from threadline.model.places import Place
from threadline.model.side_files import HistoryPrompt
from threadline.model.times import parse_timestamp
from threadline.parse import decode_content
from threadline.search.match import Document, TimeBudget, matches
from threadline.search.query import TEXT_FIELDS, And, Or, Phrase, Query, Regex, expand
from threadline.search.regex import required_literals

MAX_HISTORY_BYTES = 16 * 1024 * 1024
"""How many bytes of a home's history are searched, from its end."""

_HISTORY = "history.jsonl"
_PLAIN_WORD = re.compile("[0-9A-Za-z]{2,}")
# The first bytes (UTF-8) of characters that may match plain letters: letters with accents, and other forms of letters.
# Dashes, arrows, emoji and Chinese are not among them.
_FOLDING_LETTERS = re.compile(
    rb"[\xc2-\xcd]|\xe1[\xb4-\xbf]|\xe2[\x82-\x84\x91-\x93\xb1]|\xea|\xef[\xac\xbc\xbd]|\xf0\x9d|\xf0\x9f[\x84-\x87]"
)
_FIRST_WORDS = 8
_MAX_WITHOUT_SESSION = 10
_SESSION_KEY = b'"sessionId":"'


class DeletedPrompt(NamedTuple):
    """A prompt of the history, and its place there."""

    prompt: HistoryPrompt
    place: Place

    @property
    def document(self) -> Document:
        """The prompt as a document: an entry that the user wrote."""
        return Document(
            prompt=self.prompt.display or "",
            project=self.prompt.project,
            session=self.prompt.session_id,
            kind="user",
            timestamp=parse_timestamp(self.prompt.timestamp_ms),
        )


def find_deleted_prompts(index: Index, query: Query, *, bounded: bool = False) -> Iterator[DeletedPrompt]:
    """The prompts that match a query and whose sessions have no transcript any more, newest first.

    Old versions did not store a session id. Such a prompt counts as deleted if no prompt in the index begins with the
    same words. Since that check takes a while, only a few of them are checked if `bounded`.
    """
    required = list(_required_bytes(expand(query)))
    budget = TimeBudget()
    without_session = 0
    for home in index.home_paths():
        history = _load_history(index, Path(home) / _HISTORY)
        for deleted in history.candidates(required):
            session = (deleted.prompt.session_id or "").lower()
            if session in history.sessions or (not session and bounded and without_session >= _MAX_WITHOUT_SESSION):
                continue
            if matches(query, deleted.document, budget):
                without_session += not session
                if session or not _is_in_index(index, deleted.prompt.display or ""):
                    yield deleted


def _is_in_index(index: Index, text: str) -> bool:
    """Whether a prompt in the index begins with the same words. True if there are no words to compare."""
    words = " ".join(tokenize(normalize_text(text))[:_FIRST_WORDS])
    return not words or index.full_text.has(f'{{prompt}}:"{words}"')


def read_prompt(place: Place) -> str:
    """The full prompt at a place in a history; empty if it is no longer there."""
    with suppress(Error, OSError), os.fdopen(open_transcript(place.transcript), "rb") as file:
        file.seek(place.offset)
        prompt, _ = decode_content(file.read(place.length), HistoryPrompt, place)
        return (prompt.display or "") if prompt is not None else ""
    return ""


class _HistoryRows:
    """The rows of a history whose sessions have no transcript, as far as their bytes tell, newest first.

    `sessions` are the ids of sessions that have a transcript. All rows are searched at once, as one byte string: most
    queries ask for words that none of them contains.
    """

    def __init__(self, path: Path, rows: list[tuple[int, int, bytes]], sessions: set[str], *, is_whole: bool) -> None:
        self.sessions = sessions
        self._path = path
        self._rows = rows
        self._is_whole = is_whole
        lowered = [raw.lower() for _number, _offset, raw in rows]
        self._text = b"\n".join(lowered)
        self._starts = [0, *accumulate(len(raw) + 1 for raw in lowered)]
        # Rows with characters that may match other letters are always candidates.
        self._folding = [at for at, raw in enumerate(lowered) if _may_fold(raw)]

    def candidates(self, required: list[tuple[bytes, ...]]) -> Iterator[DeletedPrompt]:
        """The prompts whose bytes contain one string of each tuple."""
        for at in self._candidate_rows(required):
            number, offset, raw = self._rows[at]
            # If only the end of the file was read, line numbers are unknown.
            place = Place(str(self._path), number + 1 if self._is_whole else 0, offset, len(raw))
            prompt, _ = decode_content(raw, HistoryPrompt, place)
            if prompt is not None and prompt.display:
                yield DeletedPrompt(prompt, place)

    def _candidate_rows(self, required: list[tuple[bytes, ...]]) -> Iterable[int]:
        if not required:
            return range(len(self._rows))
        rows = set.intersection(*({at for part in parts for at in self._rows_with(part)} for parts in required))
        return sorted(rows.union(self._folding))

    def _rows_with(self, part: bytes) -> Iterator[int]:
        at = self._text.find(part)
        while at >= 0:
            row = bisect_right(self._starts, at) - 1
            yield row
            at = self._text.find(part, self._starts[row + 1])


def _may_fold(lowered: bytes) -> bool:
    return b"\\u" in lowered or (not lowered.isascii() and _FOLDING_LETTERS.search(lowered) is not None)


def _load_history(index: Index, path: Path) -> _HistoryRows:
    """The rows of a history, read once for several queries of an index: if nothing is found, others are tried."""
    with suppress(OSError, Error):
        status = path.lstat()
        read = partial(_read_history, path, status.st_size, index)
        return index.cached(("history", path), read, (status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return _HistoryRows(path, [], set(), is_whole=True)


def _read_history(path: Path, size: int, index: Index) -> _HistoryRows:
    sessions = index.session_ids()
    with os.fdopen(open_transcript(path, home=path.parent), "rb") as file:
        begin = file.seek(max(0, size - MAX_HISTORY_BYTES))
        data = file.read(MAX_HISTORY_BYTES)
    cut = data.find(b"\n") + 1 if begin else 0
    rows = []
    offset = begin + cut
    for number, raw in enumerate(data[cut:].split(b"\n")):
        if _session_of(raw) not in sessions:
            rows.append((number, offset, raw))
        offset += len(raw) + 1
    rows.reverse()
    return _HistoryRows(path, rows, sessions, is_whole=begin == 0)


def _session_of(line: bytes) -> str:
    at = line.rfind(_SESSION_KEY)
    if at < 0:
        return ""
    start = at + len(_SESSION_KEY)
    return line[start : line.find(b'"', start)].decode(errors="replace").lower()


def _required_bytes(query: Query) -> Iterator[tuple[bytes, ...]]:
    """For each term that must hold, byte strings of which a row must contain at least one."""
    for term in query.of if isinstance(query, And) else (query,):
        literals = [_longest_literal(option) for option in (term.of if isinstance(term, Or) else (term,))]
        if all(literals):
            yield tuple(literal.lower().encode() for literal in literals)


def _longest_literal(query: Query) -> str:
    """The longest run of plain letters and digits that a match must contain; empty if unknown."""
    words: list[str] = []
    if isinstance(query, Phrase):
        words = [token for token in query.tokens if token.isascii()]
    elif isinstance(query, Regex) and (query.field is None or query.field in TEXT_FIELDS):
        words = [word for literal in required_literals(query) for word in _PLAIN_WORD.findall(literal)]
    return max(words, key=len, default="")
