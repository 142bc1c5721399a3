"""The page of `threadline search`: each hit with its session, when, where, and the words around it."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

from threadline.cli import output as out
from threadline.cli import screen
from threadline.cli.places import short_path
from threadline.model.hit import SNIPPET
from threadline.render.figures import moment
from threadline.render.layout import cut, wrap
from threadline.render.style import Role, Span, Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadline.archive import Archive
    from threadline.model.hit import Hit, Hits
    from threadline.render.style import Spans

_LEAST = 20
_SNIPPET_LINES = 3
_MORE = " more in this session"


def page(archive: Archive, hits: Hits, context: int, *, coloured: bool, every: bool = False) -> Iterator[str]:
    """The lines of the page; with `every`, all entries were asked for."""
    style = Style(colour=coloured)
    width = screen.width()
    numbers = len(str(len(hits.hits)))
    for number, hit in enumerate(hits.hits, 1):
        if number > 1:
            yield ""
        for line in _lines(archive, hit, f"{number:>{numbers}}", width, context):
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
    elif hits.maybe_more and not every:  # nobody went on to look for others, once there were enough
        yield "There may be more sessions: see --limit N."
    inside = sum(hit.more for hit in exact)
    if inside and not every:
        yield f"{least}{out.counted(inside, 'more entry', 'more entries')} in those shown: see --all."


def _lines(archive: Archive, hit: Hit, number: str, width: int, context: int) -> Iterator[Spans]:
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
    told = " · ".join(_facts(archive, hit, width))
    if room - len(told) < _LEAST:
        told = told.replace(_MORE, " more")
    left = max(_LEAST, room - len(told) - 3)
    yield cut((margin, Span(f"{told} · {short_path(hit.project, left)}", Role.FAINT)), width)
    before, after = archive.around(hit, context) if context else ([], [])
    for entry in before:
        yield _said(entry, margin, room)
    shown = [span for span in _marked(archive, hit) if span.text]
    if shown:
        yield from islice(wrap(shown, width, first=(margin,), rest=(margin,)), _SNIPPET_LINES)
    for entry in after:
        yield _said(entry, margin, room)
    yield (margin, Span(_place(hit, room), Role.FAINT))


def _facts(archive: Archive, hit: Hit, width: int) -> Iterator[str]:
    """When, what it is, and what else there is to know. A title has no time of its own: then it is the session's."""
    when = hit.timestamp
    if when is None and hit.session is not None:
        when = archive.facts(hit.session).last
    if when is not None:
        yield moment(when)
    yield hit.field or hit.kind
    if hit.agent:
        yield f"agent {out.plain(hit.agent)[:8]}"
    if hit.gone:
        yield "its transcript is gone"
    if hit.kept:
        yield "kept"
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


def _marked(archive: Archive, hit: Hit) -> Iterator[Span]:
    """The snippet, with what was asked for standing out; where that is the title again, what was typed first."""
    if hit.title is not None and out.plain(hit.snippet).split() == out.plain(hit.title).split():
        first = archive.facts(hit.session).typed if hit.session is not None else None
        typed = out.one_line(first or "", SNIPPET)
        yield Span(typed if typed.split() != out.plain(hit.title).split() else "")
        return
    at = 0
    for start, end in hit.highlights:
        yield Span(hit.snippet[at:start])
        yield Span(hit.snippet[start:end], Role.STRONG)
        at = end
    yield Span(hit.snippet[at:])
