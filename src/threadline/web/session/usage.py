"""Context and cost along a session: a strip beside the page, and a table turn by turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from threadline.archive import Archive
from threadline.model.calls import Outcome
from threadline.model.charges import EXACT
from threadline.model.context import ContextWindow
from threadline.model.places import MessageId
from threadline.model.text import count
from threadline.model.totals import sum_amounts
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
from threadline.web.session.view import SessionView
from threadline.web.session_cache import AgentDrawing, CachedSession, SessionSpending

_FAILED_OUTCOMES = (Outcome.ERROR, Outcome.DENIED, Outcome.INTERRUPTED, Outcome.LOST)


def render_usage_strip(
    kept: CachedSession, seen: SessionView, drawn: AgentDrawing, archive: Archive, part: int = 1
) -> Markup:
    """The strip beside a part of the page."""
    start, stop = _item_range(drawn, part)
    return draw_usage_strip(
        usage_bands(kept, seen, drawn, archive, range(start, stop)),
        _marks(drawn, start, stop),
        limit=limit.tokens if (limit := kept.limit(seen.agent)) is not None else None,
        twin=seen.links.below("along", agent=seen.agent),
    )


def usage_bands(
    kept: CachedSession, seen: SessionView, drawn: AgentDrawing, archive: Archive, items: range
) -> tuple[UsageBand, ...]:
    """The bands over some of the items."""
    if not items:
        return ()
    many = min(MAX_BANDS, len(items))
    edges = [items.start + len(items) * at // many for at in range(many + 1)]
    contexts: list[int | None] = [None] * many
    amounts: list[Decimal | None] = [None] * many
    costs = kept.spent(archive).amounts
    for window in kept.windows(seen.agent):
        item = drawn.where.item_at_line(window.place.line or 0)
        if item not in items:
            continue
        at = _band_of(edges, item)
        if window.told:
            contexts[at] = max(contexts[at] or 0, window.prompt)
        cost = costs.get(window.message) if window.message is not None else None
        if cost is not None:
            known = amounts[at]
            amounts[at] = cost if known is None else EXACT.add(known, cost)
    return tuple(_band(drawn, seen, range(edges[at], edges[at + 1]), contexts[at], amounts[at]) for at in range(many))


def _band_of(edges: Sequence[int], item: int) -> int:
    many = len(edges) - 1
    at = (item - edges[0]) * many // (edges[-1] - edges[0])
    # The division that made the edges was rounded.
    while at + 1 < many and item >= edges[at + 1]:
        at += 1
    while item < edges[at]:
        at -= 1
    return at


def _band(
    drawn: AgentDrawing, seen: SessionView, items: range, context: int | None, amount: Decimal | None
) -> UsageBand:
    first = drawn.drawing.items[items.start]
    return UsageBand(items.start, items.stop, seen.links.own(at=first.anchor), context, amount, first.turn)


def _item_range(drawn: AgentDrawing, part: int) -> tuple[int, int]:
    sections = drawn.where.of_part(part)
    return (sections[0].start, sections[-1].stop) if sections else (0, 0)


def _marks(drawn: AgentDrawing, start: int, stop: int) -> StripMarks:
    prompts, failures, compactions = [], [], []
    for at, placed in enumerate(drawn.drawing.items[start:stop], start):
        item = placed.item
        if placed.kind == "prompt":
            prompts.append(at)
        elif placed.kind == "compaction":
            compactions.append(at)
        elif isinstance(item, FailureItem) or (isinstance(item, CallItem) and item.call.outcome in _FAILED_OUTCOMES):
            failures.append(at)
    return StripMarks(prompts, failures, compactions)


_MIN_AMOUNT = Decimal("0.00005")
"""What four places of a dollar show."""
_COLUMNS = (
    Column("turn or agent"),
    Column("requests", "number"),
    Column("largest window", "number"),
    Column("read from the cache", "number"),
    Column("output", "number"),
    Column("cost", "number"),
)


def usage_table(kept: CachedSession, seen: SessionView, archive: Archive) -> tuple[Markup, list[dict[str, Any]]]:
    """The same turn by turn and, for a session, agent by agent, as a table that adds up and as the turns' data."""
    before = f"{seen.agent}." if seen.agent is not None else ""
    spent = kept.spent(archive)
    rows = turn_figures(kept.windows(seen.agent), spent.amounts, before)
    cells = [_row_cells(_turn_link(row, seen), row) for row in rows]
    others = list(_agent_rows(kept, spent)) if seen.agent is None else []
    cells += [_row_cells(el("a", shorten(who, 80), href=seen.links.agent(id_)), row) for id_, who, row in others]
    summed = _sum_rows([*rows, *(row for _id, _who, row in others)])
    if seen.agent is None and spent.total.amount is not None:
        rest = EXACT.subtract(spent.total.amount, summed["amount"] or Decimal(0))
        if abs(rest) >= _MIN_AMOUNT:
            cells.append(("of no turn and no agent", "", "", "", "", _format_dollars(rest)))
        summed["amount"] = spent.total.amount
    made = render_table("Context and cost, turn by turn", _COLUMNS, cells, foot=_row_cells("all", summed))
    return join((made, *(el("p", note, class_="note") for note in _table_notes(rows, spent, summed)))), rows


def _table_notes(rows: Sequence[Mapping[str, Any]], spent: SessionSpending, summed: Mapping[str, Any]) -> Iterator[str]:
    if any(row["turn"] == 0 for row in rows):
        yield (
            "Turn 0 is what was asked of a model before the first prompt, or what a session has from the one that it "
            "goes on from."
        )
    if spent.total.unpriced and summed["amount"] is not None:
        yield f"{count(spent.total.unpriced, 'message')} of unknown price cannot be in these amounts."


def _turn_link(row: Mapping[str, Any], seen: SessionView) -> Markup:
    label = f"{row['turn']:,}" if row["turn"] else "0, before the first prompt"
    return el("a", label, href=seen.links.own(at=row["anchor"]))


def _row_cells(head: Child, row: Mapping[str, Any]) -> tuple[Child, ...]:
    return (
        head,
        f"{row['requests']:,}",
        f"{row['context']:,}" if row["context"] is not None else "not told",
        f"{row['cache_read']:,}",
        f"{row['output']:,}",
        _format_dollars(row["amount"]) if row["amount"] is not None else "not known",
    )


def _format_dollars(amount: Decimal) -> str:
    return f"${amount:.4f}"


def _agent_rows(kept: CachedSession, spent: SessionSpending) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each agent that asked a model, its name, and what that held and cost; a message that several have counts once."""
    known = {window.message for window in kept.windows(None)}
    for id_, agent in kept.agents.items():
        own = [window for window in kept.windows(id_) if window.message is None or window.message not in known]
        known.update(window.message for window in own)
        if own:
            yield id_, agent_title(agent), _sum_rows(turn_figures(own, spent.amounts))


def _sum_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows in one: sums, and the largest of the windows."""
    contexts = [row["context"] for row in rows if row["context"] is not None]
    amounts = [row["amount"] for row in rows if row["amount"] is not None]
    return {
        "requests": sum(row["requests"] for row in rows),
        "context": max(contexts, default=None),
        "cache_read": sum(row["cache_read"] for row in rows),
        "output": sum(row["output"] for row in rows),
        "amount": sum_amounts(amounts) if amounts else None,
    }


def turn_figures(
    windows: Sequence[ContextWindow], amounts: Mapping[MessageId, Decimal], before: str = ""
) -> list[dict[str, Any]]:
    """What the requests of each turn held and cost; `before` is what an agent's anchors begin with."""
    found: dict[int, dict[str, Any]] = {}
    for window in windows:
        row = found.setdefault(
            window.turn,
            {
                "turn": window.turn,
                "anchor": f"{before}L{window.place.line}",
                "requests": 0,
                "context": None,
                "cache_read": 0,
                "output": 0,
                "amount": None,
            },
        )
        row["requests"] += 1
        row["cache_read"] += window.cache_read
        row["output"] += window.output
        if window.told:
            row["context"] = max(row["context"] or 0, window.prompt)
        cost = amounts.get(window.message) if window.message is not None else None
        if cost is not None:
            row["amount"] = cost if row["amount"] is None else EXACT.add(row["amount"], cost)
    return list(found.values())
