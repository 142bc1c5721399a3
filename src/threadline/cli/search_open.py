"""Opening a hit: the turn that it stands in, as `threadline show` has it, with nothing folded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from threadline.cli import FOUND, NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from threadline.archive import Archive
    from threadline.model.hit import Hit
    from threadline.model.session import Session


def open_hit(archive: Archive, hits: Sequence[Hit], number: int, *, colour: bool, pager: bool = True) -> int:
    """Show the turn of a hit; the number counts from 1. A pager begins where the hit stands, if it can."""
    from threadline.cli import output as out
    from threadline.cli import screen
    from threadline.load import read
    from threadline.render import text
    from threadline.render.options import Agents, Options
    from threadline.thread.notifications import notifications

    if number > len(hits):
        return screen.nothing(f"There is no hit {number}; the query has {out.counted(len(hits), 'hit')}.")
    hit = hits[number - 1]
    if hit.gone:
        click.echo(f"threadline: the transcript of this prompt is gone; {hit.place} still has it.", err=True)
        for line in archive.typed(hit).split("\n"):
            click.echo(out.plain(line))
        return FOUND
    session = read(hit.place.transcript)
    turn, branch = _where(session, hit.place.line)
    coloured = screen.colour(wanted=colour)
    options = Options(
        width=screen.width(),
        colour=coloured,
        agents=Agents.FOLD,
        everything=True,
        branch=branch,
        turn=turn,
    )
    click.echo(f"threadline: {out.plain(str(hit.place))}", err=True)
    lines: Iterable[str] = text.session(session, options, notifications(session))
    begin = 0
    if turn is not None or branch is not None:
        lines = list(lines)
        begin = _line_of(hit, lines)
    screen.show_lines(lines, coloured=coloured, pager=pager, begin=begin)
    return FOUND if len(session) else NOTHING


def _line_of(hit: Hit, lines: Sequence[str]) -> int:
    """The line that has most of a hit's words together with the two after it; 0 where what was asked for is in none."""
    asked = {
        hit.snippet[start:end].split()[0].lower() for start, end in hit.highlights if hit.snippet[start:end].split()
    }
    words = {word.lower() for word in hit.snippet.strip("…").split()}
    shown = [click.unstyle(line).lower() for line in lines]
    best, at = 0, 0
    for number, line in enumerate(shown, 1):
        if any(one in line for one in asked):
            has = len(words.intersection(" ".join(shown[number - 1 : number + 2]).split()))
            best, at = max((best, at), (has, number), key=lambda one: one[0])
    return at


def _where(session: Session, line: int) -> tuple[int | None, int | None]:
    """The turn that a line stands in, or the branch; neither where it stands in none: then all is shown."""
    for number, branch in enumerate(session.branches, 1):
        if any(entry.line.number == line for entry in branch.entries):
            return None, number
    for turn in session.turns:
        if any(entry.line.number == line for entry in turn.entries):
            return turn.number, None
    return None, None
