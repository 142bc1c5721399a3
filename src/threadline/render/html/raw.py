"""Raw: what a transcript's line holds, laid out for reading, and as it is."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from threadline.model.entries import Entry
from threadline.render.figures import count
from threadline.render.html.calls.colours import colours
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.scene import Scene
from threadline.render.html.tidy import is_json, tidy
from threadline.render.html.words import one, shown

_LONG, _HUGE = 60_000, 200_000
"""Of a line with more characters, long strings are cut; what is still more is cut after so many."""
_LONGEST_STRING = 2000
_MOST_COLOURS = 1200


def raw(entry: Entry, scene: Scene) -> Markup:
    """An entry's JSON, tidy, and below it the line itself; where they are huge, cut, with a note that says so."""
    text = entry.raw.decode(errors="backslashreplace")
    laid = _laid(text, scene)
    return el(
        "div",
        el("p", " · ".join(_facts(entry, text, scene)), class_="facts"),
        *(el("p", f"{problem.kind}: {one(problem.message, 300)}", class_="problem") for problem in entry.problems),
        _pre(laid, scene, "json") if laid is not None else EMPTY,
        _line(text, scene, folded=laid is not None),
        class_="raw",
    )


def _facts(entry: Entry, text: str, scene: Scene) -> Iterator[str]:
    yield one(entry.kind, 60)
    yield f"line {entry.place.line:,}"
    if entry.timestamp is not None:
        yield scene.told(entry.timestamp)
    yield count(len(entry.raw), "byte")
    if not _is_utf8(entry.raw):
        yield r"not all of it is UTF-8: other bytes are shown as \xNN"
    if not text.strip():
        yield "a blank line"
    elif not is_json(text):
        yield "not a JSON object"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _laid(text: str, scene: Scene) -> str | None:
    """The JSON laid out; None where it is none."""
    bare = text.lstrip("\ufeff")
    if not is_json(bare):
        return None
    return tidy(bare, None if scene.whole or len(bare) <= _LONG else _LONGEST_STRING)


def _line(text: str, scene: Scene, *, folded: bool) -> Markup:
    """The line as it is."""
    bare = text.removesuffix("\n")
    if not bare:
        return EMPTY
    drawn = _pre(bare, scene, None)
    return el("details", el("summary", "The line as it is"), drawn, class_="rest") if folded else drawn


def _pre(text: str, scene: Scene, language: str | None) -> Markup:
    most = len(text) if scene.whole else _HUGE if language else _LONG
    left = len(text) - most
    note = el("p", f"{count(left, 'more character')} not shown here", class_="more") if left > 0 else EMPTY
    part = text[:most]
    drawn = colours(part, language, _MOST_COLOURS) if language else shown(part)
    return join((el("pre", drawn, class_="code"), note))
