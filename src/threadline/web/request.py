"""What a page function receives and returns: a parsed request, and a page, fragment, picture, text or redirect.

A page is a function from a `PageRequest` to a `PageResult`. It knows nothing about HTTP: it raises the errors of
`threadline.errors`, and `web/app.py` turns results and errors into responses. To add a page, write such a function and
add it to the table of routes in `web/app.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime, tzinfo
from enum import StrEnum
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from markupsafe import Markup
from msgspec import Struct

from threadline.errors import BadQuery
from threadline.model.times import FIRST_MOMENT, parse_moment, parse_zone
from threadline.render.html import EMPTY, Child, Value
from threadline.web.archive_pool import MAX_AGE_SECONDS
from threadline.web.urls import QueryValue, build_url

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.web.archive_pool import ArchivePool
    from threadline.web.session_cache import CachedSession, SessionCache

_Choice = TypeVar("_Choice", bound=StrEnum)
_Figure = TypeVar("_Figure")

_TRUE_WORDS, _FALSE_WORDS = frozenset({"1", "true", "yes", "on"}), frozenset({"", "0", "false", "no", "off"})
_MAX_QUOTED = 80
_MAX_DIGITS = 12
_MAX_NUMBER = 1_000_000_000


class PageRequest(Struct, frozen=True):
    """A request for a page.

    `path` has no `.json` suffix; `wants_data` says whether the URL had one. `query` are the pairs of the query string,
    `path_values` the named parts of the path. `archive` belongs to this request until it is answered; a page must not
    keep it. An empty value counts as missing, because a form sends it for a field that was left blank.
    `default_zone` is the name of the browser's time zone; None is the machine's.
    """

    path: str
    query: Sequence[tuple[str, str]]
    archive: Archive
    pool: ArchivePool
    session_cache: SessionCache
    path_values: Mapping[str, str] = {}
    now: datetime = FIRST_MOMENT
    wants_data: bool = False
    default_zone: str | None = None

    def session(self) -> CachedSession:
        """Return the session that the path names.

        Raises:
            NotFound: the archive has no such session.
        """
        return self.session_cache.get(self.path_values["session"], self.archive)

    def cached(self, name: str, compute: Callable[[], _Figure], *key: Hashable) -> _Figure:
        """Return a figure of the index, computed once for each state of the index; see `ArchivePool.cached`."""
        return self.pool.cached(self.archive, name, compute, *key)

    def texts(self, name: str) -> tuple[str, ...]:
        """Every value of a parameter, in order. A value may be a comma-separated list."""
        return tuple(part.strip() for text in self._values(name) for part in text.split(",") if part.strip())

    def text(self, name: str) -> str | None:
        """The value of a parameter; the last one if it is repeated."""
        values = self._values(name)
        return values[-1] if values else None

    def number(self, name: str, default: int, *, least: int = 0, most: int = _MAX_NUMBER) -> int:
        """A whole number, or the default."""
        number = self.optional_number(name, least=least, most=most)
        return default if number is None else number

    def optional_number(self, name: str, *, least: int = 0, most: int = _MAX_NUMBER) -> int | None:
        """A whole number, or None if the parameter is missing."""
        text = self.text(name)
        if text is None:
            return None
        number = parse_number(text)
        if number is None or not least <= number <= most:
            raise BadQuery(f"{name}={_quote_short(text)} is not a whole number from {least:,} to {most:,}.")
        return number

    def flag(self, name: str) -> bool:
        """A yes-or-no parameter."""
        word = (self.text(name) or "").lower()
        if word not in _TRUE_WORDS | _FALSE_WORDS:
            raise BadQuery(f"{name}={_quote_short(word)} must be 1 or 0.")
        return word in _TRUE_WORDS

    def choice(
        self, name: str, choices: Sequence[str], default: str, former: Mapping[str, str] = MappingProxyType({})
    ) -> str:
        """One of several words. `former` are words of earlier versions, which bookmarks may contain."""
        word = self.text(name)
        word = former.get(word, word) if word is not None else None
        if word is not None and word not in choices:
            raise BadQuery(f"{name}={_quote_short(word)} must be one of {', '.join(choices)}.")
        return word or default

    def enum(self, name: str, kind: type[_Choice], default: _Choice) -> _Choice:
        """A member of an enumeration."""
        return kind(self.choice(name, [str(member) for member in kind], str(default)))

    def moment(self, name: str, *, end: bool = False) -> datetime | None:
        """A time like `2026-11-03`, `7d` or `yesterday`, in the zone of the request; with `end`, the end of a day."""
        text = self.text(name)
        return parse_moment(text[:_MAX_QUOTED], now=self.now, end=end, tz=self.zone()) if text is not None else None

    def time_range(self) -> tuple[datetime | None, datetime | None]:
        """The parameters `since` and `until`.

        Raises:
            BadQuery: `since` is later than `until`.
        """
        since, until = self.moment("since"), self.moment("until", end=True)
        check_time_range(since, until)
        return since, until

    def zone(self) -> tzinfo:
        """The time zone of the page: the parameter `tz`, or that of the browser, or the machine's."""
        return parse_zone(self.text("tz") or self.default_zone)

    def list_attributes(self) -> dict[str, Value]:
        """Attributes of the `<main>` of a list that follows the transcripts: it shows what was written before a time.

        The archive may have been compared with the homes that long ago.
        """
        return {"data_since": int((self.now.timestamp() - MAX_AGE_SECONDS) * 1000)}

    def url_with(self, **changes: QueryValue) -> str:
        """The URL of this page with some parameters changed; None removes one."""
        unchanged = [(name, value) for name, value in self.query if name not in changes and value]
        return build_url(self.path, unchanged, **changes)

    def _values(self, name: str) -> list[str]:
        return [value for key, value in self.query if key == name and value.strip()]


def parse_number(text: str, digits: int = _MAX_DIGITS) -> int | None:
    """The whole number that a text in a URL is; None if it is not one, or has more digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= digits else None


def check_time_range(since: datetime | None, until: datetime | None) -> None:
    """Reject a range that ends before it begins.

    Raises:
        BadQuery: `since` is later than `until`.
    """
    if since is not None and until is not None and since > until:
        raise BadQuery("since is later than until.")


def _quote_short(text: str) -> str:
    return repr(text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…")


class Page(Struct, frozen=True):
    """A complete page. `main` is its content, `data` what its `.json` twin returns: anything msgspec can encode.

    `kind` is the class of the body, by which styles and scripts tell pages apart. `attributes` are those of the
    `<main>` element. `head` is added to the document's head, `after` follows `<main>`. `scripts` are files of
    `web/assets` that only this page needs.
    """

    title: str
    kind: str
    main: Child
    data: Any = None
    attributes: Mapping[str, Value] = {}
    head: Child = EMPTY
    after: Child = EMPTY
    scripts: tuple[str, ...] = ()
    status: HTTPStatus = HTTPStatus.OK


class Fragment(Struct, frozen=True):
    """A piece of a page for scripts.

    If its URL is opened in a browser, it is shown as a page with `title` and `kind`, between `heading` and `below`;
    with `is_bare`, never.
    """

    title: str
    kind: str
    main: Markup
    data: Any = None
    is_bare: bool = False
    heading: Markup = EMPTY
    below: Markup = EMPTY


class Picture(Struct, frozen=True):
    """The bytes of a picture, of a media type that cannot contain scripts."""

    data: bytes
    media_type: str


class PlainText(Struct, frozen=True):
    """A text document."""

    text: str
    media_type: str = "text/plain"


class Download(Struct, frozen=True):
    """A file that the browser saves. `data` is what its `.json` twin returns."""

    name: str
    content: bytes
    media_type: str
    data: Any = None


class Redirect(Struct, frozen=True):
    """A redirect to another of our URLs; `branch` is the branch that contains the entry, if that is the reason."""

    url: str
    branch: int | None = None


PageResult = Page | Fragment | Picture | PlainText | Download | Redirect
"""What a page function returns."""
PageFunction = Callable[["PageRequest"], PageResult]
"""Computes the page for a request."""
