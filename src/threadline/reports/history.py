"""Typed prompts of all projects, newest first, from `history.jsonl`, which Claude Code never deletes.

The file is read backwards, a row at a time, so the newest prompts of a file of any size cost only themselves.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from heapq import heappop, heappush, merge
from itertools import islice
from pathlib import Path

from msgspec import Struct

from threadline.errors import Error, NotFound
from threadline.files import read_at
from threadline.home_files import open_transcript
from threadline.model.homes import Found, TranscriptKind
from threadline.model.places import Place, Problem, ProblemKind, SessionId
from threadline.model.side_files import HistoryPrompt
from threadline.model.tables import Columns, Table, struct_columns
from threadline.model.text import count
from threadline.model.times import FIRST_MOMENT
from threadline.parse import MAX_LINE_LENGTH, decode_content

_HISTORY_FILE = "history.jsonl"
_BLOCK = 256 * 1024
_MAX_REPR = 60
# Sessions that run in parallel write rows a little out of order. This many are held back to sort them.
_REORDER_WINDOW = 64


class TypedPrompt(Struct, frozen=True):
    """A prompt as it was typed.

    `session` is None in old rows, which do not name it, and then `gone` is None. Otherwise `gone` says whether the
    session's transcript has been deleted. `pasted` counts the texts and images pasted into it.
    """

    timestamp: datetime | None
    project: str | None
    session: SessionId | None
    gone: bool | None
    text: str
    pasted: int
    home: Path

    def __repr__(self) -> str:
        when = f"{self.timestamp:%Y-%m-%d %H:%M} UTC" if self.timestamp is not None else "no time"
        return f"TypedPrompt({when}, {self.text[:_MAX_REPR]!r}, session {self.session!r})"


class PromptFilter(Struct, frozen=True):
    """Which prompts to return: those that match all fields that are set."""

    text: str | None = None
    project: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    gone: bool = False
    limit: int | None = None


class PromptHistory(Table[TypedPrompt]):
    """The prompts of all homes. Iterating reads them, newest first; after that, its counters say why there may be none.

    `rows_read` counts the rows that were read. `match_counts` counts how many of them match each single field of the
    filter. Reading again begins at zero.
    """

    noun = "prompt"
    html_columns = ("timestamp", "session", "project", "gone", "text")

    def __init__(self, found: Sequence[Found], filter_: PromptFilter | None = None) -> None:
        self._found = found
        self._filter = filter_ or PromptFilter()
        self._text = (self._filter.text or "").casefold()
        self._project = (self._filter.project or "").casefold()
        self._sessions = {
            transcript.session.lower()
            for home in found
            for transcript in home.transcripts
            if transcript.kind is TranscriptKind.MAIN and transcript.session is not None
        }
        self._reset()

    def _reset(self) -> None:
        self.rows_read = 0
        self.match_counts = dict.fromkeys(("text", "project", "since", "until", "gone"), 0)
        self.newest: datetime | None = None
        self.problems: list[Problem] = []

    @property
    def columns(self) -> Columns:
        """The names and types of the columns of a prompt."""
        return struct_columns(TypedPrompt)

    def __iter__(self) -> Iterator[TypedPrompt]:
        return self.prompts()

    def __repr__(self) -> str:
        return f"PromptHistory({self._describe()})"

    def _describe(self) -> str:
        return f"prompts typed in {count(len(self._found), 'home')}"

    def prompts(self) -> Iterator[TypedPrompt]:
        """Yield the matching prompts, newest first, as they are read."""
        self._reset()
        streams = [self._of_home(home.home.path) for home in self._found]
        rows = merge(*streams, key=_sort_time, reverse=True)
        return islice(filter(self._matches, rows), self._filter.limit)

    def _of_home(self, home: Path) -> Iterator[TypedPrompt]:
        path = home / _HISTORY_FILE
        try:
            yield from _restore_order(self._rows(home, path))
        except NotFound:
            return
        except (Error, OSError) as error:
            self.problems.append(Problem(ProblemKind.UNREADABLE, Place(str(path)), str(error), recovered=False))

    def _rows(self, home: Path, path: Path) -> Iterator[TypedPrompt]:
        for raw, offset in _lines_backwards(path):
            prompt, defects = decode_content(raw, HistoryPrompt, Place(str(path), 0, offset, len(raw)))
            self.problems += defects
            if prompt is None:
                continue
            self.rows_read += 1
            session = prompt.session_id
            yield TypedPrompt(
                prompt.timestamp,
                prompt.project,
                session,
                None if not session else session.lower() not in self._sessions,
                prompt.display or "",
                len(prompt.pasted_contents or ()),
                home,
            )

    def _matches(self, prompt: TypedPrompt) -> bool:
        filter_, when = self._filter, prompt.timestamp
        self.newest = max(self.newest or FIRST_MOMENT, when) if when is not None else self.newest
        matches = {
            "text": self._text in prompt.text.casefold(),
            "project": self._project in (prompt.project or "").casefold(),
            "since": filter_.since is None or (when is not None and when >= filter_.since),
            "until": filter_.until is None or (when is not None and when <= filter_.until),
            "gone": not filter_.gone or prompt.gone is True,
        }
        for name, is_match in matches.items():
            self.match_counts[name] += is_match
        return all(matches.values())


def _sort_time(prompt: TypedPrompt) -> datetime:
    return prompt.timestamp or FIRST_MOMENT


def _restore_order(prompts: Iterable[TypedPrompt]) -> Iterator[TypedPrompt]:
    """Yield prompts sorted, if they are only a little out of order. One without a time keeps its position."""
    waiting: list[tuple[float, int, TypedPrompt]] = []
    last = float("inf")
    for number, prompt in enumerate(prompts):
        last = prompt.timestamp.timestamp() if prompt.timestamp is not None else last
        heappush(waiting, (-last, number, prompt))
        if len(waiting) > _REORDER_WINDOW:
            yield heappop(waiting)[2]
    while waiting:
        yield heappop(waiting)[2]


def _lines_backwards(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield the non-blank lines of a file, the last one first, each with its offset.

    For a line too long to be decoded, only its last bytes are returned: they are not valid JSON, and are reported.
    """
    descriptor = open_transcript(path)
    try:
        at = os.fstat(descriptor).st_size
        pieces: list[bytes] = []
        length = 0
        while at > 0:
            start = max(0, at - _BLOCK)
            block = read_at(descriptor, start, at)
            at = start
            *before, last = block.split(b"\n") if b"\n" in block else [block]
            if not before:
                length += len(last)
                pieces = [*pieces, last] if length <= MAX_LINE_LENGTH else pieces[:1]
                continue
            end = start + len(block)
            yield from _unless_blank(last + b"".join(reversed(pieces)), end - len(last))
            end -= len(last) + 1
            pieces, length = [before[0]], len(before[0])
            for line in reversed(before[1:]):
                yield from _unless_blank(line, end - len(line))
                end -= len(line) + 1
        yield from _unless_blank(b"".join(reversed(pieces)), 0)
    finally:
        os.close(descriptor)


def _unless_blank(line: bytes, offset: int) -> Iterator[tuple[bytes, int]]:
    if line.strip(b"\0 \t\r"):
        yield line, offset
