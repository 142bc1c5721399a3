"""Cutting: the first lines of a long text, and a way to the rest."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from threadline.model.call import Call
from threadline.render.figures import count
from threadline.render.html.element import EMPTY, el
from threadline.render.html.scene import Scene

MOST_LINES, MOST_CHARACTERS = 40, 6000
"""What a page that is not whole shows of a text."""
_SPARE = 4
"""So few lines over the bound are shown too: a link would take as much room."""

Shown = Callable[[str], Markup]
"""Draws a piece of a text."""


def head(text: str, most: int = MOST_LINES, characters: int = MOST_CHARACTERS) -> tuple[str, str]:
    r"""The first lines of a text, and the rest.

    >>> head("1\n2\n3\n4\n5\n6\n7", 2)
    ('1\n2', '3\n4\n5\n6\n7')
    >>> head("1\n2\n3", 2)
    ('1\n2\n3', '')
    """
    at = _line_end(text, most)
    if at is not None and _line_end(text, most + _SPARE) is None and len(text) <= characters:
        return text, ""
    end = len(text) if at is None else at
    if end > characters:
        newline = text.rfind("\n", characters // 2, characters)
        if newline < 0:
            return text[:characters], text[characters:]
        end = newline
    return text[:end], text[end + 1 :]


def _line_end(text: str, lines: int) -> int | None:
    """Where so many lines end; None where there are not more."""
    at = -1
    for _ in range(lines):
        at = text.find("\n", at + 1)
        if at < 0:
            return None
    return at if at + 1 < len(text) else None


def cut(text: str, made: Call, scene: Scene, draw: Shown, most: int = MOST_LINES) -> Markup:
    """A text drawn as far as the page has room, and where the rest is: on the call's own page, or folded below."""
    if scene.whole:
        return draw(text)
    first, rest = head(text, most)
    return draw(first) + more(rest, made, scene, draw)


def more(rest: str, made: Call, scene: Scene, draw: Shown) -> Markup:
    """What of a text was not shown."""
    if not rest:
        return EMPTY
    lines = rest.count("\n") + 1
    said = f"{count(lines, 'more line')}" if lines > 1 else f"{count(len(rest), 'more character')}"
    return leads(said, made, scene, lambda: draw(rest))


def leads(said: str, made: Call, scene: Scene, rest: Callable[[], Markup]) -> Markup:
    """A link to the call's own page; where there is none, the rest itself, folded."""
    there = scene.links.call(made.id)
    if there is not None:
        return el("a", said, href=there, class_="more")
    return el("details", el("summary", said), rest(), class_="rest")
