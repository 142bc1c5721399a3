"""Answers: pages, their data and errors as responses; the one place that knows what `.json` means."""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response

from threadline.errors import BadQuery, Error, IndexBusy, NotFound, Unreadable
from threadline.render.html.element import el, join
from threadline.render.html.frame import frame
from threadline.render.html.words import shown
from threadline.web.addresses import HOME, address
from threadline.web.asset import links_to_assets
from threadline.web.keys import data_block
from threadline.web.page import Elsewhere, Fragment, Made, Page, Picture, Plain
from threadline.web.top import top

SUFFIX = ".json"
_LOG = logging.getLogger("threadline")
_LONE = re.compile("[\ud800-\udfff]")
_STATUS: dict[type[Exception], HTTPStatus] = {
    NotFound: HTTPStatus.NOT_FOUND,
    BadQuery: HTTPStatus.BAD_REQUEST,
    Unreadable: HTTPStatus.SERVICE_UNAVAILABLE,
    IndexBusy: HTTPStatus.SERVICE_UNAVAILABLE,
}


def answer(make: Callable[[], Made], path: str, *, bare: bool = False) -> Response:
    """What is made, as the path wants it: data where it ends in `.json`, and otherwise a page.

    `bare` says that a script asks, which wants a fragment without the frame.
    """
    is_data = path.endswith(SUFFIX)
    try:
        made = make()
        if isinstance(made, Page | Fragment):
            data = made.data() if is_data and callable(made.data) else made.data
            status = made.status if isinstance(made, Page) else HTTPStatus.OK
            return _data(data, status) if is_data else _html(made, path, bare=bare, status=status)
        if is_data and isinstance(made, Elsewhere):
            return _data({"page": made.address})
        return _other(made)
    except (Error, sqlite3.Error) as error:
        return refused(error, path)
    except Exception as error:  # noqa: BLE001 - whatever it is, the server goes on
        _LOG.exception("threadline: %s could not be shown.", path)
        return refused(error, path)


def refused(error: Exception, path: str) -> Response:
    """An error as a page, or as data: its sentence where it is one of ours, and otherwise no word of what happened."""
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), None)
    if status is not None or isinstance(error, Error):
        sentence = str(error)
    elif isinstance(error, sqlite3.Error):
        status, sentence = HTTPStatus.SERVICE_UNAVAILABLE, f"The index cannot be read now ({error}); try again."
    else:
        sentence = "This page could not be made; what went wrong is told where `threadline serve` runs."
    code = status or HTTPStatus.INTERNAL_SERVER_ERROR
    if path.endswith(SUFFIX):
        return _data({"error": sentence}, code)
    lines = [el("p", shown(line)) for line in sentence.split("\n")]
    main = join((el("h1", code.phrase), *lines, el("p", el("a", "Home", href=address(HOME)))))
    return _html(Page(code.phrase, "error", main), path, status=code)


def _html(made: Page | Fragment, path: str, *, bare: bool = False, status: HTTPStatus = HTTPStatus.OK) -> Response:
    if isinstance(made, Fragment):
        if bare or made.is_bare:
            return _text(made.main, "text/html", status)
        made = Page(made.title, made.kind, made.main)
    document = frame(
        f"{made.title} · threadline" if made.title else "threadline",
        made.main,
        kind=made.kind,
        head=join((made.head, links_to_assets(made.scripts), data_block())),
        top=top(path),
        after=made.after,
        **made.attributes,
    )
    return _text(document, "text/html", status)


def _other(made: Picture | Plain | Elsewhere) -> Response:
    if isinstance(made, Elsewhere):
        return RedirectResponse(made.address, HTTPStatus.FOUND)
    if isinstance(made, Picture):
        return Response(made.data, media_type=made.media_type)
    return _text(made.text, made.media_type)


def _text(text: str, media_type: str, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(str(text).encode("utf-8", errors="replace"), status, media_type=f"{media_type}; charset=utf-8")


def _data(value: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(encoded(value), status, media_type="application/json")


def encoded(value: Any) -> bytes:
    """JSON in valid UTF-8, whatever the strings hold; amounts are texts, which lose nothing."""
    try:
        return msgspec.json.encode(value, enc_hook=_plain)
    except UnicodeEncodeError:
        return msgspec.json.encode(_clean(msgspec.to_builtins(value, enc_hook=_plain)))


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value).encode(errors="surrogateescape").decode(errors="replace")
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_clean(key): _clean(one) for key, one in value.items()}
    return [_clean(one) for one in value] if isinstance(value, list | tuple) else value
