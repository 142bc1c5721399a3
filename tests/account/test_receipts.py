"""Receipts: every line that tells of a message, why it counted or not, the sum, and what is missing."""

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
    """A usage object with cache writes for an hour."""
    return {
        "input_tokens": uncached,
        "cache_creation_input_tokens": hour,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": hour},
        "output_tokens": output,
        **more,
    }


def message(output: int, id_: str = "msg_01b7c1f0a2d94e55ac0d1e22", **more: Any) -> Row:
    """What overrides a reply's message."""
    stop = more.pop("stop_reason", "end_turn")
    counts = {name: more.pop(name) for name in ("uncached", "hour", "read", "iterations") if name in more}
    return {"id": id_, "model": "claude-opus-4-5", "stop_reason": stop, "usage": usage(output, **counts), **more}


def home_with(folder: Path, *parts: Part, session: str = SESSION, **pen: Any) -> Path:
    """A home with one more session."""
    rows = transcript(*parts, pen=Pen(session, **pen))
    return write(folder / f"projects/-work-app/{session}.jsonl", *rows)


def of(folder: Path, session: str = SESSION) -> Receipt:
    """The receipt of a session."""
    made = read_ledger(folder)
    return build_receipt(made, query_session(made, session))


def only(made: Receipt) -> ReceiptItem:
    """The one item of a receipt."""
    (item,) = made.items
    return item


def test_every_line_has_its_own_counts_and_reason(tmp_path: Path) -> None:
    """Each line shows what it says itself; the greatest output counts, and a placeholder is called one."""
    home_with(
        tmp_path,
        prompt("go"),
        reply("a", message=message(3, stop_reason=None)),
        reply("b", message=message(412)),
        reply("c", message=message(412)),
    )
    item = only(of(tmp_path))
    assert [
        (mention.place.line, mention.counts and mention.counts.output, mention.counted) for mention in item.mentions
    ] == [
        (2, 3, False),
        (3, 412, False),
        (4, 412, True),
    ]
    assert [mention.why for mention in item.mentions] == [
        "output 3 is a placeholder, the counted line has 412",
        "has the same counts",
        "the most complete of 3 lines",
    ]
    assert [mention.counts and mention.counts.stop_reason for mention in item.mentions] == [
        None,
        "end_turn",
        "end_turn",
    ]


def test_the_multiplication(tmp_path: Path) -> None:
    """Tokens times price, kind by kind, exact; kinds without tokens are left out, and a web search has its fee."""
    served = {"server_tool_use": {"web_search_requests": 2}}
    home_with(tmp_path, reply("a", message=message(412) | {"usage": usage(412) | served}))
    made = of(tmp_path)
    products = [(product.kind, product.number, str(product.price), product.amount) for product in only(made).products]
    assert products == [
        ("input", 3, "5", Decimal("0.000015")),
        ("output", 412, "25", Decimal("0.0103")),
        ("cache write 1h", 2400, "10", Decimal("0.024")),
        ("cache read", 3180, "0.5", Decimal("0.00159")),
        ("web search", 2, "0.01", Decimal("0.02")),
    ]
    assert made.total.amount == sum_amounts(product[3] for product in products) == Decimal("0.055905")
    assert made.rates[0].amount == made.total.amount


def test_a_copy_that_tells_more_counts_and_the_original_owns(tmp_path: Path) -> None:
    """Where only a copy has the final count, it counts, and the receipt says so on both lines."""
    home_with(tmp_path, prompt("go"), reply("a", message=message(35, stop_reason=None)))
    home_with(
        tmp_path,
        prompt("go"),
        reply("a", message=message(14_869)),
        session=OTHER,
        start=datetime(2026, 2, 1, tzinfo=UTC),
    )
    item = only(of(tmp_path))
    original, copy = item.mentions
    assert (item.here, item.charge.session, item.charge.output) == (True, SESSION, 14_869)
    assert original.why == (
        "the original, but a copy is more complete; output 35 is a placeholder, the counted line has 14,869"
    )
    assert (copy.counted, copy.why) == (True, "the most complete of 2 lines, though it is a copy")


def test_what_a_session_only_copied_is_not_in_its_sum(tmp_path: Path) -> None:
    """A fork's receipt names what it copied, whose that is, and counts only its own."""
    said = [prompt("go"), reply("a", message=message(50))]
    home_with(tmp_path, *said)
    later = datetime(2026, 2, 1, tzinfo=UTC)
    own = reply("b", message=message(70, "msg_01ffffa2d94e55ac0d1e2299", read=9_999))
    home_with(tmp_path, *said, own, session=OTHER, start=later, forkedFrom={"sessionId": SESSION})
    made = of(tmp_path, OTHER)
    assert [(item.here, item.charge.session) for item in made.items] == [(True, OTHER), (False, SESSION)]
    assert [mention.why for mention in made.items[1].mentions] == [
        "both lines are equal",
        f"a copy in a fork, session {OTHER[:8]}",
    ]
    assert (made.total.charges, made.total.output) == (1, 70)
    assert of(tmp_path).total.output == 50


def test_progress_repeats_an_agent(tmp_path: Path) -> None:
    """A line of progress that repeats an agent's message is shown with the agent's own, and set aside."""
    row = message(40) | {"role": "assistant", "type": "message", "content": []}
    told = {"type": "assistant", "message": row, "uuid": "u1", "timestamp": "2026-01-05T09:00:01Z"}
    main = home_with(
        tmp_path, prompt("go"), chain("progress", data={"type": "agent_progress", "agentId": "a1b2c3", "message": told})
    )
    pen = Pen(SESSION, agentId="a1b2c3", isSidechain=True)
    agent = main.with_suffix("") / "subagents/agent-a1b2c3.jsonl"
    write(agent, *transcript(prompt("look"), reply("a", message=message(40)), pen=pen))
    made = read_ledger(tmp_path)
    whole = build_receipt(made, query_session(made, SESSION))
    assert [(mention.counted, mention.why) for mention in only(whole).mentions] == [
        (True, "both lines are equal"),
        (False, "a repeat in an agent's progress"),
    ]
    alone = build_receipt(made, query_agent(made, "a1b2c3", str(agent)))
    assert (alone.kind, alone.total.amount) == ("agent", whole.total.amount)


def test_sums_are_those_of_the_ledger(tmp_path: Path) -> None:
    """Of every session and every day of a made-up home: the items, the rates and the ledger come to one amount."""
    write_demo(tmp_path / "home")
    made = read_ledger(tmp_path / "home")
    asked = [query_session(made, row.keys["session"]) for row in made.by("session")]
    asked += [query_day(made, row.keys["day"], UTC) for row in made.by("day")]
    assert len(asked) > 10
    total = {"session": Decimal(0), "day": Decimal(0)}
    for one in asked:
        told = build_receipt(made, one)
        amounts = [item.charge.amount for item in told.items if item.here and item.charge.amount is not None]
        assert (told.total.amount or 0) == sum_amounts(amounts) == sum_amounts(rate.amount for rate in told.rates)
        assert all(sum(mention.counted for mention in item.mentions) == 1 for item in told.items)
        assert all(mention.counts is not None for item in told.items for mention in item.mentions)
        total[one.kind] += told.total.amount or 0
    assert total["session"] == total["day"] == made.total.amount


@pytest.mark.parametrize("change", ["cut", "other", "gone"])
def test_a_transcript_that_changes_meanwhile_is_told(tmp_path: Path, change: str) -> None:
    """What was counted stays the sum; lines that are not there any more are marked, and named as missing."""
    path = home_with(tmp_path, prompt("go"), reply("a", message=message(412)))
    made = read_ledger(tmp_path)
    asked = query_session(made, SESSION)
    data = path.read_bytes()
    if change == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif change == "other":
        path.write_bytes(data.replace(b'"output_tokens":412', b'"output_tokens":9  '))
    else:
        path.unlink()
    told = build_receipt(made, asked)
    assert told.total.amount == Decimal("0.035905")
    (mention,) = only(told).mentions
    assert (mention.counts, mention.counted) == (None, True)
    assert mention.why.startswith("could not be read again: " if change == "gone" else "the transcript has changed")
    assert [one.number for one in told.missing if one.kind == "problems"] == [1]


def test_notes_say_why_a_charge_is_special(tmp_path: Path) -> None:
    """A lower bound, a missing price, two calls under one id, an advisor's pass: each in a sentence."""
    advisor = {"type": "advisor_message", "model": "claude-opus-4-6", "input_tokens": 100, "output_tokens": 20}
    home_with(
        tmp_path,
        reply("a", version="2.1.20", message=message(3, "msg_01aaaa12d94e55ac0d1e2201", stop_reason=None)),
        reply("b", message=message(30, "msg_01bbbb12d94e55ac0d1e2202") | {"model": "glm-4.7"}),
        reply("c", message=message(30, "msg_01cccc12d94e55ac0d1e2203")),
        reply("c", message=message(40, "msg_01cccc12d94e55ac0d1e2203", read=1)),
        reply("d", message=message(50, "msg_01dddd12d94e55ac0d1e2204", iterations=[{"type": "message"}, advisor])),
    )
    made = of(tmp_path)
    notes = {(item.charge.message[6:10], item.charge.part): " ".join(item.notes) for item in made.items}
    assert notes["01aaaa"[2:], ""] == "Output is a lower bound: version 2.1.20 did not write the final count."
    assert notes["bbbb", ""].startswith("No price: the price list has no model 'glm-4.7'")
    assert notes["cccc", ""].startswith("One of 2 calls with this id")
    assert notes["dddd", "advisor"].startswith("An advisor's pass")
    (passed,) = [item for item in made.items if item.charge.part]
    assert [(mention.counted, mention.why) for mention in passed.mentions] == [
        (True, "the advisor's pass within this line")
    ]
    assert {one.kind: one.number for one in made.missing} == {"lower-bound": 1, "unpriced": 1, "side-calls": None}


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    """Compactions, side calls of tools and lines that cannot be read are named, with how many and where."""
    torn = b'{"type":"assistant","message":{"id":"msg_01","usage":{"input_tokens":5,"output_tokens":9}\n'
    boundary = {"subtype": "compact_boundary", "compactMetadata": {"trigger": "auto", "preTokens": 155_000}}
    path = home_with(
        tmp_path,
        prompt("go"),
        call("WebFetch", "x", "page"),
        call("WebSearch", "y", "found"),
        call("WebFetch", "z", "page"),
        torn,
        chain("system", **boundary),
        reply("a"),
    )
    missing = {one.kind: one for one in of(tmp_path).missing}
    assert list(missing) == ["problems", "compactions", "WebFetch", "WebSearch", "side-calls"]
    assert (missing["WebFetch"].number, missing["WebSearch"].number) == (2, 1)
    assert "155,000 tokens" in missing["compactions"].text
    (place,) = missing["problems"].places
    assert (place.transcript, place.line) == (str(path.resolve()), 8)


def test_a_day_is_the_readers(tmp_path: Path) -> None:
    """A day's receipt has what was spent on it in the reader's zone, across midnight in UTC."""
    late = datetime(2026, 1, 5, 23, 59, 30, tzinfo=UTC)
    home_with(tmp_path, reply("a"), reply("b"), start=late)
    made = read_ledger(tmp_path)
    berlin = ZoneInfo("Europe/Berlin")
    assert len(query_day(made, "2026-01-05", UTC).charges) == 2
    assert (query_day(made, "2026-01-05", berlin).charges, len(query_day(made, "2026-01-06", berlin).charges)) == (
        (),
        2,
    )


def test_a_place_is_the_message_of_its_line(tmp_path: Path) -> None:
    """A line leads to its message, all lines of which are shown; one that tells no usage names the nearest."""
    path = str(home_with(tmp_path, prompt("go"), reply("a", "b"), prompt("on"), reply("c")).resolve())
    made = read_ledger(tmp_path)
    told = build_receipt(made, query_line(made, path, 2))
    assert [mention.place.line for mention in only(told).mentions] == [2, 3]
    with pytest.raises(NotFound, match="The nearest line with usage is 3"):
        query_line(made, path, 4)


def test_a_message_by_the_start_of_its_id(tmp_path: Path) -> None:
    """The start of an id will do when one message has it; several are listed, and none is said."""
    ids = ("msg_01aaaa12d94e55ac0d1e2201", "msg_01aabb12d94e55ac0d1e2202")
    home_with(tmp_path, *(reply("a", message=message(30, id_)) for id_ in ids))
    made = read_ledger(tmp_path)
    assert [query_message(made, one).name for one in (ids[0], ids[1][:11])] == list(ids)
    with pytest.raises(Ambiguous, match="2 messages") as several:
        query_message(made, "msg_01aa")
    assert all(id_ in str(several.value) for id_ in ids)
    with pytest.raises(NotFound):
        query_message(made, "msg_02")


def test_glued_rows_are_two_lines_of_one_number(tmp_path: Path) -> None:
    """Two rows of a message on one physical line are both shown, and one of them counts."""
    rows = transcript(prompt("go"), reply("a", "b", message=message(30)))
    path = write(tmp_path / f"projects/-work-app/{SESSION}.jsonl", *rows)
    first, second, third = path.read_bytes().splitlines()
    path.write_bytes(first + b"\n" + second + third + b"\n")
    item = only(of(tmp_path))
    assert [(mention.place.line, mention.counted) for mention in item.mentions] == [(2, True), (2, False)]


@pytest.mark.slow
def test_ten_thousand_messages_are_explained(tmp_path: Path) -> None:
    """A day with ten thousand messages has a receipt of all of them, and of nothing else."""
    some = [reply("a", message={"id": f"msg_01{number:022x}"}, read=number) for number in range(10_000)]
    home_with(tmp_path, *some)
    made = read_ledger(tmp_path)
    asked: ReceiptQuery = query_day(made, "2026-01-05", UTC)
    told = build_receipt(made, asked)
    assert (len(told.items), told.lines, told.total.charges) == (10_000, 10_000, 10_000)
    assert replace(asked, charges=()).charges == ()
    assert isinstance(made, Ledger)
    assert told.rates[0].rate.model == MODEL.rpartition("-")[0]
