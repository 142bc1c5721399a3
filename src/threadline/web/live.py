"""Server-sent events that tell open pages which sessions have changed.

Events say that something was written, never what. One follower serves all listeners, and runs only while there are
some.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import Response, StreamingResponse

from threadline.errors import Error
from threadline.parse import heads
from threadline.watch import HomeWatcher

if TYPE_CHECKING:
    from starlette.requests import Request

    from threadline.model.homes import Home

POLL = 0.2
"""Seconds between two looks, and between two notices of the same session."""
_KEEPALIVE_SECONDS = 15.0
# How many entries of a transcript may come before the first that names its session.
_MAX_HEADS = 40
_LOG = logging.getLogger("threadline")


class _Listener:
    """A page that listens: the sessions that it has yet to be told of."""

    def __init__(self, session: str | None) -> None:
        self.session = session
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, None] = {}
        self._rung = asyncio.Event()
        self.is_ended = False

    def tell(self, sessions: Sequence[str]) -> None:
        """Something was written for these; called from the follower's thread."""
        chosen = [session for session in sessions if self.session is None or session == self.session]
        if chosen:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._ring, chosen)

    def begin(self) -> None:
        """From now on nothing is missed; what was written before may have been."""
        self.tell([self.session or ""])

    def end(self) -> None:
        """There is nothing more to come."""
        self.is_ended = True
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._rung.set)

    def _ring(self, sessions: Sequence[str]) -> None:
        self._waiting.update(dict.fromkeys(sessions))
        self._rung.set()

    async def notices(self) -> AsyncIterator[str]:
        """The events, until the end; where there are none for a while, a comment that keeps the line open."""
        yield "retry: 1000\n\n"
        while not self.is_ended:
            try:
                await asyncio.wait_for(self._rung.wait(), _KEEPALIVE_SECONDS)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            self._rung.clear()
            told, self._waiting = self._waiting, {}
            for session in told:
                yield f"data: {json.dumps({'session': session})}\n\n"
            if not self.is_ended:
                await asyncio.sleep(POLL)  # what comes meanwhile is told once


class Live:
    """Follows the homes while anybody listens."""

    def __init__(self, homes: Sequence[Home]) -> None:
        self._homes = homes
        self._listeners: set[_Listener] = set()
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._is_stopped = False

    async def answer(self, request: Request) -> Response:
        """The stream of events for a page; `session` narrows it to one."""
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        session = (request.query_params.get("session") or "").lower() or None
        return StreamingResponse(self.listen(session), media_type="text/event-stream")

    @property
    def is_following(self) -> bool:
        """Whether the homes are being looked at."""
        return self._worker is not None

    async def listen(self, session: str | None = None) -> AsyncGenerator[str]:
        """The events of a session, or of all."""
        listener = _Listener(session)
        self._add(listener)
        try:
            async for notice in listener.notices():
                yield notice
        finally:
            with self._lock:
                self._listeners.discard(listener)

    def tell(self, session: str) -> None:
        """Say that there is news of a session, which somebody else knows of."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener.tell([session])

    def stop(self) -> None:
        """End all streams, and the follower."""
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
                listener.begin()

    def _follow(self) -> None:
        try:
            watcher = HomeWatcher(self._homes)
            for listener in self._now_listening():
                listener.begin()
            pause = threading.Event()
            while listeners := self._now_listening():
                sessions = _changed_sessions(watcher)
                for listener in listeners if sessions else ():
                    listener.tell(sessions)
                pause.wait(POLL)
        except Exception:  # noqa: BLE001 - a page without news is still a page
            _LOG.exception("threadline: following has ended; pages will not tell of news.")
            with self._lock:
                self._worker = None

    def _now_listening(self) -> list[_Listener]:
        """Who listens; where nobody does, the worker is gone."""
        with self._lock:
            if not self._listeners or self._is_stopped:
                self._worker = None
                return []
            return list(self._listeners)


def _changed_sessions(watcher: HomeWatcher) -> list[str]:
    """Return the sessions whose transcripts were written, cut, replaced, deleted or restored since the last poll."""
    sessions = (change.transcript.session or _session_inside(change.transcript.path) for change in watcher.poll())
    return list(dict.fromkeys(str(session).lower() for session in sessions if session))


def _session_inside(path: Path) -> str | None:
    """Return the session that an agent's transcript beside the sessions names (2.0.28 to 2.1.1)."""
    with suppress(Error):
        return next((head.session_id for head in islice(heads(path), _MAX_HEADS) if head.session_id), None)
    return None
