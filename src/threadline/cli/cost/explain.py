"""`threadline explain`: the receipt of a session, message, day or transcript line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, NamedTuple

import click

from threadline.account import Ledger, load_rates
from threadline.archive import Archive
from threadline.cli import EXIT_OK, NoHome
from threadline.cli import output as out
from threadline.cli.options import (
    colour_option,
    complete_with,
    home_option,
    jobs_option,
    limit_option,
    output_options,
    pager_option,
    prices_option,
    timezone_option,
)
from threadline.cli.resolve import expand_path, is_file, open_archive, transcript_path
from threadline.errors import Ambiguous, BadQuery, NotFound
from threadline.model.homes import Found, Transcript
from threadline.model.ledger import sum_fields
from threadline.model.receipts import Mention, PricedTokens, RateSum, Receipt, ReceiptItem
from threadline.model.text import join_some, plain_decimal
from threadline.render import draw_receipt
from threadline.reports import (
    ReceiptQuery,
    build_ledger,
    build_receipt,
    match_message_ids,
    query_day,
    query_line,
    query_message,
    query_transcript,
    reported_session_record,
    sort_by_amount,
)

_DEFAULT_LIMIT = 20
_EPILOG = """
\b
Examples:
  threadline explain last                     the newest session
  threadline explain 55604662 --all           every message of a session
  threadline explain last --sort amount       most expensive first
  threadline explain msg_01XFDUDYJg           one message, by an id prefix
  threadline explain req_011CQg0001           one message, by its request
  threadline explain 55604662:17              the message on line 17
  threadline explain yesterday --tz UTC       one day
  threadline explain last --json              exact, for a program
"""


@click.command(epilog=_EPILOG)
@click.argument("what", default="last", shell_complete=complete_with("sessions"))
@limit_option(
    f"Show at most N messages. Default: {_DEFAULT_LIMIT}; no limit for --json, --jsonl and --csv."
    " The sum always includes all."
)
@click.option("--all", "everything", is_flag=True, help="Show every message.")
@click.option("--sort", type=click.Choice(("time", "amount")), default="time", help="Order of messages. Default: time.")
@prices_option
@timezone_option
@colour_option
@pager_option
@home_option
@jobs_option
@output_options
def explain(
    what: str,
    *,
    limit: int | None,
    everything: bool,
    sort: str,
    price_files: tuple[str, ...],
    zone: tzinfo,
    colour: bool,
    pager: bool,
    homes: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> int:
    """Show how an amount was computed, line by line.

    Lists each message with every line that reports its usage, which line counted, and the sum. WHAT is a session (the
    start of its id, a transcript, or `last`, the default), the start of a message or request id, a day (2026-11-03,
    today, yesterday), or a place (FILE:LINE). Every message of all homes is counted once: a session's receipt also
    lists messages that it only contains copies of, and does not include them in its sum. Ends with what is known to be
    missing.
    """
    if limit is not None and everything:
        raise click.UsageError("Use --limit or --all, not both.")
    rates = load_rates(*price_files)
    with open_archive(homes, jobs) as archive:
        target = parse_target(what, archive, zone)
        if not target.found:
            raise NoHome(out.no_home_message())
        is_all = target.found is archive.found
        ledger = archive.ledger(rates) if is_all else build_ledger(target.found, rates, jobs=jobs)
        receipt = build_receipt(ledger, target.query(ledger), target.found)
    if sort == "amount":
        receipt = sort_by_amount(receipt)
    if output == "json":
        out.print_json(receipt_document(receipt, limit))
    elif output != "table":
        out.print_rows(receipt_line_rows(receipt, limit), output)
    elif receipt.items:
        colour = out.use_colour(enabled=colour)
        most = None if everything else limit or _DEFAULT_LIMIT
        lines = draw_receipt(
            receipt,
            out.page_width(),
            colour=colour,
            limit=most,
            path=out.shorten_path,
            zone=zone,
            by_day=sort == "time",
        )
        out.print_lines(lines, colour=colour, pager=pager)
    if receipt.items:
        return EXIT_OK
    subject = f"on {receipt.name}" if receipt.kind == "day" else f"in {receipt.kind} {receipt.name!r}"
    return out.report_nothing(f"No usage {subject}.")


_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_DAYS_AGO = {"today": 0, "yesterday": 1}
_PLACE = re.compile(r"(?P<file>.+):(?P<line>[0-9]{1,18})(?:\$.*)?", re.DOTALL)
_REQUEST_PREFIX = "req_"
_MESSAGE_PREFIXES = ("msg_", _REQUEST_PREFIX)
_MAX_QUOTED = 100


class ReceiptTarget(NamedTuple):
    """What to build a ledger of, and the query to run on that ledger."""

    found: Sequence[Found]
    query: Callable[[Ledger], ReceiptQuery]


def parse_target(what: str, archive: Archive, zone: tzinfo) -> ReceiptTarget:
    """Find what the argument WHAT means.

    Raises:
        NotFound: it is neither a session nor a message nor an existing place.
        Ambiguous: several ids start like this.
        BadQuery: the day does not exist, or the id is too short.
    """
    day = _parse_day(what, zone)
    if day is not None:
        return ReceiptTarget(archive.found, lambda ledger: query_day(ledger, day, zone))
    if what.startswith(_MESSAGE_PREFIXES):
        return ReceiptTarget(archive.found, lambda ledger: query_message(ledger, _message_id(what, ledger, archive)))
    place = _PLACE.fullmatch(what)
    if place is not None and not _is_existing_file(what):
        found, transcript = _find_transcript(place["file"], archive)
        return ReceiptTarget(found, lambda ledger: query_line(ledger, str(transcript.path), int(place["line"])))
    return _session_or_message_target(what, archive)


def _message_id(what: str, ledger: Ledger, archive: Archive) -> str:
    """The id of a message, or the start of it; for the id of a request, that of the message that answers it.

    Raises:
        Ambiguous: several messages answer requests whose ids start like this.
    """
    if not what.startswith(_REQUEST_PREFIX) or match_message_ids(ledger, what):
        return what
    messages = archive.messages_of_request(what)
    if len(messages) > 1:
        raise Ambiguous(
            f"{len(messages):,} messages answer requests whose ids start with {what[:_MAX_QUOTED]!r}:"
            f" {join_some(messages)}. Use more characters."
        )
    return messages[0] if messages else what


def _session_or_message_target(what: str, archive: Archive) -> ReceiptTarget:
    """A session by that name, or else a message by that id."""
    try:
        found, transcript = _find_transcript(what, archive)
    except (Ambiguous, BadQuery):
        raise
    except NotFound:
        if _is_path(what) or (what == "last" and archive.homes):
            raise
        return ReceiptTarget(archive.found, lambda ledger: _find_message(ledger, what))

    def query(ledger: Ledger) -> ReceiptQuery:
        messages = match_message_ids(ledger, what) if not _is_path(what) and what != "last" else []
        if messages == [what]:
            return query_message(ledger, what)
        if messages:
            raise Ambiguous(
                f"{what[:_MAX_QUOTED]!r} is the start of the id of {str(transcript.path)!r}"
                f" and of {len(messages):,} messages, such as {messages[0]}. Use more characters."
            )
        return query_transcript(ledger, transcript)

    return ReceiptTarget(found, query)


def _find_message(ledger: Ledger, what: str) -> ReceiptQuery:
    if not match_message_ids(ledger, what):
        raise NotFound(
            f"{what[:_MAX_QUOTED]!r} is not a session, message, day or place. Use the start of an id, `last`, a"
            " transcript, 2026-11-03, today, yesterday or FILE:LINE. `threadline list` shows sessions."
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
        raise BadQuery(f"There is no day {text!r}. Use a date such as 2026-11-03.") from None


def _find_transcript(name: str, archive: Archive) -> tuple[Sequence[Found], Transcript]:
    """A transcript, and what to count: all homes, or only its session if it is outside of them."""
    found = archive.found
    if not _is_path(name) and name != "last":
        return found, archive.transcript(name)
    if name != "last":
        transcript_path(name)  # raises if the file is not a transcript
    path = os.path.realpath(archive.path(name) if name == "last" else expand_path(name))
    for home in found:
        for transcript in home.transcripts:
            if str(transcript.path) == path:
                return found, transcript
    session = archive.at(path, session=True)
    return (session,), session.transcripts[0]


def _is_path(text: str) -> bool:
    return _is_existing_file(text) or (os.sep in text and text.endswith(".jsonl"))


def _is_existing_file(text: str) -> bool:
    return is_file(expand_path(text))


_COUNT_FIELDS = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read", "stop_reason", "request")


def receipt_document(receipt: Receipt, limit: int | None = None) -> dict[str, Any]:
    """The receipt as JSON values, with at most `limit` messages. The sum always includes all."""
    total = sum_fields(receipt.total)
    amount = receipt.total.amount
    return {
        "kind": receipt.kind,
        "name": receipt.name,
        "session": receipt.name if receipt.kind == "session" else None,
        "total": {**total, "amount": plain_decimal(amount) if amount is not None else None},
        "rates": [_rate_row(rate) for rate in receipt.rates],
        "messages": [_message_row(item) for item in receipt.items[:limit]],
        "missing": [
            {"kind": gap.kind, "number": gap.number, "text": gap.text, "places": [str(place) for place in gap.places]}
            for gap in receipt.missing
        ],
        "reported": reported_session_record(receipt.reported) if receipt.reported is not None else None,
        "prices": {"digest": receipt.digest},
    }


def _message_row(item: ReceiptItem) -> dict[str, Any]:
    """One charge with the lines that report it."""
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
        "amount": _plain_amount(item),
        "flags": [str(flag) for flag in charge.flags],
        "notes": list(item.notes),
        "rate": charge.rate.describe() if charge.rate is not None else None,
        "products": [_product_row(product) for product in item.products],
        "lines": [_mention_row(mention) for mention in item.mentions],
    }


def receipt_line_rows(receipt: Receipt, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """One row per line that reports a message. Only the counted line has the amount, so that the column adds up."""
    for item in receipt.items[:limit]:
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
                "amount": _plain_amount(item) if mention.counted and item.here else None,
            }


def _mention_row(mention: Mention) -> dict[str, Any]:
    counts = mention.counts
    return {
        "place": str(mention.place),
        "counted": mention.counted,
        "why": mention.why,
        **{name: getattr(counts, name) if counts is not None else None for name in _COUNT_FIELDS},
    }


def _plain_amount(item: ReceiptItem) -> Decimal | None:
    amount = item.charge.amount
    return plain_decimal(amount) if amount is not None else None


def _product_row(priced_tokens: PricedTokens) -> dict[str, Any]:
    return {
        "kind": priced_tokens.kind,
        "number": priced_tokens.number,
        "price": plain_decimal(priced_tokens.price),
        "amount": plain_decimal(priced_tokens.amount),
    }


def _rate_row(rate_sum: RateSum) -> dict[str, Any]:
    rate = rate_sum.rate
    return {
        "rate": rate.describe(),
        "model": rate.model,
        "begins": rate.begins,
        "ends": rate.ends,
        "long_context": rate.long_context,
        "multipliers": {name: plain_decimal(by) for name, by in rate.multipliers},
        "source": rate.source,
        "charges": rate_sum.charges,
        "products": [_product_row(product) for product in rate_sum.products],
        "amount": plain_decimal(rate_sum.amount),
    }
