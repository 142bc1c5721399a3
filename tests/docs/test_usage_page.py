"""The worked example of docs/usage.md: its rows, written as a home, give the results in its table."""

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


class ExampleRow(NamedTuple):
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


def example_tables() -> list[list[list[str]]]:
    """The tables of the worked example, as cells."""
    example = PAGE.read_text().split("## Worked example")[1]
    tables = re.findall(r"(?:^\|.*\n)+", example, re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines()[2:]] for table in tables
    ]


ROWS = [
    ExampleRow(cells[0], int(cells[1]), cells[2], cells[3], cells[4], *map(int, cells[5:]))
    for cells in example_tables()[0]
]
RESULTS = {cells[0]: (*map(int, cells[1:6]), Decimal(cells[6])) for cells in example_tables()[1]}


def write_home(directory: Path) -> Path:
    """The rows as transcripts. A fork's copies keep their uuids."""
    for name, file in FILES.items():
        path = directory / "projects" / "-work" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json_line(row) for row in ROWS if row.transcript == name))
    return directory


def json_line(row: ExampleRow) -> str:
    """The row as a line of a transcript."""
    return f"{json.dumps(transcript_row(row), separators=(',', ':'))}\n"  # ccusage does not read rows with white space


def transcript_row(row: ExampleRow) -> dict[str, object]:
    """The row as a JSON object of a transcript."""
    uuid = f"{'session' if row.message == 'A' else row.transcript}-{row.row}"
    message = {
        "id": f"msg_01{row.message * 6}0123456789abcdef",
        "model": "claude-opus-4-8",
        "role": "assistant",
        "content": [{"type": "text", "text": "x" * 60}],
        "stop_reason": "end_turn" if row.output > 2 else None,
        "usage": {
            "input_tokens": row.input,
            "cache_creation_input_tokens": row.five + row.hour,
            "cache_read_input_tokens": row.read,
            "cache_creation": {"ephemeral_5m_input_tokens": row.five, "ephemeral_1h_input_tokens": row.hour},
            "output_tokens": row.output,
        },
    }
    envelope = {
        "uuid": uuid,
        "sessionId": FORK if row.transcript == "fork" else SESSION,
        "timestamp": f"2026-06-0{1 if row.message == 'A' else 2}T10:00:0{row.row}.000Z",
        "version": "2.1.90",
        "cwd": "/work",
        "isSidechain": row.transcript == "agent",
    }
    reply = {**envelope, "type": "assistant", "message": message, "requestId": f"req_{row.request}"}
    if row.transcript == "agent":
        reply["agentId"] = "a1b2c3d"
    if row.kind == "progress":
        data = {"type": "agent_progress", "agentId": "a1b2c3d", "message": {**reply, "uuid": "agent-1"}}
        return {**envelope, "type": "progress", "data": data}
    return reply


def most_complete(rows: Iterable[ExampleRow]) -> ExampleRow:
    """The row with the most output."""
    return max(rows, key=lambda row: row.output)


def group_by(rows: Iterable[ExampleRow], key: Callable[[ExampleRow], object]) -> list[list[ExampleRow]]:
    """The rows, grouped by a key."""
    groups: dict[object, list[ExampleRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


def add_up(rows: Iterable[ExampleRow], *, hour: int = 10) -> tuple[object, ...]:
    """The number of rows, their token counts and amount."""
    counted = list(rows)
    counts = [sum(column) for column in zip(*(row[5:] for row in counted), strict=True)]
    prices = (5, 25, Decimal("6.25"), hour or Decimal("6.25"), Decimal("0.5"))
    amount = sum(count * Decimal(price) for count, price in zip(counts, prices, strict=True)) / 10**6
    return len(counted), counts[0], counts[1], counts[2] + counts[3], counts[4], amount


REPLIES = [row for row in ROWS if row.kind == "assistant"]
RULES: dict[str, Callable[[], tuple[object, ...]]] = {
    "every row is a call": lambda: add_up(ROWS),
    "the first row of (message, request) counts": lambda: add_up(
        rows[0] for rows in group_by(REPLIES, lambda row: (row.message, row.request))
    ),
    "the best row counts, in each file separately": lambda: add_up(
        most_complete(rows) for rows in group_by(ROWS, lambda row: (row.transcript, row.message))
    ),
    "only the main thread, without agents": lambda: add_up(
        most_complete(rows)
        for rows in group_by([row for row in REPLIES if row.transcript != "agent"], lambda row: row.message)
    ),
    "the best row, all cache writes at the price for five minutes": lambda: add_up(
        (most_complete(rows) for rows in group_by(ROWS, lambda row: row.message)), hour=0
    ),
}


def test_our_result_equals_the_ledger(tmp_path: Path) -> None:
    """The rows of the page, as a home, are counted as the page says."""
    total = read_ledger(write_home(tmp_path)).total
    counted = (total.charges, total.input, total.output, total.cache_write, total.cache_read, total.amount)
    assert counted == RESULTS["threadline"]


@pytest.mark.parametrize("rule", RULES)
def test_other_rules_give_the_results_of_the_page(rule: str) -> None:
    """Each rule, applied to the rows of the page, gives its line of the table."""
    assert RULES[rule]() == RESULTS[rule]


def test_every_line_of_the_table_is_tested() -> None:
    """Every rule in the table is computed."""
    assert set(RESULTS) == {*RULES, "threadline", "ccusage 20.0.24 `daily`"}


@pytest.mark.skipif("THREADLINE_CCUSAGE" not in os.environ, reason="name ccusage's program in THREADLINE_CCUSAGE")
def test_ccusage_gives_the_result_of_the_page(tmp_path: Path) -> None:
    """The program `ccusage` gives its line of the table."""
    environment = {**os.environ, "CLAUDE_CONFIG_DIR": str(write_home(tmp_path))}
    command = [os.environ["THREADLINE_CCUSAGE"], "daily", "--json", "--offline"]
    output = subprocess.run(command, env=environment, capture_output=True, check=True).stdout  # noqa: S603 - the rival
    totals = json.loads(output)["totals"]
    expected = RESULTS["ccusage 20.0.24 `daily`"]
    names = ("inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens")
    assert tuple(totals[name] for name in names) == expected[1:5]
    assert totals["totalCost"] == pytest.approx(float(str(expected[5])))


def test_every_key_is_documented() -> None:
    """The page lists the keys with the program's descriptions."""
    for key, meaning in {**KEY_DESCRIPTIONS, **SESSION_KEY_DESCRIPTIONS}.items():
        assert f"| `{key}` | {meaning} |" in PAGE.read_text()
