"""`threadline context`: how full the window was turn by turn, what the cache gave back, and what fills the window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from threadline.cli import FOUND
from threadline.cli.options import home_option, output_options
from threadline.cli.screen import pager_option

if TYPE_CHECKING:
    from threadline.model.agent import Agent
    from threadline.model.context import CacheBreak, Context, Filling, TurnContext
    from threadline.model.place import Place
    from threadline.model.session import Session

_EPILOG = """
\b
Examples:
  threadline context                  the session of last use
  threadline context 55604662 --all   all that fills the window, however little
  threadline context last --breaks    why the cache broke, each time
  threadline context last --turn 3    what filled it when turn 3 ended
  threadline context last --json      with every cache break and its evidence
"""


@click.command(epilog=_EPILOG)
@click.argument("session", default="last")
@click.option("--agent", metavar="ID", help="This agent's, by the start of its id; by default the main one's.")
@click.option("--at", metavar="PLACE", help="What filled the window at this place: FILE:LINE, or a line's number.")
@click.option("--turn", type=click.IntRange(min=0), metavar="N", help="What filled the window when this turn ended.")
@click.option("--all", "everything", is_flag=True, help="All that fills the window, however little.")
@click.option("--breaks", "with_breaks", is_flag=True, help="Each cache break with what its cause rests on, too.")
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
@pager_option
@home_option
@output_options
def context(
    session: str,
    *,
    agent: str | None,
    at: str | None,
    turn: int | None,
    everything: bool,
    with_breaks: bool,
    no_color: bool,
    pager: bool,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Show how full a session's window was, turn by turn, where its cache broke and why, and what fills it now.

    SESSION is the start of its id, a transcript, or `last`. The window is what the last request sent; `cached` is the
    share of a turn's tokens that came from the cache, `again` what was sent anew because the cache had lost it. What
    fills the window is measured where two prompts differ by one thing only, and an estimate elsewhere.
    """
    from threadline.cli import output as out
    from threadline.cli import screen
    from threadline.cli.session import named
    from threadline.render.context import draw
    from threadline.thread.context import context as context_of

    found = named(session, homes)
    chosen = _agent(found, agent)
    told = context_of(found, chosen.id, _place(found, chosen, at), turn)
    if output == "json":
        out.print_json(_document(found, told))
    elif output != "table":
        out.print_rows(map(_turn_row, told.turns), output)
    elif told.windows:
        coloured = screen.colour(wanted=not no_color)
        lines = draw(told, screen.width(), colour=coloured, everything=everything, with_breaks=with_breaks)
        screen.show_lines(lines, coloured=coloured, pager=pager)
    if told.windows:
        return FOUND
    return screen.nothing("No requests: no model answered in this session, or not this agent of it.")


def _agent(session: Session, wanted: str | None) -> Agent:
    from threadline.errors import Ambiguous, NotFound

    if wanted is None or wanted == "main":
        return session.main
    fitting = [one for one in session.agents if (one.id or "").startswith(wanted)]
    exact = [one for one in fitting if one.id == wanted]
    if not fitting:
        raise NotFound(f"The session has no agent {wanted!r}; threadline tree SESSION shows them.")
    if len(fitting) > 1 and not exact:
        ids = ", ".join(str(one.id) for one in fitting)
        raise Ambiguous(f"{wanted!r} is the start of {len(fitting)} agents' ids; write more of it: {ids}.")
    return (exact or fitting)[0]


def _place(session: Session, agent: Agent, text: str | None) -> Place | None:
    """The place that was meant; a number is a line of the agent's own transcript."""
    from threadline.cli.at import place_in
    from threadline.model.place import Place

    own = agent.transcript if agent.id is not None else None
    if text is not None and own is not None and text.isascii() and text.isdecimal():
        return Place(str(own), int(text[:18]))
    return place_in(session, text)


def _document(session: Session, told: Context) -> dict[str, Any]:
    limit = told.limit
    return {
        "session": session.id,
        "agent": told.agent,
        "model": told.model,
        "requests": len(told.windows),
        "hit_share": _rounded(told.hit_share),
        "place": str(told.place) if told.place is not None else None,
        "window": told.window,
        "measured": told.measured,
        "limit": limit.tokens if limit is not None else None,
        "limit_why": limit.why if limit is not None else None,
        "share": _rounded(told.share),
        "dropped": told.dropped,
        "turns": [_turn_row(one) for one in told.turns],
        "breaks": [_break_row(one) for one in told.breaks],
        "filling": [_filling_row(one, told.window) for one in told.filling],
    }


def _turn_row(one: TurnContext) -> dict[str, Any]:
    return {
        "turn": one.number,
        "started": one.started,
        "requests": one.requests,
        "window": one.window,
        "largest": one.largest,
        "growth": one.growth,
        "limit": one.limit.tokens if one.limit is not None else None,
        "share": _rounded(one.share),
        "sent": one.sent,
        "cache_read": one.cache_read,
        "hit_share": _rounded(one.hit_share),
        "rewritten": one.rewritten,
        "breaks": [str(each.cause) for each in one.breaks],
        "compactions": one.compactions,
        "place": str(one.place),
    }


def _break_row(one: CacheBreak) -> dict[str, Any]:
    return {
        "turn": one.turn,
        "request": one.request,
        "timestamp": one.time,
        "cause": str(one.cause),
        "evidence": one.evidence,
        "expected": one.expected,
        "cache_read": one.cache_read,
        "shortfall": one.shortfall,
        "rewritten": one.rewritten,
        "seconds": one.gap.total_seconds() if one.gap is not None else None,
        "place": str(one.place),
    }


def _filling_row(one: Filling, window: int) -> dict[str, Any]:
    return {
        "category": str(one.category),
        "name": one.name,
        "tokens": one.tokens,
        "share": _rounded(one.tokens / window if window else None),
        "measured": one.measured,
        "how": "measured" if one.is_measured else "estimate",
    }


def _rounded(share: float | None) -> float | None:
    return round(share, 4) if share is not None else None
