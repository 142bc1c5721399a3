"""`threadline prices`: what tokens cost, and where that is known from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from threadline.cli import FOUND
from threadline.cli.options import output_options

if TYPE_CHECKING:
    from threadline.account.price_file import Fast
    from threadline.account.price_source import PriceSource
    from threadline.account.rates import RateRow, Rates

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
    from threadline.account.rates import rates
    from threadline.cli.when import moment

    if imported is not None:
        if model is not None or on is not None or files or output not in {"table", "json"}:
            raise click.UsageError("--import goes with --out and --force alone.")
        return _import(imported, out, force=force)
    if out is not None or force:
        raise click.UsageError("--out and --force go with --import.")
    day = moment(on).date().isoformat() if on is not None else None
    table = rates(*files)
    rows = [row for row in table.rows() if _fits(row, table, model)]
    if day is not None:
        rows = [_on(row, day) for row in rows if _holds(row, day)]
    _print(rows, table, output, noted=model is not None, coloured=not no_color)
    if rows:
        return FOUND
    return _nothing(table, model, day)


def _fits(row: RateRow, table: Rates, text: str | None) -> bool:
    if text is None:
        return True
    wanted = text.lower()
    return any(wanted in name for name in (row.model, *row.aliases)) or table.model(text) == row.model


def _on(row: RateRow, day: str) -> RateRow:
    from msgspec.structs import replace

    return replace(row, fast=tuple(one for one in row.fast if _holds(one, day)))


def _holds(dated: RateRow | Fast, day: str) -> bool:
    return (dated.begins is None or dated.begins <= day) and (dated.ends is None or day < dated.ends)


def _print(rows: list[RateRow], table: Rates, output: str, *, noted: bool, coloured: bool) -> None:
    from threadline.cli import output as out
    from threadline.cli import screen

    if output == "table":
        from threadline.cli.prices_page import page

        use = screen.colour(wanted=coloured)
        for line in page(rows, table, width=out.terminal_width(), coloured=use, noted=noted) if rows else ():
            click.echo(line, color=use)
    elif output == "json":
        out.print_json(
            {
                "rows": [_plain(row) for row in rows],
                "digest": table.digest,
                "files": [{"name": name, "digest": digest} for name, digest in table.digests],
                "web_search_fee": str(table.web_search_fee),
                "notes": table.notes,
            }
        )
    else:
        out.print_rows(map(_plain, rows), output)


def _plain(row: RateRow) -> dict[str, Any]:
    """A row for programs: prices are strings, so that no reader makes them floats, and have no exponent."""
    from decimal import Decimal

    from threadline.cli import output as out
    from threadline.model.rate import plain_number

    given = {word: getattr(row, word) for word in row.__struct_fields__}
    told = {word: plain_number(one) if isinstance(one, Decimal) else one for word, one in given.items()}
    fast = [
        {"multiplier": plain_number(one.multiplier), "begins": one.begins, "ends": one.ends, "note": one.note}
        for one in row.fast
    ]
    plain: dict[str, Any] = out.to_plain({**told, "fast": fast})
    return plain


def _nothing(table: Rates, model: str | None, day: str | None) -> int:
    from threadline.cli import screen
    from threadline.render.figures import some

    known = some(dict.fromkeys(row.model for row in table.rows()))
    asked = [f"--model {model!r}"] if model is not None else []
    asked += [f"--on {day}"] if day is not None else []
    return screen.nothing(f"No price fits {' and '.join(asked)}; models are {known}. See --prices for more.")


def _import(path: str, target: str | None, *, force: bool) -> int:
    from threadline.account.price_file import written
    from threadline.account.price_source import price_source
    from threadline.cli import output as out

    source = price_source(path)
    data = written(source.prices, f"imported from {Path(path).name}, SHA-256 {source.digest}")
    if target is None:
        click.echo(data, nl=False)
    else:
        _write(Path(target), data, force=force)
    for note in source.prices.notes:
        click.echo(f"threadline: {out.plain(note)}", err=True)
    if target is not None:
        click.echo(_told(source, target))
    return FOUND


def _write(target: Path, data: bytes, *, force: bool) -> None:
    from threadline.errors import BadQuery

    try:
        with target.open("wb" if force else "xb") as opened:
            opened.write(data)
    except FileExistsError:
        raise BadQuery(f"{str(target)!r} is there already; give another name, or --force to replace it.") from None


def _told(source: PriceSource, target: str) -> str:
    from shlex import quote

    from threadline.cli import output as out

    count = out.counted(len(source.prices.models), "model")
    return f"Wrote the prices of {count} to {out.plain(target)}; use them with --prices {out.plain(quote(target))}."
