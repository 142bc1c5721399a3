"""Tests of keys: what charges can be grouped by, and the value of each key."""

from __future__ import annotations

from datetime import timedelta, timezone
from pathlib import Path

import pytest
from tests.account.generated_transcripts import GeneratedTranscript, Row, temporary_home

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
    with temporary_home([GeneratedTranscript(SESSION, agent, rows)]) as path:
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
def test_key_values(name: str, value: str) -> None:
    """Each key has its value."""
    (charge,) = _ledger(_row(1, version="2.1.232", gitBranch="main", attributionSkill="review"))
    assert key_function(name, Calendar())(charge) == value


def test_home_key_is_the_path() -> None:
    """The value of `home` is the path."""
    with temporary_home([GeneratedTranscript(SESSION, None, (_row(1),))]) as path:
        (row,) = threadline.ledger(path, jobs=1).by("home")
        assert Path(row.keys["home"]) == path.resolve()


@pytest.mark.parametrize(
    ("name", "value"), [("agent", "a1"), ("agent-type", "explorer"), ("part", "agents"), ("session", SESSION)]
)
def test_key_values_of_an_agents_charge(name: str, value: str) -> None:
    """An agent's charge belongs to the session and to the agent."""
    (charge,) = _ledger(_row(1, isSidechain=True, agentId="a1", attributionAgent="explorer"), agent="a1")
    assert key_function(name, Calendar())(charge) == value


@pytest.mark.parametrize("name", ["skill", "branch", "version", "model"])
def test_missing_values_have_a_name(name: str) -> None:
    """Every row of a report has a name."""
    row = _row(1)
    row["message"]["model"] = None
    (charge,) = _ledger(row)
    assert key_function(name, Calendar())(charge) == NONE


def test_side_agents_are_a_separate_part() -> None:
    """What Claude Code spent for itself is neither `main` nor `agents`."""
    (charge,) = _ledger(_row(1, isSidechain=True), agent="acompact-0123456789abcdef")
    assert key_function("part", Calendar())(charge) == "side agents"


def test_every_key_except_tool_has_a_function() -> None:
    """The table of descriptions lists exactly the keys."""
    (charge,) = _ledger(_row(1))
    for name in KEY_DESCRIPTIONS:
        if name != "tool":
            assert isinstance(key_function(name, Calendar())(charge), str)
    with pytest.raises(KeyError):
        key_function("colour", Calendar())
    assert set(TIME_KEYS) <= set(KEY_DESCRIPTIONS)


def test_times_are_in_the_requested_zone() -> None:
    """Half past eleven at night in UTC is the next day further east."""
    ledger = _ledger(_row(1))
    east = timezone(timedelta(hours=1))
    assert [row.keys for row in ledger.by("day", "hour", zone=east)] == [{"day": "2026-01-06", "hour": "00:00"}]


def test_tools_share_a_charge() -> None:
    """A tool that is called twice has two shares, and the remainder is not lost."""
    ledger = _ledger(_row(1, "Bash", "Read", "Bash"), _row(2))
    assert sorted(map(tool_shares, ledger)) == [(NO_CALL,), ("Bash", "Read", "Bash")]
    rows = {row.keys["tool"]: row for row in ledger.by("tool")}
    shares = {tool: (row.input, row.output) for tool, row in rows.items()}
    assert shares == {"Bash": (7, 5), "Read": (3, 2), NO_CALL: (10, 7)}
    assert ledger.by("tool").total == ledger.total


def test_message_in_two_transcripts_has_the_calls_of_both() -> None:
    """Each transcript has a row of the message with one call."""
    first, second = _row(1, "Bash"), _row(1, uuid="b2")
    second["message"]["content"] = [{"type": "tool_use", "id": "t99", "name": "Read"}]
    with temporary_home(
        [GeneratedTranscript(SESSION, None, (first,)), GeneratedTranscript(SESSION, None, (second,), "-work-moved")]
    ) as path:
        (charge,) = threadline.ledger(path, jobs=1)
    assert sorted(charge.calls) == ["Bash", "Read"]


def test_repeated_call_ids_belong_to_their_messages() -> None:
    """A gateway numbers the calls of each reply from 0. Every reply still has its own."""
    first, second = _row(1, "Bash"), _row(2, "Read")
    for row in (first, second):
        row["message"]["content"][0]["id"] = "call_0"
    assert sorted(charge.calls for charge in _ledger(first, second)) == [("Bash",), ("Read",)]
