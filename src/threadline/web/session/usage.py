"""Context and cost of a session: a strip beside the conversation, and a table by turn and agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec import Struct

from threadline.model.calls import Outcome
from threadline.model.ledger import EXACT, sum_amounts
from threadline.model.names import AGENT_TOOLS
from threadline.model.text import count, format_amount
from threadline.render import CallItem, FailureItem, agent_title, shorten
from threadline.render.html import (
    MAX_BANDS,
    Child,
    Column,
    StripMarks,
    UsageBand,
    draw_usage_strip,
    el,
    join,
    render_table,
)

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.model.context import ContextWindow
    from threadline.model.places import MessageId
    from threadline.model.session import Agent
    from threadline.web.session.view import SessionView
    from threadline.web.session_cache import AgentDrawing, CachedSession, SessionSpending

FAILED_OUTCOMES = (Outcome.ERROR, Outcome.DENIED, Outcome.INTERRUPTED, Outcome.LOST)
_MIN_AMOUNT = Decimal("0.00005")
"""The smallest amount that four decimal places show."""
_COLUMNS = (
    Column("Turn or agent"),
    Column("Requests", "number minor"),
    Column("Largest context", "number"),
    Column("Cache read", "number minor"),
    Column("Output", "number"),
    Column("Amount", "number"),
)


class StripFigures(Struct, frozen=True):
    """What the strip beside one part of a conversation shows: items in bands, with each band's context and cost."""

    edges: list[int]
    contexts: list[int | None]
    amounts: list[Decimal | None]
    cache_breaks: list[str]
    marks: StripMarks


def render_usage_strip(
    session: CachedSession, view: SessionView, drawing: AgentDrawing, archive: Archive, part: int = 1
) -> Markup:
    """Render the strip beside one part of the conversation."""
    if part not in drawing.strips:
        drawing.strips[part] = _strip_figures(session, view.agent, drawing, archive, part)
    figures = drawing.strips[part]
    bands = [
        _band(drawing, view, range(*edges), context, amount, cache_break=cause)
        for edges, context, amount, cause in zip(
            pairwise(figures.edges), figures.contexts, figures.amounts, figures.cache_breaks, strict=True
        )
    ]
    return draw_usage_strip(
        bands,
        figures.marks,
        limit=limit.tokens if (limit := session.limit(view.agent)) is not None else None,
        twin=view.links.below("along", agent=view.agent),
    )


def _strip_figures(
    session: CachedSession, agent: str | None, drawing: AgentDrawing, archive: Archive, part: int
) -> StripFigures:
    """Divide the items of a part into bands, each with its largest context and its cost."""
    sections = drawing.positions.sections_of(part)
    items = range(sections[0].start, sections[-1].stop) if sections else range(0)
    bands = min(MAX_BANDS, len(items))
    edges = [items.start + len(items) * at // bands for at in range(bands + 1)] if bands else [0]
    contexts: list[int | None] = [None] * bands
    amounts: list[Decimal | None] = [None] * bands
    costs = session.spending(archive).costs
    causes, breaks = [""] * bands, session.cache_breaks(agent)
    for window in session.windows(agent):
        item = drawing.positions.item_at_line(window.place.line or 0)
        if item not in items:
            continue
        at = _band_of(edges, item)
        if window.has_usage:
            contexts[at] = max(contexts[at] or 0, window.prompt)
        amounts[at] = _add(amounts[at], costs.get(window.message) if window.message is not None else None)
        if (cause := breaks.get(window.number)) is not None:
            causes[at] = cause
    return StripFigures(edges, contexts, amounts, causes, _marks(session, drawing, items))


def _add(amount: Decimal | None, cost: Decimal | None) -> Decimal | None:
    if amount is None or cost is None:
        return cost if amount is None else amount
    return EXACT.add(amount, cost)


def _band_of(edges: Sequence[int], item: int) -> int:
    bands = len(edges) - 1
    at = (item - edges[0]) * bands // (edges[-1] - edges[0])
    # The edges were rounded, so the estimate may be off by one.
    while at + 1 < bands and item >= edges[at + 1]:
        at += 1
    while item < edges[at]:
        at -= 1
    return at


def _band(
    drawing: AgentDrawing,
    view: SessionView,
    items: range,
    context: int | None,
    amount: Decimal | None,
    *,
    cache_break: str,
) -> UsageBand:
    first = drawing.renderer.items[items.start]
    return UsageBand(
        items.start,
        items.stop,
        view.links.this_page(at=first.anchor),
        context,
        amount,
        first.turn,
        drawing.renderer.scene.clock(moment) if (moment := first.item.entry.timestamp) is not None else "",
        cache_break,
    )


def _marks(session: CachedSession, drawing: AgentDrawing, items: range) -> StripMarks:
    prompts, failures, compactions, agents, commits = [], [], [], [], []
    committing = session.committing_calls
    for at in items:
        placed = drawing.renderer.items[at]
        item = placed.item
        if placed.kind == "prompt":
            prompts.append(at)
        elif placed.kind == "compaction":
            compactions.append(at)
        elif isinstance(item, FailureItem) or (isinstance(item, CallItem) and item.call.outcome in FAILED_OUTCOMES):
            failures.append(at)
        elif isinstance(item, CallItem) and item.call.tool in AGENT_TOOLS:
            agents.append(at)
        elif isinstance(item, CallItem) and item.call.id in committing:
            commits.append(at)
    return StripMarks(prompts, failures, compactions, agents, commits)


def usage_rows(session: CachedSession, view: SessionView, archive: Archive) -> list[dict[str, Any]]:
    """Context and cost by turn."""
    anchor_prefix = f"{view.agent}." if view.agent is not None else ""
    rows = turn_usage(session.windows(view.agent), session.spending(archive).costs, anchor_prefix)
    return _with_silent_turns(rows, session.agent(view.agent), anchor_prefix)


def usage_table(session: CachedSession, view: SessionView, archive: Archive, rows: list[dict[str, Any]]) -> Markup:
    """A table of the turns and, for a session, of its agents. It adds up."""
    spending = session.spending(archive)
    cells = [_row_cells(_turn_link(row, view), row) for row in rows]
    agents = list(_agent_rows(session, spending)) if view.agent is None else []
    cells += [_row_cells(el("a", shorten(title, 80), href=view.links.agent(id_)), row) for id_, title, row in agents]
    total = _sum_rows([*rows, *(row for _id, _title, row in agents)])
    if view.agent is None and spending.total.amount is not None:
        rest = EXACT.subtract(spending.total.amount, total["amount"] or Decimal(0))
        if abs(rest) >= _MIN_AMOUNT:
            label = "copies, counted in other sessions" if spending.shared else "not in any turn or agent"
            cells.append((label, "", "", "", "", format_amount(rest)))
        total["amount"] = spending.total.amount
    table = render_table(
        "Context and cost by turn", _COLUMNS, cells, foot=_row_cells("Total", total), hidden_caption=True
    )
    return join((table, *(el("p", note, class_="note") for note in _table_notes(rows, spending, total))))


def _with_silent_turns(rows: list[dict[str, Any]], agent: Agent, anchor_prefix: str) -> list[dict[str, Any]]:
    """Add the turns without a request: a prompt that got no reply is a turn, too."""
    known = {row["turn"] for row in rows}
    silent = [
        _empty_row(turn.number, f"{anchor_prefix}L{turn.act.entry.line.number}")
        for turn in agent.turns
        if turn.act is not None and turn.number not in known
    ]
    return sorted([*rows, *silent], key=lambda row: int(row["turn"])) if silent else rows


def _empty_row(turn: int, anchor: str) -> dict[str, Any]:
    return {
        "turn": turn,
        "anchor": anchor,
        "requests": 0,
        "context": None,
        "cache_read": 0,
        "output": 0,
        "amount": None,
    }


def _table_notes(
    rows: Sequence[Mapping[str, Any]], spending: SessionSpending, total: Mapping[str, Any]
) -> Iterator[str]:
    if any(row["turn"] == 0 for row in rows):
        yield "Turn 0: requests before your first prompt (after a resume, compaction or fork)."
    if spending.total.unpriced and total["amount"] is not None:
        yield f"The price of {count(spending.total.unpriced, 'message')} is unknown and not included."


def _turn_link(row: Mapping[str, Any], view: SessionView) -> Markup:
    label = f"{row['turn']:,}" if row["turn"] else "0, before the first prompt"
    return el("a", label, href=view.links.this_page(at=row["anchor"]))


def _row_cells(head: Child, row: Mapping[str, Any]) -> tuple[Child, ...]:
    return (
        head,
        f"{row['requests']:,}",
        (f"{row['context']:,}" if row["context"] is not None else "unknown") if row["requests"] else "",
        f"{row['cache_read']:,}",
        f"{row['output']:,}",
        (format_amount(row["amount"]) if row["amount"] is not None else "unknown") if row["requests"] else "no reply",
    )


def _agent_rows(session: CachedSession, spending: SessionSpending) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each agent that sent requests: its id, title and figures. A message that several agents have counts once."""
    counted = {window.message for window in session.windows(None)}
    for id_, agent in session.agents.items():
        windows = [window for window in session.windows(id_) if window.message is None or window.message not in counted]
        counted.update(window.message for window in windows)
        if windows:
            yield id_, agent_title(agent), _sum_rows(turn_usage(windows, spending.costs))


def _sum_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up rows; of contexts, take the largest."""
    contexts = [row["context"] for row in rows if row["context"] is not None]
    amounts = [row["amount"] for row in rows if row["amount"] is not None]
    return {
        "requests": sum(row["requests"] for row in rows),
        "context": max(contexts, default=None),
        "cache_read": sum(row["cache_read"] for row in rows),
        "output": sum(row["output"] for row in rows),
        "amount": sum_amounts(amounts) if amounts else None,
    }


def turn_usage(
    windows: Sequence[ContextWindow], costs: Mapping[MessageId, Decimal], anchor_prefix: str = ""
) -> list[dict[str, Any]]:
    """Requests, context, tokens and cost of each turn. An agent's anchors begin with `anchor_prefix`."""
    rows: dict[int, dict[str, Any]] = {}
    for window in windows:
        row = rows.setdefault(window.turn, _empty_row(window.turn, f"{anchor_prefix}L{window.place.line}"))
        row["requests"] += 1
        row["cache_read"] += window.cache_read
        row["output"] += window.output
        if window.has_usage:
            row["context"] = max(row["context"] or 0, window.prompt)
        row["amount"] = _add(row["amount"], costs.get(window.message) if window.message is not None else None)
    return list(rows.values())
