"""Page: what an address shows, made once, and sent as HTML or, at the address that ends in `.json`, as its data.

A page is a function from what was asked to a `Page`. It knows nothing of HTTP: an error is raised as one of
`threadline.errors`, and `web/answer.py` alone turns pages and errors into responses. To add one, write::

    def shown(asked: Asked) -> Page:
        listing = asked.archive.sessions(Wanted(limit=asked.number("limit", 50, least=1, most=500)))
        return Page(
            title="Sessions",
            kind="sessions",
            main=el("h1", f"{len(listing.sessions):,} sessions"),
            data=[row(one) for one in listing.sessions],
        )

and name it in the table of `web/pages/__init__.py`. `asked.archive` is this request's own until it is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec import Struct

from threadline.render.html.element import EMPTY, Child, Value

if TYPE_CHECKING:
    from threadline.web.asked import Asked


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


class Plain(Struct, frozen=True):
    """A text that is nothing but text."""

    text: str
    media_type: str = "text/plain"


class Elsewhere(Struct, frozen=True):
    """What was asked for lies at another address of ours; `branch` is the one that has it, where that is why."""

    address: str
    branch: int | None = None


Made = Page | Fragment | Picture | Plain | Elsewhere
"""What an address may give."""
Make = Callable[["Asked"], Made]
"""Makes it of what was asked."""
