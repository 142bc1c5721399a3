"""`threadline context`: context window usage turn by turn, cache breaks, and what fills the window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_OK
from threadline.cli.options import home_option, output_options
from threadline.cli.screen import pager_option

if TYPE_CHECKING:
    from threadline.model.context import CacheBreak, Context, ContextPart, TurnContext
    from threadline.model.places import Place
    from threadline.model.session import Agent, Session

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
    from threadline.cli.resolve import read_session
    from threadline.render import draw_context
    from threadline.thread import analyze_context as context_of

    found = read_session(session, homes)
    chosen = _select_agent(found, agent)
    told = context_of(found, chosen.id, _parse_agent_place(found, chosen, at), turn)
    if output == "json":
        out.print_json(_context_document(found, told))
    elif output != "table":
        out.print_rows(map(_turn_row, told.turns), output)
    elif told.windows:
        coloured = screen.use_colour(wanted=not no_color)
        lines = draw_context(told, screen.page_width(), colour=coloured, everything=everything, with_breaks=with_breaks)
        screen.print_lines(lines, coloured=coloured, pager=pager)
    if told.windows:
        return EXIT_OK
    return screen.report_nothing("No requests: no model answered in this session, or not this agent of it.")


def _select_agent(session: Session, wanted: str | None) -> Agent:
    from threadline.errors import Ambiguous, NotFound

    if wanted is None or wanted == "main":
        return session.main
    fitting = [agent for agent in session.agents if (agent.id or "").startswith(wanted)]
    exact = [one for one in fitting if one.id == wanted]
    if not fitting:
        raise NotFound(f"The session has no agent {wanted!r}; threadline tree SESSION shows them.")
    if len(fitting) > 1 and not exact:
        ids = ", ".join(str(one.id) for one in fitting)
        raise Ambiguous(f"{wanted!r} is the start of {len(fitting)} agents' ids; write more of it: {ids}.")
    return (exact or fitting)[0]


def _parse_agent_place(session: Session, agent: Agent, text: str | None) -> Place | None:
    """The place that was meant; a number is a line of the agent's own transcript."""
    from threadline.cli.output import parse_place
    from threadline.model.places import Place

    own = agent.transcript if agent.id is not None else None
    if text is not None and own is not None and text.isascii() and text.isdecimal():
        return Place(str(own), int(text[:18]))
    return parse_place(session, text)


def _context_document(session: Session, told: Context) -> dict[str, Any]:
    limit = told.limit
    return {
        "session": session.id,
        "agent": told.agent,
        "model": told.model,
        "requests": len(told.windows),
        "hit_share": _round_share(told.hit_share),
        "place": str(told.place) if told.place is not None else None,
        "window": told.window,
        "measured": told.measured,
        "limit": limit.tokens if limit is not None else None,
        "limit_why": limit.why if limit is not None else None,
        "share": _round_share(told.share),
        "dropped": told.dropped,
        "turns": [_turn_row(turn) for turn in told.turns],
        "breaks": [_break_row(one) for one in told.breaks],
        "filling": [_filling_row(one, told.window) for one in told.filling],
    }


def _turn_row(turn_context: TurnContext) -> dict[str, Any]:
    return {
        "turn": turn_context.number,
        "started": turn_context.started,
        "requests": turn_context.requests,
        "window": turn_context.window,
        "largest": turn_context.largest,
        "growth": turn_context.growth,
        "limit": turn_context.limit.tokens if turn_context.limit is not None else None,
        "share": _round_share(turn_context.share),
        "sent": turn_context.sent,
        "cache_read": turn_context.cache_read,
        "hit_share": _round_share(turn_context.hit_share),
        "rewritten": turn_context.rewritten,
        "breaks": [str(each.cause) for each in turn_context.breaks],
        "compactions": turn_context.compactions,
        "place": str(turn_context.place),
    }


def _break_row(cache_break: CacheBreak) -> dict[str, Any]:
    return {
        "turn": cache_break.turn,
        "request": cache_break.request,
        "timestamp": cache_break.time,
        "cause": str(cache_break.cause),
        "evidence": cache_break.evidence,
        "expected": cache_break.expected,
        "cache_read": cache_break.cache_read,
        "shortfall": cache_break.shortfall,
        "rewritten": cache_break.rewritten,
        "seconds": cache_break.gap.total_seconds() if cache_break.gap is not None else None,
        "place": str(cache_break.place),
    }


def _filling_row(context_part: ContextPart, window: int) -> dict[str, Any]:
    return {
        "category": str(context_part.category),
        "name": context_part.name,
        "tokens": context_part.tokens,
        "share": _round_share(context_part.tokens / window if window else None),
        "measured": context_part.measured,
        "how": "measured" if context_part.is_measured else "estimate",
    }


def _round_share(share: float | None) -> float | None:
    return round(share, 4) if share is not None else None
