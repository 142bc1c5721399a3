"""`threadline context`: context window usage turn by turn, cache breaks, and what fills the window."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

import click

from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import (
    WholeNumber,
    colour_option,
    complete_with,
    home_option,
    output_options,
    pager_option,
    timezone_option,
)
from threadline.cli.resolve import find_agent, parse_place, read_session
from threadline.model.context import CacheBreak, Context, ContextPart, TurnContext
from threadline.model.ledger import SessionCosts
from threadline.model.places import Place
from threadline.model.session import Agent, Session
from threadline.render import draw_context
from threadline.thread import analyze_context

_EPILOG = """
\b
Examples:
  threadline context                  the newest session
  threadline context 55604662 --all   everything in the window, however small
  threadline context last --breaks    why the cache broke, each time
  threadline context last --turn 3    the window at the end of turn 3
  threadline context last --json      with every cache break and its evidence
"""


@click.command(epilog=_EPILOG)
@click.argument("session", default="last", shell_complete=complete_with("sessions"))
@click.option("--agent", metavar="ID", help="Show this agent. ID may be a prefix. Default: the main agent.")
@click.option("--at", metavar="PLACE", help="Show the window at this place: FILE:LINE, or a line number.")
@click.option("--turn", type=WholeNumber(), metavar="N", help="Show the window at the end of this turn.")
@click.option("--all", "everything", is_flag=True, help="List everything in the window, however small.")
@click.option(
    "--breaks", "with_breaks", is_flag=True, help="Also list each cache break with the evidence for its cause."
)
@timezone_option
@colour_option
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
    zone: tzinfo,
    colour: bool,
    pager: bool,
    homes: tuple[str, ...],
    output: str,
) -> int:
    """Show how full the context window was, and why.

    Lists the window turn by turn, where the cache broke and why, and what fills the window now. SESSION is the start of
    a session id, a transcript, or `last`, the default. The window is what the last request sent. `cached` is the share
    of a turn's tokens that came from the cache; `again` is what had to be sent again because it was no longer cached.
    The size of each part is measured if two prompts differ only by it, and estimated otherwise.
    """
    loaded = read_session(session, homes)
    selected = find_agent(loaded, agent or "main")
    analysis = analyze_context(loaded, selected.id, _parse_agent_place(loaded, selected, at), turn)
    costs = loaded.costs if selected.id is None else None
    if output == "json":
        out.print_json(_context_document(loaded, analysis, costs))
    elif output != "table":
        out.print_rows((_turn_row(turn_context, costs) for turn_context in analysis.turns), output)
    elif analysis.windows:
        colour = out.use_colour(enabled=colour)
        lines = draw_context(
            analysis,
            out.page_width(),
            colour=colour,
            everything=everything,
            with_breaks=with_breaks,
            zone=zone,
            costs=costs,
        )
        out.print_lines([out.session_heading(loaded), "", *lines], colour=colour, pager=pager)
    if analysis.windows:
        return EXIT_OK
    return out.report_nothing("No requests: no model replied in this session, or not to this agent.")


def _parse_agent_place(session: Session, agent: Agent, text: str | None) -> Place | None:
    """A place; a number is a line of the agent's own transcript."""
    own = agent.transcript if agent.id is not None else None
    if text is not None and own is not None and text.isascii() and text.isdecimal():
        return Place(str(own), int(text[:18]))
    return parse_place(session, text)


def _context_document(session: Session, context: Context, costs: SessionCosts | None) -> dict[str, Any]:
    limit = context.limit
    return {
        "session": session.id,
        "agent": context.agent,
        "model": context.model,
        "requests": len(context.windows),
        "hit_share": _round_share(context.hit_share),
        "place": str(context.place) if context.place is not None else None,
        "window": context.window,
        "measured": context.measured,
        "limit": limit.tokens if limit is not None else None,
        "limit_why": limit.why if limit is not None else None,
        "share": _round_share(context.share),
        "dropped": context.dropped,
        "turns": [_turn_row(turn, costs) for turn in context.turns],
        "breaks": [_break_row(cache_break) for cache_break in context.breaks],
        "filling": [_filling_row(part, context.window) for part in context.filling],
    }


def _turn_row(turn_context: TurnContext, costs: SessionCosts | None) -> dict[str, Any]:
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
        "breaks": [str(cache_break.cause) for cache_break in turn_context.breaks],
        "compactions": turn_context.compactions,
        "amount": costs.turn(turn_context.number).amount if costs is not None else None,
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
