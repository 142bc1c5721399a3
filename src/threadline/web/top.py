"""The top of every page: where one can go, and the search box."""

from __future__ import annotations

from markupsafe import Markup

from threadline.render.html.element import el
from threadline.render.html.icons import icon
from threadline.web import addresses
from threadline.web.carried import carried_fields

_PLACES: tuple[tuple[str, str, str], ...] = (
    (addresses.SESSIONS, "Sessions", "sessions"),
    (addresses.SEARCH, "Search", "search"),
    (addresses.USAGE, "Usage", "usage"),
    (addresses.CALLS, "Calls", "calls"),
    (addresses.FILES, "Files", "file"),
    (addresses.DOCTOR, "Doctor", "doctor"),
)


def top(path: str) -> Markup:
    """The bar for a page at that path."""
    brand = el(
        "a",
        icon("thread"),
        "threadline",
        href=addresses.address(addresses.HOME),
        class_="brand",
        **_current(path, addresses.HOME),
    )
    places = el("ul", *(el("li", _place(path, *one)) for one in _PLACES))
    box = el("input", type="search", name_="q", placeholder="Search all sessions", aria_label="Search all sessions")
    search = el("form", box, carried_fields(), action=addresses.SEARCH, method="get", role="search")
    keys = el(
        "a",
        icon("keys"),
        href=addresses.address(addresses.KEYS),
        class_="keys",
        title="Keys (?)",
        aria_label="Keys",
        data_deed="help",
    )
    buttons = (
        _button("menu", "palette", "Go to a session or a page (Ctrl K)"),
        _button("moon", "theme", "Light or dark (d)"),
    )
    return el("header", brand, el("nav", places, aria_label="Pages"), search, *buttons, keys, class_="top")


def _button(drawn: str, deed: str, label: str) -> Markup:
    """A button for a script; without one it is not shown."""
    return el("button", icon(drawn), type="button", data_deed=deed, title=label, aria_label=label)


def _place(path: str, address: str, label: str, drawn: str) -> Markup:
    return el("a", icon(drawn), el("span", label), href=addresses.address(address), **_current(path, address))


def _current(path: str, address: str) -> dict[str, str]:
    is_session = address == addresses.SESSIONS and path.startswith(f"{addresses.SESSION}/")
    return {"aria_current": "page"} if path == address else {"aria_current": "true"} if is_session else {}
