"""What lists say of things: a moment, a project, an amount, each in few characters and whole for whoever asks."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, tzinfo
from decimal import Decimal

from markupsafe import Markup

from threadline.model.zone import in_zone, zone_name
from threadline.render.amounts import amount
from threadline.render.amounts import short as shortened
from threadline.render.figures import moment as utc
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.words import one

_PARTS = 2
_LONGEST = 48


def row_of_facts(facts: Iterable[Child]) -> Markup:
    """Facts in a row. The dot between them is the style's; the blank is there for who copies them, or listens."""
    return el("p", join((el("span", fact) for fact in facts if fact), Markup(" ")), class_="facts")


def when(moment: datetime | None, zone: tzinfo) -> Markup:
    """A moment as the clocks of a zone show it; pointing at it tells it in UTC."""
    if moment is None:
        return EMPTY
    return el("time", utc(in_zone(moment, zone)), datetime=moment.isoformat(), title=f"{utc(moment)} UTC")


def times_of(zone: tzinfo) -> Markup:
    """The zone whose clocks show the times of a page; it is said once, in its head."""
    return row_of_facts([f"times of {zone_name(zone)}"])


def project(path: str, href: str | None = None) -> Markup:
    """The end of a project's path, which is what people call it; pointing at it tells all of it."""
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    short = one("/".join(parts[-_PARTS:]) or path, _LONGEST)
    kind: dict[str, str] = {"class_": "project", "title": one(path, 400)}
    return el("a", short, href=href, **kind) if href is not None else el("span", short, **kind)


def money(value: Decimal | None, unpriced: int = 0) -> Child:
    """An amount; what is in it only in part says so, and what has no price is a question mark that says so."""
    if value is None:
        return el("span", "?", title="No price is known for these models.") if unpriced else ""
    if unpriced:
        return el("span", f"≥ {amount(value)}", title=f"{unpriced:,} charges have no known price and are not in it.")
    return amount(value)


def short(number: int) -> Markup:
    """A number of tokens in few digits; pointing at it tells them all."""
    return el("span", shortened(number).strip(), title=f"{number:,}")
