"""Build the URLs of all pages, of a session's pages, and of entries.

The `tz` parameter of a request is carried over to every URL built while it is answered.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from markupsafe import Markup
from msgspec import Struct

from threadline.model.places import AgentId, CallId, Place, SessionId
from threadline.render import agent_slug, parse_anchor
from threadline.render.html import el

if TYPE_CHECKING:
    from threadline.archive import Archive

QueryValue = str | int | bool | None | Sequence[str]
"""A value in a query: None and False leave it out, True is 1."""

HOME, SESSIONS, SEARCH, USAGE = "/", "/sessions", "/search", "/usage"
CALLS, FILES, FILE_LOG, BLAME = "/calls", "/files", "/files/log", "/files/blame"
DOCTOR, KEYS, PALETTE = "/doctor", "/keys", "/palette"
WHY, WASTE, OUTCOMES, TOOLS, DIGEST = "/why", "/waste", "/outcomes", "/tools", "/digest"
INSIGHT = (WHY, WASTE, OUTCOMES, TOOLS, DIGEST)
LIVE, ASSETS, SESSION = "/live", "/assets", "/session"
ACCESS, NEW_LINK, LOG_OUT, LOG_OUT_ALL = "/access", "/access/link", "/access/logout", "/access/logout-all"
ERRORS, BLOCKS, HISTORY, COMPARE = "/errors", "/blocks", "/history", "/compare"
TIME_ZONE, RECEIPT = "/time-zone", "/receipt"
ANNOTATE, SAVED_SEARCHES = "/annotate", "/saved-searches"
_AGENT_PARAMETERS = frozenset({"branch", "from", "to"})
"""Parameters that apply to one agent only."""
_CARRIED: ContextVar[tuple[tuple[str, str], ...]] = ContextVar("carried", default=())
_OFFERED: ContextVar[Collection[str] | None] = ContextVar("offered", default=None)


@contextmanager
def carry_query(*pairs: tuple[str, str]) -> Iterator[None]:
    """Add parameters to every URL built meanwhile, unless the URL sets them itself.

    A time zone that was chosen applies to the next page, too, without each page having to pass it on.
    """
    token = _CARRIED.set(pairs)
    try:
        yield
    finally:
        _CARRIED.reset(token)


@contextmanager
def offer_pages(paths: Collection[str]) -> Iterator[None]:
    """Offer links only to these pages meanwhile: a lake does not have all of them."""
    token = _OFFERED.set(paths)
    try:
        yield
    finally:
        _OFFERED.reset(token)


def is_offered(path: str) -> bool:
    """Whether this server has a page."""
    offered = _OFFERED.get()
    return offered is None or path in offered


def build_url(path: str, query_pairs: Iterable[tuple[str, str]] = (), /, **query: QueryValue) -> str:
    """Build a URL from a path, pairs of an existing query, and parameters.

    >>> build_url("/sessions", project="a & b", limit=5, after=None)
    '/sessions?project=a+%26+b&limit=5'
    """
    pairs = [*query_pairs, *((name.rstrip("_"), text) for name, value in query.items() for text in _query_texts(value))]
    names = {name for name, _value in pairs} | query.keys()
    pairs += [pair for pair in _CARRIED.get() if pair[0] not in names]
    return f"{path}?{urlencode(pairs, errors='replace')}" if pairs else path


def session_url(
    id_: str, *below: str, at: str | None = None, query_pairs: Iterable[tuple[str, str]] = (), **query: QueryValue
) -> str:
    """Build the URL of a session's page, or of a page `below` it; `at` is the anchor to begin at.

    Browsers do not send the fragment of a URL to the server, so the anchor is in the query, too.

    >>> session_url("5560", at="L12")
    '/session/5560?at=L12#L12'
    >>> session_url("5560", "agent", "a/b")
    '/session/5560/agent/a~2Fb'
    """
    path = "/".join((SESSION, *(quote(escape_segment(part), safe="", errors="replace") for part in (id_, *below))))
    return build_url(path, query_pairs, at=at, **query) + (f"#{quote(at, safe='')}" if at else "")


def entry_url(session: str | None, agent: str | None, line: int, *, mark: Sequence[str] = ()) -> str | None:
    """Build the URL of an entry of a session, or of one of its agents; None if the session is unknown.

    `mark` are words that the page highlights in the entry.
    """
    if session is None:
        return None
    if not agent:
        return session_url(session, at=f"L{line}", mark=mark)
    slug = agent_slug(agent)
    return session_url(session, "agent", slug, at=f"{slug}.L{line}", mark=mark)


def place_url(archive: Archive, place: Place) -> str | None:
    """Build the URL of a line of a transcript; None if the index does not know the transcript."""
    owner = archive.open_index().transcript_owner(place.transcript)
    if owner is None or not place.line:
        return None
    session, agent = owner
    return entry_url(session_name(archive, session, place.transcript), agent, place.line)


def session_name(archive: Archive, session: str | None, transcript: str) -> str | None:
    """The name of the session of a transcript in URLs: its id, unless sessions in other folders or homes have it."""
    shared = archive.open_index().shared_names().get(session, ())
    folder = transcript.partition(f"{os.sep}subagents{os.sep}")[0].rpartition(os.sep)[0]
    return next((name for path, name in shared if path.rpartition(os.sep)[0] == folder), session)


def json_path(path: str) -> str:
    """The path of a page's `.json` twin.

    >>> json_path("/"), json_path("/usage")
    ('/index.json', '/usage.json')
    """
    return "/index.json" if path == HOME else f"{path}.json"


def escape_segment(name: str) -> str:
    """Escape slashes in a path segment. `%2F` would not do: servers decode it before they split the path.

    >>> escape_segment("a/b~c")
    'a~2Fb~7Ec'
    """
    return name.replace("~", "~7E").replace("/", "~2F")


def unescape_segment(segment: str) -> str:
    """Undo `escape_segment`.

    >>> unescape_segment(escape_segment("~2F/"))
    '~2F/'
    """
    return segment.replace("~2F", "/").replace("~7E", "~")


def entry_anchor(anchor: str) -> str:
    """The anchor of an item's entry: `L120` for `L120-2`."""
    start, _, number = anchor.rpartition("-")
    return start if number.isdecimal() and parse_anchor(start) is not None else anchor


def hidden_inputs(pairs: Iterable[tuple[str, str]]) -> list[Markup]:
    """Hidden form fields."""
    return [el("input", type="hidden", name_=name, value=value) for name, value in pairs]


def carried_inputs() -> list[Markup]:
    """Hidden form fields for carried parameters, because a submitted form replaces the query."""
    return hidden_inputs(_CARRIED.get())


def _query_texts(value: QueryValue) -> Iterable[str]:
    if value is None or value is False:
        return ()
    if value is True:
        return ("1",)
    return (str(value),) if isinstance(value, str | int) else value


class SessionLinks(Struct, frozen=True):
    """The URLs of one session's pages. It implements `Links` of `threadline.render.html`.

    `agent_name` is the agent of the current page. `query` is the current view, which links keep. `agents` are the names
    of agents that have pages of their own.
    """

    id: str
    agent_name: str | None = None
    query: Sequence[tuple[str, str]] = ()
    agents: Collection[str] = ()

    def page(self, *, at: str | None = None, agent: str | None = None, **query: QueryValue) -> str:
        """The page of the session or of one of its agents, in the current view, with these parameters changed."""
        below = ("agent", agent) if agent is not None else ()
        pairs = [(name, value) for name, value in self.query if name not in query]
        return session_url(self.id, *below, query_pairs=pairs, at=at, **query)

    def this_page(self, *, at: str | None = None, **query: QueryValue) -> str:
        """The current page with these parameters changed."""
        return self.page(at=at, agent=self.agent_name, **query)

    def below(self, *parts: str, **query: QueryValue) -> str:
        """A page below the session's."""
        return session_url(self.id, *parts, at=None, query_pairs=(), **query)

    def session(self, session: SessionId | str) -> str | None:
        """The page of another session."""
        return session_url(str(session))

    def agent(self, agent: AgentId | str) -> str | None:
        """The page of an agent of this session, without parameters that apply to the current agent only."""
        pairs = [(name, value) for name, value in self.query if name not in _AGENT_PARAMETERS]
        return session_url(self.id, "agent", agent_slug(agent), query_pairs=pairs)

    def entry(self, anchor: str) -> str:
        """An entry on the page of its agent."""
        parts = parse_anchor(entry_anchor(anchor))
        name = parts[0] if parts is not None and parts[0] in self.agents else None
        return self.this_page(at=anchor) if name == self.agent_name else self.page(at=anchor, agent=name, branch=None)

    def raw(self, anchor: str) -> str | None:
        """The page with an entry's JSON."""
        return self.below("entry", entry_anchor(anchor))

    def call(self, call: CallId) -> str | None:
        """The page of a call."""
        return self.below("call", str(call)) if call else None

    def state(self, anchor: str) -> str | None:
        """The page with files and lists as they were at an entry."""
        return self.below("state", entry_anchor(anchor))

    def file_state(self, anchor: str, path: str) -> str | None:
        """The page with one file as it was at an entry."""
        return self.below("state", entry_anchor(anchor), file=path)

    def file(self, path: str) -> str | None:
        """The page of a file: which sessions read or changed it."""
        return build_url(FILES, path=path) if is_offered(FILES) else None

    def branch(self, number: int | None, at: str | None = None) -> str | None:
        """The page of a branch, beginning at an entry; None is the main conversation."""
        return self.this_page(branch=number, at=at)

    def image(self, anchor: str, number: int, media_type: str, data: str) -> str | None:  # noqa: ARG002 - by place
        """An image of an entry."""
        return self.below("image", entry_anchor(anchor), str(number))
