"""Filter forms and paging of list pages. A page that rejects a value shows its form again, with the error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

from markupsafe import Markup
from msgspec import Struct

from threadline.errors import BadQuery
from threadline.render import shorten, visible
from threadline.render.html import EMPTY, Child, el, join
from threadline.web.request import Page, PageFunction, PageResult
from threadline.web.urls import carried_inputs, hidden_inputs, json_path

if TYPE_CHECKING:
    from threadline.web.request import PageRequest

_Row = TypeVar("_Row")
ALL = "all"
"""The value of a field that filters nothing."""
MAX_PAGE_SIZE = 500
_MAX_OFFSET = 1_000_000
_MAX_SUGGESTIONS = 200
_MAX_CHIP = 60
_PHONE_FIELDS = 2


class FormField(Struct, frozen=True):
    """A field of a filter form.

    With `choices` (value and label), it is a menu. `suggestions` are values to choose from while typing. A wide field
    is long enough for a path.
    """

    name: str
    label: str
    hint: str = ""
    choices: Sequence[tuple[str, str]] = ()
    suggestions: Sequence[str] = ()
    kind: str = "text"
    is_wide: bool = False


def filter_form(request: PageRequest, fields: Sequence[FormField], *, preserve: Iterable[str] = ()) -> Markup:
    """Render the form with its current values, and a link for each value that removes it.

    `preserve` are parameters that stay as they are when the form is sent.
    """
    form = el(
        "form",
        [_labelled_input(request, field) for field in fields],
        # On a phone, only the first fields are shown until this is open.
        el("details", el("summary", "More filters"), class_="more-filters") if len(fields) > _PHONE_FIELDS else None,
        hidden_inputs((name, text) for name in preserve if (text := request.text(name))),
        carried_inputs(),
        el("button", "Apply", type="submit"),
        action=request.path,
        method="get",
        class_="filters",
    )
    return Markup(form + _filter_chips(request, fields))  # noqa: S704 - both are elements


def is_safe_value(text: str) -> bool:
    """Whether a text can be a form value: one with invisible or control characters would not be what it seems."""
    return visible(text) == text


def progress_bar(label: str, text: str, done: int, total: int, url: str, *, poll: str | None = None) -> Markup:
    """The progress of work that a page waits for. A script asks for it at `poll`, and at the end goes to `url`.

    `poll` is the JSON twin of the page by default. It returns `state`, which is `done` at the end, `done` and `total`.
    """
    path, _, query = url.partition("?")
    twin = f"{json_path(path)}?{query}" if query else json_path(path)
    bar = el("progress", text, value=done, max=total or 1, aria_label=label, data_poll=poll or twin, data_done=url)
    reload = el("a", "Reload to see progress", href=url)
    return el("p", bar, el("span", text), reload, class_="progress")


def _labelled_input(request: PageRequest, field: FormField) -> Markup:
    return el(
        "label",
        el("span", field.label),
        _input(field, request.text(field.name)),
        _suggestion_list(field),
        class_="wide" if field.is_wide else None,
    )


def _input(field: FormField, value: str | None) -> Markup:
    if field.choices:
        # A value from the URL may be no choice, such as a part of a name.
        is_other = value is not None and value not in dict(field.choices)
        choices = [*field.choices, (value or "", shorten(value or "", _MAX_CHIP))] if is_other else field.choices
        options = [el("option", label, value=choice, selected=choice == (value or "")) for choice, label in choices]
        return el("select", options, name_=field.name)
    return el(
        "input",
        type=field.kind,
        name_=field.name,
        value=value or "",
        placeholder=field.hint or None,
        list_=f"{field.name}-suggestions" if field.suggestions else None,
        autocomplete="off",
    )


def _suggestion_list(field: FormField) -> Child:
    if not field.suggestions:
        return EMPTY
    options = [el("option", value=text) for text in field.suggestions[:_MAX_SUGGESTIONS] if is_safe_value(text)]
    return el("datalist", options, id=f"{field.name}-suggestions")


def _filter_chips(request: PageRequest, fields: Sequence[FormField]) -> Markup:
    filters = [
        (field, text)
        for field in fields
        if (text := request.text(field.name)) and not (field.choices or field.is_wide) and text != ALL
    ]
    if not filters:
        return EMPTY
    chips = [
        el(
            "a",
            f"{field.label.lower()} {shorten(text, _MAX_CHIP)} ",
            el("span", "\N{MULTIPLICATION SIGN}", aria_hidden="true"),
            href=request.url_with(**{field.name: None, "after": None}),
            class_="chip chosen",
            title="Remove this filter",
        )
        for field, text in filters
    ]
    return el("p", chips, class_="chips")


def form_on_error(
    title: str, kind: str, fields: Callable[[PageRequest], Iterable[FormField]], *preserve: str
) -> Callable[[PageFunction], PageFunction]:
    """Decorate a page to show its form and the error if it rejects a value.

    `title` and `kind` are those of the page; `preserve` is as in `filter_form`.
    """

    def decorate(page: PageFunction) -> PageFunction:
        @wraps(page)
        def page_or_form(request: PageRequest) -> PageResult:
            try:
                return page(request)
            except BadQuery as error:
                form = filter_form(request, list(fields(request)), preserve=_accepted(preserve, error))
                return _error_page(request, error, title, kind, form)

        return page_or_form

    return decorate


def _accepted(names: Iterable[str], error: BadQuery) -> list[str]:
    """The parameters that the error does not name. A rejected one would be rejected again with every change."""
    return [name for name in names if f"{name}=" not in str(error)]


def _error_page(request: PageRequest, error: BadQuery, title: str, kind: str, form: Markup) -> Page:
    main = join(
        (
            el("div", el("h1", title), class_="head"),
            el("p", visible(str(error)), class_="refused", role="alert"),
            form,
            el("p", el("a", "Remove all filters", href=request.path), class_="note"),
        )
    )
    return Page(title, kind, main, {"error": str(error)}, status=HTTPStatus.BAD_REQUEST)


class PageRange(Struct, frozen=True):
    """Which rows of a list are shown: `limit` rows after the first `after`."""

    after: int
    limit: int

    @property
    def stop(self) -> int:
        """How many rows to fetch in order to know whether there are more."""
        return self.after + self.limit + 1

    def select(self, rows: Sequence[_Row]) -> Sequence[_Row]:
        """The rows of a list that are shown."""
        return rows[self.after : self.after + self.limit]


def parse_range(request: PageRequest, default_limit: int) -> PageRange:
    """Parse the parameters `after` and `limit`."""
    return PageRange(
        request.number("after", 0, most=_MAX_OFFSET),
        request.number("limit", default_limit, least=1, most=MAX_PAGE_SIZE),
    )


def pager(request: PageRequest, shown: PageRange, count: int, total: int | None, *, more: bool | None = None) -> Markup:
    """Render links to the previous and next rows. If the `total` is unknown, `more` says whether there are more."""
    if more is None:
        more = total is not None and shown.after + count < total
    if not shown.after and not more:
        return EMPTY
    before = max(0, shown.after - shown.limit)
    previous = el("a", "← Previous", href=request.url_with(after=before or None), rel="prev")
    following = el("a", "Next →", href=request.url_with(after=shown.after + shown.limit), rel="next")
    of_total = f" of {total:,}" if total is not None else ""
    rows = f"{shown.after + 1:,} to {shown.after + count:,}{of_total}" if count else "no more rows"
    return el(
        "nav",
        previous if shown.after else EMPTY,
        el("span", rows),
        following if more else EMPTY,
        class_="pager",
        aria_label="Pagination",
    )
