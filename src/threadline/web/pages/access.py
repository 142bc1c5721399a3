"""The page about who may use the server: when access ends, a link for another browser, and logging out.

Its forms work without scripts. The guard accepts them because of their `Origin`. From pages with the policy
`no-referrer`, browsers send `Origin: null`; so this page relaxes it for requests to our own origin.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from http import HTTPStatus
from typing import TYPE_CHECKING

from markupsafe import Markup
from starlette.responses import HTMLResponse

from threadline.model.text import count
from threadline.render.html import Child, el, icon, join, render_page, time_element, with_code
from threadline.web import urls
from threadline.web.access import LINK_SECONDS, MAX_SECONDS
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.web.access import Access, Browser

_TITLE, _KIND = "Access", "access"
_UNITS = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}
_SEND_ORIGIN = el("meta", name_="referrer", content="same-origin")


def access_page(access: Access, browser: Browser | None, zone: tzinfo) -> Page:
    """When the access of this browser ends, with the forms that change it. Times are in a zone."""
    browsers = access.count_browsers()
    others = browsers - (browser is not None)
    data = {"browsers": browsers, "expires": _expiry(access, browser) if browser is not None else None}
    facts = [_describe_expiry(access, browser, zone)] if browser is not None else []
    facts.append(el("p", f"{count(others, 'other browser') if others else 'No other browser'} can use this page."))
    return _page(
        *facts,
        _block(
            "Another browser",
            f"Create a link for another browser or profile. It works once, within {_describe_time(LINK_SECONDS)}.",
            _form(urls.NEW_LINK, "Create a link"),
        ),
        _block(
            "Log out",
            "This browser loses access. To come back, press Enter in the terminal where `threadline serve` runs, and "
            "open the link that it prints.",
            join((_form(urls.LOG_OUT, "Log out"), _form(urls.LOG_OUT_ALL, "Log out all browsers"))),
        ),
        data=data,
    )


def link_page(url: str) -> Page:
    """A link for another browser. It is not a link in this page, because it must not be opened here."""
    text = el("p", f"Open this link in the other browser. It works once, within {_describe_time(LINK_SECONDS)}.")
    box = el("p", el("code", url))
    return _page(text, box, el("p", el("a", "Back", href=urls.build_url(urls.ACCESS))), data={"address": url})


def logged_out_page() -> HTMLResponse:
    """What a browser sees after it has logged out."""
    text = (
        "This browser is logged out. To come back, press Enter in the terminal where `threadline serve` runs, and open "
        "the link that it prints."
    )
    main = join(
        (el("p", icon("thread"), "threadline", class_="brand"), el("h1", "Logged out"), el("p", with_code(text)))
    )
    style = el("link", rel="stylesheet", href=f"{urls.ASSETS}/style.css")
    return HTMLResponse(str(render_page("Logged out · threadline", main, kind="refused", head=style)), HTTPStatus.OK)


def _page(*content: Child, data: object = None) -> Page:
    main = join((el("div", el("h1", _TITLE), class_="head"), *content))
    return Page(_TITLE, _KIND, main, data, head=_SEND_ORIGIN)


def _describe_expiry(access: Access, browser: Browser, zone: tzinfo) -> Markup:
    idle, total = _describe_time(access.idle_seconds), _describe_time(MAX_SECONDS)
    text = f". Each visit extends this to {idle}, but to no more than {total} after the first visit."
    return el("p", "This browser can use this page until ", time_element(_expiry(access, browser), zone), text)


def _expiry(access: Access, browser: Browser) -> datetime:
    return datetime.fromtimestamp(round(access.expiry(browser)), UTC)


def _block(heading: str, text: str, forms: Markup) -> Markup:
    return el("section", el("h2", heading), el("p", with_code(text)), forms, class_="block")


def _form(path: str, label: str) -> Markup:
    return el("form", el("button", label), action=path, method="post")


def _describe_time(seconds: float) -> str:
    unit = next(unit for unit in _UNITS if seconds >= _UNITS[unit] and seconds % _UNITS[unit] == 0)
    return count(round(seconds / _UNITS[unit]), unit)
