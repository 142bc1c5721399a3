"""What a page function receives and returns: the parsed request, and a page, fragment, picture, text or redirect.

A page is a function from a request to a `Page`. It knows nothing of HTTP: errors are raised as those of
`threadline.errors`, and `web/response.py` alone turns pages and errors into responses. To add a page, write such a
function and add it to the table in `web/pages/__init__.py`. `archive` belongs to this request until it is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from markupsafe import Markup
from msgspec import Struct

from threadline.errors import BadQuery
from threadline.model.times import parse_moment
from threadline.model.times import parse_zone as zone_of
from threadline.render.html import EMPTY, Child, Value
from threadline.web.urls import QueryValue, build_url

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.web.session_cache import SessionCache

_Choice = TypeVar("_Choice", bound=StrEnum)

_TRUE_WORDS, _FALSE_WORDS = frozenset({"1", "true", "yes", "on"}), frozenset({"", "0", "false", "no", "off"})
_MAX_QUOTED = 80


class PageRequest(Struct, frozen=True):
    """A request: `path` without `.json`, the values in its query, those in its path, and what may answer it.

    An empty value counts as none: that is what a form sends for a field that was left alone. `wants_data`: it asks for
    the page's `.json` twin.
    """

    path: str
    query: Sequence[tuple[str, str]]
    archive: Archive
    session_cache: SessionCache
    named: Mapping[str, str] = {}
    now: datetime = datetime.min.replace(tzinfo=UTC)
    wants_data: bool = False

    def texts(self, name: str) -> tuple[str, ...]:
        """Every value of that name, in order; a comma parts several."""
        return tuple(part.strip() for text in self._all(name) for part in text.split(",") if part.strip())

    def text(self, name: str) -> str | None:
        """The value of that name; the last, where there are several."""
        values = self._all(name)
        return values[-1] if values else None

    def number(self, name: str, default: int, *, least: int = 0, most: int = 1_000_000_000) -> int:
        """A whole number."""
        found = self.optional_number(name, least=least, most=most)
        return default if found is None else found

    def optional_number(self, name: str, *, least: int = 0, most: int = 1_000_000_000) -> int | None:
        """A whole number, or None where there is none."""
        text = self.text(name)
        if text is None:
            return None
        number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 12 else None  # noqa: PLR2004 - digits
        if number is None or not least <= number <= most:
            raise BadQuery(f"{name}={_quote_short(text)} is no whole number from {least:,} to {most:,}.")
        return number

    def flag(self, name: str) -> bool:
        """Yes or no."""
        word = (self.text(name) or "").lower()
        if word not in _TRUE_WORDS | _FALSE_WORDS:
            raise BadQuery(f"{name}={_quote_short(word)} is neither 1 nor 0.")
        return word in _TRUE_WORDS

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        """One of some words."""
        word = self.text(name)
        if word is not None and word not in choices:
            raise BadQuery(f"{name}={_quote_short(word)} is none of {', '.join(choices)}.")
        return word or default

    def one_of(self, name: str, kind: type[_Choice], default: _Choice) -> _Choice:
        """One of an enumeration."""
        return kind(self.choice(name, [str(one) for one in kind], str(default)))

    def moment(self, name: str, *, end: bool = False, zone: tzinfo | None = None) -> datetime | None:
        """A moment as people write it (`2026-11-03`, `7d`, `yesterday`); with `end`, a day means its last moment."""
        text = self.text(name)
        return parse_moment(text[:_MAX_QUOTED], now=self.now, end=end, zone=zone) if text is not None else None

    def zone(self) -> tzinfo:
        """The zone that times are told in: `tz`, or this machine's."""
        return zone_of(self.text("tz"))

    def here(self, **changes: QueryValue) -> str:
        """This page's address with some values changed; None takes one away."""
        kept = [(name, value) for name, value in self.query if name not in changes and value]
        return build_url(self.path, kept, **changes)

    def _all(self, name: str) -> list[str]:
        return [value for key, value in self.query if key == name and value.strip()]


def _quote_short(text: str) -> str:
    return repr(text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…")


class Page(Struct, frozen=True):
    """What is shown: `main` stands in the frame, `data` is what its `.json` twin gives.

    That is anything msgspec encodes, or a function that makes it, where it takes a while.
    `kind` is the class of the body, by which style and scripts know which page it is. `attributes` are those of the
    `<main>` element. `head` is added to the document's head, `after` stands below `main`. `scripts` are names of files
    in `web/assets` that only this page needs. `status` says whether it is what was asked for.
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
    """A piece of a page, which a script is given as it is; a person gets it in a frame with `title` and `kind`.

    `is_bare`: nobody is meant to look at it alone.
    """

    title: str
    kind: str
    main: Markup
    data: Any = None
    is_bare: bool = False


class Picture(Struct, frozen=True):
    """Bytes of a picture, of a type that cannot hold a script."""

    data: bytes
    media_type: str


class PlainText(Struct, frozen=True):
    """A text that is nothing but text."""

    text: str
    media_type: str = "text/plain"


class Redirect(Struct, frozen=True):
    """What was asked for lies at another address of ours; `branch` is the one that has it, where that is why."""

    address: str
    branch: int | None = None


PageResult = Page | Fragment | Picture | PlainText | Redirect
"""What an address may give."""
PageFunction = Callable[["PageRequest"], PageResult]
"""Makes it of what was asked."""
