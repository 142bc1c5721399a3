"""The index only makes answers quick: each is the one that reading the transcripts gives.

Every case folder is asked in `tests/interfaces/test_agree.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.real.client import SHARED
from tools.demo import write

import threadline
from threadline import files
from threadline.archive import Archive
from threadline.summary import SessionFilter

REAL = SHARED / "corpus/home"
KEYS = (("day",), ("week", "model"), ("hour",), ("month",))
TIMES = (("2026-01-01", None), ("2026-02-03T04:05:06", "2026-10-01"), (None, "2026-05-05T05:05"))
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)

ASKED: dict[str, Callable[[Archive], Any]] = {
    "overview": lambda archive: archive.overview(),
    "sessions": lambda archive: archive.sessions(),
    "the newest sessions": lambda archive: archive.sessions(SessionFilter(limit=2)),
    "sessions since": lambda archive: archive.sessions(SessionFilter(since=NOON)),
    "days": lambda archive: archive.ledger().by("day", zone="Asia/Kathmandu"),
    "sessions and models": lambda archive: archive.ledger().by("session", "model"),
    "projects and branches": lambda archive: archive.ledger().by("project", "branch"),
    "agents": lambda archive: archive.ledger().by("agent"),
    "tools": lambda archive: archive.ledger().by("tool"),
    "homes and machines": lambda archive: archive.ledger().by("home", "machine"),
    "the total": lambda archive: archive.ledger().total,
    "charges": lambda archive: sorted(
        (one.message, one.part, one.session or "", one.project, str(one.place), str(one.amount), *map(str, one.flags))
        for one in archive.ledger()
    ),
    "problems": lambda archive: sorted(map(str, archive.ledger().problems)),
}


def test_a_made_up_home_is_told_alike(tmp_path: Path) -> None:
    """The same for a home with forks, agents and compactions."""
    write(tmp_path / "home", megabytes=2)
    _agree(tmp_path / "home", tmp_path / "index.sqlite")


@pytest.mark.real
@pytest.mark.skipif(not REAL.is_dir(), reason="../shared/corpus is not there")
def test_a_real_home_is_told_alike(tmp_path: Path) -> None:
    """The same for a real home."""
    _agree(REAL, tmp_path / "index.sqlite")


def _agree(home: Path, index: Path) -> None:
    with threadline.open(home, index=index) as quick, threadline.open(home, index=False) as plain:
        quick.refresh()
        (known,) = quick.connection.execute("SELECT COUNT(*) FROM transcripts").fetchone()
        assert known == len(plain.found[0].transcripts)
        for name, asked in ASKED.items():
            assert asked(quick) == asked(plain), name


@pytest.mark.sample(4)
@pytest.mark.parametrize(("keys", "zone"), list(product(KEYS, ("UTC", "Australia/Lord_Howe"))))
def test_times_are_split_alike(keys: tuple[str, ...], zone: str, tmp_path: Path, small_home: Path) -> None:
    """Days, weeks, months and hours in any zone, of some of the time."""
    with threadline.open(small_home, index=tmp_path / "i.sqlite") as quick:
        quick.refresh()
        with threadline.open(small_home, index=False) as plain:
            for since, until in TIMES:
                some = [one.ledger().where(since=since, until=until) for one in (quick, plain)]
                assert some[0].by(*keys, zone=zone) == some[1].by(*keys, zone=zone)


def test_a_line_that_is_not_finished_counts_as_it_does_without(tmp_path: Path) -> None:
    """The end of a transcript that is being written: whole or torn, it is told as reading it tells it."""
    write(tmp_path / "home", megabytes=0.3)
    path = next(iter(sorted((tmp_path / "home").rglob("*.jsonl"))))
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    with threadline.open(tmp_path / "home", index=tmp_path / "index.sqlite") as quick:
        for cut in (len(whole) - 1, len(whole) - len(lines[-1]) // 2, len(whole) - len(lines[-1]) + 1):
            path.write_bytes(whole[:cut])
            quick.refresh()
            with threadline.open(tmp_path / "home", index=False) as plain:
                for name, asked in ASKED.items():
                    assert asked(quick) == asked(plain), (name, cut)


def test_the_index_is_really_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the index is fresh, no transcript is read for the overview, the list or the ledger, but for torn ends."""
    write(tmp_path / "home", megabytes=0.3)
    with threadline.open(tmp_path / "home", index=tmp_path / "index.sqlite") as quick:
        quick.refresh()
        torn = {path for (path,) in quick.connection.execute("SELECT path FROM transcripts WHERE read_to < size")}
        opened: set[str] = set()
        really = files.open_transcript

        def noted(path: str | Path) -> int:
            opened.add(str(path))
            return really(path)

        monkeypatch.setattr("threadline.parse.lines.open_transcript", noted)
        monkeypatch.setattr("threadline.parse.usage.open_transcript", noted)
        quick.overview()
        quick.sessions()
        assert quick.ledger().by("day", "session").total.charges
        assert opened <= torn
