"""Build HTML from typed Python calls, with all text escaped, and format times, projects and amounts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, tzinfo
from decimal import Decimal
from functools import lru_cache

from markupsafe import Markup, escape

from threadline.model.text import format_amount, format_time, format_tokens
from threadline.model.times import zone_name
from threadline.render import shorten

Child = Markup | str | int | float | None | Iterable["Child"]
"""The content of an element: `Markup`, any other text (which is escaped), or nothing."""
Value = str | int | float | bool | None
"""The value of an attribute. False and None omit it; True writes only its name."""

EMPTY = Markup()
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
"""Elements without an end tag. SVG shapes need one: without it, the next shape would be inside the last."""


def el(name: str, *children: Child, **attributes: Value) -> Markup:
    """An element: `el("p", "a < b", class_="note")`. Underscores in attributes become hyphens; a last one is dropped.

    >>> el("a", "1 < 2", href="/x?a&b", aria_label='"q"')
    Markup('<a href="/x?a&amp;b" aria-label="&#34;q&#34;">1 &lt; 2</a>')
    >>> el("input", type="checkbox", checked=True, disabled=False)
    Markup('<input type="checkbox" checked>')
    """
    start_tag = _start_tag(name, attributes)
    return _as_markup(start_tag if name in _VOID else f"{start_tag}{''.join(map(_to_html, children))}</{name}>")


def open_tag(name: str, **attributes: Value) -> Markup:
    """Only the start tag."""
    return _as_markup(_start_tag(name, attributes))


def join(children: Iterable[Child], between: Markup = EMPTY) -> Markup:
    """Join several children."""
    return _as_markup(str(between).join([_to_html(child) for child in children if child is not None]))


def _as_markup(html: str) -> Markup:
    """HTML in which every text was escaped, and names are ours. This is what `Markup(html)` does, but faster."""
    return str.__new__(Markup, html)


def _to_html(child: Child) -> str:
    if child.__class__ is Markup:
        return child
    if isinstance(child, str):
        return escape(child)
    if isinstance(child, int | float):
        return escape(str(child))
    return "" if child is None else "".join([_to_html(item) for item in child])


def _start_tag(name: str, attributes: Mapping[str, Value]) -> str:
    text = "".join([_attribute(key, value) for key, value in attributes.items() if value is not None])
    return f"<{name}{text}>"


def _attribute(key: str, value: Value) -> str:
    if value is False:
        return ""
    if value is True:
        return f" {_attribute_name(key)}"
    return f' {_attribute_name(key)}="{escape(str(value))}"'


@lru_cache(maxsize=512)
def _attribute_name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


_PATH_PARTS = 2
_MAX_PATH = 48


def facts_row(facts: Iterable[Child]) -> Markup:
    """Facts in a row. CSS adds the dot between them; the space is for copied text and screen readers."""
    return el("p", join((el("span", fact) for fact in facts if fact), Markup(" ")), class_="facts")


def choice_chip(url: str, label: str, *, is_chosen: bool, **attributes: Value) -> Markup:
    """A link that is one of several choices."""
    return el(
        "a",
        label,
        href=url,
        class_="chip chosen" if is_chosen else "chip",
        aria_current="true" if is_chosen else None,
        **attributes,
    )


def chip_row(label: str, chips: Child) -> Markup:
    """Links of which one is chosen, after what they choose."""
    return el("p", el("span", label, class_="label"), chips, class_="chips")


def with_code(text: str) -> list[Child]:
    """A sentence of ours, with the parts between backticks as code."""
    return [el("code", part) if at % 2 else part for at, part in enumerate(text.split("`"))]


def time_element(moment: datetime | None, zone: tzinfo) -> Markup:
    """A time in a time zone. Its tooltip shows the time in UTC."""
    if moment is None:
        return EMPTY
    return el("time", format_time(moment, zone), datetime=moment.isoformat(), title=f"{format_time(moment)} UTC")


def time_zone_note(zone: tzinfo) -> Markup:
    """The time zone of a page, shown once in its header."""
    return facts_row([f"times in {zone_name(zone)}"])


def project_link(path: str, href: str | None = None) -> Markup:
    """The last parts of a project's path, as the path is written. Its tooltip shows the full path."""
    separator = "\\" if "\\" in path and "/" not in path else "/"
    parts = [part for part in path.split(separator) if part]
    short = shorten(separator.join(parts[-_PATH_PARTS:]) or path, _MAX_PATH)
    kind: dict[str, str] = {"class_": "project", "title": shorten(path, 400)}
    return el("a", short, href=href, **kind) if href is not None else el("span", short, **kind)


def amount_element(value: Decimal | None, unpriced: int = 0) -> Child:
    """An amount. It is marked as a lower bound if some charges have no price, and is `?` if none has."""
    if value is None:
        return el("span", "?", title="No price is known for these models.") if unpriced else ""
    if unpriced:
        return el(
            "span", f"≥ {format_amount(value)}", title=f"{unpriced:,} charges without a known price are not included."
        )
    return format_amount(value)


def number_element(number: int) -> Markup:
    """A short number of tokens. Its tooltip shows the exact number."""
    return el("span", format_tokens(number), title=f"{number:,}")
