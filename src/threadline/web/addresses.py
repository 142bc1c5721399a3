"""Addresses: the one place that knows where everything lies, and writes links to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import quote, urlencode

Queried = str | int | bool | None | Sequence[str]
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
def carrying(*pairs: tuple[str, str]) -> Iterator[None]:
    """Values that every address has which is written meanwhile, unless it says otherwise.

    Whoever wants to see times in another zone wants it on the next page, too, and no page should have to think of it.
    """
    token = _CARRIED.set(pairs)
    try:
        yield
    finally:
        _CARRIED.reset(token)


def carried() -> tuple[tuple[str, str], ...]:
    """The values that addresses have meanwhile."""
    return _CARRIED.get()


def address(path: str, kept: Iterable[tuple[str, str]] = (), /, **query: Queried) -> str:
    """A path with its query, escaped as addresses want it.

    >>> address("/sessions", project="a & b", limit=5, after=None)
    '/sessions?project=a+%26+b&limit=5'
    """
    pairs = [*kept, *((name.rstrip("_"), text) for name, value in query.items() for text in _texts(value))]
    said = {name for name, _value in pairs} | query.keys()
    pairs += [pair for pair in carried() if pair[0] not in said]
    return f"{path}?{urlencode(pairs, errors='replace')}" if pairs else path


def session(
    id_: str, *below: str, at: str | None = None, kept: Iterable[tuple[str, str]] = (), **query: Queried
) -> str:
    """A session's page, or what lies `below` it; `at` is the anchor to begin at, `kept` more of the query.

    The fragment of an address is not sent to a server, so the anchor stands in the query, too.

    >>> session("5560", at="L12")
    '/session/5560?at=L12#L12'
    >>> session("5560", "agent", "a/b")
    '/session/5560/agent/a~2Fb'
    """
    path = "/".join((SESSION, *(quote(escaped(part), safe="", errors="replace") for part in (id_, *below))))
    return address(path, kept, at=at, **query) + (f"#{quote(at, safe='')}" if at else "")


def escaped(name: str) -> str:
    """A name as it stands in a path: servers undo %2F before they look at the parts, so a slash is written otherwise.

    >>> escaped("a/b~c")
    'a~2Fb~7Ec'
    """
    return name.replace("~", "~7E").replace("/", "~2F")


def unescaped(part: str) -> str:
    """The name that stands in a path.

    >>> unescaped(escaped("~2F/"))
    '~2F/'
    """
    return part.replace("~2F", "/").replace("~7E", "~")


def agent(id_: str, agent_: str, *, at: str | None = None, **query: Queried) -> str:
    """The page of an agent of a session."""
    return session(id_, "agent", agent_, at=at, kept=(), **query)


def hit(id_: str, agent_: str | None, at: str) -> str:
    """An entry in its page, of the main agent or of another: where lists and searches lead."""
    return agent(id_, agent_, at=at) if agent_ else session(id_, at=at)


def twin(path: str) -> str:
    """The path of a page's data.

    >>> twin("/"), twin("/usage")
    ('/index.json', '/usage.json')
    """
    return "/index.json" if path == HOME else f"{path}.json"


def _texts(value: Queried) -> Iterable[str]:
    if value is None or value is False:
        return ()
    if value is True:
        return ("1",)
    return (str(value),) if isinstance(value, str | int) else value
