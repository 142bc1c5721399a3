"""The status of a keep: what is kept, what is at risk, and when it is deleted."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from tests.keep.stores import HERE, THERE, keep_home, lines, session_id, transcript_path, write_home

from threadline.find import homes
from threadline.keep import Catalogue, Status, Store, forget_session, read_retention_period, read_status, stored_size
from threadline.keep.retention import DEFAULT_DAYS, is_cleaned_up
from threadline.keep.sessions import mtime_to_datetime


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty keep."""
    return Store.make(tmp_path / "keep")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with three sessions."""
    return write_home(tmp_path / "home", {transcript_path(number): lines(number, 4) for number in (1, 2, 3)})


def current_status(store: Store, home: Path) -> Status:
    """The status of the keep for this home."""
    return read_status(Catalogue(store), homes(os.fspath(home)), HERE.id)


def test_nothing_is_at_risk_after_a_run(store: Store, home: Path) -> None:
    """The figures are those of the files."""
    keep_home(store, home)
    status = current_status(store, home)
    size = sum(len(lines(number, 4)) for number in (1, 2, 3))
    assert (status.sessions, status.only, status.files, status.versions, status.bytes, status.at_risk) == (
        3,
        0,
        3,
        3,
        size,
        (),
    )
    assert status.stored == stored_size(store.folder)
    assert status.stored == sum(path.stat().st_size for path in store.folder.rglob("*") if path.is_file())
    (machine,) = status.machines
    assert (machine.id, machine.here, machine.sessions, machine.bytes, machine.runs) == (HERE.id, True, 3, size, 1)
    (live,) = status.homes
    assert (live.sessions, live.files, live.bytes) == (3, 3, size)


def test_new_grown_and_changed_sessions_are_at_risk(store: Store, home: Path) -> None:
    """With the bytes not kept and the exact deletion time, 30 days after the last write, soonest first."""
    keep_home(store, home)
    beside = f"file-history/{session_id(3)}/0123456789abcdef@v1"
    write_home(
        home,
        {
            transcript_path(1): lines(1, 4) + b"{}\n",
            transcript_path(2): lines(7, 1),
            transcript_path(4): lines(4, 2),
            beside: b"was",
            "history.jsonl": b"{}\n",
        },
    )
    now = time.time()
    for days, path in enumerate((transcript_path(4), transcript_path(1), transcript_path(2), beside)):
        os.utime(home / path, (now - 40 * 86400 + 10 * 86400 * days,) * 2)
    status = current_status(store, home)
    rows = [(risk.session, risk.state, risk.files, risk.bytes) for risk in status.at_risk]
    assert rows == [
        (session_id(4), "new", 1, len(lines(4, 2))),
        (session_id(1), "grown", 1, 3),
        (session_id(2), "changed", 1, len(lines(7, 1))),
        (session_id(3), "changed", 1, 3),
        (None, "new", 1, 3),
    ]
    for risk in status.at_risk[:-1]:
        written = mtime_to_datetime((home / risk.path).stat().st_mtime_ns)
        assert risk.modified == written
        assert risk.deleted == written + timedelta(days=DEFAULT_DAYS)
    assert status.at_risk[-1].deleted is None  # Claude Code never deletes the history


def test_deleted_session_is_kept_only_and_not_at_risk(store: Store, home: Path) -> None:
    """Before and after the next run."""
    keep_home(store, home)
    (home / transcript_path(1)).unlink()
    assert (current_status(store, home).only, current_status(store, home).at_risk) == (1, ())
    keep_home(store, home)
    assert (current_status(store, home).sessions, current_status(store, home).only) == (3, 1)


def test_files_of_another_machine_do_not_count(store: Store, home: Path) -> None:
    """The same paths on two machines differ: this machine's are at risk until it keeps them."""
    keep_home(store, home, THERE)
    status = current_status(store, home)
    assert len(status.at_risk) == 3
    keep_home(store, home, HERE)
    status = current_status(store, home)
    assert (status.at_risk, status.sessions) == ((), 6)
    assert {(machine.id, machine.here) for machine in status.machines} == {(HERE.id, True), (THERE.id, False)}


def test_forgotten_session_is_not_at_risk(store: Store, home: Path) -> None:
    """It should not be kept, so it is not reported."""
    keep_home(store, home)
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), (), "a mistake")
    status = current_status(store, home)
    assert (status.at_risk, status.forgotten, status.sessions) == ((), 1, 2)


@pytest.mark.parametrize(
    ("text", "days", "is_set", "invalid_value"),
    [
        (None, 30, False, None),
        ("{}", 30, False, None),
        ('{"cleanupPeriodDays": 7}', 7, True, None),
        ('\ufeff{"cleanupPeriodDays": 90, "env": {"A": "b"}}\n', 90, True, None),
        ('{"cleanupPeriodDays": 0}', 0, True, None),
        ('{"cleanupPeriodDays": 14.9}', 14, True, None),
        ('{"cleanupPeriodDays": -1}', 30, False, "-1"),
        ('{"cleanupPeriodDays": "30"}', 30, False, "30"),
        ('{"cleanupPeriodDays": true}', 30, False, "True"),
        ('{"cleanupPeriodDays": null}', 30, False, None),
        ("[1]", 30, False, None),
        ("not JSON", 30, False, None),
    ],
)
def test_retention_period_from_settings(
    home: Path, text: str | None, days: int, is_set: bool, invalid_value: str | None
) -> None:
    """A number of days, 0 or more. Anything else counts as not set, and is reported."""
    if text is not None:
        (home / "settings.json").write_text(text)
    period = read_retention_period(home)
    assert (period.days, period.is_set, period.invalid_setting) == (days, is_set, invalid_value)


@pytest.mark.parametrize("days", [99_999, 10**9, 1e300])
def test_very_long_period_means_forever(home: Path, days: float) -> None:
    """Nothing is ever deleted, and no date overflows."""
    (home / "settings.json").write_text(json.dumps({"cleanupPeriodDays": days}))
    assert read_retention_period(home).is_forever
    assert read_retention_period(home).ends(time.time_ns()) is None


def test_extreme_mtimes(store: Store, home: Path) -> None:
    """A file from before 1970, or from the far future, is listed."""
    keep_home(store, home)
    for number, when in ((1, -(10**9)), (2, 2**33)):
        os.utime(home / transcript_path(number), (when, when))
    assert {risk.session for risk in current_status(store, home).at_risk} == {session_id(1), session_id(2)}


def test_settings_fifo_does_not_block(home: Path) -> None:
    """A settings file that is not a regular file is ignored."""
    os.mkfifo(home / "settings.json")
    assert read_retention_period(home).days == DEFAULT_DAYS


@pytest.mark.parametrize(
    ("path", "is_deleted"),
    [
        (transcript_path(1), True),
        (f"projects/-work/{session_id(1)}/tool-results/a.txt", True),
        ("plans/a.md", True),
        (f"tasks/{session_id(1)}/1.json", True),
        ("projects/-work/memory/MEMORY.md", False),
        ("projects/-work/sessions-index.json", False),
        ("history.jsonl", False),
        ("stats-cache.json", False),
        (f"todos/{session_id(1)}-agent-{session_id(1)}.json", False),
    ],
)
def test_which_files_claude_code_deletes(path: str, is_deleted: bool) -> None:
    """Claude Code deletes transcripts and the files next to them, but not histories and memories."""
    assert is_cleaned_up(path) is is_deleted
