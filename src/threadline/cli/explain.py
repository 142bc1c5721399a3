"""`threadline explain`: the receipt of a session, message, day or transcript line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from threadline.cli import EXIT_NOTHING, EXIT_OK
from threadline.cli.options import home_option, jobs_option, output_options, timezone_option
from threadline.cli.screen import pager_option
from threadline.errors import Ambiguous, BadQuery, NotFound
from threadline.model.charges import Rate, format_decimal
from threadline.model.homes import Found, Transcript
from threadline.model.receipts import LineCounts, Mention, PricedTokens, RateSum, Receipt, ReceiptItem
from threadline.model.totals import sum_fields
from threadline.render import reported_session_record

if TYPE_CHECKING:
    from threadline.account import Ledger
    from threadline.archive import Archive
    from threadline.reports import ReceiptQuery

_DEFAULT_LIMIT = 20
_EPILOG = """
\b
Examples:
  threadline explain last                     the session of last use
  threadline explain 55604662 --all           every message of a session
  threadline explain msg_01XFDUDYJg           one message, by the start of its id
  threadline explain 55604662:17              the message that a line belongs to
  threadline explain yesterday --tz UTC       a day
  threadline explain last --json              exact, for a program
"""


@click.command(epilog=_EPILOG)
@click.argument("what", default="last")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Show no more than this many messages; by default {_DEFAULT_LIMIT}. The sum is always of all.",
)
@click.option("--all", "everything", is_flag=True, help="Show every message.")
@click.option(
    "--prices",
    "files",
    multiple=True,
    metavar="FILE",
    help="A price file, ours or LiteLLM's, whose models are added or replace; may be given several times.",
)
@timezone_option
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR in the environment says the same.")
@pager_option
@home_option
@jobs_option
@output_options
def explain(
    what: str,
    *,
    limit: int | None,
    everything: bool,
    files: tuple[str, ...],
    tz: str | None,
    no_color: bool,
    pager: bool,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """Show how an amount came to be: each message, every line that tells of it, which one counted, and the sum.

    WHAT is a session (the start of its id, a transcript, `last`), a message's id or its start, a day (2026-11-03,
    today, yesterday), or a place (FILE:LINE). Every message of all homes is counted once, so that a session's receipt
    also names those that it only has copies of; they are not in its sum. Ends with what is known to be missing.
    """
    from threadline.account import load_rates
    from threadline.cli import screen
    from threadline.cli.resolve import open_archive
    from threadline.cli.screen import report_no_home
    from threadline.model.times import parse_zone as zone_of
    from threadline.reports import build_ledger, build_receipt

    if limit is not None and everything:
        raise click.UsageError("Give --limit or --all, not both.")
    zone, table = zone_of(tz), load_rates(*files)
    with open_archive(homes, jobs) as archive:
        wanted = parse_target(what, archive, zone)
        if not wanted.found:
            report_no_home()
            return EXIT_NOTHING
        is_whole = wanted.found is archive.found
        ledger = archive.ledger(table) if is_whole else build_ledger(wanted.found, table, jobs=jobs)
        made = build_receipt(ledger, wanted.asked(ledger), wanted.found)
    if output != "table":
        _print_receipt(made, output)
    elif made.items:
        _draw_receipt(made, None if everything else limit or _DEFAULT_LIMIT, zone, coloured=not no_color, pager=pager)
    if made.items:
        return EXIT_OK
    return screen.report_nothing(
        f"Nothing was spent: no line tells the usage of a message of {made.kind} {made.name!r}."
    )


def _print_receipt(made: Receipt, output: str) -> None:
    from threadline.cli import output as out

    if output == "json":
        out.print_json(receipt_document(made))
    else:
        out.print_rows(receipt_line_rows(made), output)


def _draw_receipt(made: Receipt, limit: int | None, zone: tzinfo, *, coloured: bool, pager: bool) -> None:
    from threadline.cli import screen
    from threadline.cli.output import shorten_path
    from threadline.render import draw_receipt

    use = screen.use_colour(wanted=coloured)
    lines = draw_receipt(made, screen.page_width(), colour=use, limit=limit, path=shorten_path, zone=zone)
    screen.print_lines(lines, coloured=use, pager=pager)


_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_DAYS_AGO = {"today": 0, "yesterday": 1}
_PLACE = re.compile(r"(?P<file>.+):(?P<line>[0-9]{1,18})(?:\$.*)?", re.DOTALL)
_MESSAGE_PREFIXES = ("msg_", "req_")
_MAX_QUOTED = 100


class ReceiptTarget(NamedTuple):
    """Which homes to count, and what to ask of their ledger."""

    found: Sequence[Found]
    asked: Callable[[Ledger], ReceiptQuery]


def parse_target(what: str, archive: Archive, zone: tzinfo) -> ReceiptTarget:
    """What was meant.

    Raises:
        NotFound: it is neither a session nor a message, nor a place that is there.
        Ambiguous: it is the start of several.
        BadQuery: it is no day, or too short.
    """
    from threadline.reports import query_day, query_line, query_message

    day = _parse_day(what, zone)
    if day is not None:
        return ReceiptTarget(archive.found, lambda ledger: query_day(ledger, day, zone))
    if what.startswith(_MESSAGE_PREFIXES):
        return ReceiptTarget(archive.found, lambda ledger: query_message(ledger, what))
    place = _PLACE.fullmatch(what)
    if place is not None and not _is_file(what):
        found, transcript = _find_transcript(place["file"], archive)
        return ReceiptTarget(found, lambda ledger: query_line(ledger, str(transcript.path), int(place["line"])))
    return _session_or_message_target(what, archive)


def _session_or_message_target(what: str, archive: Archive) -> ReceiptTarget:
    """A session, if one is named so; else whatever message the ledger knows by that id."""
    from threadline.reports import match_message_ids, query_message, query_transcript

    try:
        found, transcript = _find_transcript(what, archive)
    except (Ambiguous, BadQuery):
        raise
    except NotFound:
        if _is_path(what):
            raise
        return ReceiptTarget(archive.found, lambda ledger: _find_message(ledger, what))

    def asked(ledger: Ledger) -> ReceiptQuery:
        same = match_message_ids(ledger, what) if not _is_path(what) and what != "last" else []
        if same == [what]:
            return query_message(ledger, what)
        if same:
            raise Ambiguous(
                f"{what[:_MAX_QUOTED]!r} is the start of the id of {str(transcript.path)!r}"
                f" and of {len(same):,} messages, such as {same[0]}; write more of it."
            )
        return query_transcript(ledger, transcript)

    return ReceiptTarget(found, asked)


def _find_message(ledger: Ledger, what: str) -> ReceiptQuery:
    from threadline.reports import match_message_ids, query_message

    if not match_message_ids(ledger, what):
        raise NotFound(
            f"{what[:_MAX_QUOTED]!r} is no session, message, day or place; "
            "write the start of an id, `last`, a transcript,"
            " 2026-11-03, today, yesterday or FILE:LINE. `threadline list` shows sessions."
        )
    return query_message(ledger, what)


def _parse_day(text: str, zone: tzinfo) -> str | None:
    word = text.strip().lower()
    if word in _DAYS_AGO:
        return f"{datetime.now(zone) - timedelta(days=_DAYS_AGO[word]):%Y-%m-%d}"
    if not _DAY.fullmatch(word):
        return None
    try:
        return datetime.fromisoformat(word).date().isoformat()
    except ValueError:
        raise BadQuery(f"There is no day {text!r}; write one such as 2026-11-03.") from None


def _find_transcript(name: str, archive: Archive) -> tuple[Sequence[Found], Transcript]:
    """The transcript of that name, and what to count: all homes, or its session alone where it lies in none."""
    found = archive.found
    if not _is_path(name) and name != "last":
        return found, archive.transcript(name)
    path = os.path.realpath(archive.path(name) if name == "last" else os.path.expanduser(name))  # noqa: PTH111 - text
    for one in found:
        for transcript in one.transcripts:
            if str(transcript.path) == path:
                return found, transcript
    alone = archive.at(path, session=True)
    return (alone,), alone.transcripts[0]


def _is_path(text: str) -> bool:
    return _is_file(text) or (os.sep in text and text.endswith(".jsonl"))


def _is_file(text: str) -> bool:
    try:
        return Path(os.path.expanduser(text)).is_file()  # noqa: PTH111 - Path.expanduser raises without such a user
    except (OSError, ValueError):
        return False


_COUNT_FIELDS = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read", "stop_reason")


def receipt_document(receipt: Receipt) -> dict[str, Any]:
    """The whole receipt; amounts and prices are text, so that no reader makes them floats."""
    total = sum_fields(receipt.total)
    amount = receipt.total.amount
    return {
        "kind": receipt.kind,
        "name": receipt.name,
        "total": {**total, "amount": format_decimal(amount) if amount is not None else None},
        "rates": [_rate_row(rate) for rate in receipt.rates],
        "messages": [_message_row(item) for item in receipt.items],
        "missing": [
            {"kind": one.kind, "number": one.number, "text": one.text, "places": [str(place) for place in one.places]}
            for one in receipt.missing
        ],
        "reported": reported_session_record(receipt.reported) if receipt.reported is not None else None,
        "prices": {"digest": receipt.digest},
    }


def _message_row(item: ReceiptItem) -> dict[str, Any]:
    """One charge with the lines that tell of it."""
    charge = item.charge
    return {
        "message": charge.message,
        "part": charge.part or None,
        "timestamp": charge.timestamp,
        "session": charge.session,
        "agent": charge.agent,
        "project": charge.project,
        "model": charge.model,
        "counted_here": item.here,
        "input": charge.input,
        "output": charge.output,
        "cache_write": charge.cache_write,
        "cache_write_1h": charge.cache_write_1h,
        "cache_read": charge.cache_read,
        "web_searches": charge.web_searches,
        "amount": _amount_text(item),
        "flags": [str(flag) for flag in charge.flags],
        "notes": list(item.notes),
        "rate": _rate_description(charge.rate),
        "products": [_product_row(product) for product in item.products],
        "lines": [_mention_row(mention) for mention in item.mentions],
    }


def receipt_line_rows(receipt: Receipt) -> Iterator[dict[str, Any]]:
    """Every line that tells of a message; only the line that counted has the amount, so that a column adds up."""
    for item in receipt.items:
        charge = item.charge
        for mention in item.mentions:
            yield {
                "message": charge.message,
                "part": charge.part or None,
                "timestamp": charge.timestamp,
                "session": charge.session,
                "agent": charge.agent,
                "model": charge.model,
                **_mention_row(mention),
                "counted_here": item.here,
                "amount": _amount_text(item) if mention.counted and item.here else None,
            }


def _mention_row(mention: Mention) -> dict[str, Any]:
    counts: LineCounts | None = mention.counts
    return {
        "place": str(mention.place),
        "counted": mention.counted,
        "why": mention.why,
        **{name: getattr(counts, name) if counts is not None else None for name in _COUNT_FIELDS},
    }


def _amount_text(item: ReceiptItem) -> str | None:
    amount = item.charge.amount
    return format_decimal(amount) if amount is not None else None


def _product_row(priced_tokens: PricedTokens) -> dict[str, Any]:
    return {
        "kind": priced_tokens.kind,
        "number": priced_tokens.number,
        "price": format_decimal(priced_tokens.price),
        "amount": format_decimal(priced_tokens.amount),
    }


def _rate_description(rate: Rate | None) -> str | None:
    return rate.describe() if rate is not None else None


def _rate_row(rate_sum: RateSum) -> dict[str, Any]:
    rate = rate_sum.rate
    return {
        "rate": rate.describe(),
        "model": rate.model,
        "begins": rate.begins,
        "ends": rate.ends,
        "long_context": rate.long_context,
        "multipliers": {name: format_decimal(by) for name, by in rate.multipliers},
        "source": rate.source,
        "charges": rate_sum.charges,
        "products": [_product_row(product) for product in rate_sum.products],
        "amount": format_decimal(rate_sum.amount),
    }
