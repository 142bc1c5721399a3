"""Build the URLs of all pages, of a session's pages, and of entries.

The `tz` parameter of a request is carried over to every URL built while it is answered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from markupsafe import Markup
from msgspec import Struct

from threadline.model.places import AgentId, CallId, SessionId
from threadline.render import agent_slug, parse_anchor
from threadline.render.html import el

if TYPE_CHECKING:
    from threadline.archive import Archive

QueryValue = str | int | bool | None | Sequence[str]
"""A value in a query: None and False leave it out, True is 1."""

HOME, SESSIONS, SEARCH, USAGE = "/", "/sessions", "/search", "/usage"
CALLS, FILES, DOCTOR, KEYS, PALETTE, LIVE, ASSETS = (
    "/calls",
    "/files",
    "/doctor",
    "/keys",
    "/palette",
    "/live",
    "/assets",
)
SESSION = "/session"
_CARRIED: ContextVar[tuple[tuple[str, str], ...]] = ContextVar("carried", default=())


@contextmanager
def carry_query(*pairs: tuple[str, str]) -> Iterator[None]:
    """Values that every address has which is written meanwhile, unless it says otherwise.

    Whoever wants to see times in another zone wants it on the next page, too, and no page should have to think of it.
    """
    token = _CARRIED.set(pairs)
    try:
        yield
    finally:
        _CARRIED.reset(token)


def carried_query() -> tuple[tuple[str, str], ...]:
    """The values that addresses have meanwhile."""
    return _CARRIED.get()


def build_url(path: str, kept: Iterable[tuple[str, str]] = (), /, **query: QueryValue) -> str:
    """A path with its query, escaped as addresses want it.

    >>> build_url("/sessions", project="a & b", limit=5, after=None)
    '/sessions?project=a+%26+b&limit=5'
    """
    pairs = [*kept, *((name.rstrip("_"), text) for name, value in query.items() for text in _query_texts(value))]
    said = {name for name, _value in pairs} | query.keys()
    pairs += [pair for pair in carried_query() if pair[0] not in said]
    return f"{path}?{urlencode(pairs, errors='replace')}" if pairs else path


def session_url(
    id_: str, *below: str, at: str | None = None, kept: Iterable[tuple[str, str]] = (), **query: QueryValue
) -> str:
    """A session's page, or what lies `below` it; `at` is the anchor to begin at, `kept` more of the query.

    The fragment of an address is not sent to a server, so the anchor stands in the query, too.

    >>> session_url("5560", at="L12")
    '/session/5560?at=L12#L12'
    >>> session_url("5560", "agent", "a/b")
    '/session/5560/agent/a~2Fb'
    """
    path = "/".join((SESSION, *(quote(escape_segment(part), safe="", errors="replace") for part in (id_, *below))))
    return build_url(path, kept, at=at, **query) + (f"#{quote(at, safe='')}" if at else "")


def escape_segment(name: str) -> str:
    """A name as it stands in a path: servers undo %2F before they look at the parts, so a slash is written otherwise.

    >>> escape_segment("a/b~c")
    'a~2Fb~7Ec'
    """
    return name.replace("~", "~7E").replace("/", "~2F")


def unescape_segment(part: str) -> str:
    """The name that stands in a path.

    >>> unescape_segment(escape_segment("~2F/"))
    '~2F/'
    """
    return part.replace("~2F", "/").replace("~7E", "~")


def agent_url(id_: str, agent_: str, *, at: str | None = None, **query: QueryValue) -> str:
    """The page of an agent of a session."""
    return session_url(id_, "agent", agent_, at=at, kept=(), **query)


def anchor_url(id_: str, agent_: str | None, at: str) -> str:
    """An entry in its page, of the main agent or of another: where lists and searches lead."""
    return agent_url(id_, agent_, at=at) if agent_ else session_url(id_, at=at)


def json_path(path: str) -> str:
    """The path of a page's data.

    >>> json_path("/"), json_path("/usage")
    ('/index.json', '/usage.json')
    """
    return "/index.json" if path == HOME else f"{path}.json"


def _query_texts(value: QueryValue) -> Iterable[str]:
    if value is None or value is False:
        return ()
    if value is True:
        return ("1",)
    return (str(value),) if isinstance(value, str | int) else value


def entry_anchor(anchor: str) -> str:
    """The anchor of an item's entry: `L120` for `L120-2`."""
    start, _, number = anchor.rpartition("-")
    return start if number.isdecimal() and parse_anchor(start) is not None else anchor


class SessionLinks(Struct, frozen=True):
    """The links of one session's pages. `query` is what says how they are shown, and stays on the way.

    `agents` are the names of the agents that have pages of their own.
    """

    id: str
    agent_name: str | None = None
    query: Sequence[tuple[str, str]] = ()
    agents: Collection[str] = ()

    def page(self, *, at: str | None = None, agent: str | None = None, **query: QueryValue) -> str:
        """The page of the session, or of one of its agents, as it is shown now but for what is given."""
        below = ("agent", agent) if agent is not None else ()
        kept = [(name, value) for name, value in self.query if name not in query]
        return session_url(self.id, *below, kept=kept, at=at, **query)

    def own(self, *, at: str | None = None, **query: QueryValue) -> str:
        """This very page, but for what is given."""
        return self.page(at=at, agent=self.agent_name, **query)

    def below(self, *parts: str, **query: QueryValue) -> str:
        """What lies below the session."""
        return session_url(self.id, *parts, at=None, kept=(), **query)

    # What follows is what `threadline.render.html.links.Links` asks for.

    def session(self, session: SessionId | str) -> str | None:
        """The page of another session."""
        return session_url(str(session))

    def agent(self, agent: AgentId | str) -> str | None:
        """The page of an agent of this session; a branch is that of the main one, and does not stay."""
        kept = [(name, value) for name, value in self.query if name not in _OWN_PARAMETERS]
        return session_url(self.id, "agent", agent_slug(agent), kept=kept)

    def entry(self, anchor: str) -> str:
        """An entry in the page of its agent."""
        parts = parse_anchor(entry_anchor(anchor))
        name = parts[0] if parts is not None and parts[0] in self.agents else None
        return self.own(at=anchor) if name == self.agent_name else self.page(at=anchor, agent=name, branch=None)

    def raw(self, anchor: str) -> str | None:
        """The page that shows an entry's JSON."""
        return self.below("entry", entry_anchor(anchor))

    def call(self, call: CallId) -> str | None:
        """The page that shows a call whole."""
        return self.below("call", str(call)) if call else None

    def state(self, anchor: str) -> str | None:
        """The page that shows how things stood at an entry."""
        return self.below("state", entry_anchor(anchor))

    def file(self, path: str) -> str | None:
        """The page of a file: which sessions touched it."""
        return build_url(FILES, path=path)

    def branch(self, number: int | None) -> str | None:
        """The page of a branch; None is the conversation itself."""
        return self.own(branch=number)

    def image(self, anchor: str, number: int, media_type: str, data: str) -> str | None:  # noqa: ARG002 - by place
        """A picture."""
        return self.below("image", entry_anchor(anchor), str(number))


_OWN_PARAMETERS = frozenset({"branch", "from", "to"})


def entry_url(session: str | None, agent: str | None, line: int) -> str | None:
    """An entry of a session, or of one of its agents; None where no session is known."""
    if session is None:
        return None
    whose = agent_slug(agent) if agent else None
    return anchor_url(session, whose, f"{whose}.L{line}" if whose else f"L{line}")


def place_url(archive: Archive, transcript: str, line: int) -> str | None:
    """The entry at a line of a transcript; None where the index does not know it."""
    found = archive.open_index().transcript_owner(transcript)
    if found is None or not line:
        return None
    session, agent = found
    return entry_url(session, agent, line)


def carried_inputs() -> list[Markup]:
    """Fields that nobody sees: what a form sends is all that the page it leads to is asked."""
    return [el("input", type="hidden", name_=name, value=value) for name, value in carried_query()]
