"""The frame of a page: what stands around what it says, whether a server sends it or a file holds it."""

from __future__ import annotations

from markupsafe import Markup

from threadline.render.html.element import EMPTY, Child, Value, el, join

DOCTYPE = Markup("<!doctype html>\n")


def frame(
    title: str,
    main: Child,
    *,
    kind: str,
    head: Child = EMPTY,
    top: Child = EMPTY,
    after: Child = EMPTY,
    **attributes: Value,
) -> Markup:
    """A whole document.

    `head` is what the page needs besides its title: style, scripts, a policy. `top` stands above `main`, `after` below
    it; `kind` is the class of the body, by which style and scripts know which page it is. `attributes` are those of the
    `<main>` element.
    """
    declared = (
        el("meta", charset="utf-8"),
        el("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name_="color-scheme", content="light dark"),
        el("title", title),
        head,
    )
    shown = (
        el("a", "Skip to content", href="#main", class_="skip"),
        top,
        el("main", main, id="main", **attributes),
        after,
    )
    return join((DOCTYPE, el("html", el("head", *declared), el("body", *shown, class_=kind), lang="en")))
