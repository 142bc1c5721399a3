"""Typed prompts of all projects, newest first, from `history.jsonl`, which Claude Code never deletes.

The file is read backwards, a row at a time, so the newest prompts of a file of any size cost only themselves.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from heapq import heappop, heappush, merge
from pathlib import Path

import msgspec
from msgspec import Struct

from threadline.errors import Error, NotFound
from threadline.model.homes import Found, TranscriptKind
from threadline.model.places import Place, Problem, ProblemKind, SessionId
from threadline.model.side_files import HistoryPrompt
from threadline.parse import MAX_LINE_LENGTH, decode_side_value, open_transcript

_HISTORY_FILE = "history.jsonl"
_BLOCK = 256 * 1024
# Sessions that run side by side write rows a little out of order: so many are held back to put that right.
_REORDER_WINDOW = 64
_NEVER = datetime.min.replace(tzinfo=UTC)
_DECODER = msgspec.json.Decoder(HistoryPrompt)


class TypedPrompt(Struct, frozen=True):
    """A prompt as it was typed.

    `session` is None in old rows, which do not name it; `gone` is then None, too: else it says whether the session's
    transcript has been deleted. `pasted` is how many texts and pictures were pasted into it.
    """

    timestamp: datetime | None
    project: str | None
    session: SessionId | None
    gone: bool | None
    text: str
    pasted: int
    home: Path


class PromptFilter(Struct, frozen=True):
    """Which prompts are wanted: those that fit all of these."""

    text: str | None = None
    project: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    gone: bool = False


class PromptHistory:
    """The prompts of all homes; what it has come by so far says why there may be none.

    `seen` is how many rows were read, `fitting` how many of them fit each thing that is wanted, taken alone.
    """

    def __init__(self, found: Sequence[Found], wanted: PromptFilter | None = None) -> None:
        self._found = found
        self._wanted = wanted or PromptFilter()
        self._text = (self._wanted.text or "").casefold()
        self._project = (self._wanted.project or "").casefold()
        self._sessions = {
            transcript.session
            for home in found
            for transcript in home.transcripts
            if transcript.kind is TranscriptKind.MAIN and transcript.session is not None
        }
        self.seen = 0
        self.match_counts = dict.fromkeys(("text", "project", "since", "until", "gone"), 0)
        self.newest: datetime | None = None
        self.problems: list[Problem] = []

    def prompts(self) -> Iterator[TypedPrompt]:
        """Those that are wanted, newest first, each as it is found."""
        streams = [self._of_home(one.home.path) for one in self._found]
        return filter(
            self._fits, merge(*streams, key=_sort_time, reverse=True) if len(streams) > 1 else _chain(streams)
        )

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
            prompt = self._decoded(raw, Place(str(path), 0, offset, len(raw)))
            if prompt is None:
                continue
            self.seen += 1
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

    def _decoded(self, raw: bytes, place: Place) -> HistoryPrompt | None:
        with suppress(msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return _DECODER.decode(raw)
        reading = decode_side_value(raw, HistoryPrompt, place)
        self.problems += reading.problems
        return reading.content if isinstance(reading.content, HistoryPrompt) else None

    def _fits(self, prompt: TypedPrompt) -> bool:
        wanted, when = self._wanted, prompt.timestamp
        self.newest = max(self.newest or _NEVER, when) if when is not None else self.newest
        fits = {
            "text": self._text in prompt.text.casefold(),
            "project": self._project in (prompt.project or "").casefold(),
            "since": wanted.since is None or (when is not None and when >= wanted.since),
            "until": wanted.until is None or (when is not None and when <= wanted.until),
            "gone": not wanted.gone or prompt.gone is True,
        }
        for name, one in fits.items():
            self.match_counts[name] += one
        return all(fits.values())


def _chain(streams: list[Iterator[TypedPrompt]]) -> Iterator[TypedPrompt]:
    for stream in streams:
        yield from stream


def _sort_time(prompt: TypedPrompt) -> datetime:
    return prompt.timestamp or _NEVER


def _restore_order(prompts: Iterable[TypedPrompt]) -> Iterator[TypedPrompt]:
    """The same, with rows that stand a little out of order put right; one without a time stays where it stands."""
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
    """The lines of a file that hold anything, the last one first, each with where it begins.

    Of a line too long to be decoded, its last bytes alone are given: they are no row, and say so.
    """
    descriptor = open_transcript(path)
    try:
        at = os.fstat(descriptor).st_size
        pieces: list[bytes] = []
        held = 0
        while at > 0:
            start = max(0, at - _BLOCK)
            block = _read(descriptor, start, at)
            at = start
            *before, last = block.split(b"\n") if b"\n" in block else [block]
            if not before:
                held += len(last)
                pieces = [*pieces, last] if held <= MAX_LINE_LENGTH else pieces[:1]
                continue
            end = start + len(block)
            yield from _unless_blank(last + b"".join(reversed(pieces)), end - len(last))
            end -= len(last) + 1
            pieces, held = [before[0]], len(before[0])
            for line in reversed(before[1:]):
                yield from _unless_blank(line, end - len(line))
                end -= len(line) + 1
        yield from _unless_blank(b"".join(reversed(pieces)), 0)
    finally:
        os.close(descriptor)


def _unless_blank(line: bytes, offset: int) -> Iterator[tuple[bytes, int]]:
    if line.strip(b"\0 \t\r"):
        yield line, offset


def _read(descriptor: int, start: int, stop: int) -> bytes:
    os.lseek(descriptor, start, os.SEEK_SET)
    data = os.read(descriptor, stop - start)
    while len(data) < stop - start and (more := os.read(descriptor, stop - start - len(data))):
        data += more
    return data
