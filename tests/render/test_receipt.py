"""Tests of receipts in a terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.transcripts import SESSION, Part, Pen, Row, prompt, reply, transcript, write

from threadline.model.receipts import Receipt
from threadline.render import clip_left, display_width, draw_receipt
from threadline.reports import build_receipt, read_ledger
from threadline.reports.receipts import query_session

FORK = "5e551011-0000-4000-8000-000000000002"


def message(id_: str, output: int, *, model: str = "claude-opus-4-5") -> Row:
    """Return the fields of a reply's message with three input tokens and this many output tokens."""
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 1000,
        "output_tokens": output,
    }
    return {"id": id_, "model": model, "stop_reason": "end_turn", "usage": usage}


FIRST = reply("a", message=message("msg_01b7c1f0a2d94e55ac0d1e22", 100))
SECOND = reply("b", message=message("msg_01ffffa2d94e55ac0d1e2299", 200))


def receipt_of(home: Path, *parts: Part, session: str = SESSION, **pen: Any) -> Receipt:
    """Add a session to a home and return its receipt."""
    write(home / f"projects/-work-app/{session}.jsonl", *transcript(*parts, pen=Pen(session, **pen)))
    ledger = read_ledger(home)
    return build_receipt(ledger, query_session(ledger, session))


def lines_of(receipt: Receipt, width: int = 120, limit: int | None = None, zone: str = "UTC") -> list[str]:
    """Draw a receipt."""
    return list(draw_receipt(receipt, width, limit=limit, path=clip_left, zone=ZoneInfo(zone)))


def test_shows_each_line_and_the_multiplication(tmp_path: Path) -> None:
    """A message has its transcript lines with counts, and its products. The total is exact and rounded."""
    lines = lines_of(receipt_of(tmp_path, prompt("go"), FIRST))
    text = "\n".join(lines)
    assert lines[0].startswith(f"Receipt of session {SESSION}  1 message · from 1 line · times in UTC, USD, prices ")
    assert lines[2].split() == ["line", "input", "output", "read", "stopped", "by", "reason"]
    assert "opus-4-5  main" in text
    assert "  ✓ 5e551011:2      3     100  1,000  end_turn" in text
    assert "3 input × 5 = 0.000015 + 100 output × 25 = 0.0025 + 1,000 cache read × 0.5 = 0.0005" in text  # noqa: RUF001
    assert "1 charge, 1,103 tokens: $0.003015, rounded: $0.0030" in text
    assert lines[-1].startswith("  5e551011  ")
    assert lines[-1].endswith(f"{SESSION}.jsonl")


def test_limit_omits_messages_but_not_from_the_sum(tmp_path: Path) -> None:
    """A note says how many messages are not shown."""
    receipt = receipt_of(tmp_path, prompt("go"), FIRST, SECOND)
    lines = lines_of(receipt, limit=1)
    assert "… 1 more message (1 line): use --all or --limit N. The sum includes them." in lines
    assert not any("msg_01ffff" in line for line in lines)
    sums = [
        drawn[drawn.index(next(line for line in drawn if "─ sum ─" in line)) :] for drawn in (lines, lines_of(receipt))
    ]
    assert sums[0] == sums[1]


def test_copies_are_counted_elsewhere(tmp_path: Path) -> None:
    """A fork lists the messages that it copied with their owner, and counts only its own."""
    receipt_of(tmp_path, prompt("go"), FIRST)
    later = datetime(2026, 2, 1, tzinfo=UTC)
    forked = receipt_of(
        tmp_path, prompt("go"), FIRST, SECOND, session=FORK, start=later, forkedFrom={"sessionId": SESSION}
    )
    text = " ".join(" ".join(lines_of(forked)).split())
    assert "1 message · from 3 lines · and 1 message counted elsewhere" in text
    assert "copies counted elsewhere" in text
    assert f"Owned by session {SESSION[:8]}, which began earlier. Not counted here." in text
    assert "1 charge, 1,203 tokens: " in text


def test_names_messages_without_a_price(tmp_path: Path) -> None:
    """An unknown model has no amount, and the sum says so."""
    unknown = reply("b", message=message("msg_01ffffa2d94e55ac0d1e2299", 200, model="my-model"))
    text = "\n".join(lines_of(receipt_of(tmp_path, prompt("go"), unknown)))
    assert "  no price\n" in text
    assert "1 charge, 1,203 tokens: no known price" in text
    text = "\n".join(lines_of(receipt_of(tmp_path, prompt("go"), FIRST, unknown)))
    assert "$0.003015, rounded: $0.0030, plus messages without a known price" in text


def test_days_are_in_the_time_zone(tmp_path: Path) -> None:
    """Messages are grouped by day in the zone of the reader."""
    receipt = receipt_of(tmp_path, prompt("go"), FIRST, start=datetime(2026, 1, 5, 23, 30, tzinfo=UTC))
    assert any("─ 2026-01-05 ─" in line for line in lines_of(receipt))
    lines = lines_of(receipt, zone="Asia/Tokyo")
    assert any("─ 2026-01-06 ─" in line for line in lines)
    assert "times in Asia/Tokyo" in lines[0]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_lines_fit_the_width_and_cannot_control_a_terminal(tmp_path: Path, width: int) -> None:
    """A hostile message id and model are escaped, and no line is wider than the terminal."""
    hostile = reply("b", message=message("msg_\x1b[31m\u202e", 200, model="m\x1b]0;x\x07"))
    lines = lines_of(receipt_of(tmp_path, prompt("go"), FIRST, hostile), width)
    assert all(display_width(line) <= width for line in lines)
    assert all(line.isprintable() for line in lines)
    assert any(r"msg_\x1b[31m\u202e" in line for line in lines)
