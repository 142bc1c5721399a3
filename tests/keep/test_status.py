"""The status of a keep: what is kept, what is at risk, and when it is deleted."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from tests.keep.stores import HERE, THERE, home_with, kept, lines, session_id, transcript

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
    return home_with(tmp_path / "home", {transcript(number): lines(number, 4) for number in (1, 2, 3)})


def _status(store: Store, home: Path) -> Status:
    return read_status(Catalogue(store), homes(os.fspath(home)), HERE.id)


def test_what_is_kept_as_it_stands_is_not_at_risk(store: Store, home: Path) -> None:
    """Figures are those of the files; after a run nothing is at risk."""
    kept(store, home)
    told = _status(store, home)
    size = sum(len(lines(number, 4)) for number in (1, 2, 3))
    assert (told.sessions, told.only, told.files, told.versions, told.bytes, told.at_risk) == (3, 0, 3, 3, size, ())
    assert told.stored == stored_size(store.folder)
    assert told.stored == sum(path.stat().st_size for path in store.folder.rglob("*") if path.is_file())
    (machine,) = told.machines
    assert (machine.id, machine.here, machine.sessions, machine.bytes, machine.runs) == (HERE.id, True, 3, size, 1)
    (living,) = told.homes
    assert (living.sessions, living.files, living.bytes) == (3, 3, size)


def test_what_is_new_grew_or_changed_is_at_risk_and_what_is_deleted_first_comes_first(store: Store, home: Path) -> None:
    """Each with how much of it is not kept, and when it is deleted: 30 days after it was written, to the second."""
    kept(store, home)
    beside = f"file-history/{session_id(3)}/0123456789abcdef@v1"
    home_with(
        home,
        {
            transcript(1): lines(1, 4) + b"{}\n",
            transcript(2): lines(7, 1),
            transcript(4): lines(4, 2),
            beside: b"was",
            "history.jsonl": b"{}\n",
        },
    )
    now = time.time()
    for days, path in enumerate((transcript(4), transcript(1), transcript(2), beside)):
        os.utime(home / path, (now - 40 * 86400 + 10 * 86400 * days,) * 2)
    told = _status(store, home)
    seen = [(one.session, one.state, one.files, one.bytes) for one in told.at_risk]
    assert seen == [
        (session_id(4), "new", 1, len(lines(4, 2))),
        (session_id(1), "grown", 1, 3),
        (session_id(2), "changed", 1, len(lines(7, 1))),
        (session_id(3), "changed", 1, 3),
        (None, "new", 1, 3),
    ]
    for one in told.at_risk[:-1]:
        written = mtime_to_datetime((home / one.path).stat().st_mtime_ns)
        assert one.modified == written
        assert one.deleted == written + timedelta(days=DEFAULT_DAYS)
    assert told.at_risk[-1].deleted is None  # Claude Code never deletes the history


def test_what_was_deleted_is_kept_only_and_at_no_risk(store: Store, home: Path) -> None:
    """Before the next run as well as after it."""
    kept(store, home)
    (home / transcript(1)).unlink()
    assert (_status(store, home).only, _status(store, home).at_risk) == (1, ())
    kept(store, home)
    assert (_status(store, home).sessions, _status(store, home).only) == (3, 1)


def test_what_another_machine_kept_does_not_save_what_is_here(store: Store, home: Path) -> None:
    """The same paths of two machines are two things: those of this one are at risk until it keeps them."""
    kept(store, home, THERE)
    told = _status(store, home)
    assert len(told.at_risk) == 3
    kept(store, home, HERE)
    told = _status(store, home)
    assert (told.at_risk, told.sessions) == ((), 6)
    assert {(machine.id, machine.here) for machine in told.machines} == {(HERE.id, True), (THERE.id, False)}


def test_what_was_forgotten_is_not_at_risk(store: Store, home: Path) -> None:
    """It is not to be kept: nobody is told to."""
    kept(store, home)
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(1), (), "a mistake")
    told = _status(store, home)
    assert (told.at_risk, told.forgotten, told.sessions) == ((), 1, 2)


@pytest.mark.parametrize(
    ("text", "days", "said", "strange"),
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
def test_the_period_is_what_the_settings_say(
    home: Path, text: str | None, days: int, said: bool, strange: str | None
) -> None:
    """A number of days from 0 on; anything else is as if nothing were said, and told."""
    if text is not None:
        (home / "settings.json").write_text(text)
    told = read_retention_period(home)
    assert (told.days, told.said, told.strange) == (days, said, strange)


@pytest.mark.parametrize("days", [99_999, 10**9, 1e300])
def test_a_very_long_period_is_for_ever(home: Path, days: float) -> None:
    """Nothing is ever deleted, and no date overflows."""
    (home / "settings.json").write_text(json.dumps({"cleanupPeriodDays": days}))
    assert read_retention_period(home).forever
    assert read_retention_period(home).ends(time.time_ns()) is None


def test_times_that_cannot_be_are_no_crash(store: Store, home: Path) -> None:
    """A file from before 1970, or from the far future, is listed."""
    kept(store, home)
    for number, when in ((1, -(10**9)), (2, 2**33)):
        os.utime(home / transcript(number), (when, when))
    assert {one.session for one in _status(store, home).at_risk} == {session_id(1), session_id(2)}


def test_settings_that_are_a_pipe_are_not_waited_for(home: Path) -> None:
    """What is no regular file says nothing."""
    os.mkfifo(home / "settings.json")
    assert read_retention_period(home).days == DEFAULT_DAYS


@pytest.mark.parametrize(
    ("path", "swept"),
    [
        (transcript(1), True),
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
def test_histories_and_memories_are_not_swept(path: str, swept: bool) -> None:
    """Claude Code deletes transcripts and what is beside them, and leaves the rest."""
    assert is_cleaned_up(path) is swept
