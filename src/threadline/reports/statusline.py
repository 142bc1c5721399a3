"""What a session and the last hours cost, for a status line that is redrawn on every prompt.

The cost depends on what was done recently, not on the size of the home: only the session's own transcripts and those
that changed since are read. Reading other sessions stops when the time is up, and the answer says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic

import msgspec
from msgspec import Struct

from threadline.account import Ledger, Rates, ledger_from_sightings, with_origin
from threadline.errors import Error
from threadline.find import (
    OutOfTime,
    find_main_transcript,
    home_of_transcript,
    is_transcript_name,
    recent_transcripts,
    session_of_path,
    session_transcripts,
    sibling_transcripts,
    transcript_at,
)
from threadline.home_files import resolve_in_home
from threadline.model.homes import Home, Homes, Transcript
from threadline.model.ledger import Sum, UsageWindow
from threadline.model.places import Place, Problem, ProblemKind
from threadline.model.times import parse_timestamp
from threadline.model.usage import Sighting, TranscriptSightings
from threadline.parse import LineNumbers, is_compacted_at_end, read_first_lines, read_sightings, read_sightings_since

DEFAULT_SECONDS = 0.3
"""The default time in seconds for reading other sessions' transcripts."""


class SessionRef(Struct, frozen=True):
    """A session: its id, its main transcript and its home, if they are known."""

    session: str | None = None
    main: Path | None = None
    home: Home | None = None


class RecentUsage(Struct, frozen=True):
    """A session and everything that was spent recently.

    `ledger` has every charge that was read: all of the session's, and others' since `since`. `not_read` counts the
    changed transcripts for which there was no time; `is_listed` says whether there was time to list them all. `last` is
    the last request of the session's main agent, None if a compaction came after it. `has_all` says that the ledger has
    every charge, also from before `since`.
    """

    named: SessionRef
    since: datetime
    ledger: Ledger
    last: Sighting | None
    not_read: int = 0
    is_listed: bool = True
    has_all: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether everything that changed since then was read."""
        return self.is_listed and not self.not_read and not self.ledger.problems

    def of_session(self) -> Sum | None:
        """Return what the session cost, agents included; None if none of its transcripts could be read."""
        if self.named.main is None:
            return None
        return self.ledger.where(session=self.named.session).total

    def within(self, begins: datetime, ends: datetime) -> Sum:
        """Return what was spent from one moment up to another, but nothing before `since`."""
        return self.ledger.where(since=begins, until=ends - timedelta(microseconds=1)).total

    def window(self, now: datetime) -> tuple[UsageWindow | None, bool]:
        """Return the five-hour window that is running, and whether that is certain."""
        return self.ledger.current_window(since=self.since, now=now)


def resolve_session(path: str | None, session: str | None, homes: Iterable[Home]) -> SessionRef:
    """Return the session of a main transcript, or else of an id.

    The id wins over the path: some versions of Claude Code passed the path of another session.
    """
    main = _real_transcript(path) if path and "\0" not in path and is_transcript_name(path) else None
    if session is not None and (not session or os.path.basename(session) != session or "\0" in session):  # noqa: PTH119 - text
        session = None
    if main is not None and session is not None and main.stem.lower() != session.lower():
        beside = main.with_name(f"{session}.jsonl")
        main = beside if os.path.isfile(beside) or not os.path.isfile(main) else main  # noqa: PTH113 - Path's raises
        session = session if main is beside else None
    if main is None and session is not None:
        main = next((match for home in homes if (match := find_main_transcript(session, home)) is not None), None)
    if main is None or not os.path.isfile(main):  # noqa: PTH113 - the same
        return SessionRef(session, None, _home_of_transcript(main))
    return SessionRef(session_of_path(main) or session or main.stem, main, _home_of_transcript(main))


def _real_transcript(path: str) -> Path | None:
    """Return the real path of a transcript; None if a link leads out of its home."""
    try:
        return Path(resolve_in_home(path))
    except OSError:
        return None


def read_recent_usage(
    named: SessionRef, homes: Iterable[Home], rates: Rates, *, since: datetime, seconds: float = DEFAULT_SECONDS
) -> RecentUsage:
    """Read a session, and for at most `seconds` what changed in homes since a moment."""
    searched = Homes(homes)
    reader = _RecentReader(f"{since:%Y-%m-%dT%H:%M:%S}", searched)
    last = reader.session(named) if named.main is not None else None
    until = monotonic() + seconds
    is_complete, not_read = reader.others(searched, since, lambda: monotonic() >= until)
    ledger = ledger_from_sightings(reader.sightings, rates, reader.problems)
    return RecentUsage(named, since, ledger, last, not_read, is_complete)


class _RecentReader:
    """Reads transcripts and collects their sightings."""

    def __init__(self, since: str, homes: Homes) -> None:
        self.since = since
        self._homes = homes
        self.sightings: list[Sighting] = []
        self.problems: list[Problem] = []
        self._read: set[str] = set()

    def session(self, named: SessionRef) -> Sighting | None:
        """Read a whole session; return its main agent's last request."""
        main = named.main or Path()
        home = named.home or Home(main.parent, "path")
        ids, began_ns = _read_beginning(main)
        last: Sighting | None = None
        with suppress(OSError):
            transcript = transcript_at(main, home, self._homes)
            own = self._add(transcript, read_sightings(transcript))
            last = next((sighting for sighting in reversed(own) if is_main_request(sighting)), None)
        below, beside = session_transcripts(main, home, self._homes)
        # Agents' transcripts in the same folder may belong to other sessions; those older than this one do.
        newer = [agent for agent in beside if agent.mtime_ns >= began_ns]
        for transcript in (*below, *(t for t in newer if _mentions_session(t.path, named.session or ""))):
            self._add(transcript, read_sightings(transcript))
        self._read_related(main, home, ids, began_ns)
        return last if last is not None and not is_compacted_at_end(main) else None

    def others(self, homes: Iterable[Home], since: datetime, too_late: Callable[[], bool]) -> tuple[bool, int]:
        """Read what changed. Return whether all of it was listed, and how many transcripts were not read."""
        is_complete = True
        changed: dict[str, Transcript] = {}
        try:
            for home in homes:
                for transcript in recent_transcripts(home, int(since.timestamp() * 1e9), too_late=too_late):
                    changed.setdefault(os.fspath(transcript.path), transcript)
        except OutOfTime:
            is_complete = False
        unread = [transcript for path, transcript in changed.items() if path not in self._read]
        unread.sort(key=lambda transcript: transcript.mtime_ns)
        while unread and not too_late():
            transcript = unread.pop()
            self._add(transcript, read_sightings_since(transcript, self.since))
        return is_complete, len(unread)

    def _read_related(self, main: Path, home: Home, ids: set[str], began_ns: int) -> None:
        """Read sessions that begin like this one: a fork or a continuation copies what the other spent."""
        for sibling in sibling_transcripts(main, home, self._homes):
            is_session = sibling.is_main and sibling.mtime_ns >= began_ns
            is_read = os.fspath(sibling.path) in self._read
            if is_session and not is_read and ids & _read_beginning(sibling.path)[0]:
                self._add(sibling, read_sightings(sibling))

    def _add(self, transcript: Transcript, read: TranscriptSightings) -> list[Sighting]:
        self._read.add(os.fspath(transcript.path))
        if read.problem is not None:
            place = Place(os.fspath(transcript.path))
            self.problems.append(Problem(ProblemKind.UNREADABLE, place, read.problem, recovered=False))
        sightings = with_origin(read, transcript, transcript.folder, LineNumbers(os.fspath(transcript.path)))
        self.sightings += sightings
        return sightings


def _mentions_session(path: Path, session: str) -> bool:
    needle = session.encode(errors="replace")
    try:
        return any(needle in line for line in read_first_lines(path))
    except Error:
        return False


class _Message(Struct, gc=False):
    id: str | None = None


class _Row(Struct, gc=False):
    uuid: str | None = None
    message: _Message | None = None
    timestamp: str | None = None


_decode = msgspec.json.Decoder(_Row).decode


def _read_beginning(path: Path) -> tuple[set[str], int]:
    """Return the ids of a transcript's first rows and messages, and their first time in nanoseconds since 1970."""
    rows = list(_first_rows(path))
    times = [moment for row in rows if (moment := parse_timestamp(row.timestamp)) is not None]
    ids = {row.uuid for row in rows if row.uuid} | {row.message.id for row in rows if row.message and row.message.id}
    return ids, int(min(times).timestamp() * 1e9) if times else 0


def _first_rows(path: Path) -> Iterator[_Row]:
    try:
        lines = read_first_lines(path)
    except Error:
        return
    for line in lines:
        with suppress(ValueError, RecursionError):  # the last may be cut
            yield _decode(line)


def is_main_request(sighting: Sighting) -> bool:
    """Whether it is a request of the session's main agent that sent anything."""
    return sighting.origin.agent is None and not sighting.is_repeat and any(sighting.sent)


def _home_of_transcript(main: Path | None) -> Home | None:
    """Return the home of a main transcript; None if it is not in one."""
    home = home_of_transcript(main) if main is not None else None
    return Home(home, "path") if home is not None else None


def homes_including(named: SessionRef, homes: Iterable[Home]) -> Iterator[Home]:
    """Yield the homes, preceded by the session's own if it is not among them."""
    listed = list(homes)
    if named.home is not None and all(home.path != named.home.path for home in listed):
        yield named.home
    yield from listed
