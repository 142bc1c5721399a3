"""Filter forms and paging for list pages; a page that rejects a value shows its form again with the error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec import Struct

from threadline.errors import BadQuery
from threadline.render import shorten, visible
from threadline.render.html import EMPTY, Child, el, join
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.web.request import PageRequest

_MAX_SUGGESTIONS = 200
_MAX_CHIP = 60
ALL = "all"
"""What a field says where nothing is to be left out."""


class FormField(Struct, frozen=True):
    """A value that can be asked for.

    Where `choices` are given it is one of them, each with its name; `offered` are values that may be typed.
    """

    name: str
    label: str
    hint: str = ""
    choices: Sequence[tuple[str, str]] = ()
    offered: Sequence[str] = ()
    kind: str = "text"


def filter_form(asked: PageRequest, fields: Sequence[FormField], *, kept: Iterable[str] = ()) -> Markup:
    """The form, with what is asked for now in it, and below it a link for each value that takes it away.

    `kept` are values that stay as they are when the form is sent.
    """
    hidden = [el("input", type="hidden", name_=name, value=text) for name in kept if (text := asked.text(name))]
    form = el(
        "form",
        [_labelled_input(asked, field) for field in fields],
        hidden,
        el("button", "Show", type="submit"),
        action=asked.path,
        method="get",
        class_="filters",
    )
    return Markup(form + _filter_chips(asked, fields))  # noqa: S704 - both are elements


def is_safe_value(text: str) -> bool:
    """Whether it can stand in a form as it is: what hides or steers could not be told from what it seems."""
    return visible(text) == text


def choice_chip(address: str, label: str, *, is_chosen: bool) -> Markup:
    """A link that is one of several, of which one is shown."""
    return el(
        "a", label, href=address, class_="chip chosen" if is_chosen else "chip", aria_current=_aria_true(is_chosen)
    )


def _aria_true(is_chosen: object) -> str | None:
    return "true" if is_chosen else None


def _labelled_input(asked: PageRequest, field: FormField) -> Markup:
    value = asked.text(field.name)
    return el("label", el("span", field.label), _input(field, value), _suggestion_list(field))


def _input(field: FormField, value: str | None) -> Markup:
    if field.choices:
        options = [el("option", label, value=word, selected=word == (value or "")) for word, label in field.choices]
        return el("select", options, name_=field.name)
    return el(
        "input",
        type="text" if field.kind == "text" else field.kind,
        name_=field.name,
        value=value or "",
        placeholder=field.hint or None,
        list_=f"{field.name}-offered" if field.offered else None,
        autocomplete="off",
    )


def _suggestion_list(field: FormField) -> Child:
    if not field.offered:
        return EMPTY
    return el(
        "datalist",
        [el("option", value=text) for text in field.offered[:_MAX_SUGGESTIONS] if is_safe_value(text)],
        id=f"{field.name}-offered",
    )


def _filter_chips(asked: PageRequest, fields: Sequence[FormField]) -> Markup:
    given = [
        (field, text) for field in fields if (text := asked.text(field.name)) and not field.choices and text != ALL
    ]
    if not given:
        return EMPTY
    made = [
        el(
            "a",
            f"{field.label.lower()} {shorten(text, _MAX_CHIP)} ",
            el("span", "\N{MULTIPLICATION SIGN}", aria_hidden="true"),
            href=asked.here(**{field.name: None, "after": None}),
            class_="chip chosen",
            title="Take this away",
        )
        for field, text in given
    ]
    return el("p", made, class_="chips")


_PageFunction = Callable[["PageRequest"], Page]


def form_on_error(
    title: str, fields: Callable[[PageRequest], Iterable[FormField]], *kept: str
) -> Callable[[_PageFunction], _PageFunction]:
    """Let a page that refuses what was asked show its form; `kept` are the values that stay when it is sent."""

    def wrapped(make: _PageFunction) -> _PageFunction:
        @wraps(make)
        def made(asked: PageRequest) -> Page:
            try:
                return make(asked)
            except BadQuery as error:
                return _error_page(asked, error, title, fields(asked), kept)

        return made

    return wrapped


def _error_page(
    asked: PageRequest, error: BadQuery, title: str, fields: Iterable[FormField], kept: Iterable[str]
) -> Page:
    # A value that the form has no field for would be refused again each time it is sent.
    main = join(
        (
            el("div", el("h1", title), class_="head"),
            el("p", visible(str(error)), class_="refused", role="alert"),
            filter_form(asked, list(fields), kept=[name for name in kept if f"{name}=" not in str(error)]),
            el("p", el("a", "Without any of it", href=asked.path), class_="note"),
        )
    )
    return Page(title, title.lower(), main, {"error": str(error)}, status=HTTPStatus.BAD_REQUEST)


MAX_PAGE_SIZE = 500
_MAX_OFFSET = 1_000_000


class PageRange(Struct, frozen=True):
    """So many, after so many others."""

    after: int
    limit: int

    @property
    def stop(self) -> int:
        """How many have to be known to show it and to tell whether there are more."""
        return self.after + self.limit + 1


def parse_range(asked: PageRequest, usual: int) -> PageRange:
    """The part that is asked for."""
    return PageRange(
        asked.number("after", 0, most=_MAX_OFFSET), asked.number("limit", usual, least=1, most=MAX_PAGE_SIZE)
    )


def pager(asked: PageRequest, shown: PageRange, count: int, total: int | None, *, more: bool) -> Markup:
    """Where one is in the list, and the ways on; `total` is None where nobody has counted."""
    if not shown.after and not more:
        return EMPTY
    before = max(0, shown.after - shown.limit)
    earlier = el("a", "← Earlier in the list", href=asked.here(after=before or None), rel="prev")
    later = el("a", "Further down the list →", href=asked.here(after=shown.after + shown.limit), rel="next")
    of = f" of {total:,}" if total is not None else ""
    told = f"{shown.after + 1:,} to {shown.after + count:,}{of}" if count else "nothing more"
    return el(
        "nav",
        earlier if shown.after else EMPTY,
        el("span", told),
        later if more else EMPTY,
        class_="pager",
        aria_label="Parts of the list",
    )
