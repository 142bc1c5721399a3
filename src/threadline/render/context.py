"""Draw the context window for a terminal: one line per turn, then what fills the window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo

from threadline.model.context import BreakCause, CacheBreak, Context, ContextCategory, ContextPart, TurnContext
from threadline.model.ledger import SessionCosts
from threadline.model.text import (
    count,
    format_amount,
    format_duration,
    format_percent,
    format_time,
    format_tokens,
    short_model_name,
)
from threadline.model.times import in_zone, zone_name
from threadline.render.text import (
    Role,
    Span,
    Spans,
    Style,
    bar,
    cut_line,
    display_width,
    dropped_note,
    fit_columns,
    line_width,
    one_line,
    wrap,
)

_BAR_WIDTH, _WIDE_BAR_WIDTH = 6, 16
_WIDE_PAGE = 100
_FULL, _GETTING_FULL = 0.8, 0.6
_POOR_HIT_SHARE = 0.5
_KILO = 1000
# Width of the columns other than label and bar: tokens, share and evidence.
_OTHER_COLUMNS = 31
_MIN_PARTS = 8
_BREAKS_HEADING = "cache breaks"
_MAX_CAUSES_WIDTH = 30
# The bar has no heading.
_DROPPED_FIRST = ("growth", "again", "requests", "cached", "", "window")

CATEGORY_NAMES: dict[ContextCategory, str] = {
    ContextCategory.SYSTEM: "system prompt and tools",
    ContextCategory.SUMMARY: "compaction summary",
    ContextCategory.PROMPT: "prompts",
    ContextCategory.REPLY: "replies",
    ContextCategory.THINKING: "thinking",
    ContextCategory.CALL: "tool calls",
    ContextCategory.RESULT: "results of {}",
    ContextCategory.INJECTED: "injected: {}",
    ContextCategory.IMAGE: "images",
    ContextCategory.UNSEEN: "not in the transcript",
}


def draw_context(
    context: Context,
    width: int,
    *,
    colour: bool = False,
    everything: bool = False,
    with_breaks: bool = False,
    zone: tzinfo = UTC,
    costs: SessionCosts | None = None,
) -> Iterator[str]:
    """The context as lines of at most `width` columns, with times in `zone`.

    `everything`: include even the smallest parts of the window. `with_breaks`: list each cache break with its evidence.
    `costs`: what each turn spent.
    """
    style = Style(colour=colour)
    yield from (style.line(line) for line in wrap(_headline(context), width))
    yield ""
    for line in _turn_lines([turn for turn in context.turns if turn.requests], width, zone, costs):
        yield style.line(cut_line(line, width))
    if with_breaks and context.breaks:
        yield ""
        yield style.line([Span("Cache breaks", Role.TITLE)])
        yield from (style.line(line) for cache_break in context.breaks for line in _break_lines(cache_break, width))
    if context.filling:
        yield ""
        yield from (style.line(line) for line in wrap(_filling_headline(context), width))
        for line in _filling_lines(context, width, everything=everything):
            yield style.line(cut_line(line, width))


def padded_bar(share: float | None, width: int) -> str:
    """The bar of a share, padded to `width` columns.

    >>> padded_bar(0.5, 4)
    '██  '
    """
    return bar(share, 1, width).ljust(width)


def _headline(context: Context) -> list[Span]:
    who = f"agent {context.agent}" if context.agent else "main agent"
    hit = (
        f", {format_percent(context.hit_share)} of all sent tokens from the cache"
        if context.hit_share is not None
        else ""
    )
    rewritten = sum(cache_break.rewritten for cache_break in context.breaks)
    breaks = f", {count(len(context.breaks), 'cache break')}" if context.breaks else ", no cache breaks"
    cost = f" ({format_tokens(rewritten)} tokens sent again)" if rewritten else ""
    return [
        Span(who[:1].upper() + who[1:], Role.TITLE),
        Span(f"  {count(len(context.windows), 'request')}{hit}{breaks}{cost}"),
    ]


def _turn_lines(
    turns: Sequence[TurnContext], width: int, zone: tzinfo, costs: SessionCosts | None
) -> Iterator[list[Span]]:
    """One line per turn. A narrow page leaves out columns, and shows what was sent again behind its cause."""
    days = {in_zone(turn.started, zone).date() for turn in turns if turn.started is not None}
    clock = "%H:%M" if len(days) == 1 else "%m-%d %H:%M"
    time = f"time ({zone_name(zone)})"
    room = _WIDE_BAR_WIDTH if width >= _WIDE_PAGE else _BAR_WIDTH
    rows = [_turn_cells(turn, format_time(turn.started, zone, clock), room, costs) for turn in turns]
    headings = ("turn", time, "amount", "requests", "window", "", "full", "growth", "cached", "again")
    widths = {
        name: max([display_width(name), *(display_width(row[at].text) for row in rows)])
        for at, name in enumerate(headings)
        if name != "amount" or any(row[at].text for row in rows)
    }
    fitting = fit_columns(widths, _DROPPED_FIRST[:2], width - _causes_width(turns, with_cost=False))
    if "again" not in fitting:
        fitting = fit_columns(widths, _DROPPED_FIRST, width - _causes_width(turns, with_cost=True))
    yield [
        *(Span(_pad_cell(name, widths[name], is_left=name == time), Role.FAINT) for name in fitting),
        Span(_BREAKS_HEADING, Role.FAINT),
    ]
    for turn, row in zip(turns, rows, strict=True):
        cells = dict(zip(headings, row, strict=True))
        yield [
            *(
                Span(_pad_cell(cells[name].text, widths[name], is_left=name == time), cells[name].role)
                for name in fitting
            ),
            *_cause_spans(turn, with_cost="again" not in fitting),
        ]
    if dropped := [name for name in widths if name and name not in fitting and name != "again"]:
        yield []
        yield from map(list, wrap((Span(dropped_note(dropped), Role.FAINT),), width))


def _turn_cells(turn: TurnContext, when: str, bar_width: int, costs: SessionCosts | None) -> tuple[Span, ...]:
    full = Role.BAD if (turn.share or 0) >= _FULL else Role.NOTICE if (turn.share or 0) >= _GETTING_FULL else Role.GOOD
    cached = Role.NOTICE if turn.hit_share is not None and turn.hit_share < _POOR_HIT_SHARE else Role.BODY
    return (
        Span(str(turn.number)),
        Span(when),
        Span(format_amount(costs.turn(turn.number).amount) if costs is not None else ""),
        Span(f"{turn.requests:,}"),
        Span(format_tokens(turn.window)),
        Span(padded_bar(turn.share, bar_width), full),
        Span(format_percent(turn.share)),
        Span(("+" if (turn.growth or 0) > 0 else "") + format_tokens(turn.growth)),
        Span(format_percent(turn.hit_share), cached),
        Span(format_tokens(turn.rewritten) if turn.rewritten else ""),
    )


def _pad_cell(text: str, width: int, *, is_left: bool) -> str:
    return f"{text:<{width}}  " if is_left else f"{text:>{width}}  "


def _causes_width(turns: Sequence[TurnContext], *, with_cost: bool) -> int:
    """The width that the causes of cache breaks need. Longer ones are cut."""
    widths = (line_width(_cause_spans(turn, with_cost=with_cost)) for turn in turns)
    return min(_MAX_CAUSES_WIDTH, max([len(_BREAKS_HEADING), *widths]))


def _cause_spans(turn: TurnContext, *, with_cost: bool) -> list[Span]:
    """Causes of the cache breaks of a turn, optionally with the tokens that were sent again."""
    causes = Counter(_describe_cause(cache_break) for cache_break in turn.breaks)
    text = ", ".join(f"{number} × {cause}" if number > 1 else cause for cause, number in causes.items())  # noqa: RUF001
    if text:
        cost = [Span(f" ({format_tokens(turn.rewritten)})", Role.FAINT)] if with_cost else []
        return [Span(text, Role.NOTICE), *cost]
    return [Span("(compaction)", Role.FAINT)] if turn.compactions else []


def _describe_cause(cache_break: CacheBreak) -> str:
    return (
        f"idle {format_duration(cache_break.gap)}" if cache_break.cause is BreakCause.IDLE else cache_break.cause.label
    )


def _break_lines(cache_break: CacheBreak, width: int) -> Iterator[Spans]:
    turn = (Span(f"{cache_break.turn:>4}  ", Role.FAINT),)
    details = f", {format_tokens(cache_break.rewritten)} again: {cache_break.evidence}."
    line = (Span(f"line {cache_break.place.line} "), Span(cache_break.cause.label, Role.NOTICE), Span(details))
    return wrap(line, width, first=turn, rest=(Span(" " * 6),))


def _filling_headline(context: Context) -> list[Span]:
    limit = context.limit
    full = (
        f"{format_tokens(context.window)} of {format_tokens(limit.tokens)} ({format_percent(context.share)})"
        if limit is not None
        else ""
    )
    kind = "" if context.measured else ", estimated: no usage is known"
    model = f"  {short_model_name(context.model)}" if context.model else ""
    at = f", line {context.place.line}" if context.place is not None else ""
    return [Span("In the window", Role.TITLE), Span(f"  {full}{kind}{model}{at}")]


def filling_label(part: ContextPart) -> str:
    """The label of a part of the window."""
    label = CATEGORY_NAMES[part.category]
    if "{}" in label:
        return label.format(one_line(part.name or "unknown", 60))
    return f"{label}: {one_line(part.name, 60)}" if part.name else label


def _filling_lines(context: Context, width: int, *, everything: bool) -> Iterator[list[Span]]:
    shown = list(context.filling if everything else _significant_parts(context.filling, context.window))
    labels = [filling_label(part) for part in shown]
    rest = context.filling[len(shown) :]
    if rest:
        labels.append(f"{len(rest)} smaller")
    room = _WIDE_BAR_WIDTH if width >= _WIDE_PAGE else _BAR_WIDTH
    widest = min(max(map(display_width, labels)), max(23, width - room - _OTHER_COLUMNS))
    parts = [(part.tokens, part.measured) for part in shown]
    if rest:
        parts.append((sum(part.tokens for part in rest), sum(part.measured for part in rest)))
    for name, (size, measured) in zip(labels, parts, strict=True):
        share = size / context.window if context.window else 0.0
        padded = cut_line((Span(name),), widest)[0].text
        yield [
            Span(f"{padded}{' ' * (widest - display_width(padded))}"),
            Span(f"  {format_tokens(size):>6}  {format_percent(share):>4}  "),
            Span(padded_bar(share, room), Role.AGENT),
            Span(f"  {_describe_evidence(size, measured)}", Role.FAINT),
        ]


def _significant_parts(filling: Sequence[ContextPart], window: int) -> Iterator[ContextPart]:
    """The parts to list: the few largest, and all of at least half a percent."""
    for at, part in enumerate(filling):
        if at < _MIN_PARTS or part.tokens * 200 >= window:
            yield part


def _describe_evidence(size: int, measured: int) -> str:
    if measured == size:
        return "measured"
    return f"{format_percent(measured / size)} measured" if measured * 100 >= size else "estimate"
