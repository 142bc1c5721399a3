"""Pieces that views are made of: a printed text, code, prose, facts, the name of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from markupsafe import Markup

from threadline.model.call import Call
from threadline.render.html.calls.colours import colours
from threadline.render.html.calls.cut import MOST_LINES, cut, head, leads, more
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.markdown import markdown
from threadline.render.html.scene import Scene
from threadline.render.html.words import one, shown

T = TypeVar("T")

_MOST_ROWS = 30
_MOST_ELEMENTS = 110
"""A text in Markdown that is not whole has no more; a table or code of many colours is cut earlier than its lines."""


def printed(text: str, made: Call, scene: Scene, class_: str = "output") -> Markup:
    """What was printed, as it was; nothing where it is blank."""
    if not text.strip():
        return EMPTY
    return cut(text.strip("\n"), made, scene, lambda part: el("pre", shown(part), class_=class_))


def code(text: str, language: str | None, made: Call, scene: Scene, class_: str = "code") -> Markup:
    """Code in colours; nothing where it is blank."""
    if not text.strip():
        return EMPTY
    bound = {} if not scene.whole else {"most": None}
    return cut(text.strip("\n"), made, scene, lambda part: el("pre", colours(part, language, **bound), class_=class_))


def prose(text: str, made: Call, scene: Scene, most: int = _MOST_ELEMENTS) -> Markup:
    """Markdown with at most so many elements where the page is not whole; nothing where it is blank."""
    if not text.strip():
        return EMPTY
    if scene.whole:
        return el("div", markdown(text), class_="prose")
    for lines in (MOST_LINES, MOST_LINES // 2, MOST_LINES // 4):
        first, rest = head(text, lines)
        drawn = markdown(first)
        if drawn.count("</") <= most:
            return join((el("div", drawn, class_="prose"), more(rest, made, scene, _prose)))
    return printed(text, made, scene)


def _prose(text: str) -> Markup:
    return el("div", markdown(text), class_="prose")


def facts(*said: str | None) -> Markup:
    """What is known in a few words each, on one line."""
    words = [one(word, 300) for word in said if word]
    return el("p", " · ".join(words), class_="facts") if words else EMPTY


def file_name(path: str, scene: Scene) -> Markup:
    """A file as seen from where the session worked, which leads to its page."""
    if not path:
        return EMPTY
    label = one(scene.near(path), 300)
    there = scene.links.file(path)
    return el("a", label, href=there, class_="path") if there is not None else el("span", label, class_="path")


def folded(label: str, *children: Child) -> Markup:
    """Something that is not wanted at first; nothing where there is nothing."""
    inside = join(children)
    return el("details", el("summary", label), inside, class_="asked") if inside else EMPTY


def listed(rows: Iterable[Markup], class_: str) -> Markup:
    """A list; nothing where it is empty."""
    drawn = join(rows)
    return el("ul", drawn, class_=class_) if drawn else EMPTY


def some(items: Sequence[T], draw: Callable[[T], Markup], class_: str, made: Call, scene: Scene) -> Markup:
    """A list of what `draw` makes of each item, as far as the page has room, and a way to the rest."""
    if scene.whole or len(items) <= _MOST_ROWS:
        return listed(map(draw, items), class_)
    rest = items[_MOST_ROWS:]
    more_ = leads(f"{len(rest):,} more", made, scene, lambda: listed(map(draw, rest), class_))
    return join((listed(map(draw, items[:_MOST_ROWS]), class_), more_))
