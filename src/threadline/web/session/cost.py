"""Why a session cost this much: cost by turn, cache breaks, expensive requests, and what fills the context window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from threadline.insight import split_request_costs
from threadline.model.context import ContextCategory
from threadline.model.ledger import sum_amounts
from threadline.model.text import (
    count,
    format_amount,
    format_percent,
    format_tokens,
    short_model_name,
)
from threadline.render import shorten, visible
from threadline.render.html import (
    EMPTY,
    Bar,
    Child,
    Column,
    bar_chart,
    el,
    render_table,
    share_bar,
    time_element,
)
from threadline.thread import analyze_context
from threadline.web.insight.causes import render_causes
from threadline.web.request import Fragment
from threadline.web.session.insight import cause_links, cost_head, cost_links, place_url

if TYPE_CHECKING:
    from threadline.model.context import Context
    from threadline.model.insight.attribution import RequestCost
    from threadline.web.request import PageRequest
    from threadline.web.session_cache import CachedSession

PARTS = ("new input", "cache rewrite", "cache read", "output", "agents")
_MAX_BARS, _MAX_BREAKS, _TOP = 100, 12, 5
_END = "end"
_CATEGORIES = {
    ContextCategory.SYSTEM: "System prompt and tools",
    ContextCategory.SUMMARY: "Summary",
    ContextCategory.PROMPT: "Prompts",
    ContextCategory.REPLY: "Replies",
    ContextCategory.THINKING: "Thinking",
    ContextCategory.CALL: "Tool calls",
    ContextCategory.RESULT: "Tool results",
    ContextCategory.INJECTED: "Injected text",
    ContextCategory.IMAGE: "Images",
    ContextCategory.UNSEEN: "Not in the transcript",
}


def session_cost_page(request: PageRequest) -> Fragment:
    """What each turn of a session cost, and what made it expensive; with `part=pieces`, the most expensive causes."""
    session = request.session()
    title = "Cost by turn"
    if request.text("part") == "pieces":
        main, data = _render_pieces(request, session), None
    else:
        costs = _request_costs(request, session)
        main = _render_costs(request, session, costs) if costs else el("p", "No request with a known price.")
        data = {"requests": [_request_record(cost) for cost in costs]} if request.wants_data else None
    return Fragment(title, "insight", main, data, heading=cost_head(session, title, "cost"))


def _request_costs(request: PageRequest, session: CachedSession) -> tuple[RequestCost, ...]:
    def compute() -> tuple[RequestCost, ...]:
        facts = session.costs(request.archive)
        return tuple(split_request_costs(facts.session, facts.requests))

    return request.cached("request costs", compute, session.id, session.version)


def _render_costs(request: PageRequest, session: CachedSession, costs: Sequence[RequestCost]) -> Markup:
    total = sum_amounts(cost.amount for cost in costs)
    breaks = [cost for cost in costs if cost.cache_break is not None]
    pieces = session.links.below("cost", part="pieces")
    return el(
        "div",
        _summarize(breaks, total),
        _render_turns(session, costs),
        el(
            "div",
            _render_breaks(request, session, breaks) if breaks else EMPTY,
            _render_top_requests(request, session, costs),
            class_="cost-lists",
        ),
        el(
            "details",
            el("summary", "Most expensive pieces"),
            el("p", el("a", "Open as page", href=pieces)),
            data_src=pieces,
        ),
        cost_links(session),
        class_="cost-view",
    )


def _summarize(breaks: Sequence[RequestCost], total: Decimal) -> Markup:
    """A sentence: how many cache breaks there were, how much was written again, what that cost, and the causes."""
    if not breaks:
        return el("p", "The cache never broke: nothing was sent again.", class_="cost-summary")
    tokens = sum(cost.cache_break.rewritten for cost in breaks if cost.cache_break is not None)
    amount = sum_amounts(cost.rewrite for cost in breaks)
    causes = Counter(cost.cache_break.cause.label for cost in breaks if cost.cache_break is not None)
    share = f" ({format_percent(float(amount / total))} of the cost)" if total else ""
    return el(
        "p",
        el("b", count(len(breaks), "cache break")),
        f": {format_tokens(tokens)} tokens were written to the cache again for ",
        el("b", format_amount(amount)),
        f"{share}. Why: {', '.join(f'{cause} ({number:,})' for cause, number in causes.most_common())}.",
        class_="cost-summary",
    )


def _render_turns(session: CachedSession, costs: Sequence[RequestCost]) -> Markup:
    turns: dict[int, list[RequestCost]] = {
        turn.number: [] for turn in session.session.main.turns if turn.act is not None
    }
    for cost in costs:
        turns.setdefault(cost.turn or 0, []).append(cost)
    numbers = sorted(turns)
    size = -(-len(numbers) // _MAX_BARS)
    groups = [numbers[at : at + size] for at in range(0, len(numbers), size)] if numbers else []
    bars = [_bar_of_turns(session, group, [cost for turn in group for cost in turns[turn]]) for group in groups]
    return bar_chart("turn-costs", "Cost by turn", PARTS, bars, format_amount, key="Turn", is_reversed=False)


def _bar_of_turns(session: CachedSession, turns: Sequence[int], costs: Sequence[RequestCost]) -> Bar:
    own = [cost for cost in costs if cost.agent is None]
    parts = [
        *(sum_amounts(getattr(cost, name) for cost in own) for name in ("new", "rewrite", "read", "output")),
        sum_amounts(cost.amount for cost in costs if cost.agent is not None),
    ]
    first = own[0] if own else None
    label = f"{turns[0]}" if len(turns) == 1 else f"{turns[0]}-{turns[-1]}"
    turn = next((turn for turn in session.session.main.turns if turn.number == turns[0] and turn.act), None)
    place = turn.act.entry.place if turn is not None and turn.act is not None else first.place if first else None
    return Bar(label, [float(part) for part in parts], place_url(session, place, None))


def _render_breaks(request: PageRequest, session: CachedSession, breaks: Sequence[RequestCost]) -> Markup:
    largest = sorted(breaks, key=lambda cost: -cost.rewrite)[:_MAX_BREAKS]
    most = max((cost.rewrite for cost in largest), default=Decimal(0)) or Decimal(1)
    columns = (
        Column("Where"),
        Column("When", "when minor"),
        Column("Cause"),
        Column("Sent again", "number"),
        Column("Amount", "number"),
    )
    rows = [
        [
            _request_link(session, cost),
            time_element(cost.time, request.zone()),
            el("span", cost.cache_break.cause.label, title=shorten(visible(cost.cache_break.evidence), 300)),
            format_tokens(cost.cache_break.rewritten),
            [format_amount(cost.rewrite), share_bar(cost.rewrite / most)],
        ]
        for cost in largest
        if cost.cache_break is not None
    ]
    rest = len(breaks) - len(largest)
    more = el("p", f"and {count(rest, 'smaller break')}", class_="note") if rest else EMPTY
    return el(
        "section", el("h2", "Cache breaks"), render_table("Cache breaks", columns, rows, hidden_caption=True), more
    )


def _render_top_requests(request: PageRequest, session: CachedSession, costs: Sequence[RequestCost]) -> Markup:
    largest = sorted(costs, key=lambda cost: -cost.amount)[:_TOP]
    most = max((cost.amount for cost in largest), default=Decimal(0)) or Decimal(1)
    columns = (
        Column("Where"),
        Column("When", "when minor"),
        Column("Model"),
        Column("Context", "number"),
        Column("Amount", "number"),
    )
    rows = [
        [
            _request_link(session, cost),
            time_element(cost.time, request.zone()),
            shorten(short_model_name(cost.model), 30) if cost.model else "",
            format_tokens(cost.tokens),
            [format_amount(cost.amount), share_bar(cost.amount / most)],
        ]
        for cost in largest
    ]
    caption = "Most expensive requests"
    return el("section", el("h2", caption), render_table(caption, columns, rows, hidden_caption=True))


def _request_link(session: CachedSession, cost: RequestCost) -> Child:
    label = f"turn {cost.turn:,}" if cost.turn is not None else "before turn 1"
    if cost.agent is not None:
        label += ", agent"
    url = place_url(session, cost.place, cost.agent)
    return el("a", label, href=url) if url is not None else label


def _render_pieces(request: PageRequest, session: CachedSession) -> Markup:
    """The most expensive causes of the session's cost."""
    attribution = session.costs(request.archive).attribution
    links = cause_links(request, session, "kind", is_group=True)
    return render_causes(attribution.rows[:_TOP], links, attribution.amount, title="Most expensive pieces")


def _request_record(cost: RequestCost) -> dict[str, Any]:
    cache_break = cost.cache_break
    return {
        "agent": cost.agent,
        "turn": cost.turn,
        "place": str(cost.place),
        "timestamp": cost.time,
        "model": cost.model,
        "tokens": cost.tokens,
        "new": cost.new,
        "rewrite": cost.rewrite,
        "read": cost.read,
        "output": cost.output,
        "amount": cost.amount,
        "cause": str(cache_break.cause) if cache_break is not None else None,
        "evidence": cache_break.evidence if cache_break is not None else None,
        "rewritten": cache_break.rewritten if cache_break is not None else 0,
    }


def context_page(request: PageRequest) -> Fragment:
    """What fills the context window at an entry, or at the `end`."""
    session = request.session()
    anchor = request.path_values["anchor"]
    if anchor == _END:
        context = analyze_context(session.session)
    else:
        entry, agent = session.entry(anchor)
        context = analyze_context(session.session, agent.id, entry.place)
    title = "Context at the end" if anchor == _END else f"Context at {anchor}"
    data = {
        "window": context.window,
        "limit": context.limit.tokens if context.limit else None,
        "filling": context.filling,
    }
    return Fragment(
        title,
        "insight",
        _render_filling(session, context),
        data,
        heading=cost_head(session, title, f"context/{anchor}"),
    )


def _render_filling(session: CachedSession, context: Context) -> Markup:
    limit = context.limit
    size = f"{format_tokens(context.window)} tokens"
    if limit is not None:
        size += f" of {format_tokens(limit.tokens)} ({format_percent(context.window / limit.tokens)})"
    url = place_url(session, context.place, context.agent)
    where = el("a", "the last request before it", href=url) if url is not None else "the last request"
    parts = sorted(context.filling, key=lambda part: -part.tokens)
    columns = (Column("What"), Column("Tokens", "number"), Column("Share", "number"))
    rows = [
        [
            shorten(f"{_CATEGORIES.get(part.category, part.category)}{f': {part.name}' if part.name else ''}", 80),
            f"{'' if part.is_measured else '≈ '}{part.tokens:,}",
            [
                format_percent(part.tokens / context.window) if context.window else "",
                share_bar(part.tokens / context.window if context.window else 0),
            ],
        ]
        for part in parts
    ]
    table = render_table("What fills the window", columns, rows, hidden_caption=True)
    note = f"{format_tokens(context.dropped)} tokens were dropped by compactions." if context.dropped else ""
    return el(
        "div",
        el("p", el("b", size), " in the window of ", where, ". Sizes marked ≈ are estimates."),
        table if rows else el("p", "Nothing was sent yet.", class_="nothing"),
        el("p", note, class_="note") if note else EMPTY,
        class_="context-view",
    )
