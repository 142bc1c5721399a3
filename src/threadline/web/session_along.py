"""Along a session: what its windows held and its messages cost, as a strip beside its page and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from threadline.archive import Standing
from threadline.model.call import Outcome
from threadline.model.context import Window
from threadline.model.ids import MessageId
from threadline.model.rate import EXACT
from threadline.render.html.along import MOST, Band, Marks, along
from threadline.render.html.element import el
from threadline.render.html.table import Column, table
from threadline.render.outline import Called, Failed
from threadline.web.kept import Drawn, Kept
from threadline.web.viewing import Viewing

_FAILED = (Outcome.ERROR, Outcome.DENIED, Outcome.INTERRUPTED, Outcome.LOST)


def along_of(kept: Kept, seen: Viewing, drawn: Drawn, archive: Standing, part: int = 1) -> Markup:
    """The strip beside a part of the page."""
    start, stop = _span(drawn, part)
    return along(
        bands(kept, seen, drawn, archive, range(start, stop)),
        _marks(drawn, start, stop),
        limit=limit.tokens if (limit := kept.limit(seen.agent)) is not None else None,
        twin=seen.links.below("along", agent=seen.agent),
    )


def bands(kept: Kept, seen: Viewing, drawn: Drawn, archive: Standing, items: range) -> tuple[Band, ...]:
    """The bands over some of the items."""
    if not items:
        return ()
    many = min(MOST, len(items))
    edges = [items.start + len(items) * at // many for at in range(many + 1)]
    contexts: list[int | None] = [None] * many
    amounts: list[Decimal | None] = [None] * many
    costs = kept.spent(archive).amounts
    for window in kept.windows(seen.agent):
        item = drawn.where.item_of(window.place.line or 0)
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


def _band(drawn: Drawn, seen: Viewing, items: range, context: int | None, amount: Decimal | None) -> Band:
    first = drawn.drawing.items[items.start]
    return Band(items.start, items.stop, seen.links.own(at=first.anchor), context, amount, first.turn)


def _span(drawn: Drawn, part: int) -> tuple[int, int]:
    sections = drawn.where.of_part(part)
    return (sections[0].start, sections[-1].stop) if sections else (0, 0)


def _marks(drawn: Drawn, start: int, stop: int) -> Marks:
    prompts, failures, compactions = [], [], []
    for at, one in enumerate(drawn.drawing.items[start:stop], start):
        item = one.item
        if one.kind == "prompt":
            prompts.append(at)
        elif one.kind == "compaction":
            compactions.append(at)
        elif isinstance(item, Failed) or (isinstance(item, Called) and item.call.outcome in _FAILED):
            failures.append(at)
    return Marks(prompts, failures, compactions)


_COLUMNS = (
    Column("turn", "number"),
    Column("requests", "number"),
    Column("largest window", "number"),
    Column("read from the cache", "number"),
    Column("output", "number"),
    Column("cost", "number"),
)


def table_of(kept: Kept, seen: Viewing, archive: Standing) -> tuple[Markup, list[dict[str, Any]]]:
    """The same turn by turn, as a table and as data."""
    before = f"{seen.agent}." if seen.agent is not None else ""
    rows = turn_figures(kept.windows(seen.agent), kept.spent(archive).amounts, before)
    cells = [
        (
            el("a", f"{row['turn']:,}", href=seen.links.own(at=row["anchor"])),
            f"{row['requests']:,}",
            f"{row['context']:,}" if row["context"] is not None else "not told",
            f"{row['cache_read']:,}",
            f"{row['output']:,}",
            f"${row['amount']:.4f}" if row["amount"] is not None else "not known",
        )
        for row in rows
    ]
    return table("Context and cost, turn by turn", _COLUMNS, cells), rows


def turn_figures(
    windows: Sequence[Window], amounts: Mapping[MessageId, Decimal], before: str = ""
) -> list[dict[str, Any]]:
    """What the requests of each turn held and cost; `before` is what an agent's anchors begin with."""
    found: dict[int, dict[str, Any]] = {}
    for one in windows:
        row = found.setdefault(
            one.turn,
            {
                "turn": one.turn,
                "anchor": f"{before}L{one.place.line}",
                "requests": 0,
                "context": None,
                "cache_read": 0,
                "output": 0,
                "amount": None,
            },
        )
        row["requests"] += 1
        row["cache_read"] += one.cache_read
        row["output"] += one.output
        if one.told:
            row["context"] = max(row["context"] or 0, one.prompt)
        cost = amounts.get(one.message) if one.message is not None else None
        if cost is not None:
            row["amount"] = cost if row["amount"] is None else EXACT.add(row["amount"], cost)
    return list(found.values())
