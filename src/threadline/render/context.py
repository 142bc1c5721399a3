"""A context for a terminal: a line a turn, then what fills the window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from threadline.model.context import BreakCause, CacheBreak, Category, Context, Filling, TurnContext
from threadline.render.figures import count, model_name, span_of_time
from threadline.render.layout import cut, wrap
from threadline.render.style import Role, Span, Spans, Style
from threadline.render.terminal_text import columns, one_line

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BAR, _WIDE_BAR = 6, 20
_ROOMY = 100
_FULL, _GETTING_FULL = 0.8, 0.6
_POOR = 0.5
_KILO = 1000
# The columns beside a label and a bar: tokens, share, and how they are known.
_BESIDE = 34
_FEWEST = 8

NAMES: dict[Category, str] = {
    Category.SYSTEM: "system prompt and tools",
    Category.SUMMARY: "compaction summary",
    Category.PROMPT: "prompts",
    Category.REPLY: "replies",
    Category.THINKING: "thinking",
    Category.CALL: "tool calls",
    Category.RESULT: "results of {}",
    Category.INJECTED: "injected: {}",
    Category.IMAGE: "images",
    Category.UNSEEN: "not in the transcript",
}
CAUSES: dict[BreakCause, str] = {
    BreakCause.MODEL: "other model",
    BreakCause.COMPACTION: "compaction",
    BreakCause.BRANCH: "rewind",
    BreakCause.IDLE: "idle",
    BreakCause.TOOLS: "other tools",
    BreakCause.SETTINGS: "other settings",
    BreakCause.RESTART: "restart",
    BreakCause.UNKNOWN: "unknown",
}


def draw(
    context: Context, width: int, *, colour: bool = False, everything: bool = False, with_breaks: bool = False
) -> Iterator[str]:
    """The context as lines that fit a page.

    `everything`: all that fills the window, however little. `with_breaks`: each cache break with its evidence.
    """
    style = Style(colour=colour)
    yield from (style.line(line) for line in wrap(_head(context), width))
    yield ""
    for line in _turns([one for one in context.turns if one.requests], width):
        yield style.line(cut(line, width))
    if with_breaks and context.breaks:
        yield ""
        yield style.line([Span("Cache breaks", Role.TITLE)])
        yield from (style.line(line) for one in context.breaks for line in _break(one, width))
    if context.filling:
        yield ""
        yield from (style.line(line) for line in wrap(_title(context), width))
        for line in _filling(context, width, everything=everything):
            yield style.line(cut(line, width))


def tokens(number: int | None) -> str:
    """`812`, `9.4k`, `167k`, `1.20M`; nothing where it is not known."""
    if number is None:
        return ""
    if abs(number) < _KILO:
        return str(number)
    thousands = number / _KILO
    if abs(thousands) < _KILO - 0.5:
        return f"{thousands:.1f}k" if abs(thousands) < 9.95 else f"{thousands:.0f}k"  # noqa: PLR2004 - two digits
    return f"{thousands / _KILO:.2f}M"


def bar(share: float | None, width: int) -> str:
    """A bar of so many columns, in eighths of a column; anything above nothing shows.

    >>> bar(0.5, 4)
    '██  '
    """
    filled = min(1.0, max(0.0, share or 0.0)) * width * 8
    eighths = max(1, round(filled)) if filled else 0
    drawn = "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
    return drawn.ljust(width)


def percent(share: float | None) -> str:
    """`43%`; nothing where it is not known."""
    return f"{share:.0%}" if share is not None else ""


def _head(context: Context) -> list[Span]:
    who = f"agent {context.agent}" if context.agent else "main agent"
    hit = f", {percent(context.hit_share)} of all sent tokens from the cache" if context.hit_share is not None else ""
    again = sum(one.rewritten for one in context.breaks)
    broke = f", {count(len(context.breaks), 'cache break')}" if context.breaks else ", no cache breaks"
    cost = f" ({tokens(again)} tokens again)" if again else ""
    return [
        Span(who[:1].upper() + who[1:], Role.TITLE),
        Span(f"  {count(len(context.windows), 'request')}{hit}{broke}{cost}"),
    ]


def _turns(turns: Sequence[TurnContext], width: int) -> Iterator[list[Span]]:
    wide = width >= _ROOMY
    room = _WIDE_BAR if wide else _BAR
    days = {one.started.date() for one in turns if one.started is not None}
    clock = "%H:%M" if len(days) == 1 else "%m-%d %H:%M"
    times = [one.started.strftime(clock) if one.started is not None else "" for one in turns]
    at = max([len("time (UTC)"), *map(len, times)])
    yield [
        Span(
            f"turn  {'time (UTC)':<{at}}  requests  window  {'':{room}}  full  {'growth  ' if wide else ''}"
            f"cached  {'again  ' if wide else ''}cache breaks",
            Role.FAINT,
        )
    ]
    for one, when in zip(turns, times, strict=True):
        full = (
            Role.BAD if (one.share or 0) >= _FULL else Role.NOTICE if (one.share or 0) >= _GETTING_FULL else Role.GOOD
        )
        cached = Role.NOTICE if one.hit_share is not None and one.hit_share < _POOR else Role.BODY
        grown = f"{('+' if (one.growth or 0) > 0 else '') + tokens(one.growth):>6}  " if wide else ""
        again = f"{tokens(one.rewritten) if one.rewritten else '':>5}  " if wide else ""
        yield [
            Span(f"{one.number:>4}  {when:<{at}}  {one.requests:>8}  {tokens(one.window):>6}  "),
            Span(bar(one.share, room), full),
            Span(f"  {percent(one.share):>4}  {grown}"),
            Span(f"{percent(one.hit_share):>6}", cached),
            Span(f"  {again}"),
            *_causes(one, wide=wide),
        ]


def _causes(turn: TurnContext, *, wide: bool) -> Iterator[Span]:
    """Why the cache broke in a turn; on a narrow page with what it cost, which has no column there."""
    told = Counter(_cause(one) for one in turn.breaks)
    said = ", ".join(f"{number} × {cause}" if number > 1 else cause for cause, number in told.items())  # noqa: RUF001
    if said:
        yield Span(said, Role.NOTICE)
        if not wide:
            yield Span(f" ({tokens(turn.rewritten)})", Role.FAINT)
    elif turn.compactions:
        yield Span("(compaction)", Role.FAINT)


def _cause(one: CacheBreak) -> str:
    return f"idle {span_of_time(one.gap)}" if one.cause is BreakCause.IDLE else CAUSES[one.cause]


def _break(one: CacheBreak, width: int) -> Iterator[Spans]:
    turn = (Span(f"{one.turn:>4}  ", Role.FAINT),)
    said = f", {tokens(one.rewritten)} again: {one.evidence}."
    line = (Span(f"line {one.place.line} "), Span(CAUSES[one.cause], Role.NOTICE), Span(said))
    return wrap(line, width, first=turn, rest=(Span(" " * 6),))


def _title(context: Context) -> list[Span]:
    limit = context.limit
    full = f"{tokens(context.window)} of {tokens(limit.tokens)} ({percent(context.share)})" if limit is not None else ""
    kind = "" if context.measured else ", by estimate: no usage tells the size"
    model = f"  {model_name(context.model)}" if context.model else ""
    at = f", line {context.place.line}" if context.place is not None else ""
    return [Span("In the window", Role.TITLE), Span(f"  {full}{kind}{model}{at}")]


def label(one: Filling) -> str:
    """What a part of the window is, in words."""
    words = NAMES[one.category]
    if "{}" in words:
        return words.format(one_line(one.name or "unknown", 60))
    return f"{words}: {one_line(one.name, 60)}" if one.name else words


def _filling(context: Context, width: int, *, everything: bool) -> Iterator[list[Span]]:
    shown = list(context.filling if everything else _worth(context.filling, context.window))
    labels = [label(one) for one in shown]
    rest = context.filling[len(shown) :]
    if rest:
        labels.append(f"{len(rest)} smaller")
    room = _WIDE_BAR if width >= _ROOMY else _BAR
    widest = min(max(map(columns, labels)), max(23, width - room - _BESIDE))
    parts = [(one.tokens, one.measured) for one in shown]
    if rest:
        parts.append((sum(one.tokens for one in rest), sum(one.measured for one in rest)))
    for name, (size, measured) in zip(labels, parts, strict=True):
        share = size / context.window if context.window else 0.0
        padded = cut((Span(name),), widest)[0].text
        yield [
            Span(f"{padded}{' ' * (widest - columns(padded))}  {size:>9,}  {percent(share):>4}  "),
            Span(bar(share, room), Role.AGENT),
            Span(f"  {_how(size, measured)}", Role.FAINT),
        ]


def _worth(filling: Sequence[Filling], window: int) -> Iterator[Filling]:
    """The parts that are worth a line: the few largest, and all from half a percent on."""
    for at, one in enumerate(filling):
        if at < _FEWEST or one.tokens * 200 >= window:
            yield one


def _how(size: int, measured: int) -> str:
    if measured == size:
        return "measured"
    return f"{measured / size:.0%} measured" if measured * 100 >= size else "estimate"
