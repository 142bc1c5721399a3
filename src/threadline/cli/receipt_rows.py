"""A receipt for programs: one document, or a record for each line that tells of a message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from threadline.model.rate import Rate, plain_number
from threadline.model.receipt import Item, LineCounts, Mention, Product, RateSum, Receipt
from threadline.model.sum import figures
from threadline.render.reconciliation import session_record

_COUNTS = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read", "stop_reason")


def document(receipt: Receipt) -> dict[str, Any]:
    """The whole receipt; amounts and prices are text, so that no reader makes them floats."""
    total = figures(receipt.total)
    amount = receipt.total.amount
    return {
        "kind": receipt.kind,
        "name": receipt.name,
        "total": {**total, "amount": plain_number(amount) if amount is not None else None},
        "rates": [_rate_row(one) for one in receipt.rates],
        "messages": [_message_row(one) for one in receipt.items],
        "missing": [
            {"kind": one.kind, "number": one.number, "text": one.text, "places": [str(place) for place in one.places]}
            for one in receipt.missing
        ],
        "reported": session_record(receipt.reported) if receipt.reported is not None else None,
        "prices": {"digest": receipt.digest},
    }


def _message_row(item: Item) -> dict[str, Any]:
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
        "amount": _amount(item),
        "flags": [str(flag) for flag in charge.flags],
        "notes": list(item.notes),
        "rate": _described(charge.rate),
        "products": [_product_row(one) for one in item.products],
        "lines": [_mention_row(one) for one in item.mentions],
    }


def line_rows(receipt: Receipt) -> Iterator[dict[str, Any]]:
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
                "amount": _amount(item) if mention.counted and item.here else None,
            }


def _mention_row(mention: Mention) -> dict[str, Any]:
    counts: LineCounts | None = mention.counts
    return {
        "place": str(mention.place),
        "counted": mention.counted,
        "why": mention.why,
        **{name: getattr(counts, name) if counts is not None else None for name in _COUNTS},
    }


def _amount(item: Item) -> str | None:
    amount = item.charge.amount
    return plain_number(amount) if amount is not None else None


def _product_row(one: Product) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "number": one.number,
        "price": plain_number(one.price),
        "amount": plain_number(one.amount),
    }


def _described(rate: Rate | None) -> str | None:
    return rate.describe() if rate is not None else None


def _rate_row(one: RateSum) -> dict[str, Any]:
    rate = one.rate
    return {
        "rate": rate.describe(),
        "model": rate.model,
        "begins": rate.begins,
        "ends": rate.ends,
        "long_context": rate.long_context,
        "multipliers": {name: plain_number(by) for name, by in rate.multipliers},
        "source": rate.source,
        "charges": one.charges,
        "products": [_product_row(product) for product in one.products],
        "amount": plain_number(one.amount),
    }
