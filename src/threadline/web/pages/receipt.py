"""The receipt of a session or day: which lines were counted, at which price, and what is missing from the sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from threadline.errors import BadQuery
from threadline.model.text import count, format_amount, short_model_name
from threadline.model.times import zone_name
from threadline.render import describe_cost, shorten
from threadline.render.html import EMPTY, Child, Column, TableRow, el, facts_row, join, render_table, time_element
from threadline.reports import build_receipt, query_day, query_transcript, sort_by_amount
from threadline.web import urls
from threadline.web.pages.forms import pager, parse_range
from threadline.web.pages.sessions import all_sessions
from threadline.web.pages.usage import parse_date
from threadline.web.request import Page

if TYPE_CHECKING:
    from threadline.archive import Archive
    from threadline.model.receipts import Mention, RateSum, Receipt, ReceiptItem
    from threadline.web.request import PageRequest

_ROWS_PER_PAGE = 100
_SORTS = ("time", "amount")
_RATE_COLUMNS = (
    Column("Tokens", "title"),
    Column("Number", "number"),
    Column("Price per million", "number"),
    Column("Amount", "number"),
)


def receipt_page(request: PageRequest) -> Page:
    """How the amount of a session (`session`, the newest by default) or a day (`day`) was computed.

    Raises:
        BadQuery: there are no sessions, or the day does not exist.
        NotFound: there is no such session.
    """
    sort = request.choice("sort", _SORTS, "time")
    shown = parse_range(request, _ROWS_PER_PAGE)
    receipt = _read_receipt(request)
    if sort == "amount":
        receipt = sort_by_amount(receipt)
    items = shown.select(receipt.items)
    title = "How this was counted"
    main = join(
        (
            el(
                "header",
                _subject_link(request, receipt),
                el("h1", title),
                facts_row(_facts(request, receipt)),
                class_="head",
            ),
            el("p", _MEANING, class_="advice"),
            [_rate_section(rate) for rate in receipt.rates],
            _missing_section(receipt),
            _message_section(request, items, sort) if items else el("p", "No usage.", class_="nothing"),
            pager(request, shown, len(items), len(receipt.items)),
        )
    )
    return Page(title, "insight", main, _receipt_record(receipt, items))


_MEANING = (
    "Claude Code writes a reply on several lines, and copies lines when a session is resumed or forked. Each reply is"
    " counted once: for every reply below, one line counts, and the others say why they do not."
)


def _read_receipt(request: PageRequest) -> Receipt:
    archive, session, day = request.archive, request.text("session"), request.text("day")
    ledger = archive.ledger()
    if session is None and day is None:
        session = next((brief.name for brief in all_sessions(request)), None)
    if session is not None:
        return build_receipt(ledger, query_transcript(ledger, archive.transcript(session)), archive.found)
    if day is None or parse_date(day) is None:
        raise BadQuery("Name a session or a day: session=ID or day=2026-11-03.")
    return build_receipt(ledger, query_day(ledger, day, request.zone()), archive.found)


def _subject_link(request: PageRequest, receipt: Receipt) -> Markup:
    """A link to the session, or to the sessions of the day."""
    if receipt.kind == "day":
        return el(
            "p",
            el("a", receipt.name, href=urls.build_url(urls.SESSIONS, since=receipt.name, until=receipt.name)),
            class_="up",
        )
    title = request.archive.titles({receipt.name}).get(receipt.name) or receipt.name
    return el(
        "p", el("a", shorten(title, 120), href=urls.session_url(request.text("session") or receipt.name)), class_="up"
    )


def _facts(request: PageRequest, receipt: Receipt) -> Iterator[Child]:
    yield el("b", describe_cost(receipt.total, exact=True))
    yield count(receipt.total.charges, "charge")
    yield f"from {count(receipt.lines, 'line')}"
    copies = sum(not item.here for item in receipt.items)
    if copies:
        yield f"{count(copies, 'charge')} counted in other sessions"
    yield f"times in {zone_name(request.zone())}"


def _rate_section(rate_sum: RateSum) -> Markup:
    rate = rate_sum.rate
    rows = [
        [
            product.kind,
            f"{product.number:,}",
            format_amount(product.price, exact=True),
            format_amount(product.amount, exact=True),
        ]
        for product in rate_sum.products
    ]
    heading = f"{short_model_name(rate.model)}: {count(rate_sum.charges, 'charge')}"
    foot = ["Total", "", "", format_amount(rate_sum.amount, exact=True)]
    table = render_table(heading, _RATE_COLUMNS, rows, kind="list comparison", foot=foot, hidden_caption=True)
    source = el("p", f"Prices: {shorten(rate.describe(), 300)}. Source: {shorten(rate.source, 200)}", class_="note")
    return el("section", el("h2", heading), table, source if rate.source else EMPTY, class_="block")


def _missing_section(receipt: Receipt) -> Child:
    if not receipt.missing:
        return EMPTY
    items = [el("li", f"{shorten(gap.text, 300).removesuffix('.')}.") for gap in receipt.missing]
    return el("section", el("h2", "Not included"), el("ul", items, class_="plain-list"), class_="block")


def _message_section(request: PageRequest, items: Sequence[ReceiptItem], sort: str) -> Markup:
    columns = (
        Column(_sort_link(request, "When", "time", sort), "when"),
        Column("Lines", "title"),
        Column("Model", "model minor"),
        Column("Input", "number minor"),
        Column("Output", "number minor"),
        Column("Cache write", "number minor"),
        Column("Cache read", "number minor"),
        Column(_sort_link(request, "Amount", "amount", sort), "number"),
    )
    rows = [TableRow(list(_cells(request, item)), item=True) for item in items]
    table = render_table("Charges", columns, rows, kind="list", heading=1, hidden_caption=True)
    return el("section", el("h2", "Charges"), table, class_="block")


def _sort_link(request: PageRequest, label: str, name: str, sort: str) -> Markup:
    url = request.url_with(sort=name if name != "time" else None, after=None)
    return el("a", label, href=url, aria_current="true" if name == sort else None)


def _cells(request: PageRequest, item: ReceiptItem) -> Iterator[Child]:
    charge = item.charge
    yield time_element(charge.timestamp, request.zone())
    notes = [*item.notes, *([] if item.here else ["counted in another session"])]
    lines = [_mention(request.archive, mention) for mention in item.mentions]
    yield [*lines, facts_row(notes) if notes else EMPTY]
    yield shorten(short_model_name(charge.model), 40) if charge.model else "unknown"
    yield from (f"{number:,}" for number in (charge.input, charge.output, charge.cache_write, charge.cache_read))
    has_amount = item.here and charge.amount is not None
    yield format_amount(charge.amount, exact=True) if has_amount else el("span", "-", class_="faint")


def _mention(archive: Archive, mention: Mention) -> Markup:
    """A line that reports the reply: a link to it, and why it counts or not."""
    url = urls.place_url(archive, mention.place)
    label = f"line {mention.place.line:,}"
    link = el("a", label, href=url) if url is not None else label
    mark = el("b", "counted", class_="good") if mention.counted else "not counted"
    return el("div", link, " ", mark, el("span", f": {mention.why}", class_="faint"))


def _receipt_record(receipt: Receipt, items: Sequence[ReceiptItem]) -> dict[str, Any]:
    return {
        "kind": receipt.kind,
        "name": receipt.name,
        "total": receipt.total,
        "rates": [
            {"rate": rate_sum.rate.describe(), "charges": rate_sum.charges, "amount": rate_sum.amount}
            for rate_sum in receipt.rates
        ],
        "messages": [
            {
                "message": item.charge.message,
                "timestamp": item.charge.timestamp,
                "counted_here": item.here,
                "amount": item.charge.amount,
                "lines": [
                    {"place": str(mention.place), "counted": mention.counted, "why": mention.why}
                    for mention in item.mentions
                ],
            }
            for item in items
        ],
        "missing": [gap.text for gap in receipt.missing],
    }
