"""The receipt page shows which lines were counted, and adds up to what other pages show."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from tests.transcripts import SESSION, Pen, prompt, reply, transcript, write
from tests.web.pages.requests import ask, data, parse_page

import threadline
from threadline.archive import Archive
from threadline.errors import BadQuery
from threadline.model.text import format_amount


def test_a_receipt_adds_up_to_the_cost_of_the_session(demo: Archive) -> None:
    """The total, the sum of the rates and the sum of the messages are the amount that lists show."""
    for row in data(ask(demo, "/sessions"))["sessions"][:8]:
        receipt = data(ask(demo, f"/receipt?session={row['session']}&limit=500"))
        amount = Decimal(row["amount"] or 0)
        assert Decimal(receipt["total"]["amount"] or 0) == amount
        assert sum(Decimal(rate["amount"]) for rate in receipt["rates"]) == amount
        counted = [message for message in receipt["messages"] if message["counted_here"]]
        assert sum(Decimal(message["amount"] or 0) for message in counted) == amount
        assert all(sum(line["counted"] for line in message["lines"]) == 1 for message in counted)


def test_a_day_has_a_receipt(demo: Archive) -> None:
    """The rows of usage by day lead to receipts with the same amounts."""
    page = parse_page(demo, "/usage?by=day&since=all&tz=UTC")
    links = [link for link in page.links if link.startswith("/receipt?day=")]
    assert links
    for link in links[:5]:
        day = link.partition("=")[2][:10]
        spent = demo.ledger().by("day").rows
        (amount,) = [row.amount for row in spent if row.keys["day"] == day]
        assert Decimal(data(ask(demo, f"/receipt?day={day}&tz=UTC"))["total"]["amount"]) == amount


def test_a_repeated_line_says_why_it_does_not_count(tmp_path: Path) -> None:
    """A reply on two lines counts once; the other line is linked, with the reason."""
    rows = transcript(prompt("hello"), reply("One.", "Two."), pen=Pen())
    write(tmp_path / "home" / "projects" / "-work-app" / f"{SESSION}.jsonl", *rows)
    with Archive(threadline.open(tmp_path / "home").homes, stale_ok=True) as archive:
        page = parse_page(archive, f"/receipt?session={SESSION}")
    assert "line 2 not counted: same counts as the counted line" in page.words
    assert "line 3 counted: both lines have the same counts" in page.words
    assert f"/session/{SESSION}?at=L2#L2" in page.links


def test_the_newest_session_is_the_default(demo: Archive) -> None:
    """Without a session or a day, the receipt is that of the newest session. An invalid day is refused."""
    newest = data(ask(demo, "/sessions"))["sessions"][0]["session"]
    assert data(ask(demo, "/receipt"))["name"] == newest
    with pytest.raises(BadQuery, match="session=ID or day="):
        ask(demo, "/receipt?day=someday")


def test_amounts_are_exact(demo: Archive) -> None:
    """The amounts on the page have all digits: those of charges and of kinds of tokens add up to the total."""
    session = data(ask(demo, "/sessions"))["sessions"][0]["session"]
    total = Decimal(data(ask(demo, f"/receipt?session={session}"))["total"]["amount"])
    text = str(ask(demo, f"/receipt?session={session}&limit=500").main)
    assert f"<b>{format_amount(total, exact=True)}" in text
    products, charges = text.split("<h2>Charges</h2>")
    for part in (re.sub(r"<tfoot>.*?</tfoot>", "", products), charges):
        amounts = re.findall(r'<td class="number">\$([\d,.]+)</td></tr>', part)
        assert sum(Decimal(amount.replace(",", "")) for amount in amounts) == total
