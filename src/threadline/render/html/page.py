"""The HTML document around a page: its frame, stylesheet and icons."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from importlib.resources import files

from markupsafe import Markup

from threadline.render.html.element import EMPTY, Child, Value, el, join

DOCTYPE = Markup("<!doctype html>\n")


def render_page(
    title: str,
    main: Child,
    *,
    kind: str,
    head: Child = EMPTY,
    top: Child = EMPTY,
    after: Child = EMPTY,
    **attributes: Value,
) -> Markup:
    """Render a complete document.

    `head` is the rest of `<head>` after the title: style, scripts, a policy. `top` is above `main` and `after`
    below it. `kind` is the class of the body, which identifies the page to styles and scripts. `attributes` are those
    of the `<main>` element.
    """
    head_elements = (
        el("meta", charset="utf-8"),
        el("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name_="color-scheme", content="light dark"),
        el("title", title),
        head,
    )
    body_elements = (
        el("a", "Skip to content", href="#main", class_="skip") if top else EMPTY,
        top,
        el("main", main, id="main", **attributes),
        after,
    )
    return join((DOCTYPE, el("html", el("head", *head_elements), el("body", *body_elements, class_=kind), lang="en")))


STYLESHEETS = ("base.css", "session.css", "lists.css", "charts.css", "print.css")
"""The CSS files in order. Later rules may override earlier ones."""

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SPACE = re.compile(r"\s+")


def read_stylesheet(name: str) -> str:
    """Read one CSS file."""
    return (files("threadline.render.html") / "assets" / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def stylesheet() -> str:
    """All CSS without comments and line breaks, for embedding in exported files."""
    return "".join(_minify(read_stylesheet(name)) for name in STYLESHEETS)


@lru_cache(maxsize=1)
def stylesheet_hash() -> str:
    """The hash for a content security policy that allows the embedded style: `style-src 'sha256-…'`."""
    return f"sha256-{base64.b64encode(hashlib.sha256(stylesheet().encode()).digest()).decode()}"


def _minify(text: str) -> str:
    return _SPACE.sub(" ", _COMMENT.sub("", text)).strip() + "\n"


# One path per icon, so that a page with many icons stays small and crossing lines are drawn once.
_PATHS: dict[str, str] = {
    "agent": "M4 2v3.5a3 3 0 0 0 3 3h4M4 5.5V14M13.5 8.5a1.25 1.25 0 1 1-2.5 0 1.25 1.25 0 0 1 2.5 0Z",
    "branch": "M4.5 2v12M4.5 9.5c0-3 7-2 7-6.5M9.5 5l2-2.25L13.5 5",
    "calls": "M2.5 4.5 6 8l-3.5 3.5M8 12h5.5",
    "clock": "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0ZM8 4.5V8l2.5 1.5",
    "close": "m4 4 8 8M12 4l-8 8",
    "columns": "M2 2.5h12v11h-12zM8 2.5v11",
    "compare": "M5.5 2v12M10.5 2v12M2 5h3.5M10.5 5H14M2 10h3.5M10.5 10H14",
    "compaction": "M8 1.5v4M8 10.5v4M3 7h10M3 9.5h10",
    "copy": "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
    "doctor": "M2 8.5h3l1.5-4 3 8 1.5-4h3",
    "down": "M8 2.5v11M3.5 9 8 13.5 12.5 9",
    "error": "M8 2 14.5 13.5h-13zM8 6.5v3M8 11.5v.25",
    "file": "M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3",
    "filter": "M2 3.5h12M4.5 8h7M7 12.5h2",
    "focus": "M2 5.5V2h3.5M10.5 2H14v3.5M14 10.5V14h-3.5M5.5 14H2v-3.5M6 8h4",
    "home": "M2 7.5 8 2.5l6 5M3.5 6.5v7h9v-7",
    "insight": "M2 2.5h12v11h-12zM8.5 2.5v11M2 9h6.5M8.5 6.5H14",
    "keys": "M1.5 4h13v8.5h-13zM4 6.75h.5M7 6.75h.5M10 6.75h.5M12 6.75h.25M5 9.75h6",
    "link": "M6.5 9.5l3-3M7.5 4.5l1.25-1.25a2.8 2.8 0 0 1 4 4L11.5 8.5M8.5 11.5l-1.25 1.25a2.8 2.8 0 0 1-4-4L4.5 7.5",
    "lock": "M3.5 7h9v7h-9zM5.5 7V4.5a2.5 2.5 0 0 1 5 0V7M8 10v1.5",
    "markdown": "M1.5 3.5h13v9h-13zM4 10V6l2 2.5L8 6v4M11.5 6v4M10 8.5l1.5 1.5L13 8.5",
    "menu": "M2.5 4h11M2.5 8h11M2.5 12h11",
    "note": "M3 2.5h10v8l-3 3H3zM5.5 5.5h5M5.5 8h3.5",
    "moon": "M13 9.75A5.75 5.75 0 0 1 6.25 3 5.5 5.5 0 1 0 13 9.75Z",
    "raw": "M5.5 2.5c-2 0-2 .5-2 2.5s-.5 2.5-1.5 3c1 .5 1.5 1 1.5 3s0 2.5 2 2.5M10.5 2.5c2 0 2 .5 2 2.5s.5 2.5 1.5 3"
    "c-1 .5-1.5 1-1.5 3s0 2.5-2 2.5",
    "resume": "M4.5 2.5v11l8.5-5.5z",
    "search": "M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0ZM10.25 10.25 14 14",
    "sessions": "M4 2v12M4 4.5h9.5M4 8h7M4 11.5h8.5",
    "share": "M8 10V2M5 4.75 8 2l3 2.75M3.5 7.5v6h9v-6",
    "star": "M8 1.75l1.9 4 4.35.55-3.2 3 .85 4.3L8 11.5l-3.9 2.1.85-4.3-3.2-3L6.1 5.75z",
    "state": "M8 1.75 14 5 8 8.25 2 5zM2 8l6 3.25L14 8M2 11l6 3.25L14 11",
    "sun": "M10.75 8a2.75 2.75 0 1 1-5.5 0 2.75 2.75 0 0 1 5.5 0ZM8 1v1.75M8 13.25V15M1 8h1.75M13.25 8H15"
    "M3.05 3.05l1.24 1.24M11.71 11.71l1.24 1.24M12.95 3.05l-1.24 1.24M4.29 11.71l-1.24 1.24",
    "todos": "M2 4l1.25 1.25L5.5 3M2 11l1.25 1.25L5.5 10M8 4.25h6M8 11.25h6",
    "thread": "M5.5 1c0 3.5 5 3 5 6.5S5 10.5 5.5 15M7 4.25a3 3 0 1 0 2 7.5",
    "usage": "M2 14h12M3.75 11.5V8M8 11.5v-9M12.25 11.5v-6",
}
ICON_NAMES = tuple(_PATHS)
"""The names of all icons."""


@lru_cache(maxsize=len(_PATHS))
def icon(name: str) -> Markup:
    """An icon in the colour of the surrounding text, hidden from screen readers."""
    return el("svg", el("path", d=_PATHS[name]), class_="icon", viewBox="0 0 16 16", aria_hidden="true")
