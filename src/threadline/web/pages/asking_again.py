"""Asking again: where a value says nothing sensible, the page keeps its form, with what was typed and what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING

from threadline.errors import BadQuery
from threadline.render.html.element import el, join
from threadline.render.html.words import shown
from threadline.web.page import Page
from threadline.web.pages.filters import Field, filters

if TYPE_CHECKING:
    from threadline.web.asked import Asked

_Make = Callable[["Asked"], Page]


def asking_again(title: str, fields: Callable[[Asked], Iterable[Field]], *kept: str) -> Callable[[_Make], _Make]:
    """Let a page that refuses what was asked show its form; `kept` are the values that stay when it is sent."""

    def wrapped(make: _Make) -> _Make:
        @wraps(make)
        def made(asked: Asked) -> Page:
            try:
                return make(asked)
            except BadQuery as error:
                return _refused(asked, error, title, fields(asked), kept)

        return made

    return wrapped


def _refused(asked: Asked, error: BadQuery, title: str, fields: Iterable[Field], kept: Iterable[str]) -> Page:
    # A value that the form has no field for would be refused again each time it is sent.
    main = join(
        (
            el("div", el("h1", title), class_="head"),
            el("p", shown(str(error)), class_="refused", role="alert"),
            filters(asked, list(fields), kept=[name for name in kept if f"{name}=" not in str(error)]),
            el("p", el("a", "Without any of it", href=asked.path), class_="note"),
        )
    )
    return Page(title, title.lower(), main, {"error": str(error)}, status=HTTPStatus.BAD_REQUEST)
