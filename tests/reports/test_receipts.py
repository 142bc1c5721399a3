"""Tests of receipts: every line that reports a message, why it counted or not, the sum, and what is missing."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace
from tests.transcripts import MODEL, SESSION, Part, Pen, Row, call, chain, prompt, reply, transcript, write
from tools.demo import write as write_demo

from threadline.account import Ledger
from threadline.errors import Ambiguous, NotFound
from threadline.model.ledger import sum_amounts
from threadline.model.receipts import Receipt, ReceiptItem
from threadline.reports import ReceiptQuery, build_receipt, query_day, query_line, query_message, read_ledger
from threadline.reports.receipts import query_agent, query_session

OTHER = "5e551011-0000-4000-8000-000000000002"


def usage(output: int, *, uncached: int = 3, hour: int = 2400, read: int = 3180, **more: Any) -> Row:
    """Return a usage object with cache writes for an hour."""
    return {
        "input_tokens": uncached,
        "cache_creation_input_tokens": hour,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": hour},
        "output_tokens": output,
        **more,
    }


def message(output: int, id_: str = "msg_01b7c1f0a2d94e55ac0d1e22", **more: Any) -> Row:
    """Return fields that override a reply's message."""
    stop = more.pop("stop_reason", "end_turn")
    counts = {name: more.pop(name) for name in ("uncached", "hour", "read", "iterations") if name in more}
    return {"id": id_, "model": "claude-opus-4-5", "stop_reason": stop, "usage": usage(output, **counts), **more}


def add_session(folder: Path, *parts: Part, session: str = SESSION, **pen: Any) -> Path:
    """Add a session to a home."""
    rows = transcript(*parts, pen=Pen(session, **pen))
    return write(folder / f"projects/-work-app/{session}.jsonl", *rows)


def receipt_of(folder: Path, session: str = SESSION) -> Receipt:
    """Return the receipt of a session."""
    ledger = read_ledger(folder)
    return build_receipt(ledger, query_session(ledger, session))


def only_item(receipt: Receipt) -> ReceiptItem:
    """Return the only item of a receipt."""
    (item,) = receipt.items
    return item


def test_every_line_has_counts_and_a_reason(tmp_path: Path) -> None:
    """The greatest output counts, and a placeholder is called one."""
    add_session(
        tmp_path,
        prompt("go"),
        reply("a", message=message(3, stop_reason=None)),
        reply("b", message=message(412)),
        reply("c", message=message(412)),
    )
    item = only_item(receipt_of(tmp_path))
    assert [
        (mention.place.line, mention.counts and mention.counts.output, mention.counted) for mention in item.mentions
    ] == [
        (2, 3, False),
        (3, 412, False),
        (4, 412, True),
    ]
    assert [mention.why for mention in item.mentions] == [
        "output 3 is a placeholder, the counted line has 412",
        "same counts as the counted line",
        "the most complete of 3 lines",
    ]
    assert [mention.counts and mention.counts.stop_reason for mention in item.mentions] == [
        None,
        "end_turn",
        "end_turn",
    ]


def test_products_are_exact(tmp_path: Path) -> None:
    """Tokens times price for each kind that has tokens, and the fee of a web search."""
    served = {"server_tool_use": {"web_search_requests": 2}}
    add_session(tmp_path, reply("a", message=message(412) | {"usage": usage(412) | served}))
    receipt = receipt_of(tmp_path)
    products = [
        (product.kind, product.number, str(product.price), product.amount) for product in only_item(receipt).products
    ]
    assert products == [
        ("input", 3, "5", Decimal("0.000015")),
        ("output", 412, "25", Decimal("0.0103")),
        ("cache write 1h", 2400, "10", Decimal("0.024")),
        ("cache read", 3180, "0.5", Decimal("0.00159")),
        ("web search", 2, "0.01", Decimal("0.02")),
    ]
    assert receipt.total.amount == sum_amounts(product[3] for product in products) == Decimal("0.055905")
    assert receipt.rates[0].amount == receipt.total.amount


def test_more_complete_copy_counts_and_the_original_owns(tmp_path: Path) -> None:
    """If only a copy has the final count, it counts, and both lines of the receipt say so."""
    add_session(tmp_path, prompt("go"), reply("a", message=message(35, stop_reason=None)))
    add_session(
        tmp_path,
        prompt("go"),
        reply("a", message=message(14_869)),
        session=OTHER,
        start=datetime(2026, 2, 1, tzinfo=UTC),
    )
    item = only_item(receipt_of(tmp_path))
    original, copy = item.mentions
    assert (item.here, item.charge.session, item.charge.output) == (True, SESSION, 14_869)
    assert original.why == (
        "the original, but a copy is more complete; output 35 is a placeholder, the counted line has 14,869"
    )
    assert (copy.counted, copy.why) == (True, "the most complete of 2 lines, though it is a copy")


def test_copied_messages_are_not_in_a_forks_sum(tmp_path: Path) -> None:
    """A fork's receipt lists what it copied and from whom, and counts only its own messages."""
    shared = [prompt("go"), reply("a", message=message(50))]
    add_session(tmp_path, *shared)
    later = datetime(2026, 2, 1, tzinfo=UTC)
    new_reply = reply("b", message=message(70, "msg_01ffffa2d94e55ac0d1e2299", read=9_999))
    add_session(tmp_path, *shared, new_reply, session=OTHER, start=later, forkedFrom={"sessionId": SESSION})
    receipt = receipt_of(tmp_path, OTHER)
    assert [(item.here, item.charge.session) for item in receipt.items] == [(True, OTHER), (False, SESSION)]
    assert [mention.why for mention in receipt.items[1].mentions] == [
        "both lines have the same counts",
        f"a copy in session {OTHER[:8]}",
    ]
    assert (receipt.total.charges, receipt.total.output) == (1, 70)
    assert receipt_of(tmp_path).total.output == 50


def test_progress_that_repeats_an_agent_is_set_aside(tmp_path: Path) -> None:
    """The line is shown with the agent's own."""
    row = message(40) | {"role": "assistant", "type": "message", "content": []}
    repeat = {"type": "assistant", "message": row, "uuid": "u1", "timestamp": "2026-01-05T09:00:01Z"}
    main = add_session(
        tmp_path,
        prompt("go"),
        chain("progress", data={"type": "agent_progress", "agentId": "a1b2c3", "message": repeat}),
    )
    pen = Pen(SESSION, agentId="a1b2c3", isSidechain=True)
    agent = main.with_suffix("") / "subagents/agent-a1b2c3.jsonl"
    write(agent, *transcript(prompt("look"), reply("a", message=message(40)), pen=pen))
    ledger = read_ledger(tmp_path)
    receipt = build_receipt(ledger, query_session(ledger, SESSION))
    assert [(mention.counted, mention.why) for mention in only_item(receipt).mentions] == [
        (True, "both lines have the same counts"),
        (False, "a repeat in an agent's progress"),
    ]
    agent_receipt = build_receipt(ledger, query_agent(ledger, "a1b2c3", str(agent)))
    assert (agent_receipt.kind, agent_receipt.total.amount) == ("agent", receipt.total.amount)


def test_sums_equal_the_ledgers(tmp_path: Path) -> None:
    """For every session and every day of a demo home, items, rates and ledger have the same amount."""
    write_demo(tmp_path / "home")
    ledger = read_ledger(tmp_path / "home")
    queries = [query_session(ledger, row.keys["session"]) for row in ledger.by("session")]
    queries += [query_day(ledger, row.keys["day"], UTC) for row in ledger.by("day")]
    assert len(queries) > 10
    total = {"session": Decimal(0), "day": Decimal(0)}
    for query in queries:
        receipt = build_receipt(ledger, query)
        amounts = [item.charge.amount for item in receipt.items if item.here and item.charge.amount is not None]
        assert (receipt.total.amount or 0) == sum_amounts(amounts) == sum_amounts(rate.amount for rate in receipt.rates)
        assert all(sum(mention.counted for mention in item.mentions) == 1 for item in receipt.items)
        assert all(mention.counts is not None for item in receipt.items for mention in item.mentions)
        total[query.kind] += receipt.total.amount or 0
    assert total["session"] == total["day"] == ledger.total.amount


@pytest.mark.parametrize("change", ["cut", "other", "gone"])
def test_transcript_changed_since_counting_is_reported(tmp_path: Path, change: str) -> None:
    """The sum stays. Lines that no longer exist are marked and listed as missing."""
    path = add_session(tmp_path, prompt("go"), reply("a", message=message(412)))
    ledger = read_ledger(tmp_path)
    query = query_session(ledger, SESSION)
    data = path.read_bytes()
    if change == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif change == "other":
        path.write_bytes(data.replace(b'"output_tokens":412', b'"output_tokens":9  '))
    else:
        path.unlink()
    receipt = build_receipt(ledger, query)
    assert receipt.total.amount == Decimal("0.035905")
    (mention,) = only_item(receipt).mentions
    assert (mention.counts, mention.counted) == (None, True)
    assert mention.why.startswith("could not be read again: " if change == "gone" else "the transcript has changed")
    assert [missing.number for missing in receipt.missing if missing.kind == "problems"] == [1]


def test_notes_explain_special_charges(tmp_path: Path) -> None:
    """A lower bound, a missing price, two calls with one id and an advisor's pass each have a note."""
    advisor = {"type": "advisor_message", "model": "claude-opus-4-6", "input_tokens": 100, "output_tokens": 20}
    add_session(
        tmp_path,
        reply("a", version="2.1.20", message=message(3, "msg_01aaaa12d94e55ac0d1e2201", stop_reason=None)),
        reply("b", message=message(30, "msg_01bbbb12d94e55ac0d1e2202") | {"model": "glm-4.7"}),
        reply("c", message=message(30, "msg_01cccc12d94e55ac0d1e2203")),
        reply("c", message=message(40, "msg_01cccc12d94e55ac0d1e2203", read=1)),
        reply("d", message=message(50, "msg_01dddd12d94e55ac0d1e2204", iterations=[{"type": "message"}, advisor])),
    )
    receipt = receipt_of(tmp_path)
    notes = {(item.charge.message[6:10], item.charge.part): " ".join(item.notes) for item in receipt.items}
    assert notes["01aaaa"[2:], ""] == "Output is a lower bound: version 2.1.20 did not write the final count."
    assert notes["bbbb", ""].startswith("No price: the price list has no model 'glm-4.7'")
    assert notes["cccc", ""].startswith("One of 2 calls with this id")
    assert notes["dddd", "advisor"].startswith("An advisor's pass")
    (advisor_item,) = [item for item in receipt.items if item.charge.part]
    assert [(mention.counted, mention.why) for mention in advisor_item.mentions] == [
        (True, "the advisor's pass within this line")
    ]
    assert {missing.kind: missing.number for missing in receipt.missing} == {
        "lower-bound": 1,
        "unpriced": 1,
        "side-calls": None,
    }


def test_lists_what_is_missing(tmp_path: Path) -> None:
    """Compactions, side calls of tools and unreadable lines are listed, with their number and places."""
    torn = b'{"type":"assistant","message":{"id":"msg_01","usage":{"input_tokens":5,"output_tokens":9}\n'
    boundary = {"subtype": "compact_boundary", "compactMetadata": {"trigger": "auto", "preTokens": 155_000}}
    path = add_session(
        tmp_path,
        prompt("go"),
        call("WebFetch", "x", "page"),
        call("WebSearch", "y", "found"),
        call("WebFetch", "z", "page"),
        torn,
        chain("system", **boundary),
        reply("a"),
    )
    missing = {kind.kind: kind for kind in receipt_of(tmp_path).missing}
    assert list(missing) == ["problems", "compactions", "WebFetch", "WebSearch", "side-calls"]
    assert (missing["WebFetch"].number, missing["WebSearch"].number) == (2, 1)
    assert "155,000 tokens" in missing["compactions"].text
    (place,) = missing["problems"].places
    assert (place.transcript, place.line) == (str(path.resolve()), 8)


def test_places_of_problems_are_in_the_order_of_the_charges(tmp_path: Path) -> None:
    """Damaged lines of several transcripts are listed by time, the same way every time."""
    torn = b'{"type":"assistant","message":{"id":"msg_01","usage":{"input_tokens":5\n'
    sessions = [f"{SESSION[:-1]}{at}" for at in (6, 3, 8, 1, 7, 2)]
    for hour, session in enumerate(sessions):
        start = datetime(2026, 1, 5, hour, tzinfo=UTC)
        parts = (torn, reply("a", message=message(30, f"msg_01cccc12d94e55ac0d1e220{hour}")))
        add_session(tmp_path, *parts, session=session, start=start)
    ledger = read_ledger(tmp_path)
    (gap,) = [gap for gap in build_receipt(ledger, query_day(ledger, "2026-01-05", UTC)).missing if gap.places]
    assert [Path(place.transcript).stem for place in gap.places] == sessions


def test_day_is_in_the_requested_zone(tmp_path: Path) -> None:
    """A day's receipt has the charges of the local day, across midnight in UTC."""
    late = datetime(2026, 1, 5, 23, 59, 30, tzinfo=UTC)
    add_session(tmp_path, reply("a"), reply("b"), start=late)
    ledger = read_ledger(tmp_path)
    berlin = ZoneInfo("Europe/Berlin")
    assert len(query_day(ledger, "2026-01-05", UTC).charges) == 2
    assert (query_day(ledger, "2026-01-05", berlin).charges, len(query_day(ledger, "2026-01-06", berlin).charges)) == (
        (),
        2,
    )


def test_line_query_finds_its_message(tmp_path: Path) -> None:
    """All lines of the message are shown. For a line without usage, the error names the nearest one."""
    path = str(add_session(tmp_path, prompt("go"), reply("a", "b"), prompt("on"), reply("c")).resolve())
    ledger = read_ledger(tmp_path)
    receipt = build_receipt(ledger, query_line(ledger, path, 2))
    assert [mention.place.line for mention in only_item(receipt).mentions] == [2, 3]
    with pytest.raises(NotFound, match="The nearest line with usage is 3"):
        query_line(ledger, path, 4)


def test_message_query_accepts_a_prefix(tmp_path: Path) -> None:
    """An ambiguous prefix lists all matches."""
    ids = ("msg_01aaaa12d94e55ac0d1e2201", "msg_01aabb12d94e55ac0d1e2202")
    add_session(tmp_path, *(reply("a", message=message(30, id_)) for id_ in ids))
    ledger = read_ledger(tmp_path)
    assert [query_message(ledger, prefix).name for prefix in (ids[0], ids[1][:11])] == list(ids)
    with pytest.raises(Ambiguous, match="2 messages") as error:
        query_message(ledger, "msg_01aa")
    assert all(id_ in str(error.value) for id_ in ids)
    with pytest.raises(NotFound):
        query_message(ledger, "msg_02")


def test_two_rows_on_one_physical_line(tmp_path: Path) -> None:
    """Both are shown, and one of them counts."""
    rows = transcript(prompt("go"), reply("a", "b", message=message(30)))
    path = write(tmp_path / f"projects/-work-app/{SESSION}.jsonl", *rows)
    first, second, third = path.read_bytes().splitlines()
    path.write_bytes(first + b"\n" + second + third + b"\n")
    item = only_item(receipt_of(tmp_path))
    assert [(mention.place.line, mention.counted) for mention in item.mentions] == [(2, True), (2, False)]


@pytest.mark.slow
def test_receipt_of_ten_thousand_messages(tmp_path: Path) -> None:
    """The receipt of the day has all of them and nothing else."""
    replies = [reply("a", message={"id": f"msg_01{number:022x}"}, read=number) for number in range(10_000)]
    add_session(tmp_path, *replies)
    ledger = read_ledger(tmp_path)
    query: ReceiptQuery = query_day(ledger, "2026-01-05", UTC)
    receipt = build_receipt(ledger, query)
    assert (len(receipt.items), receipt.lines, receipt.total.charges) == (10_000, 10_000, 10_000)
    assert replace(query, charges=()).charges == ()
    assert isinstance(ledger, Ledger)
    assert receipt.rates[0].rate.model == MODEL.rpartition("-")[0]
