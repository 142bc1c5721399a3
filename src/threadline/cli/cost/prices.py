"""`threadline prices`: what tokens cost, and the source of each price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from shlex import quote
from typing import Any

import click
from msgspec.structs import asdict, replace

from threadline import files
from threadline.account import (
    FastMode,
    PriceSource,
    RateRow,
    Rates,
    encode_price_file,
    load_rates,
    read_price_source,
)
from threadline.cli import EXIT_OK
from threadline.cli import output as out
from threadline.cli.options import colour_option, complete_with, output_options, prices_option
from threadline.errors import BadQuery
from threadline.model.ledger import describe_period
from threadline.model.text import count, format_amount, format_decimal, join_some, plain_decimal
from threadline.model.times import parse_moment
from threadline.render import Role, Span, Spans, Style, cut_line, display_width, dropped_note, fit_columns, plain, wrap

_EPILOG = """
\b
Examples:
  threadline prices                             all models
  threadline prices --model opus                some models, with notes
  threadline prices --on 2026-03-01             prices valid on that day
  threadline prices --prices my-prices.json     with your own models
  threadline prices --import litellm.json --out my-prices.json
  threadline prices --json                      exact, for a program
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--model",
    metavar="TEXT",
    shell_complete=complete_with("models"),
    help="Only models whose id or alias contains TEXT.",
)
@click.option("--on", metavar="DATE", help="Only prices valid on that UTC day: 2026-11-03, today.")
@prices_option
@click.option("--import", "imported", metavar="FILE", help="Convert LiteLLM's price file to threadline's format.")
@click.option("--out", "target", metavar="FILE", help="With --import: write to FILE instead of standard output.")
@click.option("--force", is_flag=True, help="With --out: overwrite an existing file.")
@colour_option
@output_options
def prices(
    *,
    model: str | None,
    on: str | None,
    price_files: tuple[str, ...],
    imported: str | None,
    target: str | None,
    force: bool,
    colour: bool,
    output: str,
) -> int:
    """List model prices and their sources.

    Prices are in USD per million tokens, by model and period. If a prompt exceeds the threshold of a `prompt >` row,
    that row's prices apply to the whole message, including output. The digest identifies the set of prices: reports
    made with the same prices show the same digest.
    """
    if imported is not None:
        if model is not None or on is not None or price_files or output not in {"table", "json"}:
            raise click.UsageError("--import can only be combined with --out and --force.")
        return _import_litellm(imported, target, force=force)
    if target is not None or force:
        raise click.UsageError("--out and --force require --import.")
    day = parse_moment(on, tz=UTC).date().isoformat() if on is not None else None
    rates = load_rates(*price_files)
    rows = [row for row in rates.rows() if _matches_model(row, rates, model)]
    if day is not None:
        rows = [_rates_on(row, day) for row in rows if _is_valid_on(row, day)]
    _print_rates(rows, rates, output, notes=model is not None, colour=colour)
    if rows:
        return EXIT_OK
    models = list(dict.fromkeys(row.model for row in rates.rows()))
    hint = f"Models: {join_some(models)}. Use --prices to add more."
    return out.report_nothing(out.no_match_message("model", len(models), {"model": model, "on": day}, hint))


def _matches_model(row: RateRow, rates: Rates, text: str | None) -> bool:
    if text is None:
        return True
    return any(text.lower() in name for name in (row.model, *row.aliases)) or rates.model(text) == row.model


def _rates_on(row: RateRow, day: str) -> RateRow:
    return replace(row, fast=tuple(fast for fast in row.fast if _is_valid_on(fast, day)))


def _is_valid_on(dated: RateRow | FastMode, day: str) -> bool:
    return (dated.begins is None or dated.begins <= day) and (dated.ends is None or day < dated.ends)


def _print_rates(rows: list[RateRow], rates: Rates, output: str, *, notes: bool, colour: bool) -> None:
    if output == "table":
        colour = out.use_colour(enabled=colour)
        for line in price_page(rows, rates, width=out.terminal_width(), colour=colour, notes=notes) if rows else ():
            click.echo(line, color=colour)
    elif output == "json":
        out.print_json(
            {
                "rows": [_rate_record(row) for row in rows],
                "digest": rates.digest,
                "files": [{"name": name, "digest": digest} for name, digest in rates.digests],
                "web_search_fee": plain_decimal(rates.web_search_fee),
                "notes": rates.notes,
            }
        )
    else:
        out.print_rows(map(_rate_record, rows), output)


def _rate_record(row: RateRow) -> dict[str, Any]:
    return out.json_record({**asdict(row), "fast": [out.json_record(asdict(fast)) for fast in row.fast]})


def _import_litellm(path: str, target: str | None, *, force: bool) -> int:
    source = read_price_source(path)
    data = encode_price_file(source.prices, f"imported from {Path(path).name}, SHA-256 {source.digest}")
    if target is None:
        click.echo(data, nl=False)
    else:
        _write_prices(Path(target), data, force=force)
    for note in source.prices.notes:
        out.print_message(note)
    if target is not None:
        click.echo(_import_summary(source, target))
    return EXIT_OK


def _write_prices(target: Path, data: bytes, *, force: bool) -> None:
    try:
        files.write_output(target, data, overwrite=force)
    except FileExistsError:
        raise BadQuery(f"{str(target)!r} already exists. Choose another name, or use --force.") from None
    except OSError as error:
        raise BadQuery(f"{str(target)!r} cannot be written: {error.strerror or error}.") from None


def _import_summary(source: PriceSource, target: str) -> str:
    models = count(len(source.prices.models), "model")
    return f"Wrote prices of {models} to {plain(target)}. To use them: --prices {plain(quote(target))}"


_HEADINGS = ("model", "input", "output", "5m", "1h", "read", "period", "fast", "source")
_NUMBER_COLUMNS = ("input", "output", "5m", "1h", "read")
_FAINT_COLUMNS = ("period", "fast", "source")
_DROPPED_FIRST = ("source", "fast", "1h", "5m")
_MIN_MODEL = 18

_Cells = list[tuple[str, ...]]


def price_page(
    rows: Sequence[RateRow], rates: Rates, *, width: int, colour: bool, notes: bool = False
) -> Iterator[str]:
    """The table, its legend, optionally notes on each model, and the digest."""
    style = Style(colour=colour)
    lines = [*_table_lines(rows, width), (), *_legend(rows, rates, width)]
    if notes:
        lines += [(), *_model_notes(rows, width)]
    lines += [(), *_digest_lines(rates, width)]
    return map(style.line, lines)


def _table_lines(rows: Sequence[RateRow], width: int) -> Iterator[Spans]:
    """One line per row. A narrow page omits the dates of fast mode, then columns, and says which."""
    for dated in (True, False):
        cells = _rate_cells(rows, dated=dated)
        widths = {name: max(display_width(line[at]) for line in cells) for at, name in enumerate(_HEADINGS)}
        if sum(widths.values()) + len(out.GAP) * len(widths) <= width:
            break
    least = {**widths, "model": min(_MIN_MODEL, widths["model"])}
    fitting = fit_columns(least, _DROPPED_FIRST, width, gap=len(out.GAP))
    spare = width - sum(widths[name] for name in fitting) - len(out.GAP) * len(fitting)
    widths["model"] = max(least["model"], widths["model"] + min(0, spare))
    for at, line in enumerate(cells):
        is_secondary = not at or rows[at - 1].long_context is not None
        first = Role.FAINT if is_secondary else Role.TITLE
        row = {name: cell for name, cell in zip(_HEADINGS, line, strict=True) if name in fitting}
        yield cut_line(_row_spans(row, widths, first, Role.BODY if at else Role.FAINT), width)
    if dropped := [name for name in _HEADINGS if name not in fitting]:
        yield ()
        yield from out.wrap_note(dropped_note(dropped), width)


def _rate_cells(rows: Sequence[RateRow], *, dated: bool) -> _Cells:
    prices = [(row.input, row.output, row.cache_write_5m, row.cache_write_1h, row.cache_read) for row in rows]
    aligned = zip(*map(_align_decimals, zip(*prices, strict=True)), strict=True)
    lines: _Cells = [_HEADINGS]
    previous: RateRow | None = None
    for row, figures in zip(rows, aligned, strict=True):
        is_repeat = previous is not None and previous.model == row.model
        same_period = is_repeat and previous is not None and (previous.begins, previous.ends) == (row.begins, row.ends)
        details = (
            "" if same_period else describe_period(row.begins, row.ends),
            "" if is_repeat else ", ".join(_fast_label(fast, dated=dated) for fast in row.fast),
            "" if is_repeat else plain(_source_label(row)),
        )
        lines.append((_model_label(row, is_repeat=is_repeat), *figures, *details))
        previous = row
    return lines


def _model_label(row: RateRow, *, is_repeat: bool) -> str:
    if row.long_context is not None:
        return f"  prompt > {row.long_context:,}"
    return "" if is_repeat else plain(row.model)


def _align_decimals(numbers: Sequence[Decimal]) -> list[str]:
    """Numbers with their decimal points aligned."""
    parts = [format_decimal(number).partition(".") for number in numbers]
    most = max(len(point + after) for _, point, after in parts)
    return [whole + (point + after).ljust(most) for whole, point, after in parts]


def _fast_label(fast: FastMode, *, dated: bool) -> str:
    times = f"×{format_decimal(fast.multiplier)}"  # noqa: RUF001 - the multiplication sign
    return " ".join(filter(None, (times, describe_period(fast.begins, fast.ends) if dated else "")))


def _source_label(row: RateRow) -> str:
    return ", ".join(filter(None, (row.source, row.confidence))) or row.file


def _row_spans(row: Mapping[str, str], widths: Mapping[str, int], first: Role, rest: Role) -> Spans:
    numbers = [at for at, name in enumerate(row) if name in _NUMBER_COLUMNS]
    cells = out.pad_cells(list(row.values()), [widths[name] for name in row], numbers)
    spans = [
        Span(cell, first if name == "model" else Role.FAINT if name in _FAINT_COLUMNS else rest)
        for name, cell in zip(row, cells, strict=True)
    ]
    spans[-1] = Span(spans[-1].text.rstrip(), spans[-1].role)
    return tuple(spans)


def _legend(rows: Sequence[RateRow], rates: Rates, width: int) -> Iterator[Spans]:
    models = count(len({row.model for row in rows}), "model")
    columns = "5m and 1h are cache writes by lifetime; read is cache reads"
    yield from out.wrap_note(f"{models}. USD per million tokens. {columns}.", width)
    yield from out.wrap_note(_surcharges(rows, rates), width)


def _surcharges(rows: Sequence[RateRow], rates: Rates) -> str:
    def format_factors(name: str) -> str:
        factors = {factor for row in rows if (factor := getattr(row, name)) is not None}
        return " or ".join(f"×{format_decimal(factor)}" for factor in sorted(factors))  # noqa: RUF001 - as above

    parts = [f"A web search costs {format_amount(rates.web_search_fee)}"]
    if us := format_factors("us"):
        parts.append(f"inference in the US costs {us} if the model offers it")
    if regional := format_factors("regional"):
        parts.append(f"regional cloud ids cost {regional} from Sonnet 4.5 on")
    return "; ".join(parts) + "."


def _model_notes(rows: Sequence[RateRow], width: int) -> Iterator[Spans]:
    for model, rows_of_model in groupby(rows, key=lambda row: row.model):
        row = next(rows_of_model)
        notes = [f"{_source_label(row)}."]
        notes += [f"Also {', '.join(row.aliases)}."] if row.aliases else []
        notes += [f"{row.note[:1].upper()}{row.note[1:]}."] if row.note else []
        for fast in row.fast:
            notes.append(f"Fast mode {_fast_label(fast, dated=True)}{f': {fast.note}' if fast.note else ''}.")
        name = Span(f"{out.GAP}{model}  ", Role.TITLE)
        yield from wrap((Span(" ".join(notes)),), width, first=(name,), rest=(Span(out.GAP * 2),))


def _digest_lines(rates: Rates, width: int) -> Iterator[Spans]:
    files = rates.digests
    if len(files) > 1:
        for name, digest in files:
            yield cut_line((Span(f"{out.GAP}{digest[:16]}  {name}", Role.FAINT),), width)
    indent = Span(out.GAP)
    yield from wrap((Span("digest "), Span(rates.digest, Role.CODE)), width, first=(indent,), rest=(indent,))
    if rates.notes:
        notes = count(len(rates.notes), "note")
        yield from out.wrap_note(f"{notes} on corrected or skipped prices: see --json or --import.", width, Role.NOTICE)
