"""A site of files: a list of sessions, a page of each, and a search that runs in the page; all opens from disk."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from importlib.resources import files

from markupsafe import Markup
from msgspec import Struct

from threadline.export.as_html import document, facts
from threadline.model.session import Session
from threadline.model.sum import Sum
from threadline.render.figures import moment
from threadline.render.html.element import el, join
from threadline.render.html.placed import placed
from threadline.render.html.view import View
from threadline.render.html.words import one
from threadline.render.lasting import ends
from threadline.render.outline import Called, Reply, Said
from threadline.render.telling import about

_TITLE, _TOLD, _TEXT = 160, 300, 4000


class Listed(Struct, frozen=True):
    """What the list and the search know of a session: its page's name, and what was said in it where."""

    name: str
    title: str
    project: str
    started: str
    facts: tuple[str, ...]
    said: tuple[tuple[str, str, str], ...]


def listed(whole: Session, name: str, view: View, total: Sum | None = None) -> Listed:
    """A session as the list and the search know it."""
    said = []
    started = ends(whole)[0]
    for item in placed(whole.main, view):
        found = item.item
        if isinstance(found, Said):
            said.append((item.anchor, "prompt", one(found.act.text, _TEXT)))
        elif isinstance(found, Reply):
            said.append((item.anchor, "reply", one(found.text, _TEXT)))
        elif isinstance(found, Called):
            told = one(about(found.call.tool, found.call.input), _TOLD)
            said.append((item.anchor, "call", f"{one(found.call.tool, 60)} {told}".strip()))
    return Listed(
        name,
        one(whole.title.text, _TITLE) or "(no title)",
        one(whole.cwds[0], _TITLE) if whole.cwds else "",
        moment(started),
        tuple(one(fact, _TITLE) for fact in list(facts(whole, total))[started is not None :]),
        tuple((anchor, kind, text) for anchor, kind, text in said if text),
    )


def index_page(sessions: Iterable[Listed]) -> str:
    """The list of all sessions, the newest first."""
    rows = [
        el(
            "tr",
            el("td", item.started, class_="faint"),
            el("td", el("a", item.title, href=f"sessions/{item.name}.html")),
            el("td", item.project, class_="faint"),
            el("td", " · ".join(item.facts), class_="faint"),
        )
        for item in _in_order(sessions)
    ]
    heads = el("thead", el("tr", *(el("th", name, scope="col") for name in ("started", "session", "project", "what"))))
    head = el("header", el("h1", "Sessions"), class_="head")
    main = join((head, el("div", el("table", heads, el("tbody", *rows), class_="list"), class_="scroll")))
    return document("Sessions", main, kind="site-index", top=_top("index"))


def search_page(sessions: Iterable[Listed]) -> str:
    """The search: one script, which looks through the texts that the page holds."""
    ordered = _in_order(sessions)
    data = {
        "sessions": [[item.name, item.title] for item in ordered],
        "items": [[at, *said] for at, item in enumerate(ordered) for said in item.said],
    }
    script = (files("threadline.export") / "assets" / "search.js").read_text(encoding="utf-8")
    main = join(
        (
            el("header", el("h1", "Search"), class_="head"),
            el("p", el("label", "Words that stand together in a prompt, a reply or a call", for_="words")),
            el(
                "p",
                el("input", id="words", type="search", size=40, autocomplete="off", spellcheck="false", autofocus=True),
            ),
            el("noscript", el("p", "Searching needs JavaScript; the pages do not.")),
            el("p", id="told", role="status", class_="faint"),
            el("div", id="found"),
            Markup(f'<script type="application/json" id="index">{_inert(data)}</script>'),  # noqa: S704 - no `<` in it
            Markup(f"<script>{script}</script>"),  # noqa: S704 - our own file
        )
    )
    return document("Search", main, kind="site-search", top=_top("search"), script=_hash(script))


def _in_order(sessions: Iterable[Listed]) -> list[Listed]:
    return sorted(sorted(sessions, key=lambda item: item.name), key=lambda item: item.started, reverse=True)


def _inert(value: object) -> str:
    """JSON that no tag, comment or line end of a script can be in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _top(here: str) -> Markup:
    ways = [
        el("a", label, href=f"{name}.html", aria_current="page" if name == here else None)
        for name, label in (("index", "All sessions"), ("search", "Search"))
    ]
    return el("header", el("nav", *ways, aria_label="Site"), class_="top")
