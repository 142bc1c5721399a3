"""The ledger of homes: what Git cannot keep as a case, and what can be asked of it."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace
from tests.account.made_homes import Row

import threadline
from threadline.account import Ledger, load_rates
from threadline.errors import BadQuery, NotFound
from threadline.model.places import ProblemKind
from threadline.reports import build_ledger

SESSION = "5e551011-0000-4000-8000-000000000001"
OTHER = "5e551011-0000-4000-8000-000000000002"


def _row(number: int = 1, session: str = SESSION, *, usage: dict[str, Any] | None = None, **fields: Any) -> Row:
    model = fields.pop("model", "claude-sonnet-4-5")
    return {
        "type": "assistant",
        "uuid": f"b{number}",
        "sessionId": session,
        "timestamp": f"2026-01-05T09:00:{number:02}.000Z",
        "cwd": "/work/app",
        "version": "2.1.232",
        "message": {
            "id": f"msg_01CaseReplyNumber{number:02}",
            "model": model,
            "stop_reason": "end_turn",
            "usage": usage or {"input_tokens": 10, "output_tokens": 100},
        },
        **fields,
    }


def _write(path: Path, *rows: Row) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _home(top: Path, *rows: Row, folder: str = "-work-app", session: str = SESSION) -> Path:
    _write(top / "projects" / folder / f"{session}.jsonl", *rows)
    return top


def _ledger(*homes: Path) -> Ledger:
    return threadline.ledger(homes, jobs=1)


def test_an_empty_home_has_no_charges(tmp_path: Path) -> None:
    """Nothing was spent, and nothing is said to cost nothing."""
    (tmp_path / "projects").mkdir()
    found = _ledger(tmp_path)
    assert (len(found), found.total.charges, found.total.amount, len(found.by("day"))) == (0, 0, None, 0)
    assert repr(found) == "Ledger(0 charges, 0.00 USD)"


def test_a_home_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    """A home that was named must be there."""
    with pytest.raises(NotFound):
        _ledger(tmp_path / "none")


def test_a_session_that_grows_is_counted_as_it_completes(tmp_path: Path) -> None:
    """A line that is half written is not counted; when the rest arrives, it is."""
    top = _home(tmp_path, _row(1), _row(2))
    (path,) = top.rglob("*.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    assert _ledger(top).total.charges == 1
    path.write_bytes(whole[:-1])
    assert _ledger(top).total.charges == 2
    path.write_bytes(whole)
    assert _ledger(top).total.charges == 2


def test_empty_files_are_no_charges(tmp_path: Path) -> None:
    """A file of nothing, or of line breaks, is a file."""
    top = _home(tmp_path, _row(1))
    (top / f"projects/-work-app/{OTHER}.jsonl").write_bytes(b"")
    (top / "projects/-work-app/5e551011-0000-4000-8000-000000000003.jsonl").write_bytes(b"\n\n\r\n")
    assert (_ledger(top).total.charges, _ledger(top).problems) == (1, ())


def test_a_file_that_may_not_be_read_is_a_problem(tmp_path: Path) -> None:
    """The others are counted, and the ledger names what it could not read."""
    top = _home(_home(tmp_path, _row(1)), _row(2, OTHER), session=OTHER)
    path = top.resolve() / f"projects/-work-app/{OTHER}.jsonl"
    really = os.open

    def refusing(name: str | Path, flags: int) -> int:
        if Path(name) == path:
            raise PermissionError(13, "Permission denied")
        return really(name, flags)

    with patch("os.open", refusing):
        found = _ledger(top)
    assert found.total.charges == 1
    assert [(problem.kind, problem.place.transcript) for problem in found.problems] == [
        (ProblemKind.UNREADABLE, str(path))
    ]
    assert "Permission denied" in found.problems[0].message


def test_a_file_that_is_gone_when_it_is_read_is_a_problem(tmp_path: Path) -> None:
    """Between looking and reading, a session may be deleted."""
    top = _home(_home(tmp_path, _row(1)), _row(2, OTHER), session=OTHER)
    found = threadline.look(top)
    (top / f"projects/-work-app/{OTHER}.jsonl").unlink()
    told = build_ledger([found], load_rates(), jobs=1)
    assert told.total.charges == 1
    assert [problem.kind for problem in told.problems] == [ProblemKind.UNREADABLE]
    assert OTHER in told.problems[0].message


def test_two_homes_that_share_transcripts_through_a_link_count_once(tmp_path: Path) -> None:
    """The same files, seen from two homes, are the same spending; rows without any id, too."""
    bare = _row(2)
    del bare["uuid"], bare["message"]["id"]
    one = _home(tmp_path / "one", _row(1), bare)
    (tmp_path / "two").mkdir()
    (tmp_path / "two/projects").symlink_to(one / "projects")
    for homes in ((one, tmp_path / "two"), (tmp_path / "two", one), (one, one)):
        assert _ledger(*homes).total.charges == 2


def test_a_hard_link_counts_once(tmp_path: Path) -> None:
    """A file under two names is a copy like any other."""
    top = _home(tmp_path, _row(1))
    (path,) = top.rglob("*.jsonl")
    os.link(path, path.with_name(f"{OTHER}.jsonl"))
    assert _ledger(top).total.charges == 1


@pytest.mark.slow
def test_a_line_of_thirty_megabytes_is_counted(tmp_path: Path) -> None:
    """Usage behind thirty megabytes of a tool's input is usage."""
    long = _row(1)
    call = {"type": "tool_use", "id": "t", "name": "Write", "input": "x" * 30_000_000}
    long["message"] = {"content": [call], **long["message"]}
    found = _ledger(_home(tmp_path, long, _row(2)))
    assert sorted((one.place.line, one.input) for one in found) == [(1, 10), (2, 10)]


def test_a_damaged_file_gives_what_is_left_of_it(tmp_path: Path) -> None:
    """Bytes gone from the midst of a file cost the row that they were in, and no other."""
    top = _home(tmp_path, *(_row(number) for number in range(10)))
    (path,) = top.rglob("*.jsonl")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + data[len(data) // 2 + 40 :])
    assert _ledger(top).total.charges == 9


def test_times_of_files_without_any_are_those_of_the_file(tmp_path: Path) -> None:
    """Where no row says a time, the file's own is the best there is, and the charge says so."""
    row = _row(1)
    del row["timestamp"]
    top = _home(tmp_path, row)
    (path,) = top.rglob("*.jsonl")
    os.utime(path, (1_767_603_600, 1_767_603_600))
    (charge,) = _ledger(top)
    assert charge.timestamp == datetime(2026, 1, 5, 9, tzinfo=UTC)
    assert [flag.value for flag in charge.flags] == ["timeless"]


@pytest.mark.parametrize("seconds", [4 * 10**11, -7 * 10**11, -6 * 10**10])
def test_a_file_of_an_impossible_time_is_counted(tmp_path: Path, seconds: int) -> None:
    """A file system may say any time; what was spent is still told, on some day."""
    row = _row(1)
    del row["timestamp"]
    found = threadline.look(_home(tmp_path, row))
    odd = [replace(transcript, mtime_ns=seconds * 10**9) for transcript in found.transcripts]
    told = build_ledger([replace(found, transcripts=tuple(odd))], load_rates(), jobs=1)
    (week,) = told.by("week")
    assert (week.charges, week.keys["week"][4:5]) == (1, "-")


def test_an_advisor_without_a_price_is_told(tmp_path: Path) -> None:
    """No part of a message costs nothing in silence."""
    passes = [{"type": "advisor_message", "model": "glm-5.1", "input_tokens": 5, "output_tokens": 6}]
    usage = {"input_tokens": 10, "output_tokens": 100, "iterations": passes}
    total = _ledger(_home(tmp_path, _row(1, usage=usage))).total
    assert (total.charges, total.amount) == (1, Decimal("0.00153"))
    assert total.unpriced == 1


def test_a_part_of_a_ledger_still_knows_the_copies(tmp_path: Path) -> None:
    """Leaving a session out does not bring back, in another session, what it owns."""
    top = _home(_home(tmp_path, _row(1), _row(2)), _row(2, OTHER), _row(3, OTHER), session=OTHER)
    found = _ledger(top)
    assert found.where(session=SESSION).total.charges + found.where(session=OTHER).total.charges == 3
    assert found.where(lambda charge: charge.output > 100).total.charges == 0
    assert found.where(project="/WORK/").total.charges == 3
    assert found.where(model="SONNET", project="nowhere").total.charges == 0


def test_since_and_until_belong_to_the_time(tmp_path: Path) -> None:
    """A charge at either end is in, one beyond is not."""
    found = _ledger(_home(tmp_path, *(_row(number) for number in (1, 2, 3))))
    second = datetime(2026, 1, 5, 9, 0, 2, tzinfo=UTC)
    assert found.where(since=second, until=second).total.charges == 1
    assert found.where(since=second).total.charges == 2
    assert found.where(until=second - timedelta(milliseconds=1)).total.charges == 1


def test_keys_that_there_are_not_are_refused(tmp_path: Path) -> None:
    """The sentence names those that there are."""
    found = _ledger(_home(tmp_path, _row(1)))
    with pytest.raises(BadQuery, match=r"Unknown key 'colour'. Group by day, week"):
        found.by("colour")
    with pytest.raises(BadQuery, match="twice"):
        found.by("day", "day")


def test_keys_of_ones_own(tmp_path: Path) -> None:
    """A report may be by whatever a charge tells."""
    found = _ledger(_home(tmp_path, _row(1), _row(2)))
    rows = found.by("parity", "model", extra={"parity": lambda charge: str(int(charge.message[-2:]) % 2)})
    assert [(row.keys["parity"], row.charges) for row in rows] == [("0", 1), ("1", 1)]


def test_rows_are_in_the_order_of_time_or_cost(tmp_path: Path) -> None:
    """Days one after the other; models by what they cost, and those without a price last."""
    rows = [
        _row(1, model="glm-5.1", timestamp="2026-01-07T09:00:00.000Z", usage={"output_tokens": 9999}),
        _row(2, model="claude-haiku-4-5", timestamp="2026-01-06T09:00:00.000Z"),
        _row(3, model="claude-opus-4-5", timestamp="2026-01-05T09:00:00.000Z"),
    ]
    found = _ledger(_home(tmp_path, *rows))
    assert [row.keys["day"] for row in found.by("day")] == ["2026-01-05", "2026-01-06", "2026-01-07"]
    assert [row.keys["model"] for row in found.by("model")] == ["claude-opus-4-5", "claude-haiku-4-5", "glm-5.1"]


def test_subtotals_and_records(tmp_path: Path) -> None:
    """Nested rows add up to the rows above them, and are flat records for a program."""
    found = _ledger(_home(tmp_path, _row(1), _row(2, model="claude-opus-4-5")))
    rows = found.by("project", "model")
    (whole,) = rows.subtotals()
    assert (whole.keys, whole.charges, whole.amount) == ({"project": "/work/app"}, 2, found.total.amount)
    record = rows.records()[0]
    assert (record["project"], record["model"], record["charges"]) == ("/work/app", "claude-opus-4-5", 1)
    assert record["amount"] == Decimal("0.00255")


def test_workers_find_what_one_process_finds(tmp_path: Path) -> None:
    """How many processes read changes nothing."""
    for number in range(6):
        session = f"5e551011-0000-4000-8000-{number:012}"
        _home(tmp_path, *(_row(at, session) for at in range(number + 2)), session=session)
    one, two = threadline.ledger(tmp_path, jobs=1), threadline.ledger(tmp_path, jobs=2)
    assert one.total == two.total
    assert one.by("session", "model") == two.by("session", "model")
    assert one.total.charges == 7
