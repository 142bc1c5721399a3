"""The page that chooses the time zone of all pages.

The default is the zone of the browser, which a script stores in a cookie; without scripts, it is the machine's. A zone
that is chosen is a parameter of the URL (`tz`), which every link carries over, so that a bookmark shows the same times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit
from zoneinfo import available_timezones

from threadline.errors import BadQuery
from threadline.model.times import in_zone, parse_zone, zone_name
from threadline.render.html import Child, el, join
from threadline.web import urls
from threadline.web.pages.annotations import own_path
from threadline.web.request import Page, PageResult, Redirect
from threadline.web.urls import hidden_inputs

if TYPE_CHECKING:
    from threadline.web.request import PageRequest

_CHOICES = ("UTC", "America/Los_Angeles", "America/New_York", "Europe/London", "Europe/Berlin", "Asia/Tokyo")


def time_zone_page(request: PageRequest) -> PageResult:
    """Choose a zone; with `zone`, go back to the page that was open, in that zone.

    Raises:
        BadQuery: there is no such zone.
    """
    back = own_path(request.text("back")) or urls.HOME
    chosen = request.text("zone")
    if chosen is not None:
        parse_zone(chosen)  # rejects an unknown one
        return Redirect(with_zone(back, chosen))
    zone = request.zone()
    links = [
        el("li", el("a", f"{name} ({in_zone(request.now, parse_zone(name)):%H:%M})", href=with_zone(back, name)))
        for name in _known_choices()
    ]
    main = join(
        (
            el("div", el("h1", "Time zone"), el("p", f"Times are shown in {zone_name(zone)}."), class_="head"),
            _form(back),
            el("ul", links, class_="zones"),
            el("p", el("a", "Use the browser's zone", href=with_zone(back, None)), " (the default)"),
            el("p", el("a", "Use this machine's zone", href=with_zone(back, "local")), " (where threadline runs)"),
        )
    )
    return Page("Time zone", "access", main, {"zone": zone_name(zone)})


def _known_choices() -> list[str]:
    """The usual zones that this machine knows."""
    choices = []
    for name in _CHOICES:
        try:
            parse_zone(name)
        except BadQuery:
            continue
        choices.append(name)
    return choices


def with_zone(address: str, name: str | None) -> str:
    """An address with another time zone; None removes it."""
    parts = urlsplit(address)
    pairs = [(key, value) for key, value in parse_qsl(parts.query, keep_blank_values=True) if key != "tz"]
    pairs += [("tz", name)] if name is not None else []
    query = f"?{urlencode(pairs)}" if pairs else ""
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    return f"{parts.path}{query}{fragment}"


def _form(back: str) -> Child:
    """The form, whose field a script fills with the zone of the browser."""
    names = [el("option", value=name) for name in sorted(available_timezones())]
    box = el(
        "input",
        type="text",
        name_="zone",
        list_="zone-names",
        required=True,
        data_browser_zone=True,
        autocomplete="off",
    )
    return el(
        "form",
        el("label", el("span", "Zone"), box, el("datalist", names, id="zone-names")),
        hidden_inputs([("back", back)]),
        el("button", "Use this zone", type="submit"),
        action=urls.TIME_ZONE,
        method="get",
    )
