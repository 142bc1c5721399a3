"""`threadline prices`: what tokens cost, and the source of each price."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import EXIT_OK
from threadline.cli.options import output_options
from threadline.model.charges import describe_period, format_decimal
from threadline.model.text import count
from threadline.render import Role, Span, Spans, Style, clip, cut_line, display_width, plain, wrap

if TYPE_CHECKING:
    from decimal import Decimal

    from threadline.account import FastMode, PriceSource, RateRow, Rates

_EPILOG = """
\b
Examples:
  threadline prices                             all models
  threadline prices --model opus                some of them, with notes
  threadline prices --on 2026-03-01             what held on that day
  threadline prices --prices my-prices.json     with models of your own
  threadline prices --import litellm.json --out my-prices.json
  threadline prices --json                      exact, for a program
"""


@click.command(epilog=_EPILOG)
@click.option("--model", metavar="TEXT", help="Only models whose id, alias or other spelling holds or is this.")
@click.option("--on", metavar="DATE", help="Only what holds on that day, in UTC: 2026-11-03, today.")
@click.option(
    "--prices",
    "files",
    multiple=True,
    metavar="FILE",
    help="A price file, ours or LiteLLM's, whose models are added or replace; may be given several times.",
)
@click.option("--import", "imported", metavar="FILE", help="Turn LiteLLM's price file into one of ours, and print it.")
@click.option("--out", metavar="FILE", help="With --import: write it there instead.")
@click.option("--force", is_flag=True, help="With --out: also where there is such a file already.")
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
@output_options
def prices(
    *,
    model: str | None,
    on: str | None,
    files: tuple[str, ...],
    imported: str | None,
    out: str | None,
    force: bool,
    no_color: bool,
    output: str,
) -> int:
    """List what a million tokens cost in USD, by model and period, and where each price is from.

    A prompt above the threshold of a `prompt >` row is charged by that row whole, output included. The digest names
    these prices: reports made with the same ones have the same.
    """
    from threadline.account import load_rates
    from threadline.model.times import parse_moment

    if imported is not None:
        if model is not None or on is not None or files or output not in {"table", "json"}:
            raise click.UsageError("--import goes with --out and --force alone.")
        return _import_litellm(imported, out, force=force)
    if out is not None or force:
        raise click.UsageError("--out and --force go with --import.")
    day = parse_moment(on).date().isoformat() if on is not None else None
    table = load_rates(*files)
    rows = [row for row in table.rows() if _matches_model(row, table, model)]
    if day is not None:
        rows = [_rates_on(row, day) for row in rows if _is_valid_on(row, day)]
    _print_rates(rows, table, output, noted=model is not None, coloured=not no_color)
    if rows:
        return EXIT_OK
    return _report_no_price(table, model, day)


def _matches_model(row: RateRow, table: Rates, text: str | None) -> bool:
    if text is None:
        return True
    wanted = text.lower()
    return any(wanted in name for name in (row.model, *row.aliases)) or table.model(text) == row.model


def _rates_on(row: RateRow, day: str) -> RateRow:
    from msgspec.structs import replace

    return replace(row, fast=tuple(one for one in row.fast if _is_valid_on(one, day)))


def _is_valid_on(dated: RateRow | FastMode, day: str) -> bool:
    return (dated.begins is None or dated.begins <= day) and (dated.ends is None or day < dated.ends)


def _print_rates(rows: list[RateRow], table: Rates, output: str, *, noted: bool, coloured: bool) -> None:
    from threadline.cli import output as out
    from threadline.cli import screen

    if output == "table":
        use = screen.use_colour(wanted=coloured)
        for line in price_page(rows, table, width=out.terminal_width(), coloured=use, noted=noted) if rows else ():
            click.echo(line, color=use)
    elif output == "json":
        out.print_json(
            {
                "rows": [_rate_record(row) for row in rows],
                "digest": table.digest,
                "files": [{"name": name, "digest": digest} for name, digest in table.digests],
                "web_search_fee": str(table.web_search_fee),
                "notes": table.notes,
            }
        )
    else:
        out.print_rows(map(_rate_record, rows), output)


def _rate_record(row: RateRow) -> dict[str, Any]:
    """A row for programs: prices are strings, so that no reader makes them floats, and have no exponent."""
    from decimal import Decimal

    from threadline.cli import output as out
    from threadline.model.charges import format_decimal

    given = {word: getattr(row, word) for word in row.__struct_fields__}
    told = {word: format_decimal(one) if isinstance(one, Decimal) else one for word, one in given.items()}
    fast = [
        {"multiplier": format_decimal(one.multiplier), "begins": one.begins, "ends": one.ends, "note": one.note}
        for one in row.fast
    ]
    plain: dict[str, Any] = out.to_json_value({**told, "fast": fast})
    return plain


def _report_no_price(table: Rates, model: str | None, day: str | None) -> int:
    from threadline.cli import screen
    from threadline.model.text import join_some

    known = join_some(dict.fromkeys(row.model for row in table.rows()))
    asked = [f"--model {model!r}"] if model is not None else []
    asked += [f"--on {day}"] if day is not None else []
    return screen.report_nothing(f"No price fits {' and '.join(asked)}; models are {known}. See --prices for more.")


def _import_litellm(path: str, target: str | None, *, force: bool) -> int:
    from threadline.account import encode_price_file, read_price_source
    from threadline.cli import output as out

    source = read_price_source(path)
    data = encode_price_file(source.prices, f"imported from {Path(path).name}, SHA-256 {source.digest}")
    if target is None:
        click.echo(data, nl=False)
    else:
        _write_prices(Path(target), data, force=force)
    for note in source.prices.notes:
        click.echo(f"threadline: {out.plain(note)}", err=True)
    if target is not None:
        click.echo(_import_summary(source, target))
    return EXIT_OK


def _write_prices(target: Path, data: bytes, *, force: bool) -> None:
    from threadline.errors import BadQuery

    try:
        with target.open("wb" if force else "xb") as opened:
            opened.write(data)
    except FileExistsError:
        raise BadQuery(f"{str(target)!r} is there already; give another name, or --force to replace it.") from None


def _import_summary(source: PriceSource, target: str) -> str:
    from shlex import quote

    from threadline.cli import output as out

    count = out.counted(len(source.prices.models), "model")
    return f"Wrote the prices of {count} to {out.plain(target)}; use them with --prices {out.plain(quote(target))}."


_HEADINGS = ("model", "input", "output", "5m", "1h", "read", "period", "fast", "source")
_NUMBER_COLUMNS = range(1, 6)
_FAINT_COLUMNS = range(_HEADINGS.index("period"), len(_HEADINGS))
_MIN_MODEL = 18
_GAP = "  "
_Cells = list[tuple[str, ...]]


def price_page(
    rows: Sequence[RateRow], table: Rates, *, width: int, coloured: bool, noted: bool = False
) -> Iterator[str]:
    """The rows in columns, what the columns mean, notes where they are wanted, and the digest."""
    style = Style(colour=coloured)
    lines = [*_table_lines(rows, width), (), *_legend(rows, table, width)]
    if noted:
        lines += [(), *_model_notes(rows, width)]
    lines += [(), *_digest_lines(table, width)]
    return map(style.line, lines)


def _table_lines(rows: Sequence[RateRow], width: int) -> Iterator[Spans]:
    """A line a row; on a narrow page without the days of fast mode, or without the source as well."""
    for dated, sourced in ((True, True), (False, True), (False, False)):
        cells = _rate_cells(rows, dated=dated, sourced=sourced)
        sizes = [max(display_width(line[at]) for line in cells) for at in range(len(cells[0]))]
        wide = sum(sizes) + len(_GAP) * len(sizes)
        if wide <= width:
            break
    sizes[0] = max(_MIN_MODEL, sizes[0] - max(0, wide - width))
    for at, line in enumerate(cells):
        heads = not at or rows[at - 1].long_context is not None
        yield cut_line(
            _row_spans(line, sizes, Role.FAINT if heads else Role.TITLE, Role.BODY if at else Role.FAINT), width
        )


def _rate_cells(rows: Sequence[RateRow], *, dated: bool, sourced: bool) -> _Cells:
    prices = [(row.input, row.output, row.cache_write_5m, row.cache_write_1h, row.cache_read) for row in rows]
    aligned = zip(*map(_align_decimals, zip(*prices, strict=True)), strict=True)
    lines: _Cells = [_HEADINGS if sourced else _HEADINGS[:-1]]
    before: RateRow | None = None
    for row, figures in zip(rows, aligned, strict=True):
        again = before is not None and before.model == row.model
        same = again and before is not None and (before.begins, before.ends) == (row.begins, row.ends)
        fast = "" if again else ", ".join(_fast_label(one, dated=dated) for one in row.fast)
        told = ("" if same else describe_period(row.begins, row.ends), fast, "" if again else plain(_source_label(row)))
        lines.append((_model_label(row, again=again), *figures, *(told if sourced else told[:-1])))
        before = row
    return lines


def _model_label(row: RateRow, *, again: bool) -> str:
    if row.long_context is not None:
        return f"  prompt > {row.long_context:,}"
    return "" if again else plain(row.model)


def _align_decimals(numbers: Sequence[Decimal]) -> list[str]:
    """Numbers with their points below one another."""
    parts = [format_decimal(number).partition(".") for number in numbers]
    most = max(len(point + after) for _, point, after in parts)
    return [whole + (point + after).ljust(most) for whole, point, after in parts]


def _fast_label(fast: FastMode, *, dated: bool) -> str:
    times = f"×{format_decimal(fast.multiplier)}"  # noqa: RUF001 - the sign for times
    return " ".join(filter(None, (times, describe_period(fast.begins, fast.ends) if dated else "")))


def _source_label(row: RateRow) -> str:
    return ", ".join(filter(None, (row.source, row.confidence))) or row.file


def _row_spans(cells: Sequence[str], sizes: list[int], first: Role, rest: Role) -> Spans:
    spans = []
    for at, (cell, size) in enumerate(zip(cells, sizes, strict=True)):
        shown = clip(cell, size)
        space = " " * (size - display_width(shown))
        role = first if at == 0 else Role.FAINT if at in _FAINT_COLUMNS else rest
        spans.append(Span(_GAP + (space + shown if at in _NUMBER_COLUMNS else shown + space), role))
    spans[-1] = Span(spans[-1].text.rstrip(), spans[-1].role)
    return tuple(spans)


def _legend(rows: Sequence[RateRow], table: Rates, width: int) -> Iterator[Spans]:
    models = count(len({row.model for row in rows}), "model")
    columns_mean = "5m and 1h are cache writes by lifetime, read is cache reads"
    yield from _wrapped_note(f"{models}; USD per million tokens. {columns_mean}.", width)
    yield from _wrapped_note(_surcharges(rows, table), width)


def _surcharges(rows: Sequence[RateRow], table: Rates) -> str:
    def those(by: set[Decimal]) -> str:
        return " or ".join(f"×{format_decimal(decimal)}" for decimal in sorted(by))  # noqa: RUF001 - the sign for times

    us, regional = ({one for row in rows if (one := getattr(row, word)) is not None} for word in ("us", "regional"))
    told = [f"A web search costs {format_decimal(table.web_search_fee)} USD"]
    if us:
        told.append(f"inference in the US {those(us)} where the model has it")
    if regional:
        told.append(f"a cloud's regional id {those(regional)} from Sonnet 4.5 on")
    return "; ".join(told) + "."


def _model_notes(rows: Sequence[RateRow], width: int) -> Iterator[Spans]:
    for model, some in groupby(rows, key=lambda row: row.model):
        row = next(some)
        told = [f"{_source_label(row)}."]
        told += [f"Also {', '.join(row.aliases)}."] if row.aliases else []
        told += [f"{row.note[:1].upper()}{row.note[1:]}."] if row.note else []
        told += [f"Fast mode {_fast_label(one, dated=True)}{f': {one.note}' if one.note else ''}." for one in row.fast]
        name = Span(f"{_GAP}{model}  ", Role.TITLE)
        yield from wrap((Span(" ".join(told)),), width, first=(name,), rest=(Span(_GAP * 2),))


def _digest_lines(table: Rates, width: int) -> Iterator[Spans]:
    files = table.digests
    if len(files) > 1:
        for name, digest in files:
            yield cut_line((Span(f"{_GAP}{digest[:16]}  {name}", Role.FAINT),), width)
    yield (Span(f"{_GAP}digest "), Span(table.digest, Role.CODE))
    if table.notes:
        notes = count(len(table.notes), "note")
        yield from _wrapped_note(
            f"{notes} on what was put right or left out: see --json, or --import.", width, Role.NOTICE
        )


def _wrapped_note(text: str, width: int, role: Role = Role.FAINT) -> Iterator[Spans]:
    return wrap((Span(text, role),), width, first=(Span(_GAP),), rest=(Span(_GAP),))
