"""The page of `threadline search`: each hit with its session, when, where, and the words around it."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

from threadline.cli import output as out
from threadline.cli import screen
from threadline.cli.places import short_path
from threadline.render.figures import moment
from threadline.render.layout import cut, wrap
from threadline.render.style import Role, Span, Style
from threadline.search.around import around

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from threadline.model.hit import Hit, Hits
    from threadline.render.style import Spans

_LEAST = 20
_SNIPPET_LINES = 3


def page(connection: sqlite3.Connection, hits: Hits, context: int, *, coloured: bool) -> Iterator[str]:
    """The lines of the page."""
    style = Style(colour=coloured)
    width = screen.width()
    numbers = len(str(len(hits.hits)))
    for number, hit in enumerate(hits.hits, 1):
        if number > 1:
            yield ""
        for line in _lines(connection, hit, f"{number:>{numbers}}", width, context):
            yield style.line(line)
    more = hits.total - sum(1 + hit.more for hit in hits.hits if not hit.lacks)
    if more > 0:
        least = "At least " if hits.at_least else ""
        yield ""
        yield style.line((Span(f"{least}{more:,} more: see --limit N, --all.", Role.FAINT),))


def _lines(connection: sqlite3.Connection, hit: Hit, number: str, width: int, context: int) -> Iterator[Spans]:
    """What session it is, where in it, and what it says."""
    margin = Span(" " * (len(number) + 2))
    room = max(_LEAST, width - len(margin.text))
    title = hit.title or ("(only this prompt of it is left)" if hit.gone else "(no title)")
    session = (hit.session or "")[:8]
    yield (
        Span(f"{number}  ", Role.FAINT),
        Span(f"{session}  " if session else "", Role.CODE),
        Span(out.one_line(title, room - len(session) - 2), Role.TITLE),
    )
    told = " · ".join(_facts(hit, width))
    if room - len(told) < _LEAST:
        told = told.replace(" more in this session", " more")
    left = max(_LEAST, room - len(told) - 3)
    yield cut((margin, Span(f"{told} · {short_path(hit.project, left)}", Role.FAINT)), width)
    before, after = around(connection, hit, context) if context else ([], [])
    for entry in before:
        yield _said(entry, margin, room)
    yield from islice(wrap(_marked(hit), width, first=(margin,), rest=(margin,)), _SNIPPET_LINES)
    for entry in after:
        yield _said(entry, margin, room)
    yield (margin, Span(_place(hit, room), Role.FAINT))


def _facts(hit: Hit, width: int) -> Iterator[str]:
    """When, what it is, and what else there is to know."""
    if hit.timestamp is not None:
        yield moment(hit.timestamp)
    yield hit.field or hit.kind
    if hit.agent:
        yield f"agent {out.plain(hit.agent)[:8]}"
    if hit.gone:
        yield "its transcript is gone"
    if hit.more:
        yield f"+{hit.more:,} more in this session"
    if hit.lacks:
        yield out.one_line(f"without {', '.join(hit.lacks)}", width // 2)


def _place(hit: Hit, room: int) -> str:
    """The place; on a terminal, as much of it as a line holds."""
    return short_path(str(hit.place), room) if sys.stdout.isatty() else out.plain(str(hit.place))


def _said(entry: Any, margin: Span, room: int) -> Spans:
    from threadline.cli.entry_text import entry_text

    text = out.one_line(entry_text(entry), max(_LEAST, room - 18))
    return (margin, Span(f"{entry.line.number:>5} {entry.kind:<9}  {text}", Role.FAINT))


def _marked(hit: Hit) -> Iterator[Span]:
    """The snippet, with what was asked for standing out."""
    at = 0
    for start, end in hit.highlights:
        yield Span(hit.snippet[at:start])
        yield Span(hit.snippet[start:end], Role.STRONG)
        at = end
    yield Span(hit.snippet[at:])
