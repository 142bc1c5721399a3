"""Turn page results into HTTP responses: the frame with the navigation bar, style sheet and scripts, or JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from functools import lru_cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from msgspec import Struct
from starlette.responses import RedirectResponse, Response

from threadline.errors import NotFound
from threadline.json_values import encode_json
from threadline.render.html import el, icon, join, render_page, stylesheet
from threadline.web import urls
from threadline.web.pages.keys import KEYS_DATA_BLOCK
from threadline.web.request import Download, Fragment, Page, PageResult, Picture, Redirect
from threadline.web.urls import ASSETS, carried_inputs

JSON_SUFFIX = ".json"
STYLE_SHEET, THEME_SCRIPT, PAGE_SCRIPT, LIST_SCRIPT = "style.css", "initial_theme.js", "page.js", "list.js"
_ZONE_SCRIPT = "initial_zone.js"
_CONVERSATIONS = frozenset({"session", "agent"})
"""The kinds of pages without filters and rows, which do not need the script for lists."""
CACHED_ASSET = "private, max-age=31536000, immutable"
_SCRIPT_FOLDER = Path(__file__).parent / "assets"
_NAVIGATION: tuple[tuple[str, str, str], ...] = (
    (urls.SESSIONS, "Sessions", "sessions"),
    (urls.SEARCH, "Search", "search"),
    (urls.USAGE, "Usage", "usage"),
    (urls.WHY, "Insight", "insight"),
    (urls.CALLS, "Calls", "calls"),
    (urls.FILES, "Files", "file"),
    (urls.DOCTOR, "Doctor", "doctor"),
)
_PHONE_LINKS = 4
"""How many pages the bar of a phone shows beside its menu."""
_MENU: tuple[tuple[str, str], ...] = (
    *((path, label) for path, label, _icon in _NAVIGATION[_PHONE_LINKS:]),
    (urls.ERRORS, "Errors"),
    (urls.HISTORY, "Prompt history"),
    (urls.BLOCKS, "Five-hour windows"),
    (urls.COMPARE, "Compare sessions"),
    (urls.TIME_ZONE, "Time zone"),
    (urls.ACCESS, "Access"),
)
"""The pages in the menu of a phone."""


_SECTIONS: dict[str, Collection[str]] = {
    urls.SESSIONS: (urls.COMPARE,),
    urls.SEARCH: (urls.HISTORY,),
    urls.USAGE: (urls.BLOCKS, urls.RECEIPT),
    urls.WHY: urls.INSIGHT,
    urls.CALLS: (urls.ERRORS,),
}
"""The pages that belong to a page of the navigation. On them, its link is marked as current."""


def build_response(result: PageResult, path: str, *, bare: bool = False, default_zone: str | None = None) -> Response:
    """Build the response for a result: JSON if the path ends in `.json`, otherwise a document.

    With `bare`, the request comes from a script, which needs a fragment without the frame of a page. `default_zone` is
    the time zone of the page, unless the URL names one.
    """
    is_data = path.endswith(JSON_SUFFIX)
    match result:
        case Page() | Fragment():
            status = result.status if isinstance(result, Page) else HTTPStatus.OK
            html = partial(_html_response, result, path, bare=bare, default_zone=default_zone)
            return json_response(result.data, status) if is_data else html()
        case Redirect():
            return json_response({"page": result.url}) if is_data else RedirectResponse(result.url, HTTPStatus.FOUND)
        case Download():
            if is_data:
                return json_response(result.data)
            headers = {"content-disposition": f'attachment; filename="{quote(result.name)}"'}
            return Response(result.content, media_type=result.media_type, headers=headers)
        case Picture():
            return Response(result.data, media_type=result.media_type)
        case _:
            return _text_response(result.text, result.media_type)


def json_response(value: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Build a JSON response."""
    return Response(encode_json(value), status, media_type="application/json")


def _html_response(result: Page | Fragment, path: str, *, bare: bool, default_zone: str | None) -> Response:
    if isinstance(result, Fragment):
        if bare or result.is_bare:
            return _text_response(result.main, "text/html")
        result = Page(result.title, result.kind, join((result.heading, result.main, result.below)))
    scripts = result.scripts if result.kind in _CONVERSATIONS else (LIST_SCRIPT, *result.scripts)
    document = render_page(
        f"{result.title} · threadline" if result.title else "threadline",
        result.main,
        kind=result.kind,
        head=join((result.head, asset_links(scripts, default_zone), KEYS_DATA_BLOCK)),
        top=navigation_bar(path),
        after=result.after,
        **result.attributes,
    )
    return _text_response(document, "text/html", result.status)


def _text_response(text: str, media_type: str, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(str(text).encode("utf-8", errors="replace"), status, media_type=f"{media_type}; charset=utf-8")


def navigation_bar(path: str) -> Markup:
    """The bar at the top of the page at a path. On a phone, its links are at the bottom, and the rest is in a menu."""
    brand = el(
        "a",
        icon("thread"),
        "threadline",
        href=urls.build_url(urls.HOME),
        class_="brand",
        aria_current=_aria_current(path, urls.HOME),
    )
    links = [
        el("li", _page_link(path, *page), class_="wide-only" if at >= _PHONE_LINKS else None)
        for at, page in enumerate(page for page in _NAVIGATION if urls.is_offered(page[0]))
    ]
    menu = el(
        "details",
        el("summary", icon("menu"), "More"),
        el("ul", [el("li", _page_link(path, *page)) for page in _MENU if urls.is_offered(page[0])]),
    )
    pages = el("ul", links, el("li", menu, class_="phone-only"))
    box = el("input", type="search", name_="q", placeholder="Search all sessions", aria_label="Search all sessions")
    search = el("form", box, carried_inputs(), action=urls.SEARCH, method="get", role="search")
    buttons = (
        _script_button("menu", "palette", "Go to a session or page (Ctrl K)"),
        _script_button("moon", "theme", "Theme: light, dark, system (d)"),
        _icon_link("keys", urls.build_url(urls.KEYS), "Keyboard shortcuts", "Keyboard shortcuts (?)", "help"),
        _icon_link("clock", urls.build_url(urls.TIME_ZONE, back=path), "Time zone", "Time zone", "time-zone"),
        _icon_link("lock", urls.build_url(urls.ACCESS), "Access", "Access: other browsers, log out"),
    )
    return el("header", brand, el("nav", pages, aria_label="Pages"), search, *buttons, class_="top")


def _page_link(path: str, target: str, label: str, icon_name: str | None = None) -> Markup:
    return el(
        "a",
        icon(icon_name) if icon_name else None,
        label,
        href=urls.build_url(target),
        aria_current=_aria_current(path, target),
    )


def _icon_link(icon_name: str, url: str, label: str, hint: str, action: str | None = None) -> Markup:
    """A link of the bar that is only an icon."""
    return el("a", icon(icon_name), href=url, class_="keys", title=hint, aria_label=label, data_action=action)


def _script_button(icon_name: str, action: str, label: str) -> Markup:
    """A button that a script handles; without scripts it is hidden."""
    return el("button", icon(icon_name), type="button", data_action=action, title=label, aria_label=label)


def _aria_current(path: str, target: str) -> str | None:
    if path == target:
        return "page"
    if path in _SECTIONS.get(target, ()):
        return "true"
    is_below = path.startswith(f"{urls.SESSION if target == urls.SESSIONS else target}/")
    return "true" if is_below and target != urls.HOME else None


class Asset(Struct, frozen=True):
    """A style sheet or script."""

    data: bytes
    media_type: str


def asset_response(name: str, version: str | None = None) -> Response:
    """Build the response for an asset. Under the path of its version it never changes, so browsers keep it.

    Raises:
        NotFound: there is no such asset, or not in this version.
    """
    asset = _assets().get(name)
    if asset is None or version not in {None, _asset_version()}:
        raise NotFound("Unknown asset.")
    headers = {"cache-control": CACHED_ASSET} if version is not None else {}
    return Response(asset.data, media_type=asset.media_type, headers=headers)


def asset_links(scripts: Iterable[str] = (), default_zone: str | None = None) -> Markup:
    """The links in the head of a page: style sheet, the scripts that run before anything is drawn, the others.

    `scripts` are those that only this page needs. URLs contain the version of all assets.
    """
    return join(
        (
            el("link", rel="stylesheet", href=_asset_url(STYLE_SHEET)),
            el("script", src=_asset_url(_ZONE_SCRIPT), data_zone=default_zone),
            el("script", src=_asset_url(THEME_SCRIPT)),
            *(el("script", src=_asset_url(name), type="module") for name in (PAGE_SCRIPT, *scripts)),
        )
    )


@lru_cache(maxsize=1)
def _assets() -> dict[str, Asset]:
    """All assets, read once: they do not change while the server runs."""
    assets = {STYLE_SHEET: Asset(stylesheet().encode(), "text/css; charset=utf-8")}
    for path in sorted(_SCRIPT_FOLDER.glob("*.js")):
        assets[path.name] = Asset(path.read_bytes(), "text/javascript; charset=utf-8")
    return assets


@lru_cache(maxsize=1)
def _asset_version() -> str:
    """A hash of all assets. It is a folder in their URLs, so a script imports others of the same version."""
    digest = hashlib.blake2b(digest_size=6)
    for name, asset in sorted(_assets().items()):
        digest.update(f"{name} {len(asset.data)}\n".encode() + asset.data)
    return digest.hexdigest()


def _asset_url(name: str) -> str:
    return f"{ASSETS}/{_asset_version()}/{name}"
