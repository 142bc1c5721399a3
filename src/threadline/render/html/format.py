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
    """Facts in a row. The dot between them is the style's; the blank is there for who copies them, or listens."""
    return el("p", join((el("span", fact) for fact in facts if fact), Markup(" ")), class_="facts")


def time_element(moment: datetime | None, zone: tzinfo) -> Markup:
    """A moment as the clocks of a zone show it; pointing at it tells it in UTC."""
    if moment is None:
        return EMPTY
    return el("time", utc(in_zone(moment, zone)), datetime=moment.isoformat(), title=f"{utc(moment)} UTC")


def time_zone_note(zone: tzinfo) -> Markup:
    """The zone whose clocks show the times of a page; it is said once, in its head."""
    return facts_row([f"times of {zone_name(zone)}"])


def project_link(path: str, href: str | None = None) -> Markup:
    """The end of a project's path, which is what people call it; pointing at it tells all of it."""
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    short = shorten("/".join(parts[-_PATH_PARTS:]) or path, _MAX_PATH)
    kind: dict[str, str] = {"class_": "project", "title": shorten(path, 400)}
    return el("a", short, href=href, **kind) if href is not None else el("span", short, **kind)


def cost_element(value: Decimal | None, unpriced: int = 0) -> Child:
    """An amount; what is in it only in part says so, and what has no price is a question mark that says so."""
    if value is None:
        return el("span", "?", title="No price is known for these models.") if unpriced else ""
    if unpriced:
        return el(
            "span", f"≥ {format_amount(value)}", title=f"{unpriced:,} charges have no known price and are not in it."
        )
    return format_amount(value)


def number_element(number: int) -> Markup:
    """A number of tokens in few digits; pointing at it tells them all."""
    return el("span", shortened(number).strip(), title=f"{number:,}")
