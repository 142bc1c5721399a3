"""Sessions are read once, kept while they are looked at, and read again when they change."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from tests.transcripts import SESSION, Pen, line, prompt, transcript
from tests.web.conftest import session_rows, write_home

from threadline import load
from threadline.archive import Archive
from threadline.errors import Ambiguous, NotFound
from threadline.find import homes
from threadline.model.ledger import Sum
from threadline.render import View
from threadline.web import SessionCache
from threadline.web import session_cache as module
from threadline.web.session_cache import SessionSpending


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """The archive of a home with one session."""
    return Archive(homes(write_home(tmp_path / "home", session_rows())), index=False)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What was read, each time it was; reading takes a moment, and no rings are looked for meanwhile."""
    seen: list[Path] = []

    def read(path: Path, **options: Any) -> load.Session:
        seen.append(path)
        assert not gc.isenabled()
        sleep(0.05)
        return load.read(path, **options)

    monkeypatch.setattr(module, "read", read)
    return seen


def _append(archive: Archive) -> None:
    path = archive.path(SESSION)
    row = transcript(prompt("more"), pen=Pen())[0]
    assert isinstance(row, dict)
    with path.open("ab") as file:
        file.write(line(row))


def test_who_ask_at_the_same_time_wait_for_one_reading(archive: Archive, reads: list[Path]) -> None:
    """Eight requests for a session that is not at hand read it once, and get the same."""
    cache = SessionCache()
    _ = archive.found
    with ThreadPoolExecutor(8) as pool:
        kept = list(pool.map(lambda _: cache.get(SESSION, archive), range(8)))
    assert len(reads) == 1
    assert len({id(one) for one in kept}) == 1
    assert gc.isenabled()


def test_a_session_that_changed_is_read_again_and_only_then(archive: Archive, reads: list[Path]) -> None:
    """Its version tells; an agent's transcript is part of it."""
    cache = SessionCache()
    first = cache.get(SESSION, archive)
    assert cache.get(SESSION, archive) is first
    _append(archive)
    second = cache.get(SESSION, archive)
    assert second.version != first.version
    agent = next(archive.homes[0].path.glob("projects/*/*/subagents/*.jsonl"))
    agent.write_bytes(agent.read_bytes() * 2)
    assert cache.get(SESSION, archive).version not in {first.version, second.version}
    assert len(reads) == 3


def test_one_that_takes_long_to_read_is_told_as_it_was_and_read_later(
    archive: Archive, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is being written it is not read all the time; once it was read again, whoever listens is told."""
    monkeypatch.setattr(module, "_SLOW_SECONDS", 0.0)
    told = threading.Event()
    cache = SessionCache(on_reread=lambda session: told.set() if session == SESSION else None)
    first = cache.get(SESSION, archive)
    _append(archive)
    assert cache.get(SESSION, archive) is first
    assert len(reads) == 1
    assert told.wait(20)
    assert len(cache.get(SESSION, archive).session) == len(first.session) + 1
    assert len(reads) == 2


def test_what_was_looked_at_longest_ago_goes_first(archive: Archive, reads: list[Path]) -> None:
    """No more is kept than fits, but always the last one."""
    other = "0" * 8 + "-0000-4000-8000-000000000002"
    write_home(archive.homes[0].path, transcript(prompt("another"), pen=Pen(other)), other)
    cache = SessionCache(max_bytes=1)
    for name in (SESSION, other, other, SESSION):
        cache.get(name, archive)
    assert [path.stem for path in reads] == [SESSION, other, SESSION]


def test_a_session_that_moved_is_found_and_one_that_is_gone_is_not(archive: Archive, reads: list[Path]) -> None:
    """A home changes while it is looked at."""
    cache = SessionCache()
    path = cache.get(SESSION, archive).path
    there = path.parent.parent / "-elsewhere" / path.name
    there.parent.mkdir()
    path.rename(there)
    anew = Archive(archive.homes, index=False)
    assert cache.get(SESSION, anew).path == there
    there.unlink()
    with pytest.raises(NotFound):
        cache.get(SESSION, Archive(archive.homes, index=False))
    assert len(reads) == 2


def test_a_prefix_is_resolved_each_time(archive: Archive, reads: list[Path]) -> None:
    """The start of an id leads to the session in the cache, until another session begins like it."""
    cache = SessionCache()
    session = cache.get(SESSION, archive)
    assert cache.get(SESSION[:8], archive) is session
    other = f"{SESSION[:-1]}2"
    write_home(archive.homes[0].path, transcript(prompt("another"), pen=Pen(other)), other)
    with pytest.raises(Ambiguous):
        cache.get(SESSION[:8], Archive(archive.homes, index=False))
    assert len(reads) == 1


def test_drawings_are_dropped_when_costs_change(tmp_path: Path) -> None:
    """Entries show the costs that the head shows, also if the index knew none when they were rendered."""
    home = homes(write_home(tmp_path / "home", session_rows()))
    with Archive(home, index=False) as without, Archive(home, index=tmp_path / "index.sqlite") as indexed:
        session = SessionCache().get(SESSION, without)
        first = session.drawing(None, View(), session.links, without, UTC)
        assert session.drawing(None, View(), session.links, without, UTC) is first
        indexed.open_index()
        session.spending(indexed)  # the same costs, from another source
        assert session.drawing(None, View(), session.links, indexed, UTC) is first
        session._spending = SessionSpending(Sum(), {})  # what an index that lags behind would say
        session._spending_generation = "older"
        session.spending(indexed)
        assert session.drawing(None, View(), session.links, indexed, UTC) is not first
