"""The page of `threadline search`: each hit with its session, when, where, and the words around it."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

from threadline.cli import output as out
from threadline.cli import screen
from threadline.cli.places import short_path
from threadline.model.time import parse_timestamp
from threadline.render.figures import moment
from threadline.render.layout import cut, wrap
from threadline.render.style import Role, Span, Style
from threadline.search.around import around
from threadline.search.snippets import WIDTH

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from threadline.model.hit import Hit, Hits
    from threadline.render.style import Spans

_LEAST = 20
_SNIPPET_LINES = 3
_MORE = " more in this session"
_LAST = "SELECT MAX(last) FROM session_rows WHERE session = ?"
_TYPED_FIRST = """SELECT p.text FROM session_rows r JOIN prompt_rows p USING(transcript_id)
    WHERE r.session = ? AND p.kind NOT IN ('command', 'shell', 'interrupt') ORDER BY p.turn, p.line LIMIT 1"""


def page(
    connection: sqlite3.Connection, hits: Hits, context: int, *, coloured: bool, every: bool = False
) -> Iterator[str]:
    """The lines of the page; with `every`, all entries were asked for."""
    style = Style(colour=coloured)
    width = screen.width()
    numbers = len(str(len(hits.hits)))
    for number, hit in enumerate(hits.hits, 1):
        if number > 1:
            yield ""
        for line in _lines(connection, hit, f"{number:>{numbers}}", width, context):
            yield style.line(line)
    left = " ".join(_left(hits, every=every))
    if left:
        yield ""
        yield style.line((Span(left, Role.FAINT),))


def _left(hits: Hits, *, every: bool) -> Iterator[str]:
    """What is not shown, and which option shows it."""
    exact = [hit for hit in hits.hits if not hit.lacks]
    least = "At least " if hits.at_least else ""
    beyond = hits.total - sum(1 + hit.more for hit in exact)
    sessions = hits.listed - len(exact)
    if every and beyond > 0:
        yield f"{least}{out.counted(beyond, 'more entry', 'more entries')}: see --limit N."
    elif sessions > 0 and beyond > 0:
        entries = out.counted(beyond, "entry", "entries")
        yield f"{least}{out.counted(sessions, 'more session')} ({entries}): see --limit N."
    inside = sum(hit.more for hit in exact)
    if inside and not every:
        yield f"{least}{out.counted(inside, 'more entry', 'more entries')} in those shown: see --all."


def _lines(connection: sqlite3.Connection, hit: Hit, number: str, width: int, context: int) -> Iterator[Spans]:
    """What session it is, where in it, and what it says."""
    margin = Span(" " * (len(number) + 2))
    room = max(_LEAST, width - len(margin.text))
    title = hit.title or "(no title)"
    session = (hit.session or "")[:8]
    yield (
        Span(f"{number}  ", Role.FAINT),
        Span(f"{session}  " if session else "", Role.CODE),
        Span(out.one_line(title, room - len(session) - 2), Role.TITLE),
    )
    told = " · ".join(_facts(connection, hit, width))
    if room - len(told) < _LEAST:
        told = told.replace(_MORE, " more")
    left = max(_LEAST, room - len(told) - 3)
    yield cut((margin, Span(f"{told} · {short_path(hit.project, left)}", Role.FAINT)), width)
    before, after = around(connection, hit, context) if context else ([], [])
    for entry in before:
        yield _said(entry, margin, room)
    shown = [span for span in _marked(connection, hit) if span.text]
    if shown:
        yield from islice(wrap(shown, width, first=(margin,), rest=(margin,)), _SNIPPET_LINES)
    for entry in after:
        yield _said(entry, margin, room)
    yield (margin, Span(_place(hit, room), Role.FAINT))


def _facts(connection: sqlite3.Connection, hit: Hit, width: int) -> Iterator[str]:
    """When, what it is, and what else there is to know. A title has no time of its own: then it is the session's."""
    when = hit.timestamp or parse_timestamp(_of_session(connection, hit, _LAST))
    if when is not None:
        yield moment(when)
    yield hit.field or hit.kind
    if hit.agent:
        yield f"agent {out.plain(hit.agent)[:8]}"
    if hit.gone:
        yield "its transcript is gone"
    if hit.more:
        yield f"+{hit.more:,}{' more of what is left' if hit.gone else _MORE}"
    if hit.lacks:
        yield out.one_line(f"without {', '.join(hit.lacks)}", width // 2)


def _place(hit: Hit, room: int) -> str:
    """The place; on a terminal, as much of it as a line holds."""
    return short_path(str(hit.place), room) if sys.stdout.isatty() else out.plain(str(hit.place))


def _said(entry: Any, margin: Span, room: int) -> Spans:
    from threadline.cli.entry_text import entry_text

    text = out.one_line(entry_text(entry), max(_LEAST, room - 18))
    return (margin, Span(f"{entry.line.number:>5} {entry.kind:<9}  {text}", Role.FAINT))


def _of_session(connection: sqlite3.Connection, hit: Hit, asked: str) -> str | None:
    found = connection.execute(asked, (hit.session,)).fetchone() if hit.session is not None else None
    return found[0] if found is not None else None


def _marked(connection: sqlite3.Connection, hit: Hit) -> Iterator[Span]:
    """The snippet, with what was asked for standing out; where that is the title again, what was typed first."""
    if hit.title is not None and out.plain(hit.snippet).split() == out.plain(hit.title).split():
        typed = out.one_line(_of_session(connection, hit, _TYPED_FIRST) or "", WIDTH)
        yield Span(typed if typed.split() != out.plain(hit.title).split() else "")
        return
    at = 0
    for start, end in hit.highlights:
        yield Span(hit.snippet[at:start])
        yield Span(hit.snippet[start:end], Role.STRONG)
        at = end
    yield Span(hit.snippet[at:])
