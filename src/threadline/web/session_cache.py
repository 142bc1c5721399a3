"""The cache of sessions: each is read once and kept in memory with everything that its pages need.

**What is valid for how long.** A cached session and everything derived from it (facts, drawings, positions, context
windows) are valid for one *fingerprint* of its files: size, times and inode of the main transcript, and path, size and
times of its agents' transcripts. Every request compares the fingerprint. Costs come from the index, not from these
files: they are valid for one generation of the index, and drawings are dropped when the costs in them change.

Reading a long session takes seconds. If reading took t seconds and at least `_SLOW_SECONDS`, a session that has changed
since is returned as it was until 4t seconds have passed, and is then read again in the background.

The cache holds `MAX_BYTES` of transcripts and evicts the session that was requested longest ago.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from threadline.archive import Archive
from threadline.errors import Ambiguous, Error, NotFound
from threadline.files import escape_path
from threadline.find import change_time_ns, path_change_time_ns, session_transcripts
from threadline.insight import find_commits
from threadline.load import Session, find_continuations, read
from threadline.model.homes import Homes
from threadline.model.ledger import EXACT
from threadline.model.places import MessageId
from threadline.model.text import no_such_number
from threadline.model.times import zone_name
from threadline.render import agent_slug, foreign_transcript_slug, parse_anchor
from threadline.render.html import ConversationRenderer, MessageStats, Scene, StatsByMessage
from threadline.thread import ContextLimits, Notification, find_cache_breaks, find_notifications, find_requests
from threadline.web.session.view import PositionIndex
from threadline.web.urls import SessionLinks, entry_anchor

if TYPE_CHECKING:
    from threadline.archive import SharedSpending
    from threadline.insight import WasteContext
    from threadline.model.attachments import Environment
    from threadline.model.calls import Call
    from threadline.model.context import ContextLimit, ContextWindow
    from threadline.model.entries import Entry
    from threadline.model.ledger import Sum
    from threadline.model.session import Agent, Continuation
    from threadline.model.titles import SummaryLinks
    from threadline.render import View
    from threadline.web.session.usage import StripFigures

MAX_BYTES = 128 * 1024 * 1024
"""Bytes of transcripts in the cache; in memory they take several times as much."""
_MAX_DRAWINGS = 6
_SLOW_SECONDS = 0.5
_REREAD_FACTOR = 4
_PRELOAD_DELAY = 0.3
_LOG = logging.getLogger("threadline")


class SessionFacts(Struct, frozen=True):
    """Facts of a session that take a pass over its entries; models, directories and branches in order of appearance."""

    started: datetime | None
    ended: datetime | None
    wall_time: timedelta | None
    models: tuple[str, ...]
    cwds: tuple[str, ...]
    git_branches: tuple[str, ...]
    calls: int
    slug: str | None
    environment: Environment | None

    @classmethod
    def of(cls, session: Session) -> SessionFacts:
        """Compute the facts of a session; calls include those of agents."""
        started, ended = session.span
        return cls(
            started=started,
            ended=ended,
            wall_time=ended - started if started is not None and ended is not None else None,
            models=session.models,
            cwds=session.cwds,
            git_branches=session.git_branches,
            calls=sum(len(agent.calls) for agent in (session.main, *session.agents)),
            slug=session.slug,
            environment=session.environment,
        )

    @property
    def project(self) -> str | None:
        """The directory that the session began in."""
        return self.cwds[0] if self.cwds else None


class SessionSpending(Struct, frozen=True):
    """What a session and its agents spent in total, and the cost of each message whose price is known.

    `shared` is what they contain of messages that are counted for other sessions.
    """

    total: Sum
    costs: Mapping[MessageId, Decimal]
    shared: tuple[SharedSpending, ...] = ()

    @classmethod
    def of(cls, session: Session, archive: Archive) -> SessionSpending:
        """Ask the index; without one, compute it from the session's own entries."""
        if session.path is not None and session.id is not None and archive.is_indexed:
            spending = archive.spending()
            amounts = archive.open_index().message_amounts(str(session.id))
            return cls(
                spending.of(session.path),
                {MessageId(message): amount for message, amount in amounts.items()},
                spending.shared.get(session.path, ()),
            )
        ledger = session.ledger
        costs: dict[MessageId, Decimal] = {}
        for charge in ledger:
            if charge.amount is not None:
                message = MessageId(charge.message)
                costs[message] = EXACT.add(costs[message], charge.amount) if message in costs else charge.amount
        return cls(ledger.total, costs)

    def stats(self, windows: Iterable[ContextWindow]) -> StatsByMessage:
        """Context, output and cost of each message, by the context windows of its requests."""
        return {
            window.message: MessageStats(
                model=window.model,
                context=window.prompt if window.has_usage else None,
                output=window.output,
                amount=self.costs.get(window.message),
            )
            for window in windows
            if window.message is not None
        }


class AgentDrawing(Struct, frozen=True):
    """The conversation of an agent, rendered for a view, and the positions of its entries.

    `strips` are the figures of the strips beside its parts, computed when a part is shown for the first time.
    """

    renderer: ConversationRenderer
    positions: PositionIndex
    strips: dict[int, StripFigures] = {}


class CachedSession:
    """A session in memory. `id` is its name in the archive, `version` its fingerprint, `size` that of its files.

    `links` are the summaries of the archive.
    """

    def __init__(self, id_: str, session: Session, version: str, size: int, links: SummaryLinks | None = None) -> None:
        self.id = id_
        self.session = session
        self.version = version
        self.size = size
        self._links = links
        self._lock = threading.RLock()
        self._drawings: OrderedDict[Hashable, AgentDrawing] = OrderedDict()
        self._windows: dict[str | None, tuple[tuple[ContextWindow, ...], dict[int, str]]] = {}
        self._limits: dict[str | None, ContextLimit | None] = {}
        self._entries_by_line: dict[str | None, dict[int, Entry]] = {}
        self._spending: SessionSpending | None = None
        self._spending_generation = ""
        self._costs: WasteContext | None = None
        self._costs_spending: SessionSpending | None = None
        self._costs_lock = threading.Lock()

    @property
    def path(self) -> Path:
        """The main transcript."""
        return self.session.path or Path()

    @cached_property
    def facts(self) -> SessionFacts:
        """Start, end, models, directories, branches."""
        return SessionFacts.of(self.session)

    @cached_property
    def notifications(self) -> tuple[Notification, ...]:
        """The outcomes of its background tasks."""
        return tuple(find_notifications(self.session))

    @cached_property
    def agents(self) -> dict[str, Agent]:
        """The agents by their names in URLs."""
        return {agent_slug(agent.id): agent for agent in self.session.agents if agent.id is not None}

    @cached_property
    def calls(self) -> dict[str, Call]:
        """The calls by id; the first if several have the same id."""
        return {str(call.id): call for call in reversed(self.session.calls)}

    @cached_property
    def continuations(self) -> tuple[Continuation, ...]:
        """The sessions that this one continues, and those that continue it."""
        return find_continuations(self.session, self._links)

    @property
    def links(self) -> SessionLinks:
        """The URLs of its pages."""
        return SessionLinks(self.id, agents=self.agents)

    def agent(self, name: str | None) -> Agent:
        """Return an agent by its name in URLs; None is the main agent.

        Raises:
            NotFound: the session has no such agent.
        """
        if name is None:
            return self.session.main
        agent = self.agents.get(name)
        if agent is None:
            raise NotFound("This session has no such agent.")
        return agent

    def entry(self, anchor: str) -> tuple[Entry, Agent]:
        """Return the entry that an anchor names, and its agent. The anchor may be an item's.

        Raises:
            NotFound: there is no such entry.
        """
        parts = parse_anchor(entry_anchor(anchor))
        if parts is None:
            raise NotFound("Unknown anchor. Write L120 for line 120, or AGENT.L7 for line 7 of an agent.")
        name, line = parts
        agent = self.session.main if name in self._other_files else self.agent(name)
        with self._lock:
            if name not in self._entries_by_line:
                path = self._other_files.get(name, agent.entries[0].line.transcript if agent.entries else "")
                self._entries_by_line[name] = {
                    entry.line.number: entry for entry in agent.entries if entry.line.transcript == path
                }
        entry = self._entries_by_line[name].get(line)
        if entry is not None:
            return entry, agent
        inline = self._inline_agent_entries.get(line) if name is None else None
        if inline is None:
            raise NotFound(f"That transcript has no line {line:,}.")
        return inline

    @cached_property
    def _other_files(self) -> dict[str | None, str]:
        """Other files that contain entries of the main agent, by their names in anchors."""
        entries = self.session.main.entries
        main_path = entries[0].line.transcript if entries else ""
        paths = {entry.line.transcript for entry in entries} - {main_path}
        return {foreign_transcript_slug(path): path for path in paths}

    @cached_property
    def _inline_agent_entries(self) -> dict[int, tuple[Entry, Agent]]:
        """Entries of agents that are in the main transcript, by line."""
        main = self.session.main.entries
        main_path = main[0].line.transcript if main else str(self.session.path or "")
        return {
            entry.line.number: (entry, agent)
            for agent in self.session.agents
            for entry in agent.entries
            if entry.line.transcript == main_path
        }

    def drawing(
        self, name: str | None, view: View, links: SessionLinks, archive: Archive, zone: tzinfo
    ) -> AgentDrawing:
        """Render an agent's conversation for a view, with times in a zone. `links` are those of the same view.

        Raises:
            NotFound: there is no such agent, or no such branch.
        """
        agent = self.agent(name)
        if view.branch is not None and not 1 <= view.branch <= len(agent.branches):
            raise NotFound(
                no_such_number("branch", view.branch, len(agent.branches), plural="branches", owner="conversation")
            )
        key = (name, view, tuple(links.query), zone_name(zone))
        with self._lock:
            drawing = self._drawings.get(key)
            if drawing is None:
                scene = Scene(view, links, cwd=self.facts.project or "", zone=zone)
                stats = self.spending(archive).stats(self.windows(name))
                renderer = ConversationRenderer(
                    self.session, agent, scene, stats=stats, notifications=self.notifications
                )
                drawing = self._drawings[key] = AgentDrawing(renderer, PositionIndex(renderer))
                while len(self._drawings) > _MAX_DRAWINGS:
                    self._drawings.popitem(last=False)
            self._drawings.move_to_end(key)
            return drawing

    def windows(self, name: str | None) -> tuple[ContextWindow, ...]:
        """The context window of each request of an agent."""
        return self._requests(name)[0]

    def cache_breaks(self, name: str | None) -> dict[int, str]:
        """The causes of an agent's cache breaks, by the number of the request."""
        return self._requests(name)[1]

    def _requests(self, name: str | None) -> tuple[tuple[ContextWindow, ...], dict[int, str]]:
        """The windows and cache breaks of an agent. The requests themselves take more memory and are not kept."""
        with self._lock:
            if name not in self._windows:
                agent = self.agent(name)
                requests = find_requests(agent.entries, agent.turns)
                breaks = {each.request: str(each.cause) for each in find_cache_breaks(agent, requests)}
                self._windows[name] = tuple(request.window for request in requests), breaks
            return self._windows[name]

    @cached_property
    def committing_calls(self) -> frozenset[str]:
        """The ids of the calls that made a commit."""
        return frozenset(str(call.id) for call, _commit in find_commits(self.session))

    def limit(self, name: str | None) -> ContextLimit | None:
        """The size limit of an agent's context window; None if no request reports a size."""
        with self._lock:
            if name not in self._limits:
                agent, windows = self.agent(name), self.windows(name)
                last = next((window for window in reversed(windows) if window.has_usage), None)
                self._limits[name] = ContextLimits(agent, [agent.entries], windows).of(last.model) if last else None
            return self._limits[name]

    def spending(self, archive: Archive) -> SessionSpending:
        """What the session spent according to the index, which may be a moment older than the session."""
        generation = archive.open_index().generation if archive.is_indexed else ""
        with self._lock:
            if self._spending is None or self._spending_generation != generation:
                spending = SessionSpending.of(self.session, archive)
                if spending != self._spending:
                    self._drawings.clear()
                    self._spending = spending
                self._spending_generation = generation
            return self._spending

    def costs(self, archive: Archive) -> WasteContext:
        """What the session's costs were caused by. It is computed again when the index counts other messages."""
        spending = self.spending(archive)
        with self._costs_lock:
            if self._costs is None or self._costs_spending is not spending:
                with _garbage_collection_paused():
                    self._costs = archive.waste_context(self.session)
                    self._costs.attribution  # noqa: B018 - computed while the collector is paused
                self._costs_spending = spending
            return self._costs


class SessionPlace(Struct, frozen=True):
    """A session's name in the archive, the path of its main transcript, and the homes and summaries of the archive."""

    id: str
    path: Path
    homes: Homes
    links: SummaryLinks


class _CacheEntry(Struct):
    """A session that was read, or is being read; `lock` is held while it is read."""

    lock: threading.Lock
    path: Path
    session: CachedSession | None = None
    read_at: float = 0.0
    seconds: float = 0.0
    is_reread_planned: bool = False


class SessionCache:
    """Sessions in memory. A request for a session that is being read waits for it.

    `on_reread` is called with the id of a session that has been read in the background.
    """

    def __init__(self, max_bytes: int = MAX_BYTES, on_reread: Callable[[str], None] = lambda _session: None) -> None:
        self._max_bytes = max_bytes
        self._on_reread = on_reread
        self._entries: OrderedDict[str, _CacheEntry] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str, archive: Archive) -> CachedSession:
        """Return a session by its id or a prefix of it.

        Raises:
            NotFound: the archive has no such session.
            Ambiguous: it has several whose ids begin like this.
        """
        place, version, size = self._locate(name, archive)
        session = self._current(place, version)
        return session if session is not None else self._read(place, version, size)

    def has_session(self, id_: str, archive: Archive) -> bool:
        """Whether a session has this id; a prefix of it, or a path, is not an id."""
        try:
            return "/" not in id_ and _find_session(id_, archive).id == id_
        except Ambiguous:
            return any(session.id == id_ for session in archive.sessions())
        except NotFound:
            return False

    def find_unread(self, name: str, archive: Archive, min_bytes: int) -> SessionPlace | None:
        """Return the place of a session that is not in the cache and at least this large; None otherwise.

        Raises:
            NotFound: the archive has no such session.
        """
        place = self._locate(name, archive)[0]
        with self._lock:
            entry = self._entries.get(place.id)
            if entry is not None and entry.session is not None:
                return None
        try:
            return place if place.path.stat().st_size >= min_bytes else None
        except OSError:
            return None

    def preload(self, place: SessionPlace) -> None:
        """Read a session in the background, after the page that is being sent."""
        self._schedule_read(place, _PRELOAD_DELAY)

    def _locate(self, name: str, archive: Archive) -> tuple[SessionPlace, str, int]:
        """Find a session's transcript, its fingerprint and its size.

        The path of a cached session is used as long as the file exists: the archive is not asked, because sections of a
        page are requested often.
        """
        with self._lock:
            entry = self._entries.get(name)
        path = entry.path if entry is not None and entry.session is not None else None
        place = SessionPlace(name, path, archive.homes, archive.links()) if path is not None else None
        status = _fingerprint(place) if place is not None else None
        if place is None or status is None:  # not read yet, or moved
            place = _find_session(name, archive)
            status = _fingerprint(place)
        if status is None:
            raise NotFound("This session's transcript no longer exists. The list of sessions shows what is left.")
        return place, *status

    def _current(self, place: SessionPlace, version: str) -> CachedSession | None:
        """Return the cached session if it is valid, or if it takes too long to read it again now."""
        with self._lock:
            entry = self._entries.get(place.id)
            if entry is None or entry.session is None or entry.path != place.path:
                return None
            self._entries.move_to_end(place.id)
            if entry.session.version != version:
                wait = entry.read_at + _REREAD_FACTOR * entry.seconds - monotonic()
                if entry.seconds < _SLOW_SECONDS or wait <= 0:
                    return None
                if not entry.is_reread_planned:
                    entry.is_reread_planned = True
                    self._schedule_read(place, wait)
            return entry.session

    def _schedule_read(self, place: SessionPlace, seconds: float) -> None:
        timer = threading.Timer(seconds, self._read_in_background, (place,))
        timer.daemon = True
        timer.start()

    def _read_in_background(self, place: SessionPlace) -> None:
        status = _fingerprint(place)
        if status is None:
            return
        try:
            self._read(place, *status)
        except Error as error:
            _LOG.warning("threadline: %s", error)
        self._on_reread(place.id)

    def _read(self, place: SessionPlace, version: str, size: int) -> CachedSession:
        """Read a session, or wait for the thread that is reading it."""
        with self._lock:
            entry = self._entries.setdefault(place.id, _CacheEntry(threading.Lock(), place.path))
        with entry.lock:
            session = entry.session
            if session is not None and session.version == version and entry.path == place.path:
                return session
            began = monotonic()
            try:
                with _garbage_collection_paused():
                    content = read(place.path, continued=False, homes=place.homes, links=place.links)
                    session = CachedSession(place.id, content, version, size, place.links)
            except Error:
                with self._lock:
                    if entry.session is None and self._entries.get(place.id) is entry:
                        del self._entries[place.id]
                raise
            with self._lock:
                entry.path, entry.session = place.path, session
                entry.read_at, entry.seconds = monotonic(), monotonic() - began
                entry.is_reread_planned = False
                self._entries[place.id] = entry  # it may have been evicted meanwhile
                self._entries.move_to_end(place.id)
                self._evict()
            return session

    def _evict(self) -> None:
        while (cached := [id_ for id_, entry in self._entries.items() if entry.session is not None])[1:] and (
            sum(entry.session.size for entry in self._entries.values() if entry.session is not None) > self._max_bytes
        ):
            del self._entries[cached[0]]


def _find_session(name: str, archive: Archive) -> SessionPlace:
    """Find a session in the archive: nothing that the archive does not list is ever opened."""
    transcripts = [transcript for home in archive.found for transcript in home.transcripts]
    for transcript in transcripts:
        if escape_path(transcript.path) == name:
            return SessionPlace(name, transcript.path, archive.homes, archive.links())
    candidates = [transcript for transcript in transcripts if transcript.is_main and transcript.session == name]
    candidates = [transcript for transcript in candidates if transcript.size] or candidates
    exact = candidates[0] if len(candidates) == 1 else None  # with several, the archive says that the name is ambiguous
    if not candidates and (path := _find_by_content(name, archive)) is not None:
        return SessionPlace(name, path, archive.homes, archive.links())
    transcript = exact or archive.transcript(name)
    if transcript.is_main and transcript.session is not None:
        id_ = f"{transcript.folder}/{transcript.session}" if "/" in name else str(transcript.session)
        return SessionPlace(id_, transcript.path, archive.homes, archive.links())
    # An agent's transcript beside the sessions is shown as a session.
    return SessionPlace(f"agent-{transcript.agent}", transcript.path, archive.homes, archive.links())


def _find_by_content(name: str, archive: Archive) -> Path | None:
    """The largest transcript whose entries, not whose path, name that session; only the index knows."""
    if not archive.is_indexed:
        return None
    return archive.open_index().find_transcript_naming(name)


def file_state(path: Path) -> Hashable:
    """Identify the content of a file by its size, times and inode; a missing file by its path."""
    try:
        status = path.stat()
    except OSError:
        return str(path)
    return str(path), status.st_size, status.st_mtime_ns, status.st_ino, change_time_ns(status)


def _fingerprint(place: SessionPlace) -> tuple[str, int] | None:
    """Identify the state of a session's files, and add up their sizes; None if the main transcript is gone."""
    try:
        status = place.path.stat()
        below, beside = session_transcripts(place.path, homes=place.homes)
    except OSError:
        return None
    state = f"{status.st_size} {status.st_mtime_ns} {status.st_ino} {change_time_ns(status)}"
    digest = hashlib.blake2b(state.encode(), digest_size=9)
    for transcript in (*below, *beside):
        line = f"\0{transcript.path}\0{transcript.size} {transcript.mtime_ns} {path_change_time_ns(transcript.path)}"
        digest.update(line.encode(errors="surrogateescape"))
    return digest.hexdigest(), status.st_size + sum(transcript.size for transcript in below)


class _ActiveReaders:
    lock = threading.Lock()
    count = 0


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Pause the collector: reading creates hundreds of thousands of objects without cycles, and all of them stay.

    At the end, they are frozen, so that later collections skip them. What is garbage by then must be collected first:
    frozen, it would never be.
    """
    with _ActiveReaders.lock:
        _ActiveReaders.count += 1
        gc.disable()
    try:
        yield
    finally:
        with _ActiveReaders.lock:
            _ActiveReaders.count -= 1
            if not _ActiveReaders.count:
                gc.collect()
                gc.freeze()
                gc.enable()
