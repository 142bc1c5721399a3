"""The worked example of docs/usage.md: its rows, written as a home, give what its table says."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pytest

from threadline.account import KEY_DESCRIPTIONS, SESSION_KEY_DESCRIPTIONS
from threadline.reports import read_ledger

PAGE = Path(__file__).parents[2] / "docs" / "usage.md"
SESSION, FORK = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
FILES = {"session": f"{SESSION}.jsonl", "agent": f"{SESSION}/subagents/agent-a1b2c3d.jsonl", "fork": f"{FORK}.jsonl"}


class Told(NamedTuple):
    """A row of the first table."""

    transcript: str
    row: int
    kind: str
    message: str
    request: str
    input: int
    output: int
    five: int
    hour: int
    read: int


def _tables() -> list[list[list[str]]]:
    example = PAGE.read_text().split("## Worked example")[1]
    found = re.findall(r"(?:^\|.*\n)+", example, re.MULTILINE)
    return [[[cell.strip() for cell in line.strip("|\n").split("|")] for line in one.splitlines()[2:]] for one in found]


ROWS = [Told(cells[0], int(cells[1]), cells[2], cells[3], cells[4], *map(int, cells[5:])) for cells in _tables()[0]]
ANSWERS = {cells[0]: (*map(int, cells[1:6]), Decimal(cells[6])) for cells in _tables()[1]}


def _home(directory: Path) -> Path:
    """The rows as transcripts; a fork's copies keep their uuids."""
    for name, file in FILES.items():
        path = directory / "projects" / "-work" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(_line(one) for one in ROWS if one.transcript == name))
    return directory


def _line(told: Told) -> str:
    return f"{json.dumps(_row(told), separators=(',', ':'))}\n"  # ccusage does not read rows with white space


def _row(told: Told) -> dict[str, object]:
    uuid = f"{'session' if told.message == 'A' else told.transcript}-{told.row}"
    message = {
        "id": f"msg_01{told.message * 6}0123456789abcdef",
        "model": "claude-opus-4-8",
        "role": "assistant",
        "content": [{"type": "text", "text": "x" * 60}],
        "stop_reason": "end_turn" if told.output > 2 else None,
        "usage": {
            "input_tokens": told.input,
            "cache_creation_input_tokens": told.five + told.hour,
            "cache_read_input_tokens": told.read,
            "cache_creation": {"ephemeral_5m_input_tokens": told.five, "ephemeral_1h_input_tokens": told.hour},
            "output_tokens": told.output,
        },
    }
    envelope = {
        "uuid": uuid,
        "sessionId": FORK if told.transcript == "fork" else SESSION,
        "timestamp": f"2026-06-0{1 if told.message == 'A' else 2}T10:00:0{told.row}.000Z",
        "version": "2.1.90",
        "cwd": "/work",
        "isSidechain": told.transcript == "agent",
    }
    reply = {**envelope, "type": "assistant", "message": message, "requestId": f"req_{told.request}"}
    if told.transcript == "agent":
        reply["agentId"] = "a1b2c3d"
    if told.kind == "progress":
        data = {"type": "agent_progress", "agentId": "a1b2c3d", "message": {**reply, "uuid": "agent-1"}}
        return {**envelope, "type": "progress", "data": data}
    return reply


def _best(some: Iterable[Told]) -> Told:
    return max(some, key=lambda one: one.output)


def _grouped(rows: Iterable[Told], key: Callable[[Told], object]) -> list[list[Told]]:
    groups: dict[object, list[Told]] = {}
    for one in rows:
        groups.setdefault(key(one), []).append(one)
    return list(groups.values())


def _summed(rows: Iterable[Told], *, hour: int = 10) -> tuple[object, ...]:
    some = list(rows)
    counts = [sum(column) for column in zip(*(one[5:] for one in some), strict=True)]
    prices = (5, 25, Decimal("6.25"), hour or Decimal("6.25"), Decimal("0.5"))
    amount = sum(count * Decimal(price) for count, price in zip(counts, prices, strict=True)) / 10**6
    return len(some), counts[0], counts[1], counts[2] + counts[3], counts[4], amount


REPLIES = [one for one in ROWS if one.kind == "assistant"]
RULES: dict[str, Callable[[], tuple[object, ...]]] = {
    "every row is a call": lambda: _summed(ROWS),
    "the first row of (message, request) counts": lambda: _summed(
        some[0] for some in _grouped(REPLIES, lambda one: (one.message, one.request))
    ),
    "the best row counts, in each file separately": lambda: _summed(
        _best(some) for some in _grouped(ROWS, lambda one: (one.transcript, one.message))
    ),
    "only the main thread, without agents": lambda: _summed(
        _best(some) for some in _grouped([one for one in REPLIES if one.transcript != "agent"], lambda one: one.message)
    ),
    "the best row, all cache writes at the price for five minutes": lambda: _summed(
        (_best(some) for some in _grouped(ROWS, lambda one: one.message)), hour=0
    ),
}


def test_our_line_is_what_the_ledger_says(tmp_path: Path) -> None:
    """The rows of the page, as a home, are counted as the page says."""
    total = read_ledger(_home(tmp_path)).total
    counted = (total.charges, total.input, total.output, total.cache_write, total.cache_read, total.amount)
    assert counted == ANSWERS["threadline"]


@pytest.mark.parametrize("rule", RULES)
def test_the_other_rules_give_what_the_page_says(rule: str) -> None:
    """Each rule, applied to the rows of the page, gives its line of the table."""
    assert RULES[rule]() == ANSWERS[rule]


def test_every_line_of_the_table_is_held() -> None:
    """No rule is in the table that nothing computes."""
    assert set(ANSWERS) == {*RULES, "threadline", "ccusage 20.0.24 `daily`"}


@pytest.mark.skipif("THREADLINE_CCUSAGE" not in os.environ, reason="name ccusage's program in THREADLINE_CCUSAGE")
def test_ccusage_says_what_the_page_says(tmp_path: Path) -> None:
    """The rival itself gives its line of the table."""
    environment = {**os.environ, "CLAUDE_CONFIG_DIR": str(_home(tmp_path))}
    command = [os.environ["THREADLINE_CCUSAGE"], "daily", "--json", "--offline"]
    said = subprocess.run(command, env=environment, capture_output=True, check=True).stdout  # noqa: S603 - the rival
    totals = json.loads(said)["totals"]
    told = ANSWERS["ccusage 20.0.24 `daily`"]
    names = ("inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens")
    assert tuple(totals[name] for name in names) == told[1:5]
    assert totals["totalCost"] == pytest.approx(float(str(told[5])))


def test_every_key_is_on_the_page() -> None:
    """What charges can be summed by, in the words of the program."""
    for key, meaning in {**KEY_DESCRIPTIONS, **SESSION_KEY_DESCRIPTIONS}.items():
        assert f"| `{key}` | {meaning} |" in PAGE.read_text()
