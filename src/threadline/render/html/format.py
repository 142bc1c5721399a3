"""Format times, projects, amounts and facts as HTML, short with the full value on hover."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, tzinfo
from decimal import Decimal

from markupsafe import Markup

from threadline.model.text import format_time as utc
from threadline.model.times import in_zone, zone_name
from threadline.render import format_amount, shorten
from threadline.render import short_number as shortened
from threadline.render.html.element import EMPTY, Child, el, join

_PATH_PARTS = 2
_MAX_PATH = 48


def facts_row(facts: Iterable[Child]) -> Markup:
    """Facts in a row. CSS adds the dot between them; the space is for copied text and screen readers."""
    return el("p", join((el("span", fact) for fact in facts if fact), Markup(" ")), class_="facts")


def time_element(moment: datetime | None, zone: tzinfo) -> Markup:
    """A time in a time zone. Its tooltip shows the time in UTC."""
    if moment is None:
        return EMPTY
    return el("time", utc(in_zone(moment, zone)), datetime=moment.isoformat(), title=f"{utc(moment)} UTC")


def time_zone_note(zone: tzinfo) -> Markup:
    """The time zone of a page, shown once in its header."""
    return facts_row([f"times of {zone_name(zone)}"])


def project_link(path: str, href: str | None = None) -> Markup:
    """The last part of a project's path. Its tooltip shows the full path."""
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    short = shorten("/".join(parts[-_PATH_PARTS:]) or path, _MAX_PATH)
    kind: dict[str, str] = {"class_": "project", "title": shorten(path, 400)}
    return el("a", short, href=href, **kind) if href is not None else el("span", short, **kind)


def cost_element(value: Decimal | None, unpriced: int = 0) -> Child:
    """An amount. It is marked as a lower bound if some charges have no price, and is `?` if none has."""
    if value is None:
        return el("span", "?", title="No price is known for these models.") if unpriced else ""
    if unpriced:
        return el(
            "span", f"≥ {format_amount(value)}", title=f"{unpriced:,} charges have no known price and are not in it."
        )
    return format_amount(value)


def number_element(number: int) -> Markup:
    """A short number of tokens. Its tooltip shows the exact number."""
    return el("span", shortened(number).strip(), title=f"{number:,}")
