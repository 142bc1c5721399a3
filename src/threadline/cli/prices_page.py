"""The table of prices, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from threadline.model.rate import period, plain_number
from threadline.render.figures import count
from threadline.render.layout import cut, wrap
from threadline.render.style import Role, Span, Spans, Style
from threadline.render.terminal_text import clip, columns, plain

if TYPE_CHECKING:
    from decimal import Decimal

    from threadline.account.price_file import Fast
    from threadline.account.rates import RateRow, Rates

_HEADINGS = ("model", "input", "output", "5m", "1h", "read", "period", "fast", "source")
_NUMBERS = range(1, 6)
_FAINT = range(_HEADINGS.index("period"), len(_HEADINGS))
_LEAST_MODEL = 18
_GAP = "  "
Cells = list[tuple[str, ...]]


def page(rows: Sequence[RateRow], table: Rates, *, width: int, coloured: bool, noted: bool = False) -> Iterator[str]:
    """The rows in columns, what the columns mean, notes where they are wanted, and the digest."""
    style = Style(colour=coloured)
    lines = [*_columns(rows, width), (), *_meaning(rows, table, width)]
    if noted:
        lines += [(), *_notes(rows, width)]
    lines += [(), *_digests(table, width)]
    return map(style.line, lines)


def _columns(rows: Sequence[RateRow], width: int) -> Iterator[Spans]:
    """A line a row; on a narrow page without the days of fast mode, or without the source as well."""
    for dated, sourced in ((True, True), (False, True), (False, False)):
        cells = _cells(rows, dated=dated, sourced=sourced)
        sizes = [max(columns(line[at]) for line in cells) for at in range(len(cells[0]))]
        wide = sum(sizes) + len(_GAP) * len(sizes)
        if wide <= width:
            break
    sizes[0] = max(_LEAST_MODEL, sizes[0] - max(0, wide - width))
    for at, line in enumerate(cells):
        heads = not at or rows[at - 1].long_context is not None
        yield cut(_line(line, sizes, Role.FAINT if heads else Role.TITLE, Role.BODY if at else Role.FAINT), width)


def _cells(rows: Sequence[RateRow], *, dated: bool, sourced: bool) -> Cells:
    prices = [(row.input, row.output, row.cache_write_5m, row.cache_write_1h, row.cache_read) for row in rows]
    aligned = zip(*map(_aligned, zip(*prices, strict=True)), strict=True)
    lines: Cells = [_HEADINGS if sourced else _HEADINGS[:-1]]
    before: RateRow | None = None
    for row, figures in zip(rows, aligned, strict=True):
        again = before is not None and before.model == row.model
        same = again and before is not None and (before.begins, before.ends) == (row.begins, row.ends)
        fast = "" if again else ", ".join(_fast(one, dated=dated) for one in row.fast)
        told = ("" if same else period(row.begins, row.ends), fast, "" if again else plain(_source(row)))
        lines.append((_name(row, again=again), *figures, *(told if sourced else told[:-1])))
        before = row
    return lines


def _name(row: RateRow, *, again: bool) -> str:
    if row.long_context is not None:
        return f"  prompt > {row.long_context:,}"
    return "" if again else plain(row.model)


def _aligned(numbers: Sequence[Decimal]) -> list[str]:
    """Numbers with their points below one another."""
    parts = [plain_number(number).partition(".") for number in numbers]
    most = max(len(point + after) for _, point, after in parts)
    return [whole + (point + after).ljust(most) for whole, point, after in parts]


def _fast(fast: Fast, *, dated: bool) -> str:
    times = f"×{plain_number(fast.multiplier)}"  # noqa: RUF001 - the sign for times
    return " ".join(filter(None, (times, period(fast.begins, fast.ends) if dated else "")))


def _source(row: RateRow) -> str:
    return ", ".join(filter(None, (row.source, row.confidence))) or row.file


def _line(cells: Sequence[str], sizes: list[int], first: Role, rest: Role) -> Spans:
    spans = []
    for at, (cell, size) in enumerate(zip(cells, sizes, strict=True)):
        shown = clip(cell, size)
        space = " " * (size - columns(shown))
        role = first if at == 0 else Role.FAINT if at in _FAINT else rest
        spans.append(Span(_GAP + (space + shown if at in _NUMBERS else shown + space), role))
    spans[-1] = Span(spans[-1].text.rstrip(), spans[-1].role)
    return tuple(spans)


def _meaning(rows: Sequence[RateRow], table: Rates, width: int) -> Iterator[Spans]:
    models = count(len({row.model for row in rows}), "model")
    columns_mean = "5m and 1h are cache writes by lifetime, read is cache reads"
    yield from _told(f"{models}; USD per million tokens. {columns_mean}.", width)
    yield from _told(_surcharges(rows, table), width)


def _surcharges(rows: Sequence[RateRow], table: Rates) -> str:
    def those(by: set[Decimal]) -> str:
        return " or ".join(f"×{plain_number(one)}" for one in sorted(by))  # noqa: RUF001 - the sign for times

    us, regional = ({one for row in rows if (one := getattr(row, word)) is not None} for word in ("us", "regional"))
    told = [f"A web search costs {plain_number(table.web_search_fee)} USD"]
    if us:
        told.append(f"inference in the US {those(us)} where the model has it")
    if regional:
        told.append(f"a cloud's regional id {those(regional)} from Sonnet 4.5 on")
    return "; ".join(told) + "."


def _notes(rows: Sequence[RateRow], width: int) -> Iterator[Spans]:
    for model, some in groupby(rows, key=lambda row: row.model):
        row = next(some)
        told = [f"{_source(row)}."]
        told += [f"Also {', '.join(row.aliases)}."] if row.aliases else []
        told += [f"{row.note[:1].upper()}{row.note[1:]}."] if row.note else []
        told += [f"Fast mode {_fast(one, dated=True)}{f': {one.note}' if one.note else ''}." for one in row.fast]
        name = Span(f"{_GAP}{model}  ", Role.TITLE)
        yield from wrap((Span(" ".join(told)),), width, first=(name,), rest=(Span(_GAP * 2),))


def _digests(table: Rates, width: int) -> Iterator[Spans]:
    files = table.digests
    if len(files) > 1:
        for name, digest in files:
            yield cut((Span(f"{_GAP}{digest[:16]}  {name}", Role.FAINT),), width)
    yield (Span(f"{_GAP}digest "), Span(table.digest, Role.CODE))
    if table.notes:
        notes = count(len(table.notes), "note")
        yield from _told(f"{notes} on what was put right or left out: see --json, or --import.", width, Role.NOTICE)


def _told(text: str, width: int, role: Role = Role.FAINT) -> Iterator[Spans]:
    return wrap((Span(text, role),), width, first=(Span(_GAP),), rest=(Span(_GAP),))
