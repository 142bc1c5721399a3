"""Server-sent events that tell open pages which sessions have changed.

An event says that something was written, never what. One thread follows the homes for all listeners, and runs only
while there are listeners.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from itertools import islice
from typing import TYPE_CHECKING

from starlette.responses import Response, StreamingResponse

from threadline.errors import Error
from threadline.find import HomeWatcher
from threadline.parse import heads
from threadline.web.request import parse_number
from threadline.web.urls import unescape_segment

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request

    from threadline.model.homes import Home

POLL_SECONDS = 0.2
"""Seconds between two polls, and between two events for the same session."""
_KEEPALIVE_SECONDS = 15.0
_TIME_DIGITS = 15
_LOGGED_OUT = "event: logged-out\ndata: \n\n"
_MAX_HEADS = 40
"""How many entries of a transcript may come before the first that names its session."""
_LOG = logging.getLogger("threadline")


class _Listener:
    """An open page, and the sessions for which it has not been sent an event yet.

    `since` is a time in seconds since 1970: the page shows what was written before.
    """

    def __init__(self, session: str | None, since: float | None = None) -> None:
        self.session = session
        self.since = since
        self._loop = asyncio.get_running_loop()
        self._pending: dict[str, None] = {}
        self._wake = asyncio.Event()
        self.is_ended = False

    def notify(self, sessions: Sequence[str]) -> None:
        """Report sessions that have changed. Called from the follower's thread."""
        own = [session for session in sessions if self.session is None or session == self.session]
        if own:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._add, own)

    def start(self, last_change: float) -> None:
        """From now on no change is missed. An earlier one may have been; then the page is sent a first event."""
        if self.since is None or last_change >= self.since:
            self.notify([self.session or ""])

    def end(self) -> None:
        """End the stream."""
        self.is_ended = True
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._wake.set)

    def _add(self, sessions: Sequence[str]) -> None:
        self._pending.update(dict.fromkeys(sessions))
        self._wake.set()

    async def events(self) -> AsyncIterator[str]:
        """The events until the end; after a silence, a comment that keeps the connection open."""
        yield "retry: 1000\n\n"
        while not self.is_ended:
            try:
                await asyncio.wait_for(self._wake.wait(), _KEEPALIVE_SECONDS)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            self._wake.clear()
            pending, self._pending = self._pending, {}
            for session in pending:
                yield f"data: {json.dumps({'session': session})}\n\n"
            if not self.is_ended:
                await asyncio.sleep(POLL_SECONDS)  # changes meanwhile become one event


class Live:
    """Follows the homes while pages listen. `on_change` is called before pages hear of a change."""

    def __init__(self, homes: Sequence[Home], on_change: Callable[[], None] = lambda: None) -> None:
        self._homes = homes
        self._on_change = on_change
        self._listeners: set[_Listener] = set()
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._last_change = 0.0
        self._is_stopped = False

    async def respond(self, request: Request, is_allowed: Callable[[], bool]) -> Response:
        """The stream of events for a page; the parameter `session` limits it to one session.

        `since` is when the page was computed, in milliseconds since 1970. Without it, the page gets a first event.
        The stream ends once `is_allowed` says that the browser has lost access.
        """
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        session = _id_in_name(request.query_params.get("session") or "") or None
        since = parse_number(request.query_params.get("since") or "", digits=_TIME_DIGITS)
        stream = self.listen_while(is_allowed, session, since / 1000 if since is not None else None)
        return StreamingResponse(stream, media_type="text/event-stream")

    async def listen_while(
        self, is_allowed: Callable[[], bool], session: str | None, since: float | None = None
    ) -> AsyncGenerator[str]:
        """The events until the browser loses access, and then one that says so, even if nothing else happens."""
        async with aclosing(self.listen(session, since)) as events:
            async for event in events:
                if not is_allowed():
                    yield _LOGGED_OUT
                    return
                yield event

    @property
    def is_following(self) -> bool:
        """Whether the thread that follows the homes is running."""
        return self._worker is not None

    async def listen(self, session: str | None = None, since: float | None = None) -> AsyncGenerator[str]:
        """The events of a session, or of all sessions, for a page that shows what was written before a time."""
        listener = _Listener(session, since)
        self._add(listener)
        try:
            async for event in listener.events():
                yield event
        finally:
            with self._lock:
                self._listeners.discard(listener)

    def notify(self, name: str) -> None:
        """Send an event for a session, by its name in URLs, to the pages that listen."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener.notify([_id_in_name(name)])

    def stop(self) -> None:
        """End all streams and the thread."""
        with self._lock:
            self._is_stopped = True
            listeners = list(self._listeners)
        for listener in listeners:
            listener.end()

    def _add(self, listener: _Listener) -> None:
        with self._lock:
            if self._is_stopped:
                listener.end()
                return
            self._listeners.add(listener)
            if self._worker is None:
                self._worker = threading.Thread(target=self._follow, name="threadline-live", daemon=True)
                self._worker.start()
            else:
                listener.start(self._last_change)

    def _follow(self) -> None:
        try:
            watcher = HomeWatcher(self._homes)
            self._last_change = max((transcript.mtime_ns for transcript in watcher.transcripts), default=0) / 1e9
            for listener in self._current_listeners():
                listener.start(self._last_change)
            pause = threading.Event()
            while listeners := self._current_listeners():
                sessions = _changed_sessions(watcher)
                if sessions:
                    self._last_change = time.time()
                    self._on_change()
                for listener in listeners if sessions else ():
                    listener.notify(sessions)
                pause.wait(POLL_SECONDS)
        except Exception:  # noqa: BLE001 - a page without updates is still a page
            _LOG.exception("threadline: cannot follow the homes any longer; open pages will not update.")
            with self._lock:
                self._worker = None

    def _current_listeners(self) -> list[_Listener]:
        """The listeners. If there are none, the thread counts as ended, so that the next listener starts another."""
        with self._lock:
            if not self._listeners or self._is_stopped:
                self._worker = None
                return []
            return list(self._listeners)


def _id_in_name(name: str) -> str:
    """The id of a session, by which events name it. Its name in URLs begins with a folder if others have the same id.

    >>> _id_in_name("-work-app~2F5E55")
    '5e55'
    """
    return unescape_segment(name).rpartition("/")[2].lower()


def _changed_sessions(watcher: HomeWatcher) -> list[str]:
    """The sessions whose transcripts were written, cut, replaced, deleted or restored since the last poll."""
    sessions = (change.transcript.session or _session_inside(change.transcript.path) for change in watcher.poll())
    return list(dict.fromkeys(str(session).lower() for session in sessions if session))


def _session_inside(path: Path) -> str | None:
    """The session that an agent's transcript beside the sessions names (Claude Code 2.0.28 to 2.1.1)."""
    with suppress(Error):
        return next((head.session_id for head in islice(heads(path), _MAX_HEADS) if head.session_id), None)
    return None
