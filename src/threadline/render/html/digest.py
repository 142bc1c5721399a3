"""Render a digest as HTML: its blocks, and a chart of its days."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta, tzinfo
from itertools import groupby

from markupsafe import Markup

from threadline.model.insight.digest import Digest
from threadline.model.text import format_amount
from threadline.model.times import in_zone
from threadline.render.digest import MAX_SESSIONS, DigestBlock, DigestPart, digest_blocks
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.svg_charts import Bar, bar_chart, short_day
from threadline.render.text import Role, visible

SessionAddress = Callable[[str], str | None]
"""Returns the address of a session's page; None if it has none."""
_TAGS = {"title": "h1", "heading": "h2", "subheading": "h3", "text": "p"}
_MIN_DAYS_FOR_CHART, _MAX_DAYS_FOR_CHART = 2, 100
_WHOLE_DOLLARS_FROM = 10


def render_digest(
    digest: Digest,
    zone: tzinfo,
    *,
    max_sessions: int = MAX_SESSIONS,
    with_title: bool = True,
    session_address: SessionAddress | None = None,
    day_address: Callable[[str], str | None] | None = None,
) -> Markup:
    """Render a digest, or what follows its title. Titles of sessions and columns of days are links with an address."""
    blocks = list(digest_blocks(digest, zone, max_sessions=max_sessions))[not with_title :]
    link = session_address or (lambda _session: None)
    parts: list[Child] = []
    for is_list, group in groupby(blocks, key=lambda block: block.kind in {"item", "detail"}):
        run = list(group)
        parts += [el("ul", _items(run, link))] if is_list else [_render_block(block, link) for block in run]
    parts.insert(int(with_title), _day_chart(digest, zone, day_address or (lambda _day: None)))
    return el("article", join(parts), class_="digest")


def _day_chart(digest: Digest, zone: tzinfo, day_address: Callable[[str], str | None]) -> Child:
    """A column for each day of the period, also for days without usage."""
    if len(digest.days) < _MIN_DAYS_FOR_CHART:
        return None
    amounts = {day: float(total.amount or 0) for day, total in digest.days}
    first, last = in_zone(digest.period.since, zone).date(), in_zone(digest.period.until, zone).date()
    length = (last - first).days + 1
    if length <= _MAX_DAYS_FOR_CHART:
        days = [(first + timedelta(days=number)).isoformat() for number in range(length)]
        amounts = {day: amounts.get(day, 0.0) for day in days}
    bars = [Bar(day, [amount], day_address(day) if amount else None, short_day(day)) for day, amount in amounts.items()]
    return bar_chart("digest-days", "Amount by day", ["amount"], bars, _format_short)


def _format_short(value: float) -> str:
    """An amount at the side of the chart, where there is little room."""
    return f"${value:,.0f}" if value >= _WHOLE_DOLLARS_FROM or not value else format_amount(value)


def _render_block(block: DigestBlock, link: SessionAddress) -> Markup:
    return el(_TAGS[block.kind], [_render_part(part, link) for part in block.parts])


def _items(blocks: Iterable[DigestBlock], link: SessionAddress) -> Iterator[Markup]:
    """The items of a list, each with its details as a list of its own."""
    item: list[Child] = []
    details: list[Markup] = []
    for block in blocks:
        content = [_render_part(part, link) for part in block.parts]
        if block.kind == "detail":
            details.append(el("li", content))
            continue
        if item:
            yield el("li", item, el("ul", details) if details else EMPTY)
        item, details = list(content), []
    if item:
        yield el("li", item, el("ul", details) if details else EMPTY)


def _render_part(part: DigestPart, link: SessionAddress) -> Child:
    address = link(part.session) if part.session is not None else None
    text = visible(part.text)
    content: Child = el("a", text, href=address) if address is not None else text
    if part.role is Role.STRONG:
        return el("strong", content)
    return el("code", content) if part.role is Role.CODE else content
