"""Sessions in memory, each read once and kept while people look at it, with everything their pages need.

A long session that is being written to is shown as it was a moment ago and read again in the background; a session
that took t seconds to read is not read again before 4t seconds have passed.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.archive import Archive
from threadline.errors import Error, NotFound
from threadline.find import session_transcripts
from threadline.load import Session, find_continuations, read
from threadline.model.calls import Call
from threadline.model.charges import EXACT
from threadline.model.entries import Entry
from threadline.model.homes import TranscriptKind
from threadline.model.places import MessageId
from threadline.model.session import Agent, Continuation
from threadline.model.session import Session as SessionSession
from threadline.model.times import zone_name
from threadline.model.totals import Sum
from threadline.render import agent_slug, anchor_of, foreign_transcript_slug, parse_anchor
from threadline.render.html import ConversationRenderer, MessageStats, Scene, StatsByMessage
from threadline.thread import ContextLimits, Notification, find_notifications, find_requests
from threadline.web.session.position import PositionIndex
from threadline.web.urls import SessionLinks, entry_anchor

if TYPE_CHECKING:
    from threadline.model.context import ContextLimit, ContextWindow
    from threadline.model.homes import Transcript
    from threadline.render import View

_MAX_DRAWINGS = 6


class AgentDrawing(Struct, frozen=True):
    """An agent drawn in a view, and where in it everything stands."""

    drawing: ConversationRenderer
    where: PositionIndex


class CachedSession:
    """A session that was read: `id` is what the archive calls it, `version` changes when its transcripts do.

    `size` is that of its transcripts.
    """

    def __init__(self, id_: str, session: Session, version: str, size: int) -> None:
        self.id = id_
        self.session = session
        self.version = version
        self.size = size
        self._lock = threading.RLock()
        self._drawn: OrderedDict[tuple[str | None, View, str], AgentDrawing] = OrderedDict()
        self._windows: dict[str | None, tuple[ContextWindow, ...]] = {}
        self._limits: dict[str | None, ContextLimit | None] = {}
        self._lines: dict[str | None, dict[int, Entry]] = {}
        self._spent: tuple[str, SessionSpending] | None = None

    @property
    def path(self) -> Path:
        """Its main transcript."""
        return self.session.path or Path()

    @cached_property
    def facts(self) -> SessionFacts:
        """What its entries have in common."""
        return session_facts(self.session)

    @cached_property
    def news(self) -> tuple[Notification, ...]:
        """What became of its background tasks."""
        return tuple(find_notifications(self.session))

    @cached_property
    def agents(self) -> dict[str, Agent]:
        """The agents by the names that addresses have for them."""
        return {agent_slug(agent.id): agent for agent in self.session.agents if agent.id is not None}

    @cached_property
    def _other_files(self) -> dict[str | None, str]:
        """Files besides its own that the main agent has rows from, by what stands for them in anchors."""
        entries = self.session.main.entries
        own = entries[0].line.transcript if entries else ""
        return {
            foreign_transcript_slug(path): path for path in {entry.line.transcript for entry in entries} if path != own
        }

    @cached_property
    def calls(self) -> dict[str, Call]:
        """The calls by their ids; of several with the same, the first."""
        return {str(call.id): call for call in reversed(self.session.calls)}

    @cached_property
    def continuations(self) -> tuple[Continuation, ...]:
        """What it continues, and what continues it."""
        return find_continuations(self.session)

    def agent(self, name: str | None) -> Agent:
        """The agent of that name; the main one for None.

        Raises:
            NotFound: there is none.
        """
        if name is None:
            return self.session.main
        found = self.agents.get(name)
        if found is None:
            raise NotFound("This session has no agent of that name.")
        return found

    def entry(self, anchor_: str) -> tuple[Entry, Agent]:
        """The entry that an anchor names, and whose it is; an item's anchor will do.

        Raises:
            NotFound: there is none.
        """
        parts = parse_anchor(entry_anchor(anchor_))
        if parts is None:
            raise NotFound("That is no anchor; write L120 for line 120, or AGENT.L7 for an agent's.")
        name, line = parts
        agent = self.session.main if name in self._other_files else self.agent(name)
        with self._lock:
            if name not in self._lines:
                own = self._other_files.get(name, agent.entries[0].line.transcript if agent.entries else "")
                self._lines[name] = {
                    entry.line.number: entry for entry in agent.entries if entry.line.transcript == own
                }
        found = self._lines[name].get(line)
        if found is not None:
            return found, agent
        inside = self._inside.get(line) if name is None else None
        if inside is None:
            raise NotFound(f"There is no line {line:,} in that transcript.")
        return inside

    @cached_property
    def _inside(self) -> dict[int, tuple[Entry, Agent]]:
        """Lines of the main transcript that are those of agents inside it."""
        main = self.session.main.entries
        own = main[0].line.transcript if main else str(self.session.path or "")
        return {
            entry.line.number: (entry, agent)
            for agent in self.session.agents
            for entry in agent.entries
            if entry.line.transcript == own
        }

    def drawn(self, name: str | None, view: View, links: SessionLinks, archive: Archive, zone: tzinfo) -> AgentDrawing:
        """An agent as a view wants it, with the times of a zone.

        Raises:
            NotFound: there is no such agent, or no such branch.
        """
        agent = self.agent(name)
        if view.branch is not None and not 1 <= view.branch <= len(agent.branches):
            raise NotFound(f"There is no branch {view.branch}; this conversation has {len(agent.branches)}.")
        key = (name, view, zone_name(zone))
        with self._lock:
            found = self._drawn.get(key)
            if found is None:
                scene = Scene(view, links, cwd=self.facts.project or "", zone=zone)
                figures = self.figures(name, archive)
                drawing = ConversationRenderer(self.session, agent, scene, figures=figures, news=self.news)
                found = self._drawn[key] = AgentDrawing(drawing, PositionIndex(drawing))
                while len(self._drawn) > _MAX_DRAWINGS:
                    self._drawn.popitem(last=False)
            self._drawn.move_to_end(key)
            return found

    def windows(self, name: str | None) -> tuple[ContextWindow, ...]:
        """The window that each request of an agent found."""
        with self._lock:
            if name not in self._windows:
                agent = self.agent(name)
                self._windows[name] = tuple(request.window for request in find_requests(agent.entries, agent.turns))
            return self._windows[name]

    def limit(self, name: str | None) -> ContextLimit | None:
        """How large the window of an agent may grow; None where no request tells how large it was."""
        with self._lock:
            if name not in self._limits:
                agent, windows = self.agent(name), self.windows(name)
                last = next((window for window in reversed(windows) if window.told), None)
                self._limits[name] = ContextLimits(agent, [agent.entries], windows).of(last.model) if last else None
            return self._limits[name]

    def spent(self, archive: Archive) -> SessionSpending:
        """What it spent, as far as the index knows by now: it may be a moment older than the session."""
        known = archive.open_index().generation if archive.is_indexed else ""
        with self._lock:
            if self._spent is None or self._spent[0] != known:
                self._spent = (known, session_spending(self.session, archive))
            return self._spent[1]

    def figures(self, name: str | None, archive: Archive) -> StatsByMessage:
        """Each message in numbers."""
        return self.spent(archive).figures(self.windows(name))


def turn_anchor(agent: Agent, number: int) -> str | None:
    """Where a turn begins."""
    turn = next((one for one in agent.turns if one.number == number), None)
    if turn is None or not turn.entries:
        return None
    return anchor_of(turn.act.entry if turn.act is not None else turn.entries[0], agent.id)


class SessionFacts(Struct, frozen=True):
    """When a session was, where, with which models and on which branches, each in the order of appearance."""

    started: datetime | None
    ended: datetime | None
    models: tuple[str, ...]
    cwds: tuple[str, ...]
    git_branches: tuple[str, ...]
    calls: int
    turns: int

    @property
    def project(self) -> str | None:
        """The directory that it began in."""
        return self.cwds[0] if self.cwds else None

    @property
    def wall_time(self) -> timedelta | None:
        """From its first to its last time."""
        return self.ended - self.started if self.started and self.ended else None


def session_facts(session: SessionSession) -> SessionFacts:
    """The facts of a session."""
    started, ended = session.span
    return SessionFacts(
        started=started,
        ended=ended,
        models=session.models,
        cwds=session.cwds,
        git_branches=session.git_branches,
        calls=sum(len(agent.calls) for agent in (session.main, *session.agents)),
        turns=sum(turn.act is not None for turn in session.turns),
    )


class SessionSpending(Struct, frozen=True):
    """What a session spent in all, agents included, and what each message cost as far as a price is known."""

    total: Sum
    amounts: Mapping[MessageId, Decimal]

    def figures(self, windows: Iterable[ContextWindow]) -> StatsByMessage:
        """The messages of some windows in numbers."""
        return {
            message: MessageStats(
                model=context_window.model,
                context=context_window.prompt if context_window.told else None,
                output=context_window.output,
                amount=self.amounts.get(message),
            )
            for context_window in windows
            if (message := context_window.message) is not None
        }


def session_spending(session: Session, archive: Archive) -> SessionSpending:
    """What a session spent."""
    if session.id is not None and archive.is_indexed:
        total = archive.ledger().where(session=str(session.id)).total
        known = archive.open_index().message_amounts(str(session.id))
        return SessionSpending(total, {MessageId(message): amount for message, amount in known.items()})
    ledger = session.ledger
    return SessionSpending(
        ledger.total, _sum_by_message((one.message, one.amount) for one in ledger if one.amount is not None)
    )


def _sum_by_message(rows: Iterable[tuple[str, Decimal]]) -> dict[MessageId, Decimal]:
    found: dict[MessageId, Decimal] = {}
    for message, amount in rows:
        id_ = MessageId(message)
        found[id_] = EXACT.add(found[id_], amount) if id_ in found else amount
    return found


MAX_BYTES = 128 * 1024 * 1024
"""Bytes of transcripts that are kept; in memory they take several times as much."""
_SLOW_SECONDS = 0.5
_REREAD_FACTOR = 4
"""What takes longer than a while to read is read again no sooner than after so many times as long."""
_PRELOAD_DELAY = 0.3
_LOG = logging.getLogger("threadline")


class SessionPlace(Struct, frozen=True):
    """What the archive calls a session, and where its main transcript lies."""

    id: str
    path: Path


class _CacheEntry(Struct):
    """A session that was read, when, and how long that took; `again` says that it is about to be read anew."""

    kept: CachedSession
    at: float
    seconds: float
    again: bool = False


class SessionCache:
    """Sessions in memory: those looked at last. Whoever asks for one that is being read waits for it.

    A long one that is being written is told as it was a moment ago; `changed` is called when it has been read again.
    """

    def __init__(self, most: int = MAX_BYTES, changed: Callable[[str], None] = lambda _session: None) -> None:
        self._most = most
        self._changed = changed
        self._read: OrderedDict[Path, _CacheEntry] = OrderedDict()
        self._places: dict[str, SessionPlace] = {}
        self._reading: dict[Path, threading.Lock] = {}
        self._lock = threading.Lock()

    def session(self, name: str, archive: Archive) -> CachedSession:
        """The session of that id, as its transcripts are now; the start of an id will do.

        Raises:
            NotFound: the archive lists none.
            Ambiguous: it lists several that begin so.
        """
        place, version, size = self._found(name, archive)
        known = self._known(place, version)
        return known if known is not None else self._now(place, version, size)

    def unread(self, name: str, archive: Archive, least: int) -> SessionPlace | None:
        """Where a session lies that has not been read in any version and is no smaller than that; None for any other.

        Raises:
            NotFound: the archive lists none.
        """
        place = self._found(name, archive)[0]
        with self._lock:
            if place.path in self._read:
                return None
        try:
            return place if place.path.stat().st_size >= least else None
        except OSError:
            return None

    def begin(self, place: SessionPlace) -> None:
        """Read a session before anybody asks for it; not at once, since a page is being sent."""
        self._later(place, _PRELOAD_DELAY)

    def _found(self, name: str, archive: Archive) -> tuple[SessionPlace, str, int]:
        place = self._places.get(name)
        told = _fingerprint(place.path) if place is not None else None
        if place is None or told is None:  # it may have moved
            place = self._places[name] = _find_session(name, archive)
            told = _fingerprint(place.path)
        if told is None:
            raise NotFound("The session's transcript is not there any more; `threadline` shows what there is.")
        return place, *told

    def _known(self, place: SessionPlace, version: str) -> CachedSession | None:
        """What is at hand and new enough."""
        with self._lock:
            found = self._read.get(place.path)
            if found is None:
                return None
            self._read.move_to_end(place.path)
            wait = found.at + _REREAD_FACTOR * found.seconds - monotonic()
            if found.kept.version != version:
                if found.seconds < _SLOW_SECONDS or wait <= 0:
                    return None
                if not found.again:
                    found.again = True
                    self._later(place, wait)
            return found.kept

    def _later(self, place: SessionPlace, seconds: float) -> None:
        timer = threading.Timer(seconds, self._again, (place,))
        timer.daemon = True
        timer.start()

    def _again(self, place: SessionPlace) -> None:
        told = _fingerprint(place.path)
        if told is None:
            return
        try:
            self._now(place, *told)
        except Error as error:
            _LOG.warning("threadline: %s", error)
        self._changed(place.id)

    def _now(self, place: SessionPlace, version: str, size: int) -> CachedSession:
        """Read it, or wait for who does."""
        path = place.path
        with self._lock:
            reading = self._reading.setdefault(path, threading.Lock())
        with reading:
            found = self._read.get(path)
            if found is not None and found.kept.version == version:
                return found.kept
            began = monotonic()
            with _garbage_collection_paused():
                kept = CachedSession(place.id, read(path, continued=False), version, size)
            with self._lock:
                self._read[path] = _CacheEntry(kept, monotonic(), monotonic() - began)
                self._read.move_to_end(path)
                while len(self._read) > 1 and sum(one.kept.size for one in self._read.values()) > self._most:
                    self._read.popitem(last=False)
            return kept


def _find_session(name: str, archive: Archive) -> SessionPlace:
    """Where a session lies: only what the archive lists is ever opened."""
    listed = [
        transcript
        for home in archive.found
        for transcript in home.transcripts
        if transcript.kind is TranscriptKind.MAIN
    ]
    exact = min((one for one in listed if one.session == name.lower()), key=_largest_first, default=None)
    if exact is None and (path := _find_by_content(name, archive)) is not None:
        return SessionPlace(name, path)
    found = exact or archive.transcript(name)
    if found.kind is TranscriptKind.MAIN and found.session is not None:
        return SessionPlace(str(found.session), found.path)
    return SessionPlace(
        f"agent-{found.agent}", found.path
    )  # one that lies beside the sessions is read as one of its own


def _find_by_content(name: str, archive: Archive) -> Path | None:
    """The largest transcript whose rows name that session though its path does not; only an index knows."""
    if not archive.is_indexed:
        return None
    return archive.open_index().find_transcript_naming(name)


def _largest_first(transcript: Transcript) -> tuple[int, int, str]:
    """Of several transcripts of one session, the largest first: others are copies of some of it."""
    return -transcript.size, -transcript.mtime_ns, str(transcript.path)


def _fingerprint(path: Path) -> tuple[str, int] | None:
    """What changes whenever a transcript of the session does, and how large they are; None where it is gone."""
    try:
        own = path.stat()
        below, beside = session_transcripts(path)
    except OSError:
        return None
    digest = hashlib.blake2b(f"{own.st_size} {own.st_mtime_ns} {own.st_ino}".encode(), digest_size=9)
    for one in (*below, *beside):
        digest.update(f"\0{one.path}\0{one.size} {one.mtime_ns}".encode(errors="surrogateescape"))
    return digest.hexdigest(), own.st_size + sum(one.size for one in below)


class _ActiveReaders:
    """How many are reading."""

    lock = threading.Lock()
    many = 0


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Reading makes objects by the hundred thousand, no rings of them, all to stay: looking for rings is time lost."""
    with _ActiveReaders.lock:
        _ActiveReaders.many += 1
        gc.disable()
    try:
        yield
    finally:
        with _ActiveReaders.lock:
            _ActiveReaders.many -= 1
            if not _ActiveReaders.many:
                gc.freeze()
                gc.enable()
