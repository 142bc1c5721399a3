"""Turn pages, their JSON and errors into HTTP responses, framed with the navigation bar."""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from threadline.errors import BadQuery, Error, IndexBusy, NotFound, Unreadable
from threadline.render import visible
from threadline.render.html import el, icon, join, render_page
from threadline.web import urls
from threadline.web.assets import asset_links, keys_data_block
from threadline.web.request import Fragment, Page, PageResult, Picture, PlainText, Redirect
from threadline.web.urls import HOME, build_url, carried_inputs

JSON_SUFFIX = ".json"
_LOG = logging.getLogger("threadline")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_STATUS_OF_ERROR: dict[type[Exception], HTTPStatus] = {
    NotFound: HTTPStatus.NOT_FOUND,
    BadQuery: HTTPStatus.BAD_REQUEST,
    Unreadable: HTTPStatus.SERVICE_UNAVAILABLE,
    IndexBusy: HTTPStatus.SERVICE_UNAVAILABLE,
}


def build_response(make: Callable[[], PageResult], path: str, *, bare: bool = False) -> Response:
    """What is made, as the path wants it: data where it ends in `.json`, and otherwise a page.

    `bare` says that a script asks, which wants a fragment without the frame.
    """
    is_data = path.endswith(JSON_SUFFIX)
    try:
        made = make()
        if isinstance(made, Page | Fragment):
            data = made.data() if is_data and callable(made.data) else made.data
            status = made.status if isinstance(made, Page) else HTTPStatus.OK
            return _json_response(data, status) if is_data else _html_response(made, path, bare=bare, status=status)
        if is_data and isinstance(made, Redirect):
            return _json_response({"page": made.address})
        return _other_response(made)
    except (Error, sqlite3.Error) as error:
        return error_response(error, path)
    except Exception as error:  # noqa: BLE001 - whatever it is, the server goes on
        _LOG.exception("threadline: %s could not be shown.", path)
        return error_response(error, path)


def error_response(error: Exception, path: str) -> Response:
    """An error as a page, or as data: its sentence where it is one of ours, and otherwise no word of what happened."""
    status = next((status for kind, status in _STATUS_OF_ERROR.items() if isinstance(error, kind)), None)
    if status is not None or isinstance(error, Error):
        sentence = str(error)
    elif isinstance(error, sqlite3.Error):
        status, sentence = HTTPStatus.SERVICE_UNAVAILABLE, f"The index cannot be read now ({error}); try again."
    else:
        sentence = "This page could not be made; what went wrong is told where `threadline serve` runs."
    code = status or HTTPStatus.INTERNAL_SERVER_ERROR
    if path.endswith(JSON_SUFFIX):
        return _json_response({"error": sentence}, code)
    lines = [el("p", visible(line)) for line in sentence.split("\n")]
    main = join((el("h1", code.phrase), *lines, el("p", el("a", "Home", href=build_url(HOME)))))
    return _html_response(Page(code.phrase, "error", main), path, status=code)


def _html_response(
    made: Page | Fragment, path: str, *, bare: bool = False, status: HTTPStatus = HTTPStatus.OK
) -> Response:
    if isinstance(made, Fragment):
        if bare or made.is_bare:
            return _text_response(made.main, "text/html", status)
        made = Page(made.title, made.kind, made.main)
    document = render_page(
        f"{made.title} · threadline" if made.title else "threadline",
        made.main,
        kind=made.kind,
        head=join((made.head, asset_links(made.scripts), keys_data_block())),
        top=navigation_bar(path),
        after=made.after,
        **made.attributes,
    )
    return _text_response(document, "text/html", status)


def _other_response(made: Picture | PlainText | Redirect) -> Response:
    if isinstance(made, Redirect):
        return RedirectResponse(made.address, HTTPStatus.FOUND)
    if isinstance(made, Picture):
        return Response(made.data, media_type=made.media_type)
    return _text_response(made.text, made.media_type)


def _text_response(text: str, media_type: str, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(str(text).encode("utf-8", errors="replace"), status, media_type=f"{media_type}; charset=utf-8")


def _json_response(value: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(encode_json(value), status, media_type="application/json")


def encode_json(value: Any) -> bytes:
    """JSON in valid UTF-8, whatever the strings hold; amounts are texts, which lose nothing."""
    try:
        return msgspec.json.encode(value, enc_hook=_encode_path)
    except UnicodeEncodeError:
        return msgspec.json.encode(_replace_surrogates(msgspec.to_builtins(value, enc_hook=_encode_path)))


def _encode_path(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value).encode(errors="surrogateescape").decode(errors="replace")
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(one) for key, one in value.items()}
    return [_replace_surrogates(one) for one in value] if isinstance(value, list | tuple) else value


_NAVIGATION: tuple[tuple[str, str, str], ...] = (
    (urls.SESSIONS, "Sessions", "sessions"),
    (urls.SEARCH, "Search", "search"),
    (urls.USAGE, "Usage", "usage"),
    (urls.CALLS, "Calls", "calls"),
    (urls.FILES, "Files", "file"),
    (urls.DOCTOR, "Doctor", "doctor"),
)


def navigation_bar(path: str) -> Markup:
    """The bar for a page at that path."""
    brand = el(
        "a",
        icon("thread"),
        "threadline",
        href=urls.build_url(urls.HOME),
        class_="brand",
        **_current_attributes(path, urls.HOME),
    )
    places = el("ul", *(el("li", _navigation_link(path, *one)) for one in _NAVIGATION))
    box = el("input", type="search", name_="q", placeholder="Search all sessions", aria_label="Search all sessions")
    search = el("form", box, carried_inputs(), action=urls.SEARCH, method="get", role="search")
    keys = el(
        "a",
        icon("keys"),
        href=urls.build_url(urls.KEYS),
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


def _navigation_link(path: str, address: str, label: str, drawn: str) -> Markup:
    return el("a", icon(drawn), el("span", label), href=urls.build_url(address), **_current_attributes(path, address))


def _current_attributes(path: str, address: str) -> dict[str, str]:
    is_session = address == urls.SESSIONS and path.startswith(f"{urls.SESSION}/")
    return {"aria_current": "page"} if path == address else {"aria_current": "true"} if is_session else {}
