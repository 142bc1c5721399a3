"""Filters: a form that asks for a part of a list, in addresses that can be kept and sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec import Struct

from threadline.render.html.element import EMPTY, Child, el
from threadline.render.html.words import one, shown

if TYPE_CHECKING:
    from threadline.web.asked import Asked

_OFFERED = 200
_LONGEST = 60
ALL = "all"
"""What a field says where nothing is to be left out."""


class Field(Struct, frozen=True):
    """A value that can be asked for.

    Where `choices` are given it is one of them, each with its name; `offered` are values that may be typed.
    """

    name: str
    label: str
    hint: str = ""
    choices: Sequence[tuple[str, str]] = ()
    offered: Sequence[str] = ()
    kind: str = "text"


def filters(asked: Asked, fields: Sequence[Field], *, kept: Iterable[str] = ()) -> Markup:
    """The form, with what is asked for now in it, and below it a link for each value that takes it away.

    `kept` are values that stay as they are when the form is sent.
    """
    hidden = [el("input", type="hidden", name_=name, value=text) for name in kept if (text := asked.text(name))]
    form = el(
        "form",
        [_field(asked, field) for field in fields],
        hidden,
        el("button", "Show", type="submit"),
        action=asked.path,
        method="get",
        class_="filters",
    )
    return Markup(form + _chips(asked, fields))  # noqa: S704 - both are elements


def is_plain(text: str) -> bool:
    """Whether it can stand in a form as it is: what hides or steers could not be told from what it seems."""
    return shown(text) == text


def chosen(address: str, label: str, *, is_chosen: bool) -> Markup:
    """A link that is one of several, of which one is shown."""
    return el("a", label, href=address, class_="chip chosen" if is_chosen else "chip", aria_current=_true(is_chosen))


def _true(is_chosen: object) -> str | None:
    return "true" if is_chosen else None


def _field(asked: Asked, field: Field) -> Markup:
    value = asked.text(field.name)
    return el("label", el("span", field.label), _input(field, value), _list(field))


def _input(field: Field, value: str | None) -> Markup:
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


def _list(field: Field) -> Child:
    if not field.offered:
        return EMPTY
    return el(
        "datalist",
        [el("option", value=text) for text in field.offered[:_OFFERED] if is_plain(text)],
        id=f"{field.name}-offered",
    )


def _chips(asked: Asked, fields: Sequence[Field]) -> Markup:
    given = [
        (field, text) for field in fields if (text := asked.text(field.name)) and not field.choices and text != ALL
    ]
    if not given:
        return EMPTY
    made = [
        el(
            "a",
            f"{field.label.lower()} {one(text, _LONGEST)} ",
            el("span", "\N{MULTIPLICATION SIGN}", aria_hidden="true"),
            href=asked.here(**{field.name: None, "after": None}),
            class_="chip chosen",
            title="Take this away",
        )
        for field, text in given
    ]
    return el("p", made, class_="chips")
