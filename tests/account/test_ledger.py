"""Tests of the ledger of homes that Git cannot store as cases, and of its queries."""

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
from tests.account.generated_transcripts import Row

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


def test_empty_home_has_no_charges(tmp_path: Path) -> None:
    """The amount is None, not zero."""
    (tmp_path / "projects").mkdir()
    ledger = _ledger(tmp_path)
    assert (len(ledger), ledger.total.charges, ledger.total.amount, len(ledger.by("day"))) == (0, 0, None, 0)
    assert repr(ledger) == "Ledger(0 charges, 0.00 USD)"


def test_missing_home_is_an_error(tmp_path: Path) -> None:
    """A home that the caller names must exist."""
    with pytest.raises(NotFound):
        _ledger(tmp_path / "none")


def test_growing_session_is_counted_line_by_line(tmp_path: Path) -> None:
    """A half-written line is not counted until the rest arrives."""
    top = _home(tmp_path, _row(1), _row(2))
    (path,) = top.rglob("*.jsonl")
    data = path.read_bytes()
    path.write_bytes(data[:-30])
    assert _ledger(top).total.charges == 1
    path.write_bytes(data[:-1])
    assert _ledger(top).total.charges == 2
    path.write_bytes(data)
    assert _ledger(top).total.charges == 2


def test_empty_files_have_no_charges(tmp_path: Path) -> None:
    """A file that is empty, or has only line breaks, is valid."""
    top = _home(tmp_path, _row(1))
    (top / f"projects/-work-app/{OTHER}.jsonl").write_bytes(b"")
    (top / "projects/-work-app/5e551011-0000-4000-8000-000000000003.jsonl").write_bytes(b"\n\n\r\n")
    assert (_ledger(top).total.charges, _ledger(top).problems) == (1, ())


def test_unreadable_file_is_a_problem(tmp_path: Path) -> None:
    """The others are counted, and the ledger names the file."""
    top = _home(_home(tmp_path, _row(1)), _row(2, OTHER), session=OTHER)
    path = top.resolve() / f"projects/-work-app/{OTHER}.jsonl"
    real_open = os.open

    def open_or_refuse(name: str | Path, flags: int) -> int:
        if Path(name) == path:
            raise PermissionError(13, "Permission denied")
        return real_open(name, flags)

    with patch("os.open", open_or_refuse):
        ledger = _ledger(top)
    assert ledger.total.charges == 1
    assert [(problem.kind, problem.place.transcript) for problem in ledger.problems] == [
        (ProblemKind.UNREADABLE, str(path))
    ]
    assert "Permission denied" in ledger.problems[0].message


def test_file_deleted_before_reading_is_a_problem(tmp_path: Path) -> None:
    """A session may be deleted between listing and reading."""
    top = _home(_home(tmp_path, _row(1)), _row(2, OTHER), session=OTHER)
    listing = threadline.look(top)
    (top / f"projects/-work-app/{OTHER}.jsonl").unlink()
    ledger = build_ledger([listing], load_rates(), jobs=1)
    assert ledger.total.charges == 1
    assert [problem.kind for problem in ledger.problems] == [ProblemKind.UNREADABLE]
    assert OTHER in ledger.problems[0].message


def test_homes_that_share_a_linked_folder_count_once(tmp_path: Path) -> None:
    """The same files in two homes are counted once, even rows without any id."""
    bare = _row(2)
    del bare["uuid"], bare["message"]["id"]
    home = _home(tmp_path / "one", _row(1), bare)
    (tmp_path / "two").mkdir()
    (tmp_path / "two/projects").symlink_to(home / "projects")
    for homes in ((home, tmp_path / "two"), (tmp_path / "two", home), (home, home)):
        assert _ledger(*homes).total.charges == 2


def test_hard_link_counts_once(tmp_path: Path) -> None:
    """A file with two names is a copy like any other."""
    top = _home(tmp_path, _row(1))
    (path,) = top.rglob("*.jsonl")
    os.link(path, path.with_name(f"{OTHER}.jsonl"))
    assert _ledger(top).total.charges == 1


@pytest.mark.slow
def test_line_of_thirty_megabytes_is_counted(tmp_path: Path) -> None:
    """Usage after thirty megabytes of tool input is counted."""
    long = _row(1)
    call = {"type": "tool_use", "id": "t", "name": "Write", "input": "x" * 30_000_000}
    long["message"] = {"content": [call], **long["message"]}
    ledger = _ledger(_home(tmp_path, long, _row(2)))
    assert sorted((charge.place.line, charge.input) for charge in ledger) == [(1, 10), (2, 10)]


def test_damage_costs_only_the_damaged_row(tmp_path: Path) -> None:
    """If bytes are missing from the middle of a file, only the row that contained them is lost."""
    top = _home(tmp_path, *(_row(number) for number in range(10)))
    (path,) = top.rglob("*.jsonl")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + data[len(data) // 2 + 40 :])
    assert _ledger(top).total.charges == 9


def test_rows_without_times_get_the_files_mtime(tmp_path: Path) -> None:
    """The charge is flagged."""
    row = _row(1)
    del row["timestamp"]
    top = _home(tmp_path, row)
    (path,) = top.rglob("*.jsonl")
    os.utime(path, (1_767_603_600, 1_767_603_600))
    (charge,) = _ledger(top)
    assert charge.timestamp == datetime(2026, 1, 5, 9, tzinfo=UTC)
    assert [flag.value for flag in charge.flags] == ["timeless"]


@pytest.mark.parametrize("seconds", [4 * 10**11, -7 * 10**11, -6 * 10**10])
def test_file_with_an_impossible_mtime_is_counted(tmp_path: Path, seconds: int) -> None:
    """A file system may report any time. The charges still have a day."""
    row = _row(1)
    del row["timestamp"]
    listing = threadline.look(_home(tmp_path, row))
    odd = [replace(transcript, mtime_ns=seconds * 10**9) for transcript in listing.transcripts]
    ledger = build_ledger([replace(listing, transcripts=tuple(odd))], load_rates(), jobs=1)
    (week,) = ledger.by("week")
    assert (week.charges, week.keys["week"][4:5]) == (1, "-")


def test_unpriced_advisor_pass_is_counted_as_unpriced(tmp_path: Path) -> None:
    """No part of a message is silently free."""
    passes = [{"type": "advisor_message", "model": "glm-5.1", "input_tokens": 5, "output_tokens": 6}]
    usage = {"input_tokens": 10, "output_tokens": 100, "iterations": passes}
    total = _ledger(_home(tmp_path, _row(1, usage=usage))).total
    assert (total.charges, total.amount) == (1, Decimal("0.00153"))
    assert total.unpriced == 1


def test_filtered_ledger_does_not_count_copies(tmp_path: Path) -> None:
    """Filtering out a session does not move its charges to a session with copies."""
    top = _home(_home(tmp_path, _row(1), _row(2)), _row(2, OTHER), _row(3, OTHER), session=OTHER)
    ledger = _ledger(top)
    assert ledger.where(session=SESSION).total.charges + ledger.where(session=OTHER).total.charges == 3
    assert ledger.where(lambda charge: charge.output > 100).total.charges == 0
    assert ledger.where(project="/WORK/").total.charges == 3
    assert ledger.where(model="SONNET", project="nowhere").total.charges == 0


def test_since_and_until_are_inclusive(tmp_path: Path) -> None:
    """A charge at either end is included."""
    ledger = _ledger(_home(tmp_path, *(_row(number) for number in (1, 2, 3))))
    second = datetime(2026, 1, 5, 9, 0, 2, tzinfo=UTC)
    assert ledger.where(since=second, until=second).total.charges == 1
    assert ledger.where(since=second).total.charges == 2
    assert ledger.where(until=second - timedelta(milliseconds=1)).total.charges == 1


def test_unknown_keys_are_refused(tmp_path: Path) -> None:
    """The message lists the valid keys."""
    ledger = _ledger(_home(tmp_path, _row(1)))
    with pytest.raises(BadQuery, match=r"Unknown key 'colour'. Group by day, week"):
        ledger.by("colour")
    with pytest.raises(BadQuery, match="twice"):
        ledger.by("day", "day")


def test_custom_keys(tmp_path: Path) -> None:
    """A report may be grouped by any function of a charge."""
    ledger = _ledger(_home(tmp_path, _row(1), _row(2)))
    rows = ledger.by("parity", "model", extra={"parity": lambda charge: str(int(charge.message[-2:]) % 2)})
    assert [(row.keys["parity"], row.charges) for row in rows] == [("0", 1), ("1", 1)]


def test_rows_are_sorted_by_time_or_cost(tmp_path: Path) -> None:
    """Days are in order. Models are sorted by cost, those without a price last."""
    rows = [
        _row(1, model="glm-5.1", timestamp="2026-01-07T09:00:00.000Z", usage={"output_tokens": 9999}),
        _row(2, model="claude-haiku-4-5", timestamp="2026-01-06T09:00:00.000Z"),
        _row(3, model="claude-opus-4-5", timestamp="2026-01-05T09:00:00.000Z"),
    ]
    ledger = _ledger(_home(tmp_path, *rows))
    assert [row.keys["day"] for row in ledger.by("day")] == ["2026-01-05", "2026-01-06", "2026-01-07"]
    assert [row.keys["model"] for row in ledger.by("model")] == ["claude-opus-4-5", "claude-haiku-4-5", "glm-5.1"]


def test_subtotals_and_records(tmp_path: Path) -> None:
    """Nested rows add up to the rows above them, and are flat records for programs."""
    ledger = _ledger(_home(tmp_path, _row(1), _row(2, model="claude-opus-4-5")))
    rows = ledger.by("project", "model")
    (subtotal,) = rows.subtotals()
    assert (subtotal.keys, subtotal.charges, subtotal.amount) == ({"project": "/work/app"}, 2, ledger.total.amount)
    record = rows.records()[0]
    assert (record["project"], record["model"], record["charges"]) == ("/work/app", "claude-opus-4-5", 1)
    assert record["amount"] == Decimal("0.00255")


def test_number_of_workers_changes_nothing(tmp_path: Path) -> None:
    """One process and two give the same ledger."""
    for number in range(6):
        session = f"5e551011-0000-4000-8000-{number:012}"
        _home(tmp_path, *(_row(at, session) for at in range(number + 2)), session=session)
    single, parallel = threadline.ledger(tmp_path, jobs=1), threadline.ledger(tmp_path, jobs=2)
    assert single.total == parallel.total
    assert single.by("session", "model") == parallel.by("session", "model")
    assert single.total.charges == 7
