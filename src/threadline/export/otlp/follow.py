"""Follow running sessions, and return their spans when they have finished.

A span is sent once, when it will not change any more: a message after the next entry, a call with its result. The main
agent's span is sent when its session has been idle for a while, because transcripts do not say when a session ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from threadline.archive import Archive
from threadline.errors import BadQuery, NotFound
from threadline.export.otlp.reader import Trace, TraceOptions, TraceReader
from threadline.export.otlp.sender import digest_spans
from threadline.export.otlp.spans import Span
from threadline.model.entries import Entry
from threadline.model.homes import Transcript
from threadline.watch import Follower

_MAX_SHARE = 10
"""A session is read again at the earliest after this many times the seconds that reading it took."""


class _FollowedSession:
    """A session that is being followed: when it changed and was read, and the digests of the spans that were sent.

    It may continue after it has ended, so the digests are kept as long as it is followed.
    """

    def __init__(self, now: float) -> None:
        self.changed = now
        self.next_read = now
        self.is_stale = True
        self.has_ended = False
        self.sent: dict[bytes, bytes] = {}


class TraceFollower:
    """Returns the spans of followed sessions as they finish. The archive is compared with its files at each read.

    A session counts as ended after `idle` seconds without a new entry.
    """

    def __init__(
        self,
        archive: Archive,
        follower: Follower,
        options: TraceOptions,
        *,
        idle: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._archive = archive
        self._follower = follower
        self._options = options
        self._idle = idle
        self._clock = clock
        self._sessions: dict[Path, _FollowedSession] = {}

    def poll(self) -> Iterator[Trace]:
        """Yield the spans that finished since the last poll, by session."""
        for main in dict.fromkeys(self._main_of(transcript, entry) for transcript, entry in self._follower.poll()):
            session = self._sessions.setdefault(main, _FollowedSession(self._clock()))
            session.changed, session.is_stale, session.has_ended = self._clock(), True, False
        for main, session in list(self._sessions.items()):
            now = self._clock()
            if not session.has_ended and now - session.changed >= self._idle:
                session.has_ended = True
                yield from self._read(main, session)
            elif session.is_stale and now >= session.next_read:
                yield from self._read(main, session)

    def finish(self) -> Iterator[Trace]:
        """Yield what was not sent of all sessions, because following ends."""
        while self._sessions:
            main, session = self._sessions.popitem()
            if not session.has_ended:
                session.has_ended = True
                yield from self._read(main, session)

    def _read(self, main: Path, session: _FollowedSession) -> Iterator[Trace]:
        started = self._clock()
        self._archive.close()
        try:
            is_orphan = main.name.startswith("agent-")
            trace = TraceReader(self._archive, self._options, None if is_orphan else [main]).read(main)
        except (NotFound, BadQuery):  # deleted meanwhile, or an agent whose session is in another folder
            self._sessions.pop(main, None)
            return
        spans = [span for span in trace.spans if self._is_new(span, session)]
        session.is_stale = False
        session.next_read = self._clock() + _MAX_SHARE * (self._clock() - started)
        if spans:
            yield Trace(trace.session, trace.path, spans)

    def _is_new(self, span: Span, session: _FollowedSession) -> bool:
        """Whether a span was not sent before, and has finished. If the session has ended, all of its spans have."""
        if not span.is_finished and not session.has_ended:
            return False
        digest = bytes.fromhex(digest_spans([span]))
        is_new = session.sent.get(span.span_id) != digest
        session.sent[span.span_id] = digest
        return is_new

    def _main_of(self, transcript: Transcript, entry: Entry) -> Path:
        """The main transcript of the session that a transcript belongs to; itself if there is none."""
        session = transcript.session or entry.session_id
        if transcript.is_main or session is None:
            return transcript.path
        folders = (transcript.path.parent, *(path.parent for path in transcript.path.parents if path.name == session))
        mains = (folder / f"{session}.jsonl" for folder in folders)
        return next((main for main in mains if main.is_file()), transcript.path)
