"""The index only makes answers faster: each answer equals the one that reading the transcripts gives.

`tests/interfaces/test_agree.py` does the same for every case folder.
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
from threadline import home_files
from threadline.archive import Archive
from threadline.summary import SessionFilter

CORPUS_HOME = SHARED / "corpus/home"
KEYS = (("day",), ("week", "model"), ("hour",), ("month",))
TIMES = (("2026-01-01", None), ("2026-02-03T04:05:06", "2026-10-01"), (None, "2026-05-05T05:05"))
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)

QUESTIONS: dict[str, Callable[[Archive], Any]] = {
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
        (
            charge.message,
            charge.part,
            charge.session or "",
            charge.project,
            str(charge.place),
            str(charge.amount),
            *map(str, charge.flags),
        )
        for charge in archive.ledger()
    ),
    "problems": lambda archive: sorted(map(str, archive.ledger().problems)),
}


def test_demo_home_has_the_same_answers(tmp_path: Path) -> None:
    """The home has forks, agents and compactions."""
    write(tmp_path / "home", megabytes=2)
    _check_answers(tmp_path / "home", tmp_path / "index.sqlite")


@pytest.mark.real
@pytest.mark.skipif(not CORPUS_HOME.is_dir(), reason="../shared/corpus is not there")
def test_real_home_has_the_same_answers(tmp_path: Path) -> None:
    """The home is in `../shared/corpus`."""
    _check_answers(CORPUS_HOME, tmp_path / "index.sqlite")


def _check_answers(home: Path, index: Path) -> None:
    with threadline.open(home, index=index) as indexed, threadline.open(home, index=False) as unindexed:
        indexed.refresh()
        (transcripts,) = indexed.connection.execute("SELECT COUNT(*) FROM transcripts").fetchone()
        assert transcripts == len(unindexed.found[0].transcripts)
        for name, question in QUESTIONS.items():
            assert question(indexed) == question(unindexed), name


@pytest.mark.sample(4)
@pytest.mark.parametrize(("keys", "zone"), list(product(KEYS, ("UTC", "Australia/Lord_Howe"))))
def test_groups_by_time_are_the_same(keys: tuple[str, ...], zone: str, tmp_path: Path, small_home: Path) -> None:
    """Days, weeks, months and hours in any zone, with time filters."""
    with threadline.open(small_home, index=tmp_path / "i.sqlite") as indexed:
        indexed.refresh()
        with threadline.open(small_home, index=False) as unindexed:
            for since, until in TIMES:
                ledgers = [archive.ledger().where(since=since, until=until) for archive in (indexed, unindexed)]
                assert ledgers[0].by(*keys, zone=zone) == ledgers[1].by(*keys, zone=zone)


@pytest.mark.slow
def test_torn_last_line_has_the_same_answers(tmp_path: Path) -> None:
    """The end of a transcript that is being written may be complete or torn."""
    write(tmp_path / "home", megabytes=0.3)
    path = next(iter(sorted((tmp_path / "home").rglob("*.jsonl"))))
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    with threadline.open(tmp_path / "home", index=tmp_path / "index.sqlite") as indexed:
        for cut in (len(data) - 1, len(data) - len(lines[-1]) // 2, len(data) - len(lines[-1]) + 1):
            path.write_bytes(data[:cut])
            indexed.refresh()
            with threadline.open(tmp_path / "home", index=False) as unindexed:
                for name, question in QUESTIONS.items():
                    assert question(indexed) == question(unindexed), (name, cut)


def test_fresh_index_reads_no_transcripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Overview, list and ledger open no transcript except those with a torn end."""
    write(tmp_path / "home", megabytes=0.3)
    with threadline.open(tmp_path / "home", index=tmp_path / "index.sqlite") as indexed:
        indexed.refresh()
        torn = {path for (path,) in indexed.connection.execute("SELECT path FROM transcripts WHERE read_to < size")}
        opened: set[str] = set()
        real_open = home_files.open_transcript

        def record_open(path: str | Path) -> int:
            opened.add(str(path))
            return real_open(path)

        monkeypatch.setattr("threadline.parse.lines.open_transcript", record_open)
        monkeypatch.setattr("threadline.parse.usage.open_transcript", record_open)
        indexed.overview()
        indexed.sessions()
        assert indexed.ledger().by("day", "session").total.charges
        assert opened <= torn
