"""Keys: what charges can be grouped by, and what each takes of a charge."""

from __future__ import annotations

from datetime import timedelta, timezone
from pathlib import Path

import pytest
from tests.account.made_homes import Made, Row, home

import threadline
from threadline.account import KEY_DESCRIPTIONS, TIME_KEYS, Calendar, Ledger
from threadline.account.totals import key_function, tool_shares
from threadline.model.ledger import MAIN, NO_CALL, NONE

SESSION = "5e551011-0000-4000-8000-000000000001"


def _row(number: int, *tools: str, **fields: object) -> Row:
    return {
        "type": "assistant",
        "uuid": f"b{number}",
        "sessionId": SESSION,
        "timestamp": f"2026-01-05T23:30:0{number}.000Z",
        "cwd": "/work/app",
        "message": {
            "id": f"msg_01CaseReplyNumber0{number}",
            "model": "claude-sonnet-4-5",
            "stop_reason": "end_turn",
            "content": [{"type": "tool_use", "id": f"t{number}{at}", "name": tool} for at, tool in enumerate(tools)],
            "usage": {"input_tokens": 10, "output_tokens": 7},
        },
        **fields,
    }


def _ledger(*rows: Row, agent: str | None = None) -> Ledger:
    with home([Made(SESSION, agent, rows)]) as path:
        return threadline.ledger(path, jobs=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("day", "2026-01-05"),
        ("week", "2026-01-05"),
        ("month", "2026-01"),
        ("hour", "23:00"),
        ("session", SESSION),
        ("project", "/work/app"),
        ("model", "claude-sonnet-4-5"),
        ("agent", MAIN),
        ("agent-type", MAIN),
        ("skill", "review"),
        ("branch", "main"),
        ("version", "2.1.232"),
        ("part", MAIN),
    ],
)
def test_what_a_key_takes(name: str, value: str) -> None:
    """Each key takes what it says."""
    (charge,) = _ledger(_row(1, version="2.1.232", gitBranch="main", attributionSkill="review"))
    assert key_function(name, Calendar())(charge) == value


def test_the_home_is_the_directory() -> None:
    """A home is told by its path."""
    with home([Made(SESSION, None, (_row(1),))]) as path:
        (row,) = threadline.ledger(path, jobs=1).by("home")
        assert Path(row.keys["home"]) == path.resolve()


@pytest.mark.parametrize(
    ("name", "value"), [("agent", "a1"), ("agent-type", "explorer"), ("part", "agents"), ("session", SESSION)]
)
def test_an_agents_charge(name: str, value: str) -> None:
    """An agent's charge is its session's, and its own."""
    (charge,) = _ledger(_row(1, isSidechain=True, agentId="a1", attributionAgent="explorer"), agent="a1")
    assert key_function(name, Calendar())(charge) == value


@pytest.mark.parametrize("name", ["skill", "branch", "version", "model"])
def test_what_is_not_said_has_a_name(name: str) -> None:
    """No row of a report is without a name."""
    row = _row(1)
    row["message"]["model"] = None
    (charge,) = _ledger(row)
    assert key_function(name, Calendar())(charge) == NONE


def test_a_side_agents_charge_is_a_part_of_its_own() -> None:
    """What the program spent for itself is neither main nor agents."""
    (charge,) = _ledger(_row(1, isSidechain=True), agent="acompact-0123456789abcdef")
    assert key_function("part", Calendar())(charge) == "side agents"


def test_every_key_but_tool_has_a_function() -> None:
    """The table of meanings is the table of keys."""
    (charge,) = _ledger(_row(1))
    for name in KEY_DESCRIPTIONS:
        if name != "tool":
            assert isinstance(key_function(name, Calendar())(charge), str)
    with pytest.raises(KeyError):
        key_function("colour", Calendar())
    assert set(TIME_KEYS) <= set(KEY_DESCRIPTIONS)


def test_times_are_in_the_zone_of_the_reader() -> None:
    """Half past eleven at night in UTC is tomorrow further east."""
    found = _ledger(_row(1))
    east = timezone(timedelta(hours=1))
    assert [row.keys for row in found.by("day", "hour", zone=east)] == [{"day": "2026-01-06", "hour": "00:00"}]


def test_calls_share_a_charge() -> None:
    """A tool that is called twice has two shares, and what does not divide is not lost."""
    found = _ledger(_row(1, "Bash", "Read", "Bash"), _row(2))
    assert sorted(map(tool_shares, found)) == [(NO_CALL,), ("Bash", "Read", "Bash")]
    rows = {row.keys["tool"]: row for row in found.by("tool")}
    told = {tool: (row.input, row.output) for tool, row in rows.items()}
    assert told == {"Bash": (7, 5), "Read": (3, 2), NO_CALL: (10, 7)}
    assert found.by("tool").total == found.total


def test_calls_of_a_message_that_lies_in_parts_are_all_there() -> None:
    """Rows of one message in two transcripts hold a call each: the message makes both."""
    one, other = _row(1, "Bash"), _row(1, uuid="b2")
    other["message"]["content"] = [{"type": "tool_use", "id": "t99", "name": "Read"}]
    with home([Made(SESSION, None, (one,)), Made(SESSION, None, (other,), "-work-moved")]) as path:
        (charge,) = threadline.ledger(path, jobs=1)
    assert sorted(charge.calls) == ["Bash", "Read"]


def test_ids_of_calls_that_repeat_are_calls_of_their_messages() -> None:
    """A gateway numbers the calls of each reply from 0: every reply still has its own."""
    first, second = _row(1, "Bash"), _row(2, "Read")
    for row in (first, second):
        row["message"]["content"][0]["id"] = "call_0"
    assert sorted(charge.calls for charge in _ledger(first, second)) == [("Bash",), ("Read",)]
